"""Entries x executors x properties: a seeded selection of what ``python -m tests.zoo`` runs for hours."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import filled_once

from zoo.executors import Executor, selected
from zoo.executors.every import EVERY
from zoo.hostile import hostile_tables
from zoo.properties import compiling_faults, estimator_faults, faults, source_faults
from zoo.sources import ZOO, specimen

pytestmark = pytest.mark.filterwarnings(
    "ignore"
)  # of scikit-learn, about deprecated sources and what does not converge


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
    for table in hostile_tables(one, seed=0):
        found += estimator_faults(one, table)
        for executor in selected(executors, name, seed=0):
            if not executor.why_not(one) and executor.takes(one, table):
                found += faults(one, executor, table)
    assert not found, "\n".join(found)
