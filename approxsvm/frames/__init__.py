"""Rows as users have them: arrays, data frames, mappings and texts, checked and turned into numbers."""
