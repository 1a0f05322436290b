"""scikit-learn's own tests and docstring examples, with every estimator that they fit compiled beside it.

The tests are those inside the installed package; nothing is fetched, and there is no copy of them here. While pytest
runs them, `fit` of scikit-learn's predictors is wrapped: what was fitted is compiled, and both are asked for labels,
values and probabilities of the rows that it was fitted on (comparison.py). Whether the tests pass is scikit-learn's
matter; some examples of its docstrings show fewer digits. The exit code is 1 where an answer differs, or where compile
raises anything but UnsupportedModelError and NotFittedError. Tests that no wheel ships run where they lie:

    python -m tests.gallery --path sklearn-onnx/tests/test_sklearn_svm_converters.py

Of the RBF family is what has inside, as a parameter or fitted: an SVC, NuSVC, SVR, NuSVR, OneClassSVM, KernelRidge or
Nystroem with kernel="rbf", a Gaussian process whose kernel is made of RBF, constants and noise, KernelDensity with the
Gaussian kernel, or RBFSampler. Its share is of those whose source answers `predict` itself.
"""

from __future__ import annotations

import functools
import os
import re
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import click
import numpy as np
import sklearn
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils import _safe_indexing
from sklearn.utils.discovery import all_estimators

sys.path.extend([str(Path(__file__).parent), str(Path(__file__).parents[1])])  # tests, and benchmarks

from comparison import FAULTS, Finding, answers, compare, counts, short

from benchmarks.experiment import Experiment, MissingError, Rows, Run

PACKAGE = Path(sklearn.__file__).parent
# Tests, and modules whose docstrings have examples, by the name that --only takes.
SUITES: dict[str, tuple[str, ...]] = {
    "svm": ("svm/tests", "svm/_classes.py"),
    "gaussian_process": ("gaussian_process/tests", "gaussian_process/_gpr.py", "gaussian_process/_gpc.py"),
    "gaussian_process_kernels": ("gaussian_process/kernels.py",),
    "kernel_approximation": ("tests/test_kernel_approximation.py", "kernel_approximation.py"),
    "kernel_ridge": ("tests/test_kernel_ridge.py", "kernel_ridge.py"),
    "calibration": ("tests/test_calibration.py", "calibration.py"),
    "pipeline": ("tests/test_pipeline.py", "pipeline.py"),
    "compose": ("compose/tests", "compose/_column_transformer.py", "compose/_target.py"),
    "ensemble": (
        *(f"ensemble/tests/test_{name}.py" for name in ("bagging", "voting", "stacking", "weight_boosting", "common")),
        *(f"ensemble/_{name}.py" for name in ("bagging", "voting", "stacking")),
    ),
    "multiclass": ("tests/test_multiclass.py", "multiclass.py"),
    "multioutput": ("tests/test_multioutput.py", "multioutput.py"),
    "feature_selection": ("feature_selection/tests/test_rfe.py", "feature_selection/_rfe.py"),
    "model_selection": ("model_selection/tests", "model_selection/_search.py", "model_selection/_validation.py"),
    "semi_supervised": ("semi_supervised/tests/test_self_training.py", "semi_supervised/_self_training.py"),
    "linear_model": ("linear_model/tests/test_sgd.py", "linear_model/_stochastic_gradient.py"),
    "preprocessing": ("preprocessing/tests/test_data.py", "preprocessing/_data.py"),
    "metrics": ("metrics/_plot", "metrics/tests/test_classification.py"),
    "base": ("tests/test_base.py", "base.py"),
}
_MAX_ROWS = 1000
_REFUSALS = ("UnsupportedModelError", "NotFittedError")
# By class, the parameter that must have this value; None for any.
_RBF: dict[str, tuple[str, str] | None] = {
    **dict.fromkeys(("SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM", "KernelRidge", "Nystroem"), ("kernel", "rbf")),
    "KernelDensity": ("kernel", "gaussian"),
    "RBFSampler": None,
}


@dataclass(frozen=True)
class Fitted:
    """One fitted estimator."""

    test: str
    kind: str
    finding: Finding
    of_rbf: bool  # of that family, and the source answers


@dataclass
class Gallery:
    """A plugin of pytest: knows which test runs, and takes down what was fitted in it."""

    mode: str
    test: str = ""
    fitted: list[Fitted] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)
    failed: list[str] = field(default_factory=list)
    _busy: threading.local = field(default_factory=threading.local)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Note which test runs."""
        self.test = nodeid

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Count what came of it."""
        if report.when == "call" or report.outcome == "skipped":
            self.outcomes[report.outcome] += 1
            self.failed += [report.nodeid] * (report.outcome == "failed")

    def wrapped(self, fit: Callable[..., Any]) -> Callable[..., Any]:
        """The same fit, which tells afterwards; of a fit that calls its parent's, the outer one does."""

        @functools.wraps(fit)
        def fit_and_compare(estimator: Any, *args: Any, **kwargs: Any) -> Any:
            inside = self._busy.__dict__.setdefault("inside", set())
            if id(estimator) in inside:
                return fit(estimator, *args, **kwargs)
            inside.add(id(estimator))
            try:
                result = fit(estimator, *args, **kwargs)
                self._compare(estimator, args[0] if args else kwargs.get("X"))
            finally:
                inside.discard(id(estimator))
            return result

        return fit_and_compare

    def _compare(self, estimator: Any, X: Any) -> None:
        random_state = np.random.get_state()  # noqa: NPY002  # the tests' own
        of_rbf = False
        try:
            rows = _first_rows(X)
            theirs = answers(estimator, rows)
            of_rbf = is_rbf_family(estimator) and not isinstance(theirs["predict"], Exception)
            finding = compare(estimator, rows, theirs=theirs, mode=self.mode)
        except Exception as error:  # no test of scikit-learn's may notice
            finding = Finding("wrong exception", f"the gallery itself: {error}", type(error).__name__)
        np.random.set_state(random_state)  # noqa: NPY002
        if finding.verdict == "refused" and finding.exception not in _REFUSALS:
            finding = replace(finding, verdict="wrong exception")
        self.fitted.append(Fitted(self.test, kind_of(estimator), finding, of_rbf))


def _first_rows(X: Any) -> Any:
    n_rows = X.shape[0] if getattr(X, "shape", ()) else len(X) if hasattr(X, "__len__") else 0
    return X if n_rows <= _MAX_ROWS else _safe_indexing(X, np.arange(_MAX_ROWS))


def kind_of(estimator: Any) -> str:
    """Its class, with the kernel where it has one by name, and what is inside of pipelines and wrappers."""
    name = type(estimator).__name__
    if getattr(estimator, "steps", None):
        return " + ".join(kind_of(step) for _, step in estimator.steps[-2:] if step is not None)
    inner = next((getattr(estimator, key, None) for key in ("estimator", "base_estimator", "regressor")), None)
    kernel = getattr(estimator, "kernel", None)
    if isinstance(kernel, str):
        return f"{name} {kernel}"
    return name if inner is None or isinstance(inner, str) else f"{name} of {kind_of(inner)}"


def is_rbf_family(estimator: Any) -> bool:
    """Whether it is of the RBF family, as said above, or has an estimator inside that is."""
    waiting, seen = [estimator], set()
    while waiting:
        one = waiting.pop()
        if isinstance(one, (list, tuple)):
            waiting += one
        if not hasattr(one, "get_params") or isinstance(one, (type, Kernel)) or id(one) in seen:
            continue
        seen.add(id(one))
        name = type(one).__name__
        wanted = _RBF.get(name)
        if name in _RBF and (wanted is None or getattr(one, wanted[0]) == wanted[1]):
            return True
        if isinstance(getattr(one, "kernel_", None), Kernel) and _is_rbf_kernel(one.kernel_):
            return True
        waiting += vars(one).values()
    return False


def _is_rbf_kernel(kernel: Any) -> bool:
    """Whether a Gaussian process's kernel is made of RBF, constants and noise."""
    parts = [kernel, *kernel.get_params().values()]
    leaves = [part for part in parts if isinstance(part, Kernel) and not hasattr(part, "k1")]
    names = {type(leaf).__name__ for leaf in leaves}
    return "RBF" in names and names <= {"RBF", "ConstantKernel", "WhiteKernel"}


@contextmanager
def hooked(gallery: Gallery) -> Iterator[None]:
    """Wrap `fit` of every predictor of scikit-learn, wherever it is defined, and put the old ones back."""
    predictors = [estimator for _, estimator in all_estimators() if hasattr(estimator, "predict")]
    owners = {base for predictor in predictors for base in predictor.__mro__ if "fit" in vars(base)}
    fits = {owner: vars(owner)["fit"] for owner in owners}
    try:
        for owner, fit in fits.items():
            owner.fit = gallery.wrapped(fit)
        yield
    finally:
        for owner, fit in fits.items():
            owner.fit = fit


def measure(run: Run, case: None) -> Rows:
    """Run what there is of these tests and examples, and compile what they fit."""
    if not (PACKAGE / "svm" / "tests").is_dir():
        raise MissingError(f"scikit-learn's tests are not installed at {PACKAGE}")
    import pytest

    options = run.options
    gallery = Gallery(options.mode)
    paths = options.path or [PACKAGE / path for name in options.only or SUITES for path in SUITES[name]]
    # Neither settings of this repository, nor files beside the tests.
    root = os.path.commonpath([path.parent for path in paths])
    arguments = ["-c", os.devnull, "--rootdir", root, "-p", "no:cacheprovider", "-p", "no:terminal"]
    arguments += ["--doctest-modules", "--doctest-continue-on-failure", "-k", options.tests]
    arguments += ["-o", "doctest_optionflags=ELLIPSIS NORMALIZE_WHITESPACE NUMBER"]
    with hooked(gallery):
        pytest.main([*arguments, *(str(path) for path in paths if path.exists())], plugins=[gallery])
    yield from _tables(gallery)


def _tables(gallery: Gallery) -> Rows:
    """All of it, by kind of estimator, why some are refused, and each fault."""
    fitted = gallery.fitted
    yield "tests", {name: gallery.outcomes[name] for name in ("passed", "failed", "skipped")}
    yield "fitted", {"fitted": len(fitted), **counts(one.finding for one in fitted)}
    for kind in sorted({one.kind for one in fitted}):
        of_kind = [one.finding for one in fitted if one.kind == kind]
        yield "kinds", {"kind": kind, "fitted": len(of_kind), **counts(of_kind)}
    yield "RBF family", _share([one.finding for one in fitted if one.of_rbf])
    refused = [one for one in fitted if one.finding.verdict == "refused"]
    for name, some in (("RBF family, refused", [one for one in refused if one.of_rbf]), ("refusals", refused)):
        for reason, n in Counter(_clause(one.finding) for one in some).most_common():
            yield name, {"n": n, "reason": reason}
    faults = [one for one in fitted if one.finding.verdict in FAULTS]
    alike = Counter((one.kind, one.finding.exception, _clause(one.finding), one.test) for one in faults)
    for (kind, exception, reason, test), n in alike.items():
        yield "faults", {"n": n, "kind": kind, "exception": exception, "reason": reason, "test": test}
    for test in gallery.failed:
        yield "failed", {"test": test}


def _share(findings: list[Finding]) -> dict[str, Any]:
    """How many of these compile."""
    refused = sum(finding.verdict == "refused" for finding in findings)
    compiled = len(findings) - refused
    share = f"{100.0 * compiled / max(len(findings), 1):.1f} %"
    return {"fitted": len(findings), "compiled": compiled, "refused": refused, "share": share}


def _clause(finding: Finding) -> str:
    """The first of its reason."""
    return short(re.split(r"; |\n", finding.reason, maxsplit=1)[0])


_OPTIONS = [
    click.Option(["--only"], multiple=True, type=click.Choice(sorted(SUITES)), help="These suites; may be repeated."),
    click.Option(
        ["--path"],
        multiple=True,
        type=click.Path(exists=True, resolve_path=True, path_type=Path),
        help="Tests of other packages instead: a file or folder of a checkout; may be repeated.",
    ),
    click.Option(["--tests"], default="", help="Those whose name matches, as pytest's -k."),
    click.Option(["--mode"], type=click.Choice(["certified", "exact"]), default="certified", show_default=True),
]
EXPERIMENT = Experiment("gallery", __doc__, measure, {"scikit-learn's tests": None}, _OPTIONS)

if __name__ == "__main__":
    EXPERIMENT.main()
