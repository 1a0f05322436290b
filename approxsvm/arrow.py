"""Record batches in and out by the path that programs import."""

from approxsvm.integrations.arrow.batches import Scorer, predict_stream, score_batches

__all__ = ["Scorer", "predict_stream", "score_batches"]
