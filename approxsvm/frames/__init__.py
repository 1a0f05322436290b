"""Rows in users' containers (arrays, data frames, mappings, strings), checked and converted to numbers."""
