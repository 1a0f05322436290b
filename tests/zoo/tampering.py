"""Changes to a fitted estimator that need not show in its type or its answers.

After every change, the estimator answers or raises; the compiled model must do the same. Methods that override others
distort the original results, so a reader that looks only at attributes is wrong.
"""

from __future__ import annotations

import copy
import functools
import inspect
import pickle
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator

from approxsvm.frontends.sklearn.known_types import KNOWN
from zoo.draw import Draw

# Methods of any scikit-learn class that transform, predict, or look up what other such methods need.
_COMPUTING = """
    __call__ _check_X _compute_kernel _decision_function _dense_predict _get_kernel _get_kernel_params _get_support_mask
    _hstack _iter _predict_proba_lr _sparse_decision_function _transform _validate_for_predict decision_function
    get_support inverse_transform predict predict_log_proba predict_proba score_samples transform
"""
# String values of parameters.
_WORDS = (
    "rbf linear poly sigmoid precomputed isotonic temperature drop passthrough ovo ovr hinge log_loss modified_huber ?"
)
_PLAIN = (1, 2, 0, 0.5, True, False, None, "auto", "ignore", "error", np.float32, np.int64, "cosine", "linear")
_PARAMETERS_TRIED = 25
_READ = {known.name: known.relies for known in KNOWN}
_LIST_OF_PARTS = ("steps", "transformer_list")


def tampered(draw: Draw, source: Any, ask: Callable[[Any], Any] = lambda source: None) -> tuple[Any, str]:
    """Return the source or a copy with a random change, and a description of the change.

    `ask` returns an estimator's answers, or None if it has none.
    """
    change = draw.one(*(name for name, (share, _) in _CHANGES.items() for _ in range(share)))
    try:
        way = functools.partial(_set_parameter, ask=ask) if change == "parameter set:" else _CHANGES[change][1]
        changed, what = way(draw, source)
    except (TypeError, AttributeError, ValueError, IndexError, KeyError, pickle.PicklingError) as error:
        return source, f"{change}: not possible ({type(error).__name__})"
    return changed, f"{change} {what}".strip()


# --- the parts of an estimator


def parts_of(source: Any, path: str = "source") -> Iterator[tuple[str, Any]]:
    """Yield the source and every estimator or scikit-learn object reachable from it, each with its path."""
    seen: set[int] = set()
    queue: list[tuple[str, Any]] = [(path, source)]
    while queue:
        path, thing = queue.pop()
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        if _is_part(thing):
            yield path, thing
            queue += [(f"{path}.{name}", value) for name, value in sorted(vars(thing).items(), reverse=True)]
        elif isinstance(thing, (list, tuple)) and len(thing) < 50:
            queue += [(f"{path}[{k}]", value) for k, value in reversed(list(enumerate(thing)))]
        elif isinstance(thing, dict) and len(thing) < 50:
            queue += [(f"{path}[{key!r}]", value) for key, value in reversed(list(thing.items()))]


def state_of(source: Any) -> dict[str, str]:
    """Return every attribute in a source as text, except flags that SciPy sets when a sparse matrix is read."""
    return {f"{path}.{name}": _as_text(value) for path, part in parts_of(source) for name, value in vars(part).items()}


def _as_text(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype} {value.shape} {value.tolist()}"
    if hasattr(value, "indptr"):
        return " ".join(map(_as_text, (value.data, value.indices, value.indptr)))
    return repr(value) if isinstance(value, (int, float, str, type(None))) else type(value).__name__


def _is_part(thing: Any) -> bool:
    if isinstance(thing, (type, np.ndarray, np.random.RandomState)) or issparse(thing) or inspect.isroutine(thing):
        return False
    return isinstance(thing, BaseEstimator) or (
        type(thing).__module__.startswith("sklearn") and hasattr(thing, "__dict__")
    )


def _part(draw: Draw, source: Any) -> tuple[str, Any]:
    """Draw a part, usually a fitted one rather than a template."""
    parts = list(parts_of(source))
    fitted = [(path, part) for path, part in parts if any(_is_fitted(name) for name in vars(part))]
    return draw.one(*(fitted if fitted and draw.maybe(0.7) else parts))


def _is_fitted(name: str) -> bool:
    return name.startswith("_") or name.endswith("_")


# --- methods that compute something else


def distorted(result: Any) -> Any:
    """Return another result of the same type and shape, or `result` itself if it is neither numbers nor labels."""
    if isinstance(result, tuple) and result and not hasattr(result, "_fields"):
        return (distorted(result[0]), *result[1:])
    if issparse(result):
        return result * 1.5
    if isinstance(result, np.ndarray) and result.dtype.kind == "f":
        return result * 1.25 + 0.125
    if isinstance(result, np.ndarray) and result.ndim and result.dtype.kind in "iubOU":
        return np.roll(result, 1, axis=0)
    if isinstance(result, pd.DataFrame) and all(dtype.kind == "f" for dtype in result.dtypes):
        return result * 1.25 + 0.125
    return result * 1.25 if isinstance(result, float) else result


def _method_names(draw: Draw, part: Any) -> str:
    own = [
        name
        for name in _COMPUTING.split()
        if inspect.isroutine(inspect.getattr_static(type(part), name, None)) or _is_delegated(part, name)
    ]
    if own and draw.maybe(0.7):
        return draw.one(*own)
    every = [
        name
        for name in dir(type(part))
        if (not name.startswith("__") or name in ("__call__", "__sklearn_tags__", "__len__", "__getitem__"))
        and inspect.isfunction(inspect.getattr_static(type(part), name))
    ]
    return draw.one(*every)


def _is_delegated(part: Any, name: str) -> bool:
    """Return whether the part has the method through its inner estimator (available_if)."""
    return name in dir(type(part)) and hasattr(part, name) and callable(getattr(part, name))


def _override(draw: Draw, source: Any) -> tuple[Any, str]:
    """Change a part's class to a subclass that overrides a method."""
    path, part = _part(draw, source)
    cls = type(part)
    name = _method_names(draw, part)
    original = inspect.getattr_static(cls, name)
    own: Any
    if inspect.isfunction(original):

        @functools.wraps(original)
        def own(self: Any, *args: Any, **kwargs: Any) -> Any:
            return distorted(original(self, *args, **kwargs))

    else:  # available_if

        def own(self: Any, *args: Any, **kwargs: Any) -> Any:
            return distorted(getattr(super(subclass, self), name)(*args, **kwargs))

    spoofed = draw.maybe(0.3)
    names = {"__module__": cls.__module__, "__qualname__": cls.__qualname__} if spoofed else {"__module__": "someone"}
    subclass: Any = type(cls.__name__ if spoofed or draw.maybe(0.5) else "Own", (cls,), {name: own, **names})
    part.__class__ = subclass
    return source, f"{cls.__name__}.{name} at {path}{' under the name of its parent' if spoofed else ''}"


def _override_property(draw: Draw, source: Any) -> tuple[Any, str]:
    """Change a part's class to a subclass with a property that replaces its parent's, or an attribute."""
    path, part = _part(draw, source)
    cls = type(part)
    fitted = [name for name in vars(part) if not name.startswith("__")]
    properties = [name for name in dir(cls) if isinstance(inspect.getattr_static(cls, name), property)]
    name = draw.one(*fitted, *properties)
    if name in fitted:
        value = distorted(vars(part).pop(name))
        own = property(lambda self: value)
    else:
        own = property(lambda self: distorted(getattr(super(subclass, self), name)))
    subclass: Any = type("Own", (cls,), {name: own, "__module__": "someone"})
    part.__class__ = subclass
    return source, f"{cls.__name__}.{name} at {path}"


def _shadow(draw: Draw, source: Any) -> tuple[Any, str]:
    """Give a part an attribute that shadows one of its methods."""
    path, part = _part(draw, source)
    name = _method_names(draw, part)
    original = getattr(part, name)
    part.__dict__[name] = lambda *args, **kwargs: distorted(original(*args, **kwargs))
    return source, f"{type(part).__name__}.{name} at {path}"


def _harmless_subclass(draw: Draw, source: Any) -> tuple[Any, str]:
    """Change a part's class to a subclass that changes no answers."""
    path, part = _part(draw, source)
    cls = type(part)
    extra: dict[str, Any] = draw.one(
        {}, {"describe": lambda self: "mine"}, {"fit": cls.fit} if hasattr(cls, "fit") else {}, {"units": "m"}
    )
    part.__class__ = type(cls.__name__ if draw.maybe(0.5) else "Own", (cls,), {"__module__": "someone", **extra})
    return source, f"{cls.__name__} with {', '.join(extra) or 'nothing'} at {path}"


# --- attributes with other values


def _perturb(draw: Draw, source: Any) -> tuple[Any, str]:
    """Change one attribute of one part: a parameter or something fitted."""
    path, part = _part(draw, source)
    names = sorted(vars(part))
    fitted = [name for name in names if _is_fitted(name)]
    name = draw.one(*(fitted if fitted and draw.maybe(0.6) else names))
    if draw.maybe(0.03):
        delattr(part, name)
        return source, f"{path}.{name} is deleted"
    value, what = other_value(draw, vars(part)[name])
    setattr(part, name, value)
    return source, f"{path}.{name} is {what}"


def other_value(draw: Draw, value: Any) -> tuple[Any, str]:
    """Return another value, usually of a similar type, and its description."""
    if isinstance(value, (bool, np.bool_)):
        return (not value), "the contrary"
    if isinstance(value, (int, np.integer)):
        return draw.one(
            (value + 1, "one more"), (-value, "negated"), (value - 1, "one less"), (float(value), "a float")
        )
    if isinstance(value, (float, np.floating)):
        changes = (value * 1.5, "half as much again"), (-value, "negated"), (value * (1 + 1e-3), "a thousandth more")
        return draw.one(*changes, *changes, (float("nan"), "NaN"), (np.array([value]), "an array"))
    if isinstance(value, str):
        word = draw.one(*_WORDS.split())
        return word, repr(word)
    if value is None:
        return draw.one((1.0, "1.0"), (0.5, "0.5"), ({}, "{}"), ("passthrough", "'passthrough'"))
    if isinstance(value, np.ndarray) and value.size and value.ndim:
        return _other_array(draw, value)
    if issparse(value):
        return value * 1.5, "half as much again"
    if isinstance(value, (list, tuple)) and value and draw.maybe(0.5):
        k = draw.whole(0, len(value) - 1)
        other, what = other_value(draw, value[k])
        return type(value)([*value[:k], other, *value[k + 1 :]]), f"with {what} at {k}"
    if isinstance(value, list) and value:
        return draw.one(
            (value[::-1], "reversed"),
            (value[:-1], "without its last"),
            (value + value[-1:], "with its last twice"),
            (tuple(value), "a tuple"),
        )
    if isinstance(value, dict) and value:
        key = draw.one(*value)
        other, what = other_value(draw, value[key])
        return {**value, key: other}, f"with {what} at {key!r}"
    if value is np.log:
        return np.log1p, "log1p"
    return None, "None"


def _other_array(draw: Draw, value: Any) -> tuple[Any, str]:
    changed = value.copy()
    place = tuple(draw.whole(0, n - 1) for n in value.shape)
    if value.dtype.kind == "f":
        changed[place] = draw.one(changed[place] * 1.5 + 0.1, -changed[place], 0.0, changed[place] * 1.5 + 0.1, np.nan)
    elif value.dtype.kind in "iub":
        changed[place] = changed[place] == 0 if value.dtype.kind == "b" else changed[place] + 1
    return draw.one(
        (changed, f"changed at {place}"),
        (changed, f"changed at {place}"),
        (value[::-1], "reversed"),
        (np.roll(value, 1, axis=-1), "rolled"),
        (value * 1.5 if value.dtype.kind == "f" else value[::-1], "scaled or reversed"),
        (value.astype(np.float32) if value.dtype.kind == "f" else value.astype(object), "of another type"),
        (value.tolist(), "a list"),
        (
            value.astype(draw.one(np.float16, np.longdouble, np.complex128)) if value.dtype.kind == "f" else value,
            "of an odd type",
        ),
        (np.matrix(value) if value.ndim == 2 else np.ma.array(value), "a matrix or masked"),
        (value[:-1], "one shorter"),
        (np.concatenate([value, value[-1:]]), "one longer"),
        (value[:, ::-1] if value.ndim == 2 else value[np.newaxis], "with columns reversed, or two-dimensional"),
    )


def _set_parameter(draw: Draw, source: Any, ask: Callable[[Any], Any]) -> tuple[Any, str]:
    """Set a parameter after fit, as searches and users do; preferably one that changes answers and is not read."""
    parts = [(path, part) for path, part in parts_of(source) if isinstance(part, BaseEstimator)]
    read = _READ if draw.maybe(0.8) else {}
    names = {path: set(part._get_param_names()) - set(read.get(type(part).__name__, ())) for path, part in parts}
    places = [(*place, name) for place in parts for name in draw.some(sorted(names[place[0]]))]
    if draw.maybe(0.5):  # in random order; otherwise from the outermost part inwards
        places = draw.some(places, least=len(places))
    before, what = ask(source), ""
    for path, part, name in places[:_PARAMETERS_TRIED]:
        was = getattr(part, name, None)
        if isinstance(was, (BaseEstimator, list)):
            continue
        value = other_value(draw, was)[0] if draw.maybe(0.5) else draw.one(*_PLAIN)
        setattr(part, name, value)
        what, after = f"{path}.set_params({name}={value!r})", ask(source)
        if after is not None and after != before:
            break
        setattr(part, name, was)
    return source, what


# --- copies and containers


def _mapped(source: Any) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "source.joblib"
        joblib.dump(source, path)
        return joblib.load(path, mmap_mode="r")


def _copied(draw: Draw, source: Any) -> tuple[Any, str]:
    protocol = draw.whole(2, pickle.HIGHEST_PROTOCOL)
    ways: tuple[tuple[Callable[[Any], Any], str], ...] = (
        (lambda thing: pickle.loads(pickle.dumps(thing, protocol)), "by pickle"),
        (copy.deepcopy, "by deepcopy"),
        (copy.copy, "by copy"),
        (_mapped, "by joblib, into memory that is mapped"),
    )
    way, what = draw.one(*ways)
    return way(source), what


def _frozen(draw: Draw, source: Any) -> tuple[Any, str]:
    """Freeze the source, or a fitted part in place."""
    places: list[tuple[str, Callable[[Any], None], Any]] = []
    for path, part in parts_of(source):
        for name in ("best_estimator_", "regressor_", "estimator"):
            if isinstance(vars(part).get(name), BaseEstimator):
                places.append((f"{path}.{name}", functools.partial(setattr, part, name), vars(part)[name]))
        for name in (*_LIST_OF_PARTS, "transformers_"):
            for k, entry in enumerate(vars(part).get(name) or []):
                if isinstance(entry[1], BaseEstimator):
                    places.append((f"{path}.{name}[{k}]", functools.partial(_put, getattr(part, name), k), entry[1]))
    if not places or draw.maybe(0.2):
        return FrozenEstimator(source), "as a whole"
    path, put, inner = draw.one(*places)
    put(FrozenEstimator(inner))
    return source, f"at {path}"


def _put(entries: list[Any], k: int, thing: Any) -> None:
    entries[k] = (entries[k][0], thing, *entries[k][2:])


def _step_changed(draw: Draw, source: Any) -> tuple[Any, str]:
    """Replace, drop, move, repeat or rename a step of a fitted pipeline or union."""
    lists = [
        (f"{path}.{name}", vars(part)[name])
        for path, part in parts_of(source)
        for name in _LIST_OF_PARTS
        if name in vars(part)
    ]
    path, entries = draw.one(*lists)
    k = draw.whole(0, len(entries) - 1)
    kind = draw.one("passthrough", "none", "removed", "swapped", "twice", "renamed")
    if kind in ("passthrough", "none"):
        _put(entries, k, "passthrough" if kind == "passthrough" else None)
    elif kind == "removed":
        del entries[k]
    elif kind == "swapped":
        entries[k], entries[k - 1] = entries[k - 1], entries[k]
    elif kind == "twice":
        entries.insert(k, ("again", entries[k][1]))
    else:
        entries[k] = ("another name", *entries[k][1:])
    return source, f"{path}[{k}] is {kind}"


_CHANGES: dict[str, tuple[int, Callable[[Draw, Any], tuple[Any, str]]]] = {
    "copied": (2, _copied),
    "frozen": (2, _frozen),
    "method overridden:": (4, _override),
    "property overridden:": (1, _override_property),
    "method shadowed:": (3, _shadow),
    "subclassed:": (2, _harmless_subclass),
    "attribute changed:": (6, _perturb),
    "parameter set:": (10, _perturb),
    "step changed:": (2, _step_changed),
}
