"""Scores, probabilities and labels computed from decision values in a header, with bounds on the exact ones.

The functions, and the derivations of their bounds, are the core's (cpp/include/approxsvm/program); a header adds the
numbers of its outputs, as artifacts store them.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from approxsvm.artifact.views import Artifact
from approxsvm.backends.c99.program import filled, is_shared, model_text
from approxsvm.ir.outputs import BY_PROBABILITY, Probability

Arrays = dict[str, npt.NDArray[Any]]


class Answers:
    """The answers of one model, or of an ensemble.

    `has_labels`: the header has functions for labels of this model. `only_labels`: probabilities are omitted unless
    labels depend on them. `in_sums`: an ensemble adds up this model's scores if it has no probabilities.
    """

    def __init__(
        self, artifact: Artifact, has_labels: bool = True, only_labels: bool = False, in_sums: bool = False
    ) -> None:
        self.outputs, self.n_labels = artifact.outputs, len(artifact.labels)
        self.n_decisions, self.has_labels = artifact.n_decisions, has_labels
        self.in_sums, rule = in_sums, self.outputs.label_rule
        head = self.outputs.probability
        self.kind = None if head is None or not is_shared(f"approxsvm_{head.kind}") else head.kind
        if only_labels and rule not in BY_PROBABILITY:
            self.kind = None

    @property
    def arrays(self) -> Arrays:
        """Constant arrays, by name."""
        arrays: Arrays = {}
        if self.has_labels and self.outputs.threshold is not None:
            arrays["threshold_"] = np.array([self.outputs.threshold, self.outputs.threshold_label])
        if self.kind or self._has_scores:
            arrays["numbers_"] = _numbers(self.outputs.probability) if self.kind else np.zeros(1)
        return arrays

    @property
    def parameters(self) -> dict[str, int]:
        """Parameters of outputs (program/scores.h), by name."""
        head = self.outputs.probability
        if not (self.kind or self._has_scores):
            return {}
        positive, of_scores, _ = (0, 0, 0) if head is None else head.facts
        return {
            "n_classes": max(self.n_labels, 2),
            "is_each": int(self.outputs.of_each_class),
            "positive": positive,
            "of_values": 1 - of_scores,
        }

    @property
    def stack_bytes(self) -> int:
        """Approximate size of the arrays of a call."""
        n = self.n_labels
        scratch = n + 1 if self.kind == "pairwise_sigmoid" else 5 if n > 2 else 1
        per_label = 8 * (3 + scratch) if self.kind else 40 if self._has_scores else 8
        return 12 * self.n_decisions + (per_label * n if n > 2 or self.kind else 0)

    @property
    def _has_scores(self) -> bool:
        return self.n_labels > 2 and (self.outputs.label_rule == "scores" or (self.in_sums and not self.kind))

    def functions(self) -> Iterator[str]:
        """Yield the functions up to probabilities, if there are any."""
        if self.parameters:
            yield filled("OUTPUTS", numbers=", ".join(map(str, self.parameters.values())))
        if self._has_scores:
            yield model_text("SCORES")
        if self.kind:
            yield model_text("SHARES").replace("KIND", self.kind)
            yield model_text("ROW_SHARES")

    def labels(self) -> Iterator[str]:
        """Yield the functions up to `label`."""
        by_threshold = self.outputs.threshold is not None
        if self.outputs.label_rule in BY_PROBABILITY:
            yield model_text("BY_SHARE" if by_threshold else "MOST_PROBABLE")
            yield model_text("LABEL_BY_SHARES")
            return
        of_pairs = "TWO_CLASSES" if self.n_labels <= 2 else "BEST_SCORE" if self._has_scores else "VOTES"
        yield model_text("BY_VALUE" if by_threshold else of_pairs)
        yield model_text("LABEL")


def _numbers(head: Probability | None) -> npt.NDArray[np.float64]:
    """Return the numbers that an artifact stores, with integers as float64."""
    parts = [] if head is None else head.stored()
    numbers = [int.from_bytes(one, "little") if isinstance(one, bytes) else one for one in parts]
    return np.concatenate([np.atleast_1d(np.asarray(one, np.float64)) for one in numbers])
