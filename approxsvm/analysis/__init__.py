"""Reports, verification and plots of compiled models."""
