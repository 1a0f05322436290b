"""Planner, which chooses how to evaluate a model: by expansions of a degree about centers, or by other methods."""
