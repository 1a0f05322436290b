"""Costs of plans: constants of machines, of kinds of work, and of calls."""
