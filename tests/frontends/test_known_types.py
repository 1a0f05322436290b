"""Perturbations of every accepted class: if the source's answer changes, the model's changes equally or is refused.

The table known_types.KNOWN drives the tests; examples are entries of the zoo.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import functools
import pickle
import re
import sys
import warnings
from collections import Counter
from functools import cache
from inspect import getattr_static
from pathlib import Path
from types import FunctionType

import numpy as np
import pytest
from conftest import REPOSITORY
from scipy.sparse import issparse
from sklearn.base import ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, Sum, WhiteKernel
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression, MultiTaskLasso
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC, OneClassSVM
from sklearn.utils.metaestimators import available_if
from zoo import oracle
from zoo.balls import Ball
from zoo.sources import ROWS, TARGETS, ZOO, FirstColumns, specimen
from zoo.tampering import parts_of

import approxsvm
from approxsvm.errors import ApproxSVMError, ModelFormatError, UnsupportedModelError
from approxsvm.frontends import read_any
from approxsvm.frontends.sklearn import known_types
from approxsvm.frontends.sklearn.known_types import KNOWN

sys.path.append(str(REPOSITORY))  # docs are not part of the package

from docs import sources

pytestmark = pytest.mark.filterwarnings("ignore")  # scikit-learn warns about changes made here

X, TWO, THREE, VALUE = ROWS["signed"].make(), TARGETS["two"], TARGETS["three"], TARGETS["value"]
# Classes without a zoo entry of the same name, or for which parameters and containers need further entries.
_EXAMPLES = """
SVC: SVC, probability; SVC, pairs; SVC, ties; SVC of three, degree 6; SVC of CSR | NuSVC: NuSVC; NuSVC, probability
SVR: SVR; SVR, cubic | NuSVR: NuSVR, linear | KernelRidge: KernelRidge; KernelRidge, quadratic; KernelRidge, two targets
GaussianProcessRegressor: process; process, normalized; process, two targets
GaussianProcessClassifier _BinaryGaussianProcessClassifierLaplace: process of two
KernelDensity: density | RBF Sum: process; process, normalized | ConstantKernel Product: process, normalized
WhiteKernel: process | LinearSVC: waves, LinearSVC; LinearSVC of three
LogisticRegression: landmarks, LogisticRegression; LogisticRegression of three
RidgeClassifier: RidgeClassifier; landmarks, RidgeClassifier | RidgeClassifierCV: RidgeClassifierCV of three
SGDClassifier: SGDClassifier; SGDClassifier of three | SGDOneClassSVM: SGDOneClassSVM; landmarks, SGDOneClassSVM
LinearSVR: LinearSVR; landmarks of other parameters | Ridge: Ridge; landmarks, Ridge
Nystroem: landmarks, Ridge; landmarks of other parameters | RBFSampler: waves, Ridge
SkewedChi2Sampler: skewed waves, LinearSVC | TaylorFeatures: Taylor features, Ridge
StandardScaler: StandardScaler; union; scaled target | MinMaxScaler: MinMaxScaler, clipped; columns; restored target
RobustScaler: RobustScaler; nested | FunctionTransformer: log1p; nothing; target as it is
PowerTransformer: yeo-johnson of some; box-cox | QuantileTransformer: quantiles; normal quantiles
PolynomialFeatures: products; bent | SplineTransformer: splines, constant; splines, continue; splines, periodic
Normalizer: Normalizer, l2; Normalizer, max
Binarizer: Binarizer; scaled Binarizer | KBinsDiscretizer: bins; bins, one-hot
OneHotEncoder: OneHotEncoder, chosen; OneHotEncoder, infrequent
OrdinalEncoder: OrdinalEncoder; OrdinalEncoder, unknown | SimpleImputer: SimpleImputer, marked; SimpleImputer of 0
LinearDiscriminantAnalysis: discriminants; discriminants, eigen | ColumnTransformer: columns; masked columns
FeatureUnion: union | RFE: RFE; RFE, itself
RFECV: RFECV; RFECV, itself | SelectorMixin: own selector | TfidfTransformer: hashes and weights
Pipeline: scalers; nested; sampled
CalibratedClassifierCV: sigmoid of two; isotonics of three; temperature of three
TransformedTargetRegressor: scaled target | FrozenEstimator: frozen; CCA | MultiOutputRegressor: targets; targets, one
MultiOutputClassifier: several labels; several probabilities | VotingClassifier: soft votes; weighted votes
BaggingClassifier: bag of means; bag
VotingRegressor: mean; mean of one kernel | BaggingRegressor: bag of values; bag of linear values
StackingRegressor: stack of values; stack, passed through | StackingClassifier: stack; stack of three
OneVsRestClassifier: rest of two; rest; rest, calibrated; rest of several labels
_ConstantPredictor: rest of a constant
FixedThresholdClassifier: threshold of values; threshold of probabilities | TunedThresholdClassifierCV: tuned threshold
OneVsOneClassifier: pairs; pairs of linear ones
_CalibratedClassifier: sigmoid of two; isotonic of three; temperature of three
_SigmoidCalibration: sigmoid of two; sigmoid of three | _TemperatureScaling: temperature of two; temperature of three
IsotonicRegression: isotonic of two; isotonic of three
LabelBinarizer: rest of two; rest; rest of several labels; RidgeClassifierCV of three
LabelEncoder: votes of two; stack
"""
EXAMPLES = {
    name: entries.split("; ")
    for names, entries in (part.split(": ") for part in re.split(r" \| |\n", _EXAMPLES.strip()))
    for name in names.split()
}
# cuML and ThunderSVM cannot be installed everywhere; the zoo has stand-ins for them.
HERE = [k for k in KNOWN if "unsupported" not in k.role and k.library not in ("cuml", "thundersvm")]
READ = [known for known in HERE if known.role != "vectorizer"]
# Attributes in which estimators keep templates, which they clone before fitting.
TEMPLATE = re.compile(r"\.(estimators?|regressor|transformers?|kernel|base_estimator|final_estimator)\b")


@cache
def fitted(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return specimen(ZOO[name], Path()).source


@cache
def examples(known):
    """Return fitted sources, each with its object of the class and with rows."""
    pytest.importorskip(known.library, reason=f"{known.library} is not installed")
    found = []
    for name in EXAMPLES.get(known.name, [known.name]):
        source = fitted(name) if name in ZOO else None
        for path, part in parts_of(source):
            is_fitted = any(held.endswith("_") for held in vars(part)) or not TEMPLATE.search(path)
            if is_fitted and known_types.recognise(part) == known:
                found.append((source, part, ROWS[ZOO[name].rows].take(slice(None, None, 7)).make()))
                break
    assert found
    return found


def of_each(records):
    return pytest.mark.parametrize("known", records, ids=lambda known: f"{known.library}-{known.name}")


METHODS = ("predict", "decision_function", "predict_proba", "score_samples")


def answers(source, rows):
    """Return the answers by method, for methods that do not raise."""
    found = {}
    for name in METHODS:
        with contextlib.suppress(Exception):  # with an edited value, it may raise anything
            found[name] = np.asarray(getattr(source, name)(copy.copy(rows)))
    if "predict" not in found and "score_samples" in found:  # a density
        return {"predict": found["score_samples"]}
    return found


def answers_of_model(model, rows):
    """Return the oracle's answers, rounded to float64."""
    found = oracle.answers(model, rows.toarray() if issparse(rows) else rows)
    if "predict" not in found:
        found["predict"] = found["score_samples"]
    numbers = {name: answer.mid.astype(float) for name, answer in found.items() if isinstance(answer, Ball)}
    return found | {name: one[:, 0] if one.shape[1] == 1 else one for name, one in numbers.items()}


def same(given, expected):
    """Return whether two answers agree."""
    if given.shape[:1] != expected.shape[:1] or given.size != expected.size:
        return False
    given = given.reshape(expected.shape)
    if given.dtype.kind in "fc" and expected.dtype.kind in "fc":
        scale = np.abs(expected[np.isfinite(expected)]).max(initial=1e-300)
        return np.allclose(given, expected, rtol=0, atol=1e-8 * scale, equal_nan=True)
    return np.array_equal(given, expected)


def difference(ours, source):
    """Return the shared methods whose answers differ."""
    shared = [name for name in METHODS if name in ours and name in source]
    assert "predict" in shared
    return [name for name in shared if not same(ours[name], source[name])]


def changes_of_array(value):
    yield value[::-1].copy()
    yield value[1:].copy()
    if value.ndim > 1:
        yield np.ascontiguousarray(value[:, ::-1])
        yield np.ascontiguousarray(value[:, 1:])
    if value.dtype.kind in "fiu":
        yield (value * 3) // 2 if value.dtype.kind in "iu" else value * 1.25
        yield -value
        yield np.zeros_like(value)
    if value.dtype.kind == "f" and value.size:
        hole = value.copy()
        hole.flat[0] = np.nan
        yield hole
    if value.dtype.kind in "fib" and len(value) > 2:  # of 2, the reversed order
        yield np.roll(value, 1, axis=0)


def options_of(thing, name):
    """Return other values of a parameter, taken from the constraints listed by the class itself."""
    constraints = getattr(type(thing), "_parameter_constraints", {}).get(name, [])
    return [word for c in constraints if hasattr(c, "options") for word in sorted(map(str, c.options))]


def changes(thing, name, value):
    """Yield other values for an attribute, of its own type and of other types."""
    if isinstance(value, (bool, np.bool_)):
        yield not value
    elif isinstance(value, (int, float, np.number)):
        yield from (value * 1.5, -value, value + 1, 0, type(value)(3))
    elif isinstance(value, str):
        yield from (word for word in [*options_of(thing, name), "nonsense"] if word != value)
    elif isinstance(value, np.ndarray) and value.ndim:
        yield from changes_of_array(value)
    elif issparse(value):
        yield from (value * 1.25, value[::-1])
    elif isinstance(value, (list, tuple)):
        yield from (value[::-1], value[1:], value[:-1])
    elif isinstance(value, dict):
        yield {}
        yield from ({**value, key: other} for key in value for other in list(changes(thing, key, value[key]))[:2])
    elif value is None:
        yield from (0.5, 2, True, np.ones(3), np.log, *options_of(thing, name))
    elif isinstance(value, type) or (callable(value) and hasattr(value, "__wrapped__")):  # np.float64, np.mean
        yield np.float32 if isinstance(value, type) else np.max
    elif known_types.recognise(value) is None and hasattr(value, "__dict__"):  # such as a binarizer of labels
        for inner, held in vars(value).items():
            for other in changes(value, inner, held):
                changed = copy.copy(value)
                vars(changed)[inner] = other
                yield changed
    elif name.startswith("k"):
        yield Matern()
    elif name == "estimator":
        yield from (LogisticRegression(), SVR(), "drop")
    yield None


ABSENT = object()


# n_jobs starts processes; a density's tree stops within atol and rtol, whereas ours is the exact density.
UNTOUCHED = {"_sklearn_output_config", "_metadata_request", "n_jobs", "atol", "rtol"}
# If these are edited, scikit-learn's LIBSVM reads beyond its arrays for sparse rows, and crashes.
CRASHING = {"probability", "_effective_probability"}


def attributes(thing):
    parameters = thing.get_params(deep=False) if hasattr(thing, "get_params") else {}
    crashing = CRASHING if getattr(thing, "_sparse", False) is True else set()
    return sorted({*parameters, *vars(thing)} - UNTOUCHED - crashing)


def perturbed(known, thing, k, n, seen):
    """Set each attribute to other values, one at a time, and then restore it.

    What matters gets all values if it is a string, or the first of its type in the examples. Otherwise, and if it is a
    large array, it gets the first and, in the k-th of n examples, every n-th of the others; so does a parameter that
    should not matter, with fewer values unless it is a string.
    """
    state = {key: copied(held) for key, held in vars(thing).items()}
    parameters = thing.get_params(deep=False) if hasattr(thing, "get_params") else {}
    for name in attributes(thing):
        others = [*changes(thing, name, state[name]), ABSENT]
        is_large = isinstance(state[name], np.ndarray) and state[name].size > 16
        kind = (name, type(state[name]))
        if name in known.relies and not is_large and (kind not in seen or isinstance(state[name], str)):
            chosen = others
        elif name in known.relies or name in parameters:
            step = n + (name not in known.relies and not isinstance(state[name], str))
            chosen = others[:1] + others[1 + k :: step]
        else:
            chosen = others[: 3 if known.role == "selector" else 2]
        seen.add(kind)
        for other in chosen:
            vars(thing).pop(name) if other is ABSENT else vars(thing).update({name: other})
            try:
                yield name, other
            finally:
                vars(thing).update({key: copied(held) for key, held in state.items()})
    yield from with_inner_parameters_set(thing, 2 if k == 0 else 1)


def with_inner_parameters_set(thing, n_values):
    """Set each parameter of inner objects, such as member templates, as set_params does, and then restore it."""
    every = thing.get_params() if hasattr(thing, "get_params") else {}
    for name, value in every.items():
        holder, _, last = name.rpartition("__")
        holder = every[holder] if holder else thing
        if last in UNTOUCHED or (holder is thing and last in vars(thing)):
            continue
        for other in list(changes(holder, last, value))[:n_values]:
            put(holder, last, other)
            try:
                yield name, other
            finally:
                put(holder, last, value)


def put(holder, name, value):
    setattr(holder, name, value) if name in vars(holder) else holder.set_params(**{name: value})


def copied(held):
    return held.copy() if isinstance(held, dict) else held  # a Nystroem modifies its kernel_params


def found_by_perturbing(known):
    """For each attribute, count refusals and effects on the source, and list the changes that go unnoticed."""
    found: dict[str, Counter[str]] = {}
    unnoticed, seen = [], set()
    for k, (source, thing, rows) in enumerate(examples(known)):
        before = answers(source, rows)
        for name, other in perturbed(known, thing, k, len(examples(known)), seen):
            counts = found.setdefault(name, Counter())
            try:
                model = read_any(source)
            except (ApproxSVMError, NotFittedError):
                counts["refused"] += 1
                continue
            if model.n_raw_features != rows.shape[1]:  # its predict refuses the rows
                counts["refused"] += 1
                continue
            after = answers(source, rows)
            if "predict" not in after:
                counts["no answer"] += 1
                continue
            counts["as before" if not difference(before, after) else "changed"] += 1
            differing = difference(answers_of_model(model, rows), after)
            if differing:
                unnoticed.append((name, "absent" if other is ABSENT else other, differing))
    return found, unnoticed


@of_each(READ)
def test_what_changes_the_answer_changes_ours_or_is_refused(known, monkeypatch):
    """The table lists everything on which answers depend."""
    # Functions of classes are never replaced here, so checking each class once suffices.
    once = cache(known_types._require_own_functions)
    monkeypatch.setattr(known_types, "_require_own_functions", once)
    found, unnoticed = found_by_perturbing(known)
    all_counts = sum(found.values(), Counter())
    print(f"{known.name}: {all_counts.total()} changes of {len(found)} attributes: {dict(all_counts)}")
    assert unnoticed == []
    if known.role != "selector":
        own = set().union(*(attributes(thing) for _, thing, _ in examples(known)))
        matters = {name for name, counts in found.items() if counts["changed"]} & own
        assert matters <= set(known.relies)
        assert not {name for name in known.relies if name in found and set(found[name]) <= {"as before"}}  # idle


TEXT_CHANGES = {"ngram_range": [(1, 2), (2, 2)], "stop_words": ["english", ["dog"]], "token_pattern": [r"\w+"]}


@of_each([known for known in HERE if known.role == "vectorizer"])
def test_vectorizers_whose_parameters_were_set_answer_as_the_source_or_are_refused(known):
    ((source, step, texts),) = examples(known)
    state, n_answered = dict(vars(step)), 0
    for name, value in step.get_params().items():
        for other in [*list(changes(step, name, value))[:3], *TEXT_CHANGES.get(name, ())]:
            if name == "n_features" and other == 0:
                continue  # scikit-learn crashes
            step.set_params(**{name: other})
            try:
                ours = approxsvm.compile(source, mode="exact").decision_function(texts)
            except ApproxSVMError:
                continue
            finally:
                after = answers(source, texts)
                vars(step).update(state)
            n_answered += 1
            np.testing.assert_allclose(ours, after["decision_function"], atol=1e-9, err_msg=f"{name}={other!r}")
    assert n_answered


# Overridden methods


def members_that_matter(cls):
    """Return the names of all members of a class that a subclass must not override."""
    every = {name for base in cls.__mro__ for name in vars(base)} | set(known_types._ANSWERS)
    return sorted(every - {"__dict__", "__weakref__", "__class__"} - set(filter(harmless, every)))


def harmless(name):
    return known_types._HARMLESS.fullmatch(name) is not None


def own(*given, **named):
    raise AssertionError("was called")


def subclass_of(cls, **members):
    return type(cls)("Mine", (cls,), members)


@of_each(READ)
def test_no_object_with_a_method_of_its_own_is_read(known):
    """The object may be anywhere in the source, and the method may be defined by a subclass or set on the object."""
    for k, (source, thing, _) in enumerate(examples(known)):
        cls = type(thing)
        for name in members_that_matter(cls)[:: 1 + 4 * k]:  # which members matter depends on the class alone
            if name not in known.overridable:
                thing.__class__ = subclass_of(cls, **{name: getattr_static(cls, name, own)})
                with pytest.raises(UnsupportedModelError, match=f"defines {re.escape(name)}, and"):
                    read_any(source)
                thing.__class__ = cls
            if not name.startswith("__"):
                vars(thing)[name] = own
                with pytest.raises(UnsupportedModelError, match=f"{re.escape(name)} that was set on the object"):
                    read_any(source)
                del vars(thing)[name]


def helpers(thing):
    """Yield objects in attributes or lists, except arrays, functions and member templates, with attribute names."""
    others = (type, FunctionType, np.ndarray, np.ufunc, type(np.mean))
    for name, held in vars(thing).items():
        for inner in held if isinstance(held, (list, tuple)) else [held]:
            is_helper = hasattr(inner, "__dict__") and not issparse(inner) and not isinstance(inner, others)
            if is_helper and name not in ("estimator", "estimator_"):
                yield name, inner


def called(ask, rows):
    """Return whether the replaced method is called."""
    try:
        with contextlib.suppress(TypeError, ValueError, AttributeError, NotImplementedError):
            ask(rows.copy())
    except AssertionError:
        return True
    return False


@of_each(READ)
def test_no_helper_with_a_method_of_its_own_is_read(known):
    """predict calls helpers, such as label encoders, scalers, trees and splines. Most are themselves in the table."""
    seen = set()
    for source, thing, rows in examples(known):
        ask = getattr(source, "predict", getattr(source, "score_samples", None))
        for held, inner in helpers(thing):
            cls = type(inner)
            if (held, cls) in seen:
                continue
            for name in (name for name in members_that_matter(cls) if name == "__call__" or name[:2] != "__"):
                inner.__class__ = subclass_of(cls, **{name: own})
                if called(ask, rows):
                    seen.add((held, cls))
                    with pytest.raises(ApproxSVMError):
                        read_any(source)
                inner.__class__ = cls


@of_each(READ)
def test_what_a_subclass_may_have_does_not_matter(known):
    """Training methods and new names do not change the source's answers, and the source never calls such additions."""
    for source, thing, rows in examples(known):
        cls = type(thing)
        before = answers(source, rows)
        names = {name for base in cls.__mro__[:-1] for name, value in vars(base).items() if callable(value)}
        called_by_checks = {"__sklearn_is_fitted__", "__init_subclass__", "__new__"}
        replaced = {name: own for name in names - called_by_checks if harmless(name)}
        thing.__class__ = subclass_of(cls, **replaced, note=1, plot=own, __doc__="Mine.")
        thing.remark = "mine"
        assert difference(answers(source, rows), before) == []
        assert difference(answers_of_model(read_any(source), rows), before) == []
        del thing.remark
        thing.__class__ = cls


@of_each(READ)
def test_no_class_with_a_replaced_method_is_read(known, monkeypatch):
    source, thing, _ = examples(known)[0]
    for base in type(thing).__mro__[:-1]:
        if base.__module__.partition(".")[0] != known.library:
            continue
        functions = [name for name, value in vars(base).items() if callable(value) and not harmless(name)]
        for name in (*functions, "predict", "decision_function"):
            with monkeypatch.context() as context:
                context.setattr(base, name, own, raising=False)
                with pytest.raises(UnsupportedModelError, match=f"{name} has been replaced by code of"):
                    read_any(source)


def test_decorators_do_not_hide_whose_code_it_is(monkeypatch):
    source = SVC(probability=True).fit(X, TWO)
    wrapped = functools.wraps(SVC.predict)(lambda self, X: self.classes_[:1].repeat(len(X)))
    for value in (wrapped, property(own), staticmethod(own), available_if(lambda self: True)(own), np.sign):
        with monkeypatch.context() as context:
            context.setattr(SVC, "predict", value, raising=False)
            with pytest.raises(UnsupportedModelError, match="predict has been replaced by code of"):
                read_any(source)


def test_autologging_of_mlflow_is_no_method_of_somebodys_own(monkeypatch):
    """Autologging replaces every class's predict with a function that calls the original."""
    source, others = SVC().fit(X, TWO), {"__name__": "mlflow.utils", "predict": SVC.predict}
    patched = FunctionType((lambda self, X: predict(self, X)).__code__, others)  # noqa: F821
    monkeypatch.setattr(SVC, "predict", functools.wraps(SVC.predict)(patched))
    assert read_any(source).source == "sklearn SVC"


class Copied(SVC):
    """A module-level class, so that it can be pickled."""


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda thing: pickle.loads(pickle.dumps(thing)), clone])
def test_a_subclass_whose_objects_were_copied_is_what_it_was(again):
    """Python adds attributes to a class when it copies the class's objects."""
    source = again(Copied().fit(X, TWO)).fit(X, TWO)
    assert read_any(source).source == "sklearn SVC"


class Meta(type(SVC)):
    """A custom metaclass."""


def same_attributes(self, name):
    return object.__getattribute__(self, name)


DISGUISES = [
    {"predict": own, "__module__": "sklearn.svm._classes"},
    {"predict": own, "__module__": "sklearnex.svm"},
    {"__getattribute__": same_attributes},
    {"__getattr__": same_attributes},
    {"__class__": property(lambda self: SVC)},
    {"__dict__": property(lambda self: {})},
    {"__call__": own},
    {"_impl": "nu_svc"},
    {"dual_coef_": property(own), "support_": property(own)},
]


@pytest.mark.parametrize("members", DISGUISES, ids=", ".join)
def test_disguises_are_seen_through(members):
    source = SVC().fit(X, TWO)
    for name in ("SVC", "Mine"):
        mine = object.__new__(type(SVC)(name, (SVC,), members))
        object.__getattribute__(mine, "__dict__").update(vars(source))
        with pytest.raises(UnsupportedModelError, match=r"defines|set on the object|cannot compile"):
            read_any(mine)


def test_metaclasses_and_mixins_are_seen_through():
    source = SVC().fit(X, TWO)
    mixin = type("Mixin", (), {"predict": own})
    behind = type("Behind", (ClassifierMixin,), {"_dense_predict": own})
    for cls, message in (
        (Meta("Mine", (SVC,), {}), "metaclass"),
        (type(SVC)("Mine", (mixin, SVC), {}), "Mixin defines predict"),
        (type(SVC)("Mine", (SVC, behind), {}), "Behind defines _dense_predict"),
    ):
        source.__class__ = cls
        with pytest.raises(UnsupportedModelError, match=message):
            read_any(source)


def test_a_class_that_its_library_derives_from_another_is_another():
    """Matern derives from RBF, and MultiTaskLasso from Lasso, but they compute something different."""
    assert issubclass(Matern, RBF)
    assert known_types.recognise(Matern()) is None
    assert known_types.recognise(MultiTaskLasso()) is None
    known = known_types.recognise(FirstColumns())
    assert (known.name, known.role) == ("SelectorMixin", "selector")


def test_nothing_else_of_the_readers_looks_at_classes():
    """Class names are read only in known_types, so no reader accepts an object that it has not checked."""
    folder = REPOSITORY / "approxsvm" / "frontends" / "sklearn"
    forbidden = {"__mro__", "__class__", "__bases__", "__qualname__", "__name__", "__module__"}
    for path in sorted(folder.glob("*.py")):
        if path.name in ("known_types.py", "trained_inside.py"):  # the latter only copies objects that contain ours
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            assert not (isinstance(node, ast.Attribute) and node.attr in forbidden), (path, node.lineno)
            called = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
            assert called not in ("type", "issubclass"), (path, node.lineno)
            if isinstance(node, ast.ImportFrom) and str(node.module).partition(".")[0] == "sklearn":
                assert node.module in ("sklearn", "sklearn.exceptions"), (path, node.lineno)


# Sources that were once silently compiled as something else


def other(name, cls, *given, **named):
    """Return an object of a subclass with one method that triples the original's result."""
    method = lambda *args, **options: 3 * getattr(cls, name)(*args, **options)  # noqa: E731
    return subclass_of(cls, **{name: method})(*given, **named)


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (Matern(nu=0.5), r"the kernel Matern.* cannot be compiled"),
        (other("__call__", RBF) + WhiteKernel(), "defines __call__"),
        (WhiteKernel() + other("__call__", ConstantKernel, 2.0) * RBF(), "defines __call__"),
        (other("__call__", Sum, RBF(), WhiteKernel()), "defines __call__"),
    ],
)
def test_kernels_that_are_no_base_class_are_refused_by_name(kernel, message):
    with pytest.raises(UnsupportedModelError, match=message):
        approxsvm.compile(GaussianProcessRegressor(kernel, optimizer=None).fit(X, VALUE))


def calibrated(inside, method="sigmoid", ensemble=False):
    return CalibratedClassifierCV(inside, method=method, ensemble=ensemble, cv=2)


@pytest.mark.parametrize(
    ("method", "y", "ensemble", "inside"),
    [
        ("sigmoid", TWO, True, calibrated(SVC())),
        ("isotonic", TWO, False, make_pipeline(StandardScaler(), calibrated(SVC()))),
        ("temperature", THREE, False, GridSearchCV(calibrated(SVC()), {"method": ["sigmoid"]}, cv=2)),
    ],
    ids=["sigmoid", "isotonic", "temperature"],
)
def test_probabilities_that_are_calibrated_again_are_refused(method, y, ensemble, inside):
    """If there is no decision_function, scikit-learn calibrates predict_proba."""
    source = calibrated(inside, method, ensemble).fit(X, y)
    frozen = CalibratedClassifierCV(FrozenEstimator(clone(inside).fit(X, y)), method=method, cv=2).fit(X, y)
    for one in (source, frozen, make_pipeline(StandardScaler(), source).fit(X, y)):
        with pytest.raises(UnsupportedModelError, match="no decision_function because it is already calibrated"):
            approxsvm.compile(one)


@pytest.mark.parametrize("machine", [SVC(probability=True), LinearSVC(), SVC(decision_function_shape="ovo")])
def test_classes_in_another_order_are_refused(machine):
    y = TWO if isinstance(machine, LinearSVC) else THREE
    source, around = machine.fit(X, y), calibrated(machine).fit(X, y)
    inside = around.calibrated_classifiers_[0].estimator
    for whole, changed in (source, source), (around, around), (around, inside):
        ascending = changed.classes_
        changed.classes_ = ascending[::-1]
        with pytest.raises(ModelFormatError, match="which does not ascend"):
            approxsvm.compile(whole)
        changed.classes_ = ascending


def test_contradictions_inside_are_refused():
    one_class, svc = OneClassSVM().fit(X), SVC().fit(X, TWO)
    one_class.offset_ = one_class.offset_ + 1.0
    svc._n_support = svc._n_support + np.array([5, 0], np.int32)
    columns = ColumnTransformer([("a", StandardScaler(), [2, 0]), ("b", "drop", slice(1, 2))])
    pipeline = make_pipeline(columns, SVC()).fit(X, TWO)
    pipeline[0]._transformer_to_input_indices["a"] = [0, 2]
    for source, message in (
        (one_class, r"offset_ of this OneClassSVM is .*, but -intercept_"),
        (svc, "n_support_ is"),
        (pipeline, r"step 'a' takes columns \[2, 0\] of arrays, \[0, 2\] of data frames"),
    ):
        with pytest.raises(ModelFormatError, match=message):
            approxsvm.compile(source)


@pytest.mark.parametrize("scaler", [StandardScaler, MinMaxScaler])
def test_rows_that_one_part_overwrites_for_another_are_refused(scaler):
    """scikit-learn passes the same array to all parts; a part that overwrites it changes the next part's input."""
    inside, member = make_pipeline(scaler(copy=False), MinMaxScaler()), make_pipeline(scaler(copy=False), SVC())
    frozen, some = (
        FrozenEstimator(scaler(copy=False).fit(X.copy())),
        ColumnTransformer([("c", scaler(copy=False), [0])]),
    )
    unions = [FeatureUnion([("a", "passthrough"), ("b", part)]) for part in (inside, frozen, some)]
    columns = ColumnTransformer([("a", scaler(copy=False), slice(0, 2)), ("b", MinMaxScaler(), slice(1, 4))])
    search = GridSearchCV(member, {}, cv=2)
    for source in (
        *(make_pipeline(union, SVC()) for union in unions),
        make_pipeline(columns, SVC()),
        CalibratedClassifierCV(member, cv=2),
        CalibratedClassifierCV(search, cv=2),
    ):
        with pytest.raises(UnsupportedModelError, match=r"overwrites \(copy=False\) the rows of the other"):
            approxsvm.compile(source.fit(X.copy(), TWO))
    copied = ColumnTransformer([("a", scaler(copy=False), [0, 1]), ("b", MinMaxScaler(), [1, 2, 3])])
    for source in (member, CalibratedClassifierCV(member, ensemble=False, cv=2), make_pipeline(copied, SVC())):
        fast = approxsvm.compile(source.fit(X.copy(), TWO), mode="exact")
        np.testing.assert_array_equal(fast.predict(X), source.predict(X.copy()))


def test_a_logistic_regression_of_an_older_scikit_learn_answers_as_the_installed_one():
    """Before 1.8, multi_class="multinomial" changed the probabilities of two classes; since then, it is unused."""
    source = make_pipeline(Nystroem(n_components=8, random_state=0), LogisticRegression()).fit(X, TWO)
    source[-1].multi_class = "multinomial"
    fast = approxsvm.compile(source, mode="exact")
    np.testing.assert_allclose(fast.predict_proba(X), source.predict_proba(X), rtol=0, atol=1e-9)


# The documentation


@pytest.mark.slow
def test_the_page_of_sources_shows_the_tables():
    """The tables on the page are written by python -m docs.sources."""
    assert sources.page() == sources.PAGE.read_text()


def test_every_kind_of_model_goes_through_every_export():
    """The columns for files contain only "yes"; every other cell contains "yes" or a reason."""
    text = sources.PAGE.read_text().partition("<!-- kinds: ")[2].partition("<!-- end of kinds -->")[0]
    rows = [[cell.strip() for cell in line.strip("|\n").split("|")] for line in text.splitlines() if line[:1] == "|"]
    assert [row[0] for row in rows[2:]] == list(sources._models())
    for row in rows[2:]:
        assert row[-2:] == ["yes", "yes"]
        holes = [cell for cell in row[1:-2] if cell != "yes"]
        assert all(re.match("no: .*(compile it with mode=|needs a form)", hole) for hole in holes)
