"""scikit-learn's own checks of estimators, those that apply to estimators that are fitted from the start.

Most of sklearn.utils.estimator_checks train a clone on data of their own and judge what it has learned. A compiled
model learns nothing: `fit` returns it as it is, and a clone predicts like its original. The checks that never look at
what was learned run on every kind of compiled model. NOT_APPLICABLE gives the reason for every other one; a check of a
newer scikit-learn that is in neither list fails the last test, so that somebody looks at it. Then all checks run on
estimators that train and compile, so that what compiled models say meets data of every shape.
"""

from __future__ import annotations

import inspect
from functools import partial

import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin, OutlierMixin, RegressorMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.svm import SVC, SVR, OneClassSVM
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import check_is_fitted

import approxsvm

TRAINS = "trains on data of its own and judges what was learned, or how fit takes data"
REFUSES = "wants fit to refuse data, which a compiled model does not look at"
WIDTH = "predicts rows of a width that it makes up after training on them"
UNFITTED = "wants an error before fit, but a compiled model is always fitted"
OTHER_KIND = "is for estimators of another kind"
ARRAYS = "arrays of other libraries are converted, not computed with"

APPLICABLE = (
    "check_do_not_raise_errors_in_init_or_set_params",
    "check_estimator_cloneable",
    "check_estimator_repr",
    "check_estimator_sparse_tag",
    "check_estimator_tags_renamed",
    "check_get_params_invariance",
    "check_mixin_order",
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_set_params",
    "check_valid_tag_types",
)

NOT_APPLICABLE = {
    "check_array_api_input": ARRAYS,
    "check_array_api_input_and_values": ARRAYS,
    "check_class_weight_balanced_classifiers": TRAINS,
    "check_class_weight_balanced_linear_classifier": TRAINS,
    "check_class_weight_classifiers": TRAINS,
    "check_classifier_data_not_an_array": TRAINS,
    "check_classifier_multioutput": OTHER_KIND,
    "check_classifier_not_supporting_multiclass": REFUSES,
    "check_classifiers_classes": TRAINS,
    "check_classifiers_multilabel_output_format_decision_function": OTHER_KIND,
    "check_classifiers_multilabel_output_format_predict": OTHER_KIND,
    "check_classifiers_multilabel_output_format_predict_proba": OTHER_KIND,
    "check_classifiers_multilabel_representation_invariance": OTHER_KIND,
    "check_classifiers_one_label": TRAINS,
    "check_classifiers_one_label_sample_weights": TRAINS,
    "check_classifiers_regression_target": REFUSES,
    "check_classifiers_train": TRAINS,
    "check_clusterer_compute_labels_predict": OTHER_KIND,
    "check_clustering": OTHER_KIND,
    "check_complex_data": REFUSES,
    "check_dataframe_column_names_consistency": "trains on frames; tests/predict/test_inputs.py predicts from them",
    "check_decision_proba_consistency": TRAINS,
    "check_dict_unchanged": WIDTH,
    "check_dtype_object": TRAINS,
    "check_estimators_dtypes": WIDTH,
    "check_estimators_empty_data_messages": REFUSES,
    "check_estimators_fit_returns_self": "a test below does the same on the model's own rows",
    "check_estimators_nan_inf": REFUSES,
    "check_estimators_overwrite_params": TRAINS,
    "check_estimators_partial_fit_n_features": OTHER_KIND,
    "check_estimators_pickle": WIDTH,
    "check_estimators_unfitted": UNFITTED,
    "check_f_contiguous_array_estimator": WIDTH,
    "check_fit1d": REFUSES,
    "check_fit2d_1feature": WIDTH,
    "check_fit2d_1sample": REFUSES,
    "check_fit2d_predict1d": WIDTH,
    "check_fit_check_is_fitted": UNFITTED,
    "check_fit_idempotent": WIDTH,
    "check_fit_score_takes_y": "a test below does the same without data",
    "check_inplace_ensure_writeable": OTHER_KIND,
    "check_methods_sample_order_invariance": WIDTH,
    "check_methods_subset_invariance": WIDTH,
    "check_n_features_in": UNFITTED,
    "check_n_features_in_after_fitting": WIDTH,
    "check_non_transformer_estimators_n_iter": OTHER_KIND,
    "check_nonsquare_error": OTHER_KIND,
    "check_outlier_contamination": OTHER_KIND,
    "check_outlier_corruption": OTHER_KIND,
    "check_outliers_fit_predict": TRAINS,
    "check_outliers_train": TRAINS,
    "check_all_zero_sample_weights_error": OTHER_KIND,
    "check_array_api_mixed_inputs": ARRAYS,
    "check_array_api_same_namespace": ARRAYS,
    "check_classifiers_predictions": "is a helper of other checks",
    "check_dont_overwrite_parameters": TRAINS,
    "check_estimator": "is what runs all checks",
    "check_estimator_sparse_array": WIDTH,
    "check_estimator_sparse_matrix": WIDTH,
    "check_estimators_data_not_an_array": "is a helper of other checks",
    "check_fit_non_negative": REFUSES,
    "check_get_feature_names_out_error": OTHER_KIND,
    "check_sparsify_coefficients": OTHER_KIND,
    "check_param_validation": REFUSES,
    "check_pipeline_consistency": TRAINS,
    "check_positive_only_tag_during_fit": OTHER_KIND,
    "check_readonly_memmap_input": WIDTH,
    "check_regressor_data_not_an_array": TRAINS,
    "check_regressor_multioutput": OTHER_KIND,
    "check_regressors_int": TRAINS,
    "check_regressors_no_decision_function": TRAINS,
    "check_regressors_train": TRAINS,
    "check_requires_y_none": REFUSES,
    "check_sample_weight_equivalence_on_dense_data": OTHER_KIND,
    "check_sample_weight_equivalence_on_sparse_data": OTHER_KIND,
    "check_sample_weights_list": OTHER_KIND,
    "check_sample_weights_not_an_array": OTHER_KIND,
    "check_sample_weights_not_overwritten": OTHER_KIND,
    "check_sample_weights_pandas_series": OTHER_KIND,
    "check_sample_weights_shape": OTHER_KIND,
    "check_set_output_transform": OTHER_KIND,
    "check_set_output_transform_pandas": OTHER_KIND,
    "check_set_output_transform_polars": OTHER_KIND,
    "check_supervised_y_2d": TRAINS,
    "check_supervised_y_no_nan": REFUSES,
    "check_transformer_data_not_an_array": OTHER_KIND,
    "check_transformer_general": OTHER_KIND,
    "check_transformer_get_feature_names_out": OTHER_KIND,
    "check_transformer_get_feature_names_out_pandas": OTHER_KIND,
    "check_transformer_n_iter": OTHER_KIND,
    "check_transformer_preserve_dtypes": OTHER_KIND,
    "check_transformers_unfitted": OTHER_KIND,
    "check_transformers_unfitted_stateless": OTHER_KIND,
    "check_global_output_transform_pandas": OTHER_KIND,
    "check_global_set_output_transform_polars": OTHER_KIND,
}


def sources():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = (X[:, 0] + 0.3 * rng.normal(size=60) > 0).astype(int)
    return {
        "CompiledSVC": SVC().fit(X, y),
        "CompiledSVC of several": SVC().fit(X, y + (X[:, 1] > 0)),
        "CompiledSVR": SVR().fit(X, X[:, 0]),
        "CompiledOneClassSVM": OneClassSVM(nu=0.2).fit(X),
        "quadratic CompiledSVC": SVC(kernel="poly", degree=2).fit(X, y),
        "linear CompiledSVR": SVR(kernel="linear").fit(X, X[:, 0]),
        "CompiledEnsemble": CalibratedClassifierCV(SVC(), cv=2).fit(X, y),
    }


@pytest.fixture(scope="module")
def compiled():
    return {name: approxsvm.compile(source) for name, source in sources().items()}


KINDS = tuple(sources())


@pytest.mark.parametrize("check", APPLICABLE)
@pytest.mark.parametrize("kind", KINDS)
def test_applicable_checks(compiled, kind, check):
    estimator = compiled[kind]
    if not hasattr(estimator_checks, check):
        pytest.skip(f"scikit-learn {sklearn.__version__} has no {check}")
    getattr(estimator_checks, check)(type(estimator).__name__, estimator)


@pytest.mark.parametrize("kind", KINDS)
def test_fit_returns_the_model_as_it_is(compiled, kind):
    estimator = compiled[kind]
    X = np.zeros((2, 3))
    before = estimator.predict(X)
    assert estimator.fit(X, np.zeros(2)) is estimator
    assert estimator.fit() is estimator
    np.testing.assert_array_equal(clone(estimator).predict(X), before)


class Trained(BaseEstimator):
    """Trains a source, compiles it and passes calls on."""

    # Values of a row may differ within their bounds with the number of rows in the call; the checks allow 1e-7.
    tolerance = None

    def fit(self, X, y=None):
        source = self.source().fit(X, y)
        self.compiled_ = approxsvm.compile(source, tolerance=self.tolerance)
        for name in ("n_features_in_", "feature_names_in_", "classes_", "offset_"):
            if hasattr(self.compiled_, name):
                setattr(self, name, getattr(self.compiled_, name))
        self.n_iter_ = source.n_iter_
        return self

    def predict(self, X):
        check_is_fitted(self)
        return self.compiled_.predict(X)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class TrainedSVC(ClassifierMixin, Trained):
    source = SVC

    def decision_function(self, X):
        check_is_fitted(self)
        return self.compiled_.decision_function(X)


class TrainedQuadratic(TrainedSVC):
    source = partial(SVC, kernel="poly", degree=2, coef0=1.0)


class TrainedSVR(RegressorMixin, Trained):
    source = SVR
    tolerance = 1e-8


class TrainedOneClassSVM(OutlierMixin, Trained):
    source = OneClassSVM
    tolerance = 1e-8

    def decision_function(self, X):
        check_is_fitted(self)
        return self.compiled_.decision_function(X)

    def score_samples(self, X):
        check_is_fitted(self)
        return self.compiled_.score_samples(X)


@pytest.mark.filterwarnings("ignore")  # of training on data made to break it
@parametrize_with_checks([TrainedSVC(), TrainedQuadratic(), TrainedSVR(), TrainedOneClassSVM()])
def test_every_check_with_training(estimator, check):
    check(estimator)


def test_every_check_is_judged():
    known = {
        name
        for name, check in inspect.getmembers(estimator_checks, inspect.isfunction)
        if name.startswith("check_") and check.__module__ == estimator_checks.__name__
    }
    assert not known - set(APPLICABLE) - set(NOT_APPLICABLE)
    assert not set(APPLICABLE) & set(NOT_APPLICABLE)
