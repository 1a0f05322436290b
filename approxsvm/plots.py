"""Public import path of classes that plot a compiled model on matplotlib axes."""

from approxsvm.analysis.report.plots import (
    CertifiedShareDisplay,
    DecisionBandDisplay,
    ErrorBoundDisplay,
    StageShareDisplay,
)

__all__ = ["CertifiedShareDisplay", "DecisionBandDisplay", "ErrorBoundDisplay", "StageShareDisplay"]
