"""Slow reference in plain float64 for tests and reports; it imports only models and rows."""
