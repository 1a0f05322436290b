"""Predictions for Arrow record batches: the code shared by all table engines, which needs only pyarrow.

It takes evaluators (evaluator.py) and does not depend on files or engines.
"""
