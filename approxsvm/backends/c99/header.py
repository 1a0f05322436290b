"""A compiled model as one C99 header: constant arrays and static functions, for devices without heap or libc.

The header evaluates a row as the portable target of the core evaluates a single float32 row, operation by operation:
with float32 coefficients its values are those of the host's baseline target, narrowed from double to float at the very
end. It looks up a bound of each value (device_bounds.py), and so it can tell which labels are proven to be the exact
model's.

Whole numbers for coefficients (coefficients.py) save memory, not time: they become float32 where they are multiplied.
What they are off by is part of the bound.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, cast, get_args

import numpy as np
import numpy.typing as npt

from approxsvm.artifact.views import Artifact
from approxsvm.backends.c99 import probabilities_source, source, sums_source
from approxsvm.backends.c99.answers import Answers
from approxsvm.backends.c99.coefficients import CoefficientType
from approxsvm.backends.c99.device_rows import DeviceRows
from approxsvm.backends.c99.device_steps import step_programs
from approxsvm.backends.c99.ensembles import (
    adds_scores,
    asks_members_for_labels,
    check_rule,
    rule_arrays,
    rule_functions,
    rule_stack_bytes,
)
from approxsvm.backends.c99.expansions import Expansions
from approxsvm.backends.c99.few_values import FewValues
from approxsvm.backends.c99.input_codes import CodeType, InputCodes, input_codes
from approxsvm.backends.c99.lookups import CATEGORY_CODE, categories, category_arrays
from approxsvm.backends.c99.probabilities import has_shares
from approxsvm.backends.c99.program import program_text
from approxsvm.backends.c99.sums import SumFunction
from approxsvm.backends.float32_rows import check_float32_rows, leading_table
from approxsvm.errors import InputError, UnsupportedModelError
from approxsvm.ir.outputs import class_pairs
from approxsvm.system.output_files import write_whole

# What the frames of the functions take on the stack beside their arrays (gcc for Cortex-M, -fstack-usage).
_FRAME_BYTES: Final = 192
_ONE_CLASS_LABELS: Final = (1, -1)


@dataclass(frozen=True)
class CExport:
    """What an exported header costs on a device.

    Attributes
    ----------
    path : str
    flash_bytes : int
        Constant data. Code comes on top, by gcc -Os about 3 KiB for a Cortex-M4F and 8 to 12 for a Cortex-M0+, most of
        it the compiler's own arithmetic in double, and in float where the processor has none.
    ram_bytes : int
        Stack, about: arrays and the frames around them. There is no other memory.
    multiply_adds : int
        Of one row, in float32, whatever its values are; an input map works in float64 and is not counted.
    """

    path: str
    flash_bytes: int
    ram_bytes: int
    multiply_adds: int

    def __str__(self) -> str:
        return (
            f"{self.path}: {self.flash_bytes:,} bytes of constants, about {self.ram_bytes:,} bytes of stack, "
            f"{self.multiply_adds:,} multiply-adds per row"
        )


def export_c(
    artifact: Artifact,
    path: str | os.PathLike[str],
    *,
    name: str = "model",
    coefficients: str = "float32",
    inputs: str = "float32",
    X: Any = None,
) -> CExport:
    """Write the header, so that `path` holds all of it or, should this fail, what it held before.

    Parameters
    ----------
    artifact : Artifact
        Of mode "approximate", or "certified" with expansions of all decision functions.
    path : str or path
    name : str
        What every name in the header begins with.
    coefficients : {"float32", "int16", "int8"}
        How coefficients are stored.
    inputs : {"float32", "int16", "int8"}
        What rows are made of.
    X : array-like or sparse matrix of shape (n_rows, n_features), optional
        Rows like those to predict, whose range whole numbers as inputs are to cover.

    Returns
    -------
    CExport

    Raises
    ------
    InputError
        `name` is no name in C, `coefficients` or `inputs` is something else, or `X` is needed or of another shape.
    UnsupportedModelError
        The artifact has no expansions, or something that the export lacks; the message says what to do.
    """
    header = CHeader(artifact, name, coefficients, inputs, X)
    write_whole(header.text().encode(), path)
    return CExport(os.fspath(path), header.flash_bytes, header.ram_bytes, header.multiply_adds)


def check_exportable(artifact: Artifact) -> None:
    """Refuse what a device has nothing of.

    Raises
    ------
    UnsupportedModelError
        The message says what was found and what to do.
    """
    if artifact.members:
        check_rule(artifact)
    check_float32_rows(artifact, "train on numbers that are, x.astype('float32')")
    for one in (artifact, *artifact.members):
        outputs = one.outputs
        if not (one.averages or outputs.probability is None or has_shares(outputs.probability)):
            raise UnsupportedModelError(f"the C export has no {type(outputs.probability).__name__} probabilities")
    for label in artifact.labels.tolist():
        if isinstance(label, str) and "\0" in label:
            raise UnsupportedModelError(
                f"the label {label!r} has a character that ends a text in C: give it another name"
            )


def has_expansions(artifact: Artifact) -> bool:
    """Whether there is an expansion of each decision function."""
    return artifact.kernel == "gaussian" and artifact.mode != "exact" and not artifact.header["majority_only"]


class _Unit:
    """One model of a header: its rows, decision function and probabilities, all names with a prefix of its own."""

    def __init__(
        self,
        artifact: Artifact,
        prefix: str,
        kind: CoefficientType,
        codes: InputCodes | None,
        helpers: str,
        votes: bool,
        in_sums: bool,
    ) -> None:
        expands = has_expansions(artifact)
        self.artifact, self.prefix, self.kind, self.helpers, self.votes = artifact, prefix, kind, helpers, votes
        self.rows = DeviceRows(artifact, codes, wholly=not expands)
        if not expands and kind != "float32":
            raise UnsupportedModelError(
                f"coefficients are {kind} in expansions alone, but this header has "
                f"{artifact.kernel_name if artifact.kernel != 'gaussian' else 'support vectors'}: leave them float32"
            )
        self.function: Expansions | FewValues | SumFunction
        if expands:
            self.function = Expansions(artifact, self.rows, kind)
        else:
            self.function = FewValues.of(artifact, self.rows) or SumFunction(artifact, self.rows)
        self.answers = Answers(artifact, only_labels=votes, in_sums=in_sums)
        self.arrays = {**dict(self.rows.arrays()), **dict(self.function.arrays()), **self.answers.arrays}

    @property
    def stack_bytes(self) -> int:
        """Of the arrays of a call, about."""
        return self.function.stack_bytes + self.answers.stack_bytes

    def constants(self) -> dict[str, int]:
        """Sizes."""
        artifact, codes = self.artifact, self.rows.codes
        n_labels = len(artifact.labels) or (len(_ONE_CLASS_LABELS) if artifact.task == "one_class" else 0)
        numbers = {"n_features": artifact.n_raw_features, "n_values": artifact.n_decisions}
        if n_labels:
            numbers["n_labels"] = n_labels
        if codes:
            numbers["largest_code"] = codes.largest
        n_used = artifact.n_features if artifact.input_map is None else len(artifact.input_map.columns)
        if self.rows.table is not None:
            numbers["n_looked_up_"] = len(self.arrays["table_source_"])
        if "checked_columns_" in self.arrays:
            numbers["n_checked_"] = len(self.arrays["checked_columns_"])
        return numbers | {"n_mapped_": artifact.n_features, "n_used_": n_used} | self.function.constants()

    def text(self) -> Iterator[str]:
        """Arrays and functions, up to decision values, to probabilities where there are any, or to labels."""
        yield _enum(self.prefix, self.constants())
        yield from (source.array(f"{self.prefix}_{name}", numbers) for name, numbers in self.arrays.items())
        yield from (self.named(template) for template in self.templates())

    def templates(self) -> Iterator[str]:
        yield from self.rows.functions()
        yield from self.function.functions()
        yield from self.answers.functions()
        if self.votes and self.artifact.task == "classification":
            yield from self.answers.labels()

    def named(self, template: str) -> str:
        """A template with this model's names, types and numbers."""
        codes = self.rows.codes
        scalars = {
            "@T@": {"float32": "float", "int16": "int16_t", "int8": "int8_t"}[self.kind],
            "@ROW@": f"{codes.kind}_t" if codes else "float",
            "@COLUMN@": "(int)@columns@@[j]" if "columns_" in self.arrays else "j",
            "@NAN@": "" if codes and has_expansions(self.artifact) else "; NaN for @NOT_GIVEN@",
            "@ZERO@": "" if codes and has_expansions(self.artifact) else "; 0 for @NOT_GIVEN@",
            "@STRANGE@": "a row beyond the codes" if codes else "@NOT_GIVEN@",
            "@NOT_GIVEN@": self.function.strange,
            **self.function.scalars(),
        }
        for mark, text in scalars.items():
            template = template.replace(mark, text)
        template = re.sub(r"\bapproxsvm_(\w+)", rf"{self.helpers}_\1_", template)
        for helper in _HELPERS:
            template = template.replace(f"@{helper}@@", f"{self.helpers}_{helper}_")
        return source.with_decimals(template).replace("@@", "_").replace("@", f"{self.prefix}_")


# Functions that all models of a header share.
_HELPERS: Final = ("exp32", "narrowed", "above")


class CHeader:
    """The header of one artifact.

    Parameters
    ----------
    artifact : Artifact
    name, coefficients, inputs : str
    X : array-like or sparse matrix, optional
        As in `export_c`, which says what is raised.
    """

    def __init__(
        self, artifact: Artifact, name: str, coefficients: str, inputs: str = "float32", X: Any = None
    ) -> None:
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name):
            raise InputError(f"the name {name!r} does not begin a name in C: letters, digits and _, a letter first")
        kinds: tuple[CoefficientType, ...] = get_args(CoefficientType)
        for what, kind in (("coefficients", coefficients), ("inputs", inputs)):
            if kind not in kinds:
                raise InputError(f"{what} are {kind!r}, but must be one of {', '.join(kinds)}")
        check_exportable(artifact)
        if artifact.members and inputs != "float32":
            raise UnsupportedModelError(
                "the C export takes rows of codes for one model alone: leave inputs='float32', or export each member"
            )
        if inputs != "float32" and leading_table(artifact) is not None:
            raise UnsupportedModelError("the C export looks up rows of float32 numbers alone: leave inputs='float32'")
        self.artifact, self.name = artifact, name
        self.kind: CoefficientType = kinds[kinds.index(coefficients)]
        self.codes = None if inputs == "float32" else input_codes(artifact, cast(CodeType, inputs), X)
        members = {f"{name}_member_{k}": member for k, member in enumerate(artifact.members)} or {name: artifact}
        rule = asks_members_for_labels(artifact), adds_scores(artifact)
        self.units = [_Unit(member, prefix, self.kind, self.codes, name, *rule) for prefix, member in members.items()]
        self.labels = dict(self._labels())
        own = Answers(artifact) if artifact.members else self.units[0].answers
        self.has_shares = artifact.averages or own.shares is not None
        self.arrays = rule_arrays(artifact) if artifact.members else {}
        self.categories = categories(artifact)
        self.category_arrays = dict(category_arrays(artifact)) if self.categories else {}

    # --- what it costs

    @property
    def flash_bytes(self) -> int:
        """Bytes of all arrays."""
        labels = self._label_texts() or []
        texts = sum(len(text.encode()) + 1 + 4 for text in labels + self.categories)
        arrays = [self.labels, self.category_arrays, self.arrays, *(unit.arrays for unit in self.units)]
        return texts + sum(numbers.nbytes for some in arrays for numbers in some.values())

    @property
    def ram_bytes(self) -> int:
        """Bytes of stack, about."""
        own = rule_stack_bytes(self.artifact) if self.artifact.members else 0
        return max(unit.stack_bytes for unit in self.units) + own + _FRAME_BYTES

    @property
    def multiply_adds(self) -> int:
        """Multiplications in float32 of one row, exp's and scales aside."""
        return sum(unit.function.multiply_adds for unit in self.units)

    # --- labels

    def _labels(self) -> Iterator[tuple[str, npt.NDArray[Any]]]:
        if len(self.artifact.labels) and self._label_texts() is None:
            yield "labels", _c_integers(self.artifact.labels)
        if self.artifact.task == "one_class":
            yield "labels", np.array(_ONE_CLASS_LABELS, np.int32)

    def _label_texts(self) -> list[str] | None:
        labels = self.artifact.labels.tolist()
        return labels if labels and isinstance(labels[0], str) else None

    # --- its text

    def text(self) -> str:
        """All of the header."""
        guard = f"{self.name}_APPROXSVM_H"  # as it is: model and Model are two headers
        pieces = [self._head(), f"#ifndef {guard}\n#define {guard}\n", source.PREAMBLE]
        pieces += [self._named(template) for template in self._helpers()]
        if self.artifact.members:
            pieces.append(_enum(self.name, self._sizes()))
        texts = self._label_texts()
        if texts:
            pieces.append(source.texts_array(f"{self.name}_labels", texts))
        pieces += [source.array(f"{self.name}_{name}", numbers) for name, numbers in self.labels.items()]
        pieces += self._category_code() if self.categories else []
        pieces += [piece for unit in self.units for piece in unit.text()]
        pieces += [source.array(f"{self.name}_{name}", numbers) for name, numbers in self.arrays.items()]
        pieces += [self._named(template) for template in self._functions()]
        return "\n".join([*pieces, "#endif\n"])

    def _category_code(self) -> list[str]:
        """Codes of texts, which all models share."""
        return [
            source.texts_array(f"{self.name}_categories", self.categories),
            *(source.array(f"{self.name}_{name}", numbers) for name, numbers in self.category_arrays.items()),
            _enum(self.name, {"n_text_columns_": len(self.category_arrays["text_columns_"])}),
            self._named(CATEGORY_CODE),
        ]

    def _helpers(self) -> Iterator[str]:
        """What any of the models' functions call."""
        of_units = (template for unit in self.units for template in unit.templates())
        everything = "".join([*of_units, *self._functions()])
        yield source.SIZES
        yield from program_text(["bits.h", *self._programs(everything)])
        yield source.EXP
        yield sums_source.NARROWED

    def _programs(self, text: str) -> Iterator[str]:
        """Files of the core's C that a text calls."""
        if re.search(r"approxsvm_(exp|tanh|cos_or_sin|root)\(", text):
            yield "functions.h"
        if "approxsvm_lookup" in text:
            yield "lookup.h"
        for unit in self.units:
            if unit.rows.is_whole:
                yield from ["ball.h", *step_programs(unit.rows.stages)]

    def _named(self, template: str) -> str:
        """With the names of the whole header, which those of a single model are; #k# is the prefix of member k."""
        text = self.units[0].named(template)
        if self.artifact.members:
            text = text.replace(f"{self.units[0].prefix}_", f"{self.name}_")
            for k, unit in enumerate(self.units):
                text = text.replace(f"#{k}#", unit.prefix)
        return text

    def _sizes(self) -> dict[str, int]:
        """Of an ensemble."""
        n_labels = len(self.artifact.labels)
        n_values = 0 if self.artifact.averages else self.artifact.n_decisions
        sizes = {"n_features": self.artifact.n_raw_features, "n_values": n_values, "n_labels": n_labels}
        sizes |= {"n_targets": self.artifact.n_targets if self.artifact.of_targets else 0}
        return {name: size for name, size in sizes.items() if size}

    def _functions(self) -> Iterator[str]:
        """What programs call, and what several models become."""
        artifact = self.artifact
        if artifact.members:
            yield from rule_functions(artifact, [f"#{k}#" for k in range(len(self.units))])
        if artifact.n_decisions:
            yield source.NARROWING
            yield source.DECISION_VALUES.format(values_are=self._values_are())
        if self.has_shares:
            yield probabilities_source.PROBABILITIES
        if artifact.task == "regression":
            yield from self._regress()
            return
        if not artifact.members:
            yield from self.units[0].answers.labels()
        yield source.CLASSIFY_TARGETS if artifact.of_targets else source.CLASSIFY

    def _made_of(self) -> str:
        """What else was asked for."""
        return f", inputs={self.codes.kind!r}, X=..." if self.codes else ""

    def _values_are(self) -> str:
        """What the values mean, for a comment."""
        artifact = self.artifact
        if artifact.task == "regression":
            return ": the value itself" if artifact.n_decisions == 1 else ": one for each target"
        if artifact.outputs.label_rule == "value_threshold":
            label, least = artifact.outputs.threshold_label, artifact.outputs.threshold
            favour = "minus it" if label else "it"
            return f": {self.name}_labels[{label}] where {favour} is at least {least}, else the other"
        if artifact.task == "one_class":
            return ": above 0 for an inlier"
        if len(artifact.labels) == 2:
            return f": above 0 for {self.name}_labels[0], else the other"
        if artifact.outputs.of_each_class:
            return " of each label, by position: the largest wins"
        pairs = ", ".join(f"({i}, {j})" for i, j in class_pairs(len(artifact.labels))[:3])
        return f" of pairs of labels, by position {pairs}, ...: above 0 for the first"

    def _regress(self) -> Iterator[str]:
        if self.artifact.n_decisions == 1:
            yield source.REGRESS
        tolerance = float(self.artifact.header["tolerance"])
        what = "the value" if self.artifact.n_decisions == 1 else "each value"
        if tolerance == math.inf:
            means = "within a finite bound of the exact one"
            yield source.IS_WITHIN.format(what=what, certain_means=means, tolerance="FLT_MAX")
            return
        below = np.float32(tolerance)
        below = np.nextafter(below, np.float32(0)) if float(below) > tolerance else below
        means = f"within {source.literal(below)} of the exact one"
        yield source.IS_WITHIN.format(what=what, certain_means=means, tolerance=source.literal(below))

    def _head(self) -> str:
        artifact = self.artifact
        stored = "float32" if self.kind == "float32" else f"{self.kind}, what they are off by being part of every bound"
        given = "any numbers that the codes of a row stand for" if self.codes else "the float32 row as given"
        functions = list(dict.fromkeys(unit.function.what for unit in self.units))
        lines = [
            f"{self.name}: a kernel machine for {artifact.task.replace('_', '-')}, compiled by approxsvm.",
            "",
            f"Source: {artifact.source}; {artifact.header['n_support_vectors']} support vectors. "
            f"Artifact: mode {artifact.mode}, checksum {artifact.header['checksum']:08x}. Here: "
            f"{'; '.join(functions)}. Coefficients: {stored}.",
            *([f"Plan: {artifact.plan}"] if artifact.plan else []),
            f"Made by export_c('{self.name}.h', name={self.name!r}, coefficients={self.kind!r}{self._made_of()}).",
            "",
            "Promised: |value - exact value| never exceeds the bound, the exact value being that of the source's "
            f"decision function over the real numbers at {given}; where is_certain says 1, that is proven to give the "
            "same label. No memory but the stack, nothing of libc but memcpy where a compiler makes one of a loop.",
            "With -ffp-contract=off every processor gives the same values, bit for bit. approxsvm's own are sums in "
            "another order: both lie within their bounds. Bounds hold in any case.",
            f"Constants: {self.flash_bytes} bytes; stack: about {self.ram_bytes} bytes; multiply-adds per row: "
            f"{self.multiply_adds}.",
        ]
        if artifact.feature_names:
            lines += ["", "Features: " + ", ".join(f"[{j}] {name}" for j, name in enumerate(artifact.feature_names))]
        return source.comment(lines)


def _enum(prefix: str, numbers: dict[str, int]) -> str:
    body = ",\n".join(f"    {prefix}_{name} = {value}" for name, value in numbers.items())
    return f"enum {{\n{body}\n}};\n"


def _c_integers(labels: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Labels as int32 where they fit, else as int64, uint64 or double."""
    if labels.dtype.kind == "f":
        return labels.astype(np.float64)
    if max(labels.tolist()) >= 2**63:
        return labels.astype(np.uint64)
    numbers = labels.astype(np.int64)
    limits = np.iinfo(np.int32)
    return numbers.astype(np.int32) if ((numbers >= limits.min) & (numbers <= limits.max)).all() else numbers
