"""Planner, which chooses expansions, their degrees and centers, or another way to evaluate a model."""
