"""Table of all classes that the frontend accepts, and the function `recognise`, which identifies their instances.

An object's class determines its predictions only if the class and its methods come unchanged from a library. Therefore
`recognise` checks the object, and every reader calls `recognise` before reading attributes. It imports no library.
"""

import re
import sys
from abc import ABCMeta
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from types import FunctionType, GetSetDescriptorType
from typing import Any, Final, Literal, cast

from approxsvm.errors import UnsupportedModelError
from approxsvm.frontends.sklearn.steps import STEPS
from approxsvm.frontends.sklearn.steps.record import NO_STEP, OTHER_DTYPE, Step

Role = Literal[
    "kernel machine",
    "kernel of Gaussian processes",
    "linear classifier",
    "linear regression",
    "linear one-class model",
    "feature map",
    "unsupported feature map",
    "pipeline",
    "step",
    "selector",
    "vectorizer",
    "wrapper",
    "search",
    "calibrator",
    "encoder of labels",
]


@dataclass(frozen=True)
class Known:
    """Class that the frontend accepts.

    `relies` lists the parameters and fitted attributes on which predictions depend, `refused` documents rejected
    variants, and `overridable` lists the methods that users' subclasses may define.
    """

    role: Role
    module: str  # the class's public module in its library
    name: str
    relies: tuple[str, ...]
    refused: str
    overridable: tuple[str, ...] = ()
    step: Step = NO_STEP  # record that describes how to fold instances

    @property
    def library(self) -> str:
        """Name of the package that contains the class."""
        return self.module.partition(".")[0]


_KERNELS: Final = "kernels other than RBF, linear, sigmoid and polynomial of degree 1 to 6"
_LIBSVM: Final = (
    "kernel degree coef0 support_ support_vectors_ _n_support _dual_coef_ _intercept_ _gamma _probA _probB _sparse"
)
_VOTING: Final = "votes of members that are averages or votes themselves"
_TARGETS: Final = "members of several targets"
_OF_TEXTS: Final = (
    "encoding decode_error strip_accents lowercase stop_words token_pattern ngram_range analyzer binary dtype "
    "preprocessor tokenizer input"
)
# Entries follow the order of docs/sources.md. Each gives a role and module, then lines of the form: names | attributes
# that affect predictions | limits. The records in steps/ replace the line "steps".
_TABLE: Final = f"""\
kernel machine: sklearn.svm
    SVC NuSVC | {_LIBSVM} classes_ decision_function_shape break_ties probability | {_KERNELS}
    SVR NuSVR | {_LIBSVM} | {_KERNELS}
    OneClassSVM | {_LIBSVM} offset_ | {_KERNELS}; an edited offset_
kernel machine: sklearn.kernel_ridge
    KernelRidge | kernel gamma degree coef0 X_fit_ dual_coef_ | {_KERNELS}
kernel machine: sklearn.gaussian_process
    GaussianProcessRegressor | kernel_ X_train_ alpha_ _y_train_mean _y_train_std | deviations and covariances: use
        the source itself
    GaussianProcessClassifier | base_estimator_ classes_ | more than two classes; probabilities: use the
        source itself
kernel machine: sklearn.gaussian_process._gpc
    _BinaryGaussianProcessClassifierLaplace | kernel_ X_train_ y_train_ pi_ classes_ L_ W_sr_ |
kernel machine: sklearn.neighbors
    KernelDensity | kernel metric metric_params bandwidth_ tree_ | kernels other than the Gaussian, metrics other than
        'euclidean'
kernel machine: cuml.svm
    SVC SVR | kernel degree coef0 support_vectors_ dual_coef_ intercept_ classes_ _gamma probability _probA _probB |
        {_KERNELS}; more than two classes
kernel machine: thundersvm
    SVC NuSVC SVR NuSVR OneClassSVM | save_to_file intercept_ shape_fit_ _gamma | {_KERNELS}
kernel of Gaussian processes: sklearn.gaussian_process.kernels
    RBF | length_scale | Matern and the other kernels
    ConstantKernel | constant_value |
    WhiteKernel | |
    Sum Product | k1 k2 | more than one RBF
linear classifier: sklearn.svm
    LinearSVC | coef_ intercept_ classes_ |
linear classifier: sklearn.linear_model
    LogisticRegression LogisticRegressionCV | coef_ intercept_ classes_ multi_class |
    PassiveAggressiveClassifier Perceptron | coef_ intercept_ classes_ |
    RidgeClassifier RidgeClassifierCV | coef_ intercept_ _label_binarizer | several labels for each row
    SGDClassifier | coef_ intercept_ classes_ loss |
linear regression: sklearn.svm
    LinearSVR | coef_ intercept_ |
linear regression: sklearn.linear_model
    ARDRegression BayesianRidge ElasticNet ElasticNetCV HuberRegressor Lasso LassoCV LinearRegression
        PassiveAggressiveRegressor QuantileRegressor Ridge RidgeCV SGDRegressor TheilSenRegressor | coef_ intercept_ |
linear one-class model: sklearn.linear_model
    SGDOneClassSVM | coef_ offset_ |
feature map: sklearn.kernel_approximation
    Nystroem | kernel gamma kernel_params components_ normalization_ | kernels other than RBF
    RBFSampler | n_components random_weights_ random_offset_ |
    SkewedChi2Sampler | skewedness n_components random_weights_ random_offset_ |
feature map: approxsvm.features
    TaylorFeatures | gamma_ degree_ n_features_in_ | degrees above 6
unsupported feature map: sklearn.kernel_approximation
    PolynomialCountSketch | | always
steps
step: sklearn.compose
    ColumnTransformer | transformers_ transformer_weights _transformer_to_input_indices | parts that are not steps
step: sklearn.pipeline
    FeatureUnion | transformer_list transformer_weights | parts that are not steps
selector: sklearn.feature_selection
    GenericUnivariateSelect SelectFdr SelectFpr SelectFromModel SelectFwe SelectKBest SelectPercentile
        SequentialFeatureSelector VarianceThreshold | get_support() |
    RFE RFECV | support_ estimator_ get_support() |
    SelectorMixin | get_support() | subclasses that define transform
vectorizer: sklearn.feature_extraction.text
    CountVectorizer | vocabulary_ {_OF_TEXTS} | functions for analyzer, preprocessor, tokenizer and strip_accents;
        input other than 'content'; in a ColumnTransformer; {OTHER_DTYPE}
    TfidfVectorizer | vocabulary_ _tfidf {_OF_TEXTS} | the same
    HashingVectorizer | n_features norm alternate_sign {_OF_TEXTS} | the same
    TfidfTransformer | idf_ norm use_idf smooth_idf sublinear_tf n_features_in_ | elsewhere than after one of these
pipeline: sklearn.pipeline
    Pipeline | steps | steps that are not in this table
pipeline: imblearn.pipeline
    Pipeline | steps | steps that are not in this table
wrapper: sklearn.calibration
    CalibratedClassifierCV | classes_ calibrated_classifiers_ | around a model without a decision_function, such as
        another CalibratedClassifierCV; folds of two of several classes, or isotonic ones without a class
wrapper: sklearn.compose
    TransformedTargetRegressor | regressor_ transformer_ | transformers of the target that are not affine
wrapper: sklearn.frozen
    FrozenEstimator | estimator |
wrapper: sklearn.semi_supervised
    SelfTrainingClassifier | estimator_ |
wrapper: sklearn.multioutput
    MultiOutputRegressor | estimators_ |
    MultiOutputClassifier | estimators_ | labels that are partly texts and partly numbers; members that
        are averages themselves
wrapper: sklearn.ensemble
    VotingClassifier | estimators_ voting weights estimators le_ classes_ | {_VOTING}
    BaggingClassifier | estimators_ estimators_features_ n_estimators n_features_in_ n_classes_ classes_ | {_VOTING};
        its decision_function where it averages probabilities
wrapper: imblearn.ensemble
    BalancedBaggingClassifier | estimators_ estimators_features_ n_estimators n_features_in_ n_classes_ classes_ | as
        BaggingClassifier
wrapper: sklearn.ensemble
    VotingRegressor | estimators_ weights estimators | {_TARGETS}
    BaggingRegressor | estimators_ estimators_features_ n_estimators n_features_in_ | {_TARGETS}
    StackingRegressor | estimators_ final_estimator_ passthrough | a final_estimator_ that is not linear;
        {_TARGETS}; passthrough=True after feature maps
    StackingClassifier | estimators_ stack_method_ final_estimator_ passthrough classes_ _label_encoder |
        a final_estimator_ that is not linear; decision_function_shape='ovo'; members that vote or are stacks of
        classes; passthrough=True after feature maps
wrapper: sklearn.multiclass
    OneVsRestClassifier | estimators_ classes_ label_binarizer_ | a sparse indicator matrix; predict_proba of
        SVC(probability=True); several labels by averages
    _ConstantPredictor | y_ | by itself
wrapper: sklearn.model_selection
    FixedThresholdClassifier | estimator_ estimator threshold pos_label response_method |
    TunedThresholdClassifierCV | estimator_ best_threshold_ response_method |
wrapper: sklearn.multiclass
    OneVsOneClassifier | estimators_ classes_ pairwise_indices_ | two classes; members without a decision_function
search: sklearn.model_selection
    GridSearchCV HalvingGridSearchCV HalvingRandomSearchCV RandomizedSearchCV | best_estimator_ refit | refit=False
search: skopt
    BayesSearchCV | best_estimator_ refit | refit=False
calibrator: sklearn.calibration
    _CalibratedClassifier | estimator calibrators classes method |
    _SigmoidCalibration | a_ b_ |
    _TemperatureScaling | beta_ | on values of pairs (decision_function_shape='ovo')
calibrator: sklearn.isotonic
    IsotonicRegression | X_thresholds_ y_thresholds_ X_min_ X_max_ f_ out_of_bounds | out_of_bounds other than 'clip';
        one that computes in float32
encoder of labels: sklearn.preprocessing
    LabelBinarizer | classes_ y_type_ neg_label pos_label sparse_input_ |
    LabelEncoder | classes_ |
"""
# Methods that users' subclasses may define: a selector's subclass defines the selection, but inherits `transform` from
# the library.
_LEFT_TO_SUBCLASSES: Final = {"SelectorMixin": ("_get_support_mask", "get_support", "__sklearn_tags__")}


def _known() -> Iterator[Known]:
    for line in _TABLE.replace("\n        ", " ").splitlines():
        if line == "steps":
            for step in STEPS:
                for name in step.names.split():
                    yield Known("step", step.module, name, tuple(step.relies.split()), step.refused, step=step)
            continue
        if not line.startswith(" "):
            role, module = line.split(": ")
            continue
        names, relies, refused = (part.strip() for part in line.split("|"))
        for name in names.split():
            overridable = _LEFT_TO_SUBCLASSES.get(name, ())
            yield Known(cast(Role, role), module, name, tuple(relies.split()), refused, overridable)


KNOWN: Final = tuple(_known())
# Names of attributes that hold inner estimators, which receive the same rows as the outer estimator.
_HOLDING: Final = {"best_estimator_", "calibrated_classifiers_", "estimator", "estimator_", "estimators_", "regressor_"}
INSIDE: Final = {known.name: name for known in KNOWN for name in reversed(known.relies) if name in _HOLDING}
_BY_NAME: Final = {name: tuple(known for known in KNOWN if known.name == name) for name in {k.name for k in KNOWN}}

# Libraries that derive faster but functionally identical classes from classes in the table.
_ACCELERATORS: Final = ("daal4py", "onedal", "sklearnex")
# Packages that may define methods of classes in the table: the libraries, packages on which they rely, and MLflow,
# whose autologging calls the methods that it replaces.
_CHECKED: Final = ("approxsvm", "imblearn", "sklearn", "skopt", *_ACCELERATORS)
_AUTHORS: Final = (*_CHECKED, "abc", "mlflow", "sklearn_compat")
# Methods called for predictions. An object that replaces one of them may predict differently from its class.
_ANSWERS: Final = (
    "decision_function",
    "inverse_transform",
    "predict",
    "predict_log_proba",
    "predict_proba",
    "score_samples",
    "transform",
)
# Members that a subclass or an object may define, because they serve training, copying, naming or display, but not
# prediction.
_HARMLESS: Final = re.compile(
    r"_?(partial_)?fit(_\w+)?|_constrained_optimization|score|[gs]et_params|_get_param_names|_parameter_constraints|"
    r"set_output|_sklearn_auto_wrap_output_keys|get_feature_names_out|get_metadata_routing|set_\w+_request|"
    r"_\w*_metadata_request(__\w+)?|_repr_\w+|_html_repr|_get_doc_link|_doc_link_\w+|_abc_impl|"
    r"__(init|new|init_subclass|class_getitem|module|qualname|doc|annotations|annotate|annotate_func|"
    r"annotations_cache|conditional_annotations|orig_bases|parameters|type_params|abstractmethods|slots|slotnames|"
    r"firstlineno|static_attributes|repr|str|dir|getstate|setstate|reduce|reduce_ex|sklearn_clone|sklearn_is_fitted)__"
)


@lru_cache(maxsize=4096)  # cached because most names occur in many estimators
def _is_harmless(name: str) -> bool:
    return _HARMLESS.fullmatch(name) is not None


def recognise(candidate: Any) -> Known | None:
    """Return the table's entry for an object's class, or None.

    Raises UnsupportedModelError if the object's class is a subclass that changes behaviour, if a method is set on the
    object, or if a method of the class has been replaced.
    """
    match = _nearest(type(candidate))
    if match is None:
        return None
    known, anchor = match
    cls = type(candidate)
    if type(cls) not in (type, ABCMeta, type(anchor)):
        raise UnsupportedModelError(
            f"{_full_name(cls)} has the metaclass {_full_name(type(cls))}, which may change every method; "
            f"compile an object of {known.name} itself"
        )
    trusted = {*anchor.__mro__, *getattr(sys.modules.get("sklearn.base"), "BaseEstimator", object).__mro__}
    of_library = [base for base in cls.__mro__ if base in trusted or _is_accelerator(base)]
    defined = {name for base in of_library for name in vars(base)}
    for base in cls.__mro__:
        if base in of_library:
            _require_own_functions(base)
            continue
        for name, value in vars(base).items():
            if _matters(name, value, known, defined):
                raise UnsupportedModelError(
                    f"{_full_name(base)} defines {name}, and only that knows what it computes; compile an "
                    "object of the class from which it derives"
                )
    for name in vars(candidate):
        if name in ("probA_", "probB_") and f"_{name[:-1]}" not in vars(candidate):
            continue  # attributes in files from scikit-learn before 0.23; they are now properties
        if name in _ANSWERS or (name in defined and not _is_harmless(name)):
            raise UnsupportedModelError(
                f"this {cls.__name__} has a {name} that was set on the object, and only that knows what it "
                "computes; delete it and compile again"
            )
    return known


def name_of(candidate: Any) -> str:
    """Return the table's name for an object's class, or an empty string if the table does not contain the class."""
    known = recognise(candidate)
    return "" if known is None else known.name


def helper(held: Any, attribute: str, *classes: str) -> Any:
    """Check and return the helper object in an estimator's `attribute`, which contributes to the predictions.

    Names in `classes` that are not in the table denote SciPy classes or compiled ones. The helper's class must be
    exactly one of `classes`, and no method may be set on the helper itself. Raises UnsupportedModelError otherwise.
    """
    known, cls = recognise(held), type(held)
    if known is None:
        methods = {name for base in cls.__mro__ for name in vars(base)}
        is_plain = not methods.intersection(getattr(held, "__dict__", {})) and _is_authentic(cls)
        name = cls.__name__ if is_plain and cls.__module__.partition(".")[0] in ("sklearn", "scipy") else ""
    else:
        name = known.name
    if name not in classes:
        raise UnsupportedModelError(
            f"its {attribute} is a {_full_name(cls)} instead of a {' or '.join(classes)}, and only that knows what it "
            "computes; fit it again"
        )
    return held


def class_name(candidate: Any) -> str:
    """Return the name of a class or of an object's class, for error messages only."""
    return candidate.__name__ if isinstance(candidate, type) else type(candidate).__name__


def full_class_name(candidate: Any) -> str:
    """Return the name of an object's class with its module, for error messages only."""
    return _full_name(type(candidate))


def is_compiled(candidate: Any) -> bool:
    """Return whether an object is one of our compiled estimators, for error messages only."""
    return any(base.__module__ == "approxsvm.estimators" for base in type(candidate).__mro__)


def library_names(candidate: Any) -> list[str]:
    """Return the names of an object's base classes in scikit-learn, nearest first, for error messages only."""
    return [base.__name__ for base in type(candidate).__mro__ if base.__module__.startswith("sklearn.")]


def _full_name(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def _nearest(cls: type) -> tuple[Known, type] | None:
    """Return the first base of `cls` in the table, or None if another library class among the bases derives from it."""
    others: list[type] = []
    for base in type.mro(cls):
        for known in _BY_NAME.get(base.__name__, ()):
            if f"{base.__module__}.".startswith(f"{known.module}.") and _is_authentic(base):
                # for example, Matern derives from RBF but computes different values
                derived = any(issubclass(other, base) for other in others)
                return None if derived else (known, base)
        if base.__module__.partition(".")[0] in _CHECKED and not _is_accelerator(base):
            others.append(base)
    return None


def _is_authentic(cls: type) -> bool:
    """Return whether a class is the object that its module stores under the class's name."""
    return getattr(sys.modules.get(cls.__module__), "__dict__", {}).get(cls.__name__) is cls


def _is_accelerator(cls: type) -> bool:
    return cls.__module__.partition(".")[0] in _ACCELERATORS and _is_authentic(cls)


def _matters(name: str, value: Any, known: Known, defined: set[str]) -> bool:
    """Return whether predictions may depend on this attribute of a class outside the libraries."""
    if name in ("__dict__", "__weakref__"):
        return not isinstance(value, GetSetDescriptorType)
    if name in known.overridable or _is_harmless(name):
        return False
    is_computed = hasattr(value, "__get__") and name in known.relies
    return name in defined or name in _ANSWERS or name.startswith("__") or is_computed


def _require_own_functions(cls: type) -> None:
    """Reject a library's class if another package has replaced one of its methods."""
    if cls.__module__.partition(".")[0] not in _CHECKED:
        return  # cuML and ThunderSVM wrap their methods in functions from various packages
    for name, value in vars(cls).items():
        if _is_harmless(name) or isinstance(value, GetSetDescriptorType):  # a GetSetDescriptorType has no Python code
            continue
        for author in _authors(value):
            if author.partition(".")[0] not in _AUTHORS:
                raise UnsupportedModelError(
                    f"{_full_name(cls)}.{name} has been replaced by code of {author}, and only that knows what it "
                    "computes; compile where nothing has replaced it"
                )


def _authors(value: Any) -> Iterator[str]:
    """Yield the modules that define the code of a class member, including decorated functions."""
    if isinstance(value, FunctionType):
        yield str(value.__globals__.get("__name__"))
        yield from _authors(vars(value).get("__wrapped__"))
    elif isinstance(value, property):
        yield from _authors(value.fget)
    elif isinstance(value, (staticmethod, classmethod)):
        yield from _authors(value.__func__)
    elif callable(value) or hasattr(value, "__get__"):
        yield str(type(value).__module__)
        yield from _authors(getattr(value, "fn", None))  # function decorated by scikit-learn's `available_if`
