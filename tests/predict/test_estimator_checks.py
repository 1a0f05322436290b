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
from sklearn.base import BaseEstimator, ClassifierMixin, OutlierMixin, RegressorMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.svm import SVC, SVR, OneClassSVM
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import check_is_fitted

import approxsvm

# Names of checks without "check_" in front.
APPLICABLE = (
    *("do_not_raise_errors_in_init_or_set_params", "estimator_cloneable", "estimator_repr"),
    *("estimator_sparse_tag", "estimator_tags_renamed", "get_params_invariance"),
    *("mixin_order", "no_attributes_set_in_init", "parameters_default_constructible"),
    *("set_params", "valid_tag_types"),
)

NOT_APPLICABLE = {  # by the reason
    "arrays of other libraries are converted, not computed with": """
        array_api_input array_api_input_and_values array_api_mixed_inputs array_api_same_namespace
    """,
    "trains on data of its own and judges what was learned, or how fit takes data": """
        class_weight_balanced_classifiers class_weight_balanced_linear_classifier class_weight_classifiers
        classifier_data_not_an_array classifiers_classes classifiers_one_label
        classifiers_one_label_sample_weights classifiers_train decision_proba_consistency
        dont_overwrite_parameters dtype_object estimators_overwrite_params outliers_fit_predict outliers_train
        pipeline_consistency regressor_data_not_an_array regressors_int regressors_no_decision_function
        regressors_train supervised_y_2d
    """,
    "is for estimators of another kind": """
        all_zero_sample_weights_error classifier_multioutput
        classifiers_multilabel_output_format_decision_function classifiers_multilabel_output_format_predict
        classifiers_multilabel_output_format_predict_proba classifiers_multilabel_representation_invariance
        clusterer_compute_labels_predict clustering estimators_partial_fit_n_features
        get_feature_names_out_error global_output_transform_pandas global_set_output_transform_polars
        inplace_ensure_writeable non_transformer_estimators_n_iter nonsquare_error outlier_contamination
        outlier_corruption positive_only_tag_during_fit regressor_multioutput
        sample_weight_equivalence_on_dense_data sample_weight_equivalence_on_sparse_data sample_weights_list
        sample_weights_not_an_array sample_weights_not_overwritten sample_weights_pandas_series
        sample_weights_shape set_output_transform set_output_transform_pandas set_output_transform_polars
        sparsify_coefficients transformer_data_not_an_array transformer_general
        transformer_get_feature_names_out transformer_get_feature_names_out_pandas transformer_n_iter
        transformer_preserve_dtypes transformers_unfitted transformers_unfitted_stateless
    """,
    "wants fit to refuse data, which a compiled model does not look at": """
        classifier_not_supporting_multiclass classifiers_regression_target complex_data
        estimators_empty_data_messages estimators_nan_inf fit1d fit2d_1sample fit_non_negative param_validation
        requires_y_none supervised_y_no_nan
    """,
    "trains on frames; tests/predict/test_inputs.py predicts from them": "dataframe_column_names_consistency",
    "predicts rows of a width that it makes up after training on them": """
        dict_unchanged estimator_sparse_array estimator_sparse_matrix estimators_dtypes estimators_pickle
        f_contiguous_array_estimator fit2d_1feature fit2d_predict1d fit_idempotent
        methods_sample_order_invariance methods_subset_invariance n_features_in_after_fitting
        readonly_memmap_input
    """,
    "a test below does the same on the model's own rows": "estimators_fit_returns_self",
    "wants an error before fit, but a compiled model is always fitted": (
        "estimators_unfitted fit_check_is_fitted n_features_in"
    ),
    "a test below does the same without data": "fit_score_takes_y",
    "is a helper of other checks": "classifiers_predictions estimators_data_not_an_array",
    "is what runs all checks": "estimator",
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
    if not hasattr(estimator_checks, f"check_{check}"):
        pytest.skip(f"scikit-learn {sklearn.__version__} has no check_{check}")
    getattr(estimator_checks, f"check_{check}")(type(estimator).__name__, estimator)


@pytest.mark.parametrize("kind", KINDS)
def test_fit_returns_the_model_as_it_is(compiled, kind):
    estimator = compiled[kind]
    assert estimator.fit(np.zeros((2, 3)), np.zeros(2)) is estimator
    assert estimator.fit() is estimator


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
        name.removeprefix("check_")
        for name, check in inspect.getmembers(estimator_checks, inspect.isfunction)
        if name.startswith("check_") and check.__module__ == estimator_checks.__name__
    }
    judged = [*APPLICABLE, *" ".join(NOT_APPLICABLE.values()).split()]
    assert known <= set(judged)
    assert len(judged) == len(set(judged))
