"""Ensembles of models, and kernels that their members share."""
