"""Evaluation of artifacts: the only package that calls the native predictor."""
