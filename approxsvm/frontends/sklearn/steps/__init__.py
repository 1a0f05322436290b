"""Steps of pipelines: each class of fitted transformers is one record, next to its arithmetic."""

from typing import Final

from approxsvm.frontends.sklearn.steps import lookups, nonlinear, projections, scalers

STEPS: Final = (*scalers.STEPS, *nonlinear.STEPS, *lookups.STEPS, *projections.STEPS)
