"""Public import path of functions that predict rows in DuckDB."""

from approxsvm.integrations.duckdb import register

__all__ = ["register"]
