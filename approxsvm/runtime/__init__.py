"""Answers of an artifact: the only package that calls the native predictor."""
