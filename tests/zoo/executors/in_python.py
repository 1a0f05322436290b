"""The estimators, `Predictor`, calls of any size, one row alone, data frames, sparse rows and Arrow."""

from __future__ import annotations

from typing import Any

import numpy as np

import approxsvm
from approxsvm.errors import InputError
from approxsvm.evaluator import BOUNDS, PROBABILITIES, PROBABILITY_BOUNDS, VALUES
from zoo.executors import Executor
from zoo.specimens import Answers, RefusedError, Specimen
from zoo.tables import Table


def answered(model: Any, evaluator: Any, rows: Any) -> Answers:
    """Ask an estimator or `Predictor` for everything that it has."""
    artifact = evaluator.artifact
    found: dict[str, Any] = {}
    try:
        if artifact.task != "regression":
            found["labels"], found["certified"] = model.predict(rows), model.certified(rows)
        numbers = model._rows(rows)
        for names, bits in (
            (("values", "bounds"), VALUES | BOUNDS),
            (("probabilities", "probability_bounds"), PROBABILITIES | PROBABILITY_BOUNDS),
        ):
            if (names[0] == "values" and (artifact.averages or artifact.has_labels_alone)) or (
                names[0] == "probabilities" and not artifact.has_class_probabilities
            ):
                continue
            for name, answer in zip(names, evaluator.evaluate(numbers, bits), strict=True):
                found[name] = np.asarray(answer).reshape(numbers.shape[0], -1)
    except InputError as error:
        raise RefusedError(str(error)) from error
    return Answers(**found)


class Batch(Executor):
    """The compiled estimator, all rows at once."""

    name = "batch"

    def answers(self, specimen: Specimen, table: Table) -> Answers:
        return answered(specimen.fast, approxsvm.Predictor(specimen.path)._evaluator, table.make())


PYTHON = [Batch()]
