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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast, get_args

import numpy as np
import numpy.typing as npt

from approxsvm.artifact.views import Artifact
from approxsvm.errors import InputError, UnsupportedModelError
from approxsvm.export.c99 import source
from approxsvm.export.c99.coefficients import CoefficientType, Part, parts_of
from approxsvm.export.c99.device_bounds import BoundTable, affine_stages
from approxsvm.export.c99.device_router import DeviceRouter, smallest
from approxsvm.export.c99.input_codes import CodeType, input_codes
from approxsvm.export.c99.lookups import (
    CATEGORY_CODE,
    LOOKED_UP,
    categories,
    category_arrays,
    leading_table,
    lookup_arrays,
)
from approxsvm.model.outputs import class_pairs
from approxsvm.model.steps import Affine
from approxsvm.output_files import write_whole

# Values beyond this would not be finite in float32.
_LARGEST_VALUE: Final = 1e37
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
    """Refuse what the header has no functions for.

    Raises
    ------
    UnsupportedModelError
        The message says what was found and what to do.
    """
    again = 'compile(..., mode="approximate")'
    if artifact.members:
        raise UnsupportedModelError(
            f"the C export has no ensembles, but this one has {len(artifact.members)} members: export each by itself"
        )
    if artifact.kernel != "gaussian":
        raise UnsupportedModelError(f"the C export is of Gaussian kernels, but this one is {artifact.kernel_name}")
    if artifact.mode == "exact":
        raise UnsupportedModelError(f"an artifact of mode exact has no expansions to export: use {again}")
    if artifact.header["majority_only"]:
        raise UnsupportedModelError(f"this artifact has expansions of majority classes alone: export one of {again}")
    if artifact.outputs.of_each_class or (artifact.task == "regression" and artifact.n_decisions > 1):
        raise UnsupportedModelError(
            f"the C export has one decision function or those of pairs, but this model has {artifact.n_decisions} "
            "linear functions: fit and export one for each"
        )
    if artifact.outputs.label_rule == "probability":
        raise UnsupportedModelError(
            "the C export has labels by votes and scores, but this model's are those of the greatest probability: "
            "compile the classifier inside the calibration"
        )
    for label in artifact.labels.tolist():
        if isinstance(label, str) and "\0" in label:
            raise UnsupportedModelError(
                f"the label {label!r} has a character that ends a text in C: give it another name"
            )
    numbers, decisions = artifact.expansion_numbers(), artifact.decision_numbers()
    largest = float(numbers["norms"].sum(axis=1).max() + np.abs(decisions["intercept"]).max())
    if not largest < _LARGEST_VALUE:
        raise UnsupportedModelError(f"decision values up to {largest:.3g} do not fit float32: scale the coefficients")
    affine_stages(artifact)


class CHeader:
    """The header of one artifact: its arrays by name, and the functions that it needs.

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
        self.artifact, self.name = artifact, name
        self.kind: CoefficientType = kinds[kinds.index(coefficients)]
        self.parts: Sequence[Part] = parts_of(artifact, self.kind)
        self.stages = affine_stages(artifact)
        self.table = leading_table(artifact)
        self.categories = categories(artifact)
        if self.table is not None and inputs != "float32":
            raise UnsupportedModelError("the C export looks up rows of float32 numbers alone: leave inputs='float32'")
        self.codes = None if inputs == "float32" else input_codes(artifact, cast(CodeType, inputs), X)
        self.folded = self.codes.folded(artifact, self.stages) if self.codes else None
        moved = self.codes.moved(artifact, self.stages) if self.codes else 0.0
        self.bounds = BoundTable(artifact, self.parts, moved)
        self.degree = int(artifact.header["degree"])
        self.router = DeviceRouter(artifact) if artifact.n_centers > 1 else None
        self.has_map = artifact.input_map is not None
        self.has_slices = artifact.n_varying < artifact.n_features
        self.arrays = dict(self._arrays())

    # --- what it costs

    @property
    def flash_bytes(self) -> int:
        """Bytes of all arrays."""
        labels = self._label_texts()
        texts = sum(len(text.encode()) + 1 + 4 for text in labels) if labels else 0
        texts += sum(len(text.encode()) + 1 + 4 for text in self.categories)
        return texts + sum(numbers.nbytes for numbers in self.arrays.values())

    @property
    def ram_bytes(self) -> int:
        """Bytes of stack, about."""
        n_values, n_labels = int(self.artifact.header["n_decisions"]), len(self.artifact.labels)
        per_label = 0 if n_labels <= 2 else 32 if self._by_scores() else 8
        return 4 * self.artifact.n_features + 12 * n_values + per_label * n_labels + _FRAME_BYTES

    @property
    def multiply_adds(self) -> int:
        """Multiplications in float32 of one row, exp's and scales aside."""
        n, n_values = self.artifact.n_varying, int(self.artifact.header["n_decisions"])
        total = self.artifact.n_features + n_values * (n + sum(_multiply_adds(n, k) for k in range(2, self.degree + 1)))
        return total + (self.router.largest_search * self.artifact.n_features if self.router else 0)

    # --- its arrays

    def _arrays(self) -> Iterator[tuple[str, npt.NDArray[Any]]]:
        artifact = self.artifact
        if len(artifact.labels) and self._label_texts() is None:
            yield "labels", _c_integers(artifact.labels)
        if artifact.task == "one_class":
            yield "labels", np.array(_ONE_CLASS_LABELS, np.int32)
        if self.codes:
            yield "offsets", self.codes.offsets
            yield "steps", self.codes.steps
        if artifact.input_map is not None:
            columns = artifact.input_map.columns
            if self.table is not None:
                yield from lookup_arrays(self.table, columns)
            elif len(columns) != artifact.n_raw_features or (columns != np.arange(len(columns))).any():
                yield "columns_", smallest(columns)
            if self.folded:
                yield from zip(("slopes_", "bases_"), self.folded, strict=True)
            for k, stage in enumerate(() if self.folded else self.stages):
                yield from ((f"{part}_{k}_", numbers) for part, numbers in _affine_arrays(stage).items())
        if self.categories:
            yield from category_arrays(artifact)
        if self.router:
            yield "reference_", artifact.center
            yield from ((f"{name}_", numbers) for name, numbers in self.router.arrays().items())
        if self.has_slices:
            yield "varying_", smallest(artifact.numbers("varying"))
            totals = artifact.decision_numbers()["total"].astype(np.float32)
            yield "totals_", np.nextafter(totals, np.float32(np.inf))
        records = artifact.expansion_numbers()
        yield "centers_", artifact.centers()
        yield "intercepts_", artifact.decision_numbers()["intercept"].copy()
        yield "constants_", records["constant"].copy()
        yield "output_scales_", records["output_scale"].copy()
        for part in self.parts:
            yield f"degree_{part.degree}_", part.values
            if part.scales is not None:
                yield f"scale_{part.degree}_", part.scales
        yield "bounds_", self.bounds.bits

    def _label_texts(self) -> list[str] | None:
        labels = self.artifact.labels.tolist()
        return labels if labels and isinstance(labels[0], str) else None

    def _by_scores(self) -> bool:
        return len(self.artifact.labels) > 2 and self.artifact.outputs.label_rule == "scores"

    # --- its text

    def text(self) -> str:
        """All of the header."""
        guard = f"{self.name.upper()}_APPROXSVM_H"
        pieces = [self._head(), f"#ifndef {guard}\n#define {guard}\n", source.PREAMBLE, self._constants()]
        texts = self._label_texts()
        if texts:
            pieces.append(source.texts_array(f"{self.name}_labels", texts))
        if self.categories:
            pieces.append(source.texts_array(f"{self.name}_categories", self.categories))
        pieces += [source.array(f"{self.name}_{name}", numbers) for name, numbers in self.arrays.items()]
        pieces += [self._named(function) for function in self._functions()]
        return "\n".join([*pieces, "#endif\n"])

    def _named(self, template: str) -> str:
        """A template with this model's names, types and scalars."""
        artifact = self.artifact
        number = {"float32": "float", "int16": "int16_t", "int8": "int8_t"}[self.kind]
        end = np.float32(2.0 ** (self.bounds.first_octave + self.bounds.n_octaves))
        theta = 2.0 * artifact.header["gamma"] / artifact.header["input_scale"] ** 2
        scalars = {
            "@T@": number,
            "@ROW@": f"{self.codes.kind}_t" if self.codes else "float",
            "@COLUMN@": "(int)@columns@@[j]" if "columns_" in self.arrays else "j",
            "@STRANGE@": "a row beyond the codes" if self.codes else "a row that is not finite",
            "@NAN@": "" if self.codes else "; NaN for a row that is not finite",
            "@ZERO@": "" if self.codes else "; 0 for a row that is not finite",
            "@end_of_cells@@": source.literal(end),
            "@theta_above@@": source.literal(np.float32(theta * 1.00001)),
            "@half_theta@@": source.literal(np.float32(0.5 * theta)),
            "@input_scale@@": source.literal(np.float32(artifact.header["input_scale"])),
        }
        for mark, text in scalars.items():
            template = template.replace(mark, text)
        return template.replace("@@", "_").replace("@", f"{self.name}_")

    def _constants(self) -> str:
        artifact, n_labels = self.artifact, len(self.artifact.labels)
        cells = {
            "first_cell_": (self.bounds.first_octave + 127) * self.bounds.cells_per_octave,
            "cell_shift_": 24 - self.bounds.cells_per_octave.bit_length(),
            "n_cells_": self.bounds.bits.shape[1],
        }
        numbers = {"n_features": artifact.n_raw_features, "n_values": int(artifact.header["n_decisions"])}
        if n_labels or artifact.task == "one_class":
            numbers["n_labels"] = n_labels or len(_ONE_CLASS_LABELS)
        if self.codes:
            numbers["largest_code"] = self.codes.largest
        numbers |= {"n_mapped_": artifact.n_features, "n_varying_": artifact.n_varying, **cells}
        if self.table is not None:
            numbers["n_looked_up_"] = self.table.n_outputs
        if self.categories:
            numbers["n_text_columns_"] = len(artifact.raw_columns.texts)
        numbers |= {f"size_{part.degree}_": part.values.shape[1] for part in self.parts}
        if self.router:
            numbers["n_group_panels_"] = self.router.n_group_panels
        body = ",\n".join(f"    {self.name}_{name} = {value}" for name, value in numbers.items())
        return f"enum {{\n{body}\n}};\n"

    def _functions(self) -> Iterator[str]:
        yield source.BITS
        yield source.EXP
        yield source.CELL
        yield source.NORM_PLAIN if self.degree == 1 else source.NORM_IN_LANES
        if self.degree == 1 or self.kind != "float32":
            yield source.LINEAR
        if self.degree >= 2:
            yield source.QUADRATIC
        if self.degree >= 3:
            yield source.PART_2
        yield from (source.PART.format(k=k, below=k - 1) for k in range(3, self.degree + 1))
        if self.codes and not self.folded:
            yield source.DECODED
        if self.categories:
            yield CATEGORY_CODE
        of_numbers = source.CODES if self.codes else source.RAW + source.NOT_FINITE
        yield of_numbers if self.table is None else LOOKED_UP
        yield self._coordinates()
        if self.router:
            yield source.ROUTER
        if self.has_slices:
            yield source.SLICE
        yield self._evaluate()
        yield source.NARROWING
        yield source.DECISION_VALUES.format(values_are=self._values_are())
        if self.artifact.task == "regression":
            yield self._regress()
            return
        n_labels = len(self.artifact.labels)
        yield source.TWO_CLASSES if n_labels <= 2 else source.SCORES if self._by_scores() else source.VOTES
        yield source.CLASSIFY

    def _coordinates(self) -> str:
        """A coordinate of a row, and the feature behind it where there is an input map."""
        if not self.has_map:
            return (
                "static inline float @coordinate@@(const @ROW@ row[], int j, const float center[]) {\n"
                "    return (@raw@@(row, j) - center[j]) * @input_scale@@;\n}\n"
            )
        if self.folded:
            return (
                "/* The map of the source and the decoding are one step. */\n"
                "static inline float @coordinate@@(const @ROW@ row[], int j, const float center[]) {\n"
                "    const float x = @slopes@@[j] * (float)row[@COLUMN@] + @bases@@[j];\n"
                "    return (x - center[j]) * @input_scale@@;\n}\n"
            )
        given = "(double)@raw@@(row, @COLUMN@)" if self.table is None else "@looked_up@@(row, j)"
        lines = [f"    double x = {given};"]
        for k, stage in enumerate(self.stages):
            for part in _affine_arrays(stage):
                number = f"@{part}_{k}@@[j]"
                compare = {"low": "<", "high": ">"}.get(part)
                operator = {"subtract": "-=", "multiply": "*=", "divide": "/=", "add": "+="}.get(part)
                if compare:
                    lines.append(f"    x = x {compare} {number} ? {number} : x;")
                else:
                    lines.append(f"    x {operator} {number};")
        body = "\n".join(lines)
        return (
            "/* Feature j of a row as the source maps it, in its order of operations. */\n"
            f"static inline double @feature@@(const @ROW@ row[], int j) {{\n{body}\n    return x;\n}}\n"
            "static inline float @coordinate@@(const @ROW@ row[], int j, const float center[]) {\n"
            "    return (float)((@feature@@(row, j) - (double)center[j]) * (double)@input_scale@@);\n}\n"
        )

    def _evaluate(self) -> str:
        """The function that does the work: every decision value, with its bound."""
        load = "for (j = 0; j < @n_mapped@@; ++j) u[j] = @coordinate@@(row, j, {});"
        lines = []
        if self.has_map and not self.codes:  # limits could hide what is not finite
            lines.append("wrong = @not_finite@@(row);")
        if self.router:
            lines += [load.format("@reference@@"), "center = @center@@(u);"]
        lines.append(load.format("@centers@@ + center * @n_mapped@@"))
        finite = "half_s <= FLT_MAX"
        if self.has_slices:
            lines += ["off_sq = @keep_varying@@(u);", "distance = @slice_distance@@(off_sq);"]
            finite += " && off_sq <= FLT_MAX"
        lines.append("half_s = @half_theta@@ * @sq_norm@@(u);")
        if not self.has_map and not self.codes:
            lines.append(f"if (!({finite})) wrong = @not_finite@@(row);")
        slack = []
        if self.has_slices:
            slack.append("bounds[k] = 1.00001f * (bounds[k] + @totals@@[k] * distance);")
        if self.codes:
            slack.append("if (is_saturated) bounds[k] = @float_of@@(0x7F800000u);")
        return source.EVALUATE.format(
            declare="".join(f"    {line}\n" for line in self._declarations()),
            load="".join(f"    {line}\n" for line in lines),
            refuse="" if self.codes else source.REFUSE,
            forms="".join(f"        {line}\n" for line in self._forms()),
            slack="".join(f"        {line}\n" for line in slack),
        )

    def _declarations(self) -> Iterator[str]:
        """Variables of `evaluate`."""
        yield "float u[@n_mapped@@], half_s, gaussian;"
        yield "int center = 0, cell, j, k;"
        if self.has_slices:
            yield "float off_sq, distance;"
        yield "const int is_saturated = @is_saturated@@(row);" if self.codes else "float wrong = 0.0f;"

    def _forms(self) -> Iterator[str]:
        """Statements that add the parts of every degree to `inner`."""
        linear = "@linear_form@@(@degree_1@@ + e * @size_1@@, u)"
        quadratic = "@quadratic_form@@(@degree_2@@ + e * @size_2@@, {}, @n_varying@@, u)"
        if self.kind == "float32":
            joined = quadratic.format("@degree_1@@ + e * @size_1@@")
            yield f"inner += (double){linear if self.degree == 1 else joined};"
        else:
            yield f"inner += (double)(@scale_1@@[e] * {linear});"
            if self.degree >= 2:
                yield f"inner += (double)(@scale_2@@[e] * {quadratic.format('(const @T@ *)0')});"
        for k in range(3, self.degree + 1):
            part = f"@part_{k}@@(&next, @n_varying@@, u)"
            yield "{"
            yield f"    const @T@ *next = @degree_{k}@@ + e * @size_{k}@@;"
            yield f"    inner += (double){part if self.kind == 'float32' else f'(@scale_{k}@@[e] * {part})'};"
            yield "}"

    def _made_of(self) -> str:
        """What else was asked for."""
        return f", inputs={self.codes.kind!r}, X=..." if self.codes else ""

    def _values_are(self) -> str:
        """What the values mean, for a comment."""
        if self.artifact.task == "regression":
            return ": the value itself"
        if self.artifact.task == "one_class":
            return ": above 0 for an inlier"
        if len(self.artifact.labels) == 2:
            return f": above 0 for {self.name}_labels[0], else the other"
        pairs = ", ".join(f"({i}, {j})" for i, j in class_pairs(len(self.artifact.labels))[:3])
        return f" of pairs of labels, by position {pairs}, ...: above 0 for the first"

    def _regress(self) -> str:
        tolerance = float(self.artifact.header["tolerance"])
        if tolerance == math.inf:
            return source.REGRESS.format(certain_means="within a finite bound of the exact one", tolerance="FLT_MAX")
        below = np.float32(tolerance)
        below = np.nextafter(below, np.float32(0)) if float(below) > tolerance else below
        means = f"within {source.literal(below)} of the exact one"
        return source.REGRESS.format(certain_means=means, tolerance=source.literal(below))

    def _head(self) -> str:
        artifact = self.artifact
        stored = "float32" if self.kind == "float32" else f"{self.kind}, what they are off by being part of every bound"
        given = "any numbers that the codes of a row stand for" if self.codes else "the float32 row as given"
        same = (
            "With -ffp-contract=off values are those of approxsvm's portable target for a float32 row, bit for bit, "
            "narrowed to float at the end; bounds hold in any case."
        )
        lines = [
            f"{self.name}: an RBF support vector machine for {artifact.task.replace('_', '-')}, expanded by approxsvm.",
            "",
            f"Source: {artifact.source}; {artifact.header['n_support_vectors']} support vectors. "
            f"Artifact: mode {artifact.mode}, checksum {artifact.header['checksum']:08x}, degree {self.degree}, "
            f"{artifact.n_centers} center{'s' * (artifact.n_centers > 1)}. Coefficients: {stored}.",
            *([f"Plan: {artifact.plan}"] if artifact.plan else []),
            f"Made by export_c('{self.name}.h', name={self.name!r}, coefficients={self.kind!r}{self._made_of()}).",
            "",
            "Promised: |value - exact value| never exceeds the bound, the exact value being that of the source's "
            f"decision function over the real numbers at {given}; where is_certain says 1, that is proven to give the "
            "same label. No memory but the stack, nothing of libc.",
            *([same] if self.kind == "float32" and not self.codes else []),
            f"Constants: {self.flash_bytes} bytes; stack: about {self.ram_bytes} bytes; multiply-adds per row: "
            f"{self.multiply_adds}.",
        ]
        if artifact.feature_names:
            lines += ["", "Features: " + ", ".join(f"[{j}] {name}" for j, name in enumerate(artifact.feature_names))]
        return source.comment(lines)


def _multiply_adds(n: int, degree: int) -> int:
    """Of the part of this degree in n variables: each coefficient, and each variable that a sum is multiplied by."""
    if degree == 2:
        return n * (n + 1) // 2 + n
    return sum(_multiply_adds(n - i, degree - 1) + 1 for i in range(n))


def _affine_arrays(stage: Affine) -> dict[str, npt.NDArray[np.float64]]:
    """The numbers that a stage works with, in the order of its operations; limits that are infinite never act."""
    found = {}
    largest = np.finfo(np.float64).max
    for name in ("subtract", "multiply", "divide", "add", "low", "high"):
        numbers = getattr(stage, name)
        if numbers is not None and not (name in ("low", "high") and np.isinf(numbers).all()):
            found[name] = numbers.clip(-largest, largest)
    return found


def _c_integers(labels: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Labels as int32 where they fit, else as int64, uint64 or double."""
    if labels.dtype.kind == "f":
        return labels.astype(np.float64)
    if max(labels.tolist()) >= 2**63:
        return labels.astype(np.uint64)
    numbers = labels.astype(np.int64)
    limits = np.iinfo(np.int32)
    return numbers.astype(np.int32) if ((numbers >= limits.min) & (numbers <= limits.max)).all() else numbers
