"""Names of the columns, or bands, of an output."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from approxsvm.ir.outputs import class_pairs


def answer_names(artifact: Any, output: str) -> list[str]:
    """Return a name for each column; if there are several, the class or pair of classes follows the output's name."""
    if output in ("label", "certified"):
        return [output] if artifact.n_targets == 1 else [f"{output}_{k}" for k in range(artifact.n_targets)]
    classes, labels = np.sort(artifact.labels).tolist(), artifact.labels.tolist()
    if output == "probability" and artifact.task == "one_class":
        return _distinct(output, [(1,), (-1,)])
    if output == "probability" or (output == "error_bound" and artifact.averages):
        return _distinct(output, [(label,) for label in classes])
    if artifact.task == "classification" and len(labels) > 2:
        if output == "value" and artifact.outputs.decision_shape == "ovr":
            return _distinct(output, [(label,) for label in classes])
        # Use the order of the methods: values for pairs of sorted labels, bounds for pairs in the model's label order.
        order = classes if output == "value" else labels
        if artifact.outputs.of_each_class:
            return _distinct(output, [(label,) for label in order])
        return _distinct(output, [(order[i], order[j]) for i, j in class_pairs(len(order))])
    n_targets = artifact.n_decisions
    if artifact.task == "regression" and n_targets > 1:
        return [f"{output}_{k}" for k in range(n_targets)]
    return [output]


def _distinct(output: str, kinds: Sequence[tuple[Any, ...]]) -> list[str]:
    """Return names by label, or by index if labels with underscores would produce duplicate names."""
    names = ["_".join([output, *map(str, kind)]) for kind in kinds]
    return names if len(set(names)) == len(names) else [f"{output}_{k}" for k in range(len(names))]
