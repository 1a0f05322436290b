"""The core's outputs, compared with the oracle's for values anywhere within their bounds, and corrupted sections."""

from __future__ import annotations

import numpy as np
import pytest
from test_class_outputs import CORE, some_heads
from zoo import class_numbers
from zoo.balls import Ball

from approxsvm import _native
from approxsvm.artifact.outputs import pack_outputs
from approxsvm.errors import ArtifactError, InputError
from approxsvm.ir.outputs import (
    DensityMarks,
    IsotonicCalibrator,
    LaplaceNoise,
    OneVsRestCalibration,
    Outputs,
    PairwiseSigmoid,
    SigmoidCalibrator,
    TemperatureCalibration,
)

NAN, INF = float("nan"), float("inf")


def n_pairs(n_classes):
    return n_classes * (n_classes - 1) // 2


def heads_of(n_classes):
    """Yield every label rule with every kind of probabilities for this number of classes."""
    for head in some_heads(n_classes):
        yield Outputs(head, "votes" if isinstance(head, DensityMarks) else "probability")
    yield Outputs()
    yield Outputs(label_rule="scores", decision_shape="ovr")


def awkward_values(n_classes, rng, n_rows=300):
    """Return random values of every size, including ties and zeros; the second half also contains NaN and infinity."""
    values = rng.normal(size=(2 * n_rows, n_pairs(n_classes)))
    values[::3] = np.round(values[::3])
    values[1::6] *= 10.0 ** rng.integers(-12, 12, size=(len(values[1::6]), 1))
    values[::17] = 0.0
    strange = rng.random(values.shape) < 0.1
    strange[:n_rows] = False
    values[strange] = rng.choice([NAN, INF, -INF, 1e308, -1e308, 5e-324], size=strange.sum())
    return values


def awkward_bounds(values, rng):
    bounds = np.abs(rng.normal(size=values.shape)) * rng.choice([0.0, 1e-9, 1e-3, 0.5], size=(len(values), 1))
    kept = rng.random(values.shape) < 0.9
    return np.where(kept, bounds, rng.choice([NAN, INF, -1.0, 0.0], size=values.shape))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("n_classes", [2, 3, 5, 12])
def test_the_core_says_what_the_oracle_says(n_classes):
    rng = np.random.default_rng(n_classes)
    values = awkward_values(n_classes, rng)
    bounds = awkward_bounds(values, rng)
    finite = np.isfinite(values).all(axis=1) & (np.abs(values) < 1e300).all(axis=1)
    exact = Ball.of(values[finite])
    scores = class_numbers.one_vs_rest_scores(exact).mid
    np.testing.assert_allclose(CORE.one_vs_rest_scores(values)[finite], scores.astype(float), rtol=0, atol=1e-14)
    for outputs in heads_of(n_classes):
        winners, certified = CORE.certified_class(outputs, values, bounds)
        np.testing.assert_array_equal(winners, CORE.predicted_class(outputs, values))
        assert ((winners >= 0) & (winners < n_classes)).all()
        numbers = scores
        if outputs.probability is not None:
            numbers = class_numbers.probabilities(outputs, exact).mid
            ours = CORE.probabilities(outputs.probability, values[finite])
            np.testing.assert_allclose(ours, numbers.astype(float), rtol=0, atol=1e-13)
            lowest, highest = CORE.probability_interval(outputs.probability, values, bounds)
            assert ((lowest >= 0) & (lowest <= highest) & (highest <= 1)).all()
        top = np.sort(numbers, axis=1)
        clear = (top[:, -1] - top[:, -2] > 1e-12) | (outputs.label_rule == "votes")
        expected = class_numbers.predicted_class(outputs, exact)
        np.testing.assert_array_equal(winners[finite][clear], expected[clear])
        assert not certified[~np.isfinite(values).any(axis=1)].any()


def difficult_heads(n_classes, rng):
    """Yield heads for which rounding matters: canceling terms, steps, saturated probabilities, temperatures near 0."""
    n, pairs = 1 if n_classes == 2 else n_classes, n_pairs(n_classes)
    size = 10.0 ** rng.integers(0, 12)
    shift = rng.normal(size=max(n, pairs))
    cancelling = [SigmoidCalibrator(-size, size * shift[k]) for k in range(n)]
    yield OneVsRestCalibration(tuple(cancelling), positive=int(rng.integers(2)))
    yield OneVsRestCalibration(tuple(SigmoidCalibrator(rng.normal() * 40, rng.normal() * 40) for _ in range(n)))
    yield PairwiseSigmoid(np.full(pairs, -size), size * shift[:pairs], couple_two_classes=bool(rng.integers(2)))
    knots = [np.sort(np.round(rng.normal(size=6), 1)) + 1e-9 * np.arange(6) for _ in range(n)]
    heights = [np.sort(np.round(rng.uniform(size=6), 1)) * 10.0 ** -rng.integers(0, 18) for _ in range(n)]
    isotonic = tuple(IsotonicCalibrator(k, h) for k, h in zip(knots, heights, strict=True))
    shape = "ovo" if rng.integers(2) else "ovr"
    yield OneVsRestCalibration(isotonic, positive=int(rng.integers(2)), decision_shape=shape)
    mixed = tuple(isotonic[k] if k % 2 else cancelling[k] for k in range(n))
    yield OneVsRestCalibration(mixed, decision_shape=shape)
    yield TemperatureCalibration(float(10.0 ** rng.integers(-3, 8)), positive=int(rng.integers(2)))
    if n_classes == 2:
        yield DensityMarks(np.sort(np.round(rng.normal(size=10), 1)))


def exact_values(values, bounds, outputs, rng):
    """Return possible values within the bounds: endpoints, interior points, and steps."""
    share = rng.choice([-1.0, -0.999, -0.5, 0.0, 0.5, 0.999, 1.0], size=values.shape)
    exact = values + share * bounds
    steps = [0.0]
    if isinstance(outputs.probability, DensityMarks):
        steps += outputs.probability.marks.tolist()
    if isinstance(outputs.probability, OneVsRestCalibration):
        for c in outputs.probability.calibrators:
            steps += c.knots.tolist() if isinstance(c, IsotonicCalibrator) else [-c.intercept / (c.slope or 1.0)]
    picked = rng.choice([*steps, *np.nextafter(steps, INF)], size=values.shape)
    exact = np.where(rng.random(values.shape) < 0.2, picked, exact)
    return np.clip(exact, values - bounds, values + bounds)


@pytest.mark.slow
@pytest.mark.attack
@pytest.mark.parametrize("n_classes", [2, 3, 7])
def test_no_exact_value_within_the_bounds_breaks_what_is_certified(n_classes):
    rng = np.random.default_rng(100 + n_classes)
    n_certified = 0
    for _ in range(4):
        values = rng.normal(size=(200, n_pairs(n_classes))) * 10.0 ** rng.integers(-3, 3, size=(200, 1))
        values[::5] = np.round(values[::5], 1)
        bounds = np.abs(rng.normal(size=values.shape)) * 10.0 ** rng.integers(-16, 2, size=(200, 1))
        bounds[::11] = 0.0
        every = [Outputs(), Outputs(label_rule="scores")]
        for head in difficult_heads(n_classes, rng):
            every.append(Outputs(head, "votes" if isinstance(head, DensityMarks) else "probability"))
        for outputs in every:
            winners, certified = CORE.certified_class(outputs, values, bounds)
            n_certified += certified.sum()
            scores = CORE.one_vs_rest_interval(values, bounds)
            if outputs.probability is not None:
                lowest, highest = CORE.probability_interval(outputs.probability, values, bounds)
            for _ in range(10):
                exact = exact_values(values, bounds, outputs, rng)
                np.testing.assert_array_equal(CORE.predicted_class(outputs, exact)[certified], winners[certified])
                found = CORE.one_vs_rest_scores(exact)
                assert ((scores[0] <= found) & (found <= scores[1])).all()
                if outputs.probability is not None:
                    found = CORE.probabilities(outputs.probability, exact)
                    assert ((lowest <= found) & (found <= highest)).all(), outputs
    assert n_certified > 300


def test_shares_that_are_tiny_beside_another_are_bounded():
    # The score of class 1 ranges from -1/3 to 7/3, and its calibrated share from 1e-20 to 1; other shares are 1e-20.
    small = SigmoidCalibrator(0.0, 46.0)
    head = OneVsRestCalibration((small, SigmoidCalibrator(-34.5, 34.5), small))
    values, unknown = np.array([[1e6, 0.0, -1e6]]), np.full((1, 3), INF)  # class 1 loses both of its pairs
    lowest, highest = CORE.probability_interval(head, values, unknown)
    found = CORE.probabilities(head, values)
    np.testing.assert_allclose(found, np.full((1, 3), 1 / 3), rtol=1e-4)
    assert holds((lowest, highest), Ball.of(found))
    assert not CORE.certified_class(Outputs(head, "probability"), values, unknown)[1].any()


def holds(interval, exact):
    """Return whether an interval from the core contains the exact numbers or, for balls, intersects them."""
    lowest, highest = interval
    low, high = exact.ends
    return ((lowest <= high) & (low <= highest)).all()


@pytest.mark.attack
@pytest.mark.parametrize("n_classes", [3, 5])
def test_intervals_hold_over_the_real_numbers(n_classes):
    rng = np.random.default_rng(n_classes)
    for _ in range(60):
        size = 10.0 ** rng.integers(0, 12)
        values = rng.normal(size=(1, n_pairs(n_classes))) + size * rng.integers(-1, 2, size=(1, n_pairs(n_classes)))
        bounds, exact = np.zeros_like(values), Ball.of(values)
        assert holds(CORE.one_vs_rest_interval(values, bounds), class_numbers.one_vs_rest_scores(exact))
        steep = 10.0 ** rng.integers(0, 12, size=n_classes)
        scores = CORE.one_vs_rest_scores(values)[0]  # the exponents cancel there
        sigmoids = [SigmoidCalibrator(-a, a * score) for a, score in zip(steep, scores, strict=True)]
        for head in (OneVsRestCalibration(tuple(sigmoids)), TemperatureCalibration(float(steep[0]))):
            shares = class_numbers.probabilities(Outputs(head, "probability"), exact)
            assert holds(CORE.probability_interval(head, values, bounds), shares), head


@pytest.mark.attack
def test_sigmoids_of_two_classes_hold_over_the_real_numbers():
    rng = np.random.default_rng(0)
    for _ in range(200):
        a, f = -(10.0 ** rng.integers(0, 15)), rng.normal(size=(1, 1))
        for head in (
            PairwiseSigmoid(np.array([a]), -a * f[0]),
            OneVsRestCalibration((SigmoidCalibrator(a, -a * f[0, 0]),), positive=0),
        ):
            shares = class_numbers.probabilities(Outputs(head, "probability"), Ball.of(f))
            assert holds(CORE.probability_interval(head, f, np.zeros((1, 1))), shares), head


def test_shares_whose_sum_may_vanish_may_be_anything():
    ramp = IsotonicCalibrator(np.array([-10.0, 10.0]), np.array([0.0, 1.0]))
    head = OneVsRestCalibration((ramp, ramp, ramp), decision_shape="ovo")
    values, bounds = np.array([[0.0, -20.0, -20.0]]), np.array([[15.0, 0.0, 0.0]])
    lowest, highest = CORE.probability_interval(head, values, bounds)
    np.testing.assert_array_equal([lowest, highest], [np.zeros((1, 3)), np.ones((1, 3))])
    np.testing.assert_array_equal(CORE.probabilities(head, values - bounds), np.full((1, 3), 1 / 3))
    values[0, 0], bounds[0, 0] = 5.0, 1.0
    lowest, highest = CORE.probability_interval(head, values, bounds)
    np.testing.assert_allclose([lowest[0], highest[0]], [[1, 0, 0], [1, 0, 0]], atol=1e-14)


def test_what_a_model_does_not_have_is_refused():
    regression = _native.Outputs(pack_outputs(Outputs(LaplaceNoise(0.5))), 1, 0)
    value = np.zeros((1, 1))
    for call in (regression.predicted_class, regression.one_vs_rest_scores):
        with pytest.raises(InputError, match="no classes"):
            call(value)
    for outputs in (regression, _native.Outputs(None, 0, 2)):
        with pytest.raises(InputError, match="no probabilities"):
            outputs.probabilities(value)
    several = _native.Outputs(None, 0, 4)
    with pytest.raises(InputError, match=r"\(n_rows, 6\)"):
        several.predicted_class(np.zeros((2, 5)))
    with pytest.raises(InputError, match="one bound for each"):
        several.certified_class(np.zeros((2, 6)), np.zeros((1, 6)))
    for task, n_labels in ((0, 1), (1, 2), (2, 2), (3, 0)):
        with pytest.raises(ArtifactError):
            _native.Outputs(None, task, n_labels)
    assert several.predicted_class(np.empty((0, 6))).shape == (0,)


# --- the section
