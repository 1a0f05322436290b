"""Public import path of plots of a compiled model, drawn on matplotlib axes."""

from approxsvm.analysis.report.plots import (
    CertifiedShareDisplay,
    DecisionBandDisplay,
    ErrorBoundDisplay,
    StageShareDisplay,
)

__all__ = ["CertifiedShareDisplay", "DecisionBandDisplay", "ErrorBoundDisplay", "StageShareDisplay"]
