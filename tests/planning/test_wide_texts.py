"""Sparse models with very many features: memory depends on the nonzeros, not on the number of features."""

from __future__ import annotations

import sys
from pathlib import Path
from subprocess import run
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

import approxsvm
from approxsvm import KernelModel
from approxsvm.expansion import decision_function
from approxsvm.expansion.stack import expand_and_certify, value_range

N_SV, N_FEATURES, N_NONZEROS = 500, 200_000, 40
_MOST_MORE = 300  # MiB; dense support vectors would take 800
_COMPILED: dict[str, tuple[dict[str, Any], str]] = {
    "gaussian": ({"gamma": 1.0}, "certified"),
    "gaussian, exact": ({"gamma": 1.0}, "exact"),
    "gaussian, regression": ({"gamma": 1.0, "task": "regression"}, "certified"),
    "linear": ({"gamma": 1.0, "degree": 1}, "certified"),
    "cubic": ({"gamma": 1.0, "degree": 3, "coef0": 1.0}, "certified"),
    "sigmoid": ({"gamma": 1.0, "is_sigmoid": True}, "certified"),
}


def rows(n: int, n_features: int, seed: int) -> csr_array:
    """Return rows like TfidfVectorizer's: of norm 1, with few words each, some of them frequent."""
    rng = np.random.default_rng(seed)
    columns = (n_features ** rng.random((n, N_NONZEROS))).astype(int) - 1
    values = rng.uniform(0.5, 2.0, columns.shape)
    found = csr_array((values.ravel(), columns.ravel(), np.arange(n + 1) * N_NONZEROS), (n, n_features))
    found.sum_duplicates()
    found.data /= np.repeat(np.sqrt(found.multiply(found).sum(axis=1)), np.diff(found.indptr))
    return found


def model(n_sv: int, n_features: int, task: Any = "classification", **kernel: Any) -> KernelModel:
    coef, labels = np.random.default_rng(1).normal(size=n_sv), np.array([1, -1] if task == "classification" else [])
    return KernelModel(task, rows(n_sv, n_features, 0), coef, 0.1, labels=labels, **kernel)


def _peak() -> int:
    """Return this process's peak resident memory so far, in MiB; ru_maxrss would include its parent's."""
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) >> 10


def _compile(name: str, folder: str) -> None:
    kernel, mode = _COMPILED[name]
    source, sample, path = model(N_SV, N_FEATURES, **kernel), rows(300, N_FEATURES, 2), Path(folder) / "text.asvm"
    before = _peak()
    fast = approxsvm.compile(source, sample, mode=mode)
    fast.save(path)
    answers, again = fast.predict(sample), approxsvm.load(path).predict(sample)
    print(f"{name}: {_peak() - before}")
    np.testing.assert_array_equal(answers, again)
    products = (sample @ source.support_vectors.T).toarray()
    if source.kernel == "gaussian":
        kernels = np.exp(2.0 * (products - 1.0))
    else:
        kernels = np.tanh(products) if source.is_sigmoid else (products + source.coef0) ** source.degree
    exact = kernels @ source.dual_coef[0] + 0.1
    if source.task == "regression":
        assert np.abs(answers - exact).max() <= 1e-3 * np.ptp(exact) + 1e-9
    else:
        np.testing.assert_array_equal(answers, np.where(exact > 0, 1, -1))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_memory_follows_the_nonzeros(tmp_path: Path) -> None:
    """All models run in one process, whose peak memory only grows."""
    done = run([sys.executable, __file__, str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    grown = dict(line.split(": ") for line in done.stdout.splitlines())
    assert [*grown] == [*_COMPILED]
    assert max(map(int, grown.values())) < _MOST_MORE, grown


def test_sparse_vectors_have_the_bounds_of_dense_ones(monkeypatch: Any) -> None:
    source = model(150, 900, gamma=0.7)
    centers = source.dense_support_vectors(0, 3).astype(np.float32)

    def found() -> list[Any]:
        _, certificates = expand_and_certify(source, centers, 2)
        return [value_range(source), certificates.total, certificates.norms, certificates.remainders]

    expected = found()
    monkeypatch.setattr(decision_function, "_DENSE_ELEMENTS", 0)
    monkeypatch.setattr(decision_function, "_BLOCK_ELEMENTS", 2_000)
    assert decision_function.DecisionFunction(source, 0).is_sparse
    for sparse, dense in zip(found(), expected, strict=True):
        np.testing.assert_allclose(sparse, dense, rtol=1e-9, atol=1e-6)


if __name__ == "__main__":
    for name in _COMPILED:
        _compile(name, sys.argv[1])
