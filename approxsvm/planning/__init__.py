"""Planner: chooses what to expand, to which degree, and about which centers."""
