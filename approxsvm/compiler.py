"""compile(): read, plan, expand, certify, build. This file holds no mathematics."""

from __future__ import annotations

import inspect
import math
import os
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import cache, partial
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from approxsvm.artifact import writer
from approxsvm.artifact.views import Artifact
from approxsvm.errors import InputError, SourceAccuracyWarning, UnsupportedModelError
from approxsvm.estimators import CompiledModel, estimator_for
from approxsvm.evaluator import Evaluator, read_artifact
from approxsvm.expansion import polynomial_form, taylor, taylor_features
from approxsvm.expansion.certificate import least_tolerance
from approxsvm.expansion.stack import value_range
from approxsvm.model.cosine_model import CosineModel
from approxsvm.model.ensemble import Ensemble
from approxsvm.model.kernel_model import KernelModel
from approxsvm.model.outputs import Outputs
from approxsvm.model.schema import MAX_DEGREE, MAX_LABELS, MODES, Mode
from approxsvm.model.single_model import SingleModel
from approxsvm.model.taylor_model import TaylorModel
from approxsvm.options import MAX_SEED, is_whole_number, whole_number
from approxsvm.planning import planner
from approxsvm.planning.presumption import presume
from approxsvm.planning.subspaces import Subspaces, choose_subspaces, goes_by_many_features
from approxsvm.raw_columns import RawColumns
from approxsvm.readers import read_any
from approxsvm.reports.compilation import Compilation, TriedPlan
from approxsvm.reports.judgement import doubt_of_sample
from approxsvm.rows import check_finite, check_sparse, zero_unused
from approxsvm.table_columns import rows_by_column
from approxsvm.threads import n_threads, one_thread_inside

Progress = Callable[[str, float], None]
# Where no tolerance is asked for, values of a regression model are this close, as a share of their range.
DEFAULT_SHARE_OF_RANGE = 1e-3
# Rows that show how well float64 can scale rows.
_TYPICAL_ROWS = 256


def compile(
    model: Any,
    X: Any = None,
    *,
    n_features: int | None = None,
    mode: Mode = "certified",
    degree: int | Literal["auto"] = "auto",
    n_centers: int | Literal["auto"] = "auto",
    center: taylor.CenterChoice = "mean",
    tolerance: float | None = None,
    target_error: float | None = None,
    max_bytes: int | None = None,
    effort: planner.Effort = "normal",
    random_state: int = 0,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> CompiledModel:
    """Compile a trained kernel machine into a small, fast predictor.

    Models with a linear kernel or a polynomial one of degree 1 to 6 need no expansion: of the options only `mode`,
    `tolerance`, `max_bytes` and `n_jobs` matter to them, and every value is exact up to float64 rounding. Those of
    degree 1 and 2 are summed up to a quadratic form, where that is cheaper than their support vectors.

    A pipeline of `TaylorFeatures` and a linear model is an expansion about the origin itself. It compiles in mode
    "approximate", with bounds of float32 rounding alone: `certified` says which labels are proven to be the
    pipeline's over the real numbers.

    A pipeline of scikit-learn's `RBFSampler` or `SkewedChi2Sampler` and a linear model is a sum of cosines, which is
    added up as it is, in float32 where that settles a label or the tolerance. Without a tolerance values are exact up
    to float64 rounding.

    Parameters
    ----------
    model : fitted estimator, KernelModel, Ensemble, or path
        scikit-learn's SVC, NuSVC, SVR, NuSVR, OneClassSVM, KernelRidge, GaussianProcessRegressor, pipelines that end in
        one, CalibratedClassifierCV around one, and more (`read_any`); or the path of a LIBSVM model file.
        Pickles run code when they are read: load them yourself, or by ``read_model(path, trust=True)``.
    X : array-like or sparse matrix of shape (n_rows, n_features), optional
        Rows like those to predict, without labels; the training rows will do. They say where expansions are needed and
        how well each would do. Without them the support vectors have to serve, which serve worse.
    n_features : int, optional
        Number of columns of the rows to predict. A LIBSVM model file does not say it, and its support vectors may use
        fewer; taken from `X` when left out, else from the support vectors.
    mode : {"certified", "approximate", "exact"}
        "certified": each label is proven equal to the exact model's, or computed exactly; the artifact carries the
        support vectors. "approximate": the expansion alone, with bounds but without support vectors; labels near the
        decision boundary may differ. "exact": the exact model alone, on a faster engine.
    degree : "auto" or int from 1 to 6
        Highest power of the expansions (Cotter et al. 2011). "auto" tries several and takes what is fastest.
    n_centers : "auto" or int
        Points to expand about; rows use one near them. "auto" tries several numbers and takes what is fastest, or the
        exact model where no expansion is faster; in mode "approximate" it is 1 unless `target_error` asks for more.
    center : {"mean", "origin"}
        The point expanded about where there is only one. The mean of the support vectors is more accurate; the origin
        gives exactly the expansion of Claesen et al. 2014.
    tolerance : float, optional
        In the modes "certified" and "exact", every decision value (or value of a regression) is within this of the
        exact one, in the units of the target, rounding included. When left out, labels decide alone, and regression
        takes a thousandth of the range of the model's values at its support vectors ("exact": float64 accuracy).
    target_error : float, optional
        In mode "approximate", take the smallest expansion whose labels differ from the exact model's on at most this
        share of held-out rows.
    max_bytes : int, optional
        Limit on the size of the artifact.
    effort : {"low", "normal", "high"}
        How much compile time may be spent: up to 64, 1,024 or 4,096 centers are tried.
    random_state : int
        Seeds the choice of rows and centers. The same input gives the same artifact, bit for bit, on one target.
    n_jobs : int, optional
        Threads that the result predicts with, as in scikit-learn: 1 when left out, -1 for all processors.
    progress : callable, optional
        Told what is being done, in words, and the share of that which is done, from 0 to 1.

    Returns
    -------
    CompiledSVC, CompiledSVR, CompiledOneClassSVM or CompiledEnsemble
        A fitted scikit-learn estimator; the last for CalibratedClassifierCV with ensemble=True.

    Raises
    ------
    UnsupportedModelError
        The model is of a kind that cannot be compiled; the message names it.
    ModelFormatError
        The model file is broken; the message names file and line.
    sklearn.exceptions.NotFittedError
        The estimator has not been fitted.
    InputError
        `X` is not a matrix of finite numbers in the columns that the model uses, or has other columns than the model;
        or `n_features`, `max_bytes`, `random_state` or `n_jobs` is an invalid number.
    ValueError
        An option has an unknown value, or `tolerance` is below what float64 can promise.

    Warns
    -----
    SourceAccuracyWarning
        Of more than a hundredth of the rows of `X`, rounding in the source's own arithmetic may change the answer.

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
    start = time.perf_counter()
    limits = planner.Limits(degree, n_centers, max_bytes, target_error, effort, random_state)
    _check_options(mode, center, tolerance, limits)
    n_threads(n_jobs)
    source = read_any(model, n_features=n_features)  # before X is looked at: it may have what no model takes
    rows = None
    if X is not None:
        rows = _sample_rows(X, RawColumns.of(source))
        if isinstance(model, (str, os.PathLike)) and n_features is None and rows.shape[1] > source.n_raw_features:
            source = read_any(model, n_features=int(rows.shape[1]))  # the file does not say how many there are
        columns = RawColumns.of(source)
        _check_columns(X, columns, int(rows.shape[1]))
        rows = zero_unused(rows, columns)
        check_finite(rows)

    plans: list[tuple[TriedPlan, ...]] = []

    def compile_one(one: SingleModel) -> Artifact:
        _check_labels(one)
        if isinstance(one, TaylorModel):
            return _build_taylor(one, mode, limits)
        if isinstance(one, CosineModel):
            return _build_cosines(one, mode, tolerance, limits)
        if one.is_polynomial:
            return _build_polynomial(one, mode, tolerance, limits)
        writer.input_scale_for(one.gamma)  # refuses what the format cannot hold, before any arithmetic
        with one_thread_inside("blas"):
            artifact, tried = _build(one, rows, mode, center, tolerance, limits, progress or _ignore)
        plans.append(tried)
        return artifact

    artifact: Any
    if isinstance(source, Ensemble):
        artifact = writer.build_ensemble([compile_one(member) for member in source.members], source.source)
    else:
        artifact = compile_one(source)
    _check_size(artifact.data, limits)
    told = None if rows is None else doubt_of_sample(model, source, rows)
    if told is not None:
        warnings.warn(told, SourceAccuracyWarning, stacklevel=2)
    compiled = estimator_for(artifact, n_jobs=n_jobs)
    options = _told({"mode": mode, "center": center, "tolerance": tolerance} | asdict(limits))
    n_sample_rows = None if rows is None else int(rows.shape[0])
    compiled.compilation = Compilation(time.perf_counter() - start, options, n_sample_rows, tuple(plans))
    return compiled


def _told(options: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """Options of `compile` that were given another value than their default, as Python writes them."""
    known = inspect.signature(compile).parameters
    return tuple((name, repr(value)) for name, value in options.items() if value != known[name].default)


def load(path: str | os.PathLike[str], *, n_jobs: int | None = None) -> CompiledModel:
    """Load a predictor that was saved as an .asvm file.

    Parameters
    ----------
    path : str or path
    n_jobs : int, optional
        Threads to predict with.

    Returns
    -------
    CompiledSVC, CompiledSVR, CompiledOneClassSVM or CompiledEnsemble

    Raises
    ------
    ArtifactError
        The file breaks a rule of models/FORMAT.md, or its check rows give other values on this machine.
    InputError
        `n_jobs` is not a number of threads.
    OSError
        The file cannot be read.
    """
    return estimator_for(read_artifact(path), n_jobs=n_jobs)


def _build(
    model: KernelModel,
    rows: Any,
    mode: Mode,
    choice: taylor.CenterChoice,
    tolerance: float | None,
    limits: planner.Limits,
    progress: Progress,
) -> tuple[Artifact, tuple[TriedPlan, ...]]:
    center = taylor.choose_center(model, choice)
    frame = writer.Frame(center, choice, *taylor.sv_norms(model, center))
    promise = _promise(model, mode, tolerance, rows)
    rows = _mapped(model, rows)
    plan = planner.Plan(None, "")
    # Plans are tried on rows that are mapped already, and without names that scikit-learn would miss.
    bare = replace(model, input_map=None, outputs=Outputs(), feature_names=None)

    @cache
    def exact() -> Evaluator:
        return Evaluator(writer.build(bare, "exact", frame), n_jobs=-1)

    def winners(judged: Any) -> npt.NDArray[np.intp]:
        return planner.winners_by(exact(), judged)

    # Labels of several classes by votes need the pairs of a winner; values, and labels by scores, need all.
    majority_only = (
        mode == "certified" and model.n_decisions > 1 and math.isinf(promise) and model.outputs.label_rule == "votes"
    )
    # Subspaces settle labels by votes, and values. They are for rows with many features that are not zero; of others
    # expansions say first what there is to gain.
    may_have_subspaces = (
        mode == "certified"
        and limits.degree == limits.n_centers == "auto"
        and (model.n_decisions == 1 or majority_only)
    )

    def find_subspaces(cost_of_plan: float | None = None) -> Subspaces | None:
        told = partial(progress, "Looking for subspaces")
        found = choose_subspaces(bare, rows, frame.center, winners, promise, limits, told, cost_of_plan)
        if found is None or limits.max_bytes is None:
            return found
        return found if found.n_bytes + exact().artifact.n_bytes <= limits.max_bytes else None

    tried: list[TriedPlan] = []
    at_once = may_have_subspaces and goes_by_many_features(bare, rows)
    subspaces = find_subspaces() if at_once else None
    if mode != "exact":
        told = partial(progress, "Planning")
        cost = None if subspaces is None else subspaces.cost
        plan = planner.choose(bare, frame, exact, rows, mode, promise, limits, told, majority_only, cost)
        tried += plan.tried
    if may_have_subspaces and not at_once:
        subspaces = find_subspaces(None if plan.candidate is None else plan.candidate.cost)
    elif plan.candidate is not None and subspaces is not None:
        tried.append(subspaces.tried)
        subspaces = None
    if subspaces is not None:
        plan = planner.Plan(None, subspaces.reason)
        tried = [*(replace(other, chosen=False) for other in tried), replace(subspaces.tried, chosen=True)]
    if mode == "certified":
        is_plan = plan.candidate is None and subspaces is None
        tried.append(TriedPlan("the exact engine alone", 1.0, chosen=is_plan))
    expanded = None
    if plan.candidate is None:
        mode = "exact"
        promise = max(promise, least_tolerance(model))
    else:
        expanded = planner.build_expanded(bare, plan.candidate, mode, majority_only, partial(progress, "Expanding"))
    presumption = None
    if expanded is None and model.n_decisions > 1 and math.isinf(promise):
        presumption = presume(
            bare,
            rows,
            frame.center,
            winners,
            limits.random_state,
            None if subspaces is None else subspaces.presumed_cost,
        )
    artifact = writer.build(
        model,
        mode,
        frame,
        expanded,
        presumption=presumption,
        subspaces=[] if subspaces is None else subspaces.groups,
        subspace_expansion=None if subspaces is None else subspaces.expansion,
        tolerance=promise,
        tolerance_asked=tolerance is not None,
        plan=plan.reason,
    )
    return artifact, tuple(tried)


def _build_polynomial(model: KernelModel, mode: Mode, tolerance: float | None, limits: planner.Limits) -> Artifact:
    """The form where it is cheaper than the support vectors, and with them; alone in mode "approximate"."""
    if tolerance is not None and not tolerance > 0.0:
        raise ValueError(f"tolerance is {tolerance}, but must be positive")
    kernel = "linear" if model.degree == 1 else f"polynomial of degree {model.degree}"
    if mode == "approximate":
        form = polynomial_form.sum_up(model)
        if not form.is_finite:
            raise UnsupportedModelError(f"the form of this {model.source} is beyond the range of float64")
        plan = f"the kernel is {kernel} and summed up without error, so there is nothing to approximate"
        return writer.build_polynomial(model, mode, form, plan=plan)
    summed = polynomial_form.sum_up(model) if polynomial_form.is_cheaper(model) else None
    if summed is not None and summed.is_finite:
        plan = f"the kernel is {kernel} and summed up without error, so there is nothing to approximate"
        artifact = writer.build_polynomial(model, "certified", summed, tolerance=tolerance, plan=plan)
        if limits.max_bytes is None or artifact.n_bytes <= limits.max_bytes:
            return artifact
    plan = f"the exact engine alone: the kernel is {kernel}, and a form of all its terms would cost more"
    return writer.build_polynomial(model, "exact", tolerance=tolerance, plan=plan)


def _build_taylor(model: TaylorModel, mode: Mode, limits: planner.Limits) -> Artifact:
    """The model itself is an expansion: there is nothing to choose, and no exact engine to fall back on."""
    if mode != "approximate":
        raise UnsupportedModelError(
            f"mode {mode!r} falls back on support vectors, which a {model.source} has none of: compile it with "
            "mode='approximate', where certified(X) says which labels are proven; all but those within float32 rounding"
        )
    if (limits.degree, limits.n_centers) not in (("auto", "auto"), (model.degree, 1)):
        raise ValueError(
            f"a {model.source} is an expansion of degree {model.degree} about 1 center, which is not chosen"
        )
    plan = "the model is an expansion about the origin itself, so nothing is cut off"
    return writer.build_taylor(model, *taylor_features.expand_and_certify(model), plan=plan)


def _build_cosines(model: CosineModel, mode: Mode, tolerance: float | None, limits: planner.Limits) -> Artifact:
    """The engines of cosines: there is nothing to choose, and nothing to approximate."""
    if mode == "approximate":
        raise UnsupportedModelError(f"a {model.source} has no expansion: compile it with mode='certified' or 'exact'")
    if (limits.degree, limits.n_centers) != ("auto", "auto"):
        raise UnsupportedModelError(f"a {model.source} has no expansion: leave degree and n_centers out")
    if tolerance is not None and not tolerance > 0.0:
        raise ValueError(f"tolerance is {tolerance}, but must be positive")
    plan = f"the model is a sum of {model.n_cosines:,} cosines, which is added up as it is"
    return writer.build_cosines(model, tolerance=tolerance, plan=plan)


def _check_size(data: bytes, limits: planner.Limits) -> None:
    if limits.max_bytes is not None and len(data) > limits.max_bytes:
        raise UnsupportedModelError(f"the artifact takes {len(data):,} bytes, but max_bytes is {limits.max_bytes:,}")


def _mapped(model: KernelModel, rows: Any) -> Any:
    return rows if rows is None or model.input_map is None else model.input_map.apply(rows)


def _typical_row_error(model: KernelModel, rows: Any) -> float:
    """How far float64 may have half of the sample rows from what is meant.

    Where there are no rows, those that are mapped to support vectors stand in for them.
    """
    if model.input_map is None:
        return 0.0
    if rows is None:
        rows = model.input_map.preimage(model.dense_support_vectors(0, min(model.n_sv, _TYPICAL_ROWS)))
        rows = rows[model.input_map.takes(rows)]
    some = rows[:: max(1, rows.shape[0] // _TYPICAL_ROWS)]
    return float(np.median(model.input_map.mapped_with_errors(some, exactly=True)[1])) if some.shape[0] else 0.0


def _promise(model: KernelModel, mode: Mode, tolerance: float | None, rows: Any) -> float:
    """What was asked for, else labels alone, or a share of the range of a regression's values."""
    if tolerance is not None:
        _check_tolerance(
            tolerance, least_tolerance(model, _typical_row_error(model, rows)), model.input_map is not None
        )
        return float(tolerance)
    least = least_tolerance(model)
    if model.task != "regression" or mode == "approximate":
        return np.inf
    return least if mode == "exact" else max(DEFAULT_SHARE_OF_RANGE * value_range(model), least)


def _ignore(step: str, share: float) -> None:
    pass


def _sample_rows(X: Any, columns: RawColumns) -> Any:
    """float64 rows, dense or CSR."""
    from sklearn.utils import check_array

    as_numbers = partial(check_array, accept_sparse="csr", dtype=np.float64, ensure_all_finite=False)
    try:
        if columns.by_column and not hasattr(X, "tocsr"):
            return rows_by_column(X, columns, as_numbers)
        return as_numbers(check_sparse(X))
    except InputError:
        raise
    except ValueError as error:
        raise InputError(f"X: {error}") from None


def _check_columns(X: Any, columns: RawColumns, n_columns: int) -> None:
    """X has the columns of the model, by number and, where both have names, by name and in the model's order."""
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


def _check_options(mode: Mode, center: taylor.CenterChoice, tolerance: float | None, limits: planner.Limits) -> None:
    if mode not in MODES:
        raise ValueError(f"mode must be one of {', '.join(map(repr, MODES))}, not {mode!r}")
    if center not in ("mean", "origin"):
        raise ValueError(f"center must be 'mean' or 'origin', not {center!r}")
    if limits.effort not in get_args(planner.Effort):
        raise ValueError(f"effort must be one of 'low', 'normal', 'high', not {limits.effort!r}")
    if limits.degree != "auto" and not is_whole_number(limits.degree, 1, MAX_DEGREE):
        raise ValueError(f"degree must be 'auto' or 1 to {MAX_DEGREE}, not {limits.degree!r}")
    if limits.n_centers != "auto" and not is_whole_number(limits.n_centers, 1):
        raise ValueError(f"n_centers must be 'auto' or a positive integer, not {limits.n_centers!r}")
    if limits.max_bytes is not None:
        whole_number(limits.max_bytes, "max_bytes", 1)
    whole_number(limits.random_state, "random_state", 0, MAX_SEED)
    if mode == "exact" and (limits.degree != "auto" or limits.n_centers != "auto"):
        raise ValueError("mode 'exact' has no expansion: degree and n_centers cannot be chosen")
    if tolerance is not None and mode == "approximate":
        raise ValueError("tolerance cannot be promised in mode 'approximate': it has nothing to fall back on")
    if limits.target_error is not None and not (mode == "approximate" and 0.0 <= limits.target_error <= 1.0):
        raise ValueError(f"target_error is for mode 'approximate', from 0 to 1; got {limits.target_error} and {mode!r}")


def _check_tolerance(tolerance: float, least: float, has_map: bool) -> None:
    if not tolerance >= least:
        what = "this model and the steps in front of it" if has_map else "this model"
        raise ValueError(f"tolerance is {tolerance}, but float64 cannot promise less than {least:.3g} for {what}")


def _check_labels(model: SingleModel) -> None:
    n_classes = len(model.labels)
    if n_classes > MAX_LABELS:
        raise UnsupportedModelError(f"the model has {n_classes} classes; at most {MAX_LABELS} are supported")
    if n_classes == 1:
        raise UnsupportedModelError(
            f"the model has one class and always predicts {model.labels[0]}: nothing to compile"
        )
