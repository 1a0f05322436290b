"""Predictions for files of any size: found, read in batches, predicted, written to a temporary name and renamed."""
