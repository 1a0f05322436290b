"""Predictions for Arrow record batches: the part that every table engine shares, with pyarrow alone.

It is given evaluators (evaluator.py) and does not depend on files or engines.
"""
