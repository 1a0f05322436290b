"""Public import path of functions that predict in DuckDB."""

from approxsvm.integrations.duckdb import register

__all__ = ["register"]
