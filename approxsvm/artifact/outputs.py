"""Section "outputs": the functions that map decision values to predictions, as fixed-width numbers."""

from typing import Any, Final, cast

import numpy as np

from approxsvm.artifact.section_reader import SectionReader
from approxsvm.ir.outputs import BY_THRESHOLD, PROBABILITIES, DecisionShape, LabelRule, Outputs
from approxsvm.ir.schema import names_of, record

_OUTPUTS_HEADER: Final = record("outputs")
_SHAPES: Final = cast(tuple[DecisionShape, ...], names_of("decision_shape"))
_LABEL_RULES: Final = cast(tuple[LabelRule, ...], names_of("label_rule"))
_KINDS: Final = names_of("probability")


def is_plain(outputs: Outputs, n_classes: int) -> bool:
    """Return whether the section may be omitted: labels by votes, no probabilities, and unchanged values."""
    shaped = n_classes > 2 and outputs.decision_shape != "ovo"
    return outputs.probability is None and outputs.label_rule == "votes" and not shaped and not outputs.is_column


def pack_outputs(outputs: Outputs) -> bytes:
    """Encode outputs as fixed-width numbers (models/FORMAT.md, "outputs")."""
    probability = outputs.probability
    header = _OUTPUTS_HEADER.pack(
        int(outputs.is_column) or _SHAPES.index(outputs.decision_shape),
        _LABEL_RULES.index(outputs.label_rule),
        _KINDS.index("none" if probability is None else probability.kind),
        *((0, 0, 0) if probability is None else probability.facts),
    )
    parts: list[Any] = [] if outputs.threshold is None else [outputs.threshold, outputs.threshold_label]
    parts += [] if probability is None else probability.stored()
    return header + b"".join(
        part if isinstance(part, bytes) else np.asarray(part, dtype="<f8").tobytes() for part in parts
    )


def unpack_outputs(content: Any, task: str, n_classes: int) -> Outputs:
    """Decode the output of `pack_outputs`."""
    reader = SectionReader(content)
    shape, rule, kind, *facts = reader.take(_OUTPUTS_HEADER)
    threshold, threshold_label = None, 0
    if _LABEL_RULES[rule] in BY_THRESHOLD:
        threshold, threshold_label = float(reader.numbers(1)[0]), int(reader.numbers(1)[0])
    record_type = PROBABILITIES.get(_KINDS[kind])
    probability = None if record_type is None else record_type.read(reader, tuple(facts), n_classes)
    is_column = task == "regression" and bool(shape)
    return Outputs(
        probability,
        _LABEL_RULES[rule],
        "ovo" if is_column else _SHAPES[shape],
        is_column=is_column,
        threshold=threshold,
        threshold_label=threshold_label,
    )
