"""Random choices, all from one seed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")
_TYPED = 0.15  # fraction of numbers converted to a NumPy type


class Draw:
    """Random choices, all from one seed."""

    def __init__(self, *seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def one(self, *options: T) -> T:
        """Return one of the options."""
        return options[int(self.rng.integers(len(options)))]

    def maybe(self, share: float) -> bool:
        """Return True with this probability."""
        return bool(self.rng.random() < share)

    def whole(self, low: int, high: int) -> int:
        """Return an integer from low to high, both included."""
        return int(self.rng.integers(low, high + 1))

    def power(self, low: float, high: float) -> float:
        """Return a log-uniform number between low and high."""
        return float(10.0 ** self.rng.uniform(low, high))

    def typed(self, value: Any) -> Any:
        """Return a value; a Python number is sometimes converted to a NumPy type of random width."""
        codes = {int: "bhiqBHIQefdg", float: "efdg"}.get(type(value), "")
        if not codes or not self.maybe(_TYPED):
            return value
        code = self.one(*codes)
        return value if value < 0 and code.isupper() else np.dtype(code).type(value)

    def some(self, things: Sequence[T], least: int = 0) -> list[T]:
        """Return some things, in random order."""
        count = self.whole(min(least, len(things)), len(things))
        return [things[int(k)] for k in self.rng.permutation(len(things))[:count]]
