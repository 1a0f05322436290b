"""Plans: descriptions of what to build from a model, as data that can be printed, compared and stored as JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields
from itertools import pairwise
from typing import Any, Final, Literal, get_args

from approxsvm.errors import InputError
from approxsvm.ir.schema import MAX_DEGREE, MAX_LABELS, MODES, Mode
from approxsvm.system.options import MAX_SEED, one_of, whole_number

Engine = Literal["expansions", "subspaces", "exact", "form", "ensemble"]
# Version of the JSON format. Plans are passed only to `compile`, so prediction-only programs never read them.
_FORMAT: Final = 1
_MOST: Final = 1 << 53  # all JSON readers preserve integers up to this one
MAX_CENTERS: Final = 1 << 20
# Largest value of each integer field, and of the elements of each list.
_LIMITS: Final = {
    "n_features": 1 << 20,
    "n_classes": MAX_LABELS,
    "n_functions": 1 << 10,
    "degree": MAX_DEGREE,
    "n_centers": MAX_CENTERS,
    "varying": (1 << 20) - 1,
    "subspaces": 1 << 20,
    "basis": 1 << 20,
    "landmarks": 1 << 20,
    "norm_work": _MOST,
    "seed": MAX_SEED,
}
_WORDS: Final = (("engine", get_args(Engine)), ("mode", MODES), ("center", ("mean", "origin")))
_OPTIONAL: Final = ("n_features", "n_classes", "varying", "norm_work", "landmarks")
_LISTS: Final = ("varying", "subspaces")


@dataclass(frozen=True)
class Plan:
    """Plan of a compiled model: a description of what to build, without values from the model or its rows.

    ``compile(model, X, plan=plan)`` builds the plan without a search. Fields that an engine does not use have their
    default values. Plans are equal if they describe the same build; `reason` is ignored.

    Raises InputError for a value that is not valid in any plan; the message names the field.
    """

    engine: Engine  # "form" is for polynomial kernels; an "ensemble" has one plan per member
    mode: Mode = "certified"
    # Model for which the plan was made
    kernel: str = "gaussian"
    n_features: int | None = None  # number of kernel features, after all steps; None for any number
    n_classes: int | None = None  # number of classes; 0 for a model without classes; None for any number
    n_functions: int = 1  # number of ensemble members that share kernel values, each of which is computed once
    # Expansions
    center: Literal["mean", "origin"] = "mean"
    n_centers: int = 0
    degree: int = 0  # degree of the expansions, or of the expansion that replaces the first sums in subspaces
    varying: tuple[int, ...] | None = None  # columns that vary in the expansions; None for all of them
    norm_work: int | None = None  # limit on the work for the norms of an expansion; None for the default limit
    # Kernel sums over a few coordinates
    subspaces: tuple[int, ...] = ()  # number of coordinates of each subspace, in increasing order
    basis: int = 0  # number of coordinates of the basis; subspaces use the first ones
    landmarks: int | None = None  # number of landmarks in the network that speculates on the winner; None without one
    seed: int = 0  # seed for choosing rows, centers, bases and landmarks
    members: tuple[Plan, ...] = ()
    reason: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        values: dict[str, Any] = {name: one_of(getattr(self, name), f"plan: {name}", words) for name, words in _WORDS}
        for name, most in _LIMITS.items():
            value = getattr(self, name)
            if name in _LISTS and value is not None:
                values[name] = _ascending(value, name, most)
            elif value is not None or name not in _OPTIONAL:
                values[name] = whole_number(value, f"plan: {name}", int(name == "n_functions"), most)
        for name, value in values.items():
            object.__setattr__(self, name, value)
        for name in ("kernel", "reason"):
            if not isinstance(getattr(self, name), str):
                raise _wrong(name, getattr(self, name), "a text")
        self._check_engine()

    def _check_engine(self) -> None:
        """Raise InputError if fields do not fit the engine."""
        is_ensemble = self.engine == "ensemble"
        if not isinstance(self.members, tuple) or not all(isinstance(member, Plan) for member in self.members):
            raise _wrong("members", self.members, "a tuple of plans")
        if is_ensemble != bool(self.members) or any(member.members for member in self.members):
            raise _wrong("members", len(self.members), "plans, none of an ensemble" if is_ensemble else "0")
        has = {"n_centers": self.engine == "expansions", "subspaces": self.engine == "subspaces"}
        for name, is_needed in has.items():
            if bool(getattr(self, name)) != is_needed:
                what = f"{'present' if is_needed else 'absent'} with engine {self.engine!r}"
                raise _wrong(name, getattr(self, name), what)
        if self.varying is not None and not (self.n_centers > 1 and self.mode == "certified"):
            raise _wrong("varying", list(self.varying), "absent without several centers in mode 'certified'")
        modes = {"expansions": ("certified", "approximate"), "subspaces": ("certified",)}.get(self.engine, MODES)
        one_of(self.mode, "plan: mode", modes)
        if self.engine == "expansions" and self.degree == 0:
            raise _wrong("degree", 0, "at least 1 with engine 'expansions'")
        if self.engine == "subspaces" and self.basis < self.subspaces[-1]:
            raise _wrong("basis", self.basis, f"at least {self.subspaces[-1]}, the last of subspaces")
        if self.engine not in ("expansions", "subspaces") and self.degree:
            raise _wrong("degree", self.degree, f"0 with engine {self.engine!r}")

    def __repr__(self) -> str:
        if self.members:
            members = "; ".join(dict.fromkeys(map(repr, self.members)))
            return f"Plan(ensemble of {len(self.members)}: {members})"
        words: list[str] = [self.engine if self.engine != "exact" else "the exact engine alone"]
        if self.engine == "expansions":
            centers = "one center" if self.n_centers == 1 else f"{self.n_centers:,} centers"
            part = "" if self.varying is None else f" in {len(self.varying)} varying features"
            words = [f"{centers} of degree {self.degree}{part}"]
        if self.engine == "subspaces":
            words = [f"sums in {', then '.join(map(str, self.subspaces))} coordinates"]
            words += [f"expanded to degree {self.degree}"] if self.degree else []
        if self.landmarks is not None:
            words.append(f"winner speculated by {self.landmarks} landmarks")
        if self.n_functions > 1:
            words.append(f"{self.n_functions} members at once")
        features, classes = ("any number of" if n is None else n or "no" for n in (self.n_features, self.n_classes))
        model = f"{self.kernel}, {features} features, {classes} classes"
        return f"Plan({', '.join(words)}; {self.mode}; {model}; seed {self.seed})"

    def to_json(self) -> str:
        """Return the plan as one line of JSON, without fields that have default values."""
        return json.dumps({"format": _FORMAT, **_as_record(self)}, ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str | bytes) -> Plan:
        """Read a plan from JSON; raise an InputError that names the field if the string is not a plan."""
        try:
            record = json.loads(text, object_pairs_hook=_without_repetition)
        except (ValueError, RecursionError) as error:  # ValueError also for bytes that are not UTF-8
            raise InputError(f"plan: not JSON: {error}") from None
        if not isinstance(record, dict):
            raise InputError(f"plan: must be an object, got {type(record).__name__}")
        version = record.pop("format", None)
        if version != _FORMAT or isinstance(version, bool):
            raise _wrong("format", version, f"{_FORMAT}: the plan may come from another release")
        return _from_record(record)


_DEFAULTS: Final = {one.name: one.default for one in fields(Plan)}


def _as_record(plan: Plan) -> dict[str, Any]:
    record = {name: getattr(plan, name) for name, default in _DEFAULTS.items() if getattr(plan, name) != default}
    return record | ({"members": [_as_record(member) for member in plan.members]} if plan.members else {})


def _from_record(record: dict[str, Any]) -> Plan:
    unknown = sorted(record.keys() - _DEFAULTS.keys())
    if unknown:
        raise InputError(f"plan: unknown field {unknown[0]!r}; fields are {', '.join(_DEFAULTS)}")
    if "engine" not in record:
        raise InputError("plan: the field engine is missing")
    if "members" in record:
        members = record["members"]
        if not (isinstance(members, list) and all(isinstance(one, dict) and "members" not in one for one in members)):
            raise _wrong("members", members, "a list of plans, none of an ensemble")
        record = record | {"members": tuple(map(_from_record, record["members"]))}
    return Plan(**record)


def _ascending(values: Any, name: str, most: int) -> tuple[int, ...]:
    if not isinstance(values, (list, tuple)):
        raise _wrong(name, values, "a list")
    numbers = tuple(whole_number(value, f"plan: {name}", 0, most) for value in values)
    if any(a >= b for a, b in pairwise(numbers)):
        raise _wrong(name, list(numbers), "ascending")
    return numbers


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        raise ValueError("a field is repeated")
    return record


def _wrong(name: str, value: Any, wanted: str) -> InputError:
    return InputError(f"plan: {name} is {value!r}, but must be {wanted}")
