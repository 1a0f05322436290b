"""Computation of scores, probabilities and labels from decision values in a header, with bounds on the exact results.

The core (cpp/include/approxsvm/program) contains the C functions and derives their bounds; a header adds the output
parameters stored in an artifact.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from approxsvm.artifact.views import Artifact
from approxsvm.backends.c99.text import has_function
from approxsvm.ir.outputs import BY_PROBABILITY, Probability

Arrays = dict[str, npt.NDArray[Any]]
Macros = dict[str, int | str]


class Answers:
    """Outputs of one model, or of an ensemble.

    If `has_labels` is True, the header has label functions for this model. If `only_labels` is True, probabilities are
    omitted unless labels depend on them. If `in_sums` is True, this model is a member whose probabilities an ensemble
    adds up; scores replace missing probabilities.
    """

    def __init__(
        self, artifact: Artifact, has_labels: bool = True, only_labels: bool = False, in_sums: bool = False
    ) -> None:
        self.outputs, self.n_labels = artifact.outputs, len(artifact.labels)
        self.n_values, self.has_labels = artifact.n_values, has_labels and artifact.task != "regression"
        self.in_sums, rule = in_sums, self.outputs.label_rule
        head = self.outputs.probability
        self.kind = None if head is None or not has_function(head.kind) else head.kind
        if only_labels and rule not in BY_PROBABILITY:
            self.kind = None

    @property
    def arrays(self) -> Arrays:
        """Constant arrays of the outputs, by name."""
        arrays: Arrays = {}
        if self.has_labels and self.outputs.threshold is not None:
            arrays["threshold_"] = np.array([self.outputs.threshold, self.outputs.threshold_label])
        if self.kind or self._has_scores:
            arrays["numbers_"] = _numbers(self.outputs.probability) if self.kind else np.zeros(1)
        return arrays

    @property
    def macros(self) -> Macros:
        """Macros for the outputs (cpp/include/approxsvm/exported/outputs.h)."""
        head = self.outputs.probability
        positive, of_scores, _ = (0, 0, 0) if head is None else head.facts
        n_classes = max(self.n_labels, 2)
        found: Macros = {
            "n_classes_": n_classes,
            "is_each_": int(self.outputs.of_each_class),
            "is_positive_": positive,
            "is_of_values_": 1 - of_scores,
            "has_labels_": int(self.has_labels),
            "has_threshold_": int(self.outputs.threshold is not None),
            "has_scores_": int(self._has_scores),
            "has_shares_": int(self.kind is not None),
            "by_shares_": int(self.outputs.label_rule in BY_PROBABILITY),
        }
        if self.kind:
            found |= {
                "probabilities_of_": f"approxsvm_{self.kind}",
                "intervals_of_": f"approxsvm_{self.kind}_ends",
                "n_room_of_": f"APPROXSVM_SCRATCH_{self.kind}({n_classes})",
            }
        return found

    @property
    def stack_bytes(self) -> int:
        """Approximate size of the local arrays that a call needs to compute the outputs."""
        n = self.n_labels
        scratch = n + 1 if self.kind == "pairwise_sigmoid" else 5 if n > 2 else 1
        per_label = 8 * (3 + scratch) if self.kind else 40 if self._has_scores else 8
        return 12 * self.n_values + (per_label * n if n > 2 or self.kind else 0)

    @property
    def _has_scores(self) -> bool:
        return self.n_labels > 2 and (self.outputs.label_rule == "scores" or (self.in_sums and not self.kind))


def common_parameters(answers: Sequence[Answers]) -> str:
    """Return macro definitions for the output parameters (program/scores.h), or "" if the models' parameters differ."""
    names = {"n_classes_": "N_CLASSES", "is_each_": "IS_EACH", "is_positive_": "IS_POSITIVE"}
    names["is_of_values_"] = "IS_OF_VALUES"
    found = [(one.kind, one.macros) for one in answers]
    found = [(kind, macros) for kind, macros in found if macros["has_scores_"] or macros["has_shares_"]]
    # For a mean of members, the only such parameter is the number of classes.
    every = {tuple(macros[name] for name in names) for kind, macros in found if kind != "members_mean"}
    if len(every) != 1 or len({macros["n_classes_"] for _, macros in found}) != 1:
        return ""
    numbers = zip(names.values(), every.pop(), strict=True)
    return "".join(f"#define APPROXSVM_{name}(o) {number}\n" for name, number in numbers)


def _numbers(head: Probability | None) -> npt.NDArray[np.float64]:
    """Return the probability parameters stored in an artifact, with integers converted to float64."""
    parts = [] if head is None else head.stored()
    numbers = [int.from_bytes(one, "little") if isinstance(one, bytes) else one for one in parts]
    return np.concatenate([np.atleast_1d(np.asarray(one, np.float64)) for one in numbers])
