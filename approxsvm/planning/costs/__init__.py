"""What plans cost: constants of machines, of kinds of work, and of calls."""
