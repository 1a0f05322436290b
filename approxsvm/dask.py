"""Public import path of functions that predict the rows of Dask data frames."""

from approxsvm.integrations.dask import score

__all__ = ["score"]
