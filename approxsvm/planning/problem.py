"""Planning problem: a model with a Gaussian kernel, sample rows, and the limits and tolerance for plans."""

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
from approxsvm.planning.costs.cost import Products
from approxsvm.planning.request import Limits
from approxsvm.runtime.evaluator import LABELS, Evaluator


@dataclass(frozen=True, eq=False)
class Problem:
    """Input to the planner."""

    model: KernelModel  # model without an input map
    frame: Frame  # frame that provides the center for plans with a single center
    rows: Any = None  # (n_rows, n_features): mapped sample rows; by default, the support vectors
    mode: Mode = "certified"
    tolerance: float = math.inf  # tolerance for values; infinite if only labels matter
    limits: Limits = field(default_factory=Limits)
    majority_only: bool = False  # True if centers need only the pairs of their majority classes

    @cached_property
    def exact(self) -> Evaluator:
        """Evaluator for the exact model, built once."""
        return Evaluator(writer.build(self.model, "exact", self.frame), n_jobs=-1)

    @cached_property
    def exact_sections(self) -> dict[str, bytes]:
        """Sections of the exact model, shared by all artifacts for the problem."""
        return writer.exact_sections_of(self.exact.artifact)

    @cached_property
    def known_sums(self) -> KnownSums:
        """Cache of the sums already computed for expansions of the model."""
        return KnownSums()

    @cached_property
    def products(self) -> Products:
        """Counts that determine the cost of a row in the exact engine."""
        return Products.of(self.model, self.typical_rows)

    def winners(self, rows: Any) -> npt.NDArray[np.intp]:
        """Return the index of each row's predicted class among several classes."""
        return np.asarray(self.exact.evaluate(rows, LABELS), dtype=np.intp)

    @property
    def typical_rows(self) -> Any:
        """Sample rows, or the support vectors if there are no sample rows."""
        return self.model.support_vectors if self.rows is None else self.rows
