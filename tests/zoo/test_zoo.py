"""Entries x executors x properties: a seeded selection of what ``python -m tests.zoo`` runs for hours."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import filled_once

from zoo.executors import Executor, is_drawn, selected
from zoo.executors.every import EVERY
from zoo.hostile import hostile_tables
from zoo.properties import closed_faults, compiling_faults, estimator_faults, faults, source_faults
from zoo.sources import ZOO, specimen

pytestmark = pytest.mark.filterwarnings(
    "ignore"
)  # of scikit-learn, about deprecated sources and what does not converge


SEED = 0


@pytest.fixture(scope="session")
def executors(tmp_path_factory: pytest.TempPathFactory) -> tuple[Executor, ...]:
    """All of them, with what they need."""
    for executor in EVERY:
        executor.prepare(lambda name, fill: filled_once(tmp_path_factory, name, fill))
    return EVERY


@pytest.mark.parametrize("name", ZOO)
def test_every_interface_answers_as_the_source(name: str, executors: tuple[Executor, ...], tmp_path: Path) -> None:
    one = specimen(ZOO[name], tmp_path)
    found = [*compiling_faults(one), *source_faults(one, one.table)]
    for k, table in enumerate(hostile_tables(one, SEED)):
        if k == 0 or is_drawn(f"{name}, {k}", 0.25, SEED):
            found += estimator_faults(one, table)
        for executor in selected(executors, name, k, SEED):
            if executor.why_not(one):
                found += closed_faults(one, executor)
            elif executor.takes(one, table):
                found += faults(one, executor, table)
    assert not found, "\n".join(found)
