"""Cross-validation of compiled models: train, compile and predict by folds, compare accuracy and speed."""

from __future__ import annotations

import importlib.util
import math
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from approxsvm.analysis.folds import Fold
from approxsvm.compiler import compile
from approxsvm.errors import InputError, UnsupportedModelError
from approxsvm.expansion.taylor import CenterChoice
from approxsvm.ir.schema import Mode
from approxsvm.planning.request import Effort
from approxsvm.system.error_state import in_own_error_state
from approxsvm.system.options import MAX_SEED, whole_number

SvmType = Literal["c-svc", "nu-svc", "epsilon-svr", "nu-svr"]
Trainer = Literal["auto", "sklearn", "libsvm"]
# Numbers of LIBSVM's option -s.
_LIBSVM_TYPES = {"c-svc": 0, "nu-svc": 1, "epsilon-svr": 3, "nu-svr": 4}
Predict = Callable[[Any], npt.NDArray[Any]]


@dataclass(frozen=True)
class Training:
    """Parameters for training each fold, with LIBSVM's defaults.

    Parameters
    ----------
    svm_type : {"c-svc", "nu-svc", "epsilon-svr", "nu-svr"}
    C : float
    gamma : float, optional
        Default: 1 / n_features.
    nu : float
        For nu-svc and nu-svr.
    epsilon : float
        Width of the tube of epsilon-svr.
    trainer : {"auto", "sklearn", "libsvm"}
        "auto" is LIBSVM if libsvm-official is installed, else scikit-learn.
    """

    svm_type: SvmType = "c-svc"
    C: float = 1.0
    gamma: float | None = None
    nu: float = 0.5
    epsilon: float = 0.1
    trainer: Trainer = "auto"

    def __post_init__(self) -> None:
        """Check the parameters."""
        if self.svm_type not in get_args(SvmType):
            raise InputError(f"svm_type must be one of {', '.join(get_args(SvmType))}, not {self.svm_type!r}")
        if self.trainer not in get_args(Trainer):
            raise InputError(f"trainer must be one of {', '.join(get_args(Trainer))}, not {self.trainer!r}")
        for name in ("C", "gamma", "nu", "epsilon"):
            value = getattr(self, name)
            if value is not None and not math.isfinite(value):  # LIBSVM would train with it
                raise InputError(f"{name} is {value}, but must be a finite number")

    @property
    def is_classifier(self) -> bool:
        """Whether targets are labels."""
        return self.svm_type.endswith("svc")

    @property
    def resolved_trainer(self) -> str:
        """The trainer, with "auto" resolved."""
        if self.trainer != "auto":
            return self.trainer
        return "libsvm" if importlib.util.find_spec("libsvm") else "sklearn"


@dataclass(frozen=True)
class CrossValidation:
    """Result of `cross_validate`.

    Attributes
    ----------
    folds : tuple of Fold
    total : Fold
        Figures of all rows, each predicted once.
    training : Training
        Includes the gamma and the trainer that were used.
    """

    folds: tuple[Fold, ...]
    total: Fold
    training: Training

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)


@dataclass(frozen=True, eq=False)
class _Predictions:
    """Predictions for the test rows of a fold."""

    n_train: int
    truth: npt.NDArray[Any]
    exact: npt.NDArray[Any]
    compiled: npt.NDArray[Any]
    certified: npt.NDArray[np.bool_]
    exact_seconds: float
    compiled_seconds: float
    compile_seconds: float


@in_own_error_state
def cross_validate(
    X: Any,
    y: Any,
    training: Training | None = None,
    *,
    n_folds: int = 5,
    mode: Mode = "certified",
    center: CenterChoice = "mean",
    tolerance: float | None = None,
    effort: Effort = "normal",
    random_state: int = 0,
    progress: Callable[[int], None] | None = None,
) -> CrossValidation:
    """Train, compile and predict by folds.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_rows, n_features)
    y : array of shape (n_rows,)
        Labels or targets.
    training : Training, optional
    n_folds : int
        At least 2. Rows are shuffled; folds of a classification are stratified.
    mode, center, tolerance, effort
        See `compile`; its sample rows are the training rows.
    random_state : int
        Seeds the folds and the compiler.
    progress : callable, optional
        Called with the number of folds done.

    Returns
    -------
    CrossValidation

    Raises
    ------
    InputError
        There are fewer rows than folds, the lengths of `y` and `X` differ, or the trainer rejects a parameter.
    UnsupportedModelError
        The trainer is not installed.
    """
    from sklearn.model_selection import KFold, StratifiedKFold

    training = training or Training()
    targets = np.asarray(y)
    if targets.shape != (X.shape[0],):
        raise InputError(f"y has shape {targets.shape}, but X has {X.shape[0]} rows")
    n_folds = whole_number(n_folds, "n_folds", 2)
    random_state = whole_number(random_state, "random_state", 0, MAX_SEED)
    if n_folds > X.shape[0]:
        raise InputError(f"{n_folds} folds of {X.shape[0]} rows: at least 2 folds with a row each are needed")
    if training.is_classifier and targets.dtype.kind == "f" and (targets == np.rint(targets)).all():
        targets = targets.astype(np.int64)
    gamma = 1.0 / X.shape[1] if training.gamma is None else training.gamma
    resolved: Any = training.resolved_trainer
    training = Training(training.svm_type, training.C, gamma, training.nu, training.epsilon, resolved)
    splitter = StratifiedKFold if training.is_classifier else KFold
    predictions = []
    for train, test in splitter(n_folds, shuffle=True, random_state=random_state).split(X, targets):
        train_model = _train_libsvm if training.trainer == "libsvm" else _train_sklearn
        model, predict = train_model(X[train], targets[train], training)
        start = time.perf_counter()
        fast: Any = compile(
            model,
            X[train],
            mode=mode,
            center=center,
            tolerance=tolerance,
            effort=effort,
            random_state=random_state,
            verbose=False,
        )
        compile_seconds = time.perf_counter() - start
        exact, exact_seconds = _timed(predict, X[test])
        compiled, compiled_seconds = _timed(fast.predict, X[test])
        certified = fast.certified(X[test])
        predictions.append(
            _Predictions(
                len(train), targets[test], exact, compiled, certified, exact_seconds, compiled_seconds, compile_seconds
            )
        )
        if progress is not None:
            progress(len(predictions))
    folds = tuple(_summarize(part, training.is_classifier) for part in predictions)
    return CrossValidation(folds, _summarize(_joined(predictions), training.is_classifier), training)


def _train_sklearn(X: Any, y: Any, training: Training) -> tuple[Any, Predict]:
    from sklearn.svm import SVC, SVR, NuSVC, NuSVR

    estimators = {
        "c-svc": lambda: SVC(C=training.C, gamma=training.gamma),
        "nu-svc": lambda: NuSVC(nu=training.nu, gamma=training.gamma),
        "epsilon-svr": lambda: SVR(C=training.C, gamma=training.gamma, epsilon=training.epsilon),
        "nu-svr": lambda: NuSVR(C=training.C, gamma=training.gamma, nu=training.nu),
    }
    fitted = estimators[training.svm_type]().fit(X, y)
    return fitted, fitted.predict


def _train_libsvm(X: Any, y: Any, training: Training) -> tuple[Any, Predict]:
    try:
        from libsvm import svmutil
    except ImportError:
        raise UnsupportedModelError("training with LIBSVM needs libsvm-official: pip install libsvm-official") from None
    from scipy.sparse import csr_matrix

    from approxsvm.frontends import read_model

    def rows(matrix: Any) -> Any:
        return csr_matrix(matrix, dtype=np.float64)

    options = (
        f"-q -s {_LIBSVM_TYPES[training.svm_type]} -t 2 -c {training.C!r} -g {training.gamma!r} "
        f"-n {training.nu!r} -p {training.epsilon!r}"
    )
    targets = np.asarray(y, dtype=np.float64)
    parameter = svmutil.svm_parameter(options)
    problem = svmutil.svm_problem(targets, rows(X))
    fault = svmutil.libsvm.svm_check_parameter(problem, parameter)
    if fault:
        raise InputError(f"libsvm rejects the parameters: {fault.decode()}")
    model = svmutil.svm_train(problem, parameter)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "fold.model"
        if svmutil.svm_save_model(os.fspath(path), model):
            raise OSError(f"libsvm cannot write {path}")
        read = read_model(path, n_features=X.shape[1])

    def predict(matrix: Any) -> npt.NDArray[Any]:
        labels, _, _ = svmutil.svm_predict(np.zeros(matrix.shape[0]), rows(matrix), model, "-q")
        return np.asarray(labels, dtype=y.dtype if training.is_classifier else np.float64)

    return read, predict


def _timed(predict: Predict, rows: Any) -> tuple[npt.NDArray[Any], float]:
    start = time.perf_counter()
    predicted = predict(rows)
    return predicted, time.perf_counter() - start


def _joined(parts: list[_Predictions]) -> _Predictions:
    return _Predictions(
        n_train=round(sum(part.n_train for part in parts) / len(parts)),
        truth=np.concatenate([part.truth for part in parts]),
        exact=np.concatenate([part.exact for part in parts]),
        compiled=np.concatenate([part.compiled for part in parts]),
        certified=np.concatenate([part.certified for part in parts]),
        exact_seconds=sum(part.exact_seconds for part in parts),
        compiled_seconds=sum(part.compiled_seconds for part in parts),
        compile_seconds=sum(part.compile_seconds for part in parts),
    )


def _summarize(part: _Predictions, is_classifier: bool) -> Fold:
    truth, exact, compiled = part.truth, part.exact, part.compiled

    def share(predicted: npt.NDArray[Any]) -> float | None:
        return float((predicted == truth).mean()) if is_classifier else None

    def mse(predicted: npt.NDArray[Any]) -> float | None:
        return None if is_classifier else float(np.mean((predicted - truth) ** 2))

    def r2(predicted: npt.NDArray[Any]) -> float | None:
        if is_classifier or not np.ptp(truth) > 0:
            return None
        return float(1.0 - np.sum((predicted - truth) ** 2) / np.sum((truth - truth.mean()) ** 2))

    return Fold(
        n_train=part.n_train,
        n_test=len(truth),
        exact_accuracy=share(exact),
        compiled_accuracy=share(compiled),
        exact_mse=mse(exact),
        compiled_mse=mse(compiled),
        exact_r2=r2(exact),
        compiled_r2=r2(compiled),
        differences=int((exact != compiled).sum()) if is_classifier else None,
        largest_difference=None if is_classifier else float(np.abs(exact - compiled).max()),
        certified=float(part.certified.mean()),
        speed_ratio=part.exact_seconds / part.compiled_seconds,
        compile_seconds=part.compile_seconds,
    )
