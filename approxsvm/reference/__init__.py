"""Obvious float64: the judge of everything fast. Imports what models are, and nothing that it judges."""
