"""Families of plans: expansions about centers, sums over few coordinates, and speculated winners."""
