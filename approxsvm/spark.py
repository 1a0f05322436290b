"""Public import path of functions that predict on Spark data frames."""

from approxsvm.integrations.spark import SVMTransformer, predict_udf, score

__all__ = ["SVMTransformer", "predict_udf", "score"]
