"""Every class that the readers take, in one table, and the one function that recognises their objects.

What an object predicts follows from its class: from the library, the name, and that its methods are the library's own.
So recognising an object and checking it is one call, which every reader makes of every object before it looks inside.
No library is imported for it.
"""

from __future__ import annotations

import re
import sys
from abc import ABCMeta
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from types import FunctionType, GetSetDescriptorType
from typing import Any, Final, Literal, cast

from approxsvm.errors import UnsupportedModelError

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
    """One class that readers take.

    `relies` are the parameters and fitted attributes that its answers depend on; `refused` is for people; `own` are
    methods that its library leaves to subclasses.
    """

    role: Role
    module: str  # where its library shows it
    name: str
    relies: tuple[str, ...]
    refused: str
    own: tuple[str, ...] = ()

    @property
    def library(self) -> str:
        """The package that it comes from."""
        return self.module.partition(".")[0]


_KERNELS: Final = "kernels other than RBF, linear, sigmoid and polynomial of degree 1 to 6"
_LIBSVM: Final = (
    "kernel degree coef0 support_ support_vectors_ _n_support _dual_coef_ _intercept_ _gamma _probA _probB _sparse"
)
_APART: Final = "members with other kernels, other gammas or other scalers than the first"
_VOTING: Final = "votes of members that are averages or votes themselves"
_TARGETS: Final = "members of several targets"
_COPIES: Final = "copy=False where others take the same rows"
_CATEGORIES: Final = "categories that are neither texts nor numbers, or of sums"
_DTYPE: Final = "another dtype than float64 where steps compute behind it"
_OF_TEXTS: Final = (
    "encoding decode_error strip_accents lowercase stop_words token_pattern ngram_range analyzer binary dtype "
    "preprocessor tokenizer input"
)
# In the order of docs/sources.md. Role and module; then names, what answers depend on, what is refused.
_TABLE: Final = f"""\
kernel machine: sklearn.svm
    SVC NuSVC | {_LIBSVM} classes_ decision_function_shape break_ties probability | {_KERNELS}
    SVR NuSVR | {_LIBSVM} | {_KERNELS}
    OneClassSVM | {_LIBSVM} offset_ | {_KERNELS}; an edited offset_
kernel machine: sklearn.kernel_ridge
    KernelRidge | kernel gamma degree coef0 X_fit_ dual_coef_ | {_KERNELS}
kernel machine: sklearn.gaussian_process
    GaussianProcessRegressor | kernel_ X_train_ alpha_ _y_train_mean _y_train_std | deviations and covariances: ask
        the source itself
    GaussianProcessClassifier | base_estimator_ classes_ | more than two classes; probabilities: ask the
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
step: sklearn.preprocessing
    StandardScaler | with_mean with_std mean_ scale_ copy | {_COPIES}
    MinMaxScaler | clip feature_range scale_ min_ copy | {_COPIES}
    MaxAbsScaler | clip scale_ copy | {_COPIES}
    RobustScaler | with_centering with_scaling center_ scale_ copy | {_COPIES}
    FunctionTransformer | func kw_args inverse_func inv_kw_args | functions other than np.log and np.log1p
    PowerTransformer | method lambdas_ standardize _scaler copy | {_COPIES}; float32 powers
    QuantileTransformer | output_distribution quantiles_ references_ copy | {_COPIES}; zeros of a sparse step
    PolynomialFeatures | interaction_only include_bias _min_degree _max_degree n_output_features_ | more than 16,384
        products
    SplineTransformer | bsplines_ degree extrapolation include_bias handle_missing | degree 0; handle_missing='zeros'
step: sklearn.kernel_approximation
    AdditiveChi2Sampler | sample_steps sample_interval |
step: sklearn.preprocessing
    Normalizer | norm copy | {_COPIES}
    Binarizer | threshold copy | {_COPIES}
    KBinsDiscretizer | bin_edges_ encode dtype _encoder | dtype=np.float32
    OneHotEncoder | categories_ handle_unknown _drop_idx_after_grouping _infrequent_enabled
        _default_to_infrequent_mappings _n_features_outs dtype | {_CATEGORIES}; {_DTYPE}
    OrdinalEncoder | categories_ handle_unknown unknown_value dtype | {_CATEGORIES}; {_DTYPE}
    TargetEncoder | categories_ encodings_ target_mean_ | categories that are neither texts nor numbers; more than two
        classes of the target
step: sklearn.impute
    SimpleImputer | missing_values statistics_ strategy _fill_dtype _fit_dtype keep_empty_features add_indicator
        indicator_ copy | values that are neither texts nor numbers; {_COPIES}
    MissingIndicator | missing_values features features_ error_on_new | values that are neither texts nor numbers
step: sklearn.decomposition
    PCA IncrementalPCA | whiten mean_ components_ explained_variance_ |
    TruncatedSVD | components_ |
    FastICA | whiten mean_ components_ |
step: sklearn.discriminant_analysis
    LinearDiscriminantAnalysis | solver xbar_ scalings_ _max_components | solver='lsqr'
step: sklearn.random_projection
    GaussianRandomProjection SparseRandomProjection | components_ |
step: sklearn.cross_decomposition
    CCA PLSCanonical PLSRegression | _x_mean _x_std x_rotations_ |
step: sklearn.cluster
    FeatureAgglomeration | labels_ pooling_func | pooling by other functions than np.mean
step: sklearn.compose
    ColumnTransformer | transformers_ transformer_weights _transformer_to_input_indices | parts that are no steps
step: sklearn.pipeline
    FeatureUnion | transformer_list transformer_weights | parts that are no steps
selector: sklearn.feature_selection
    GenericUnivariateSelect SelectFdr SelectFpr SelectFromModel SelectFwe SelectKBest SelectPercentile
        SequentialFeatureSelector VarianceThreshold | get_support() |
    RFE RFECV | support_ estimator_ get_support() |
    SelectorMixin | get_support() | subclasses with a transform of their own
vectorizer: sklearn.feature_extraction.text
    CountVectorizer | vocabulary_ {_OF_TEXTS} | functions for analyzer, preprocessor, tokenizer and strip_accents;
        input other than 'content'; in a ColumnTransformer; {_DTYPE}
    TfidfVectorizer | vocabulary_ _tfidf {_OF_TEXTS} | the same
    HashingVectorizer | n_features norm alternate_sign {_OF_TEXTS} | the same
    TfidfTransformer | idf_ norm use_idf smooth_idf sublinear_tf n_features_in_ | anywhere but right behind one of these
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
    MultiOutputClassifier | estimators_ | labels of which some are texts and some numbers; members that
        are averages themselves
wrapper: sklearn.ensemble
    VotingClassifier | estimators_ voting weights estimators le_ classes_ | {_VOTING}
    BaggingClassifier | estimators_ estimators_features_ n_estimators n_features_in_ n_classes_ classes_ | {_VOTING};
        its decision_function where it averages probabilities
    AdaBoostClassifier | estimators_ estimator_weights_ classes_ n_classes_ | members that are averages themselves
wrapper: imblearn.ensemble
    BalancedBaggingClassifier | estimators_ estimators_features_ n_estimators n_features_in_ n_classes_ classes_ | as
        BaggingClassifier
    RUSBoostClassifier | estimators_ estimator_weights_ classes_ n_classes_ | as AdaBoostClassifier
wrapper: sklearn.ensemble
    VotingRegressor | estimators_ weights estimators | {_TARGETS}
    BaggingRegressor | estimators_ estimators_features_ n_estimators n_features_in_ | {_TARGETS}
    StackingRegressor | estimators_ final_estimator_ passthrough | final_estimator_ that is no linear model;
        {_TARGETS}; passthrough=True behind maps of features
    StackingClassifier | estimators_ stack_method_ final_estimator_ passthrough classes_ _label_encoder |
        final_estimator_ that is no linear model; decision_function_shape='ovo'; members that vote or are stacks of
        classes; passthrough=True behind maps of features
wrapper: sklearn.multiclass
    OneVsRestClassifier | estimators_ classes_ label_binarizer_ | a sparse indicator matrix; predict_proba of
        SVC(probability=True); several labels by averages
    _ConstantPredictor | y_ | by itself
    OutputCodeClassifier | estimators_ classes_ code_book_ | members without a decision_function; {_APART}
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
# Versions of the libraries, for people.
VERSIONS: Final = {
    "sklearn": "scikit-learn 1.6 and later, tried with 1.9.1; scikit-learn-intelex's classes, which derive from its",
    "imblearn": "imbalanced-learn, tried with 0.14.2, whose samplers do nothing when predicting",
    "skopt": "scikit-optimize, tried with 0.10.2",
    "cuml": "cuML: no GPU was at hand, so by objects made like its own",
    "thundersvm": "ThunderSVM 0.3, as cuML",
    "approxsvm": "this one",
}
# Of a base class for selectors a library's user defines what it selects; its transform is the library's.
_LEFT_TO_SUBCLASSES: Final = {"SelectorMixin": ("_get_support_mask", "get_support", "__sklearn_tags__")}


def _known() -> Iterator[Known]:
    for line in _TABLE.replace("\n        ", " ").splitlines():
        if not line.startswith(" "):
            role, module = line.split(": ")
            continue
        names, relies, refused = (part.strip() for part in line.split("|"))
        for name in names.split():
            own = _LEFT_TO_SUBCLASSES.get(name, ())
            yield Known(cast(Role, role), module, name, tuple(relies.split()), refused, own)


KNOWN: Final = tuple(_known())
_BY_NAME: Final = {name: tuple(known for known in KNOWN if known.name == name) for name in {k.name for k in KNOWN}}

# Their subclasses of a class of the table compute the same faster.
_ACCELERATORS: Final = ("daal4py", "onedal", "sklearnex")
# Whose functions may stand in the classes of the table: of the libraries themselves, what they build on, and MLflow,
# whose autologging calls what it has replaced.
_CHECKED: Final = ("approxsvm", "imblearn", "sklearn", "skopt", *_ACCELERATORS)
_AUTHORS: Final = (*_CHECKED, "abc", "mlflow", "sklearn_compat")
# What an object is asked for. An object that has one which its class has not answers otherwise than its class.
_ANSWERS: Final = (
    "decision_function",
    "inverse_transform",
    "predict",
    "predict_log_proba",
    "predict_proba",
    "score_samples",
    "transform",
)
# What a subclass or an object may have of its own: training, copying, names and what is shown, but no answer.
_HARMLESS: Final = re.compile(
    r"_?(partial_)?fit(_\w+)?|_constrained_optimization|score|[gs]et_params|_get_param_names|_parameter_constraints|"
    r"set_output|_sklearn_auto_wrap_output_keys|get_feature_names_out|get_metadata_routing|set_\w+_request|"
    r"_\w*_metadata_request(__\w+)?|_repr_\w+|_html_repr|_get_doc_link|_doc_link_\w+|_abc_impl|"
    r"__(init|new|init_subclass|class_getitem|module|qualname|doc|annotations|annotate|annotate_func|"
    r"annotations_cache|conditional_annotations|orig_bases|parameters|type_params|abstractmethods|slots|slotnames|"
    r"firstlineno|static_attributes|repr|str|dir|getstate|setstate|reduce|reduce_ex|sklearn_clone|sklearn_is_fitted)__"
)


def recognise(thing: Any) -> Known | None:
    """The class of the table that an object is of, or None where it is of none.

    Raises UnsupportedModelError: its class is a subclass that has more than other data, it has a method of its own, or
    something has replaced a method of its class.
    """
    found = _nearest(type(thing))
    if found is None:
        return None
    known, anchor = found
    cls = type(thing)
    if type(cls) not in (type, ABCMeta, type(anchor)):
        raise UnsupportedModelError(
            f"{_full_name(cls)} has the metaclass {_full_name(type(cls))}, which may change every method; "
            f"compile an object of {known.name} itself"
        )
    trusted = {*anchor.__mro__, *_base_estimator().__mro__}
    of_library = [base for base in cls.__mro__ if base in trusted or _is_accelerator(base)]
    defined = {name for base in of_library for name in vars(base)}
    for base in cls.__mro__:
        if base in of_library:
            _require_own_functions(base)
            continue
        for name, value in vars(base).items():
            if _matters(name, value, known, defined):
                raise UnsupportedModelError(
                    f"{_full_name(base)} has a {name} of its own, and only that knows what it computes; compile an "
                    "object of the class that it derives from"
                )
    for name in vars(thing):
        if name in ("probA_", "probB_") and f"_{name[:-1]}" not in vars(thing):
            continue  # of a file of scikit-learn before 0.23; today they are properties
        if name in _ANSWERS or (name in defined and not _HARMLESS.fullmatch(name)):
            raise UnsupportedModelError(
                f"this {cls.__name__} has a {name} of its own, set on the object, and only that knows what it "
                "computes; delete it and compile again"
            )
    return known


def name_of(thing: Any) -> str:
    """Name of the class of the table that an object is of, or an empty string."""
    known = recognise(thing)
    return "" if known is None else known.name


def helper(held: Any, attribute: str, *classes: str) -> Any:
    """Return what an estimator holds as `attribute` and asks for a part of its answers: of one of these classes.

    Classes that are not in the table are SciPy's and compiled ones. Of these it has to be exactly one, without a method
    set on the object. UnsupportedModelError for any other object.
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


def class_name(thing: Any) -> str:
    """Name of the object's own class, or of a class itself, for messages alone."""
    return thing.__name__ if isinstance(thing, type) else type(thing).__name__


def full_class_name(thing: Any) -> str:
    """The same with its module."""
    return _full_name(type(thing))


def library_names(thing: Any) -> list[str]:
    """Names of scikit-learn's classes that the object's class derives from, nearest first, for messages alone."""
    return [base.__name__ for base in type(thing).__mro__ if base.__module__.startswith("sklearn.")]


def _full_name(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def _nearest(cls: type) -> tuple[Known, type] | None:
    """The first class of the table among the bases of `cls`, unless a library derives another class from it."""
    others: list[type] = []
    for base in type.mro(cls):
        for known in _BY_NAME.get(base.__name__, ()):
            if f"{base.__module__}.".startswith(f"{known.module}.") and _is_authentic(base):
                # Such as Matern of RBF, whose answers are others.
                derived = any(issubclass(other, base) for other in others)
                return None if derived else (known, base)
        if base.__module__.partition(".")[0] in _CHECKED and not _is_accelerator(base):
            others.append(base)
    return None


def _is_authentic(cls: type) -> bool:
    """Whether the class is what its module holds by its name."""
    return getattr(sys.modules.get(cls.__module__), "__dict__", {}).get(cls.__name__) is cls


def _base_estimator() -> type:
    """That of scikit-learn, which its SelectorMixin leaves to subclasses to derive from."""
    return getattr(sys.modules.get("sklearn.base"), "BaseEstimator", object)


def _is_accelerator(cls: type) -> bool:
    return cls.__module__.partition(".")[0] in _ACCELERATORS and _is_authentic(cls)


def _matters(name: str, value: Any, known: Known, defined: set[str]) -> bool:
    """Whether an answer may depend on what a class that is not the library's has by this name."""
    if name in ("__dict__", "__weakref__"):
        return not isinstance(value, GetSetDescriptorType)
    if name in known.own or _HARMLESS.fullmatch(name):
        return False
    is_computed = hasattr(value, "__get__") and name in known.relies
    return name in defined or name in _ANSWERS or name.startswith("__") or is_computed


def _require_own_functions(cls: type) -> None:
    """Refuse a class of a library in which something else has replaced a function."""
    if cls.__module__.partition(".")[0] not in _CHECKED:
        return  # cuML and ThunderSVM wrap their methods by packages that nobody here knows
    for name, value in vars(cls).items():
        if _HARMLESS.fullmatch(name) or isinstance(value, GetSetDescriptorType):  # the latter has no code in Python
            continue
        for author in _authors(value):
            if author.partition(".")[0] not in _AUTHORS:
                raise UnsupportedModelError(
                    f"{_full_name(cls)}.{name} has been replaced by code of {author}, and only that knows what it "
                    "computes; compile where nothing has replaced it"
                )


def _authors(value: Any) -> Iterator[str]:
    """Modules that the code of a member of a class comes from; a decorator does not hide its own."""
    if isinstance(value, FunctionType):
        yield str(value.__globals__.get("__name__"))
        yield from _authors(vars(value).get("__wrapped__"))
    elif isinstance(value, property):
        yield from _authors(value.fget)
    elif isinstance(value, (staticmethod, classmethod)):
        yield from _authors(value.__func__)
    elif callable(value) or hasattr(value, "__get__"):
        yield str(type(value).__module__)
        yield from _authors(getattr(value, "fn", None))  # of scikit-learn's available_if


def table() -> list[tuple[str, str, str, str]]:
    """Rows for the documentation: role, classes, what answers depend on, what is refused."""

    def alike(known: Known) -> tuple[str, ...]:
        return known.role, known.library, " ".join(known.relies), known.refused

    rows = []
    for (role, library, relies, refused), group in groupby(KNOWN, alike):
        names = ", ".join(known.name for known in group)
        rows.append((role, names if library == "sklearn" else f"{names} of {library}", relies, refused))
    return rows
