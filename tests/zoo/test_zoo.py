"""Entries x executors x properties: a seeded selection of what ``python -m tests.zoo`` runs for hours."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import filled_once

from zoo.executors import Executor
from zoo.executors.in_python import PYTHON
from zoo.executors.native import NATIVE
from zoo.hostile import hostile_tables
from zoo.properties import faults, source_faults
from zoo.sources import ZOO, specimen

pytestmark = pytest.mark.filterwarnings(
    "ignore"
)  # of scikit-learn, about deprecated sources and what does not converge


EXECUTORS = [*PYTHON, *NATIVE]


@pytest.fixture(scope="session")
def executors(tmp_path_factory: pytest.TempPathFactory) -> list[Executor]:
    """All of them, with what they need."""
    for executor in EXECUTORS:
        executor.prepare(lambda name, fill: filled_once(tmp_path_factory, name, fill))
    return EXECUTORS


@pytest.mark.parametrize("name", ZOO)
def test_every_interface_answers_as_the_source(name: str, executors: list[Executor], tmp_path: Path) -> None:
    one = specimen(ZOO[name], tmp_path)
    found = list(source_faults(one, one.table))
    for table in hostile_tables(one, seed=0):
        for executor in executors:
            if not executor.why_not(one) and executor.takes(one, table):
                found += faults(one, executor, table)
    assert not found, "\n".join(found)
