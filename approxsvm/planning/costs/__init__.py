"""Cost model of plans: the constants of machines, the work of each stage, and the sizes of calls."""
