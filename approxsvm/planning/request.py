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
from approxsvm.system.options import MAX_SEED, one_of, real_number, whole_number

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

    def __post_init__(self) -> None:
        values: dict[str, Any] = {
            "degree": whole_number(self.degree, "degree", 1, MAX_DEGREE, words=("auto",)),
            "n_centers": whole_number(self.n_centers, "n_centers", 1, words=("auto",)),
            "effort": one_of(self.effort, "effort", get_args(Effort)),
            "random_state": whole_number(self.random_state, "random_state", 0, MAX_SEED),
        }
        for name in ("max_bytes", "rows_per_call", "rows_expected"):
            if getattr(self, name) is not None:
                values[name] = whole_number(getattr(self, name), name, 1)
        if self.target_error is not None:
            values["target_error"] = real_number(self.target_error, "target_error")
        for name, value in values.items():
            object.__setattr__(self, name, value)


@dataclass(frozen=True, eq=False)
class Request:
    """Options of `compile`, documented there; `rows` are sample rows before any input map.

    Raises InputError for values that are invalid for every model. Numbers and words become plain Python objects.
    """

    mode: Mode
    center: CenterChoice
    tolerance: float | None
    limits: Limits
    progress: Progress
    rows: Any = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "mode", one_of(self.mode, "mode", MODES))
        object.__setattr__(self, "center", one_of(self.center, "center", get_args(CenterChoice)))
        if self.tolerance is not None:
            object.__setattr__(self, "tolerance", real_number(self.tolerance, "tolerance"))
        mode, limits = self.mode, self.limits
        if not callable(self.progress):
            raise InputError(f"progress is {self.progress!r}, but must be a function of a text and a fraction")
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
