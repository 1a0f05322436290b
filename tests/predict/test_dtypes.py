"""Rows are refused if the source computes differently in their dtype; messages name the dtype, step and remedy."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array, csr_matrix
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.decomposition import PCA, FastICA, TruncatedSVD
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.feature_selection import SelectKBest
from sklearn.frozen import FrozenEstimator
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.kernel_approximation import (
    Nystroem,
    PolynomialCountSketch,
    RBFSampler,
)
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)
from sklearn.semi_supervised import SelfTrainingClassifier
from sklearn.svm import SVC, SVR, LinearSVC

import approxsvm
from approxsvm.artifact.views import Artifact
from approxsvm.errors import ArtifactError, InputError, UnsupportedModelError
from approxsvm.estimators import estimator_for
from approxsvm.frames.dtypes import SAME, RowDtypes
from approxsvm.frontends.sklearn import dtypes
from approxsvm.frontends.sklearn.known_types import KNOWN


def rows_of(dtype: Any, n: int = 60) -> Any:
    """Return positive rows (integers for integer dtypes) of the same scale in every dtype."""
    rows = np.random.default_rng(3).uniform(0.6, 9.4, (n, 3))
    return (rows if np.dtype(dtype).kind == "f" else rows.round()).astype(dtype)


TRAIN = rows_of(np.float64, 120)
WHOLE, NARROW, FRAME = TRAIN.round(), TRAIN.astype(np.float32), pd.DataFrame(TRAIN, columns=list("abc"))
NORMAL = QuantileTransformer(n_quantiles=20, output_distribution="normal")
LABELS = (np.abs(TRAIN - 5.0).sum(axis=1) + np.random.default_rng(0).normal(0, 1, 120) > 6.5).astype(int)


def compiled(*steps: Any, X: Any = TRAIN) -> Any:
    """Return a compiled pipeline, ending with an SVC by default."""
    machine = [] if hasattr(steps[-1], "predict") else [SVC()]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return approxsvm.compile(make_pipeline(*steps, *machine).fit(X, LABELS))


NARROWING = OrdinalEncoder(dtype=np.float32)


def test_a_refusal_names_dtype_step_and_remedy_at_every_interface(tmp_path: Any) -> None:
    pa = pytest.importorskip("pyarrow")
    source = make_pipeline(FunctionTransformer(np.log1p), SVC()).fit(TRAIN, LABELS)
    fast, rows = approxsvm.compile(source), rows_of(np.int8)
    fast.save(tmp_path / "model.asvm")
    predictor = approxsvm.Predictor(tmp_path / "model.asvm")
    interfaces: list[Callable[[], Any]] = [
        lambda: fast.predict(rows),
        lambda: fast.decision_function(rows),
        lambda: fast.predict_one(rows[0]),
        lambda: fast.predict(pd.DataFrame(rows)),
        lambda: fast.predict(csr_matrix(rows)),
        lambda: predictor.predict(rows[:1]),
        lambda: predictor.predict(csr_matrix(rows)),
        lambda: predictor.predict_arrow(pa.table({f"f{k}": rows[:, k] for k in range(3)})),
        lambda: approxsvm.verify(fast, source, rows),
        lambda: fast.report(rows),
    ]
    for ask in interfaces:
        with pytest.raises(InputError, match=r"int8.*'functiontransformer' \(FunctionTransformer\).*float64"):
            ask()
    assert approxsvm.load(tmp_path / "model.asvm").artifact.row_dtypes == fast.artifact.row_dtypes
    assert not compiled(SVC()).artifact.section("dtypes")


def test_float32_rows_of_parameters_of_float32() -> None:
    """Check batches, single rows, and the other byte order."""
    for steps in (
        (RBFSampler(gamma=0.1, random_state=0), LogisticRegression()),
        (Nystroem(n_components=20, random_state=0), LogisticRegression()),
        (KernelRidge(kernel="rbf", gamma=0.1),),
    ):
        fast = compiled(*steps, X=NARROW)
        for rows in (NARROW, NARROW[:1], NARROW.astype(NARROW.dtype.newbyteorder("S"))):
            for ask in (fast.predict, approxsvm.Predictor(fast.artifact).predict):
                with pytest.raises(InputError, match="float32"):
                    ask(rows)
        for row in (NARROW[:1], list(NARROW[0])):
            with pytest.raises(InputError, match="float32"):
                fast.predict_one(row)


def test_longdouble_that_float64_rounds_is_refused() -> None:
    """Sparse rows and data frames of such numbers were once answered, although the source uses them unrounded."""
    rows = rows_of(np.longdouble) / np.longdouble(3)
    if rows.dtype.itemsize > 8:
        fast = compiled(StandardScaler())
        for given in (rows, csr_array(rows), pd.DataFrame(rows)):
            with pytest.raises(InputError, match="float64 rounds"):
                fast.predict(given)


def test_frames_are_judged_by_the_columns_that_steps_take() -> None:
    """A ColumnTransformer reads each column in its own dtype; other steps convert all columns to a common one."""
    pa, polars = pytest.importorskip("pyarrow"), pytest.importorskip("polars")
    columns = ColumnTransformer([("log", FunctionTransformer(np.log1p), ["a"]), ("keep", "passthrough", ["b", "c"])])
    source = make_pipeline(columns, SVC()).fit(FRAME, LABELS)
    fast = approxsvm.compile(source)
    predictor = approxsvm.Predictor(fast.artifact)
    fine, wrong = FRAME.round().astype({"b": np.int8, "c": np.float16}), FRAME.round().astype({"a": np.uint8})
    assert (fast.predict(fine) == source.predict(fine)).all()
    with pytest.raises(InputError, match=r"column 'a' is uint8.*'log' \(FunctionTransformer\).*X.astype\({'a': np"):
        fast.predict(wrong)
    for ask, rows in (
        (predictor.predict_arrow, pa.Table.from_pandas(wrong)),
        (fast.predict, pa.Table.from_pandas(wrong)),
        (fast.predict, wrong[["b", "c", "a"]]),
        (predictor.predict, polars.from_pandas(wrong)),
    ):
        with pytest.raises(InputError, match="column 'a' is uint8"):
            ask(rows)
    mixed = FRAME.astype({"a": np.float16})  # next to float64 columns, it is converted to float64
    compiled(StandardScaler(), X=FRAME).predict(mixed)
    with pytest.raises(InputError, match="column 'a' is float16"):
        compiled(FunctionTransformer(np.log1p), X=FRAME).predict(mixed)
    with pytest.raises(
        InputError, match=r"row 0: some columns are float32, .* and column 1 holds .*, which float32 can"
    ):
        compiled(make_column_transformer((MinMaxScaler(), ["a", "b"])), X=FRAME).predict(
            FRAME.astype({"a": np.float32})
        )
    select = SelectKBest(lambda X, y: np.arange(3.0), k=2).set_output(transform="pandas")
    behind = compiled(select, ColumnTransformer([("a", StandardScaler(), [0]), ("b", "passthrough", [1])]), X=FRAME)
    behind.predict(mixed)
    with pytest.raises(InputError, match="column 'b' is float16"):
        behind.predict(FRAME.astype({"b": np.float16}))


def encoded(small: Any, wide: Any) -> Any:
    """Return a step that makes frame columns of two dtypes; by itself, the narrower one would be read as float64."""
    columns = [("a", OrdinalEncoder(dtype=small), [0]), ("b", OrdinalEncoder(dtype=wide), [1])]
    return ColumnTransformer(columns).set_output(transform="pandas")


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        (
            (OrdinalEncoder(dtype=np.float32), MinMaxScaler(), Binarizer(threshold=0.7)),
            r"'minmaxscaler' \(MinMaxScaler\) would compute in float32, which step 'ordinalencoder'.*dtype=np.float64",
        ),
        ((FrozenEstimator(NARROWING.fit(WHOLE)), MinMaxScaler()), "MinMaxScaler.*float32"),
        ((FeatureUnion([("a", NARROWING), ("b", "drop")]), MinMaxScaler()), "MinMaxScaler.*float32"),
        ((FeatureUnion([("a", NARROWING)], transformer_weights={"a": 0.1}),), "FeatureUnion.*float32"),
        ((OrdinalEncoder(dtype=np.int8), FunctionTransformer(np.log1p)), "FunctionTransformer.*float16"),
        ((MissingIndicator(features="all"), FunctionTransformer(np.log1p)), "float16, which step 'missing"),
        ((OneHotEncoder(dtype=np.float32, sparse_output=False), PCA(2)), "PCA.*float32"),
        *(
            ((encoded(*pair), MinMaxScaler()), r"MinMaxScaler\) would compute in float\d\d, which step 'b'")
            for pair in ((np.int8, np.float32), (np.int16, np.float16), (np.uint8, np.float32))
        ),
        # The order of summation decides whether a sum equals a training row's sum.
        ((PCA(2), OneHotEncoder(handle_unknown="ignore")), r"'onehotencoder'.*for equality.*bit for bit"),
        ((OneHotEncoder(), NORMAL), r"'quantiletransformer'.*zeros of sparse rows"),
    ],
)
def test_steps_that_are_refused_by_name(steps: Any, message: str) -> None:
    with pytest.raises(UnsupportedModelError, match=message):
        compiled(*steps, X=WHOLE)


def test_steps_of_float32() -> None:
    """A power transformer computes 2 - lambda in its parameters' dtype, whatever the rows' dtype."""
    with pytest.raises(UnsupportedModelError, match=r"'powertransformer'.*float32 rows, and computes 2 - lambda"):
        compiled(PowerTransformer(), X=NARROW)
    texts = ["a b", "b c", "a c c", "d", "a b b", "c d"] * 20
    words = TfidfVectorizer(dtype=np.float32, token_pattern=r"\w")
    for steps in (
        (words, TruncatedSVD(2)),
        (words, MaxAbsScaler()),
    ):
        with pytest.raises(UnsupportedModelError, match=r"would compute in .*, which the vectorizer returns"):
            compiled(*steps, X=texts)


def test_members_in_a_tuple() -> None:
    source = OneVsOneClassifier(make_pipeline(FunctionTransformer(np.log1p), SVC())).fit(
        TRAIN, TRAIN.sum(axis=1) // 5 % 3
    )
    assert isinstance(source.estimators_, tuple)
    with pytest.raises(InputError, match=r"rows are int8.*FunctionTransformer"):
        approxsvm.compile(source).predict(rows_of(np.int8))


def test_verify_asks_with_the_rows_as_they_are(monkeypatch: Any) -> None:
    """Without the dtype check, `verify` finds that the source's labels differ."""
    source = make_pipeline(FunctionTransformer(np.log1p), SVC(C=10, gamma=50)).fit(TRAIN, LABELS)
    fast = approxsvm.compile(source)
    monkeypatch.setattr(Artifact, "row_dtypes", SAME)
    unaware = estimator_for(Artifact(fast.artifact.data))
    rows = np.indices((10, 10, 10), np.int8).reshape(3, -1).T
    assert approxsvm.verify(unaware, source, rows.astype(np.float64)).kept
    assert approxsvm.verify(unaware, source, rows).label_differences > 0


def test_verify_lets_float32_rows_differ_up_to_their_bounds() -> None:
    source = make_pipeline(MinMaxScaler(), SVR()).fit(TRAIN, TRAIN[:, 0])
    fast = approxsvm.compile(source, mode="exact")
    found = approxsvm.verify(fast, source, NARROW)
    assert found.error_quantiles["100%"] > found.tolerance  # float64 rows satisfy it
    assert found.kept
    assert approxsvm.verify(fast, source, TRAIN).kept


def test_imputers_put_in_numbers_of_the_dtype_that_they_were_fitted_on() -> None:
    narrow = np.where(TRAIN > 8.0, np.nan, TRAIN).astype(np.float32)
    source = make_pipeline(SimpleImputer(), SVR(C=100, gamma=2.0)).fit(narrow, LABELS)
    fast, rows = approxsvm.compile(source, mode="exact"), np.full((2, 3), np.nan)
    assert (np.abs(fast.predict(rows) - source.predict(rows)) <= fast.error_bound(rows) + 1e-12).all()


def test_every_class_is_followed() -> None:
    """Every supported class has a rule, passes the same rows to inner estimators, or computes in float64."""
    # Classes that never receive rows, or that readers remove first.
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
            held = [known.name in group for group in (dtypes.INSIDE, dtypes._IN_FLOAT64)]
            found = [dtypes.rule_of(known) is not None, *held]
            assert sum(found) == 1, known.name
    assert set(dtypes.INSIDE) | set(dtypes._RULES) | dtypes._IN_FLOAT64 <= {known.name for known in KNOWN}
    assert {known.name for known in KNOWN if known.role == "search"} <= set(dtypes.INSIDE)
    assert set(dtypes._CONVERTING_FRAMES) <= set(dtypes.INSIDE)


@pytest.mark.parametrize("unknown", [object(), (SVC(),), CountVectorizer(), PolynomialCountSketch()])
def test_what_nothing_is_known_of_is_not_passed_in_silence(unknown: Any) -> None:
    with pytest.raises(UnsupportedModelError, match=f"{type(unknown).__name__} may compute in any dtype"):
        dtypes.row_dtypes(unknown, 3)


def test_float16_beside_integers_of_16_bits_is_float32() -> None:
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
    """Inner estimators then get the columns in their common dtype."""
    columns = ColumnTransformer([("scale", StandardScaler(), [0]), ("keep", "passthrough", [1, 2])])
    some = np.where(np.arange(len(LABELS)) % 7, LABELS, -1)
    source = SelfTrainingClassifier(make_pipeline(columns, LogisticRegression())).fit(TRAIN, some)
    fast = approxsvm.compile(source)
    rows = pd.DataFrame(TRAIN.round()).astype({0: np.int8, 1: np.float32, 2: np.float32})
    off = np.abs(fast.decision_function(rows) - source.decision_function(rows.to_numpy()))
    assert off.max() > 1e-12
    assert (off <= fast.error_bound(rows)).all()


@pytest.mark.parametrize("member", [LinearSVC(), make_pipeline(RBFSampler(random_state=0), LogisticRegression())])
def test_longdouble_values_are_not_among_maxima_of_float64(member: Any) -> None:
    """OneVsRestClassifier stores the maximum in float64, and predicts the first class if no value equals it."""
    source = OneVsRestClassifier(member).fit(TRAIN, np.digitize(TRAIN[:, 0], [3.0, 6.0]))
    rows = TRAIN.astype(np.longdouble)
    for answered, labels in ((member, LABELS), (make_pipeline(StandardScaler(), SVC()), source.predict(TRAIN))):
        other = OneVsRestClassifier(answered).fit(TRAIN, labels)
        assert (approxsvm.compile(other).predict(rows) == other.predict(rows)).all()
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
    """RobustScaler does not center sparse rows, and scalers multiply them by 1 / scale, in the scale's dtype."""
    robust = make_pipeline(RobustScaler(), PCA(2), SVC()).fit(TRAIN, LABELS)
    fast = approxsvm.compile(robust)
    with pytest.raises(InputError, match=r"sparse.*RobustScaler.*X\.toarray\(\)"):
        fast.predict(csr_matrix(TRAIN))
    assert (approxsvm.Predictor(fast.artifact).predict(TRAIN) == robust.predict(TRAIN)).all()
    narrow = make_pipeline(MaxAbsScaler(), LinearSVC()).fit(TRAIN.astype(np.float32), LABELS)
    assert (approxsvm.compile(narrow).predict(csr_matrix(NARROW)) == narrow.predict(csr_matrix(NARROW))).all()
    with pytest.raises(InputError, match=r"sparse.*MaxAbsScaler.*X\.toarray\(\)"):
        approxsvm.Predictor(approxsvm.compile(narrow).artifact).predict(csr_matrix(TRAIN))


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
    with pytest.raises(ArtifactError, match="section dtypes does not follow"):
        RowDtypes.read(content)


@pytest.mark.skipif(np.finfo(np.longdouble).bits <= 64, reason="longdouble is float64 here")
def test_longdouble_objects_that_float64_rounds_are_not_looked_up():
    X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.0, 0.0]] * 4)
    source = make_pipeline(OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1), SVC()).fit(X, X[:, 0])
    fast, tiny = approxsvm.compile(source, X), np.longdouble("1e-4000")
    for rows in ([[np.longdouble(1), tiny]], [(1.0, tiny)], np.array([[1.0, tiny]], dtype=object)):
        with pytest.raises(InputError, match="column 1"):
            fast.predict(rows)
    assert fast.predict([[np.longdouble(1), np.longdouble(0)]]) == source.predict(X[:1])
