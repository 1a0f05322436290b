"""Every interface that predicts for rows."""

from __future__ import annotations

from zoo.executors import Executor
from zoo.executors.exported import EXPORTED
from zoo.executors.in_python import PYTHON
from zoo.executors.in_tables import TABLES
from zoo.executors.native import NATIVE
from zoo.executors.onnx import ONNX
from zoo.executors.predict_command import PREDICT_COMMAND
from zoo.executors.wasm import WASM

EVERY: tuple[Executor, ...] = (*PYTHON, *TABLES, *NATIVE, *EXPORTED, *ONNX, *PREDICT_COMMAND, *WASM)
