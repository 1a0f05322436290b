"""Random transformers: scalers, projections, selections and what combines them, and some that cannot be folded."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.cluster import FeatureAgglomeration, KMeans
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.decomposition import PCA, FastICA, IncrementalPCA, KernelPCA, TruncatedSVD
from sklearn.feature_selection import (
    RFE,
    GenericUnivariateSelect,
    SelectFromModel,
    SelectKBest,
    SelectPercentile,
    VarianceThreshold,
    f_classif,
    f_regression,
)
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import AdditiveChi2Sampler, Nystroem, RBFSampler
from sklearn.linear_model import Ridge
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import LinearSVC

from benchmarks.random_data import Draw
from benchmarks.random_machines import Problem, width_of


def even_columns(X: Any) -> Any:
    """Positions of every second column, as a callable selection."""
    return list(range(0, X.shape[1], 2))


class Steps:
    """Transformers for one problem: each is fitted on the way, so that the next one knows the rows that it gets."""

    def __init__(self, draw: Draw, problem: Problem) -> None:
        self.draw, self.problem = draw, problem

    def step_for(self, X: Any, depth: int) -> tuple[Any, Any]:
        """A transformer, and what it makes of the rows."""
        step = self._transformer(X, depth)
        if step is None or isinstance(step, str):
            return step, X
        if self.draw.maybe(0.05) and hasattr(step, "set_output"):
            step.set_output(transform="pandas")
        return step, clone(step).fit_transform(X, self.problem.y)

    def _transformer(self, X: Any, depth: int) -> Any:
        draw = self.draw
        if draw.maybe(0.03):
            return self._other(width_of(X))
        nesting = ["columns", "columns", "union", "pipeline"] if depth < 2 else []
        kind = draw.one(*(["scaler"] * 5), "projection", "selector", "function", *nesting)
        if kind == "scaler":
            return self._scaler(issparse(X))
        width = width_of(X)
        if kind == "projection":
            n = draw.whole(1, width)
            if issparse(X) and not draw.maybe(0.1):
                return TruncatedSVD(n, algorithm="randomized", random_state=0) if width > 1 else MaxAbsScaler()
            whiten = draw.maybe(0.4)
            return draw.one(
                PCA(n, whiten=whiten),
                PCA(draw.one(0.7, None), whiten=whiten),
                PCA(n, svd_solver="randomized", random_state=0),
                TruncatedSVD(n, algorithm="randomized", random_state=0) if width > 1 else PCA(1),
            )
        if kind == "selector":
            return self._selector(width)
        if kind == "function":
            return self._function(X)
        if kind == "columns":
            return self._column_transformer(X, width, depth)
        if kind == "union":
            parts = [(f"part{k}", self._part(X, depth)) for k in range(draw.whole(1, 3))]
            return FeatureUnion(parts, transformer_weights=self._weights(parts))
        if kind == "pipeline":
            steps = []
            for k in range(draw.whole(1, 2)):
                step, X = self.step_for(X, depth + 1)
                steps.append((f"inner{k}", step))
            return Pipeline(steps)
        return self._other(width)

    def _function(self, X: Any) -> Any:
        """Of the rows that it is for, so that no NaN comes out."""
        draw = self.draw
        least = -1.0 if issparse(X) else float(np.min(np.asarray(X, dtype=np.float64)))
        functions = [None, *([np.log1p] * 3 * (least > -1)), *([np.log, np.log, np.sqrt] * (least > 0))]
        return FunctionTransformer(
            draw.one(*functions), accept_sparse=issparse(X), validate=draw.maybe(0.3), check_inverse=False
        )

    def _scaler(self, sparse: bool) -> Any:
        draw = self.draw
        if sparse and not draw.maybe(0.1):
            return draw.one(MaxAbsScaler(), StandardScaler(with_mean=False), RobustScaler(with_centering=False))
        yes = [draw.maybe(0.75) for _ in range(2)]
        low = draw.one(0.0, -1.0, -1e-3)
        return draw.one(
            StandardScaler(with_mean=yes[0], with_std=yes[1], copy=draw.maybe(0.8)),
            StandardScaler(),
            MinMaxScaler((low, low + draw.one(1.0, 2.0, 1e-2)), clip=draw.maybe(0.4)),
            MaxAbsScaler(**({"clip": True} if draw.maybe(0.3) and "clip" in MaxAbsScaler().get_params() else {})),
            RobustScaler(
                with_centering=yes[0],
                with_scaling=yes[1],
                quantile_range=draw.one((25.0, 75.0), (5.0, 90.0)),
                unit_variance=draw.maybe(0.3),
            ),
        )

    def _selector(self, width: int) -> Any:
        draw = self.draw
        score = f_classif if self.problem.task == "classification" else f_regression
        k = draw.whole(0 if draw.maybe(0.1) else 1, width)
        linear = LinearSVC() if self.problem.task == "classification" else Ridge()
        if self.problem.task == "one_class" or self.problem.has_several_targets:
            return VarianceThreshold(draw.one(0.0, 1e-6))
        return draw.one(
            SelectKBest(score, k=k),
            SelectPercentile(score, percentile=60),
            VarianceThreshold(draw.one(0.0, 1e-6)),
            SelectFromModel(linear, max_features=k, threshold=-np.inf),
            RFE(linear, n_features_to_select=max(k, 1)),
            GenericUnivariateSelect(score, mode="k_best", param=k),
        )

    def _other(self, width: int) -> Any:
        """What cannot be folded today, or is a map of its own kind."""
        draw = self.draw
        return draw.one(
            "passthrough",
            None,
            SimpleImputer(),
            PolynomialFeatures(draw.one(1, 2), include_bias=draw.maybe(0.5)),
            Normalizer(draw.one("l1", "l2", "max")),
            PowerTransformer(),
            QuantileTransformer(n_quantiles=10),
            Binarizer(),
            IncrementalPCA(draw.whole(1, width)),
            FastICA(draw.whole(1, width), random_state=0, max_iter=50),
            KernelPCA(draw.whole(1, width), kernel="rbf"),
            FeatureAgglomeration(draw.whole(1, width)),
            KMeans(2, n_init=1, random_state=0),
            AdditiveChi2Sampler(),
            RBFSampler(n_components=5, random_state=0),
            Nystroem(n_components=5, random_state=0),
        )

    def _part(self, X: Any, depth: int) -> Any:
        """Of a union or of columns."""
        draw = self.draw
        if draw.maybe(0.3):
            return draw.one("drop", "passthrough")
        part = self._transformer(X, depth + 1)
        return "passthrough" if part is None else part

    def _column_transformer(self, X: Any, width: int, depth: int) -> Any:
        draw = self.draw
        by_position = isinstance(X, list)
        X = np.asarray(X) if by_position else X
        names = None if not hasattr(X, "columns") else list(X.columns)
        parts = []
        for k in range(draw.whole(1, 3)):
            columns, positions = self._columns(width, names)
            some = X.iloc[:, positions] if names is not None else X[:, positions]
            part = self._part(some, depth) if positions else StandardScaler()
            parts.append((draw.one(f"part{k}", f"{k} passthrough", f"drop {k}"), part, columns))
        remainder = draw.one("drop", "passthrough", "passthrough", StandardScaler())
        return ColumnTransformer(
            parts,
            remainder=remainder,
            transformer_weights=self._weights(parts),
            sparse_threshold=draw.one(0.3, 0.0, 1.0),
        )

    def _columns(self, width: int, names: list[str] | None) -> tuple[Any, list[int]]:
        """A selection in some notation, and the positions that it means."""
        draw = self.draw
        positions = draw.some(list(range(width)), least=0 if draw.maybe(0.05) else 1)
        kind = draw.one(
            "list",
            "negative",
            "mask",
            "array",
            "slice",
            "callable",
            *(["names", "name slice", "pattern"] * 2 if names else []),
        )
        if kind == "negative":
            return [p - width for p in positions], positions
        if kind == "mask":
            mask = [p in positions for p in range(width)]
            return draw.one(mask, np.array(mask)), [p for p in range(width) if mask[p]]
        if kind == "array":
            return np.array(positions, dtype=draw.one(np.int64, np.int32)), positions
        if kind in ("slice", "name slice"):
            low = draw.whole(0, width - 1)
            high = draw.whole(low, width - 1)
            if kind == "name slice" and names:
                return slice(names[low], names[high]), list(range(low, high + 1))  # names include the last
            bounds = draw.one(slice(low, high + 1), slice(low - width, None if high + 1 == width else high + 1 - width))
            return bounds, list(range(low, high + 1))
        if kind == "callable":
            return even_columns, list(range(0, width, 2))
        if kind == "pattern" and names:
            return make_column_selector(pattern="1|2"), [
                p for p, name in enumerate(names) if "1" in name or "2" in name
            ]
        if kind == "names" and names:
            return [names[p] for p in positions], positions
        return positions, positions

    def _weights(self, parts: list[Any]) -> dict[str, float] | None:
        draw = self.draw
        if draw.maybe(0.6):
            return None
        return {part[0]: draw.one(0.5, 2.0, -1.0, 1e-3, 0.0) for part in parts if draw.maybe(0.7)}
