"""Public import path of functions that predict the rows of Spark data frames."""

from approxsvm.integrations.spark import SVMTransformer, predict_udf, score

__all__ = ["SVMTransformer", "predict_udf", "score"]
