"""Constants of the .asvm format, defined in cpp/include/approxsvm/artifact/schema.inc."""

import struct
from typing import Final, Literal, cast

import numpy as np

from approxsvm import _native

_SCHEMA: Final = _native.schema()
_LIMITS: Final = _SCHEMA["limits"]
Task = Literal["classification", "regression", "one_class"]
Mode = Literal["approximate", "certified", "exact"]

# First fields of every file; later versions of the format keep them at the same offsets.
IDENTITY: Final = {
    "magic": int(_LIMITS["magic_number"]),
    "version": int(_LIMITS["format_version"]),
    "first_release": int(_LIMITS["format_release"]),
}
ALIGNMENT: Final = int(_LIMITS["section_alignment"])
MAX_FEATURES: Final = int(_LIMITS["max_n_features"])
MAX_DEGREE: Final = int(_LIMITS["max_degree"])
LAST_NORM_DEGREE: Final = int(_LIMITS["last_norm_degree"])
MAX_KERNEL_DEGREE: Final = int(_LIMITS["max_kernel_degree"])
MAX_FORM_DEGREE: Final = int(_LIMITS["max_form_degree"])
MAX_PHASE: Final = float(_LIMITS["max_phase"])
MAX_EXCESS: Final = float(_LIMITS["max_excess"])
MAX_INVERSE_TEMPERATURE: Final = float(_LIMITS["max_inverse_temperature"])
MAX_LABELS: Final = int(_LIMITS["max_n_labels"])
MAX_INPUT_SCALE: Final = float(_LIMITS["max_input_scale"])
MAX_OUTPUT_SCALE: Final = float(_LIMITS["max_output_scale"])
ROUTER_WIDTH: Final = int(_LIMITS["router_width"])
MAX_GROUP_PANELS: Final = int(_LIMITS["max_group_panels"])
MAX_DICTIONARY: Final = int(_LIMITS["max_dictionary"])
LEAST_COEFFICIENT: Final = float(_LIMITS["least_coefficient"])
MOST_COEFFICIENT: Final = float(_LIMITS["most_coefficient"])
SECTION_IDS: Final = _SCHEMA["sections"]
LAYOUTS: Final = _SCHEMA["layouts"]
# Domain conditions of steps that do not accept every number; error messages append the limit and the number.
DOMAINS: Final = _SCHEMA["domains"]


def padded(content: bytes) -> bytes:
    """Pad with zero bytes to a multiple of eight bytes."""
    return content + bytes(-len(content) % 8)


def limit(name: str) -> int:
    """Return a limit by name."""
    return int(_LIMITS[name])


def names_of(enumeration: str) -> tuple[str, ...]:
    """Return the names in an enumeration of artifact/schema.inc, in the order of their numbers, which start at 0."""
    return tuple(_SCHEMA["enumerations"][enumeration])


def number_of(enumeration: str, name: str) -> int:
    """Return the number of a name in an enumeration."""
    names = names_of(enumeration)
    if name not in names:
        raise ImportError(
            f"the compiled part of approxsvm has no {enumeration} {name!r}: build it again (CONTRIBUTING.md, Commands)"
        )
    return names.index(name)


def record(tag: str) -> struct.Struct:
    """Return the layout of a record of fixed-width fields."""
    return struct.Struct("<" + "".join(f"{n}{code}" if n > 1 else code for _, code, n in _SCHEMA["records"][tag]))


def fields_of(tag: str) -> tuple[str, ...]:
    """Return the field names of a record."""
    return tuple(name for name, _, _ in _SCHEMA["records"][tag])


def array_type(tag: str) -> np.dtype[np.void]:
    """Return the dtype of an array of records whose fields are all float64."""
    return np.dtype([(name, "<f8", (n,) if n > 1 else ()) for name, _, n in _SCHEMA["records"][tag]])


def offset_of(tag: str, field: str) -> int:
    """Return the byte offset of a record's field."""
    before = _SCHEMA["records"][tag][: fields_of(tag).index(field)]
    return struct.calcsize("<" + "".join(f"{n}{code}" for _, code, n in before))


HEADER: Final = record("header")
SECTION: Final = record("entry")
POLYNOMIAL_HEADER: Final = tuple(name for name, _ in LAYOUTS["polynomial"])
FORM_HEADER: Final = fields_of("form")  # fields before the coefficients of a quadratic form
DECISION_NUMBERS: Final = array_type("decisions")
EXPANSION_NUMBERS: Final = array_type("expansions")
TASKS: Final = cast(tuple[Task, ...], names_of("task"))
*_modes, _ensemble = names_of("mode")
MODES: Final = cast(tuple[Mode, ...], tuple(_modes))
ENSEMBLE: Final = len(MODES)
NO_LABELS, INT64, FLOAT64, TEXT = map(names_of("label_kind").index, ("none", "int64", "float64", "text"))


def aligned(n: int) -> int:
    """Round n up to a multiple of `ALIGNMENT`."""
    return -(-n // ALIGNMENT) * ALIGNMENT
