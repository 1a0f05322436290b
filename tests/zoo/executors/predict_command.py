"""approxsvm-predict: rows as LIBSVM text; labels, values or probabilities as text."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from predict_tool import TOOL, libsvm_text, run, shown
from scipy.sparse import csr_array

from approxsvm.runtime.evaluator import BOUNDS, PROBABILITY_BOUNDS
from zoo.executors import Executor
from zoo.executors.native import in_codes, is_unused_alone
from zoo.specimens import Answers, RefusedError, Specimen, as_float64
from zoo.tables import Table

_SIX_DIGITS = 1e-5  # relative rounding of `-b 1`


class PredictCommand(Executor):
    """The command, with one process per call."""

    name, share = "approxsvm-predict", 0.1
    refuses_itself = False
    names_row = False

    def why_not(self, specimen: Specimen) -> str:
        """Return what is missing, or that labels contain line breaks."""
        if not TOOL.exists():
            return f"{TOOL} was not built"
        if any(isinstance(label, str) and "\n" in label for label in specimen.labels.ravel().tolist()):
            return "labels with line breaks"
        return ""

    def seen(self, specimen: Specimen, table: Table) -> Table:
        return as_float64(table)

    def may_answer(self, specimen: Specimen, row: Table) -> bool:
        return is_unused_alone(specimen, self.seen(specimen, row))

    def takes(self, specimen: Specimen, table: Table) -> bool:
        return table.container == "texts" or table.family == specimen.table.family

    def answers(self, specimen: Specimen, table: Table) -> Answers:
        artifact, rows = specimen.artifact, _rows(specimen, self.seen(specimen, table))
        found: dict[str, Any] = {}
        lines = self._lines(specimen, rows)
        bound = specimen.fast._evaluator.evaluate
        if artifact.task == "regression":
            found["values"] = np.array([line.split() for line in lines], np.float64)
            found["bounds"] = np.reshape(bound(rows, BOUNDS), found["values"].shape)
        else:
            found["labels"] = _labels(specimen, lines)
        if artifact.has_class_probabilities:
            head, *lines = self._lines(specimen, rows, "-b", 1)
            n = len(specimen.labels)
            names = ["normal", "outlier"] if artifact.task == "one_class" else _words(specimen.labels)
            assert head == " ".join(["label" if artifact.task == "one_class" else "labels", *names]), head
            shares = np.array([line.rsplit(" ", n)[1:] for line in lines], np.float64)
            found["probabilities"] = shares
            found["probability_bounds"] = bound(rows, PROBABILITY_BOUNDS) + _SIX_DIGITS * shares
        return Answers(**found)

    def _lines(self, specimen: Specimen, rows: Any, *options: object) -> list[str]:
        """Return the lines written by the command."""
        given, answers = specimen.folder / "rows.txt", specimen.folder / "answers.txt"
        answers.unlink(missing_ok=True)
        given.write_text(libsvm_text([0] * rows.shape[0], csr_array(rows)))
        done = run("-q", *options, given, specimen.path, answers)
        if done.returncode:
            assert not answers.exists()
            raise RefusedError(done.stderr)
        return Path(answers).read_text(encoding="utf-8").splitlines()


def _rows(specimen: Specimen, table: Table) -> Any:
    if table.container == "texts":
        return specimen.fast._rows(table.make())
    texts = specimen.artifact.texts
    return in_codes(specimen, table, lambda j, text: texts[j].null if text is None else texts[j].code(text))


def _words(labels: Any) -> list[str]:
    by_type = {float: shown, bool: lambda label: str(int(label))}
    return [by_type.get(type(label), str)(label) for label in labels.tolist()]


def _labels(specimen: Specimen, lines: Sequence[str]) -> Any:
    """Return the labels in the lines; with several targets, a line lists one label per target."""
    artifact = specimen.artifact
    of_line = {
        " ".join(words): places
        for words, places in zip(
            itertools.product(_words(specimen.labels), repeat=artifact.n_targets),
            itertools.product(range(len(specimen.labels)), repeat=artifact.n_targets),
            strict=True,
        )
    }
    places = np.array([of_line[line] for line in lines], np.intp)
    return specimen.labels[places if artifact.of_targets else places.ravel()]


PREDICT_COMMAND: tuple[Executor, ...] = (PredictCommand(),)
