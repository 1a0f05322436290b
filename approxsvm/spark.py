"""Spark data frames by the path that programs import."""

from approxsvm.integrations.spark import SVMTransformer, predict_udf, score

__all__ = ["SVMTransformer", "predict_udf", "score"]
