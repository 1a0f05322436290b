"""Public import path of DuckDB functions."""

from approxsvm.integrations.duckdb import register

__all__ = ["register"]
