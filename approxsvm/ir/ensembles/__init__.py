"""Ensembles of models, and kernels that members of an ensemble share."""
