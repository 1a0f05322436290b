"""Rows in the containers of users (arrays, data frames, mappings, texts), checked and converted to numbers."""
