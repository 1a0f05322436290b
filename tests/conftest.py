"""Code shared by the tests: real data if available, random models, and all targets of this machine."""

from __future__ import annotations

import bz2
import gc
import lzma
import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # problems are small, and workers share the processors:
os.environ.setdefault("OMP_NUM_THREADS", "1")  # set before NumPy reads them

import numpy as np
import pytest
import sklearn
from native_build import REPOSITORY
from predict_tool import Files, Libsvm
from sklearn import calibration

from approxsvm import KernelModel, _native
from approxsvm.runtime.evaluator import BOUNDS, STAGE_NUMBERS, VALUES

sys.path.append(str(REPOSITORY))  # benchmarks and docs are not part of the package
GOLDEN = REPOSITORY / "models"
EVERYTHING = VALUES | BOUNDS | STAGE_NUMBERS  # every output about decision values


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Pause the garbage collector, which would take 3 s for half a million objects, and later leave them out."""
    gc.disable()
    yield
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put native tests first so that, while they compile, another worker runs the others."""
    items.sort(key=lambda item: item.path.name != "test_native.py")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Iterator[None]:
    """Skip tests of temperature scaling with scikit-learn before 1.8, which lacks it."""
    try:
        yield
    except (ValueError, AttributeError) as error:
        is_lacking = re.search("Got 'temperature' instead|no attribute '_TemperatureScaling'", str(error))
        if not is_lacking or hasattr(calibration, "_TemperatureScaling"):
            raise
        pytest.skip(f"scikit-learn {sklearn.__version__} has no temperature scaling: 1.8 and later have")


pytest_runtest_setup = pytest_runtest_call  # handles errors raised by fixtures, too


@pytest.fixture(params=_native.runnable_targets())
def target(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Force each target of this machine in turn."""
    monkeypatch.setenv("APPROXSVM_TARGET", request.param)
    return str(request.param)


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the session's folder, shared by all workers."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@pytest.fixture
def unmeasured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip the slowest part of reports, measuring a new process's memory; test_report.py measures it for two models."""
    monkeypatch.setattr("approxsvm.analysis.report.tables.resident_bytes", lambda artifact: None)


def data_root() -> Path:
    """Return the folder for real data or stand-ins, as in benchmarks/experiment.py."""
    beside = REPOSITORY.parent / "shared"
    return Path(os.environ.get("APPROXSVM_DATA", beside if beside.is_dir() else REPOSITORY / "build" / "data"))


def stored(name: str) -> Path:
    """Return the path of a file in the data folder; skip if it is absent."""
    source = data_root() / name
    if not source.exists():
        what = f"python -m benchmarks.data {Path(name).stem}"
        pytest.skip(f"{source} is not here; {what} brings it, or a stand-in with --synthetic")
    return source


@pytest.fixture(scope="session")
def real_data() -> bool:
    """Return whether the data are real, so that known figures hold, rather than stand-ins."""
    return not (data_root() / "STAND_INS").exists()


@pytest.fixture(scope="session")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return a function that decompresses a file in $APPROXSVM_DATA once per session, and skips if it is absent."""
    folder = tmp_path_factory.mktemp("unpacked")

    def unpack(name: str) -> Path:
        source = stored(name)
        unpacked_file = folder / source.stem
        if not unpacked_file.exists():
            opener: Any = lzma.open if source.suffix == ".xz" else bz2.open
            with opener(source) as file:
                unpacked_file.write_bytes(file.read())
        return unpacked_file

    return unpack


def random_model(
    seed: int, n_sv: int = 40, n_features: int = 7, gamma: float = 0.1, task: Any = "classification", **changes: Any
) -> KernelModel:
    """Return a model with random numbers; by default, it has two classes of equal size."""
    rng = np.random.default_rng(seed)
    arguments: dict[str, Any] = {
        "task": task,
        "support_vectors": rng.normal(size=(n_sv, n_features)),
        "dual_coef": rng.normal(size=(1, n_sv)),
        "intercept": rng.normal(size=1),
        "gamma": gamma,
    }
    if task == "classification":
        arguments |= {"labels": np.array([1, -1]), "n_support": np.array([n_sv // 2, n_sv - n_sv // 2])}
    return KernelModel(**(arguments | changes))


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


@pytest.fixture
def libsvm(files: Files) -> Libsvm:
    return Libsvm(files)
