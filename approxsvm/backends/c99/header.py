"""Export of a compiled model as one C99 header: constant arrays and static functions, with no use of the heap or libc.

The header evaluates a row as the core's portable target evaluates a single float32 row, operation by operation. With
float32 coefficients, it returns the values computed by the host's baseline target, narrowed from double to float at the
end. For each value, it looks up an error bound (device/bounds.py). The bound shows whether the label is proven to equal
the exact model's.

Integer coefficients (coefficients.py) save memory but no time, because each one is converted to float32 before its
multiplication. The bound includes the quantization error.
"""

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, cast, get_args

import numpy as np
import numpy.typing as npt

from approxsvm.artifact.views import Artifact
from approxsvm.backends.c99 import ensembles, source
from approxsvm.backends.c99.answers import Answers, Arrays, Macros, common_parameters
from approxsvm.backends.c99.coefficients import CoefficientType
from approxsvm.backends.c99.device.rows import DeviceRows
from approxsvm.backends.c99.expansions import Expansions
from approxsvm.backends.c99.few_values import FewValues
from approxsvm.backends.c99.input_codes import CodeType, InputCodes, input_codes
from approxsvm.backends.c99.lookups import categories, category_arrays
from approxsvm.backends.c99.sums import SumFunction
from approxsvm.backends.c99.text import Text, used
from approxsvm.backends.float32_rows import check_float32_rows, leading_lookup
from approxsvm.backends.names import check_name
from approxsvm.errors import InputError, UnsupportedModelError
from approxsvm.ir.outputs import class_pairs
from approxsvm.system.error_state import in_own_error_state
from approxsvm.system.output_files import write_whole

# Stack size of the function frames without local arrays (gcc for Cortex-M, -fstack-usage).
_FRAME_BYTES: Final = 192
_ONE_CLASS_LABELS: Final = (1, -1)

Numbers = tuple[Macros, Arrays]


@dataclass(frozen=True)
class CExport:
    """Resources that an exported header needs on a device.

    Attributes
    ----------
    path : str
    flash_bytes : int
        Size of the constant data. Code takes additional space: with gcc -Os, about 3 KiB on a Cortex-M4F and 8 to 12
        KiB on a Cortex-M0+, mostly for the compiler's software arithmetic for double, and for float without an FPU.
    ram_bytes : int
        Approximate stack space used by arrays and function frames. The functions use no other memory.
    multiply_adds : int
        Number of float32 multiply-adds per row, the same for all rows. Input maps use float64 and are not counted.
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
    """Write a header, as documented in `CompiledModel.export_c`."""
    header = CHeader(artifact, name, coefficients, inputs, X)
    write_whole(header.text().encode(), path)
    return CExport(os.fspath(path), header.flash_bytes, header.ram_bytes, header.multiply_adds)


def check_exportable(artifact: Artifact) -> None:
    """Raise UnsupportedModelError if the C export does not support an artifact; the message suggests a remedy."""
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
    """One model in a header, with the prefix of all its names and the outputs that the header needs."""

    def __init__(
        self, artifact: Artifact, prefix: str, kind: CoefficientType, codes: InputCodes | None, answers: Answers
    ) -> None:
        expands = has_expansions(artifact)
        self.artifact, self.prefix, self.answers = artifact, prefix, answers
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
        self.stack_bytes = self.function.stack_bytes + answers.stack_bytes

    def numbers(self) -> Numbers:
        """Return the macros and arrays of the model (cpp/include/approxsvm/exported/member.h)."""
        macros = _sizes(self.artifact) | self.rows.macros | self.function.macros | self.answers.macros
        return macros, dict(self.rows.arrays()) | dict(self.function.arrays()) | self.answers.arrays


class CHeader:
    """Header of one artifact; `CompiledModel.export_c` documents parameters and exceptions."""

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
        self.units = [
            _Unit(member, prefix, self.kind, self.codes, ensembles.answers_of(artifact, member))
            for prefix, member in members.items()
        ]
        labels: Any = artifact.labels
        self.label_texts: list[str] = labels.tolist() if len(labels) and isinstance(labels[0], str) else []
        self.categories = categories(artifact)
        self._text, self.flash_bytes = Text(name), 0
        self._body = "\n".join(self._pieces())
        self.ram_bytes = max(unit.stack_bytes for unit in self.units) + _FRAME_BYTES
        self.ram_bytes += ensembles.rule_stack_bytes(artifact) if artifact.members else 0
        self.multiply_adds = sum(unit.function.multiply_adds for unit in self.units)

    def text(self) -> str:
        """Return the text of the whole header."""
        guard = f"{self.name}_APPROXSVM_H"  # case matters, because model and Model are different headers
        return "\n".join([self._head(), f"#ifndef {guard}\n#define {guard}\n", self._body, "#endif\n"])

    def models(self) -> Iterator[tuple[str, str, Macros, Arrays]]:
        """Yield the C file, the prefix, the macros and the arrays of each model; members come first."""
        artifact = self.artifact
        if artifact.members:
            for unit in self.units:
                macros, arrays = unit.numbers()
                yield "member.h", unit.prefix, macros | ensembles.member_macros(artifact), arrays
            macros = _sizes(artifact) | ensembles.rule_macros(artifact, [unit.prefix for unit in self.units])
            arrays = ensembles.rule_arrays(artifact)
        else:
            macros, arrays = self.units[0].numbers()
        macros |= {"n_text_columns_": len(artifact.raw_columns.texts), "tolerance_": self._tolerance()}
        macros["is_regression_"] = int(artifact.task == "regression")
        labels = artifact.labels if artifact.task != "one_class" else np.array(_ONE_CLASS_LABELS)
        own: Arrays = {"labels": _c_integers(labels)} if len(labels) and not self.label_texts else {}
        if self.categories:
            own |= dict(category_arrays(artifact))
        yield "model.h", self.name, macros, own | arrays

    def _pieces(self) -> Iterator[str]:
        """Yield the macros, arrays and functions of all models, as text."""
        yield self._text.of("preamble.h", self.name, {})
        if self.label_texts:
            yield self._texts("labels", self.label_texts)
        if self.categories:
            yield self._texts("categories", self.categories)
        yield self._text.named(common_parameters(self._every_answers()), self.name)
        for model in self.models():
            yield from self._piece(*model)

    def _every_answers(self) -> list[Answers]:
        return [Answers(self.artifact)] * bool(self.artifact.members) + [unit.answers for unit in self.units]

    def _piece(self, file: str, prefix: str, macros: Macros, arrays: Arrays) -> Iterator[str]:
        """Yield those macros and arrays of a model that are public or used by its C code, and then the code."""
        text = self._text.of(file, prefix, macros)
        names = used(text, prefix)
        lines = [
            f"#define {prefix}_{name} {number}\n"
            for name, number in macros.items()
            if name.partition("(")[0] in names or (number and not name.endswith("_") and "(" not in name)
        ]
        yield self._text.named("".join(lines), "model")  # leaves members' prefixes unchanged
        for name, numbers in arrays.items():
            if name in names or not name.endswith("_"):
                self.flash_bytes += max(numbers.nbytes, numbers.itemsize)
                yield source.array(f"{prefix}_{name}", numbers)
        yield text

    def _texts(self, name: str, texts: list[str]) -> str:
        """Return a constant array of strings."""
        self.flash_bytes += sum(len(text.encode()) + 1 + 4 for text in texts)
        return source.texts_array(f"{self.name}_{name}", texts)

    def _tolerance(self) -> str:
        """Return the largest error bound at which a value counts as certain."""
        tolerance = float(self.artifact.header["tolerance"])
        if tolerance == math.inf:
            return "FLT_MAX"
        below = np.float32(tolerance)
        return source.literal(np.nextafter(below, np.float32(0)) if float(below) > tolerance else below)

    def _values_are(self) -> str:
        """Return a description of the values for a comment."""
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

    def _head(self) -> str:
        artifact = self.artifact
        stored = "float32" if self.kind == "float32" else f"{self.kind}; every bound includes their quantization error"
        given = "any numbers that the codes of a row represent" if self.codes else "the float32 row as given"
        functions = list(dict.fromkeys(unit.function.what for unit in self.units))
        strange = "; ".join(dict.fromkeys(unit.function.strange for unit in self.units))
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
            *([f"Values{self._values_are()}."] if artifact.n_decisions else []),
            *([f"Rows without values: {strange}."] if strange else []),
            f"Constants: {self.flash_bytes} bytes; stack: about {self.ram_bytes} bytes; multiply-adds per row: "
            f"{self.multiply_adds}.",
        ]
        if artifact.feature_names:
            lines += ["", "Features: " + ", ".join(f"[{j}] {name}" for j, name in enumerate(artifact.feature_names))]
        return source.comment(lines)


def _sizes(artifact: Artifact) -> Macros:
    """Return the size macros of a model."""
    return {
        "n_features": artifact.n_raw_features,
        "n_values": artifact.n_decisions,
        "n_values_": artifact.n_values,
        "n_labels": len(artifact.labels) or (len(_ONE_CLASS_LABELS) if artifact.task == "one_class" else 0),
        "n_targets": artifact.n_targets if artifact.of_targets else 0,
    }


def _c_integers(labels: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return labels as int32 if they fit, otherwise as int64, uint64 or double."""
    if labels.dtype.kind == "f":
        return labels.astype(np.float64)
    if max(labels.tolist()) >= 2**63:
        return labels.astype(np.uint64)
    numbers = labels.astype(np.int64)
    limits = np.iinfo(np.int32)
    return numbers.astype(np.int32) if ((numbers >= limits.min) & (numbers <= limits.max)).all() else numbers
