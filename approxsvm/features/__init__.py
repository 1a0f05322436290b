"""Feature maps whose inner products are near a kernel, for training linear models: scikit-learn transformers."""

from approxsvm.features.random_binning import RandomBinningFeatures
from approxsvm.features.taylor import TaylorFeatures

__all__ = ["RandomBinningFeatures", "TaylorFeatures"]
