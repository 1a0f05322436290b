"""A case compiled in every mode, once for all tables, and what compiling took."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from time import perf_counter

import approxsvm
from approxsvm.model.schema import Mode
from benchmarks.cases import Case
from benchmarks.timing import Effort, medians

Models = Mapping[Mode, approxsvm.CompiledSVC]

MODES: tuple[Mode, ...] = ("approximate", "certified", "exact")


@dataclass(frozen=True, eq=False)
class Compiled:
    """Predictors by mode, and median seconds from the model file to each of them.

    The modes "approximate" and "certified" contain the certificate, which uses every processor whatever
    ``--threads`` says: that is what a user waits for.
    """

    models: Models
    seconds: Mapping[Mode, float]


def compile_all(case: Case, effort: Effort) -> Compiled:
    """Compile from the model file in every mode, taking turns."""
    models: dict[Mode, approxsvm.CompiledSVC] = {}

    def compile_in(mode: Mode) -> float:
        start = perf_counter()
        models[mode] = approxsvm.compile(case.model_path, case.data.X_train, n_features=case.n_features, mode=mode)
        return perf_counter() - start

    seconds = medians({mode: partial(compile_in, mode) for mode in MODES}, effort.compile_rounds)
    return Compiled(models, seconds)
