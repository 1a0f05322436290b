"""Models as DuckDB SQL functions: ``SELECT id, svm(a, b, c) FROM 'rows.parquet'``."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from approxsvm.errors import InputError
from approxsvm.runtime.evaluator import open_evaluators
from approxsvm.system.packages import import_package

pa = import_package("pyarrow", "duckdb", "approxsvm.duckdb")
duckdb = import_package("duckdb", "duckdb", "approxsvm.duckdb")

from approxsvm.integrations.arrow.batches import Block, Scorer  # noqa: E402  # after the packages, see dask.py

_STORED = {pa.float16(): pa.float32()}  # label types missing from DuckDB


def register(
    connection: Any,
    name: str,
    model: Any,
    *,
    outputs: Sequence[str] | None = None,
    on_error: Literal["fail", "null"] = "fail",
) -> None:
    """Register a model as a vectorized function of a DuckDB connection.

    The function takes the features in the model's order. Each feature is a DOUBLE, or a VARCHAR if it is a string; a
    model for documents takes one VARCHAR. Features that the model does not use, such as columns dropped by a
    ColumnTransformer, may have any type and value. The function returns the label, in the type of the source model's
    labels, or a STRUCT if several columns are requested. If a used feature is NULL, the result is NULL, as usual in
    SQL, unless a pipeline step accepts missing values. Every cursor of the connection can call the function, but only
    the cursor that registered it can replace it.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection
    name : str
        Name of the function. Any function registered earlier under this name is replaced.
    model : path, bytes, Artifact, Predictor or compiled estimator
    outputs : sequence of {"label", "value", "probability", "error_bound", "certified"}, optional
        Default: "label", or "value" for a regressor.
    on_error : {"fail", "null"}
        Treatment of NaN, infinity and numbers beyond the model's range: the query fails, or the result is NULL.

    Raises
    ------
    InputError
        `model` is a mapping or lacks a requested output, or `on_error` is invalid.
    MissingPackageError
        duckdb or pyarrow is not installed: ``pip install 'approxsvm[duckdb]'``.

    Examples
    --------
    >>> import approxsvm.duckdb, duckdb
    >>> connection = duckdb.connect()
    >>> approxsvm.duckdb.register(connection, "tumor", "models/breast_cancer.asvm")
    >>> connection.sql(f"SELECT tumor({', '.join(30 * ['0.5'])})").fetchall()
    [(-1,)]
    """
    if on_error not in ("fail", "null"):
        raise InputError(f"on_error must be one of 'fail', 'null', not {on_error!r}")
    if isinstance(model, Mapping):
        raise InputError(f"a function has one model, but got {len(model)}")
    evaluators = open_evaluators(model)
    (evaluator,) = evaluators.values()
    takes_texts = evaluator.artifact.takes_texts
    n_features = 1 if takes_texts else evaluator.artifact.n_raw_features
    names = ["text"] if takes_texts else [f"f{k}" for k in range(n_features)]
    scorer = Scorer(evaluators, outputs=outputs, columns=names, on_error=on_error)
    features = scorer.features(names)
    raw_columns = evaluator.artifact.raw_columns
    used = [0] if takes_texts else raw_columns.used.tolist()
    texts = {0} if takes_texts else raw_columns.texts
    needed = names if takes_texts else [names[k] for k in np.setdiff1d(used, raw_columns.takes_null)]
    schema = pa.schema([(names[k], pa.string() if k in texts else pa.float64()) for k in used])
    bound = scorer.bind(schema, features)
    # DuckDB's default treatment of NULL would also apply to columns that are unused or may be NULL.
    finds_nulls = on_error == "fail" and len(needed) < n_features

    def function(*columns: Any) -> Any:
        # DuckDB passes arrays, or chunked arrays if there are several chunks.
        arrays = [c.combine_chunks() if isinstance(c, pa.ChunkedArray) else c for c in (columns[k] for k in used)]
        batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
        rows = np.flatnonzero(_has_no_null(batch, needed)) if finds_nulls else np.arange(batch.num_rows)
        whole = batch.take(pa.array(rows)) if len(rows) < batch.num_rows else batch
        scored = bound.score(Block(whole, lambda row: f"{name}(), row {rows[row]} of a vector")).batch
        if whole is not batch:
            places = np.full(batch.num_rows, -1)
            places[rows] = np.arange(len(rows))
            scored = scored.take(pa.array(places, mask=places < 0))
        answers = [column.cast(_STORED.get(column.type, column.type)) for column in scored.columns]
        if len(answers) == 1:
            return answers[0]
        # The outputs of a row are either all null or all non-null.
        return pa.StructArray.from_arrays(answers, scored.schema.names, mask=answers[0].is_null())

    # DuckDB reads the parameters from the signature; one without an annotation accepts any type.
    kind, any_type = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.empty
    parameters = [
        inspect.Parameter(one, kind, annotation=any_type if k not in set(used) else str if k in texts else float)
        for k, one in enumerate(names)
    ]
    function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    stored = [field.with_type(_STORED.get(field.type, field.type)) for field in bound.schema]
    types = connection.from_arrow(pa.schema(stored).empty_table()).types
    answer = types[0] if len(types) == 1 else connection.struct_type(dict(zip(bound.schema.names, types, strict=True)))
    with suppress(duckdb.InvalidInputException):  # raised if there is no function with this name
        connection.remove_function(name)
    connection.create_function(
        name,
        function,
        ["VARCHAR" if k in texts else "DOUBLE" for k in range(n_features)] if len(used) == n_features else None,
        answer,
        type="arrow",
        null_handling="special" if on_error == "null" or finds_nulls else "default",
    )


def _has_no_null(batch: Any, names: Sequence[str]) -> npt.NDArray[np.bool_]:
    """Return a mask of the rows without nulls in the columns `names`."""
    has_values = np.ones(batch.num_rows, np.bool_)
    for name in names:
        has_values &= batch.column(name).is_valid().to_numpy(zero_copy_only=False)
    return has_values
