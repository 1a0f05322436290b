"""Exported C99 headers: with and without fused multiply-adds, under sanitizers, with integer rows or coefficients."""

from __future__ import annotations

import re
import shutil
from functools import lru_cache
from typing import Any

import numpy as np
from c_header import Program, build

from approxsvm.errors import InputError, UnsupportedModelError
from zoo.executors import Executor
from zoo.executors.native import in_codes, is_unused_alone
from zoo.specimens import Answers, Specimen, as_dense
from zoo.tables import Table

# Messages of the export for unsupported sources.
_CLOSED = re.compile(
    "coefficients can be int8 only in expansions|the C export takes rows of codes only if all steps are scalers|"
    "the C export takes rows of codes only for a single model|the C export supports lookups only for float32 rows|"
    "X holds NaN, infinity or numbers beyond float32|mapping a float32 row may give|"
    "the C export has no ensembles of ensembles|which float32 cannot represent"
)
PLAIN = ["gcc", "-std=c99", "-O0", "-ffp-contract=off"]  # compiling takes longer than running
FUSED = ["gcc", "-std=c99", "-O1", "-mfma", "-ffp-contract=fast"]
SANITIZED = [*PLAIN, "-fsanitize=address,undefined,float-cast-overflow", "-fno-sanitize-recover=all"]
# Entries whose headers together contain every line of C code in the zoo's headers, apart from sizes and constants.
OF_EVERY_TEXT = (
    *("bent", "stack of three", "label by probability of two", "OneHotEncoder, chosen", "PCA, centers", "powers, SVR"),
    *("several probabilities", "PCA, norms", "SVC of slices", "temperatures of two"),
    *("skewed waves, Ridge", "CountVectorizer", "census, infrequent", "OrdinalEncoder", "Normalizer, max"),
    *("LIBSVM object", "KernelRidge, cubic, two targets", "SVC, approximate by centers", "splines, error"),
    *("rest of several labels", "threshold of probabilities", "rest of a constant", "RFE, itself", "scaled before"),
    *("scaled splines", "votes of two", "Normalizer, l1", "interactions"),
)
# Such entries for rows or coefficients that are stored as integer codes.
OF_EVERY_CODE: dict[str, tuple[str, ...]] = {
    "int16": ("label by probability of two", "RFE, itself", "StandardScaler, SVC of scales", "process", "PCL"),
    "int8": ("LIBSVM file, one class",),
    "coefficients": ("PCA, centers",),
}


@lru_cache(maxsize=8)
def _program(specimen: Specimen, compiler: tuple[str, ...], inputs: str, coefficients: str) -> Program | str:
    """Export and compile; if there is no such header, return the reason."""
    options: dict[str, Any] = {"inputs": inputs, "coefficients": coefficients}
    if inputs != "float32":
        options["X"] = _codes(specimen, specimen.table)
    folder = specimen.folder / f"c99 {abs(hash((compiler, inputs, coefficients)))}"
    try:
        return build(specimen.fast, folder, compiler=list(compiler), **options)
    except (InputError, UnsupportedModelError) as error:
        return str(error)


def _codes(specimen: Specimen, table: Table) -> Any:
    texts = specimen.artifact.texts
    return in_codes(specimen, table, lambda j, text: texts[j].null if text is None else texts[j].code(text))


class C99(Executor):
    """An exported header in a separate program, which certifies nothing where it cannot answer."""

    refuses_itself = False
    float32, refuses, settles = True, False, False

    def __init__(
        self,
        name: str,
        compiler: list[str],
        inputs: str = "float32",
        coefficients: str = "float32",
        share: float = 1.0,
        always: tuple[str, ...] = (),
    ) -> None:
        self.name, self.share, self.always, self.by_entry = f"C99{name}", share, always, True
        self._how = (tuple(compiler), inputs, coefficients)

    def why_not(self, specimen: Specimen) -> str:
        """Return the export's message."""
        if shutil.which("gcc") is None:
            return "gcc is not installed"
        if specimen.table.container == "texts":
            return "counts of words are not rows for a device"
        program = _program(specimen, *self._how)
        assert isinstance(program, Program) or _CLOSED.search(program), f"{specimen.name}: {program}"
        return program if isinstance(program, str) else ""

    def seen(self, specimen: Specimen, table: Table) -> Table:
        return as_dense(super().seen(specimen, table))

    def may_answer(self, specimen: Specimen, row: Table) -> bool:
        return is_unused_alone(specimen, self.seen(specimen, row))

    def takes(self, specimen: Specimen, table: Table) -> bool:
        return table.family == specimen.table.family

    def answers(self, specimen: Specimen, table: Table) -> Answers:
        program = _program(specimen, *self._how)
        assert isinstance(program, Program), program
        with np.errstate(over="ignore"):
            rows = _codes(specimen, self.seen(specimen, table)).astype(np.float32)
        given = program.answers(rows)
        found: dict[str, Any] = {"certified": given.certain}
        if specimen.artifact.task != "regression":
            known = given.if_certain >= 0
            assert (given.certain == known.reshape(len(rows), -1).all(axis=1)).all()
            assert (given.if_certain == np.where(known, given.predicted, -1)).all()
            found |= {"labels": specimen.labels[given.predicted], "certified": known}
        elif given.values.shape[1] == 1:
            assert np.array_equal(given.predicted, given.values[:, 0], equal_nan=True)
        if given.values.shape[1]:
            found["values"], found["bounds"] = _promised(given.values, given.bounds, np.inf)
        if given.shares.shape[1] and specimen.artifact.has_class_probabilities:
            found["probabilities"], found["probability_bounds"] = _promised(given.shares, given.share_bounds, 1.0)
        return Answers(**found)


def _promised(numbers: Any, bounds: Any, largest: float) -> tuple[Any, Any]:
    """Return values and bounds as float64; NaN with a vacuous bound is replaced by 0."""
    numbers, bounds = numbers.astype(np.float64), bounds.astype(np.float64)
    return np.where(np.isnan(numbers) & (bounds >= largest), 0.0, numbers), bounds


EXPORTED: tuple[Executor, ...] = (
    C99("", PLAIN, share=0.2),
    C99(", fused", FUSED, share=0.1),
    C99(", sanitized", SANITIZED, share=0.0, always=OF_EVERY_TEXT),
    C99(", rows of int16", SANITIZED, inputs="int16", share=0.05, always=OF_EVERY_CODE["int16"]),
    C99(", rows of int8", SANITIZED, inputs="int8", share=0.05, always=OF_EVERY_CODE["int8"]),
    C99(", coefficients of int8", SANITIZED, coefficients="int8", share=0.05, always=OF_EVERY_CODE["coefficients"]),
)
