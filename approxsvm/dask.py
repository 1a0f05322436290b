"""Public import path of functions that predict on Dask data frames."""

from approxsvm.integrations.dask import score

__all__ = ["score"]
