"""DuckDB by the path that programs import."""

from approxsvm.integrations.duckdb import register

__all__ = ["register"]
