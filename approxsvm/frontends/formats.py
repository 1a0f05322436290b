"""Readers of model files, keyed by the format that the native `file_kind` detects; docs/sources.md lists them."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from approxsvm.frontends.other_programs import onnx_graph, opencv, pmml, vmaf
from approxsvm.ir.kernel_model import KernelModel

READERS: Final[dict[str, Callable[[Path], KernelModel]]] = {
    **dict.fromkeys(("an OpenCV file (JSON)", "an OpenCV file (XML)", "an OpenCV file (YAML)"), opencv.read_opencv),
    "an ONNX model": onnx_graph.read_onnx,
    "a PMML file": pmml.read_pmml,
    "a VMAF model (JSON)": vmaf.read_vmaf,
}
