"""Entries x executors x properties: a seeded selection of what ``python -m tests.zoo`` runs for hours."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from zoo.executors import Executor, is_drawn, selected
from zoo.executors.every import EVERY
from zoo.hostile import hostile_tables
from zoo.properties import compiling_faults, estimator_faults, interface_faults, source_faults
from zoo.sources import ZOO, specimen
from zoo.workers import prepare

pytestmark = pytest.mark.filterwarnings("ignore")  # of deprecated classes, and no convergence


SEED = 0
_SHARE_OF_TABLES = 0.12  # except for each entry's first table; limits the time of the README's test command


@pytest.fixture(scope="session")
def executors(shared_folder: Path) -> tuple[Executor, ...]:
    """Return all executors, ready for use; two workers prepare them from both ends."""
    is_second = os.environ.get("PYTEST_XDIST_WORKER") == "gw1"
    prepare(EVERY[::-1] if is_second else EVERY, shared_folder)
    return EVERY


@pytest.mark.parametrize("name", ZOO)
def test_every_interface_answers_as_the_source(name: str, executors: tuple[Executor, ...], tmp_path: Path) -> None:
    one = specimen(ZOO[name], tmp_path)
    found = [*compiling_faults(one), *source_faults(one, one.table)]
    for k, table in enumerate(hostile_tables(one, SEED, _SHARE_OF_TABLES)):
        if k == 0 or is_drawn(f"{name}, {k}", 0.5 if "float32" in table.kinds else 0.25, SEED):
            found += estimator_faults(one, table)
        for executor in selected(executors, name, k, SEED):
            found += interface_faults(one, executor, table)
    assert not found, "\n".join(found)
