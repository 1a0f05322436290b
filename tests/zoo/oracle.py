"""Decision values and probabilities in extended precision, as the oracle for all values and bounds.

It uses a model's parameters as read, and none of the package's arithmetic. Each result has a slack, which bounds its
distance from the exact value. Results are NaN for a row without an answer, such as one that the source refuses.
"""

from __future__ import annotations

from itertools import combinations_with_replacement
from math import factorial, prod
from typing import Any

import numpy as np

from approxsvm.ir.cosine_model import CosineModel
from approxsvm.ir.ensembles.ensemble import Ensemble
from approxsvm.ir.kernel_model import KernelModel
from approxsvm.ir.outputs import GaussianDensity, MembersMean
from approxsvm.ir.taylor_model import TaylorModel
from zoo import class_numbers
from zoo.balls import Ball, Extended, quiet
from zoo.mapped_rows import mapped


@quiet
def decision_values(model: Any, rows: Any) -> tuple[Any, Any]:
    """Return values of shape (n, n_decisions), in the model's order and sign, and their slack."""
    found = values_of(model, rows)
    return found.mid, found.rad


@quiet
def probabilities(model: Any, rows: Any) -> tuple[Any, Any]:
    """Return probabilities, in the order of the model's labels, and their slack; (None, None) without probabilities.

    For a one-class model, the columns are (normal, outlier); for a Gaussian process regressor, the result contains
    standard deviations.
    """
    found = probabilities_of(model, rows)
    return (None, None) if found is None else (found.mid, found.rad)


@quiet
def holds(model: Any, rows: Any, values: Any, bounds: Any) -> Any:
    """Return a mask of rows whose values, shape (n, n_decisions) or (n,), are all within bounds of the exact ones."""
    exact = values_of(model, rows)
    values, bounds = (np.reshape(numbers, exact.mid.shape) for numbers in (values, bounds))
    return (np.abs(values - exact.mid) <= bounds + exact.rad).all(axis=1)


@quiet
def answers(model: Any, rows: Any) -> dict[str, Any]:
    """Return the results of scikit-learn's methods, in its order and sign: labels as an array, numbers as balls."""
    found: dict[str, Any]
    values = values_of(model, rows)
    if isinstance(model.outputs.probability, GaussianDensity):
        logs = values.log() + 0.5 * model.n_features * np.log(Extended(model.gamma) / np.pi)
        return {"score_samples": logs}
    if model.task == "regression":
        return {"predict": values}
    if model.task == "one_class":
        least = 0.0 if model.outputs.threshold is None else np.nextafter(model.outputs.threshold, -np.inf)
        labels = np.where(values.mid[:, 0] > least, 1, -1)
        found = {"predict": labels, "decision_function": values, "score_samples": values - model.intercept}
        shares = probabilities_of(model, rows)
        return found if shares is None else found | {"predict_proba": shares}
    shares = probabilities_of(model, rows)
    found = {"predict": _labels(model, rows, values, shares)}
    if values.mid.shape[1] > 0:
        found["decision_function"] = class_numbers.as_decision_function(model, values)
    if shares is not None:
        found["predict_proba"] = shares[:, np.argsort(model.labels, kind="stable")]
    return found


def _labels(model: Any, rows: Any, values: Ball, shares: Ball | None) -> Any:
    """Return labels, with a column for each of several targets, from the rows' values and probabilities."""
    outputs, labels = model.outputs, model.labels
    if not isinstance(model, Ensemble) or model.n_decisions > 0:
        return labels[class_numbers.predicted_class(outputs, values, shares)]
    if not (model.of_targets or model.counts_votes):
        return labels[class_numbers.by_numbers(outputs, class_numbers.known(shares).mid)]
    given = [answers(member, rows)["predict"] for member in model.members]
    if model.of_targets:
        return np.column_stack([labels[(one.mid > 0).astype(int)] if isinstance(one, Ball) else one for one in given])
    columns = np.hstack([one[:, np.newaxis] == member.labels for member, one in zip(model.members, given, strict=True)])
    return labels[(columns @ model.combination.weights.T).argmax(axis=1)]


# --- decision values


def values_of(model: Any, rows: Any) -> Ball:
    """Return decision values of a model or an ensemble, with no columns if it has none."""
    if not isinstance(model, Ensemble):
        return values_at(model, mapped(model.input_map, rows))
    if model.n_decisions == 0:
        return Ball.of(np.zeros((rows.shape[0], 0)))
    values = _combined(model, rows)
    return values.where(~np.isnan(values.mid).any(axis=1, keepdims=True), np.nan)


def values_at(model: Any, x: Ball) -> Ball:
    """Return a single model's decision values at mapped rows."""
    if isinstance(model, TaylorModel):
        return _taylor(model, x) + model.intercept
    if isinstance(model, CosineModel):
        return (x @ model.frequencies.T + model.phases).cos() @ model.coef.T + model.intercept
    assert isinstance(model, KernelModel)
    vectors = model.dense_support_vectors(0, model.n_sv)
    if x.mid.shape[1] > model.n_features:  # sparse rows may have columns that are 0 in every support vector
        vectors = np.pad(vectors, ((0, 0), (0, x.mid.shape[1] - model.n_features)))
    coef = np.array([model.coefficients(k) for k in range(model.n_decisions)]).reshape(model.n_decisions, model.n_sv)
    return _KERNELS[model.kernel](model, x, vectors) @ coef.T + model.intercept


def _gaussian(model: KernelModel, x: Ball, vectors: Any) -> Ball:
    extended = Ball.of(vectors).mid
    sq_distance = np.array([((extended - z) ** 2).sum(axis=1) for z in x.mid]).reshape(len(x.mid), len(vectors))
    rad = 0
    if x.rad.any():
        moved = Ball.of(x.rad).norms().mid
        rad = 2 * np.sqrt(sq_distance) * moved + moved**2
    return (Ball.rounded(sq_distance, rad, x.mid.shape[1] + 3.0) * -model.gamma).exp()


def _products(model: KernelModel, x: Ball, vectors: Any) -> Ball:
    return (x @ vectors.T) * model.gamma + model.coef0


_KERNELS: dict[str, Any] = {
    "gaussian": _gaussian,
    "polynomial": lambda model, x, vectors: _products(model, x, vectors) ** model.degree,
    "sigmoid": lambda model, x, vectors: _products(model, x, vectors).tanh(),
}


def _taylor(model: TaylorModel, x: Ball) -> Ball:
    scaled = x * (Ball.of(2.0) * model.gamma).sqrt()
    products = {(): ((x * x).sum() * -model.gamma).exp()}
    total = Ball.of(np.zeros((len(x.mid), 1)))
    for k, weights in enumerate(model.weights):
        for weight, factors in zip(weights, combinations_with_replacement(range(model.n_features), k), strict=True):
            if factors:
                products[factors] = products[factors[:-1]] * scaled[:, factors[-1:]]
            alpha = prod(factorial(factors.count(i)) for i in set(factors))
            total = total + products[factors] * (Ball.of(weight) / Ball.of(float(alpha)).sqrt())
    return total


def _combined(model: Ensemble, rows: Any) -> Ball:
    """Return the members' numbers, either as columns or as weighted sums."""
    columns = Ball.join([_columns(member, rows) for member in model.members])
    weights, addends = model.combination.weights, model.combination.addends
    return columns if weights is None else columns @ weights.T + addends


def _columns(member: Any, rows: Any) -> Ball:
    """Return a member's values, scores or probabilities."""
    if member.task == "regression":
        return values_of(member, rows)
    found = probabilities_of(member, rows)
    return class_numbers.scores(member.outputs, values_of(member, rows)) if found is None else found


# --- probabilities


def probabilities_of(model: Any, rows: Any) -> Ball | None:
    """Return the probabilities from a model or an ensemble, or None if it has none."""
    head = model.outputs.probability
    if isinstance(head, MembersMean):
        return _combined(model, rows) / head.total
    if not class_numbers.has_probabilities(head):
        return None
    return class_numbers.probabilities(model.outputs, values_of(model, rows))
