"""Families of plans: expansions about centers, sums in few coordinates, and guessed winners."""
