"""Predictions for Arrow record batches: the code that all table engines share, which needs only pyarrow.

The code takes evaluators (evaluator.py) and does not depend on files or engines.
"""
