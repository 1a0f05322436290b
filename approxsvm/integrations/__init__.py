"""Predictions for tables: Arrow batches, files of any size, and data frames of other engines."""
