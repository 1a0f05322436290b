"""Files of any size by the path that programs import."""

from approxsvm.tables.scoring.dataset import score_dataset
from approxsvm.tables.scoring.result import Scoring

__all__ = ["Scoring", "score_dataset"]
