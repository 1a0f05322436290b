"""A model with a Gaussian kernel, and what its plans have to keep and are judged by."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from approxsvm.artifact import writer
from approxsvm.artifact.writer import Frame
from approxsvm.expansion.stack import KnownSums
from approxsvm.ir.kernel_model import KernelModel
from approxsvm.ir.schema import Mode
from approxsvm.planning.request import Limits
from approxsvm.runtime.evaluator import LABELS, Evaluator


@dataclass(frozen=True, eq=False)
class Problem:
    """What is planned for."""

    model: KernelModel  # without an input map
    frame: Frame  # its center is that of plans with a single one
    rows: Any = None  # (n_rows, n_features): sample rows as the kernel sees them; the support vectors take their place
    mode: Mode = "certified"
    tolerance: float = math.inf  # of values; infinite where labels alone count
    limits: Limits = field(default_factory=Limits)
    majority_only: bool = False  # whether a center of several classes needs the pairs of its majority class alone

    @cached_property
    def exact(self) -> Evaluator:
        """The exact model, laid out once."""
        return Evaluator(writer.build(self.model, "exact", self.frame), n_jobs=-1)

    @cached_property
    def known_sums(self) -> KnownSums:
        """What expansions of the model have added up so far."""
        return KnownSums()

    def winners(self, rows: Any) -> npt.NDArray[np.intp]:
        """Which of several classes rows belong to, as positions."""
        return np.asarray(self.exact.evaluate(rows, LABELS), dtype=np.intp)

    @property
    def typical_rows(self) -> Any:
        """The sample rows, or the support vectors."""
        return self.model.support_vectors if self.rows is None else self.rows
