"""Dask data frames by the path that programs import."""

from approxsvm.integrations.dask import score

__all__ = ["score"]
