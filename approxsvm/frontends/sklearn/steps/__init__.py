"""Pipeline steps: each class of fitted transformers has one record, next to the functions that fold it."""

from typing import Final

from approxsvm.frontends.sklearn.steps import lookups, nonlinear, projections, scalers

STEPS: Final = (*scalers.STEPS, *nonlinear.STEPS, *lookups.STEPS, *projections.STEPS)
