"""Random fitted estimators of every class that readers accept, with parameters that scikit-learn allows.

Classes are taken from approxsvm/frontends/sklearn/known_types.py, so that every class added to a reader is tested from
then on. Sometimes another scikit-learn class is drawn, which must be refused. Parameter values satisfy the class's own
constraints. A source that scikit-learn still refuses is "not fitted".
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from numbers import Integral
from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.exceptions import NotFittedError
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.feature_selection import f_classif, f_regression
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process import kernels
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils._param_validation import Interval, Options, make_constraint
from sklearn.utils.discovery import all_estimators

from approxsvm.frontends.sklearn.known_types import KNOWN
from zoo.draw import Draw
from zoo.random_data import Data, random_labels, random_target
from zoo.tables import CELLS

Task = Literal["classification", "regression", "one_class"]
_TAGS = {"classification": "classifier", "regression": "regressor", "one_class": "outlier_detector"}
_STRANGER = 0.03  # fraction of classes that readers do not accept
_CHANGED = 0.3  # fraction of parameters that differ from the default
_VARIED = 0.08  # fraction of an entry's parameters that get another value
# Parameters that change only the time taken or the text printed, or that do not affect the computation.
_LEFT = (
    *("verbose", "n_jobs", "copy", "memory", "warm_start", "cache_size", "tol", "max_iter", "n_iter", "copy_X", "cv"),
    *("copy_X_train", "n_restarts_optimizer", "random_state", "estimator", "estimators", "final_estimator"),
    *("regressor", "max_features", "n_targets", "categories", "input", "encoding", "ngram_range", "vocabulary"),
)
# Values of parameters that have no constraints.
_GIVEN: dict[str, tuple[Any, ...]] = {
    "dtype": (np.float32, np.float32, np.float64, np.float16, np.longdouble, int, np.int32, np.int8, np.uint8, bool),
    "func": (np.log1p, np.log1p, np.log, np.sqrt, np.abs),
}
_MAX_ITER = 500
_MOST_COLUMNS = 100
_TRIES = 4  # attempts to fit an estimator


def _classes(*roles: str) -> list[Any]:
    modules = [(import_module(x.module), x.name) for x in KNOWN if x.role in roles and x.library == "sklearn"]
    return [getattr(module, name) for module, name in modules if not name.startswith("_") and hasattr(module, name)]


_MACHINES = _classes("kernel machine", "linear classifier", "linear regression", "linear one-class model")
_STEPS = _classes("step", "selector", "feature map", "unsupported feature map")
_STEPS = [kind for kind in _STEPS if kind not in (ColumnTransformer, FeatureUnion) and hasattr(kind, "fit")]
_WRAPPERS, _SEARCHES = _classes("wrapper"), _classes("search")
_VECTORIZERS = [kind for kind in _classes("vectorizer") if "Vectorizer" in kind.__name__]
_ENCODERS = [kind for kind in _STEPS if kind.__name__ in ("OneHotEncoder", "OrdinalEncoder", "TargetEncoder")]
_OF_SEVERAL_LABELS = [kind for kind in _WRAPPERS if kind.__name__ in ("MultiOutputClassifier", "OneVsRestClassifier")]
_STRANGERS = [kind for _, kind in all_estimators()]


@dataclass(frozen=True, eq=False)
class Made:
    """An estimator, and the arguments of fit other than the rows."""

    estimator: Any
    y: Any
    weights: dict[str, Any]

    def fitted(self, X: Any) -> Any:
        """Return a fitted copy."""
        # clone would share, and let tampering change, the estimator inside a FrozenEstimator
        return clone(copy.deepcopy(self.estimator)).fit(X, self.y, **self.weights)


def random_source(draw: Draw, data: Data) -> tuple[Made, Any]:
    """Return an estimator and a fitted copy; raise scikit-learn's error if none can be fitted."""
    task: Task = draw.one("classification", "classification", "classification", "regression", "regression", "one_class")
    n_targets = draw.whole(1, 3) if task == "regression" and draw.maybe(0.15) else 0
    several = task == "classification" and draw.maybe(0.1)
    y: Any = None
    if task == "classification":
        y = random_labels(draw, data.matrix, draw.one(2, 2, 3, 4), data.is_symmetric)
    if several:
        y = np.column_stack([random_labels(draw, data.matrix, 2, data.is_symmetric) for _ in range(2)])
        y = (y == y[0]).astype(np.int64)
    if task == "regression":
        y = random_target(draw, data.matrix, n_targets)
    maker = _Maker(draw, task, y[:, 0] if several else y)
    problem: Exception = ValueError()
    for _ in range(_TRIES):
        try:
            estimator = maker.pipeline(data)
            for _ in range(0 if several else draw.one(0, 0, 0, 1, 1, 2)):
                estimator = maker.wrapped(estimator, data)
            if several:
                estimator = maker.made(draw.one(*_OF_SEVERAL_LABELS), width_of(data.X), estimator=estimator)
            weighted = draw.maybe(0.1) and not isinstance(estimator, Pipeline)
            made = Made(estimator, y, {"sample_weight": draw.rng.integers(0, 3, len(data.matrix))} if weighted else {})
            return made, made.fitted(data.table.make())
        except Exception as error:
            problem = error
    raise problem


def varied_source(draw: Draw, source: Any, data: Data, y: Any) -> tuple[Made, Any]:
    """Return an entry's source with other parameters, preceding steps and wrappers, and a copy fitted on the data."""
    kind = source.__sklearn_tags__().estimator_type
    tasks: list[Task] = [task for task, tag in _TAGS.items() if tag == kind]
    maker = _Maker(draw, tasks[0] if tasks else "one_class", y)
    problem: Exception = ValueError()
    for _ in range(_TRIES):
        try:
            estimator = maker.behind_steps(maker.varied(clone(copy.deepcopy(source)), width_of(data.X)), data)
            for _ in range(draw.one(0, 0, 0, 1)):
                estimator = maker.wrapped(estimator, data)
            made = Made(estimator, y, {})
            return made, made.fitted(data.table.make())
        except Exception as error:
            problem = error
    raise problem


def _no_score(estimator: Any, X: Any, y: Any = None) -> float:
    """Return 0, as the score in a search without alternatives."""
    return 0.0


def width_of(X: Any) -> int:
    """Return the number of columns."""
    return int(X.shape[1]) if hasattr(X, "shape") else len(X[0])


def even_columns(X: Any) -> Any:
    """Return the indices of every second column; used as a callable column selection."""
    return list(range(0, X.shape[1], 2))


class _Maker:
    """Makes estimators for one problem."""

    def __init__(self, draw: Draw, task: Task, y: Any) -> None:
        self.draw, self.task, self.y = draw, task, y
        self.kinds: list[Any] = []
        self.categories: list[list[Any]] | None = None  # explicit categories, for encoders of the current rows

    # --- one estimator

    def made(self, kind: Any, width: int, **given: Any) -> Any:
        """Return an estimator of a class, with some parameters different from the default."""
        draw, allowed = self.draw, getattr(kind, "_parameter_constraints", {})
        for name in (name for name in kind._get_param_names() if name not in (*given, *_LEFT)):
            if draw.maybe(_CHANGED) and (values := self.values(name, allowed.get(name, "no_validation"), width)):
                given[name] = draw.typed(draw.one(*values))
        names = kind._get_param_names()
        given |= {"n_features": 8} if "n_features" in names else {}  # instead of a million columns
        given |= {"random_state": 0} if "random_state" in names else {}
        given |= {"max_iter": _MAX_ITER} if "max_iter" in names and "max_iter" not in given else {}
        if kind in _ENCODERS and self.categories and draw.maybe(0.3):
            given["categories"] = self.categories
        if "score_func" in names:
            given["score_func"] = f_regression if self.task == "regression" else f_classif
        if "estimator" in names:
            given.setdefault("estimator", LogisticRegression() if self.task == "classification" else Ridge())
        if kind.__name__.startswith("GaussianProcess") and draw.maybe(0.9):
            given["kernel"] = self._gp_kernel(width)
        return kind(**given)

    def values(self, name: str, constraints: Sequence[Any] | str, width: int) -> list[Any]:
        """Return values for a parameter that satisfy its constraints."""
        draw, found = self.draw, list(_GIVEN.get(name, ()))
        for constraint in map(make_constraint, () if constraints == "no_validation" or found else constraints):
            if isinstance(constraint, Options):
                found += sorted(constraint.options, key=repr)
            elif isinstance(constraint, Interval):
                low = 0 if constraint.left is None else max(constraint.left, 0)
                high = np.inf if constraint.right is None else constraint.right
                whole = issubclass(constraint.type, Integral)
                most = min(high, low + width, 2 if name == "degree" and width > 8 else 8)
                number = draw.whole(int(low), int(max(low, most))) if whole else min(draw.power(-3, 1), high)
                found.append(number if constraint.is_satisfied_by(number) else low)
            elif constraint.is_satisfied_by(None):
                found.append(None)
            elif constraint.is_satisfied_by(True):
                found += [True, False]
        return found

    def _gp_kernel(self, width: int) -> Any:
        """Return an RBF kernel combined with constants and noise in any order, or sometimes another kernel."""
        draw, length = self.draw, self.draw.power(-1, 2)
        usual = kernels.RBF(length), kernels.RBF([length]), kernels.RBF(length * np.arange(1.0, width + 1))
        others = (
            kernels.Matern(length, nu=draw.one(0.5, np.inf)),
            kernels.RationalQuadratic(length),
            kernels.DotProduct(),
        )
        kernel = draw.one(*usual * 4, *others)
        for _ in range(draw.whole(0, 3)):
            other = draw.one(kernels.ConstantKernel(draw.power(-2, 2)), kernels.WhiteKernel(draw.power(-4, 0)))
            pair = draw.one((kernel, other), (other, kernel))
            products = isinstance(other, kernels.ConstantKernel) and draw.maybe(0.6)
            kernel = (kernels.Product if products or draw.maybe(0.05) else kernels.Sum)(*pair)
        return kernel

    # --- steps

    def step(self, X: Any, depth: int = 0) -> tuple[Any, Any]:
        """Return a transformer that can be fitted, and the transformed rows, which are the next step's input."""
        draw = self.draw
        for _ in range(_TRIES):
            try:
                step = self._any_step(X, depth)
                if step is None or isinstance(step, str):
                    return step, X
                if draw.maybe(0.05) and hasattr(step, "set_output"):
                    step.set_output(transform="pandas")
                behind = clone(step).fit_transform(X, self.y)
                if width_of(behind) <= _MOST_COLUMNS:
                    return step, behind
            except Exception:
                continue
        return "passthrough", X

    def _any_step(self, X: Any, depth: int) -> Any:
        draw, width = self.draw, width_of(X)
        if draw.maybe(_STRANGER):
            return draw.one("passthrough", None, self.made(draw.one(*_STRANGERS), width))
        if depth < 2 and draw.maybe(0.3):
            return draw.one(self._columns, self._union, self._nested)(X, depth)
        if not self.kinds or draw.maybe(0.7):
            self.kinds.append(draw.one(*_STEPS))  # so that later steps may have the same class
        self.categories = self._categories(X)
        return self.made(draw.one(*self.kinds), width)

    def _categories(self, X: Any) -> list[list[Any]] | None:
        """Return each column's numbers, if there are few, and cells that may be mistaken for missing ones."""
        try:
            columns = [sorted(set(column)) for column in np.asarray(X, np.float64).T.tolist()]
        except (TypeError, ValueError):
            return None
        return [column + self.draw.some(CELLS)[:2] for column in columns] if max(map(len, columns)) < 12 else None

    def _nested(self, X: Any, depth: int) -> Any:
        steps = []
        for k in range(self.draw.whole(1, 2)):
            step, X = self.step(X, depth + 1)
            steps.append((f"inner{k}", step))
        return Pipeline(steps)

    def _part(self, X: Any, depth: int) -> Any:
        part = self.draw.one("drop", "passthrough") if self.draw.maybe(0.3) else self.step(X, depth + 1)[0]
        return "passthrough" if part is None else part

    def _union(self, X: Any, depth: int) -> Any:
        parts = [(f"part{k}", self._part(X, depth)) for k in range(self.draw.whole(1, 3))]
        return FeatureUnion(parts, transformer_weights=self._weights(parts))

    def _columns(self, X: Any, depth: int) -> Any:
        """Return a ColumnTransformer, with column selections in various notations."""
        draw, width = self.draw, width_of(X)
        X = np.asarray(X) if isinstance(X, list) else X
        names = list(X.columns) if hasattr(X, "columns") else None
        parts = []
        for k in range(draw.whole(1, 3)):
            positions = draw.some(range(width), least=0 if draw.maybe(0.05) else 1)
            low, high = min(positions, default=0), max(positions, default=0)
            inside, even = list(range(low, high + 1)), list(range(0, width, 2))
            mask = [p in positions for p in range(width)]
            ways: list[tuple[Any, list[int]]] = [
                (positions, positions),
                ([p - width for p in positions], positions),
                (draw.one(mask, np.array(mask)), sorted(positions)),
                (np.array(positions, draw.one(np.int64, np.int32)), positions),
                (slice(low, high + 1), inside),
                (slice(low - width, None if high + 1 == width else high + 1 - width), inside),
                (even_columns, even),
            ]
            if names:
                matching = [p for p, name in enumerate(map(str, names)) if "1" in name or "2" in name]
                ways += [([names[p] for p in positions], positions), (slice(names[low], names[high]), inside)] * 2
                ways.append((make_column_selector(pattern="1|2"), matching))
            columns, taken = draw.one(*ways)
            some = X.iloc[:, taken] if names is not None else X[:, taken]
            part = self._part(some, depth) if taken else "passthrough"
            parts.append((draw.one(f"part{k}", f"{k} passthrough", f"drop {k}"), part, columns))
        remainder = draw.one("drop", "passthrough", "passthrough", self.made(_classes("step")[0], width))
        weights, threshold = self._weights(parts), draw.one(0.3, 0.0, 1.0)
        return ColumnTransformer(parts, remainder=remainder, transformer_weights=weights, sparse_threshold=threshold)

    def _weights(self, parts: list[Any]) -> dict[str, float] | None:
        draw = self.draw
        if draw.maybe(0.6):
            return None
        weights = (0.5, 2.0, -1.0, 1e-3, 0.0, 1, 2, 100)
        return {part[0]: draw.typed(draw.one(*weights)) for part in parts if draw.maybe(0.7)}

    # --- an entry of the zoo

    def varied(self, estimator: Any, width: int) -> Any:
        """Return the estimator with other parameters for itself and its parts."""
        parts = {name: part for name, part in estimator.get_params().items() if isinstance(part, BaseEstimator)}
        for place, part in {"": estimator, **parts}.items():
            allowed = getattr(type(part), "_parameter_constraints", {})
            for name in part._get_param_names():
                if name in allowed and name not in _LEFT and self.draw.maybe(_VARIED):
                    values = self.values(name, allowed[name], width)
                    if values:
                        value = self.draw.typed(self.draw.one(*values))
                        estimator.set_params(**{f"{place}__{name}" if place else name: value})
        return estimator

    def behind_steps(self, estimator: Any, data: Data) -> Any:
        """Return the estimator after up to two steps."""
        steps, X = [], data.X
        for k in range(self.draw.one(0, 0, 1, 1, 2)):
            step, X = self.step(X)
            steps.append((f"front{k}", step))
        return Pipeline([*steps, ("entry", estimator)]) if steps else estimator

    # --- the whole

    def machine(self, width: int) -> Any:
        """Draw the last step."""
        tag = _TAGS[self.task]
        pool = _STRANGERS if self.draw.maybe(_STRANGER) else _MACHINES
        while True:
            kind = self.draw.one(*pool)
            try:
                machine = self.made(kind, width)
                if machine.__sklearn_tags__().estimator_type == tag:
                    return machine
            except (TypeError, ValueError, AttributeError, NotFittedError):  # it needs an argument or lacks such a tag
                continue

    def pipeline(self, data: Data) -> Any:
        """Return a pipeline of a column selection, some steps and a machine, or often only the machine."""
        draw, X, steps = self.draw, data.X, []
        if data.table.container == "texts":
            steps.append(("words", self.made(draw.one(*_VECTORIZERS), 1)))
            X = clone(steps[0][1]).fit_transform(X)
        elif data.has_strangers:
            chosen = draw.some(data.names, least=1)
            places = [data.X.columns.get_loc(name) for name in chosen]
            columns = draw.one(chosen, places, data.X.columns.isin(chosen))
            step: Any = ColumnTransformer([("kept", "passthrough", columns)], remainder="drop")
            if draw.maybe(0.3):
                step = ColumnTransformer([("gone", "drop", ["text", "holes", "date"])], remainder="passthrough")
            if draw.maybe(0.5):
                words = ("words", self.made(draw.one(*_ENCODERS), 1), ["text"])
                step = ColumnTransformer(draw.some([("kept", "passthrough", columns), words], least=2))
            steps.append(("columns", step))
            X = clone(step).fit_transform(X, self.y)
        for k in range(draw.one(0, 0, 1, 1, 1, 2, 3)):
            step, X = self.step(X)
            steps.append((draw.one(f"step{k}", f"{k}", f"größe {k}"), step))
        steps.append(("machine", self.machine(width_of(X))))
        if len(steps) == 1 and draw.maybe(0.7):
            return steps[0][1]
        cut = draw.whole(1, len(steps))
        if len(steps) > 1 and draw.maybe(0.2):
            return Pipeline([*steps[: cut - 1], ("inner", Pipeline(steps[cut - 1 :]))])
        if cut < len(steps) and draw.maybe(0.2):
            return Pipeline([("inner", Pipeline(steps[:cut])), *steps[cut:]])
        return Pipeline(steps)

    def wrapped(self, inner: Any, data: Data) -> Any:
        """Return a search, an ensemble, a calibration, or a pipeline around an estimator."""
        draw, width = self.draw, width_of(data.X)
        if draw.maybe(0.2):
            nothing = [("nothing", draw.one("passthrough", None))] if draw.maybe(0.5) else []
            return Pipeline([*nothing, ("last", inner)])
        if draw.maybe(0.25):
            kind = draw.one(*_SEARCHES)
            grid = "param_distributions" if "Random" in kind.__name__ else "param_grid"
            return self.made(kind, width, **{grid: {}, "cv": 2, "scoring": _no_score, "estimator": inner})
        kind = draw.one(*_WRAPPERS)
        if kind is FrozenEstimator or draw.maybe(0.2):  # calibrated after fitting, as scikit-learn recommends
            inner = FrozenEstimator(clone(inner).fit(data.X, self.y))
        if kind is FrozenEstimator:
            return inner
        other = LogisticRegression() if self.task == "classification" else Ridge()
        given = {"estimator": inner, "regressor": inner, "estimators": [("a", inner), ("b", other)]}
        given |= {
            "n_estimators": draw.one(2, 4),
            "cv": 2,
            "transformer": self.made(draw.one(*_classes("step")[:4]), width),
        }
        names = kind._get_param_names()
        return self.made(kind, width, **{name: value for name, value in given.items() if name in names})
