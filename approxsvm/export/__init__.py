"""Compiled models as graphs for other runtimes."""
