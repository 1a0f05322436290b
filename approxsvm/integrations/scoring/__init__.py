"""Predictions for files of any size, read in batches; output files are renamed when complete."""
