"""Public import path of Dask data frames."""

from approxsvm.integrations.dask import score

__all__ = ["score"]
