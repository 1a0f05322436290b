"""Ensembles of models, and kernels shared by an ensemble's members."""
