"""Rows of any dtype and layout: every Python interface gives the same answers as for the same numbers in float64."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer
from sklearn.svm import SVC, SVR

import approxsvm
from approxsvm.errors import InputError

Rows = npt.NDArray[Any]
# Small integers, which every dtype can represent.
X = np.random.default_rng(0).integers(0, 9, (90, 4)).astype(float)
LABELS = np.where(X[:, 0] > 4, "high", "low")
SOURCES = {
    "two classes": SVC(gamma=0.02).fit(X, LABELS),
    "three classes": SVC().fit(X, np.digitize(X[:, 1], [3, 6])),
    "regression": SVR(gamma=0.02).fit(X, X[:, 0]),
    "bins": make_pipeline(KBinsDiscretizer(3, quantile_method="averaged_inverted_cdf"), SVC()).fit(X, LABELS),
}


class _Dataset:
    """An array in a file, as in h5py and zarr, with a dtype, a shape, slices and a conversion."""

    def __init__(self, rows: Rows) -> None:
        self.rows, self.dtype, self.shape, self.ndim = rows, rows.dtype, rows.shape, rows.ndim

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, key: Any) -> Any:
        return self.rows[key]

    def __array__(self, dtype: Any = None, copy: Any = None) -> Rows:
        return np.asarray(self.rows, dtype)


def _little_endian(rows: Rows) -> Rows:
    swapped = rows.byteswap().view(rows.dtype.newbyteorder())
    spelled = swapped.byteswap().view(swapped.dtype.newbyteorder())
    assert spelled.dtype.byteorder == "<"
    return spelled


def _unaligned(rows: Rows) -> Rows:
    record = np.zeros(len(rows), np.dtype([("a", "i1"), ("x", "f8", (4,))]))
    record["x"] = rows
    assert not record["x"].flags.aligned
    return record["x"]


FORMS: dict[str, Callable[[Rows], Any]] = {
    **{name: (lambda rows, name=name: rows.astype(name)) for name in ("<f8", "=d", ">f8", "f4", ">f4", "f2", ">f2")},
    **{name: (lambda rows, name=name: rows.astype(name)) for name in ("u1", "i1", ">i2", "u2", "i4", ">i8", "u8", "g")},
    "float64, little-endian by name": _little_endian,
    "float32, little-endian by name": lambda rows: _little_endian(rows.astype(np.float32)),
    "columns first": np.asfortranarray,
    "strided": lambda rows: np.repeat(rows, 2, axis=1)[:, ::2],
    "reversed": lambda rows: np.ascontiguousarray(rows[:, ::-1])[:, ::-1],
    "an image's channels": lambda rows: np.ascontiguousarray(rows.astype(np.uint8).T).T,
    "unaligned": _unaligned,
    "read-only": lambda rows: np.frombuffer(rows.tobytes(), np.float64).reshape(rows.shape),
    "objects": lambda rows: rows.astype(object),
    "a data set": _Dataset,
    "a data set, little-endian by name": lambda rows: _Dataset(_little_endian(rows)),
    "a big-endian data set": lambda rows: _Dataset(rows.astype(">f8")),
    "a frame": lambda rows: pd.DataFrame(_little_endian(rows)),
}
INTERFACES: dict[str, Callable[[Any, Any], Any]] = {
    "predict": lambda model, rows: model.predict(rows),
    "one by one": lambda model, rows: [model.predict(rows[k : k + 1])[0] for k in range(rows.shape[0])],
    "predict_one": lambda model, rows: [model.predict_one(_row(rows, k)) for k in range(rows.shape[0])],
    "predict_one, (1, n)": lambda model, rows: [model.predict_one(rows[k : k + 1]) for k in range(rows.shape[0])],
    "outputs": lambda model, rows: [
        model.predict_one(_row(rows, k), outputs=["label", "certified"])["label"] for k in range(rows.shape[0])
    ],
}


def _row(rows: Any, k: int) -> Any:
    return rows.iloc[k] if hasattr(rows, "iloc") else rows[k]


@pytest.mark.filterwarnings("ignore:X does not have valid feature names:UserWarning")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("source", SOURCES)
def test_answers_do_not_depend_on_the_dtype(source: str, form: str) -> None:
    """Check every form of rows in every interface of an estimator and a predictor."""
    rows = FORMS[form](X)
    fast = approxsvm.compile(SOURCES[source], rows)
    expected = SOURCES[source].predict(X)
    for model in (fast, approxsvm.Predictor(fast.artifact)):
        for name, answers in INTERFACES.items():
            if (source, name) == ("regression", "outputs"):
                continue
            found = answers(model, rows)
            if source == "regression":
                np.testing.assert_allclose(found, expected, atol=1e-5, err_msg=name)
            else:
                assert list(found) == list(expected), name


@pytest.mark.parametrize("spelling", ["<d", "=d", "d", "@d", ">d", "<f", "=f", "f", ">f"])
def test_the_core_compares_dtypes_by_their_meaning(spelling: str) -> None:
    """The binding accepts every spelling of native float32 and float64, and its errors name the accepted types."""
    fast = approxsvm.compile(SOURCES["two classes"])
    native = approxsvm.Predictor(fast.artifact)._evaluator.native
    rows = X.astype(spelling.replace("@", ""))
    if spelling[0] in "<=":
        rows = rows.view(rows.dtype.newbyteorder(spelling[0]))
    if spelling[0] == ">":
        assert native.one(rows[0]) is None
        with pytest.raises(InputError, match="rows must be float32 or float64"):
            native.dense(rows, 1, 1, "promised", False)
    else:
        labels = native.dense(rows, 1, 1, "promised", False)
        assert [native.one(row) for row in rows] == labels.tolist()


@pytest.mark.parametrize("rows", [np.zeros((2, 4), np.uint8), np.zeros(3, int), np.zeros((1, 3), ">f8"), np.array(1)])
def test_rows_of_other_shapes_are_rejected_in_every_dtype(rows: Rows) -> None:
    """The shapes that predict_one accepts do not depend on the dtype."""
    fast = approxsvm.compile(SOURCES["two classes"])
    with pytest.raises(InputError, match=r"expected one row|3 features"):
        fast.predict_one(rows)


@pytest.mark.parametrize("value", [1j, "x", None, np.nan])
def test_a_row_of_objects_that_are_no_numbers_is_rejected(value: Any) -> None:
    """Object arrays take the same path as lists."""
    fast = approxsvm.compile(SOURCES["two classes"])
    row = np.array([1.0, 2.0, 3.0, value], object)
    with pytest.raises(InputError):
        fast.predict_one(row)
