"""All interfaces."""

from __future__ import annotations

from zoo.executors import Executor
from zoo.executors.in_python import PYTHON

EVERY: tuple[Executor, ...] = (*PYTHON,)
