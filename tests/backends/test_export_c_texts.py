"""C headers for tables: raw rows with categories, missing values and string codes; answers equal the source's."""

from __future__ import annotations

import subprocess

import numpy as np
import pandas as pd
import pytest
from c_header import C99, NEEDS_GCC
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

import approxsvm
from approxsvm.errors import UnsupportedModelError

pytestmark = [pytest.mark.native, NEEDS_GCC]
N = 300


def census(encoder, imputer=None, last=None):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "job": rng.choice(np.array(["clerk", "Lehrer", "日本", "", 'a "b"\n', np.nan], dtype=object), N),
            "age": rng.integers(18, 80, N).astype(float),
            "code": rng.choice([1.0, 4.0, 5.0], N),
            "hours": np.where(rng.random(N) < 0.2, np.nan, rng.normal(40, 9, N)),
        }
    ).astype({"job": object})
    labels = np.where((frame["age"] > 45) ^ (frame["job"] == "clerk"), "yes", "no")
    parts = [
        ("job", make_pipeline(imputer or SimpleImputer(strategy="most_frequent"), encoder), ["job"]),
        ("code", OneHotEncoder(), ["code"]),
        ("numbers", make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()), ["age", "hours"]),
    ]
    source = make_pipeline(ColumnTransformer(parts), last or SVC(gamma=0.2))
    return source.fit(frame, labels), frame


MAIN = """
#include "m.h"
#include <stdio.h>
int main(void) {
    char text[512];
    while (fgets(text, sizeof text, stdin)) {
        int n = 0;
        while (text[n] != 0 && text[n] != '\\n') ++n;
        text[n] = 0;
        for (n = 0; text[n] != 0; ++n) text[n] = text[n] == '\\t' ? '\\n' : text[n];
        printf("%g %g\\n", (double)m_category_code(0, text), (double)m_category_code(1, text));
    }
    printf("%g\\n", (double)m_category_code(0, (const char *)0));
    return 0;
}
"""


def codes_of(compiled, folder, known):
    """Assert that the header's string codes for column 0 equal Python's; return the code of a missing value."""
    folder.mkdir(exist_ok=True)
    compiled.export_c(folder / "m.h", name="m")
    (folder / "main.c").write_text(MAIN)
    subprocess.run([*C99, "-Wall", "-Wextra", "-Werror", "-o", "program", "main.c"], cwd=folder, check=True)
    texts = [*known.texts, "cler", "clerk ", "Clerk", "zz", "é", "日", "日本人", "\N{PILE OF POO}"]
    given = "".join(text.replace("\n", "\t") + "\n" for text in texts)
    done = subprocess.run(["./program"], cwd=folder, input=given, capture_output=True, text=True, encoding="utf-8")
    *lines, missing = done.stdout.split("\n")[:-1]
    assert [float(line.split()[0]) for line in lines] == known.codes(texts).tolist()
    assert {line.split()[1] for line in lines} == {"-1"}
    return missing.lstrip("-")


def test_codes_of_texts(tmp_path):
    source, frame = census(OneHotEncoder(handle_unknown="ignore"))
    compiled = approxsvm.compile(source, frame, mode="approximate")
    assert codes_of(compiled, tmp_path, compiled.artifact.texts[0]) == "nan"


def test_what_has_no_header_is_named(tmp_path):
    source, frame = census(OneHotEncoder(handle_unknown="ignore"))
    compiled = approxsvm.compile(source, frame, mode="approximate")
    with pytest.raises(UnsupportedModelError, match="supports lookups only for float32 rows"):
        compiled.export_c(tmp_path / "m.h", inputs="int16", X=frame)
    source, frame = census(OneHotEncoder(), SimpleImputer(strategy="constant", fill_value="a\0b"))
    with pytest.raises(UnsupportedModelError, match="has a character that ends a text in C"):
        approxsvm.compile(source, mode="approximate").export_c(tmp_path / "m.h")
