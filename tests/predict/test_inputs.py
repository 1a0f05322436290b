"""Rows of every type and layout give the source's predictions; large arrays are not copied."""

from __future__ import annotations

import itertools
import subprocess
import sys
import textwrap
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC, SVR, OneClassSVM

import approxsvm
from approxsvm import _native
from approxsvm.errors import InputError

N_FEATURES = 6


def whole_numbers(seed, n_rows):
    """Return rows, including zeros, that every numeric type represents exactly."""
    rng = np.random.default_rng(seed)
    return rng.integers(0, 4, size=(n_rows, N_FEATURES)).astype(float) * rng.integers(0, 2, size=(n_rows, N_FEATURES))


TASKS = {
    "two classes": lambda X, y: SVC(gamma=0.05).fit(X, y % 2),
    "several classes": lambda X, y: SVC(gamma=0.05).fit(X, np.array(["red", "green", "blue"])[y]),
    "regression": lambda X, y: SVR(gamma=0.05).fit(X, X.sum(axis=1) + y),
    "one class": lambda X, y: OneClassSVM(gamma=0.05, nu=0.3).fit(X),
    "pipeline": lambda X, y: make_pipeline(StandardScaler(), SVC()).fit(X, y),
    "quadratic": lambda X, y: SVC(kernel="poly", degree=2, C=0.1).fit(X, y),
    "ensemble": lambda X, y: CalibratedClassifierCV(SVC(gamma=0.05), cv=2).fit(X, y),
}


@pytest.fixture(scope="module")
def compiled():
    """Return the source and the compiled model for every task, compiled once."""
    X = whole_numbers(0, 200)
    y = (X[:, 0] + X[:, 1] > 2).astype(int) + (X[:, 2] > 1)
    found = {}
    for name, fit in TASKS.items():
        source = fit(X, y)
        found[name] = source, approxsvm.compile(source, mode="exact" if name == "one class" else "certified")
    return found


def unaligned(X):
    raw = np.zeros(X.nbytes + 1, np.uint8)
    view = raw[1:].view(X.dtype).reshape(X.shape)
    view[...] = X
    return view


def with_long_indptr(X):
    made = sparse.csr_matrix(X)
    made.indptr = made.indptr.astype(np.int64)
    return made


# Layouts in addition to those in tests/zoo/tables.py.
LAYOUTS = {
    "float16": lambda X, _: X.astype(np.float16),
    "strided": lambda X, _: np.kron(X, np.ones((2, 3)))[::2, ::3],
    "negative strides": lambda X, _: X[::-1, ::-1].copy()[::-1, ::-1],
    "unaligned": lambda X, _: unaligned(X),
    "unaligned float32": lambda X, _: unaligned(X.astype(np.float32)),
    "big-endian float32": lambda X, _: X.astype(">f4"),
    "big-endian int": lambda X, _: X.astype(">i4"),
    "field": lambda X, _: np.array([(1, row) for row in X], [("flag", "u1"), ("x", "<f8", N_FEATURES)])["x"],
    "memory map": lambda X, path: np.save(path, X) or np.load(path, mmap_mode="r"),
    "memory map of integers": lambda X, path: np.save(path, X.astype(">i2")) or np.load(path, mmap_mode="r"),
    "lil": lambda X, _: sparse.lil_matrix(X),
    "csr of two indices": lambda X, _: with_long_indptr(X),
    "csr of integers": lambda X, _: sparse.csr_matrix(X.astype(int)),
}


@pytest.mark.parametrize("task", TASKS)
def test_rows_of_every_layout(compiled, task, tmp_path):
    source, fast = compiled[task]
    X = whole_numbers(1, 60)
    expected = source.predict(X)
    for name, lay_out in LAYOUTS.items():
        rows = lay_out(X, tmp_path / "rows.npy")
        if (task, name) == ("pipeline", "float16"):  # the scaler computes in float16
            with pytest.raises(InputError, match=r"float16.*StandardScaler.*X\.astype\(np\.float64\)"):
                fast.predict(rows)
        elif task == "regression":
            assert (np.abs(fast.predict(rows) - expected) <= fast.error_bound(rows) + 1e-9).all()
        else:
            np.testing.assert_array_equal(fast.predict(rows), expected, err_msg=name)
    for none in (X[:0], X[:0].astype(np.float32), sparse.csr_matrix(X[:0])):
        for method in ("predict", "decision_function", "predict_proba", "error_bound", "certified"):
            if hasattr(fast, method):
                assert len(getattr(fast, method)(none)) == 0


@pytest.mark.parametrize("task", TASKS)
def test_notebooks_can_show_every_estimator(compiled, task):
    """Completion reads every name returned by dir(), and the HTML display reads every parameter."""
    _, fast = compiled[task]
    names = dir(fast)
    assert {"predict", "summary", "n_features_in_"} <= set(names)
    for name in names:
        getattr(fast, name, None)  # ignores only AttributeError
    assert repr(fast).startswith(f"{type(fast).__name__}(artifact=<")
    assert type(fast).__name__ in fast._repr_html_()
    assert fast._repr_mimebundle_()["text/plain"] == repr(fast)


@pytest.mark.parametrize("task", TASKS)
def test_one_row_of_any_kind(compiled, task):
    _, fast = compiled[task]
    X = whole_numbers(1, 8)
    expected = [fast.predict_one(row) for row in X]
    np.testing.assert_allclose(expected, fast.predict(X), rtol=1e-5) if task == "regression" else (
        np.testing.assert_array_equal(expected, fast.predict(X))
    )
    for given in (X.tolist(), [tuple(row) for row in X], [[row] for row in X.tolist()], X[:, np.newaxis], list(X)):
        assert [fast.predict_one(row) for row in given] == expected
    for wrong in (X[0, :4].tolist(), X[:2], X.tolist(), ["red"] * N_FEATURES, [[1.0], [2.0, 3.0]], None):
        with pytest.raises(ValueError, match=r".+"):
            fast.predict_one(wrong)


NUMBERS, Y = make_classification(100, N_FEATURES, random_state=0)
FRAME = pd.DataFrame(NUMBERS, columns=list("abcdef"))


def test_our_own_calls_miss_no_names():
    """No warning is issued about column names that only the compiled model dropped."""
    for source in (
        SVC().fit(FRAME, Y),
        make_pipeline(StandardScaler(), SVC()).fit(FRAME, np.arange(100) % 3),
        make_pipeline(StandardScaler(), SVR()).fit(FRAME, NUMBERS[:, 0]),
        make_pipeline(StandardScaler(), OneClassSVM()).fit(FRAME),
        SVC(kernel="linear").fit(FRAME, Y),
        CalibratedClassifierCV(SVC(), cv=2).fit(FRAME, Y),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            fast = approxsvm.compile(source, FRAME)
            approxsvm.compile(source, NUMBERS)
            for row in NUMBERS[:3]:
                fast.predict_one(row)
                fast.predict_one(row.tolist())
            if not isinstance(source, CalibratedClassifierCV):
                approxsvm.verify(fast, source, FRAME)


def test_sample_rows_have_the_columns_of_the_model():
    for source in (SVC().fit(FRAME, Y), make_pipeline(StandardScaler(), SVC()).fit(FRAME, Y)):
        for wrong in (
            NUMBERS[:, :5],
            np.hstack([NUMBERS, NUMBERS]),
            FRAME[list("abcde")],
            sparse.csr_matrix(NUMBERS[:, :5]),
        ):
            with pytest.raises(InputError, match=r"X has \d+ features, but the model has 6"):
                approxsvm.compile(source, wrong)
        for wrong in (FRAME[list("fedcba")], FRAME.rename(columns={"a": "z"})):
            with pytest.raises(InputError, match="feature names should match"):
                approxsvm.compile(source, wrong)


def test_arrays_for_a_model_with_names_warn_once_per_call():
    for source in (
        SVC(break_ties=True).fit(FRAME, np.arange(100) % 3),
        CalibratedClassifierCV(SVC(), cv=2).fit(FRAME, Y),
    ):
        fast = approxsvm.compile(source)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            fast.predict(FRAME)
        for rows in (NUMBERS, NUMBERS.astype(np.float16), sparse.csr_matrix(NUMBERS)):
            with pytest.warns(UserWarning, match="valid feature names") as caught:
                fast.predict(rows)
            assert len(caught) == 1


@pytest.mark.parametrize("task", TASKS)
def test_what_is_no_matrix_of_finite_numbers_is_refused(compiled, task):
    _, fast = compiled[task]
    X = whole_numbers(1, 5)
    for wrong in (X[:, :5], X[0], X[np.newaxis], X.astype(complex), np.full(X.shape, "red")):
        with pytest.raises((ValueError, TypeError)):
            fast.predict(wrong)
    for number in (np.nan, np.inf, -np.inf):
        for dtype in (np.float64, np.float32, *([] if task == "pipeline" else [np.float16])):
            bad = X.astype(dtype)
            bad[3, 2] = number
            for rows in (bad, np.asfortranarray(bad)):
                with pytest.raises(InputError, match="Input X contains"):
                    fast.predict(rows)


@pytest.mark.parametrize("task", ["two classes", "pipeline", "quadratic", "ensemble"])
def test_a_place_is_that_in_all_rows(compiled, task):
    """Row numbers are also correct for rows that are converted and mapped in chunks."""
    _, fast = compiled[task]
    X = np.zeros((40_000, N_FEATURES), np.float32 if task == "pipeline" else np.float16)
    X[35_000, 4] = np.nan
    with pytest.raises(InputError, match=r"row 35000, column 4"):
        fast.predict(X)


@pytest.mark.parametrize("n_features", [1, 3, 8, 17, 40])
def test_what_is_not_finite_is_found_in_every_lane(target, n_features):
    """Sums that overflow float32 do not hide NaN."""
    rng = np.random.default_rng(n_features)
    X = rng.normal(size=(90, n_features))
    native = approxsvm.compile(SVC(gamma=0.1).fit(X, X[:, 0] > 0), mode="approximate", degree=2).artifact.native
    native = _native.Predictor(native, target)
    for dtype, number in itertools.product((np.float32, np.float64), (np.nan, np.inf, -np.inf)):
        rows = X.astype(dtype)
        rows[-2] = np.finfo(dtype).max
        assert np.isfinite(native.dense(rows, 1)).all()
        for row, column in {(int(k), int(k) % n_features) for k in [*rng.integers(0, 88, 25), 0, 87, 89]}:
            bad = rows.copy()
            bad[row, column] = number
            for ask, given in ((native.dense, (bad,)), (native.csr, sparse_rows(bad))):
                with pytest.raises(InputError, match=rf"row {row}, column {column}\b"):
                    ask(*given, 1)


def sparse_rows(X):
    made = sparse.csr_array(X)
    return made.indptr, made.indices, made.data


def changed(kind, **arrays):
    """Return a sparse matrix whose arrays are replaced after its creation, which SciPy does not check."""
    made = sparse.coo_matrix(whole_numbers(1, 5) + 1.0).asformat(kind)
    for name, change in arrays.items():
        array = getattr(made, name).copy()
        setattr(made, name, change(array))
    return made


def put(position, value):
    def change(array):
        array[position] = value
        return array

    return change


# 5 rows of 6 entries each; entry 7 is in row 1, column 1.
BROKEN = {
    "column beyond": (lambda: changed("csr", indices=put(7, 10**6)), "row 1, column 1000000, but 5 rows and 6 columns"),
    "next column": (lambda: changed("csr", indices=put(11, 6)), "row 1, column 6, but 5 rows and 6 columns"),
    "negative column": (lambda: changed("csr", indices=put(7, -1)), "row 1, column -1, but"),
    "indptr descends": (lambda: changed("csr", indptr=put(2, 3)), "indptr of X descends at row 1"),
    "indptr beyond": (lambda: changed("csr", indptr=put(5, 2**31 - 1)), "row 4 of X ends at entry 2147483647"),
    "indptr starts late": (lambda: changed("csr", indptr=put(0, 1)), "the first of them 0"),
    "indptr too short": (lambda: changed("csr", indptr=lambda a: a[:-1]), "indptr of X has 5 numbers, expected 6"),
    "few values": (lambda: changed("csr", data=lambda a: a[:7]), "30 indices and 7 values"),
    "fractions": (lambda: changed("csr", indices=lambda a: a + 0.5), "expected integers"),
    "row beyond in csc": (lambda: changed("csc", indices=put(7, 10**6)), "row 1000000, column 1, but 5 rows"),
    "indptr of csc": (lambda: changed("csc", indptr=put(2, 3)), "indptr of X descends at column 1"),
    "block beyond": (lambda: changed("bsr", indices=put(-1, 10**6)), "but 5 rows and 6 columns"),
    "row beyond in coo": (lambda: changed("coo", row=put(7, 5)), "row 5, column 1, but 5 rows"),
    "negative row in coo": (lambda: changed("coo", row=put(7, -1)), "row -1, column 1, but 5 rows"),
    "duplicates": (
        lambda: sparse.csr_matrix((np.ones(3), [1, 4, 4], [0, 0, 1, 3, 3, 3]), shape=(5, 6)),
        r"row 2 of X has several entries in one column, .*: X.sum_duplicates\(\)",
    ),
    "duplicates in csc": (
        lambda: sparse.csc_matrix((np.ones(3), [1, 2, 2], [0, 0, 1, 1, 1, 3, 3]), shape=(5, 6)),
        "row 2 of X has several entries in one column",
    ),
    "sum beyond float64 in coo": (
        lambda: sparse.coo_matrix((np.array([1.0, 1.5e308, 1.5e308]), ([1, 2, 2], [1, 4, 4])), shape=(5, 6)),
        r"\(row 2, column 4\)",
    ),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_broken_sparse_matrices_are_refused(compiled, kind):
    """For every kind of model, nothing reads beyond the arrays, and no entry counts as an unseen feature by mistake."""
    make, message = BROKEN[kind]
    X = whole_numbers(0, 60)
    clipped = make_pipeline(MinMaxScaler(clip=True), SVC()).fit(X, X[:, 0] > 1)  # turns infinity into a finite number
    asked = [approxsvm.compile(clipped).predict]
    for source, fast in compiled.values():
        asked += [fast.predict, fast.certified, fast.error_bound, lambda rows, one=source: approxsvm.compile(one, rows)]
    for ask in asked:
        with pytest.raises(InputError, match=message):
            ask(make())
    with pytest.raises(InputError):
        approxsvm.gamma_max(make())


def test_a_flag_of_scipy_does_not_hide_duplicates(compiled):
    for _, fast in compiled.values():
        rows = BROKEN["duplicates"][0]()
        rows.has_canonical_format = rows.has_sorted_indices = True
        with pytest.raises(InputError, match="row 2 of X has several entries in one column"):
            fast.predict(rows)


@pytest.mark.skipif(sys.platform != "linux", reason="limits data, but not maps of files, as Linux does")
def test_a_large_file_is_not_copied(tmp_path):
    """Memory other than the mapped file stays below 100 MB, for files of 256 MB and of 128 MB (512 MB as float64)."""
    program = textwrap.dedent(f"""
        import re, resource
        import numpy as np
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        from sklearn.svm import SVC
        import approxsvm
        X = np.random.default_rng(0).normal(size=(12, 2048))
        for source, n_classes, dtype in (
            (SVC(gamma=1e-4), 2, "float32"), (SVC(gamma=1e-4), 3, "float16"),
            (make_pipeline(StandardScaler(), SVC(gamma=1e-4)), 2, "float32"), (SVC(kernel="linear"), 2, "float16"),
        ):
            source.fit(X, np.arange(12) % n_classes)
            fast = approxsvm.compile(source, mode="exact")
            rows = np.memmap({str(tmp_path / "rows")!r}, dtype=dtype, mode="r", shape=(32768, 2048))
            used = int(re.search(r"VmData:\\s+(\\d+)", open("/proc/self/status").read())[1]) << 10
            resource.setrlimit(resource.RLIMIT_DATA, (used + (100 << 20), resource.getrlimit(resource.RLIMIT_DATA)[1]))
            labels = fast.predict(rows)
            assert labels.shape == (32768,)
            assert (labels == source.predict(np.zeros((1, 2048)))[0]).all()
            try:
                np.ones(120 << 20, np.uint8)
            except MemoryError:
                print("limited")
    """)
    with open(tmp_path / "rows", "wb") as file:
        file.truncate(32768 * 2048 * 4)
    environment = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "PATH": "/usr/bin:/bin"}
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, env=environment
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout == 4 * "limited\n"
