"""Files of any size by the path that programs import."""

from approxsvm.integrations.scoring.dataset import score_dataset
from approxsvm.integrations.scoring.result import Scoring

__all__ = ["Scoring", "score_dataset"]
