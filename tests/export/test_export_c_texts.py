"""C headers of tables: raw rows with categories, missing values and codes of texts, as the source has them."""

from __future__ import annotations

import subprocess

import numpy as np
import pandas as pd
import pytest
from c_header import C99, STRICT, build
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder, OrdinalEncoder, StandardScaler, TargetEncoder
from sklearn.svm import SVC

import approxsvm
from approxsvm.errors import UnsupportedModelError

N = 300


def census(encoder, imputer=None, **changes):
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
    return make_pipeline(ColumnTransformer(parts), SVC(gamma=0.2)).fit(frame, labels), frame


ENCODERS = {
    "one-hot": OneHotEncoder(handle_unknown="ignore"),
    "one-hot, error": OneHotEncoder(),
    "ordinal": OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
    "target": TargetEncoder(),
}


@pytest.mark.parametrize("name", ENCODERS)
def test_tables_are_the_sources(name, tmp_path):
    source, frame = census(ENCODERS[name])
    compiled = approxsvm.compile(source, frame, mode="approximate", degree=4)
    rows = compiled._rows(frame).astype(np.float32)
    own = approxsvm.Predictor(compiled.artifact).predict(rows)
    answers = build(compiled, tmp_path, *STRICT).answers(rows)
    exact = approxsvm.Predictor(approxsvm.compile(source).artifact)
    sign = 1.0 if exact.artifact.labels[0] == "yes" else -1.0
    assert (np.abs(sign * answers.values[:, 0] - exact.decision_function(rows)) <= answers.bounds[:, 0]).all()
    assert (compiled.artifact.labels[answers.predicted] == own).all()
    certain = answers.certain
    assert certain.mean() > 0.3
    assert (compiled.artifact.labels[answers.predicted][certain] == source.predict(frame)[certain]).all()


def test_what_the_source_refuses_is_nan(tmp_path):
    source, frame = census(OneHotEncoder())
    compiled = approxsvm.compile(source, frame, mode="approximate")
    rows = np.repeat(compiled._rows(frame)[:1], 8, axis=0).astype(np.float32)
    rows[1, 0], rows[2, 2], rows[3, 2], rows[4, 1], rows[5, 3], rows[6, 0] = -1, 2.0, np.nan, np.inf, np.inf, 0.5
    answers = build(compiled, tmp_path, *STRICT).answers(rows)
    assert np.isnan(answers.values[:, 0]).tolist() == [False, *[True] * 6, False]
    assert np.isinf(answers.bounds[1:7]).all()
    assert not answers.certain[1:7].any()


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


def test_codes_of_texts(tmp_path):
    source, frame = census(OneHotEncoder(handle_unknown="ignore"))
    compiled = approxsvm.compile(source, frame, mode="approximate")
    compiled.export_c(tmp_path / "m.h", name="m")
    (tmp_path / "main.c").write_text(MAIN)
    subprocess.run([*C99, "-Wall", "-Wextra", "-Werror", "-o", "program", "main.c"], cwd=tmp_path, check=True)
    known = compiled.artifact.texts[0]
    texts = [*known.texts, "cler", "clerk ", "Clerk", "zz", "é", "日", "日本人", "\N{PILE OF POO}"]
    given = "".join(text.replace("\n", "\t") + "\n" for text in texts)
    done = subprocess.run(["./program"], cwd=tmp_path, input=given, capture_output=True, text=True, encoding="utf-8")
    *lines, missing = done.stdout.split("\n")[:-1]
    assert missing.endswith("nan")
    assert [float(line.split()[0]) for line in lines] == known.codes(texts).tolist()
    assert {line.split()[1] for line in lines} == {"-1"}


def test_what_has_no_header_is_named(tmp_path):
    source, frame = census(OneHotEncoder(handle_unknown="ignore"))
    compiled = approxsvm.compile(source, frame, mode="approximate")
    with pytest.raises(UnsupportedModelError, match="looks up rows of float32 numbers alone"):
        compiled.export_c(tmp_path / "m.h", inputs="int16", X=frame)
    bins = make_pipeline(StandardScaler(), KBinsDiscretizer(4), SVC()).fit(frame[["age"]], frame["age"] > 40)
    with pytest.raises(UnsupportedModelError, match="no tables behind other steps"):
        approxsvm.compile(bins, mode="approximate").export_c(tmp_path / "m.h")
    source, frame = census(OneHotEncoder(), SimpleImputer(strategy="constant", fill_value="a\0b"))
    with pytest.raises(UnsupportedModelError, match="has a character that ends a text in C"):
        approxsvm.compile(source, mode="approximate").export_c(tmp_path / "m.h")
