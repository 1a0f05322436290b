"""Public import path of displays on a matplotlib axis."""

from approxsvm.analysis.report.plots import (
    CertifiedShareDisplay,
    DecisionBandDisplay,
    ErrorBoundDisplay,
    StageShareDisplay,
)

__all__ = ["CertifiedShareDisplay", "DecisionBandDisplay", "ErrorBoundDisplay", "StageShareDisplay"]
