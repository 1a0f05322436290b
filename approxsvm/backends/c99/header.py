"""Export of a compiled model as a single C99 header: constant arrays and static functions, without heap or libc.

The header evaluates a row operation by operation as the core's portable target evaluates a single float32 row. With
float32 coefficients, it returns the values of the host's baseline target, narrowed from double to float at the very
end. For each value it looks up an error bound (device_bounds.py), so it can tell which labels are proven to agree with
the exact model.

Integer coefficients (coefficients.py) save memory, not time: they are converted to float32 when they are multiplied.
Their quantization error is included in the bound.
"""

import math
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, cast, get_args

import numpy as np
import numpy.typing as npt

from approxsvm.artifact.views import Artifact
from approxsvm.backends.c99 import ensembles, source
from approxsvm.backends.c99.answers import Answers
from approxsvm.backends.c99.coefficients import CoefficientType
from approxsvm.backends.c99.device_rows import DeviceRows
from approxsvm.backends.c99.expansions import Expansions
from approxsvm.backends.c99.few_values import FewValues
from approxsvm.backends.c99.input_codes import CodeType, InputCodes, input_codes
from approxsvm.backends.c99.lookups import categories, category_arrays
from approxsvm.backends.c99.program import filled, model_text, preamble, program_text
from approxsvm.backends.c99.sums import SumFunction
from approxsvm.backends.float32_rows import check_float32_rows, leading_lookup
from approxsvm.backends.names import check_name
from approxsvm.errors import InputError, UnsupportedModelError
from approxsvm.ir.outputs import class_pairs
from approxsvm.system.error_state import in_own_error_state
from approxsvm.system.output_files import write_whole

# Stack used by the functions' frames in addition to their arrays (gcc for Cortex-M, -fstack-usage).
_FRAME_BYTES: Final = 192
_ONE_CLASS_LABELS: Final = (1, -1)


@dataclass(frozen=True)
class CExport:
    """Resource requirements of an exported header on a device.

    Attributes
    ----------
    path : str
    flash_bytes : int
        Constant data. Code takes additional space: with gcc -Os, about 3 KiB on a Cortex-M4F and 8 to 12 KiB on a
        Cortex-M0+, mostly the compiler's software arithmetic for double, and for float if there is no FPU.
    ram_bytes : int
        Approximate stack usage: arrays and function frames. No other memory is used.
    multiply_adds : int
        Number per row, in float32, independent of its values; input maps use float64 and are not counted.
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


@in_own_error_state
def export_c(
    artifact: Artifact,
    path: str | os.PathLike[str],
    *,
    name: str = "model",
    coefficients: str = "float32",
    inputs: str = "float32",
    X: Any = None,
) -> CExport:
    """Write the header as `CompiledModel.export_c` documents it."""
    header = CHeader(artifact, name, coefficients, inputs, X)
    write_whole(header.text().encode(), path)
    return CExport(os.fspath(path), header.flash_bytes, header.ram_bytes, header.multiply_adds)


def check_exportable(artifact: Artifact) -> None:
    """Raise UnsupportedModelError, which names a remedy, if the C export does not support an artifact."""
    if artifact.members:
        ensembles.check_rule(artifact)
    check_float32_rows(artifact, "train on numbers that are, x.astype('float32')")
    for label in artifact.labels.tolist():
        if isinstance(label, str) and "\0" in label:
            raise UnsupportedModelError(
                f"the label {label!r} has a character that ends a text in C: give it another name"
            )


def has_expansions(artifact: Artifact) -> bool:
    """Return whether every decision function has an expansion."""
    return artifact.kernel == "gaussian" and artifact.mode != "exact" and not artifact.header["majority_only"]


class _Unit:
    """One model of a header: its rows, decision function and probabilities, under a prefix for all its names."""

    def __init__(
        self,
        artifact: Artifact,
        prefix: str,
        kind: CoefficientType,
        codes: InputCodes | None,
        helpers: str,
        is_member: bool,
        votes: bool,
        in_sums: bool,
    ) -> None:
        expands = has_expansions(artifact)
        self.artifact, self.prefix, self.kind, self.helpers, self.votes = artifact, prefix, kind, helpers, votes
        self.rows = DeviceRows(artifact, codes, wholly=not expands)
        if not expands and kind != "float32":
            raise UnsupportedModelError(
                f"coefficients can be {kind} only in expansions, but this header has "
                f"{artifact.kernel_name if artifact.kernel != 'gaussian' else 'support vectors'}: "
                "use coefficients='float32'"
            )
        self.function: Expansions | FewValues | SumFunction
        if expands:
            self.function = Expansions(artifact, self.rows, kind)
        else:
            self.function = FewValues.of(artifact, self.rows) or SumFunction(artifact, self.rows)
        self.answers = Answers(artifact, votes or not is_member, only_labels=votes, in_sums=in_sums)
        self.arrays = {**dict(self.rows.arrays()), **dict(self.function.arrays()), **self.answers.arrays}
        self.stack_bytes = self.function.stack_bytes + self.answers.stack_bytes

    def constants(self) -> dict[str, int]:
        """Return sizes, by name."""
        artifact, codes = self.artifact, self.rows.codes
        n_labels = len(artifact.labels) or (len(_ONE_CLASS_LABELS) if artifact.task == "one_class" else 0)
        numbers = {"n_features": artifact.n_raw_features, "n_values": artifact.n_decisions}
        if n_labels:
            numbers["n_labels"] = n_labels
        if codes:
            numbers["largest_code"] = codes.largest
        n_used = artifact.n_features if artifact.input_map is None else len(artifact.input_map.columns)
        if self.rows.lookup is not None:
            numbers["n_looked_up_"] = len(self.arrays["lookup_source_"])
        if "checked_columns_" in self.arrays:
            numbers["n_checked_"] = len(self.arrays["checked_columns_"])
        numbers |= {"n_mapped_": artifact.n_features, "n_used_": n_used}
        return numbers | self.function.constants()

    def text(self) -> Iterator[str]:
        """Yield arrays and functions, up to decision values, probabilities or labels, as needed."""
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
        """Insert this model's names, types and numbers into a template."""
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


# Functions shared by all models of a header.
_HELPERS: Final = ("exp32", "narrowed", "above")


class CHeader:
    """The header of one artifact; parameters and exceptions as in `CompiledModel.export_c`."""

    def __init__(
        self, artifact: Artifact, name: str, coefficients: str, inputs: str = "float32", X: Any = None
    ) -> None:
        check_name(name)
        kinds: tuple[CoefficientType, ...] = get_args(CoefficientType)
        for what, kind in (("coefficients", coefficients), ("inputs", inputs)):
            if kind not in kinds:
                raise InputError(f"{what} are {kind!r}, but must be one of {', '.join(kinds)}")
        check_exportable(artifact)
        if artifact.members and inputs != "float32":
            raise UnsupportedModelError(
                "the C export takes rows of codes only for a single model: use inputs='float32', or export each member"
            )
        if inputs != "float32" and leading_lookup(artifact) is not None:
            raise UnsupportedModelError("the C export supports lookups only for float32 rows: use inputs='float32'")
        self.artifact, self.name = artifact, name
        self.kind: CoefficientType = kinds[kinds.index(coefficients)]
        self.codes = None if inputs == "float32" else input_codes(artifact, cast(CodeType, inputs), X)
        members = {f"{name}_member_{k}": member for k, member in enumerate(artifact.members)} or {name: artifact}
        rule = bool(artifact.members), ensembles.asks_members_for_labels(artifact), ensembles.adds_scores(artifact)
        self.units = [_Unit(member, prefix, self.kind, self.codes, name, *rule) for prefix, member in members.items()]
        labels: Any = artifact.labels
        self.label_texts: list[str] = labels.tolist() if len(labels) and isinstance(labels[0], str) else []
        if artifact.task == "one_class":
            labels = np.array(_ONE_CLASS_LABELS)
        self.labels = {"labels": _c_integers(labels)} if len(labels) and not self.label_texts else {}
        own = Answers(artifact) if artifact.members else self.units[0].answers
        self.has_shares = artifact.averages or own.kind is not None
        self.arrays = ensembles.rule_arrays(artifact) if artifact.members else {}
        self.categories = categories(artifact)
        self.category_arrays = dict(category_arrays(artifact)) if self.categories else {}
        texts = sum(len(text.encode()) + 1 + 4 for text in self.label_texts + self.categories)
        arrays = [self.labels, self.category_arrays, self.arrays, *(unit.arrays for unit in self.units)]
        self.flash_bytes = texts + sum(numbers.nbytes for some in arrays for numbers in some.values())
        of_rule = ensembles.rule_stack_bytes(artifact) if artifact.members else 0
        self.ram_bytes = max(unit.stack_bytes for unit in self.units) + of_rule + _FRAME_BYTES
        self.multiply_adds = sum(unit.function.multiply_adds for unit in self.units)

    def text(self) -> str:
        """Return the whole header."""
        guard = f"{self.name}_APPROXSVM_H"  # case is preserved: model and Model are different headers
        pieces = [self._head(), f"#ifndef {guard}\n#define {guard}\n", preamble()]
        pieces += [self._named(template) for template in self._helpers()]
        if self.artifact.members:
            pieces.append(_enum(self.name, self._sizes()))
        if self.label_texts:
            pieces.append(source.texts_array(f"{self.name}_labels", self.label_texts))
        pieces += [source.array(f"{self.name}_{name}", numbers) for name, numbers in self.labels.items()]
        if self.categories:
            pieces.append(source.texts_array(f"{self.name}_categories", self.categories))
            pieces += [source.array(f"{self.name}_{name}", numbers) for name, numbers in self.category_arrays.items()]
            pieces.append(_enum(self.name, {"n_text_columns_": len(self.category_arrays["text_columns_"])}))
            pieces.append(self._named(model_text("CATEGORY_CODE")))
        pieces += [piece for unit in self.units for piece in unit.text()]
        pieces += [source.array(f"{self.name}_{name}", numbers) for name, numbers in self.arrays.items()]
        pieces += [self._named(template) for template in self._functions()]
        return "\n".join([*pieces, "#endif\n"])

    def _helpers(self) -> Iterator[str]:
        """Yield the functions that the models' functions call."""
        of_units = (template for unit in self.units for template in unit.templates())
        everything = "".join([*of_units, *self._functions()])
        yield model_text("SIZES")
        helpers = model_text("EXP") + model_text("NARROWED")
        own = Answers(self.artifact).parameters if self.artifact.members else {}
        every = [found for found in (own, *(unit.answers.parameters for unit in self.units)) if found]
        same = {name: number for name, number in (every or [{}])[0].items() if {one[name] for one in every} == {number}}
        yield from program_text(everything + helpers, same)
        yield helpers

    def _named(self, template: str) -> str:
        """Insert the names of the whole header, shared by a single model; #k# becomes the prefix of member k."""
        text = self.units[0].named(template)
        if self.artifact.members:
            text = text.replace(f"{self.units[0].prefix}_", f"{self.name}_")
            for k, unit in enumerate(self.units):
                text = text.replace(f"#{k}#", unit.prefix)
        return text

    def _sizes(self) -> dict[str, int]:
        """Return the sizes of an ensemble."""
        n_labels = len(self.artifact.labels)
        n_values = 0 if self.artifact.averages else self.artifact.n_decisions
        sizes = {"n_features": self.artifact.n_raw_features, "n_values": n_values, "n_labels": n_labels}
        sizes |= {"n_targets": self.artifact.n_targets if self.artifact.of_targets else 0}
        return {name: size for name, size in sizes.items() if size} | ensembles.rule_constants(self.artifact)

    def _functions(self) -> Iterator[str]:
        """Yield the public functions, and those that combine several models."""
        artifact = self.artifact
        if artifact.members:
            yield from ensembles.rule_functions(artifact, [f"#{k}#" for k in range(len(self.units))])
        if artifact.n_decisions:
            yield model_text("NARROWING")
            yield filled("DECISION_VALUES", values_are=self._values_are())
        if self.has_shares:
            yield model_text("PROBABILITIES")
        if artifact.task == "regression":
            yield from self._regress()
            return
        if not artifact.members:
            yield from self.units[0].answers.labels()
        yield model_text("CLASSIFY_TARGETS" if artifact.of_targets else "CLASSIFY")

    def _values_are(self) -> str:
        """Return the meaning of the values, for a comment."""
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
            yield model_text("REGRESS")
        tolerance = float(self.artifact.header["tolerance"])
        what = "the value" if self.artifact.n_decisions == 1 else "each value"
        if tolerance == math.inf:
            means = "within a finite bound of the exact one"
            yield filled("IS_WITHIN", what=what, means=means, tolerance="FLT_MAX")
            return
        below = np.float32(tolerance)
        below = np.nextafter(below, np.float32(0)) if float(below) > tolerance else below
        means = f"within {source.literal(below)} of the exact one"
        yield filled("IS_WITHIN", what=what, means=means, tolerance=source.literal(below))

    def _head(self) -> str:
        artifact = self.artifact
        stored = "float32" if self.kind == "float32" else f"{self.kind}; every bound includes their quantization error"
        given = "any numbers that the codes of a row represent" if self.codes else "the float32 row as given"
        functions = list(dict.fromkeys(unit.function.what for unit in self.units))
        inputs = f", inputs={self.codes.kind!r}, X=..." if self.codes else ""
        lines = [
            f"{self.name}: a kernel machine for {artifact.task.replace('_', '-')}, compiled by approxsvm.",
            "",
            f"Source: {artifact.source}; {artifact.header['n_support_vectors']} support vectors. "
            f"Artifact: mode {artifact.mode}, checksum {artifact.header['checksum']:08x}. Here: "
            f"{'; '.join(functions)}. Coefficients: {stored}.",
            *([f"Plan: {artifact.plan}"] if artifact.plan else []),
            f"Made by export_c('{self.name}.h', name={self.name!r}, coefficients={self.kind!r}{inputs}).",
            "",
            "Guarantee: |value - exact value| never exceeds the bound. The exact value is that of the source's "
            f"decision function over the real numbers at {given}. If is_certain returns 1, the exact value is proven "
            "to give the same label. The functions use only the stack, and nothing of libc except memcpy if the "
            "compiler makes one from a loop.",
            "With -ffp-contract=off, every processor gives the same values, bit for bit. approxsvm itself adds numbers "
            "in a different order; both values lie within their bounds. Bounds hold in any case.",
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
    """Return labels as int32 if they fit, otherwise as int64, uint64 or double."""
    if labels.dtype.kind == "f":
        return labels.astype(np.float64)
    if max(labels.tolist()) >= 2**63:
        return labels.astype(np.uint64)
    numbers = labels.astype(np.int64)
    limits = np.iinfo(np.int32)
    return numbers.astype(np.int32) if ((numbers >= limits.min) & (numbers <= limits.max)).all() else numbers
