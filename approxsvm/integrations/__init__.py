"""Predictions for Arrow batches, files of any size, raster images, and data frames of other libraries."""
