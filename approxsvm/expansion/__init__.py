"""KernelModel -> coefficients of an expansion, and where that expansion is valid."""
