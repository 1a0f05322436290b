"""All interfaces."""

from __future__ import annotations

from zoo.executors import Executor
from zoo.executors.in_python import PYTHON
from zoo.executors.in_tables import TABLES

EVERY: tuple[Executor, ...] = (*PYTHON, *TABLES)
