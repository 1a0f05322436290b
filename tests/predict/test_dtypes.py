"""Sources x dtypes of rows x containers x entry points, against the source asked with the very same rows.

What is answered has the source's label, and values within the bound; everything else is an InputError that names the
dtype and what to do. scikit-learn computes in the dtype that arrives (approxsvm/readers/sklearn/dtypes.py).
"""

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array, csr_matrix
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, FastICA, TruncatedSVD
from sklearn.ensemble import BaggingClassifier, VotingClassifier
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.feature_selection import SelectKBest
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.kernel_approximation import (
    AdditiveChi2Sampler,
    Nystroem,
    PolynomialCountSketch,
    RBFSampler,
    SkewedChi2Sampler,
)
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import FeatureUnion, make_pipeline, make_union
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    SplineTransformer,
    StandardScaler,
    TargetEncoder,
)
from sklearn.semi_supervised import SelfTrainingClassifier
from sklearn.svm import SVC, SVR, LinearSVC, OneClassSVM

import approxsvm
from approxsvm import _native
from approxsvm.artifact.views import Artifact
from approxsvm.errors import ArtifactError, InputError, UnsupportedModelError
from approxsvm.estimators import estimator_for
from approxsvm.readers.sklearn import dtypes
from approxsvm.readers.sklearn.known_types import KNOWN
from approxsvm.row_dtypes import SAME, RowDtypes

DTYPES = (
    np.float64,
    np.float32,
    np.float16,
    np.longdouble,
    np.int8,
    np.uint8,
    np.int16,
    np.int32,
    np.int64,
    np.uint64,
    bool,
)
KEEPS_FLOAT32 = "float32_unit" in (_native.Predictor.__init__.__doc__ or "")


def rows_of(dtype: Any, n: int = 60) -> Any:
    """Rows above 0, whole ones for integers, of the same scale in every dtype."""
    rows = np.random.default_rng(3).uniform(0.6, 9.4, (n, 3))
    return (rows if np.dtype(dtype).kind == "f" else rows.round()).astype(dtype)


TRAIN = rows_of(np.float64, 120)
LABELS = (np.abs(TRAIN - 5.0).sum(axis=1) + np.random.default_rng(0).normal(0, 1, 120) > 6.5).astype(int)

SOURCES: dict[str, Callable[[], Any]] = {
    "svc": lambda: SVC(),
    "standard": lambda: make_pipeline(StandardScaler(), SVC(C=10)),
    "min_max": lambda: make_pipeline(MinMaxScaler(clip=True), SVC(C=10)),
    "max_abs": lambda: make_pipeline(MaxAbsScaler(), SVC(C=10)),
    "robust": lambda: make_pipeline(RobustScaler(), SVC(kernel="poly", degree=2)),
    "chi2": lambda: make_pipeline(AdditiveChi2Sampler(), SVC(C=10)),
    "log": lambda: make_pipeline(FunctionTransformer(np.log1p), StandardScaler(), SVC()),
    "log_alone": lambda: make_pipeline(FunctionTransformer(np.log), SVC(gamma=0.5)),
    "binarizer": lambda: make_pipeline(Binarizer(threshold=2.7), SVC()),
    "binarizer_above": lambda: make_pipeline(Binarizer(threshold=2.1), SVC()),
    "binarizer_behind": lambda: make_pipeline(MinMaxScaler(), Binarizer(threshold=0.5), SVC()),
    "bins": lambda: make_pipeline(KBinsDiscretizer(4), SVC()),
    "bins_scaled": lambda: make_pipeline(KBinsDiscretizer(4, encode="onehot-dense"), StandardScaler(), SVC()),
    "normalizer": lambda: make_pipeline(Normalizer(), SVC(C=100)),
    "power": lambda: make_pipeline(PowerTransformer(), SVC()),
    "quantiles": lambda: make_pipeline(QuantileTransformer(n_quantiles=20, output_distribution="normal"), SVC()),
    "splines": lambda: make_pipeline(SplineTransformer(), SVC()),
    "products": lambda: make_pipeline(MinMaxScaler(), PolynomialFeatures(3), SVC()),
    "pca": lambda: make_pipeline(PCA(2), SVC()),
    "svd": lambda: make_pipeline(StandardScaler(), TruncatedSVD(2), SVC()),
    "select": lambda: make_pipeline(SelectKBest(k=2), SVC()),
    "imputer": lambda: make_pipeline(SimpleImputer(), StandardScaler(), SVC()),
    "imputer_of_0": lambda: make_pipeline(SimpleImputer(missing_values=3, strategy="most_frequent"), SVC()),
    "indicator": lambda: make_pipeline(
        make_union(SimpleImputer(missing_values=3.0), MissingIndicator(missing_values=3.0, features="all")), SVC()
    ),
    "one_hot": lambda: make_pipeline(OneHotEncoder(handle_unknown="ignore", dtype=np.float32), SVC()),
    "fixed": lambda: make_pipeline(SimpleImputer(strategy="constant", fill_value=1), SVC()),
    "mode": lambda: make_pipeline(SimpleImputer(strategy="most_frequent"), SVC()),
    "targets": lambda: make_pipeline(TargetEncoder(random_state=0), SVC()),
    "columns": lambda: make_pipeline(
        ColumnTransformer([("log", FunctionTransformer(np.log1p), [0]), ("scale", StandardScaler(), [1])]), SVC()
    ),
    "union": lambda: make_pipeline(FeatureUnion([("a", StandardScaler()), ("b", "passthrough")]), SVC()),
    "linear": lambda: make_pipeline(StandardScaler(), LogisticRegression()),
    "linear_svc": lambda: LinearSVC(),
    "nystroem": lambda: make_pipeline(Nystroem(n_components=20, random_state=0), LogisticRegression()),
    "sampler": lambda: make_pipeline(RBFSampler(gamma=0.1, random_state=0), LogisticRegression()),
    "skewed": lambda: make_pipeline(SkewedChi2Sampler(n_components=20, random_state=0), LogisticRegression()),
    "bag": lambda: BaggingClassifier(make_pipeline(StandardScaler(), SVC(probability=False)), 3, random_state=0),
    "votes": lambda: VotingClassifier([("a", SVC()), ("b", make_pipeline(AdditiveChi2Sampler(), SVC()))]),
    "calibrated": lambda: CalibratedClassifierCV(make_pipeline(StandardScaler(), SVC()), ensemble=False, cv=3),
    "svr": lambda: make_pipeline(StandardScaler(), SVR(C=10)),
    "ridge": lambda: KernelRidge(kernel="rbf", gamma=0.1),
    "linear_ridge": lambda: Ridge(),
    "outliers": lambda: make_pipeline(RobustScaler(), OneClassSVM(nu=0.2)),
}

OF_INTEGERS = ("fixed", "mode", "targets")  # of both signs, which they are fitted on


@pytest.fixture(scope="module")
def compiled() -> dict[str, tuple[Any, Any]]:
    """Every source fitted on float64 or int64 rows, and compiled."""
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, make in SOURCES.items():
            source = make().fit(TRAIN.round().astype(int) - 7 if name in OF_INTEGERS else TRAIN, LABELS)
            found[name] = (source, approxsvm.compile(source))
    return found


def containers(rows: Any) -> Iterator[tuple[str, Any]]:
    """The same rows in whatever holds their dtype."""
    import pandas as pd

    yield "array", rows
    if rows.dtype.itemsize <= 8:
        yield "frame", pd.DataFrame(rows)
        if rows.dtype != np.float16:
            yield "sparse", csr_matrix(rows)
    if rows.dtype.kind in "ib" or rows.dtype == np.float64:
        yield "list", rows.tolist()


def asked(source: Any, rows: Any, method: str) -> Any:
    """What the source says, or None where it does not take such rows."""
    if not hasattr(source, method):
        return None
    try:
        return getattr(source, method)(rows.copy() if hasattr(rows, "copy") else rows)
    except (TypeError, ValueError, IndexError):
        return None


def check(name: str, source: Any, fast: Any, rows: Any) -> bool:
    """Whether rows are answered, as the source does; InputError otherwise."""
    predictor = approxsvm.Predictor(fast.artifact)
    try:
        ours, again = fast.predict(rows), predictor.predict(rows)
    except InputError:
        for other in (fast.predict, predictor.predict, fast.certified, predictor.certified):
            with pytest.raises(InputError, match=r"float64|X\.toarray"):
                other(rows)
        return False
    certified = np.asarray(fast.certified(rows))
    assert np.array_equal(ours, again)
    theirs = asked(source, rows, "predict")
    if theirs is None:
        return True
    if fast.artifact.task == "regression":
        assert (np.abs(ours - theirs) <= fast.error_bound(rows) + 1e-9 * (1.0 + np.abs(theirs))).all(), name
        return True
    assert np.array_equal(ours[certified], theirs[certified]), name
    assert (ours == theirs).mean() > 0.9
    values = asked(source, rows, "decision_function")
    if values is not None and hasattr(fast, "decision_function") and hasattr(fast, "error_bound"):
        off = np.abs(fast.decision_function(rows) - values)
        assert (off <= fast.error_bound(rows) + 1e-10).all(), (name, float(off.max()))
    return True


# What is refused: by source, dtypes in a word each.
F16, F32, SMALL, INTEGER = "float16", "float32", "small", "integer"
REFUSED: dict[str, set[str]] = {
    "svc": set(),
    "standard": {F16},
    "min_max": {F16},
    "max_abs": {F16},
    "robust": {F16},
    "chi2": {F16, SMALL, INTEGER},
    "log": {F16, SMALL},
    "log_alone": {F16, SMALL},
    "binarizer": set(),  # the nearest float16 is below its threshold
    "binarizer_above": set(),
    "bins": set(),
    "bins_scaled": set(),
    "select": set(),
    "normalizer": {F16},
    "pca": set(),
    "one_hot": {"bool"},
    "fixed": {"bool", "unsigned"},
    "mode": {"bool"},
    "targets": {"unsigned"},  # of bool rows it writes True
    "columns": {F16, SMALL},
    "votes": {F16, SMALL, INTEGER},
    "linear": {F16},
    "linear_svc": set(),
    "nystroem": set(),
    "sampler": set(),
    "skewed": {F32},
    "ridge": set(),
}


def kinds_of(dtype: Any) -> set[str]:
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        return {dtype.name}
    return {SMALL if dtype.itemsize <= 2 else INTEGER, {"i": "signed", "u": "unsigned", "b": "bool"}[dtype.kind]}


@pytest.mark.parametrize("name", list(SOURCES))
def test_rows_of_every_dtype_are_answered_as_the_source_does_or_refused(
    name: str, compiled: dict[str, tuple[Any, Any]]
) -> None:
    source, fast = compiled[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for dtype in DTYPES:
            rows = rows_of(dtype)
            if dtype == np.longdouble:
                rows = rows_of(np.float64).astype(dtype)  # numbers of float64
            if dtype == np.float32 and not KEEPS_FLOAT32 and fast.artifact.row_dtypes.rounded:
                continue  # bounds of the core do not know it yet
            for container, given in containers(rows):
                answered = check(f"{name}, {np.dtype(dtype).name}, {container}", source, fast, given)
                if name in REFUSED and container == "array":
                    assert answered == (not kinds_of(dtype) & REFUSED[name]), (name, dtype, container)


def test_a_refusal_names_dtype_step_and_remedy_at_every_door(compiled: dict[str, tuple[Any, Any]]) -> None:
    import pandas as pd
    import pyarrow as pa

    _, fast = compiled["chi2"]
    predictor, rows = approxsvm.Predictor(fast.artifact), rows_of(np.int64)
    table = pa.table({f"f{k}": rows[:, k] for k in range(3)})
    doors: list[Callable[[], Any]] = [
        lambda: fast.predict(rows),
        lambda: fast.decision_function(rows),
        lambda: fast.error_bound(rows),
        lambda: fast.predict_one(rows[0].tolist()),
        lambda: fast.predict(rows.tolist()),
        lambda: fast.predict(pd.DataFrame(rows)),
        lambda: fast.predict(csr_matrix(rows)),
        lambda: predictor.predict(rows[:1]),
        lambda: predictor.predict(csr_matrix(rows)),
        lambda: predictor.predict(pd.DataFrame(rows, columns=["f0", "f1", "f2"])),
        lambda: predictor.predict_arrow(table),
        lambda: approxsvm.verify(fast, compiled["chi2"][0], rows),
        lambda: fast.report(rows),
    ]
    for door in doors:
        with pytest.raises(InputError, match=r"int64.*'additivechi2sampler' \(AdditiveChi2Sampler\).*float64"):
            door()
    assert fast.predict(rows.astype(np.float64)).tolist() == compiled["chi2"][0].predict(rows.astype(float)).tolist()


def test_float32_rows_one_by_one() -> None:
    """The way of a single row looks at its dtype as well."""
    source = make_pipeline(RBFSampler(gamma=0.1, random_state=0), LogisticRegression())
    fast = approxsvm.compile(source.fit(TRAIN.astype(np.float32), LABELS))
    row = rows_of(np.float32)[:1]
    for ask in (fast.predict, fast.predict_one, approxsvm.Predictor(fast.artifact).predict):
        with pytest.raises(InputError, match="float32"):
            ask(row)
        ask(row.astype(np.float64))
    with pytest.raises(InputError, match="float32"):
        fast.predict_one(list(row[0]))


def test_longdouble_that_float64_rounds_is_refused(compiled: dict[str, tuple[Any, Any]]) -> None:
    """Sparse rows and data frames of such numbers were answered, where a step of the source takes them as they are."""
    import pandas as pd

    rows = rows_of(np.longdouble) / np.longdouble(3)
    if rows.dtype.itemsize > 8:
        for given in (rows, csr_array(rows), pd.DataFrame(rows)):
            with pytest.raises(InputError, match="float64 rounds"):
                compiled["standard"][1].predict(given)


def test_frames_are_judged_by_the_columns_that_steps_take() -> None:
    """A ColumnTransformer takes each column in its own dtype, other steps all in a common one."""
    import pandas as pd

    frame = pd.DataFrame(TRAIN, columns=list("abc"))
    source = make_pipeline(
        ColumnTransformer([("log", FunctionTransformer(np.log1p), ["a"]), ("keep", "passthrough", ["b", "c"])]), SVC()
    ).fit(frame, LABELS)
    fast = approxsvm.compile(source)
    fine = frame.round().astype({"b": np.int8, "c": bool})
    assert (fast.predict(fine) == source.predict(fine)).all()
    wrong = frame.round().astype({"a": np.int8})
    with pytest.raises(InputError, match=r"column 'a' is int8.*'log' \(FunctionTransformer\).*X.astype\({'a': np"):
        fast.predict(wrong)
    plain = make_pipeline(StandardScaler(), SVC()).fit(frame, LABELS)
    mixed = frame.astype({"a": np.float16})  # beside float64 that is float64
    assert (approxsvm.compile(plain).predict(mixed) == plain.predict(mixed)).all()


def test_polars_and_arrow_columns() -> None:
    import pandas as pd
    import pyarrow as pa

    frame = pd.DataFrame(TRAIN, columns=list("abc"))
    source = make_pipeline(
        ColumnTransformer([("log", FunctionTransformer(np.log1p), ["a"]), ("keep", "passthrough", ["b", "c"])]), SVC()
    ).fit(frame, LABELS)
    predictor = approxsvm.Predictor(approxsvm.compile(source).artifact)
    small = frame.round().astype({"a": np.uint8})
    with pytest.raises(InputError, match="column 'a' is uint8"):
        predictor.predict_arrow(pa.Table.from_pandas(small))
    polars = pytest.importorskip("polars")
    with pytest.raises(InputError, match="column 'a' is uint8"):
        predictor.predict(polars.from_pandas(small))


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        (
            lambda: (OrdinalEncoder(dtype=np.float32), MinMaxScaler(), Binarizer(threshold=0.7)),
            r"'minmaxscaler' \(MinMaxScaler\) would compute in float32, as step 'ordinalencoder'.*dtype=np.float64",
        ),
        (lambda: (OrdinalEncoder(dtype=int), AdditiveChi2Sampler()), "AdditiveChi2Sampler.*int64, as step 'ordinal"),
        (lambda: (OneHotEncoder(dtype=bool), AdditiveChi2Sampler()), "AdditiveChi2Sampler.*bool"),
        (lambda: (OrdinalEncoder(dtype=np.int8), FunctionTransformer(np.log1p)), "FunctionTransformer.*float16"),
        (lambda: (MissingIndicator(features="all"), FunctionTransformer(np.log1p)), "float16, as step 'missing"),
        (lambda: (OneHotEncoder(dtype=np.float32, sparse_output=False), PCA(2)), "PCA.*float32"),
    ],
)
def test_steps_that_would_compute_in_less_than_float64_are_refused_by_name(steps: Callable[[], Any], said: str) -> None:
    rows = TRAIN.round()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        source = make_pipeline(*steps(), SVC()).fit(rows, LABELS)
        with pytest.raises(UnsupportedModelError, match=said):
            approxsvm.compile(source)


def test_encoders_of_other_dtypes_whose_numbers_nothing_computes_with() -> None:
    rows = TRAIN.round()
    for encoder in (OrdinalEncoder(dtype=np.float32), OneHotEncoder(dtype=int), OneHotEncoder(dtype=bool)):
        source = make_pipeline(encoder, SVC()).fit(rows, LABELS)
        assert (approxsvm.compile(source).predict(rows) == source.predict(rows)).all()
    side_by_side = make_pipeline(
        ColumnTransformer(
            [("a", OneHotEncoder(dtype=np.float32, sparse_output=False), [0]), ("b", StandardScaler(), [1, 2])]
        ),
        StandardScaler(),
        SVC(),
    ).fit(rows, LABELS)  # float32 and float64 side by side are float64
    assert (approxsvm.compile(side_by_side).predict(rows) == side_by_side.predict(rows)).all()


def test_vectorizers_of_other_dtypes() -> None:
    texts = ["a b", "b c", "a c c", "d", "a b b", "c d"] * 5
    y = [0, 1, 1, 0, 0, 1] * 5
    fine = make_pipeline(TfidfVectorizer(dtype=np.float32, token_pattern=r"\w"), SVC()).fit(texts, y)
    assert (approxsvm.compile(fine).predict(texts) == fine.predict(texts)).all()
    for vectorizer, step in (
        (TfidfVectorizer(dtype=np.float32, token_pattern=r"\w"), TruncatedSVD(2)),
        (TfidfVectorizer(dtype=np.float32, token_pattern=r"\w"), MaxAbsScaler()),
        (CountVectorizer(token_pattern=r"\w"), AdditiveChi2Sampler()),
    ):
        source = make_pipeline(vectorizer, step, SVC()).fit(texts, y)
        with pytest.raises(UnsupportedModelError, match=r"would compute in .*, as the vectorizer gives that"):
            approxsvm.compile(source)


@pytest.mark.parametrize("name", list(SOURCES))
def test_sources_fitted_on_float32_rows(name: str) -> None:
    """Their parameters are float32: of float64 rows the answers are the source's, or it is refused by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        source = SOURCES[name]().fit(TRAIN.astype(np.float32), LABELS)
        if name == "power":
            with pytest.raises(UnsupportedModelError, match="float32"):
                approxsvm.compile(source)
            return
        fast = approxsvm.compile(source)
        for rows in (rows_of(np.float64), rows_of(np.float32), rows_of(np.int16), rows_of(np.int64)):
            if rows.dtype == np.float32 and not KEEPS_FLOAT32 and fast.artifact.row_dtypes.rounded:
                continue
            for container, given in containers(rows):
                check(f"{name}, {rows.dtype.name}, {container}", source, fast, given)


def test_float32_parameters_that_compute_in_float32_with_float32_rows() -> None:
    narrow = TRAIN.astype(np.float32)
    for source in (
        KernelRidge(kernel="rbf", gamma=0.1),
        make_pipeline(Nystroem(n_components=20, random_state=0), LogisticRegression()),
        make_pipeline(RBFSampler(gamma=0.1, random_state=0), LogisticRegression()),
    ):
        fast = approxsvm.compile(clone(source).fit(narrow, LABELS))
        with pytest.raises(InputError, match="float32"):
            fast.predict(narrow)


def test_imputers_put_in_numbers_of_the_dtype_that_they_were_fitted_on() -> None:
    narrow = np.where(TRAIN > 8.0, np.nan, TRAIN).astype(np.float32)
    source = make_pipeline(SimpleImputer(), SVR(C=100, gamma=2.0)).fit(narrow, LABELS)
    fast, rows = approxsvm.compile(source, mode="exact"), np.full((2, 3), np.nan)
    assert (np.abs(fast.predict(rows) - source.predict(rows)) <= fast.error_bound(rows) + 1e-12).all()


def test_powers_of_float32() -> None:
    """2 - lambda is computed in float32, whatever the rows are."""
    rows = np.exp(np.random.default_rng(1).normal(size=(200, 2))) - 3.0
    source = make_pipeline(PowerTransformer(), LogisticRegression()).fit(rows.astype(np.float32), rows[:, 0] > -2)
    with pytest.raises(UnsupportedModelError, match=r"'powertransformer'.*float32 rows, and computes 2 - lambda"):
        approxsvm.compile(source)


def test_an_artifact_keeps_what_dtypes_do(compiled: dict[str, tuple[Any, Any]], tmp_path: Any) -> None:
    for name in ("standard", "chi2", "votes", "columns"):
        _, fast = compiled[name]
        path = tmp_path / f"{name}.asvm"
        fast.save(path)
        loaded = approxsvm.load(path)
        assert loaded.artifact.row_dtypes == fast.artifact.row_dtypes
        assert all(member.artifact.row_dtypes for member in loaded.members)
        with pytest.raises(InputError, match="float16"):
            loaded.predict(rows_of(np.float16))
    assert not compiled["svc"][1].artifact.section("dtypes")


def test_verify_asks_with_the_rows_as_they_are(compiled: dict[str, tuple[Any, Any]], monkeypatch: Any) -> None:
    """Without the check of dtypes it finds what the source does otherwise."""
    source, fast = compiled["chi2"]
    monkeypatch.setattr(Artifact, "row_dtypes", SAME)
    unaware = estimator_for(Artifact(fast.artifact.data))
    assert approxsvm.verify(unaware, source, rows_of(np.float64)).kept
    assert approxsvm.verify(unaware, source, rows_of(np.int64)).label_differences > 0


def test_every_class_is_followed() -> None:
    """A class that is read has a rule, holds others that get the same rows, or computes in float64."""
    # What never gets rows, and what a reader takes out before.
    apart = {
        "calibrator",
        "encoder of labels",
        "kernel of Gaussian processes",
        "pipeline",
        "selector",
        "unsupported feature map",
    }
    apart |= {"vectorizer", "_BinaryGaussianProcessClassifierLaplace", "ColumnTransformer", "FeatureUnion"}
    for known in KNOWN:
        if not {known.role, known.name} & apart:
            found = [known.name in group for group in (dtypes._RULES, dtypes._INSIDE, dtypes._IN_FLOAT64)]
            assert sum(found) == 1, known.name
    assert set(dtypes._INSIDE) | set(dtypes._RULES) | dtypes._IN_FLOAT64 <= {known.name for known in KNOWN}
    assert {known.name for known in KNOWN if known.role == "search"} <= set(dtypes._INSIDE)
    assert set(dtypes._OF_ARRAYS) <= set(dtypes._INSIDE)


@pytest.mark.parametrize("unknown", [object(), (SVC(),), CountVectorizer(), PolynomialCountSketch()])
def test_what_nothing_is_known_of_is_not_passed_in_silence(unknown: Any) -> None:
    with pytest.raises(UnsupportedModelError, match=f"{type(unknown).__name__} may compute in any dtype"):
        dtypes.row_dtypes(unknown, 3)


def test_members_in_a_tuple() -> None:
    source = OneVsOneClassifier(make_pipeline(AdditiveChi2Sampler(), SVC())).fit(TRAIN, TRAIN.sum(axis=1) // 5 % 3)
    assert isinstance(source.estimators_, tuple)
    with pytest.raises(InputError, match=r"rows are int64.*AdditiveChi2Sampler"):
        approxsvm.compile(source).predict(rows_of(np.int64))


@pytest.mark.parametrize(("small", "wide"), [(np.int8, np.float32), (np.int16, np.float16), (np.uint8, np.float32)])
def test_columns_of_a_frame_that_are_float32_together(small: Any, wide: Any) -> None:
    """Also where the narrowest of them, alone, would be taken as float64."""
    pytest.importorskip("pandas")
    front = ColumnTransformer([("a", OrdinalEncoder(dtype=small), [0]), ("b", OrdinalEncoder(dtype=wide), [1])])
    front.set_output(transform="pandas")
    source = make_pipeline(front, MinMaxScaler(), Binarizer(threshold=0.7), SVC()).fit(TRAIN.round(), LABELS)
    with pytest.raises(UnsupportedModelError, match=r"MinMaxScaler\) would compute in float\d\d, as step 'b'"):
        approxsvm.compile(source)


def test_float16_beside_integers_of_16_bits_is_float32() -> None:
    import pandas as pd

    frame = pd.DataFrame(TRAIN.round(), columns=list("abc"))
    keep = ColumnTransformer([("keep", "passthrough", ["a", "b", "c"])])
    source = make_pipeline(keep, FastICA(2, random_state=0), Normalizer(), SVC(C=10)).fit(frame, LABELS)
    fast = approxsvm.compile(source)
    for rows in (frame.astype({"a": np.int16, "b": np.float16, "c": np.float16}), frame.astype(np.float32)):
        off = np.abs(fast.decision_function(rows) - source.decision_function(rows))
        assert off.max() > 1e-10
        assert (off <= fast.error_bound(rows)).all()
    encoded = ColumnTransformer([("keep", "passthrough", ["a"]), ("b", OrdinalEncoder(dtype=np.float16), ["b"])])
    fast = approxsvm.compile(make_pipeline(encoded, FastICA(2, random_state=0), SVC()).fit(frame, LABELS))
    with pytest.raises(InputError, match=r"column 'a' is int16.*FastICA"):
        fast.predict(frame.astype({"a": np.int16}))


def test_an_estimator_that_makes_an_array_of_a_frame_first() -> None:
    """What is inside of it takes columns in their common dtype."""
    import pandas as pd

    columns = ColumnTransformer([("scale", StandardScaler(), [0]), ("keep", "passthrough", [1, 2])])
    some = np.where(np.arange(len(LABELS)) % 7, LABELS, -1)
    source = SelfTrainingClassifier(make_pipeline(columns, LogisticRegression())).fit(TRAIN, some)
    fast = approxsvm.compile(source)
    rows = pd.DataFrame(TRAIN.round()).astype({0: np.int8, 1: np.float32, 2: np.float32})
    off = np.abs(fast.decision_function(rows) - source.decision_function(rows.to_numpy()))
    assert off.max() > 1e-12
    assert (off <= fast.error_bound(rows)).all()


def test_columns_behind_a_selector_of_frames() -> None:
    import pandas as pd

    frame = pd.DataFrame(TRAIN, columns=list("abc"))
    select = SelectKBest(lambda X, y: np.arange(3.0), k=2).set_output(transform="pandas")
    columns = ColumnTransformer([("scale", StandardScaler(), [0]), ("keep", "passthrough", [1])])
    fast = approxsvm.compile(make_pipeline(select, columns, SVC()).fit(frame, LABELS))
    with pytest.raises(InputError, match="column 'b' is float16"):
        fast.predict(frame.astype({"b": np.float16}))
    fast.predict(frame.astype({"a": np.float16}))


def test_constants_of_floats_refuse_integers() -> None:
    source = make_pipeline(SimpleImputer(strategy="constant"), SVC()).fit(TRAIN, LABELS)
    fast = approxsvm.compile(source)
    for dtype in (np.int8, np.int32):
        with pytest.raises(ValueError, match="filling value"):
            source.predict(rows_of(dtype))
        with pytest.raises(InputError, match=f"rows are {np.dtype(dtype).name}.*SimpleImputer"):
            fast.predict(rows_of(dtype))
    whole = make_pipeline(SimpleImputer(strategy="constant", missing_values=0), SVC()).fit(
        rows_of(np.int64), LABELS[:60]
    )
    assert (approxsvm.compile(whole).predict(rows_of(np.int32)) == whole.predict(rows_of(np.int32))).all()


@pytest.mark.parametrize("member", [LinearSVC(), make_pipeline(RBFSampler(random_state=0), LogisticRegression())])
def test_longdouble_values_are_not_among_maxima_of_float64(member: Any) -> None:
    """OneVsRestClassifier gives the first class where no value equals the maximum, which it keeps in float64."""
    source = OneVsRestClassifier(member).fit(TRAIN, np.digitize(TRAIN[:, 0], [3.0, 6.0]))
    rows = TRAIN.astype(np.longdouble)
    assert (source.predict(rows) != source.predict(TRAIN)).any()
    with pytest.raises(InputError, match=r"rows are \w+, which OneVsRestClassifier"):
        approxsvm.compile(source).predict(rows)


@pytest.mark.parametrize("wrapper", [MultiOutputClassifier, OneVsRestClassifier])
def test_probabilities_of_several_targets_are_bounded(wrapper: Any) -> None:
    targets = np.column_stack([LABELS, TRAIN[:, 0] > 4.0]).astype(int)
    source = wrapper(make_pipeline(StandardScaler(), LogisticRegression())).fit(TRAIN, targets)
    fast, rows = approxsvm.compile(source), TRAIN.astype(np.float32)
    off = np.abs(np.array(fast.predict_proba(rows)) - np.array(source.predict_proba(rows)))
    bounds = np.array(fast.probability_bound(rows))
    assert off.shape == bounds.shape
    assert 1e-12 < off.max() <= bounds.max() < 1e-4
    assert (off <= bounds).all()


def test_sparse_rows_that_a_scaler_of_dense_ones_treats_otherwise() -> None:
    """RobustScaler leaves sparse rows uncentered, and scalers multiply them by 1 / scale, in the dtype of the scale."""
    robust = make_pipeline(RobustScaler(), PCA(2), SVC()).fit(TRAIN, LABELS)
    fast = approxsvm.compile(robust)
    with pytest.raises(InputError, match=r"sparse.*RobustScaler.*X\.toarray\(\)"):
        fast.predict(csr_matrix(TRAIN))
    assert (approxsvm.Predictor(fast.artifact).predict(TRAIN) == robust.predict(TRAIN)).all()
    narrow = make_pipeline(MaxAbsScaler(), LinearSVC()).fit(TRAIN.astype(np.float32), LABELS)
    with pytest.raises(InputError, match=r"sparse.*MaxAbsScaler.*X\.toarray\(\)"):
        approxsvm.Predictor(approxsvm.compile(narrow).artifact).predict(csr_matrix(TRAIN))


def test_float32_of_the_other_byte_order_is_float32() -> None:
    source = make_pipeline(RBFSampler(gamma=0.1, random_state=0), LogisticRegression())
    fast = approxsvm.compile(source.fit(TRAIN.astype(np.float32), LABELS))
    with pytest.raises(InputError, match="float32"):
        fast.predict(TRAIN.astype(np.dtype(np.float32).newbyteorder("S")))


def test_steps_that_look_for_equal_numbers_behind_sums_are_refused() -> None:
    """Whether a sum equals one of the training rows depends on the order in which it is added up."""
    source = make_pipeline(PCA(2), OneHotEncoder(handle_unknown="ignore"), SVC()).fit(TRAIN.round(), LABELS)
    with pytest.raises(UnsupportedModelError, match=r"'onehotencoder'.*equal numbers.*bit for bit"):
        approxsvm.compile(source)


def test_quantiles_of_sparse_rows_leave_zeros_as_they_are() -> None:
    rows = TRAIN.round()
    for encoder, said in ((OneHotEncoder(), "sparse"), (OneHotEncoder(sparse_output=False), "")):
        quantiles = QuantileTransformer(n_quantiles=20, output_distribution="normal")
        source = make_pipeline(encoder, quantiles, SVC()).fit(rows, LABELS)
        if said:
            with pytest.raises(UnsupportedModelError, match=r"'quantiletransformer'.*zeros of sparse rows"):
                approxsvm.compile(source)
        else:
            assert (approxsvm.compile(source).predict(rows) == source.predict(rows)).all()


def test_columns_of_another_dtype_that_no_step_computes_with() -> None:
    import pandas as pd

    frame = pd.DataFrame(TRAIN, columns=list("abc"))
    parts = [("scale", StandardScaler(), ["a"]), ("keep", "passthrough", ["b"])]
    source = make_pipeline(ColumnTransformer(parts), SVC()).fit(frame, LABELS)
    fast, rows = approxsvm.compile(source), frame.round().astype({"a": np.int8, "b": np.float16, "c": np.float16})
    for predictor in (fast, approxsvm.Predictor(fast.artifact)):
        assert (predictor.predict(rows) == source.predict(rows)).all()
        with pytest.raises(InputError, match="column 'a' is float16"):
            predictor.predict(rows.astype(np.float16))


@pytest.mark.parametrize(
    "content",
    [
        b"[]",
        b"{}",
        b"{" * 100_000,
        b'{"refused": {"float8": {"step": "a", "columns": null}}, "rounded": null, "by_column": false}',
        b'{"refused": {"float32": {"step": 1, "columns": null}}, "rounded": null, "by_column": false}',
    ],
)
def test_what_is_no_section_of_dtypes(content: bytes) -> None:
    with pytest.raises(ArtifactError, match="section dtypes is none of"):
        RowDtypes.read(content)
