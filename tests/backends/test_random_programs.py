"""Random sequences of ops, in every interface.

The environment variable RANDOM_PROGRAMS sets the number of seeds.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from c_header import NEEDS_GCC
from test_op_errors import assert_held_in_graphs_and_in_the_core, assert_held_in_headers, outputs_of

from approxsvm.errors import UnsupportedModelError
from approxsvm.ir import ops
from approxsvm.ir.input_map import InputMap
from approxsvm.ir.ops.lookup import SAME, Steps
from approxsvm.ir.ops.piecewise_polynomial import Pieces

N = 3
SANITIZED = ["-O0", "-fsanitize=address,undefined", "-fno-sanitize-recover"]


class Programs:
    """A generator of input maps with N features."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def numbers(self, *shape: int) -> Any:
        """Return numbers with a common random scale."""
        return self.rng.normal(size=shape) * 10.0 ** self.rng.integers(-3, 4)

    def some(self, n: int, numbers: Any, neutral: float = np.inf) -> Any:
        return np.where(self.rng.random(n) < 0.7, numbers, neutral)

    def edges(self) -> Any:
        return np.unique(self.numbers(self.rng.integers(0, 4)))

    def affine(self, n: int) -> Any:
        names = self.rng.permutation(["subtract", "multiply", "divide", "add"])[: self.rng.integers(1, 5)]
        return ops.Affine.of(n, **{name: self.numbers(n) for name in names}, high=self.some(n, abs(self.numbers(n))))

    def projection(self, n: int) -> Any:
        m = self.rng.integers(1, 5)
        return ops.Projection(self.numbers(n), self.numbers(n, m), self.numbers(m), np.zeros(m))

    def lookup(self, n: int) -> Any:
        def steps() -> Steps:
            edges = self.edges()
            return Steps.of(edges, self.some(len(edges) + 1, self.numbers(len(edges) + 1), SAME))

        return ops.Lookup.of(n, [(j, steps()) for j in self.rng.integers(0, n, 3)])

    def piecewise_polynomial(self, n: int) -> Any:
        def pieces() -> Pieces:
            edges = self.edges()
            k = len(edges) + 1
            return Pieces(edges, self.numbers(k), self.numbers(k, self.rng.integers(1, 5)))

        return ops.PiecewisePolynomial.of(n, [(j, pieces()) for j in self.rng.integers(0, n, 3)])

    def turns(self, n: int) -> Any:
        return ops.Interval("turns", self.numbers(n), abs(self.numbers(n)) + 1e-3)

    def power(self, n: int) -> Any:
        return ops.Power("yeo-johnson", self.rng.choice([0.0, 2.0, 9e-13, -1.3, 0.7], n))

    def monomials(self, n: int) -> Any:
        return ops.Monomials.of_powers(self.rng.integers(0, 3, (2, n)) + np.eye(2, n, dtype=int))

    def normalizer(self, n: int) -> Any:
        norm, rows = self.rng.choice(["l1", "l2", "max"]), self.rng.choice(["as raw", "sparse"])
        return ops.Normalizer(n, str(norm), str(rows))

    def any_op(self, n: int) -> Any:
        kinds = [self.affine, self.projection, self.lookup, self.piecewise_polynomial, self.turns, self.monomials,
                 self.power, self.normalizer,
                 ops.InverseNormal, lambda n: ops.Logarithm(abs(self.numbers(n)))]  # fmt: skip
        first, end = np.sort(self.rng.permutation(n + 1)[:2]).tolist() if self.rng.random() < 0.6 else (0, n)
        return replace(kinds[self.rng.integers(0, len(kinds))](end - first), first=first)

    def draw(self) -> tuple[Any, Any]:
        """Return a model of a program's outputs, and the program."""
        map_ = InputMap.identity(N)
        for _ in range(self.rng.integers(1, 6)):
            map_ = map_.then_part(self.any_op(map_.n_features))
        return outputs_of(map_)

    def rows(self, k: int) -> Any:
        """Return rows of ordinary numbers, integers, numbers of all magnitudes, and zeros."""
        rng = self.rng
        kinds = [rng.normal(size=(k, N)), rng.uniform(0, 1, (k, N)), np.round(3 * rng.normal(size=(k, N))),
                 rng.normal(size=(k, N)) * 10.0 ** rng.integers(-25, 20, (k, N)),
                 rng.choice([0.0, -0.0, 1.0, -1.0, 0.5, 1e-45, 1e-38], (k, N))]  # fmt: skip
        return np.concatenate(kinds).astype(np.float32)


def assert_programs_held(seed: int, folder: Path, n_programs: int = 25) -> None:
    programs, exported = Programs(seed), []
    rows = programs.rows(40)
    for _ in range(n_programs):
        fast, model = programs.draw()
        assert_held_in_graphs_and_in_the_core(fast, model, rows, least=0.0)
        with suppress(UnsupportedModelError):  # a number may exceed 1e300
            fast.export_c(folder / "m.h", name="m")
            exported.append((fast, model))
    assert len(exported) > n_programs / 2
    assert_held_in_headers(exported, rows, folder, SANITIZED, least=0.0)
    assert_held_in_headers(
        exported, rows, folder, ["-O1", "-fexpensive-optimizations", "-march=native", "-ffp-contract=fast"], least=0.0
    )


@pytest.mark.native
@NEEDS_GCC
@pytest.mark.parametrize("seed", range(int(os.environ.get("RANDOM_PROGRAMS", "1"))))
def test_errors_of_random_programs_hold(seed: int, tmp_path: Path) -> None:
    assert_programs_held(seed, tmp_path)
