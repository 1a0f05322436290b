"""KARL, compiled from karl.cpp: several trees and leaf sizes are tried for each model, and the fastest is used."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

import approxsvm
from benchmarks.timing import medians, spread, warm_seconds

_SOURCE = Path(__file__).with_name("karl.cpp")
TREES = ("balls", "boxes")
LEAF_ROWS = (64, 192, 640, 2560)
_TRIED_ROWS = 200
_ROUNDS = 3


@cache
def _library() -> ctypes.CDLL:
    """Compile and load the source.

    Raises ImportError if there is no C++ compiler, or if compiling fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        built = Path(folder) / "karl.so"
        flags = ["-std=c++17", "-O3", "-march=native", "-shared", "-fPIC"]
        try:
            subprocess.run(["c++", *flags, str(_SOURCE), "-o", str(built)], check=True, capture_output=True, text=True)
        except FileNotFoundError as error:
            raise ImportError("no C++ compiler") from error
        except subprocess.CalledProcessError as error:
            raise ImportError(f"karl.cpp does not compile: {error.stderr.strip()}") from error
        library = ctypes.CDLL(str(built))
    library.karl_build.restype = ctypes.c_void_p
    library.karl_predict.restype = ctypes.c_size_t
    return library


@dataclass(frozen=True)
class Shape:
    """Shape of a tree: node bounds from balls or boxes, and the maximum number of support vectors per leaf."""

    tree: str
    leaf_rows: int


class KarlTree:
    """Tree of a two-class model's support vectors, for float32 rows."""

    def __init__(self, model: approxsvm.KernelModel, shape: Shape) -> None:
        self._n_sv, self._n_features = model.n_sv, model.n_features
        points = np.ascontiguousarray(model.dense_support_vectors(0, model.n_sv), np.float32)
        weights = np.ascontiguousarray(model.coefficients(0), np.float64)
        self._handle = ctypes.c_void_p(
            _library().karl_build(
                _pointer(points),
                _pointer(weights),
                ctypes.c_size_t(model.n_sv),
                ctypes.c_size_t(model.n_features),
                ctypes.c_double(model.gamma),
                ctypes.c_double(float(model.intercept[0])),
                ctypes.c_int(shape.tree == "boxes"),
                ctypes.c_size_t(shape.leaf_rows),
            )
        )

    def __del__(self) -> None:
        if hasattr(self, "_handle"):
            _library().karl_free(self._handle)

    def positive(self, rows: npt.NDArray[np.float32]) -> tuple[npt.NDArray[np.bool_], float]:
        """Return a boolean array, True where the decision value is positive, and the fraction of terms summed."""
        positive = np.empty(len(rows), np.bool_)
        n, d = ctypes.c_size_t(len(rows)), ctypes.c_size_t(self._n_features)
        n_visited = _library().karl_predict(self._handle, _pointer(rows), n, d, _pointer(positive))
        return positive, n_visited / (len(rows) * self._n_sv)


def best_tree(model: approxsvm.KernelModel, rows: npt.NDArray[np.float32]) -> tuple[Shape, KarlTree]:
    """Return the tree that is fastest on a sample of the rows."""
    some = np.ascontiguousarray(rows[spread(len(rows), _TRIED_ROWS)])
    trees = {}
    for shape in (Shape(tree, leaf_rows) for tree in TREES for leaf_rows in LEAF_ROWS):
        tree = KarlTree(model, shape)
        times = medians({shape: partial(warm_seconds, partial(tree.positive, some))}, _ROUNDS)
        trees[shape] = (times[shape], tree)
    best = min(trees, key=lambda shape: trees[shape][0])
    return best, trees[best][1]


def _pointer(values: npt.NDArray[np.generic]) -> ctypes.c_void_p:
    return values.ctypes.data_as(ctypes.c_void_p)
