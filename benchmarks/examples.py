"""One real example per kind of source, compared with it: times for 4,000 rows and one row, bytes, differing answers.

Two of them are raw tables, with strings and missing values as published: UCI's Adult and covtype, from pandas data
frames. These also use two other interfaces: `score` with a CSV file, and an exported C99 header compiled with gcc,
which takes string codes. The text documents are docstring paragraphs from installed packages, classified by package.

Each source is trained on only a few thousand rows, because predicting with the source is slow. Reference answers come
from the source, on one thread. Differing labels are counted, and the largest difference between values is given as a
fraction of their range. OpenCV and onnxruntime compute in float32, so a differing label may be their error.
"""

from __future__ import annotations

import ast
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, Final

import numpy as np
import pandas as pd
import sklearn
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.ensemble import BaggingClassifier, VotingClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neighbors import KernelDensity
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    OneHotEncoder,
    PowerTransformer,
    QuantileTransformer,
    SplineTransformer,
    StandardScaler,
)
from sklearn.svm import SVC, SVR
from sklearn.utils import _safe_indexing
from threadpoolctl import threadpool_limits

import approxsvm
from approxsvm.scoring import score_dataset
from benchmarks.experiment import Experiment, MissingError, Rows, Run, number
from benchmarks.problems import SOURCES, Source, split_rows, unpacked
from benchmarks.timing import medians, seconds, spread

_SINGLE_ROWS: Final = 50
_ROUNDS: Final = 15
_PER_METHOD_SECONDS: Final = 1.0
_ADULT: Final = (
    *("age", "workclass", "fnlwgt", "education", "education_num", "marital_status", "occupation", "relationship"),
    *("race", "sex", "capital_gain", "capital_loss", "hours_per_week", "native_country", "income"),
)
_AREAS: Final = np.array(["Rawah", "Neota", "Comanche Peak", "Cache la Poudre"])
_MEASURES: Final = (
    *("elevation", "aspect", "slope", "horizontal_to_water", "vertical_to_water", "horizontal_to_roads"),
    *("shade_9", "shade_noon", "shade_15", "horizontal_to_fire"),
)
_PACKAGES: Final = ("sklearn", "scipy", "pandas")


@dataclass(frozen=True)
class Example:
    """A source with its rows."""

    source: Any  # a fitted estimator, or the program that gives the reference answers
    sample: Any  # rows to compile with
    rows: Any  # rows to predict on
    given: Any = None  # input of `compile`; None: the source
    options: Mapping[str, Any] = field(default_factory=dict)  # options of `compile`
    theirs: Callable[[Any, Any], Any] = lambda source, X: source.predict(X)
    ours: Callable[[Any, Any], Any] = lambda fast, X: fast.predict(X)
    has_names: bool = False  # true if rows are a raw table for the other interfaces


def _split(run: Run, name: str, n_train: int) -> tuple[Any, Any, Any, Any]:
    """Return training rows, their answers, test rows, and the indices of the training rows."""
    source = SOURCES.get(name, Source(name, name, n_train=n_train))
    X, y, X_test, _ = split_rows(run.data, source)
    chosen = spread(len(X), n_train if run.options.train_rows is None else min(n_train, run.options.train_rows))
    return X[chosen], y[chosen], X_test[spread(len(X_test), run.options.rows)], chosen


def _fitted(estimator: Any, name: str, n_train: int, run: Run, **options: Any) -> Example:
    X, y, rows, _ = _split(run, name, n_train)
    return Example(estimator.fit(X, y), X, rows, **options)


def _features(map_: Any, name: str) -> Callable[[Run], Example]:
    return partial(_fitted, make_pipeline(StandardScaler(), map_, LogisticRegression(max_iter=200)), name, 8_000)


# --- raw tables


def adult(run: Run) -> tuple[pd.DataFrame, Any]:
    """Read UCI's table unchanged, except that "?" becomes a missing value, and its labels."""
    text = unpacked(run.data / "adult.data").decode()
    lines = [line.split(", ") for line in text.splitlines() if line]
    table = pd.DataFrame(lines, columns=_ADULT).replace("?", np.nan)
    whole = [name for name in _ADULT[:-1] if table[name].dropna().str.fullmatch("[0-9]+").all()]
    return table.astype(dict.fromkeys(whole, float))[list(_ADULT[:-1])], table["income"].to_numpy(str)


def covtype(run: Run) -> tuple[pd.DataFrame, Any]:
    """Read UCI's table, with one column each for area and soil type instead of 44 columns of zeros and ones."""
    X, y, X_test, y_test = split_rows(run.data, SOURCES["covtype, 7 classes"])
    X, y = np.concatenate([X, X_test[:100_000]]), np.concatenate([y, y_test[:100_000]])
    table = pd.DataFrame(X[:, :10], columns=_MEASURES)
    table["area"] = _AREAS[X[:, 10:14].argmax(axis=1)]
    table["soil"] = [f"soil {k + 1}" for k in X[:, 14:].argmax(axis=1)]
    return table, y.astype(int)


def _table(read: Callable[[Run], tuple[pd.DataFrame, Any]], n_train: int, C: float, run: Run) -> Example:
    """Train an SVC on imputed and scaled numbers and on imputed and one-hot encoded strings."""
    table, y = read(run)
    order = np.random.default_rng(0).permutation(len(table))
    n_train = n_train if run.options.train_rows is None else min(n_train, run.options.train_rows)
    train, test = order[:n_train], order[n_train:][: run.options.rows]
    texts = [name for name in table if table[name].dtype.kind not in "fi"]
    columns = make_column_transformer(
        (make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), [x for x in table if x not in texts]),
        (make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore")), texts),
    )
    X = table.iloc[train]
    source = make_pipeline(columns, SVC(C=C)).fit(X, y[train])
    return Example(source, X, table.iloc[test].reset_index(drop=True), has_names=True)


# --- whole texts


def paragraphs(package: str, most: int) -> list[str]:
    """Return the distinct first paragraphs of the docstrings in an installed package."""
    folder = Path(sklearn.__file__).parent.parent / package
    unique: dict[str, None] = {}
    for path in sorted(folder.rglob("*.py")):
        if "test" in str(path.relative_to(folder)):
            continue
        nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        kinds = (ast.FunctionDef, ast.ClassDef, ast.Module)
        docs = (ast.get_docstring(node) or "" for node in nodes if isinstance(node, kinds))
        pieces = (" ".join(piece.split()) for doc in docs for piece in doc.split("\n\n"))
        unique |= dict.fromkeys(piece for piece in pieces if len(piece) > 80)
        if len(unique) >= most:
            break
    return list(unique)[:most]


def _docstrings(run: Run) -> Example:
    texts = [(text, package) for package in _PACKAGES for text in paragraphs(package, 3_000)]
    order = np.random.default_rng(0).permutation(len(texts))
    X, y = np.array([texts[k][0] for k in order], dtype=object), np.array([texts[k][1] for k in order])
    n = min(run.options.train_rows or 4_000, len(X) // 2)
    vectorizer = TfidfVectorizer(sublinear_tf=True, min_df=2)
    return Example(make_pipeline(vectorizer, SVC(C=4)).fit(X[:n], y[:n]), X[:n], X[n:][: run.options.rows])


# --- files of other programs


def _opencv(run: Run) -> Example:
    import cv2

    X, y, rows, _ = _split(run, "letter, 26 classes", 5_000)
    ml: Any = cv2.ml  # missing in its stubs
    machine = ml.SVM_create()
    machine.setType(ml.SVM_C_SVC)
    machine.setKernel(ml.SVM_RBF)
    machine.setC(10)
    machine.setGamma(1.0)
    machine.train(X.astype(np.float32), ml.ROW_SAMPLE, y.astype(np.int32))
    path = run.scratch / "letters.xml"
    machine.save(str(path))
    rows = rows.astype(np.float32)
    return Example(machine, X, rows, path, theirs=lambda source, X: source.predict(X)[1].ravel().astype(int))


def _onnx(run: Run) -> Example:
    from benchmarks.onnx_models import _of_sklearn
    from benchmarks.peers import onnx_session

    X, y, rows, _ = _split(run, "pendigits, 10 classes", 7_494)
    graph = _of_sklearn(make_pipeline(StandardScaler(), SVC(C=10)).fit(X, y.astype(int)))
    path = run.scratch / "digits.onnx"
    path.write_bytes(graph.SerializeToString())
    session, rows = onnx_session(graph), rows.astype(np.float32)
    return Example(session, X, rows, path, theirs=lambda source, X: source.run(["label"], {"X": X})[0])


# --- other kernel machines


def _letters(run: Run) -> Example:
    """Train on the first two letters."""
    X, y, rows, _ = _split(run, "letter, 26 classes", 15_000)
    chosen = np.flatnonzero(y <= 2)[:600]
    process = GaussianProcessClassifier(1.0 * RBF(0.5), optimizer=None)
    process.fit(X[chosen], y[chosen].astype(int))
    return Example(process, X[chosen], rows)


def _abalone(run: Run) -> Example:
    X, y, rows, _ = _split(run, "abalone_scale", 800)
    process = GaussianProcessRegressor(RBF(1.0) + WhiteKernel(0.3), optimizer=None, normalize_y=True).fit(X, y)
    return Example(process, X, rows)


def _density(run: Run) -> Example:
    X, _, rows, _ = _split(run, "ijcnn1", 10_000)

    def scores(model: Any, X: Any) -> Any:
        return model.score_samples(X)

    return Example(KernelDensity(bandwidth=0.3).fit(X), X, rows, theirs=scores, ours=scores)


def _svc(**options: Any) -> Any:
    return make_pipeline(StandardScaler(), SVC(**options))


EXAMPLES: Final[Mapping[str, Callable[[Run], Example]]] = {
    "RBFSampler, LogisticRegression: MNIST, 10 classes": partial(
        _fitted,
        make_pipeline(RBFSampler(gamma=0.02, n_components=500, random_state=0), LogisticRegression(max_iter=200)),
        "MNIST, 10 classes",
        6_000,
    ),
    "Nystroem, LogisticRegression: covtype, 7 classes": _features(
        Nystroem(gamma=0.05, n_components=300, random_state=0), "covtype, 7 classes"
    ),
    "OneVsRestClassifier of SVC: letter, 26 classes": partial(
        _fitted, OneVsRestClassifier(SVC(C=10)), "letter, 26 classes", 4_000
    ),
    "BaggingClassifier of 10 SVC: ijcnn1": partial(
        _fitted, BaggingClassifier(_svc(), 10, max_samples=0.2, random_state=0), "ijcnn1", 10_000
    ),
    "VotingClassifier of 3 SVC: pendigits": partial(
        _fitted,
        VotingClassifier([("mild", _svc()), ("strict", _svc(C=50)), ("narrow", _svc(gamma=0.2))]),
        "pendigits, 10 classes",
        7_494,
    ),
    "CalibratedClassifierCV of SVC, probabilities: ijcnn1": partial(
        _fitted,
        CalibratedClassifierCV(_svc(), ensemble=False),
        "ijcnn1",
        10_000,
        theirs=lambda source, X: source.predict_proba(X)[:, 1],
        ours=lambda fast, X: fast.predict_proba(X)[:, 1],
    ),
    "imputed, one-hot, scaled, SVC: Adult as a raw table": partial(_table, adult, 5_000, 1.0),
    "one-hot, scaled, SVC: covtype as a raw table, 7 classes": partial(_table, covtype, 5_000, 10.0),
    "QuantileTransformer, SVC: covtype": partial(
        _fitted, make_pipeline(QuantileTransformer(n_quantiles=200), SVC(C=10)), "covtype", 5_000
    ),
    "PowerTransformer, SVR: cpu_act": partial(_fitted, make_pipeline(PowerTransformer(), SVR(C=50)), "cpu_act", 4_000),
    "SplineTransformer, SVC: svmguide1": partial(
        _fitted, make_pipeline(StandardScaler(), SplineTransformer(), SVC()), "svmguide1", 3_089
    ),
    "TfidfVectorizer, SVC: docstrings of three packages": _docstrings,
    "OpenCV's ml::SVM file: letter, 26 classes": _opencv,
    "an ONNX graph of skl2onnx, in onnxruntime: pendigits": _onnx,
    "GaussianProcessClassifier: letter, A or B": _letters,
    "GaussianProcessRegressor: abalone": _abalone,
    "KernelDensity: ijcnn1": _density,
}


def measure(run: Run, build: Callable[[Run], Example]) -> Rows:
    """Measure one example, with Python and the interfaces for raw tables."""
    name = next(name for name, one in EXAMPLES.items() if one is build)
    example = build(run)
    source = example.source if example.given is None else example.given
    start = perf_counter()
    fast = approxsvm.compile(source, example.sample, **example.options)
    compile_seconds = perf_counter() - start
    ours, theirs = partial(example.ours, fast), partial(example.theirs, example.source)
    n_rows = len(example.rows)
    one_row = [_safe_indexing(example.rows, [k]) for k in spread(n_rows, _SINGLE_ROWS)]
    with threadpool_limits(1):
        differ, worst = _differences(ours(example.rows), theirs(example.rows))
        batch = _medians({"ours": lambda: ours(example.rows), "source": lambda: theirs(example.rows)})
        single = _medians({"ours": lambda: list(map(ours, one_row)), "source": lambda: list(map(theirs, one_row))})
    yield (
        "examples",
        {
            "example": name,
            "n_rows": n_rows,
            "source_microseconds": 1e6 * batch["source"] / n_rows,
            "microseconds": 1e6 * batch["ours"] / n_rows,
            "source_one_row_microseconds": 1e6 * single["source"] / len(one_row),
            "one_row_microseconds": 1e6 * single["ours"] / len(one_row),
            "artifact_bytes": fast.summary.n_bytes,
            "certified": None if differ is None else fast.certified(example.rows).mean(),
            "compile_seconds": compile_seconds,
            "differ": differ,
            "worst": worst,
        },
    )
    if example.has_names:
        for door, microseconds, n_differ in _other_interfaces(fast, example, run.scratch):
            yield "doors", {"example": name, "door": door, "microseconds": microseconds, "differ": n_differ}


def _medians(turns: Mapping[str, Callable[[], object]]) -> dict[str, float]:
    """Return the median seconds of each call; the calls take turns, and slow ones run fewer rounds."""
    rounds = min(max(int(_PER_METHOD_SECONDS / max(map(seconds, turns.values()))), 1), _ROUNDS)
    return medians({name: partial(seconds, run) for name, run in turns.items()}, rounds)


def _differences(ours: Any, theirs: Any) -> tuple[int | None, float | None]:
    """Count differing labels, or return the largest difference between values as a fraction of their range."""
    if np.asarray(theirs).dtype.kind == "f" and len(np.unique(theirs)) > 100:
        return None, float((np.abs(ours - theirs) / np.ptp(theirs, axis=0)).max())
    return int((np.asarray(ours) != np.asarray(theirs)).sum()), None


# --- other interfaces for raw tables

_PROGRAM: Final = """
#include "m.h"
#include <stdio.h>
#include <time.h>
static float rows[@ROWS@][m_n_features];
static int labels[@ROWS@];
int main(void) {
    FILE *const in = fopen("rows.bin", "rb"), *const out = fopen("labels.bin", "wb");
    clock_t start;
    int k;
    if (!in || !out || fread(rows, sizeof rows, 1, in) != 1) return 1;
    start = clock();
    for (k = 0; k < @ROWS@; ++k) labels[k] = m_predict(rows[k]);
    printf("%.9f", (double)(clock() - start) / CLOCKS_PER_SEC);
    fwrite(labels, sizeof labels, 1, out);
    return fclose(out);
}
"""


def _other_interfaces(fast: Any, example: Example, scratch: Path) -> Iterator[tuple[str, float, int]]:
    """Yield microseconds per row, and the number of labels that differ from the source's."""
    X, labels = example.rows, example.source.predict(example.rows)
    model, table, scored = (scratch / name for name in ("model.asvm", "rows.csv", "scored.csv"))
    fast.save(model)
    X.to_csv(table, index=False)
    took = _medians({"csv": lambda: score_dataset(model, table, scored, keep=[])})["csv"]
    differ = (pd.read_csv(scored)["label"].to_numpy() != labels).sum()
    yield "CSV to CSV, `score`", 1e6 * took / len(X), int(differ)
    if shutil.which("gcc") is None:
        raise MissingError("there is no gcc")
    exact = approxsvm.compile(example.source, mode="exact")
    exact.export_c(scratch / "m.h", name="m")
    (scratch / "main.c").write_text(_PROGRAM.replace("@ROWS@", str(len(X))))
    exact._rows(X).astype(np.float32).tofile(scratch / "rows.bin")
    subprocess.run(["gcc", "-std=c99", "-O2", "-ffp-contract=off", "-o", "program", "main.c"], cwd=scratch, check=True)
    took = float(subprocess.run(["./program"], cwd=scratch, check=True, capture_output=True, text=True).stdout)
    answers = exact.artifact.labels[np.fromfile(scratch / "labels.bin", np.int32)]
    yield "C99 header, gcc", 1e6 * took / len(X), int((answers != labels).sum())


_OPTIONS = [number("--rows", 4_000, "Maximum test rows."), number("--train-rows", None, "Maximum training rows.")]
EXPERIMENT = Experiment("examples", __doc__, measure, EXAMPLES, _OPTIONS)

if __name__ == "__main__":
    EXPERIMENT.main()
