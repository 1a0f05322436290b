"""scikit-learn's own tests and docstring examples, with every estimator that they fit compiled beside it.

    python -m benchmarks.gallery [--only NAME ...] [--mode certified|exact] [--results DIR]

The tests are those inside the installed package; nothing is fetched, and there is no copy of them here. While pytest
runs them, `fit` of scikit-learn's predictors is wrapped: what was fitted is compiled, and both are asked for labels,
values and probabilities of the rows that it was fitted on (comparison.py). Whether the tests pass is scikit-learn's
matter; some examples of its docstrings show fewer digits. The exit code is 1 where an answer differs, or where compile
raises anything but UnsupportedModelError and NotFittedError. skl2onnx's wheel ships no tests, so they take no part.
"""

from __future__ import annotations

import functools
import os
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import process_time
from typing import Any

import click
import numpy as np
import sklearn
from sklearn.gaussian_process.kernels import RBF
from sklearn.kernel_approximation import RBFSampler, SkewedChi2Sampler
from sklearn.utils import _safe_indexing
from sklearn.utils.discovery import all_estimators

from benchmarks.comparison import Finding, Verdict, compare
from benchmarks.record import Record, results_option

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
}
_MAX_ROWS = 1000
_MAX_REASON = 140
_REFUSALS = ("UnsupportedModelError", "NotFittedError")


@dataclass(frozen=True)
class Fitted:
    """One fitted estimator."""

    test: str
    kind: str
    is_rbf: bool
    finding: Finding

    @property
    def verdict(self) -> Verdict:
        """That of the comparison; a refusal that is neither UnsupportedModelError nor NotFittedError is none."""
        is_wrong = self.finding.verdict == "refused" and self.finding.exception not in _REFUSALS
        return "wrong exception" if is_wrong else self.finding.verdict

    @property
    def is_fault(self) -> bool:
        """Whether it is what the gallery is there to find."""
        return self.verdict in ("differs", "wrong exception")


@dataclass
class Gallery:
    """A plugin of pytest: knows which test runs, and takes down what was fitted in it."""

    options: dict[str, Any]
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
                X = args[0] if args else kwargs.get("X")
                self._compare(estimator, X)
            finally:
                inside.discard(id(estimator))
            return result

        return fit_and_compare

    def _compare(self, estimator: Any, X: Any) -> None:
        random_state = np.random.get_state()  # noqa: NPY002  # the tests' own
        try:
            finding = compare(estimator, _first_rows(X), **self.options)
        except Exception as error:  # no test of scikit-learn's may notice
            finding = Finding("wrong exception", f"the gallery itself: {error}", type(error).__name__)
        np.random.set_state(random_state)  # noqa: NPY002
        self.fitted.append(Fitted(self.test, kind_of(estimator), is_rbf(estimator), finding))


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


def is_rbf(estimator: Any) -> bool:
    """Whether it, or what is inside of it, has the RBF kernel or random features of one."""
    parts = [estimator, *estimator.get_params(deep=True).values()]
    return any(_has_rbf_kernel(part) for part in parts)


def _has_rbf_kernel(part: Any) -> bool:
    if type(part).__name__.startswith("GaussianProcess") and part.kernel is None:
        return True
    kernel = getattr(part, "kernel", None)
    return (isinstance(kernel, str) and kernel == "rbf") or type(part) in (RBF, RBFSampler, SkewedChi2Sampler)


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


def run(paths: Iterable[str], options: dict[str, Any], only_tests: str = "") -> Gallery:
    """Run what there is of these tests and examples of the installed scikit-learn.

    Parameters
    ----------
    paths : iterable of str
        Below the package.
    options : dict
        Of `approxsvm.compile`.
    only_tests : str
        As pytest's option -k.
    """
    import pytest

    gallery = Gallery(options)
    found = [str(PACKAGE / path) for path in paths if (PACKAGE / path).exists()]
    # Neither settings of this repository, nor files beside the installed tests.
    arguments = ["-c", os.devnull, "--rootdir", str(PACKAGE), "-p", "no:cacheprovider", "-p", "no:terminal"]
    arguments += ["--doctest-modules", "--doctest-continue-on-failure", "-k", only_tests]
    arguments += ["-o", "doctest_optionflags=ELLIPSIS NORMALIZE_WHITESPACE NUMBER", *found]
    with hooked(gallery):
        pytest.main(arguments, plugins=[gallery])
    return gallery


def fill(record: Record, gallery: Gallery) -> None:
    """Tables of a record: all of it, by kind of estimator, why some are refused, and each fault."""
    record.add("tests", {name: gallery.outcomes[name] for name in ("passed", "failed", "skipped")})
    for name, some in (("all", gallery.fitted), ("RBF", [one for one in gallery.fitted if one.is_rbf])):
        record.add("fitted", {"estimators": name, **_counts(some)})
    for kind in sorted({one.kind for one in gallery.fitted}):
        record.add("kinds", {"kind": kind, **_counts([one for one in gallery.fitted if one.kind == kind])})
    refused = Counter(_short(one.finding.reason) for one in gallery.fitted if one.verdict == "refused")
    for reason, n in refused.most_common():
        record.add("refusals", {"n": n, "reason": reason})
    faults = [one for one in gallery.fitted if one.is_fault]
    alike = Counter((one.kind, one.finding.exception, _short(one.finding.reason), one.test) for one in faults)
    for (kind, exception, reason, test), n in alike.items():
        record.add("faults", {"n": n, "kind": kind, "exception": exception, "reason": reason, "test": test})
    for test in gallery.failed:
        record.add("failed", {"test": test})


def _counts(some: list[Fitted]) -> dict[str, int]:
    verdicts = Counter(one.verdict for one in some)
    return {
        "fitted": len(some),
        "equal": verdicts["equal"],
        "differ": verdicts["differs"],
        "refused": verdicts["refused"],
        "wrong exceptions": verdicts["wrong exception"],
        "no answer of their own": verdicts["source has no answer"],
        "rows": sum(one.finding.n_rows for one in some),
        "ties": sum(one.finding.n_ties for one in some),
    }


def _short(reason: str) -> str:
    """The first clause of it, and not all of that."""
    line = re.split(r"; |\n", reason, maxsplit=1)[0]
    return line if len(line) <= _MAX_REASON else f"{line[: _MAX_REASON - 3]}..."


@click.command()
@click.option("--only", multiple=True, type=click.Choice(sorted(SUITES)), help="These suites alone; may be repeated.")
@click.option("--tests", default="", help="Those whose name matches, as pytest's -k.")
@click.option("--mode", type=click.Choice(["certified", "exact"]), default="certified", show_default=True)
@results_option
def main(only: tuple[str, ...], tests: str, mode: str, results: Path) -> None:
    """Compile what scikit-learn's tests and examples fit, and compare."""
    if not (PACKAGE / "svm" / "tests").is_dir():
        click.echo(f"nothing compiled: scikit-learn's tests are not installed at {PACKAGE}")
        return
    record = Record.begin("gallery")
    start = process_time()
    gallery = run([path for name in only or SUITES for path in SUITES[name]], {"mode": mode}, tests)
    fill(record, gallery)
    record.show()
    record.save(results)
    click.echo(_verdict(gallery, process_time() - start))
    if any(one.is_fault for one in gallery.fitted):
        raise SystemExit(1)


def _verdict(gallery: Gallery, cpu_seconds: float) -> str:
    counts = _counts(gallery.fitted)
    return (
        f"{counts['fitted']:,} fitted, {counts['equal']:,} compiled and equal, {counts['differ']:,} differ, "
        f"{counts['refused']:,} refused, {counts['wrong exceptions']:,} raise something else, "
        f"{counts['rows']:,} rows with {counts['ties']:,} ties, {cpu_seconds:.0f} s of CPU time"
    )


if __name__ == "__main__":
    main()
