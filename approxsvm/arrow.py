"""Public import path of functions that predict on Arrow record batches."""

from approxsvm.integrations.arrow.batches import Scorer, predict_stream, score_batches

__all__ = ["Scorer", "predict_stream", "score_batches"]
