"""Cost model for plans: machine constants, the work of each stage, and call sizes."""
