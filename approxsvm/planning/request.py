"""Validated options of compile()."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from approxsvm.artifact.views import Artifact
from approxsvm.errors import InputError
from approxsvm.expansion.taylor import CenterChoice
from approxsvm.ir.compilation import TriedPlan
from approxsvm.ir.plan import Engine, Plan
from approxsvm.ir.schema import MAX_DEGREE, MODES, Mode
from approxsvm.system.options import MAX_SEED, one_of, real_number, whole_number

Effort = Literal["low", "normal", "high"]
# Function called with a description of the current task and its completed fraction, from 0 to 1.
Progress = Callable[[str, float], None]
# Function that calls another function for an artifact, and returns the time of the call in seconds.
Stopwatch = Callable[[Artifact, Callable[[], object]], float]
# Artifact, with the plans that were tried.
Built = tuple[Artifact, tuple[TriedPlan, ...]]


@dataclass(frozen=True)
class Limits:
    """Planner choices that the user fixes or limits."""

    # An integer fixes the choice
    degree: int | Literal["auto"] = "auto"
    n_centers: int | Literal["auto"] = "auto"
    max_bytes: int | None = None  # maximum size of the artifact
    target_error: float | None = None  # maximum fraction of labels that differ from the source's, in "approximate" mode
    effort: Effort = "normal"  # determines the numbers of centers to try and the work allowed for each trial
    random_state: int = 0  # seed for the choice of rows and centers
    rows_per_call: int | None = None  # number of rows per call to optimize for; None for batches
    rows_expected: int | None = None  # number of rows to predict, which limits the search; None for a million

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
    """Options of `compile`, as documented there; `rows` contains sample rows before any input map.

    Raises InputError for values that are invalid for every model. Numbers and strings are converted to plain Python
    objects.
    """

    mode: Mode
    center: CenterChoice
    tolerance: float | None
    limits: Limits
    progress: Progress
    rows: Any = None
    plan: Plan | None = None  # plan to build without a search
    stopwatch: Stopwatch | None = None  # function that times the best plans; None if `measure` is False

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
        if self.plan is not None and not isinstance(self.plan, Plan):
            raise InputError(f"plan is {self.plan!r}, but must be a Plan, such as Plan.from_json(text)")
        target = limits.target_error
        if target is not None and not (mode == "approximate" and 0.0 <= target <= 1.0):
            raise InputError(
                f"target_error needs mode 'approximate' and must be from 0 to 1; got {target} and {mode!r}"
            )

    def check_options_with_plan(self) -> None:
        """Raise InputError for options that guide a search if a plan is given, because the plan replaces the search."""
        if self.plan is None:
            return
        options = {"center": self.center, "measure": self.stopwatch is not None, **asdict(self.limits)}
        default = {"center": "mean", "measure": False, **asdict(Limits())}
        for name in options.keys() - {"max_bytes"}:
            if options[name] != default[name]:
                raise InputError(f"{name} is {options[name]!r}, but the plan replaces it: leave it out")

    def check_plan(self, model: Any, *engines: str) -> None:
        """Raise InputError if the plan is for another model or mode, or its engine is not one of `engines`."""
        plan = self.plan
        if plan is None:
            return
        sizes = {"kernel": model.kernel, "n_features": model.n_features, "n_classes": len(model.labels)}
        for name, value in {**sizes, "mode": self.mode}.items():
            planned = getattr(plan, name)
            if planned is not None and planned != value:
                whose = "the option mode is" if name == "mode" else "the model has"
                raise InputError(f"plan: made for {name} {planned!r}, but {whose} {value!r}")
        if plan.engine not in engines:
            allowed = " or ".join(map(repr, engines))
            raise InputError(f"plan: engine is {plan.engine!r}, but must be {allowed} for this model and mode")

    def plan_of(self, model: Any, engine: Engine, reason: str, **choices: Any) -> Plan:
        """Return the given plan, or by default a plan for the model with the given engine and choices."""
        if self.plan is not None:
            return self.plan
        return Plan(
            engine,
            mode=self.mode,
            kernel=model.kernel,
            n_features=model.n_features,
            n_classes=len(model.labels),
            center=self.center,
            seed=self.limits.random_state,
            reason=reason,
            **choices,
        )

    def check_positive_tolerance(self) -> None:
        """Raise InputError if the tolerance is not positive; called for models that support all positive tolerances."""
        if self.tolerance is not None and not self.tolerance > 0.0:
            raise InputError(f"tolerance is {self.tolerance}, but must be positive")


# Function that lowers a model to its artifact; each planning module registers its lowerings by `kind`.
Lowering = Callable[[Any, Request], Built]
