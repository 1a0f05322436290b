"""Public import path of functions that predict on files of any size."""

from approxsvm.integrations.scoring.dataset import score_dataset
from approxsvm.integrations.scoring.result import Scoring

__all__ = ["Scoring", "score_dataset"]
