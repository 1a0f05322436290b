"""The function `compile`, which runs the compiler's steps: read, plan, expand, certify, build."""

from __future__ import annotations

import inspect
import os
import time
import warnings
from contextlib import nullcontext
from dataclasses import asdict, replace
from typing import Any, Final, Literal

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from approxsvm.analysis.source_answers import doubt_of_sample
from approxsvm.artifact import writer
from approxsvm.errors import ArtifactError, InputError, ModelFormatError, SourceAccuracyWarning, UnsupportedModelError
from approxsvm.estimators import CompiledModel, estimator_for
from approxsvm.expansion.taylor import CenterChoice
from approxsvm.frames.columns import known_rows, real_rows, rows_by_column
from approxsvm.frames.raw_columns import RawColumns
from approxsvm.frames.rows import check_finite, check_sparse, zero_unused
from approxsvm.frames.texts import are_texts
from approxsvm.frontends import read_any
from approxsvm.frontends.sklearn.vectorizers import split
from approxsvm.ir.compilation import Compilation
from approxsvm.ir.ensembles.ensemble import Ensemble
from approxsvm.ir.outputs import ClassProbability
from approxsvm.ir.plan import Plan
from approxsvm.ir.schema import MAX_LABELS, Mode
from approxsvm.ir.single_model import SingleModel
from approxsvm.planning import features, gaussian, polynomial
from approxsvm.planning.common_kernels import replayed, shared
from approxsvm.planning.racing import seconds
from approxsvm.planning.request import Built, Effort, Limits, Progress, Request, Stopwatch
from approxsvm.system.error_state import in_own_error_state
from approxsvm.system.options import one_of
from approxsvm.system.progress_bar import compiling
from approxsvm.system.threads import n_threads

# Functions that lower a model to an artifact, one per kind of model.
_LOWERINGS: Final = gaussian.LOWERINGS | polynomial.LOWERINGS | features.LOWERINGS


@in_own_error_state
def compile(
    model: Any,
    X: Any = None,
    *,
    n_features: int | None = None,
    mode: Mode = "certified",
    degree: int | Literal["auto"] = "auto",
    n_centers: int | Literal["auto"] = "auto",
    center: CenterChoice = "mean",
    tolerance: float | None = None,
    labels: Literal["source", "probability"] = "source",
    target_error: float | None = None,
    max_bytes: int | None = None,
    effort: Effort = "normal",
    random_state: int = 0,
    rows_per_call: int | None = None,
    rows_expected: int | None = None,
    plan: Plan | None = None,
    measure: bool = False,
    n_jobs: int | None = None,
    verbose: bool | None = None,
    progress: Progress | None = None,
) -> CompiledModel:
    """Compile a trained kernel model into a small, fast predictor.

    Models with a linear kernel or a polynomial kernel of degree 1 to 6 need no expansion. Only the options `mode`,
    `tolerance`, `max_bytes` and `n_jobs` apply to them, and all their values are exact up to float64 rounding. A kernel
    of degree 1 or 2 is expanded to a linear or quadratic form if this form is cheaper to evaluate than the support
    vectors.

    A pipeline of `TaylorFeatures` and a linear model is already an expansion about the origin. It compiles only in
    "approximate" mode, and its bounds include only float32 rounding: `certified` shows which labels are proven to equal
    the pipeline's labels in real arithmetic.

    A pipeline of scikit-learn's `RBFSampler` or `SkewedChi2Sampler` and a linear model is evaluated without an
    expansion, in float32 if that suffices to determine the label or to meet the tolerance. Without a tolerance, values
    are exact up to float64 rounding.

    Parameters
    ----------
    model : fitted estimator, KernelModel, Ensemble, or path
        scikit-learn's SVC, NuSVC, SVR, NuSVR, OneClassSVM, KernelRidge or GaussianProcessRegressor, a pipeline that
        ends in one of these, a CalibratedClassifierCV around one of these, and more (see `read_any`); or the path to a
        LIBSVM model file. Unpickling can run arbitrary code: load a pickle yourself or with
        ``read_model(path, trust=True)``.
    X : array-like or sparse matrix of shape (n_rows, n_features), optional
        Sample rows, without labels, that resemble the rows to predict; for example, the training rows. The compiler
        uses them to place centers and test plans. Default: the support vectors, which lead to slower plans.
    n_features : int, optional
        Number of columns in the rows to predict. A LIBSVM model file does not store this number, and the last features
        may be zero in all support vectors. Default: taken from `X`, or else from the support vectors.
    mode : {"certified", "approximate", "exact"}
        "certified": each label is either proven equal to the exact model's label or computed by the exact model; the
        artifact includes the support vectors. "approximate": only the expansion, with bounds but without support
        vectors; labels near the decision boundary may differ from the exact model's. "exact": only the exact model, on
        a faster engine.
    degree : "auto" or int from 1 to 6
        Degree of the expansions (Cotter et al. 2011). "auto" tries several degrees and chooses the fastest.
    n_centers : "auto" or int
        Number of expansion points; each row uses a nearby one. "auto" tries several numbers of points and chooses the
        fastest plan, or the exact model if no expansion is faster; in "approximate" mode, there is one point unless
        `target_error` requires more.
    center : {"mean", "origin"}
        The expansion point if there is only one. An expansion about the mean of the support vectors is more accurate;
        the expansion about the origin is exactly the one in Claesen et al. 2014.
    tolerance : float, optional
        In "certified" and "exact" modes, every decision value, or value of a regressor, differs from the exact value by
        at most `tolerance`, including rounding. A regressor's tolerance is in the target's units. Default: none for
        classifiers, because only labels matter; for regressors, a thousandth of the range of the model's values at its
        support vectors ("exact": float64 accuracy).
    labels : {"source", "probability"}
        "source": the labels returned by the source's ``predict``. "probability": the class with the largest probability
        in the source's ``predict_proba``, which for some rows differs from the label predicted by
        SVC(probability=True). A model with "probability" labels has no decision function.
    target_error : float, optional
        In "approximate" mode, choose the smallest expansion whose labels differ from the exact model's on at most this
        fraction of held-out rows.
    max_bytes : int, optional
        Maximum size of the artifact, in bytes.
    effort : {"low", "normal", "high"}
        Limit on compile time: up to 64, 256 or 4,096 centers are tried. A trial may take a fifth of the normal work
        with "low", and ten times the normal work with "high".
    random_state : int
        Seed for the choice of rows and centers. On a given target, the same input produces a bit-identical artifact.
    rows_per_call : int, optional
        Number of rows per call to optimize for: 1 for programs that predict one row at a time. Default: large batches,
        but no plan is chosen that takes more than three times as long for a single row as another plan.
    rows_expected : int, optional
        Total number of rows that the model will predict. A plan is tried only if it could save more time on them than
        the trial takes; with more rows, the compiler searches longer for a faster plan. Default: a million.
    plan : Plan, optional
        Plan to build without a search, such as the `plan` of a previously compiled model. For the same model, rows and
        other options, the artifact is identical to the earlier one. Bounds are always recomputed, so a plan may be
        reused for a retrained model. With a plan, options that guide the search are not allowed.
    measure : bool
        If True, time up to four plans on this machine: the exact engine, if allowed, and the plans whose estimated cost
        is at most 1.5 times the smallest. They predict the same rows in turn, and the fastest plan is kept (the
        smallest, among plans within 5% of the fastest time). These rows are a quarter of `X`, at most 10,000; no
        centers are chosen from them. The plan then depends on the machine and its load, but labels and bounds do not.
        Timing takes about as long as the search, and `summary.race` contains the times. The option is ignored if only
        one plan is possible.
    n_jobs : int, optional
        Number of threads for predictions, as in scikit-learn. Default: 1; -1 uses all processors.
    verbose : bool, optional
        If True, show a progress bar on stderr. Default: True in a terminal or a notebook.
    progress : callable, optional
        Function called with a description of the current step and its completed fraction; replaces the progress bar.

    Returns
    -------
    CompiledSVC, CompiledSVR, CompiledOneClassSVM or CompiledEnsemble
        A fitted scikit-learn estimator; CompiledEnsemble for a CalibratedClassifierCV with ensemble=True.

    Raises
    ------
    UnsupportedModelError
        The model cannot be compiled; the message says why.
    ModelFormatError
        The model file is invalid; the message names the file and the line.
    sklearn.exceptions.NotFittedError
        The estimator has not been fitted.
    InputError
        `X` is not a matrix of finite numbers in the columns used by the model, or has the wrong number of columns or
        wrong column names; an option has an invalid value; `tolerance` is smaller than float64 can guarantee; or `plan`
        was made for a model with other features, classes or kernel, or for another mode.

    Warns
    -----
    SourceAccuracyWarning
        Rounding in the source itself may change the labels or values of more than 1% of the rows in `X`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from sklearn.svm import SVC
    >>> import approxsvm
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> svc = SVC(gamma=0.005).fit(scale(X), y)
    >>> fast = approxsvm.compile(svc)
    >>> bool((fast.predict(scale(X)) == svc.predict(scale(X))).all())
    True
    """
    limits = Limits(degree, n_centers, max_bytes, target_error, effort, random_state, rows_per_call, rows_expected)
    n_threads(n_jobs)
    labels = one_of(labels, "labels", ("source", "probability"))
    with compiling(verbose) if progress is None else nullcontext(progress) as report:
        request = Request(mode, center, tolerance, limits, report, plan=plan, stopwatch=_stopwatch(measure, X))
        request.check_options_with_plan()
        compiled, doubt = _compiled(model, X, n_features, request, labels, n_jobs)
    if doubt is not None:
        warnings.warn(doubt, SourceAccuracyWarning, stacklevel=3)
    return compiled


def _compiled(
    model: Any, X: Any, n_features: int | None, request: Request, labels: str, n_jobs: int | None
) -> tuple[CompiledModel, str | None]:
    """Return the predictor, and a warning about the source's predictions, if any."""
    start = time.perf_counter()
    texts, model = split(model)
    X = known_rows(X)
    if texts is not None and X is not None and are_texts(X):
        X = texts.rows(X)
    source = read_any(model, n_features=n_features)  # read before X, because errors in the model may cause errors in X
    if X is not None:
        rows = _sample_rows(X, RawColumns.of(source))
        if isinstance(model, (str, os.PathLike)) and n_features is None and rows.shape[1] > source.n_raw_features:
            source = read_any(model, n_features=int(rows.shape[1]))  # the file does not store the number of columns
        columns = RawColumns.of(source)
        _check_columns(X, columns, int(rows.shape[1]))
        rows = zero_unused(rows, columns)
        check_finite(rows, columns)
        request = replace(request, rows=rows)
    if labels == "probability":
        source = _by_probability(source)
    if isinstance(source, Ensemble):
        is_sum = source.n_decisions > 0 and source.combination.weights is not None
        if is_sum and request.tolerance is not None:
            raise UnsupportedModelError(
                f"a tolerance cannot be promised for a weighted sum of {len(source.members)} models: leave it out, "
                "error_bound bounds each value"
            )
        if request.plan is None:
            source, made = shared(source, [_build(member, request) for member in source.members], request)
        else:
            source, made = replayed(source, request, _build)
        built, plans = zip(*made, strict=True)
        artifact = writer.build_ensemble(built, source)
    else:
        artifact, tried = _build(source, request)
        plans = (tried,)
    if texts is not None:
        artifact = writer.with_vectorizers(artifact, texts)
        try:
            _ = artifact.text_rows
        except ArtifactError as error:  # the vectorizer was changed after `fit`
            raise ModelFormatError(f"its vectorizer does not fit the steps after it: {error}") from None
    limits = request.limits
    if limits.max_bytes is not None and artifact.n_bytes > limits.max_bytes:
        raise UnsupportedModelError(
            f"the artifact takes {artifact.n_bytes:,} bytes, but max_bytes is {limits.max_bytes:,}"
        )
    doubt = None if X is None else doubt_of_sample(model, source, request.rows)
    compiled = estimator_for(artifact, n_jobs=n_jobs)
    options = {"mode": request.mode, "center": request.center, "tolerance": request.tolerance, "labels": labels}
    options |= {"measure": request.stopwatch is not None, **asdict(limits)}
    n_sample_rows = None if X is None else int(request.rows.shape[0])
    seconds = time.perf_counter() - start
    compiled.compilation = Compilation(seconds, _non_default(options), n_sample_rows, tuple(filter(None, plans)))
    return compiled, doubt


def _stopwatch(measure: Any, X: Any) -> Stopwatch | None:
    """Return the function that times plans if `measure` is True."""
    if not isinstance(measure, (bool, np.bool_)):
        raise InputError(f"measure is {measure!r}, but must be True or False")
    if measure and X is None:
        raise InputError("measure is True, but there are no rows to measure on: pass sample rows X, or leave it out")
    return seconds if measure else None


def _by_probability(model: SingleModel | Ensemble) -> SingleModel | Ensemble:
    """Return a model that predicts the most probable label, as ensembles do."""
    if not isinstance(model.outputs.probability, ClassProbability):
        raise UnsupportedModelError(
            f"labels='probability' needs a model with class probabilities, but this {model.source} has none"
        )
    return replace(model, outputs=replace(model.outputs, label_rule="probability", threshold=None, threshold_label=0))


def _build(model: SingleModel, request: Request) -> Built:
    """Build a model's artifact; return it with the plans that were tried."""
    n_classes = len(model.labels)
    if n_classes > MAX_LABELS:
        raise UnsupportedModelError(f"the model has {n_classes} classes; at most {MAX_LABELS} are supported")
    if n_classes == 1:
        raise UnsupportedModelError(
            f"the model has one class and always predicts {model.labels[0]}: nothing to compile"
        )
    return _LOWERINGS[model.kind](model, request)


def _non_default(options: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """Return the options of `compile` that differ from their defaults, as Python source."""
    known = inspect.signature(compile).parameters
    return tuple((name, repr(value)) for name, value in options.items() if value != known[name].default)


def _sample_rows(X: Any, columns: RawColumns) -> Any:
    """Convert sample rows to float64, dense or CSR."""
    from sklearn.utils import check_array

    def as_numbers(given: Any) -> Any:
        return check_array(real_rows(given), accept_sparse="csr", dtype=np.float64, ensure_all_finite=False)

    try:
        if (columns.by_column or columns.texts) and not hasattr(X, "tocsr"):
            return rows_by_column(X, columns, as_numbers)
        return as_numbers(check_sparse(X))
    except InputError:
        raise
    except (ValueError, TypeError, OverflowError) as error:
        raise InputError(f"X: {error}") from None


def _check_columns(X: Any, columns: RawColumns, n_columns: int) -> None:
    """Check the number of columns of X and, if both the model and X have names, the names and their order."""
    if n_columns != columns.n_columns:
        raise InputError(f"X has {n_columns} features, but the model has {columns.n_columns}")
    if columns.names is None or columns.by_column:
        return
    fitted = BaseEstimator()
    fitted.feature_names_in_ = np.array(columns.names, dtype=object)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "X does not have valid feature names")
            validate_data(fitted, X, reset=False, skip_check_array=True)
    except ValueError as error:
        raise InputError(f"X: {error}") from None
