"""Expansions of kernel models: coefficients, norms and error bounds."""
