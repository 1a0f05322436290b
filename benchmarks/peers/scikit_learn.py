"""scikit-learn's SVC, which runs LIBSVM's code on dense rows."""

from __future__ import annotations

from functools import partial

import numpy as np
from sklearn.svm import SVC

import approxsvm
from benchmarks.peers.frame import Peer, Predict, Sample, Trained


def prepare(trained: Trained, sample: Sample) -> Predict:
    """Prepare the same model without retraining it."""
    return partial(as_svc(trained.model).predict, sample.float64)


def as_svc(model: approxsvm.KernelModel) -> SVC:
    """Build scikit-learn's SVC without training: prediction reads only these attributes.

    Retraining would take minutes and give another model. The classes stay in the model's order instead of being sorted,
    because ``predict`` only looks them up.
    """
    svc = SVC(kernel="rbf", gamma=model.gamma)
    svc._dual_coef_ = np.ascontiguousarray(model.dual_coef)
    svc._intercept_ = np.ascontiguousarray(model.intercept)
    svc.dual_coef_, svc.intercept_ = -svc._dual_coef_, -svc._intercept_  # public: positive is the second label
    svc.support_vectors_ = np.ascontiguousarray(model.dense_support_vectors(0, model.n_sv))
    set_shape(svc, model)
    return svc


def set_shape(svc: SVC, model: approxsvm.KernelModel) -> None:
    """Set the attributes needed for prediction, other than coefficients and vectors."""
    svc._sparse = False
    svc._gamma = model.gamma
    svc._n_support = np.asarray(model.n_support, dtype=np.int32)
    svc._probA = svc._probB = np.empty(0)
    svc.support_ = np.arange(model.n_sv, dtype=np.int32)
    svc.shape_fit_ = svc.support_vectors_.shape
    svc.n_features_in_ = model.n_features
    svc.classes_ = model.labels
    svc.fit_status_ = 0


PEER = Peer("scikit-learn SVC", prepare, is_slow=True, is_rounded=False, package="scikit-learn")
