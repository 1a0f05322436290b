"""Write the tables of docs/sources.md from the frontends' tables: ``python -m docs.sources``, from the repository root.

Modes and exports of each kind of model are found by compiling and exporting small models.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Iterable
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

import approxsvm
from approxsvm.frontends.sklearn.known_types import KNOWN
from approxsvm.frontends.sklearn.remedies import REMEDIES

PAGE = Path(__file__).parent / "sources.md"


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """Return a Markdown table."""
    lines = [head, ("---",) * len(head), *rows]
    return "".join(f"| {' | '.join(row)} |\n" for row in lines)


def classes() -> str:
    """Return the table of all known classes, grouped by role."""
    rows: list[tuple[str, ...]] = []
    for role, of_role in groupby(KNOWN, key=lambda known: known.role):
        rows.append((f"**{role}**", "", ""))
        for (library, relies, refused), group in groupby(
            of_role, key=lambda one: (one.library, one.relies, one.refused)
        ):
            names = ", ".join(known.name for known in group) + ("" if library == "sklearn" else f" of {library}")
            rows.append((names, " ".join(f"`{name}`" for name in relies) or "nothing", refused))
    return table(("estimator or step", "parameters and attributes read", "rejected"), rows)


def instead() -> str:
    """Return the table of rejected estimators and their remedies."""
    return table(("estimator", "remedy"), [(f"`{name}`", text) for name, text in sorted(REMEDIES.items())])


def kinds() -> str:
    """Compile and export one model of each kind, and return the table of results."""
    rows = []
    for name, fit in _models().items():
        source = fit()
        made: list[Any] = []
        modes = [_tried(partial(_compile, source, made), mode) for mode in _MODES]
        exports = [_best(_tried(export, one) for one in made) for export in (_onnx, _header)]
        rows.append((name, *modes, *exports))
    return table(("model", *(f'mode "{mode}"' for mode in _MODES), "ONNX", "C99 header"), rows)


_MODES = ("certified", "approximate", "exact")
BLOCKS = {"kinds": kinds, "instead": instead, "classes": classes}


def _models() -> dict[str, Callable[[], Any]]:
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.datasets import load_iris
    from sklearn.decomposition import PCA
    from sklearn.ensemble import StackingClassifier, VotingClassifier, VotingRegressor
    from sklearn.impute import SimpleImputer
    from sklearn.kernel_approximation import RBFSampler
    from sklearn.kernel_ridge import KernelRidge
    from sklearn.linear_model import Ridge
    from sklearn.model_selection import FixedThresholdClassifier
    from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
    from sklearn.multioutput import MultiOutputClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import (
        KBinsDiscretizer,
        Normalizer,
        PolynomialFeatures,
        PowerTransformer,
        QuantileTransformer,
        SplineTransformer,
        StandardScaler,
    )
    from sklearn.svm import SVC, SVR, LinearSVC, OneClassSVM

    from approxsvm.features import TaylorFeatures

    X, y = load_iris(return_X_y=True)
    turns = make_pipeline(RBFSampler(), LinearSVC())
    sure = CalibratedClassifierCV(SVC(), ensemble=False)
    return {
        "RBF kernel, two classes": lambda: SVC().fit(X, y > 0),
        "RBF kernel, several classes": lambda: SVC().fit(X, y),
        "RBF kernel, one class": lambda: OneClassSVM(nu=0.2).fit(X),
        "RBF kernel, regression": lambda: SVR().fit(X, X[:, 0]),
        "linear kernel or linear model": lambda: LinearSVC().fit(X, y > 0),
        "linear model of several classes": lambda: LinearSVC().fit(X, y),
        "sigmoid kernel": lambda: SVC(kernel="sigmoid", gamma=0.01).fit(X, y > 1),
        "polynomial kernel, degree 2": lambda: SVC(kernel="poly", degree=2).fit(X, y > 1),
        "polynomial kernel, degree 3 and more": lambda: SVC(kernel="poly").fit(X, y > 1),
        "random Fourier features": lambda: make_pipeline(RBFSampler(random_state=0), Ridge()).fit(X, X[:, 0]),
        "random Fourier features, several classes": lambda: make_pipeline(RBFSampler(random_state=0), LinearSVC()).fit(
            X, y
        ),
        "Taylor features": lambda: make_pipeline(TaylorFeatures(gamma=0.1), LinearSVC()).fit(X, y > 0),
        "probabilities of one model": lambda: CalibratedClassifierCV(SVC(), ensemble=False).fit(X, y),
        "mean of several models' probabilities": lambda: CalibratedClassifierCV(SVC(), cv=2).fit(X, y),
        "after encoding or binning": lambda: make_pipeline(KBinsDiscretizer(3), SVC()).fit(X, y),
        "after scaling, imputing and binning": lambda: make_pipeline(
            StandardScaler(), SimpleImputer(), KBinsDiscretizer(3), SVC()
        ).fit(X, y),
        "after a projection": lambda: make_pipeline(PCA(2), SVC()).fit(X, y),
        "after products of features": lambda: make_pipeline(PolynomialFeatures(2), SVC()).fit(X, y),
        "after splines or quantiles": lambda: make_pipeline(SplineTransformer(3), SVC()).fit(X, y),
        "after periodic splines and normal quantiles": lambda: make_pipeline(
            SplineTransformer(4, extrapolation="periodic"),
            QuantileTransformer(n_quantiles=9, output_distribution="normal"),
            SVC(),
        ).fit(X, y),
        "after normalizing rows": lambda: make_pipeline(Normalizer(), SVC()).fit(X, y),
        "after powers or logarithms": lambda: make_pipeline(PowerTransformer(), SVC()).fit(X, y),
        "several linear functions of kernels": lambda: OneVsRestClassifier(SVC(gamma=0.1)).fit(X, y),
        "one-vs-rest of several models": lambda: OneVsRestClassifier(turns).fit(X, y),
        "one-vs-one of several models": lambda: OneVsOneClassifier(SVC()).fit(X, y),
        "weighted mean of several models' probabilities": lambda: VotingClassifier(
            [("a", sure), ("b", sure)], voting="soft", weights=[1, 2]
        ).fit(X, y),
        "votes of several models": lambda: VotingClassifier([("a", SVC()), ("b", LinearSVC())]).fit(X, y),
        "weighted sum of several models": lambda: VotingRegressor([("a", SVR()), ("b", Ridge())]).fit(X, X[:, 0]),
        "a threshold on several models' mean": lambda: FixedThresholdClassifier(
            CalibratedClassifierCV(SVC(), cv=2), threshold=0.4
        ).fit(X, (y > 0).astype(int)),
        "a threshold": lambda: FixedThresholdClassifier(SVC(), threshold=0.2).fit(X, (y > 0).astype(int)),
        "several targets": lambda: KernelRidge(kernel="rbf", gamma=0.1).fit(X, X[:, :2]),
        "several labels for each row": lambda: MultiOutputClassifier(SVC()).fit(X, np.column_stack([y, y > 0])),
        "a stack of two classes": lambda: StackingClassifier([("a", SVC()), ("b", LinearSVC())]).fit(X, y > 0),
        "a stack of several classes": lambda: StackingClassifier([("a", SVC())], passthrough=True).fit(X, y),
    }


def _tried(work: Callable[[Any], Any], argument: Any) -> str:
    """Return "yes", or "no" with the reason."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            work(argument)
        except approxsvm.ApproxSVMError as error:
            return f"no: {error}"
    return "yes"


def _best(tried: Iterable[str]) -> str:
    """Return the first "yes", after which no more is tried, or else a reason."""
    found = []
    for one in tried:
        if one == "yes":
            return one
        found.append(one)
    return found[min(1, len(found) - 1)]  # most exported models are "approximate"


def _compile(source: Any, made: list[Any], mode: Any) -> None:
    made.append(approxsvm.compile(source, mode=mode))


def _onnx(compiled: Any) -> None:
    compiled.to_onnx()


def _header(compiled: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        compiled.export_c(Path(folder) / "model.h")


def page() -> str:
    """Return the page with all tables updated."""
    text = PAGE.read_text()
    for name, block in BLOCKS.items():
        begin, end = f"<!-- {name}: python -m docs.sources -->\n", f"<!-- end of {name} -->\n"
        before, after = text[: text.index(begin) + len(begin)], text[text.index(end) :]
        text = before + block() + after
    return text


if __name__ == "__main__":
    np.seterr(all="ignore")
    PAGE.write_text(page())
