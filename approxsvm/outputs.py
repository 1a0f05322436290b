"""What decision values become, by the native core: scores, probabilities, labels, and what is certain of each."""

from __future__ import annotations

from approxsvm import _native, extras
from approxsvm.artifact import TASKS
from approxsvm.heads import Heads
from approxsvm.kernel_model import Task


def native_outputs(heads: Heads, task: Task, n_classes: int) -> _native.Outputs:
    """The core's functions for these heads; of values of shape (n_rows, n_decisions) and their bounds.

    Parameters
    ----------
    heads : Heads
    task : {"classification", "regression", "one_class"}
    n_classes : int
        Number of labels; 0 for other tasks.
    """
    return _native.Outputs(extras.pack_heads(heads), TASKS.index(task), n_classes)
