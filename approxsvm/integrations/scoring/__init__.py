"""Predictions for files of any size, which are read in batches; output files are renamed when complete."""
