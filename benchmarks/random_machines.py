"""Random machines: the last steps of pipelines, those that readers take and some that they refuse."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.sparse import issparse
from sklearn import linear_model as linear
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor, kernels
from sklearn.kernel_approximation import Nystroem, RBFSampler, SkewedChi2Sampler
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC, SVR, LinearSVC, LinearSVR, NuSVC, NuSVR, OneClassSVM

from approxsvm.features import TaylorFeatures
from benchmarks.random_data import Draw

Task = Literal["classification", "regression", "one_class"]
_MAX_ITER = 3000


@dataclass(frozen=True, eq=False)
class Problem:
    """What is to be predicted."""

    task: Task
    y: Any  # labels or values; none of a one-class machine
    has_several_targets: bool = False  # of a regression

    @property
    def has_positions(self) -> bool:
        """Whether labels are text, or positions themselves.

        Temperature scaling takes others for positions all the same, and scikit-learn then reads elsewhere in memory.
        """
        names = np.unique(self.y).tolist()
        return names == list(range(len(names))) or all(isinstance(name, str) for name in names)


def width_of(X: Any) -> int:
    """Number of columns."""
    return int(X.shape[1]) if hasattr(X, "shape") else len(X[0])


def half_rbf(X: Any, Y: Any) -> Any:
    """A callable kernel."""
    return 0.5 * rbf_kernel(X, Y, gamma=0.1)


class Machines:
    """Machines for one problem."""

    def __init__(self, draw: Draw, problem: Problem) -> None:
        self.draw, self.problem = draw, problem

    def final(self, X: Any) -> Any:
        """The last step, or the last two."""
        if self.draw.maybe(0.25) and self.problem.task != "one_class":
            return [("map", self._map(X)), ("machine", self._linear())]
        if self.problem.task == "classification":
            return self._classifier()
        if self.problem.task == "regression":
            return self._regressor(width_of(X))
        return self._one_class()

    def _map(self, X: Any) -> Any:
        draw = self.draw
        gamma = draw.one(0.1, 1.0, 0.01)
        n = draw.whole(2, 12)
        kernel = draw.one(*["rbf"] * 7, "poly", "linear", half_rbf)
        least = 0.0 if issparse(X) else float(np.min(np.asarray(X, dtype=np.float64)))
        return draw.one(
            Nystroem(
                kernel=kernel,
                gamma=draw.one(None, gamma) if isinstance(kernel, str) else None,
                n_components=n,
                random_state=0,
            ),
            Nystroem(gamma=gamma, n_components=n, random_state=0),
            Nystroem(kernel_params=draw.one({"gamma": gamma}, {}), n_components=n, random_state=0),
            RBFSampler(gamma=draw.one(gamma, "scale"), n_components=n, random_state=0),
            SkewedChi2Sampler(skewedness=draw.one(0.1, 1.0, 1e3) - min(least, 0.0), n_components=n, random_state=0),
            TaylorFeatures(gamma, draw.whole(1, 3)),
        )

    def _kernel(self) -> dict[str, Any]:
        draw = self.draw
        kernel = draw.one(*["rbf"] * 9, "linear", "linear", *["poly"] * 5, "sigmoid", half_rbf)
        return {"kernel": kernel, "degree": draw.whole(1, 4), "coef0": draw.one(0.0, 1.0, -0.5)}

    def _svm(self) -> dict[str, Any]:
        gamma = self.draw.one("scale", "scale", "auto", self.draw.power(-4, 1))
        return self._kernel() | {"gamma": gamma, "max_iter": _MAX_ITER, "shrinking": self.draw.maybe(0.8)}

    def _classifier(self) -> Any:
        draw = self.draw
        if draw.maybe(0.2):
            return draw.one(*[self._linear()] * 4, GaussianProcessClassifier(self._gp_kernel(1), optimizer=None))
        shape = draw.one("ovr", "ovr", "ovo")
        options = self._svm() | {
            "decision_function_shape": shape,
            "break_ties": draw.maybe(0.25),
            "probability": draw.maybe(0.2),
            "class_weight": draw.one(None, "balanced"),
            "random_state": 0,
        }
        return draw.one(SVC(C=draw.power(-2, 3), **options), NuSVC(nu=draw.one(0.1, 0.3), **options))

    def _regressor(self, width: int) -> Any:
        draw = self.draw
        svm, C = self._svm(), draw.power(-2, 3)
        epsilon = draw.one(0.1, 0.0, 1e-3, 1e9)
        kernel = self._kernel()
        machine = draw.one(
            SVR(C=C, epsilon=epsilon, **svm),
            NuSVR(C=C, **svm),
            KernelRidge(alpha=draw.power(-3, 1), gamma=draw.one(None, 0.1), **kernel),
            KernelRidge(alpha=1.0, gamma=draw.one(None, 0.1), **kernel),
            self._gaussian_process(width),
            self._gaussian_process(width),
            self._linear(),
        )
        takes_several = isinstance(machine, (KernelRidge, GaussianProcessRegressor))
        if self.problem.has_several_targets and not takes_several:
            return draw.one(KernelRidge(alpha=0.1, **kernel), self._gaussian_process(width), linear.Ridge())
        return machine

    def _gaussian_process(self, width: int) -> Any:
        draw = self.draw
        return GaussianProcessRegressor(
            None if draw.maybe(0.1) else self._gp_kernel(width),
            alpha=draw.one(1e-6, 1e-2),
            normalize_y=draw.maybe(0.5),
            optimizer=draw.one(None, None, "fmin_l_bfgs_b"),
            random_state=0,
        )

    def _gp_kernel(self, width: int) -> Any:
        """One RBF kernel among constants and noise, in any order; or whatever there is."""
        draw = self.draw
        length = draw.power(-1, 2)
        kernel = draw.one(
            *[kernels.RBF(length)] * 3,
            kernels.RBF([length]),
            kernels.RBF(length * np.arange(1.0, width + 1)),
            draw.one(
                kernels.Matern(length, nu=draw.one(0.5, 1.5, 2.5, np.inf)),
                kernels.RationalQuadratic(length),
                kernels.Exponentiation(kernels.RBF(length), 2),
                kernels.DotProduct(),
                kernels.RBF(length) + kernels.RBF(2.0),
            ),
        )
        for _ in range(draw.whole(0, 3)):
            other = draw.one(kernels.ConstantKernel(draw.power(-2, 2)), kernels.WhiteKernel(draw.power(-4, 0)))
            pair = draw.one((kernel, other), (other, kernel))
            products = isinstance(other, kernels.ConstantKernel) and draw.maybe(0.6)
            kernel = (kernels.Product if products or draw.maybe(0.05) else kernels.Sum)(*pair)
        return kernel

    def _one_class(self) -> Any:
        draw = self.draw
        if draw.maybe(0.1):
            return linear.SGDOneClassSVM(random_state=0)
        return OneClassSVM(nu=draw.one(0.1, 0.5, 0.9), **self._svm())

    def _linear(self) -> Any:
        draw = self.draw
        intercept = draw.maybe(0.8)
        if self.problem.task == "classification":
            return draw.one(
                LinearSVC(C=draw.power(-2, 1), fit_intercept=intercept, random_state=0),
                LinearSVC(loss="hinge", random_state=0),
                linear.LogisticRegression(fit_intercept=intercept),
                linear.LogisticRegressionCV(cv=2, Cs=2),
                linear.SGDClassifier(
                    loss=draw.one("hinge", "log_loss", "modified_huber", "squared_error"), random_state=0
                ),
                linear.SGDClassifier(average=True, random_state=0),
                linear.Perceptron(random_state=0),
                linear.RidgeClassifier(fit_intercept=intercept),
                linear.RidgeClassifierCV(),
            )
        if self.problem.has_several_targets:
            return draw.one(linear.Ridge(), linear.LinearRegression(), linear.MultiTaskLasso(0.01))
        return draw.one(
            linear.Ridge(fit_intercept=intercept),
            linear.RidgeCV(),
            linear.LinearRegression(),
            linear.ElasticNet(0.01),
            linear.Lasso(0.01),
            linear.LassoLars(0.01),
            LinearSVR(random_state=0),
            linear.BayesianRidge(),
            linear.HuberRegressor(),
            linear.QuantileRegressor(alpha=0.1),
            linear.SGDRegressor(random_state=0),
            linear.PoissonRegressor(),
            linear.GammaRegressor(),
            linear.TweedieRegressor(power=0, link="identity"),
        )
