"""Frontends that convert trained models to a KernelModel, a FeatureModel or an Ensemble."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from approxsvm import _native
from approxsvm.errors import ModelFormatError, UnsupportedModelError
from approxsvm.frontends import libsvm, sklearn
from approxsvm.frontends.formats import READERS
from approxsvm.frontends.other_programs.skops import load_skops
from approxsvm.frontends.sklearn.remedies import refuse_what_holds_estimators
from approxsvm.frontends.sklearn.trained_inside import trained_inside
from approxsvm.ir.ensembles.ensemble import Ensemble
from approxsvm.ir.feature_model import FeatureModel
from approxsvm.ir.kernel_model import MAX_FEATURES, KernelModel
from approxsvm.ir.single_model import SingleModel
from approxsvm.system.error_state import in_own_error_state
from approxsvm.system.file_kinds import described_inside, file_kinds
from approxsvm.system.options import whole_number

_PICKLE_SUFFIXES: Final = (".pkl", ".pickle", ".joblib")
_COMPRESSED_BY_R: Final = ("an R object (.rds)", "R data (.rda)")
_PICKLE_KINDS: Final = ("a pickle", "a file compressed by zlib, as joblib writes")


def read_model(source: Any, *, n_features: int | None = None, trust: bool | Sequence[str] = False) -> KernelModel:
    """Read a trained kernel sum: RBF, linear, sigmoid, or polynomial of degree 1 to 6.

    Parameters
    ----------
    source : KernelModel, fitted estimator, or path
        Any estimator that `read_estimator` reads, including pipelines, or the path of a LIBSVM model file, of a model
        file written by another program listed in docs/sources.md, or of an estimator's skops, pickle or joblib file,
        compressed or not. Model files are recognised by their contents, and pickles also by their extensions (.pkl,
        .pickle, .joblib).
    n_features : int, optional
        Number of columns, which LIBSVM model files do not store. For any other source, `n_features` must equal the
        source's number of columns.
    trust : bool or sequence of str
        Loading a pickle runs any code in it, so pickles are rejected unless `trust` is True. For a skops file: types to
        trust in addition to those that skops trusts, or True to trust all types in the file.

    Returns
    -------
    KernelModel
        The model, with an input map if the source scales or projects its rows.

    Raises
    ------
    ModelFormatError
        The file's contents are malformed.
    UnsupportedModelError
        The model cannot be compiled.
    sklearn.exceptions.NotFittedError
        The estimator has not been fitted.
    OSError
        The file cannot be read.
    """
    model = read_any(source, n_features=n_features, trust=trust)
    if isinstance(model, Ensemble):
        raise UnsupportedModelError(
            f"this is a mean of {len(model.members)} models: use read_any; ensemble=False gives a single model"
        )
    if not isinstance(model, KernelModel):
        raise UnsupportedModelError(f"this is a {model.source}, not a sum of kernels: use read_any")
    return model


@in_own_error_state
def read_any(
    source: Any, *, n_features: int | None = None, trust: bool | Sequence[str] = False
) -> SingleModel | Ensemble:
    """Read any supported model, including the ensembles and linear models on features that `read_model` rejects.

    It takes the same parameters and raises the same errors as `read_model`.

    Returns
    -------
    KernelModel
        A sum of kernels.
    FeatureModel
        A linear model on features from TaylorFeatures or on random Fourier features.
    Ensemble
        Several models whose outputs are combined, for example averaged.
    """
    if n_features is not None:
        n_features = whole_number(n_features, "n_features", 1, MAX_FEATURES)
    if isinstance(source, (str, os.PathLike)):
        path = Path(source)
        if path.suffix == ".asvm":
            raise ModelFormatError(f"{path}: an artifact is already compiled; give the model from which it was made")
        estimator = read_estimator_file(path, trust=trust)
        kind = _kind_of(path) if estimator is None else ""
        if kind in _COMPRESSED_BY_R and (description := described_inside(path)):
            raise ModelFormatError(f"{path}: {description}")
        if estimator is None and kind not in READERS:
            return libsvm.read_libsvm(source, n_features=n_features)
        source = READERS[kind](path) if estimator is None else estimator
    refuse_what_holds_estimators(source, "model")
    if libsvm.is_svm_model(source):
        source = libsvm.read_svm_model(source)
    source = trained_inside(source)
    known = isinstance(source, (KernelModel, FeatureModel, Ensemble))
    model: SingleModel | Ensemble = source if known else sklearn.read_estimator(source)
    if n_features not in (None, model.n_raw_features):
        raise UnsupportedModelError(f"the model has {model.n_raw_features} features, but n_features is {n_features}")
    return model


def read_estimator_file(path: str | os.PathLike[str], *, trust: bool | Sequence[str] = False) -> Any:
    """Load the estimator from a pickle, joblib or skops file; return None for any other file.

    See `read_model` for the parameters.
    """
    path = Path(path)
    kind = _kind_of(path)
    named = Path(path.stem) if kind.startswith("a file compressed") else path  # model.pkl.gz
    if kind in _PICKLE_KINDS or path.suffix in _PICKLE_SUFFIXES or named.suffix in _PICKLE_SUFFIXES:
        held = _unpickle(path, trust)
        refuse_what_holds_estimators(held, f"joblib.load({os.fspath(path)!r})")
        return held
    return load_skops(path, trust) if kind == "a skops file" else None


def _kind_of(path: Path) -> str:
    """Return the format that a file's contents indicate, named as in the native `file_kind`; look inside gzip files."""
    kind, inside = file_kinds(path)
    return inside if inside in READERS or inside in (*_PICKLE_KINDS, *_COMPRESSED_BY_R) else kind


def _unpickle(path: Path, trust: bool | Sequence[str]) -> Any:
    if trust is not True:
        raise UnsupportedModelError(
            f"{path}: a pickle can run any code when it is loaded; if you trust its author, pass "
            f"joblib.load({os.fspath(path)!r})"
        )
    import joblib

    try:
        return joblib.load(path)
    except (OSError, MemoryError):
        raise
    except Exception as error:  # unpickling damaged bytes may raise any exception
        kind = _native.file_kind(path.read_bytes())
        what = f"this is {kind}" if kind not in ("", "a pickle") else f"{type(error).__name__}: {error}"
        raise ModelFormatError(f"{path}: not a readable pickle: {what}") from error
