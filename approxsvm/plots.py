"""Displays on a matplotlib axis by the path that programs import."""

from approxsvm.analysis.plots import CertifiedShareDisplay, DecisionBandDisplay, ErrorBoundDisplay, StageShareDisplay

__all__ = ["CertifiedShareDisplay", "DecisionBandDisplay", "ErrorBoundDisplay", "StageShareDisplay"]
