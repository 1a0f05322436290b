"""Taylor features of the Gaussian kernel, for training linear models: a scikit-learn transformer."""

from approxsvm.features.taylor import TaylorFeatures

__all__ = ["TaylorFeatures"]
