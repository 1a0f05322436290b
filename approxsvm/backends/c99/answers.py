"""Scores, probabilities and labels computed from decision values in a header, with bounds on the exact ones."""

from __future__ import annotations

from collections.abc import Iterator

from approxsvm.artifact.views import Artifact
from approxsvm.backends.c99 import probabilities_source, source
from approxsvm.backends.c99.probabilities import Arrays, shares_of
from approxsvm.ir.outputs import BY_PROBABILITY, Outputs


class Answers:
    """The answers of one model, or of an ensemble.

    Parameters
    ----------
    artifact : Artifact
    only_labels : bool
        Whether probabilities are omitted unless labels depend on them.
    in_sums : bool
        Whether an ensemble adds up this model's scores if it has no probabilities.
    """

    def __init__(self, artifact: Artifact, only_labels: bool = False, in_sums: bool = False) -> None:
        self.artifact, self.in_sums = artifact, in_sums
        unused = only_labels and artifact.outputs.label_rule not in BY_PROBABILITY
        self.shares = None if unused else shares_of(artifact)

    @property
    def arrays(self) -> Arrays:
        """Constant arrays, by name."""
        return self.shares.arrays if self.shares else {}

    @property
    def stack_bytes(self) -> int:
        """Approximate size of the arrays of a call."""
        n_labels = len(self.artifact.labels)
        per_label = 8 * self.shares.numbers_per_class if self.shares else 32 if self._has_scores else 8
        return 12 * self.artifact.n_decisions + (per_label * n_labels if n_labels > 2 or self.shares else 0)

    @property
    def _has_scores(self) -> bool:
        by_scores = self.artifact.outputs.label_rule == "scores" or (self.in_sums and not self.shares)
        return len(self.artifact.labels) > 2 and by_scores

    def functions(self) -> Iterator[str]:
        """Yield the functions up to probabilities, if there are any."""
        if self._has_scores or (self.shares and self.shares.by_scores):
            yield source.SCORES_OF_EACH if self.artifact.outputs.of_each_class else source.SCORES
        if self.shares:
            yield from self.shares.functions()
            yield probabilities_source.ROW_SHARES

    def labels(self) -> Iterator[str]:
        """Yield the functions up to `label`."""
        outputs, n_labels = self.artifact.outputs, len(self.artifact.labels)
        if outputs.label_rule in BY_PROBABILITY:
            if outputs.threshold is None:
                yield probabilities_source.MOST_PROBABLE
            else:
                yield _by_threshold(probabilities_source.THRESHOLD, outputs)
            yield probabilities_source.LABEL
            return
        if outputs.threshold is not None:
            yield _by_threshold(source.THRESHOLD, outputs)
        else:
            yield source.TWO_CLASSES if n_labels <= 2 else source.BEST_SCORE if self._has_scores else source.VOTES
        yield source.LABEL


def _by_threshold(template: str, outputs: Outputs) -> str:
    label = outputs.threshold_label
    marks = {"LABEL": label, "OTHER": 1 - label, "SIGN": "-" if label else "", "THRESHOLD": f"({outputs.threshold!r})"}
    for mark, text in marks.items():
        template = template.replace(f"#{mark}#", str(text))
    return template
