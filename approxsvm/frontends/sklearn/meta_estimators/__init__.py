"""scikit-learn's meta-estimators, whose ways to combine members become combination rules of an Ensemble.

Members with the same kernel after the same input map are merged into one model with shared vectors, so each kernel is
evaluated once for all members. This applies to sums of regressors, one-vs-rest functions, and one-vs-one binary SVMs.
Unsupported combinations raise an error that suggests a remedy.
"""

from typing import Final

from approxsvm.frontends.sklearn.meta_estimators import (
    one_vs_one,
    one_vs_rest,
    stacks,
    sums,
    targets,
    thresholds,
    votes,
)
from approxsvm.frontends.sklearn.pipeline import ReadAround

READERS: Final[dict[str, ReadAround]] = {
    "BaggingClassifier": votes.read_bagging_classifier,
    "BaggingRegressor": sums.read_bagging_regressor,
    "BalancedBaggingClassifier": votes.read_bagging_classifier,
    "FixedThresholdClassifier": thresholds.read_threshold,
    "MultiOutputClassifier": targets.read_multi_output_classifier,
    "MultiOutputRegressor": targets.read_multi_output,
    "OneVsOneClassifier": one_vs_one.read_one_vs_one,
    "OneVsRestClassifier": one_vs_rest.read_one_vs_rest,
    "StackingClassifier": stacks.read_stacking_classifier,
    "StackingRegressor": stacks.read_stacking_regressor,
    "TunedThresholdClassifierCV": thresholds.read_threshold,
    "VotingClassifier": votes.read_voting_classifier,
    "VotingRegressor": sums.read_voting_regressor,
}
