"""Small calls: their memory suffices for one row at a time, and the memory of an input map follows it directly.

The zoo tests calls of every size for every source.
"""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import approxsvm
from approxsvm import _native
from approxsvm.runtime.evaluator import LABELS

SIZES = (*range(1, 10), 12, 15, 16, 17, 19, 24, 31, 33, 49, 51)  # around block sizes, and their remainders


def rows_at_the_boundary(source, X):
    """Return rows, every third of which lies where the label changes."""
    random = np.random.default_rng(1)
    rows = 1000.0 * random.normal(size=(204, X.shape[1]))
    first, second = rows[::3].copy(), random.permutation(rows[1::3])
    labels = source.predict(first)
    for _ in range(26):
        middle = 0.5 * (first + second)
        stays = (source.predict(middle) == labels)[:, np.newaxis]
        first, second = np.where(stays, middle, first), np.where(stays, second, middle)
    rows[::3] = first
    return rows


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(("degree", "n_centers"), [(2, 1), (5, 1), (3, 16)])
def test_rows_behind_a_map(n_classes, degree, n_centers, target):
    X = 1000.0 * np.random.default_rng(n_classes).normal(size=(500, 9))
    angle = np.arctan2(X[:, 0], X[:, 1]) / (2 * np.pi) + 0.5
    source = make_pipeline(StandardScaler(), SVC(C=4.0, gamma=0.1)).fit(X, np.floor(angle * n_classes))
    rows = rows_at_the_boundary(source, X)
    artifact = approxsvm.compile(source, X, degree=degree, n_centers=n_centers).artifact
    native, expected = _native.Predictor(artifact.native, target), source.predict(rows)
    for n in SIZES:
        calls = [native.dense(rows[k : k + n], 1, LABELS, "promised", False) for k in range(0, len(rows), n)]
        np.testing.assert_array_equal(artifact.labels[np.concatenate(calls)], expected, err_msg=f"calls of {n} rows")


@pytest.mark.parametrize("seed", range(3))
def test_a_sparse_row_waits_while_a_dense_one_is_speculated(seed):
    """A sparse row that the engine evaluates first must not overwrite an expansion's decision for a dense one."""
    random = np.random.default_rng(seed)
    rows = random.normal(size=(640, 20))
    rows[::2] *= random.random((320, 20)) < 0.15
    X, rows = rows[:240], rows[240:]
    source = SVC(gamma=0.1).fit(X, np.argmax(X[:, :3], axis=1))
    fast = approxsvm.compile(source, X, degree=2, n_centers=2)
    for n in (2, 3, 4, 5):
        labels = np.concatenate([fast.predict(rows[k : k + n]) for k in range(0, len(rows), n)])
        np.testing.assert_array_equal(labels, source.predict(rows), err_msg=f"calls of {n} rows")
