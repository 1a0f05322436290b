"""Options of compile(), validated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

from approxsvm.analysis.compilation import TriedPlan
from approxsvm.artifact.views import Artifact
from approxsvm.errors import InputError
from approxsvm.expansion.taylor import CenterChoice
from approxsvm.ir.schema import MAX_DEGREE, MODES, Mode
from approxsvm.system.options import MAX_SEED, is_whole_number, whole_number

Effort = Literal["low", "normal", "high"]
# Receives a description of the current task and its completed share, from 0 to 1.
Progress = Callable[[str, float], None]
# An artifact, and the candidate plans.
Built = tuple[Artifact, tuple[TriedPlan, ...]]


@dataclass(frozen=True)
class Limits:
    """Choices that the user forces or limits."""

    # Numbers are forced
    degree: int | Literal["auto"] = "auto"
    n_centers: int | Literal["auto"] = "auto"
    max_bytes: int | None = None  # size of the artifact
    target_error: float | None = None  # maximum share of labels that differ, in mode "approximate"
    effort: Effort = "normal"  # how many centers to try, and how much work each trial is worth
    random_state: int = 0  # seed of the choice of rows and centers
    rows_per_call: int | None = None  # call size to optimize for; None for batches
    rows_expected: int | None = None  # rows that the model will answer, which limits the search; None for a million


@dataclass(frozen=True, eq=False)
class Request:
    """Options of `compile`, documented there; `rows` are sample rows before any input map."""

    mode: Mode
    center: CenterChoice
    tolerance: float | None
    limits: Limits
    progress: Progress
    rows: Any = None

    def check(self) -> None:
        """Raise InputError for values that are invalid for every model."""
        mode, limits = self.mode, self.limits
        if mode not in MODES:
            raise InputError(f"mode must be one of {', '.join(map(repr, MODES))}, not {mode!r}")
        if self.center not in ("mean", "origin"):
            raise InputError(f"center must be 'mean' or 'origin', not {self.center!r}")
        if limits.effort not in get_args(Effort):
            raise InputError(f"effort must be one of 'low', 'normal', 'high', not {limits.effort!r}")
        if limits.degree != "auto" and not is_whole_number(limits.degree, 1, MAX_DEGREE):
            raise InputError(f"degree must be 'auto' or 1 to {MAX_DEGREE}, not {limits.degree!r}")
        if limits.n_centers != "auto" and not is_whole_number(limits.n_centers, 1):
            raise InputError(f"n_centers must be 'auto' or a positive integer, not {limits.n_centers!r}")
        if limits.max_bytes is not None:
            whole_number(limits.max_bytes, "max_bytes", 1)
        whole_number(limits.random_state, "random_state", 0, MAX_SEED)
        if limits.rows_per_call is not None:
            whole_number(limits.rows_per_call, "rows_per_call", 1)
        if limits.rows_expected is not None:
            whole_number(limits.rows_expected, "rows_expected", 1)
        if mode == "exact" and (limits.degree != "auto" or limits.n_centers != "auto"):
            raise InputError("mode 'exact' has no expansion: leave degree and n_centers out")
        if self.tolerance is not None and mode == "approximate":
            raise InputError("mode 'approximate' cannot promise a tolerance, because it has no fallback")
        target = limits.target_error
        if target is not None and not (mode == "approximate" and 0.0 <= target <= 1.0):
            raise InputError(
                f"target_error needs mode 'approximate' and must be from 0 to 1; got {target} and {mode!r}"
            )

    def check_positive_tolerance(self) -> None:
        """Raise InputError if the tolerance is not positive, for models that can keep any positive one."""
        if self.tolerance is not None and not self.tolerance > 0.0:
            raise InputError(f"tolerance is {self.tolerance}, but must be positive")


# Lowers a model to its artifact; the modules of planning list their lowerings by `kind`.
Lowering = Callable[[Any, Request], Built]
