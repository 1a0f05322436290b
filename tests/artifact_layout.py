"""The offset and allowed values of every number in an artifact: a second implementation of models/FORMAT.md."""

from __future__ import annotations

import math
import struct
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

from approxsvm import _native
from approxsvm.ir.schema import record

SCHEMA = _native.schema()
LIMITS, SECTIONS, ENUMERATIONS = SCHEMA["limits"], SCHEMA["sections"], SCHEMA["enumerations"]
NAMES = {identifier: name for name, identifier in SECTIONS.items()}
HEADER_BYTES, ENTRY_BYTES = 192, 24
MOST, INF = sys.float_info.max, math.inf
RULE, KIND = (ENUMERATIONS[name] for name in ("label_rule", "probability"))


class Rule(NamedTuple):
    """Allowed values of a number: from `low` to `high` if `also` holds, and NaN if `nan` is set."""

    low: float
    high: float
    also: Callable[[Any], bool] = lambda x: True
    nan: bool = False

    def allows(self, x: Any) -> bool:
        return self.nan if x != x else bool(self.low <= x <= self.high and self.also(x))


def equal(x: Any) -> Rule:
    return Rule(x, x)


def within(most: float) -> Rule:
    return Rule(-most, most)


def below(n: int) -> Rule:
    return Rule(0, n - 1)


def powers_of_two(low: float, high: float) -> Rule:
    return Rule(low, high, lambda x: math.frexp(x)[0] == 0.5)


FINITE, FROM_0, NOT_NEGATIVE, NO_NAN, FLAG = within(MOST), Rule(0, MOST), Rule(0, INF), within(INF), below(2)
ANY = Rule(-INF, INF, nan=True)
NOTHING = Rule(0, 0, lambda x: False)  # only the current value
# Infinity means that a feature stays unchanged; no finite value exceeds 1e300.
PARAMETER = Rule(-1e300, 1e300)
# Infinity stands for the input itself, and NaN for rejecting the row.
OR_REFUSED = Rule(-1e300, INF, lambda x: x <= 1e300 or x == INF, nan=True)

# Rules for numbers in records. By default, a double is finite and at least 0, an enumeration has one of its values,
# `reserved` is 0, and any other integer is unrestricted.
RULES = {
    "header": {
        "magic": equal(LIMITS["magic_number"]),
        "version": equal(LIMITS["format_version"]),
        "first_release": equal(LIMITS["format_release"]),
        "n_sections": below(len(SECTIONS) + 1),
        "degree": below(LIMITS["max_degree"] + 1),
        "n_features": Rule(1, LIMITS["max_n_features"]),
        "n_raw_features": Rule(1, LIMITS["max_n_features"]),
        "first_index": FLAG,
        "n_labels": below(LIMITS["max_n_labels"] + 1),
        "gamma": FINITE,
        "input_scale": powers_of_two(1 / LIMITS["max_input_scale"], LIMITS["max_input_scale"]),
        "tolerance": Rule(5e-324, INF),
        "max_sv_norm": NOT_NEGATIVE,
        "max_sv_norm_origin": NOT_NEGATIVE,
        "n_centers": below(LIMITS["max_n_centers"] + 1),
        "n_decisions": below(LIMITS["max_n_labels"] ** 2 // 2),
        "first_remainder_degree": below(LIMITS["last_norm_degree"] + 2),
        "tolerance_asked": FLAG,
        "majority_only": FLAG,
    },
    "decisions": {"intercept": FINITE},
    "check_row": {"value": FINITE},
    "expansions": {
        "constant": within(1),
        "output_scale": powers_of_two(1 / LIMITS["max_output_scale"], LIMITS["max_output_scale"]),
        "contraction": powers_of_two(LIMITS["min_contraction"], 1),
        "max_sv_norm": NOT_NEGATIVE,
    },
    "form": {"constant": FINITE},
    "input_map": {"n_columns": below(LIMITS["max_n_features"] + 1), "by_column": FLAG},
    "checked_column": {"takes_nan": FLAG},
    "category_column": {"null": FLAG},
}


HEADER = [name for name, _, _ in SCHEMA["records"]["header"]]
HEADER_STRUCT = record("header")


class Number(NamedTuple):
    section: str  # "" for the header and the section table
    name: str  # as in messages; a regular expression
    at: int  # offset in the file
    code: str  # format character of struct
    value: Any
    rule: Rule
    outer: tuple[tuple[int, int], ...]  # start and size of each artifact that contains this one


class Layout:
    """All sections of an artifact, or of one contained in another."""

    def __init__(self, data: bytes, start: int = 0, outer: tuple[tuple[int, int], ...] = (), inside: str = "") -> None:
        self.data, self.at, self.outer = data, start, outer
        self.numbers: list[Number] = []
        self.section = ""
        size = outer[-1][1] if outer else len(data)
        self.h = self.record(
            "header", checksum=NOTHING, file_bytes=ANY if outer else equal(size), **self.of_mode(inside)
        )
        self.sections: dict[str, tuple[int, int]] = {}
        end = HEADER_BYTES + ENTRY_BYTES * self.h.n_sections
        self.gaps = []
        for _ in range(self.h.n_sections):
            offset = -(-end // 64) * 64
            entry = self.record("entry", identifier=below(len(SECTIONS) + 1), offset=equal(offset), of="of table entry")
            self.gaps.append((end, offset))
            self.sections[NAMES[entry.identifier]] = start + entry.offset, entry.size
            end = entry.offset + entry.size
        self.gaps.append((end, size))
        for name, (at, size) in self.sections.items():
            self.section, self.at, self.end = name, at, at + size
            getattr(self, name)()
            assert self.at == self.end, name

    def of_mode(self, inside: str) -> dict[str, Rule]:
        """Header values required by mode, kernel, and the section that contains the artifact."""
        found: dict[str, Any] = dict(zip(HEADER, HEADER_STRUCT.unpack_from(self.data, self.at), strict=True))
        mode, kernel = (list(ENUMERATIONS[name])[found[name]] for name in ("mode", "kernel"))
        fixed: dict[str, Any] = {}
        if mode in ("exact", "ensemble") or kernel != "gaussian":
            fixed |= {"n_centers": 0, "first_remainder_degree": 0}
        if kernel in ("cosine", "sigmoid") or (mode in ("exact", "ensemble") and kernel == "gaussian"):
            fixed["degree"] = 0
        if kernel != "gaussian":
            fixed["center_kind"] = 0
        if kernel != "gaussian" or mode == "ensemble":
            fixed["input_scale"] = 1.0
        if kernel == "cosine" or mode == "ensemble":
            fixed["gamma"] = 0.0
        if found["task"] != ENUMERATIONS["task"]["classification"]:
            fixed |= {"n_labels": 0, "label_kind": 0}
        if inside == "subspace_expansion":
            names = ("mode", "task", "kernel", "n_centers", "n_decisions", "n_features", "gamma", "input_scale")
            fixed |= {name: found[name] for name in names}
        if inside == "members":
            fixed |= {"n_raw_features": found["n_raw_features"]}
        if mode == "ensemble":
            fixed |= {"tolerance": INF, "n_features": found["n_features"]}
        less = {"task": below(2)} if mode == "ensemble" else {"mode": below(3)} if inside == "members" else {}
        return less | {name: equal(value) for name, value in fixed.items()}

    # --- reading numbers

    def take(self, code: str, n: int, name: str, rule: Rule = ANY) -> tuple[Any, ...]:
        """Read n numbers; add the first, a middle one and the last to the list."""
        values = struct.unpack_from(f"<{n}{code}", self.data, self.at)
        width = struct.calcsize(code)
        for k in sorted({0, n // 2, n - 1}) if n and not code.endswith("s") else ():
            at = self.at + width * k
            self.numbers.append(Number(self.section, name, at, code, values[k], rule, self.outer))
        self.at += width * n
        return values

    def rest(self, code: str, name: str, rule: Rule = ANY) -> tuple[Any, ...]:
        return self.take(code, (self.end - self.at) // struct.calcsize(code), name, rule)

    def pad(self, unit: int = 8) -> None:
        start = self.sections[self.section][0]
        self.take("B", -(self.at - start) % unit, "padding byte", equal(0))

    def record(self, tag: str, of: str = "", also: str = "", **rules: Rule) -> Any:
        """Read a record's numbers, which messages call `name of` or `also`."""
        found = SimpleNamespace()
        for name, code, n in SCHEMA["records"][tag]:
            numbers = ENUMERATIONS.get({"kind": "op_kind"}.get(name, name))
            implied = below(len(numbers)) if numbers else equal(0) if name == "reserved" else ANY
            if code == "d":
                implied = FROM_0
            rule = rules.get(name, RULES.get(tag, {}).get(name, implied))
            words = f"{name} {of}".strip() + f"|{also}" * bool(also)
            values = self.take(code if code != "s" else f"{n}s", n if code != "s" else 1, words, rule)
            setattr(found, name, values[0] if len(values) == 1 else values)
        return found

    def records(self, tag: str, n: int) -> None:
        """Read n records; add the numbers of the first and the last record to the list."""
        for k in range(n):
            n_before = len(self.numbers)
            self.record(tag)
            if 0 < k < n - 1:
                del self.numbers[n_before:]

    def utf8(self) -> None:
        self.rest("B", "byte", below(255))  # UTF-8 never contains 255; any other byte may occur

    def texts(self, n: int) -> None:
        self.take("I", n, "size of text", below(self.end - self.at))
        self.utf8()

    # --- sizes

    @property
    def n_all(self) -> int:
        return int(self.h.n_centers * (self.h.n_labels - 1 if self.h.majority_only else self.h.n_decisions))

    @property
    def has_pairs(self) -> bool:
        return self.h.n_labels > 2 and self.h.n_decisions == self.h.n_labels * (self.h.n_labels - 1) // 2

    @property
    def n_sv(self) -> int:
        n_rows = self.h.n_labels - 1 if self.has_pairs else self.h.n_decisions
        return int(self.sections["dual_coef"][1] // 8 // n_rows)

    def may_have(self, name: str) -> bool:
        """Return whether the artifact would be allowed to have a section that it lacks."""
        h, mode = self.h, list(ENUMERATIONS["mode"])[self.h.mode]
        is_gaussian, one = h.kernel == 0 and h.gamma > 0, h.n_decisions == 1
        return {
            "direction": mode == "certified" and h.kernel == 0 and h.degree == 2 and one,
            "varying": mode == "certified" and h.n_centers > 1,
            "speculation": mode in ("certified", "exact") and h.kernel == 0 and self.has_pairs,
            "subspaces": mode == "exact" and is_gaussian and (one or self.has_pairs),
            "subspace_expansion": "subspaces" in self.sections and one,
            "input_map": mode != "ensemble",
            "build_plan": mode != "ensemble",
        }.get(name, name in ("feature_names", "plan", "outputs", "categories", "vectorizers", "dtypes"))

    # --- sections, each by its name

    def center(self) -> None:
        self.take("f", self.h.n_features, "number", FINITE)

    def decisions(self) -> None:
        self.records("decisions", self.h.n_decisions)

    def expansions(self) -> None:
        self.records("expansions", self.n_all)

    def centers(self) -> None:
        self.take("f", self.h.n_centers * self.h.n_features, "number", FINITE)

    def linear(self) -> None:
        self.rest("f", "number", within(LIMITS["max_" + self.section]))

    quadratic = higher = linear

    def direction(self) -> None:
        self.rest("f", "number", within(LIMITS["max_quadratic"]))

    def router(self) -> None:
        (n_groups,) = self.take("I", 1, "n_groups", Rule(1, min(self.h.n_centers, 4096)))
        (n_panels,) = self.take("I", 1, "n_panels")
        self.take("I", 1, "start", equal(0))
        self.take("I", n_groups - 1, "start")
        self.take("I", 1, "start", equal(n_panels))
        self.take("I", LIMITS["router_width"] * n_panels, "member", below(self.h.n_centers))
        self.pad(64)
        self.rest("f", "number", FINITE)

    def labels(self) -> None:
        if self.h.label_kind == ENUMERATIONS["label_kind"]["text"]:
            self.texts(self.h.n_labels)
        else:
            is_real = self.h.label_kind == ENUMERATIONS["label_kind"]["float64"]
            self.take("d" if is_real else "q", self.h.n_labels, "label", FINITE if is_real else ANY)

    def check_rows(self) -> None:
        self.records("check_row", (self.end - self.at) // 24)

    exact_check_rows = check_rows

    def feature_names(self) -> None:
        self.texts(self.h.n_raw_features)

    plan = vectorizers = dtypes = build_plan = utf8

    def class_counts(self) -> None:
        self.take("I", self.h.n_labels, "number")

    def majority_classes(self) -> None:
        self.take("I", self.h.n_centers, "number", below(self.h.n_labels))

    def dual_coef(self) -> None:
        self.rest("d", "number", FINITE)

    def support_vectors(self) -> None:
        storage, kind, width, n_dictionary, n_values = struct.unpack_from("<4IQ", self.data, self.at)
        has_codes, dense = kind >= ENUMERATIONS["value_kind"]["codes8"], storage == 0
        dictionary = Rule(1, LIMITS["max_dictionary"]) if has_codes else equal(0)
        counted = equal(n_values) if dense else ANY
        self.record("support_vectors", index_bytes=equal(width), n_dictionary=dictionary, n_values=counted)
        self.take("d", n_dictionary, "dictionary entry", FINITE)
        if storage == ENUMERATIONS["storage"]["relative"]:
            self.take("d", self.h.n_features, "reference number", FINITE)
        if not dense:
            code = {1: "B", 2: "H", 4: "I"}[width]
            self.take(code, self.n_sv, "sum")
            self.pad()
            self.take(code, n_values, "column", below(self.h.n_features))
            self.pad()
        if n_dictionary != 1:
            self.take("dfBH"[kind], n_values, *(("code", below(n_dictionary)) if has_codes else ("value", FINITE)))
            self.pad()

    def varying(self) -> None:
        self.rest("I", "number", below(self.h.n_features))

    def polynomial(self) -> None:
        self.take("d", 1, "coef0", FINITE)
        self.take("d", 1, "coef_error", FROM_0)
        while self.at < self.end:
            self.record("form")
            n, d = (self.end - self.at) // 8, self.h.n_features
            self.take("d", min(n, d if self.h.degree == 1 else d + d * (d + 1) // 2), "number", FINITE)

    def cosines(self) -> None:
        n = (self.end - self.at) // 8 // (self.h.n_decisions + 1 + self.h.n_features)
        self.take("d", n * self.h.n_decisions, "number", FINITE)
        self.take("d", n, "phase", within(LIMITS["max_phase"]))
        self.rest("d", "number", FINITE)

    def speculation(self) -> None:
        (n_landmarks,) = self.take("I", 1, "n_landmarks", below(self.n_sv + 1))
        self.take("I", 1, "reserved", equal(0))
        self.take("I", n_landmarks, "landmark", below(self.n_sv))
        self.pad()
        self.rest("f", "weight", FINITE)

    def subspaces(self) -> None:
        (n_stages,) = self.take("I", 1, "n_stages", Rule(1, LIMITS["max_subspace_stages"]))
        self.take("I", 1, "reserved", equal(0))
        *_, k = self.take("I", n_stages, "number of coordinates of stage", Rule(1, self.h.n_features))
        self.pad()
        n, d, n_sv = max(self.h.n_labels - 1, 1), self.h.n_features, self.n_sv
        for _ in range(self.h.n_labels if n > 1 else 1):
            self.take("d", 1, "skew of group", Rule(0, LIMITS["max_skew"]))
            own, *others = self.take("I", 1 + n, "number of (?:own|other) support vectors of group", below(n_sv + 1))
            self.pad()
            self.records("residual", n_stages * n)
            n_summed = n_stages - ("subspace_expansion" in self.sections)
            self.take("f", k * d, "basis number", FINITE)
            self.pad()
            self.take("f", (own + sum(others)) * k, "coordinate", FINITE)
            self.pad()
            self.take("f", n_summed * (n * own + sum(others)), "coefficient", within(LIMITS["most_coefficient"]))
            self.pad()

    def members(self) -> None:
        while self.at < self.end:
            (size,) = struct.unpack_from("<Q", self.data, self.at + 16)
            self.nested(size)

    def subspace_expansion(self) -> None:
        self.nested(self.end - self.at)

    def nested(self, size: int) -> None:
        inner = Layout(self.data, self.at, (*self.outer, (self.at, size)), self.section)
        self.numbers += inner.numbers
        self.at += size

    def categories(self) -> None:
        head = self.record("categories", n_columns=Rule(1, self.h.n_raw_features))
        for _ in range(head.n_columns):
            self.record("category_column", column=below(self.h.n_raw_features))
        self.take("I", head.n_texts, "end of text", below(self.end))
        self.utf8()

    def outputs(self) -> None:
        head = self.record("outputs")
        rule, kind = head.label_rule, head.probability
        if rule in (RULE["value_threshold"], RULE["probability_threshold"]):
            self.take("d", 1, "threshold", FINITE)
            self.take("d", 1, "label of the threshold", FLAG)
        if kind == KIND["one_vs_rest_calibration"]:
            for _ in range(head.n_calibrators):
                (n_knots,) = self.take("Q", 1, "number of knots of calibrator", below(self.end))
                self.take("d", n_knots or 2, "knot|number", FINITE)
                self.take("d", n_knots, "height|number", Rule(0, 1 + LIMITS["max_excess"]))
        temperature = Rule(5e-324, LIMITS["max_inverse_temperature"])
        words, may_be = {
            KIND["laplace_noise"]: ("sigma|number", FROM_0),
            KIND["temperature_calibration"]: ("inverse temperature|number", temperature),
            KIND["members_mean"]: ("total of the weights|number", Rule(2.0**-900, MOST)),
        }.get(kind, ("density mark|number", FINITE))
        self.rest("d", words, may_be)

    def combination(self) -> None:
        sizes = dict.fromkeys(("n_columns", "n_values", "n_weights"), NOTHING)
        columns = below(3) if self.h.n_labels > 0 else equal(0)
        head = self.record("combination", also="combination", columns=columns, **sizes)
        if head.n_values == 0:
            return
        self.take("d", head.n_values, "addend", FINITE)
        self.take("d", head.n_weights, "weight|number", FINITE)
        self.take("I", 1, "start of the weights of column", equal(0))
        self.take("I", head.n_columns - 1, "start of the weights of column", below(head.n_weights + 1))
        self.take("I", 1, "start of the weights of column", equal(head.n_weights))
        self.pad()
        self.take("I", head.n_weights, "value of weight", below(head.n_values))
        self.pad()

    def input_map(self) -> None:
        n_raw = self.h.n_raw_features
        head = self.record("input_map", n_raw_features=equal(n_raw))
        self.take("I", head.n_columns, "column", below(n_raw))
        self.pad()
        n = head.n_columns
        for _ in range(head.n_ops):
            n = self.op(n)
        while self.at < self.end:
            self.record("checked_column", column=below(n_raw))

    def op(self, width: int) -> int:
        """Read an op on a row with `width` features; return the number of features after it."""
        kind, parts, _, n, m = struct.unpack_from("<IIIIQ", self.data, self.at)
        name = list(ENUMERATIONS["op_kind"])[kind]
        pieces, degree = (parts // 8 + m, parts % 8) if name == "piecewise_polynomial" else (parts + m, 0)
        source = ("I", m, "input of output", below(n))
        ends = ("I", m, "end of the edges of output", below(pieces - m + 1))
        edges = ("d", pieces - m, "edge", FINITE)
        names = ("subtract", "multiply", "divide", "add", "low", "high", "relative_error")
        rules = (FINITE, FINITE, Rule(-MOST, MOST, bool), FINITE, NO_NAN, NO_NAN, FROM_0)
        affine = enumerate(zip(names, rules, strict=True))
        per_kind: dict[str, tuple[Rule, Any]] = {
            "affine": (Rule(1, 127), [("d", n, *part) for k, part in affine if parts >> k & 1]),
            "projection": (equal(0), [("d", n + n * m + m, "number of the projection", FINITE),
                                      ("d", m, "bias_error|number of the projection", FROM_0)]),
            "logarithm": (equal(0), [("d", n, "offset of the logarithm", PARAMETER)]),
            "lookup": (ANY, [source, ends, edges, ("d", pieces, "value", OR_REFUSED),
                            ("d", m, "number for NaN of output", OR_REFUSED)]),
            "normalizer": (below(9), []),
            "power": (below(2), [("d", n, "power of feature", PARAMETER)]),
            "piecewise_polynomial": (ANY, [source, ends, edges, ("d", pieces, "origin of piece", FINITE),
                             ("d", pieces * (degree + 1), "coefficient", FINITE)]),
            "monomials": (Rule(1, LIMITS["max_factors"]), [("I", m * parts, "factor", below(n + 1))]),
            "inverse_normal": (equal(0), []),
            "interval": (below(2), [("d", n, "low", FINITE), ("d", n, "high", PARAMETER)]),
        }  # fmt: skip
        may_be, arrays = per_kind[name]
        keeps = name not in ("projection", "lookup", "piecewise_polynomial", "monomials")
        places = {"n_inputs": below(width + 1), "first": below(width - n + 1)}
        n_outputs = equal(n) if keeps else below(LIMITS["max_n_features"] - width + n + 1)
        self.record("op", of="of op", parts=may_be, n_outputs=n_outputs, **places)
        for array in arrays:
            self.take(*array)
            if array[0] == "I" and self.at % 8:
                self.take("I", 1, array[2], equal(0))
        return int(width - n + m)
