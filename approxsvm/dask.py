"""Dask data frames by the path that programs import."""

from approxsvm.tables.dask import score

__all__ = ["score"]
