"""Slow reference in plain float64, with which tests and reports compare; imports only models and rows."""
