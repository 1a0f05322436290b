"""DuckDB by the path that programs import."""

from approxsvm.tables.duckdb import register

__all__ = ["register"]
