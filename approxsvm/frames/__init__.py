"""Rows in user-provided containers (arrays, data frames, mappings, strings), checked and converted to numbers."""
