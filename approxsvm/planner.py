"""Which expansion to compile: one center or many, of which degree, or none, by what a row will cost on average.

A candidate is judged by trying it: some of its centers are expanded and certified, and rows that were kept out of the
choice of the centers go through the real predictor, which counts how many of them each stage answers. The cost of a
row is then what the stages that it passes cost. Nothing is timed, so that the same input always gets the same plan.

The unit of cost is a multiply-add in a float32 microkernel at its full speed (a 16th of an AVX-512 instruction, half a
cycle). The constants were read off the tables of ``python -m benchmarks`` on a Zen 5 machine with AVX-512:

* a row of the exact engine costs n_sv (n_terms + 30): 30 for exp and the two sums, n_terms its features, or its
  non-zeros where those are few; half as much again where the support vectors do not fit a second-level cache of 1 MB;
* the way to a center costs 2 n_features for every point that is looked at, 3 sqrt(n_centers) of them on average;
* 3,000 for everything that is done once for a row: loading it, exp, the bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from approxsvm import assembly
from approxsvm.artifact import Artifact, Mode, n_monomials
from approxsvm.assembly import Expanded, Frame
from approxsvm.errors import InputError, UnsupportedModelError
from approxsvm.estimators import STAGES, estimator_for
from approxsvm.expansion.centers import Router, choose_centers, route
from approxsvm.expansion.certificate import expand_and_certify
from approxsvm.kernel_model import FloatArray, KernelModel

Effort = Literal["low", "normal", "high"]
# Numbers of centers that are tried, by the effort that is allowed.
EFFORTS: Final[dict[Effort, tuple[int, ...]]] = {
    "low": (1, 64),
    "normal": (1, 16, 64, 256, 1024),
    "high": (1, 16, 64, 256, 1024, 4096),
}
# Rows looked at, at most; and the share of them that judges the candidates instead of placing the centers.
MAX_SAMPLE_ROWS: Final = 40_000
HELD_OUT_SHARE: Final = 0.25
# Centers of a candidate that are tried, at most, and rows that try them.
_PROBED_CENTERS: Final = 64
_PROBE_ROWS: Final = 4_000
# Rows per center below which k-means would only find the rows again.
_ROWS_PER_CENTER: Final = 8
# An expansion may take this many coefficients about one center, and all of them together as many bytes.
MAX_COEFFICIENTS: Final = 1 << 16
MAX_EXPANSION_BYTES: Final = 64 << 20
# A plan must promise at most this share of the exact engine's cost, or the exact engine is the plan.
_WORTHWHILE: Final = 0.75
_ROW_COST: Final = 3_000.0
_KERNEL_COST: Final = 30.0
_CACHE_BYTES: Final = 1 << 20
# In an approximate artifact a center stands for at least this many rows, so that it discloses none of them.
_ROWS_BEHIND_A_CENTER: Final = 5


@dataclass(frozen=True)
class Limits:
    """What the user allows or forces.

    Attributes
    ----------
    degree, n_centers : int or "auto"
        Forced where they are numbers.
    max_bytes : int, optional
        Size of the artifact.
    target_error : float, optional
        In mode "approximate", the share of labels that may differ.
    effort : {"low", "normal", "high"}
        How many centers are tried, and so how long compiling takes.
    random_state : int
        Seeds the choice of rows and centers.
    """

    degree: int | Literal["auto"] = "auto"
    n_centers: int | Literal["auto"] = "auto"
    max_bytes: int | None = None
    target_error: float | None = None
    effort: Effort = "normal"
    random_state: int = 0


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows to place centers by, and others to judge them."""

    fit: Any
    held_out: Any
    are_support_vectors: bool


@dataclass(frozen=True, eq=False)
class Candidate:
    """Centers and a degree; with what became of the held-out rows once it has been tried."""

    degree: int
    centers: npt.NDArray[np.float32]
    router: Router | None
    cost: float = math.inf
    certified: float = 0.0
    error: float = 1.0

    @property
    def name(self) -> str:
        """For people."""
        n = len(self.centers)
        return f"{'one center' if n == 1 else f'{n:,} centers'} of degree {self.degree}"


@dataclass(frozen=True, eq=False)
class Plan:
    """What to build. No candidate means the exact engine alone."""

    candidate: Candidate | None
    reason: str


def draw_sample(model: KernelModel, X: Any, random_state: int) -> Sample:
    """At most 40,000 rows of X, else of the support vectors, a quarter of them held out."""
    rows = model.support_vectors if X is None else X
    rng = np.random.default_rng(random_state)
    chosen = rng.permutation(rows.shape[0])[:MAX_SAMPLE_ROWS]
    n_held_out = int(len(chosen) * HELD_OUT_SHARE)
    return Sample(rows[chosen[n_held_out:]], rows[chosen[:n_held_out]], X is None)


class Planner:
    """Tries candidates on one model and its sample.

    Parameters
    ----------
    model : KernelModel
        With one decision function.
    frame : Frame
        Its single center is the first candidate's.
    sample : Sample
    mode : {"certified", "approximate"}
    tolerance : float
        Of values; infinite when only labels count.
    limits : Limits
    """

    def __init__(
        self, model: KernelModel, frame: Frame, sample: Sample, mode: Mode, tolerance: float, limits: Limits
    ) -> None:
        self._model = model
        self._frame = frame
        self._sample = sample
        self._mode = mode
        self._tolerance = tolerance
        self._limits = limits
        self.exact_cost = self._exact_cost()

    def plan(self, progress: Callable[[float], None] | None = None) -> Plan:
        """Try candidates from few centers to many, as long as more could still be better.

        Raises
        ------
        UnsupportedModelError
            Nothing that was asked for fits `max_bytes`.
        """
        limits = self._limits
        tried: list[Candidate] = []
        for n_centers in self._numbers_of_centers():
            if tried and self._cannot_improve(n_centers, tried):
                break
            found = self._centers(n_centers)
            if n_centers > 1 and len(found[0]) <= max((len(c.centers) for c in tried), default=1):
                break
            for degree in self._degrees(len(found[0])):
                candidate = Candidate(degree, *found)
                if self._fits(candidate):
                    tried.append(self._tried(candidate))
            if progress is not None:
                progress(0.0)
        forced = limits.degree != "auto" and limits.n_centers != "auto"
        if not tried:
            return self._without_candidates()
        best = min(tried, key=lambda c: c.cost)
        if forced:
            return Plan(best, f"{best.name}, as asked for; {self._judgement(best)}")
        if best.cost > _WORTHWHILE * self.exact_cost and limits.degree == "auto" and limits.n_centers == "auto":
            return Plan(
                None,
                f"the exact engine alone, because the best expansion tried, {best.name}, would still take "
                f"{best.cost / self.exact_cost:.0%} of its time; {self._judgement(best)}",
            )
        return Plan(best, f"{best.name}, the cheapest of {len(tried)} tried; {self._judgement(best)}")

    # --- candidates

    def _numbers_of_centers(self) -> tuple[int, ...]:
        asked = self._limits.n_centers
        if asked != "auto":
            return (asked,)
        most = self._sample.fit.shape[0] // _ROWS_PER_CENTER
        return tuple(n for n in EFFORTS[self._limits.effort] if n == 1 or n <= most)

    def _degrees(self, n_centers: int) -> tuple[int, ...]:
        asked = self._limits.degree
        if asked != "auto":
            return (asked,)
        d = self._model.n_features
        if d > assembly.MAX_FEATURES_DEGREE_2:
            return (1,)
        most = MAX_COEFFICIENTS if n_centers == 1 else MAX_COEFFICIENTS // 16
        higher = [r for r in (3, 4) if self._coefficients(r) <= most] if self._mode == "certified" else []
        higher = higher[-1:] if n_centers == 1 else higher[:1]
        return (2, *higher) if self._coefficients(2) * n_centers * 4 <= MAX_EXPANSION_BYTES else (1,)

    def _coefficients(self, degree: int) -> int:
        return math.comb(self._model.n_features + degree, degree)

    def _centers(self, n_centers: int) -> tuple[npt.NDArray[np.float32], Router | None]:
        if n_centers == 1:
            return self._frame.center[np.newaxis], None
        min_rows = _ROWS_BEHIND_A_CENTER if self._mode == "approximate" else 1
        centers, router = choose_centers(
            self._sample.fit, n_centers, self._limits.random_state, reference=self._frame.center, min_rows=min_rows
        )
        return (centers, router) if len(centers) > 1 else (self._frame.center[np.newaxis], None)

    def _fits(self, candidate: Candidate) -> bool:
        limit = self._limits.max_bytes
        return limit is None or self._bytes(candidate) <= limit

    def _bytes(self, candidate: Candidate) -> int:
        """About what the artifact will take."""
        d, n = self._model.n_features, len(candidate.centers)
        coefficients = self._coefficients(candidate.degree) + 40
        if self._mode == "certified" and candidate.degree == 2:
            coefficients += n_monomials(d, 2)
        listed = sum(map(len, candidate.router.members)) if candidate.router else 0
        exact = 0 if self._mode == "approximate" else len(self._exact_sections)
        return 4 * n * (coefficients + d) + 4 * (d + 2) * listed + exact + 1024

    @property
    def _exact_sections(self) -> bytes:
        return assembly.build(self._model, "exact", self._frame).data

    # --- judging them

    def _exact_cost(self) -> float:
        model, rows = self._model, self._sample.held_out
        d = model.n_features
        n_rows = max(rows.shape[0], 1)
        n_nonzero = (rows.nnz if hasattr(rows, "nnz") else np.count_nonzero(rows)) / n_rows
        sparse = not isinstance(model.support_vectors, np.ndarray) or np.count_nonzero(model.support_vectors) < (
            model.support_vectors.size // 2
        )
        n_terms = n_nonzero if sparse and n_nonzero <= d / 3 else float(d)
        spilled = 1.5 if 4 * model.n_sv * d > _CACHE_BYTES else 1.0
        return _ROW_COST + spilled * model.n_sv * (n_terms + _KERNEL_COST)

    def _expansion_cost(self, degree: int, n_centers: int) -> float:
        """Of a row that the expansion certifies at once."""
        d = self._model.n_features
        routing = 2.0 * d * 3.0 * math.sqrt(n_centers) if n_centers > 1 else 0.0
        return _ROW_COST + routing + self._coefficients(min(degree, 2))

    def _cannot_improve(self, n_centers: int, tried: list[Candidate]) -> bool:
        return self._expansion_cost(1, n_centers) >= 0.9 * min(c.cost for c in tried)

    def _tried(self, candidate: Candidate) -> Candidate:
        """Expand some of its centers, and send the rows that belong to them through the real predictor."""
        rows, centers, router = self._probe(candidate)
        if rows.shape[0] == 0:
            return candidate
        expanded = build_expanded(self._model, centers, candidate.degree, router, self._mode)
        artifact = assembly.build(self._model, self._mode, self._frame, expanded, tolerance=self._tolerance)
        stages = estimator_for(artifact)._evaluate(rows, bounds=True)[2]
        share = np.bincount(stages, minlength=len(STAGES)) / len(stages)
        by = dict(zip(STAGES, share, strict=True))
        d, degree = self._model.n_features, candidate.degree
        refined = 1.0 - by["expansion"]
        further = n_monomials(d, 2) if degree == 2 else self._coefficients(degree) - self._coefficients(min(degree, 2))
        engine = by["float32"] + 2.0 * (by["float64"] + by["definition"])
        cost = self._expansion_cost(degree, len(candidate.centers)) + refined * further + engine * self.exact_cost
        certified = by["expansion"] + by["direction"] + by["higher_degree"]
        return Candidate(degree, candidate.centers, candidate.router, float(cost), float(certified))

    def _probe(self, candidate: Candidate) -> tuple[Any, npt.NDArray[np.float32], Router | None]:
        """Held-out rows, the centers that are theirs, and a router among those."""
        rows = self._sample.held_out
        if candidate.router is None:
            return rows[:_PROBE_ROWS], candidate.centers, None
        nearest = route(candidate.router, candidate.centers, rows)
        probed: npt.NDArray[np.intp] = np.array(list(dict.fromkeys(nearest.tolist()))[:_PROBED_CENTERS], dtype=np.intp)
        chosen = np.flatnonzero(np.isin(nearest, probed))[:_PROBE_ROWS]
        if len(probed) < 2:
            return rows[chosen], candidate.centers[probed], None
        centers = candidate.centers[probed]
        everything = np.arange(len(centers), dtype=np.uint32)
        router = Router(candidate.router.reference, centers[:1], (everything,))
        return rows[chosen], centers, router

    # --- words

    def _judgement(self, candidate: Candidate) -> str:
        rows = "support vectors, which lie nearer the boundary than ordinary rows" if (
            self._sample.are_support_vectors
        ) else "sample rows"
        text = f"judged on {self._sample.held_out.shape[0]:,} held-out {rows}"
        if self._mode == "certified":
            text = f"it certifies {candidate.certified:.1%}, {text}"
        return text

    def _without_candidates(self) -> Plan:
        if self._mode == "certified" and self._limits.degree == "auto" and self._limits.n_centers == "auto":
            return Plan(None, f"the exact engine alone, because no expansion fits {self._limits.max_bytes:,} bytes")
        raise UnsupportedModelError(f"nothing that was asked for fits max_bytes = {self._limits.max_bytes}")


def build_expanded(
    model: KernelModel,
    centers: npt.NDArray[np.float32],
    degree: int,
    router: Router | None,
    mode: Mode,
    progress: Callable[[float], None] | None = None,
) -> Expanded:
    """Expand about all centers and certify."""
    expansions, certificates = expand_and_certify(
        model, centers, degree, directions=mode == "certified", progress=progress
    )
    return Expanded(centers, degree, expansions, certificates, router)
