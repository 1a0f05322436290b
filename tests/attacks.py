"""Random models with adversarial rows; checks against the oracle that bounds hold and guaranteed labels are correct."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from artifact_changes import changed, content
from conftest import EVERYTHING, random_model
from edge_cases import awkward_coefficients, awkward_vectors
from scipy.sparse import csr_array
from zoo import oracle
from zoo.balls import Ball

import approxsvm
from approxsvm import Artifact, KernelModel, _native
from approxsvm.expansion.certificate import least_tolerance
from approxsvm.runtime.evaluator import LABELS, STAGES

TARGETS = _native.runnable_targets()
DEFINITION = STAGES.index("definition")
N_UNSEEN = 3
# Values of 2 gamma ||z - center||^2: at cell boundaries, where factors vanish, and between such values.
TIGHT_S = (0.0, 2.0**-60, 1e-6, 1e-3, 0.1, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 9.0, 20.0, 60.0, 173.9, 174.66, 175.0, 300.0)
VECTORS = ("normal", "sparse", "integers", "zeros", "duplicates", "pairs")
COEFFICIENTS = ("normal", "ten decades", "300 decades", "at the limit", "tiny")


@dataclass
class Tally:
    """Number of checked answers, and largest ratio error / bound for each combination of target, degree and stage."""

    n_answers: int = 0
    worst: dict[tuple[str, int, str], float] = field(default_factory=dict)

    def add(self, target: str, degree: int, stages: Any, ratios: Any) -> None:
        self.n_answers += len(stages)
        for stage in np.unique(stages):
            key = target, degree, STAGES[stage]
            self.worst[key] = max(self.worst.get(key, 0.0), float(ratios[stages == stage].max()))

    def __iadd__(self, other: Tally) -> Tally:
        self.n_answers += other.n_answers
        self.worst |= {key: max(self.worst.get(key, 0.0), ratio) for key, ratio in other.worst.items()}
        return self


def truth_of(model: KernelModel, X: Any) -> Ball:
    """Return a single-function model's value at each row, with the oracle's slack."""
    return Ball(*oracle.decision_values(model, X))[:, 0]


def sum_moduli(model: KernelModel) -> float:
    return float(np.abs(model.coefficients(0)).sum())


def judge(
    model: KernelModel, artifact: Artifact, target: str, answers: Any, truth: Ball, tally: Tally, what: str = ""
) -> None:
    """Assert that bounds hold, that settled rows have the right sign, and that every guaranteed label is correct."""
    (values, bounds, stages), exact, slack = answers, truth.mid, truth.rad
    error = np.abs(values - exact)
    broken = ~(error <= bounds + slack)
    what = f"{artifact.mode}, {target}, {what}"
    if broken.any():
        i = int(np.flatnonzero(broken)[np.argmax((error - bounds)[broken])])
        raise AssertionError(
            f"{what}, row {i}, stage {STAGES[stages[i]]}: {values[i]!r} is {float(error[i])!r} from the exact "
            f"{exact[i]!r}, but the bound is {bounds[i]!r} ({broken.sum()} rows in all)"
        )
    tally.add(target, artifact.header["degree"], stages, (error - slack).clip(0) / np.maximum(bounds, 1e-320))
    if artifact.mode == "approximate":
        assert ((values > 0) == (exact > 0))[np.abs(values) > bounds].all(), what
        return
    tolerance = artifact.header["tolerance"]
    assert (bounds[stages < DEFINITION] <= tolerance).all(), what
    assert (error <= tolerance + slack).all(), what
    if model.task != "regression":
        assert (np.abs(values) > bounds)[stages < DEFINITION].all(), what
        promised = np.abs(exact) > 1e-10 * sum_moduli(model) + 2.0**-1000
        assert ((values > 0) == (exact > 0))[promised].all(), what


def judge_labels(model: KernelModel, artifact: Artifact, evaluate: Any, arguments: Any, exact: Any) -> None:
    """Assert that labels requested without values, which cheaper stages may settle, are correct where guaranteed."""
    if model.task == "regression" or artifact.mode == "approximate":
        return
    promised = np.abs(exact) > 1e-10 * sum_moduli(model) + 2.0**-1000
    assert ((evaluate(*arguments, LABELS) == 0) == (exact > 0))[promised].all(), artifact.mode


def judge_artifact(model: KernelModel, artifact: Artifact, X: Any, seed: int) -> Tally:
    """Check rows in float64, in float32, and in CSR with unknown columns, with many and with few rows per call."""
    rng = np.random.default_rng([seed, 2])
    with np.errstate(over="ignore"):
        narrow = X.astype(np.float32)
    narrow = narrow[np.isfinite(narrow).all(axis=1)]
    reach = 10.0 ** rng.uniform(-3, 1, (len(X), 1)) / np.sqrt(2 * model.gamma)
    unseen = rng.normal(size=(len(X), N_UNSEEN)) * reach * (rng.random((len(X), 1)) < 0.5)
    sparse = csr_array(np.hstack([X, unseen]))
    truths, with_unseen = (truth_of(model, X), truth_of(model, narrow)), truth_of(model, sparse)
    plain = csr_array(X)
    tally = Tally()
    for target in TARGETS:
        predictor = _native.Predictor(artifact.data, target)
        for rows, truth in zip((X, narrow), truths, strict=True):
            for values in ("settled", "promised"):
                judge(model, artifact, target, predictor.dense(rows, 1, EVERYTHING, values=values), truth, tally)
            judge_labels(model, artifact, predictor.dense, (rows, 1), truth.mid)
            few = predictor.dense(rows[:4], 1, EVERYTHING, values="settled")
            judge(model, artifact, target, few, truth[:4], tally)
            first = few[0][0]
            assert predictor.one(rows[0]) == (first if model.task == "regression" else first <= 0)
        for csr, truth in ((plain, truths[0]), (sparse, with_unseen)):
            for values in ("settled", "promised"):
                answers = predictor.csr(csr.indptr, csr.indices, csr.data, 2, EVERYTHING, values=values)
                judge(model, artifact, target, answers, truth, tally)
            judge_labels(model, artifact, predictor.csr, (csr.indptr, csr.indices, csr.data, 2), truth.mid)
    return tally


def routed_at_random(artifact: Artifact, seed: int) -> Artifact:
    """Return the artifact changed so that rows are routed to arbitrary centers."""
    rng = np.random.default_rng([seed, 3])
    router = bytearray(artifact.section("router"))
    n_groups, n_panels = struct.unpack_from("<2I", router)
    first = 4 * (3 + n_groups)
    members = rng.integers(0, artifact.n_centers, 16 * n_panels).astype("<u4").tobytes()
    router[first : first + len(members)] = members
    panels = -(-(first + len(members)) // 64) * 64
    n_numbers = (len(router) - panels) // 4
    numbers = rng.normal(size=n_numbers) * 10.0 ** rng.uniform(-3, 38, n_numbers)
    router[panels:] = numbers.clip(-3.4e38, 3.4e38).astype("<f4").tobytes()
    return Artifact(changed(content({"router": bytes(router)}), artifact))


# --- random models and rows
# --------------------------------------------------------------------------------------------


def worst_directions(model: KernelModel, center: Any) -> list[Any]:
    """Return unit vectors that point from a center in the directions in which terms of degrees 2 to 4 are largest."""
    if model.n_sv == 0 or model.n_features > 500:
        return [np.eye(model.n_features)[0], np.full(model.n_features, model.n_features**-0.5)]
    with np.errstate(all="ignore"):
        y = (model.dense_support_vectors(0, model.n_sv) - center) * np.sqrt(2 * model.gamma)
        w = model.coefficients(0) * np.exp(-0.5 * (y * y).sum(axis=1))
        w = w / max(np.abs(w).max(initial=0.0), 1e-300)
        gram = y @ y.T
        forms = [y.T @ (w[:, None] * y)]
        forms += [(w[:, None] * y).T @ gram ** (k - 1) @ (w[:, None] * y) for k in (3, 4)]
        vectors = [np.linalg.eigh(form)[1] for form in forms if np.isfinite(form).all() and form.any()]
    return [e[:, k] for e in vectors for k in {0, e.shape[1] - 1}] or [np.eye(model.n_features)[0]]


def adversarial_rows(model: KernelModel, artifact: Artifact, seed: int) -> Any:
    rng = np.random.default_rng([seed, 4])
    d, centers, varying = model.n_features, artifact.centers(), artifact.numbers("varying")
    vectors = model.dense_support_vectors(0, model.n_sv)
    rows = [vectors[:8], vectors[:8] * (1 + 1e-7 * rng.normal(size=(min(8, model.n_sv), 1)))]
    for center in centers[rng.permutation(len(centers))[:3]].astype(float):
        directions = [*worst_directions(model, center)[:4], rng.normal(size=d) / np.sqrt(d)]
        radii = np.sqrt(np.array(TIGHT_S) / (2 * model.gamma))
        rows.append(np.array([center + sign * r * v for v in directions for r in radii for sign in (1, -1)]))
        if len(varying):  # the same rows on the center's slice, and slightly off it
            on_slice = np.tile(center, (len(rows[-1]), 1))
            on_slice[:, varying] = rows[-1][:, varying]
            off = 10.0 ** rng.uniform(-14, 0, (len(on_slice), 1)) / np.sqrt(2 * model.gamma)
            rows += [on_slice, on_slice + off * rng.normal(size=on_slice.shape)]
    rows.append(np.outer(10.0 ** rng.uniform(-3, 6, 5), rng.normal(size=d)))
    rows.append(np.outer([1e30, -1e300, 1e-310, 3.4e38, 0.0], np.ones(d)))
    return np.concatenate(rows)


def random_attack(
    seed: int,
    n_sv: int,
    n_features: int,
    scaled_gamma: float,
    offset: float,
    vectors: str,
    coefficients: str,
    degree: int,
    n_centers: int,
    *,
    n_categories: int = 0,
    balanced: bool,
    precise: bool,
) -> Tally:
    """Check a random model on adversarial rows; `precise` requests the last digits, so that late stages answer.

    Each category adds a feature and splits the space into slices.
    """
    rng = np.random.default_rng(seed)
    coef = awkward_coefficients(rng, n_sv, coefficients)
    if balanced:  # the sums cancel, as in a trained model
        coef[n_sv // 2 :] = -coef[: n_sv - n_sv // 2]
    x = awkward_vectors(rng, n_sv, n_features, vectors) + offset
    X = x[rng.integers(0, n_sv, 80 if n_categories else 60)]
    X = X + rng.normal(size=X.shape)
    if n_categories:
        levels = rng.normal(size=(2, n_categories)) * 10.0 ** rng.uniform(-2, 1)
        x, X = (
            np.hstack([np.where(np.eye(n_categories)[rng.integers(0, n_categories, len(part))], *levels), part])
            for part in (x, X)
        )
        n_features += n_categories
    model = random_model(
        0,
        n_sv=n_sv,
        n_features=n_features,
        task="regression" if precise else "classification",
        support_vectors=x,
        dual_coef=coef.reshape(1, -1),
        intercept=np.array([0.1 * rng.normal() * np.abs(coef).max()]),
        gamma=10.0**scaled_gamma / n_features,
    )
    tolerance = 10.0 ** rng.uniform(0, 7) * least_tolerance(model) if precise else None
    tally = Tally()
    for mode in ("approximate", "certified"):
        promise = {"tolerance": tolerance} if mode == "certified" else {}
        options: dict[str, Any] = {"mode": mode, "degree": degree, "n_centers": n_centers, **promise}
        artifact = approxsvm.compile(model, X, **options).artifact
        rows = adversarial_rows(model, artifact, seed)
        tally += judge_artifact(model, artifact, rows, seed)
        if artifact.n_centers > 1:
            tally += judge_artifact(model, routed_at_random(artifact, seed), rows, seed)
    return tally
