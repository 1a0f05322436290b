"""Models in SQL: the same numbers as from predict, and SQL's own rule for NULL."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import GOLDEN
from sklearn.datasets import load_iris
from sklearn.svm import SVC

import approxsvm

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed; it is part of the extra duckdb")
duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed; it is the extra duckdb")

from approxsvm.duckdb import register  # noqa: E402
from approxsvm.errors import InputError  # noqa: E402

X, SPECIES = load_iris(return_X_y=True)
ROWS = np.random.default_rng(0).normal(size=(5000, 4)) * 2.0 + [5.8, 3.0, 3.8, 1.2]


@pytest.fixture
def connection():
    with duckdb.connect() as found:
        table = pa.table(dict(zip("abcd", ROWS.T.copy(), strict=True))).append_column("id", pa.array(range(5000)))
        found.register("rows", table)
        yield found


def rows_of(connection, query):
    return connection.execute(query).fetchall()


@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        (np.array(["setosa", "versi", "virginica"]), "VARCHAR"),
        (np.array([10, 20, 30], np.int16), "SMALLINT"),
        (np.array([1, 2**63, 2**64 - 1], np.uint64), "UBIGINT"),
        (np.array([1.0, 2.0, 3.0], np.float16), "FLOAT"),
    ],
)
def test_labels(connection, labels, kind):
    """Labels span several vectors, and have the source's type."""
    fast = approxsvm.compile(SVC().fit(X, labels[SPECIES]), X)
    register(connection, "svm", fast)
    found = rows_of(connection, "SELECT svm(a, b, c, d), typeof(svm(a, b, c, d)) FROM rows ORDER BY id")
    assert [label for label, _ in found] == fast.predict(ROWS).tolist()
    assert {one for _, one in found} == {kind}


def test_null_is_null_and_the_rest_is_an_error(connection):
    fast = approxsvm.compile(SVC().fit(X, SPECIES), X)
    values = "(VALUES (1, 0.5), (2, NULL), (3, {})) t(id, x)"
    query = "SELECT {}(x, 1, 2, 3) FROM " + values + " ORDER BY id"
    register(connection, "svm", fast)
    register(connection, "mild", fast, on_error="null")
    first, third = fast.predict([[0.5, 1, 2, 3], [0.25, 1, 2, 3]]).tolist()
    assert rows_of(connection, query.format("svm", 0.25)) == [(first,), (None,), (third,)]
    for bad, words in (("'nan'::DOUBLE", "is NaN"), ("'inf'::DOUBLE", "is infinite")):
        with pytest.raises(duckdb.Error, match=rf"svm\(\), row \d of a vector: column 'f0' {words}"):
            rows_of(connection, query.format("svm", bad))
        assert rows_of(connection, query.format("mild", bad)) == [(first,), (None,), (None,)]


def test_a_struct_is_null_as_a_whole(connection):
    fast = approxsvm.compile(SVC().fit(X, SPECIES), X)
    for on_error, bad in (("fail", "NULL"), ("null", "NULL"), ("null", "'nan'::DOUBLE")):
        register(connection, "svm", fast, outputs=["label", "certified"], on_error=on_error)
        found = rows_of(connection, f"SELECT svm(x, 1, 2, 3) FROM (VALUES (0.5), ({bad})) t(x)")
        assert [answer is None for (answer,) in found] == [False, True]


def test_what_a_model_does_not_have(connection):
    with pytest.raises(InputError, match="a function has one model, but got 2"):
        register(connection, "svm", dict.fromkeys("ab", GOLDEN / "iris_classes.asvm"))
    with pytest.raises(InputError, match="no output 'probability'"):
        register(connection, "svm", GOLDEN / "iris_classes.asvm", outputs=["probability"])
    with pytest.raises(InputError, match="on_error must be one of 'fail', 'null', not 'skip'"):
        register(connection, "svm", GOLDEN / "iris_classes.asvm", on_error="skip")
    register(connection, "svm", GOLDEN / "iris_classes.asvm")
    with pytest.raises(duckdb.Error, match="svm"):
        rows_of(connection, "SELECT svm(a, b, c) FROM rows")
