"""Slow reference in plain float64, against which tests and reports compare; it imports only models and rows."""
