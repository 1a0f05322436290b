"""Arrow tables, and the interfaces that use them: DuckDB, Dask, and the command `score` on CSV and Parquet files."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from click.testing import CliRunner

import approxsvm
from approxsvm.cli import main
from approxsvm.errors import InputError
from approxsvm.runtime.evaluator import available_outputs
from zoo.executors import Executor
from zoo.executors.in_python import Parts, from_outputs
from zoo.specimens import Answers, RefusedError, Specimen, with_nulls
from zoo.tables import Table, numpy_dtype

_MANY = 1 << 30
_TEXTS = ("text", "str", "category")
_NUMBERS = ("float64", "float32", "int64", "int32", "int16", "int8", "uint8", "uint16", "uint64", "bool")


def names_of(specimen: Specimen, table: Table) -> list[str]:
    """Return a table's column names for this model."""
    if specimen.artifact.takes_texts:
        return ["text"]
    return list(table.names or specimen.artifact.feature_names or (f"f{j}" for j in range(len(table.kinds))))


def as_arrow(specimen: Specimen, table: Table) -> pa.Table:
    """Make an Arrow table in batches of seven rows; NaN stays NaN, and missing strings become null."""
    columns = {}
    for j, name in enumerate(names_of(specimen, table)):
        column, kind = table.values[:, j], table.kinds[j]
        if kind in _TEXTS:
            found = pa.array([None if pd.isna(text) else text for text in column.tolist()], pa.string())
            columns[name] = found.dictionary_encode() if kind == "category" else found
        else:
            columns[name] = pa.array(column.astype(numpy_dtype(kind)))
    return pa.Table.from_batches(pa.table(columns).to_batches(max_chunksize=7))


def from_columns(specimen: Specimen, columns: dict[str, Any]) -> Answers:
    """Convert output columns by name, such as "probability_red", to answers."""
    outputs: dict[str, Any] = {}
    for output in available_outputs(specimen.artifact):
        chosen = [column for name, column in columns.items() if name == output or name.startswith(f"{output}_")]
        outputs[output] = np.stack([np.asarray(column) for column in chosen], axis=1)
    if "label" in outputs:
        outputs["label"] = outputs["label"].astype(specimen.labels.dtype)
    return from_outputs(specimen, outputs)


class InTable(Executor):
    """An interface that maps columns to columns, with results bit-identical to those for rows in a large batch."""

    share, twin = 0.08, Parts(_MANY)
    kinds: tuple[str, ...] = (*_NUMBERS, *_TEXTS)

    def takes(self, specimen: Specimen, table: Table) -> bool:
        is_held = table.container in ("array", "frame", "texts") and set(table.kinds) <= set(self.kinds)
        return is_held and table.has_texts_alone

    def seen(self, specimen: Specimen, table: Table) -> Table:
        return specimen.once(("with nulls", table), lambda one: with_nulls(one, table))


class Arrow(InTable):
    """`predict_arrow`, which refuses an invalid row or returns nulls for it."""

    def __init__(self, on_error: Any) -> None:
        self.name, self.on_error = f"predict_arrow, {on_error}", on_error
        self.names_row = on_error == "fail"

    def answers(self, specimen: Specimen, table: Table) -> Answers:
        model = specimen.once("Predictor", lambda one: approxsvm.Predictor(one.artifact))
        outputs = available_outputs(specimen.artifact)
        try:
            found = model.predict_arrow(as_arrow(specimen, table), outputs=outputs, on_error=self.on_error)
        except InputError as error:
            raise RefusedError(str(error)) from error
        lacking = np.flatnonzero(found[0].is_null().to_numpy())
        if len(lacking):  # with `on_error="null"`, raise what "fail" raises for the row
            try:
                Arrow("fail").answers(specimen, table.take(slice(lacking[0], lacking[0] + 1)))
            except RefusedError as error:
                raise RefusedError(str(error).replace("row 0", f"row {lacking[0]}")) from error
            raise AssertionError(f"row {lacking[0]} is null, and answered if bad rows fail")
        return from_columns(specimen, {name: found[name].to_numpy() for name in found.schema.names})


class DuckDB(InTable):
    """An SQL function."""

    name, share, names_row = "DuckDB", 0.02, False

    def takes(self, specimen: Specimen, table: Table) -> bool:
        plain = {"float64", *_TEXTS}  # numbers are DOUBLE
        return super().takes(specimen, table) and (set(table.kinds) <= plain or not specimen.artifact.row_dtypes)

    def answers(self, specimen: Specimen, table: Table) -> Answers:
        import duckdb

        from approxsvm.duckdb import register

        names = names_of(specimen, table)
        outputs = available_outputs(specimen.artifact)
        rows = as_arrow(specimen, table).append_column("row number", pa.array(range(len(table.values))))
        with duckdb.connect() as connection:
            connection.register("many_rows", rows)
            register(connection, "svm", specimen.path, outputs=outputs)
            casts = ["::DOUBLE" if kind == "bool" else "" for kind in table.kinds]
            quoted = ", ".join(_quoted(name) + cast for name, cast in zip(names, casts, strict=True))
            query = f'SELECT svm({quoted}) AS answer FROM many_rows ORDER BY "row number"'
            try:
                found = connection.sql(query).to_arrow_table()["answer"].combine_chunks()
            except duckdb.Error as error:
                if "InputError" not in str(error):
                    raise
                raise RefusedError(str(error)) from error
        if found.null_count:
            raise RefusedError("a NULL makes a NULL")
        names = [field.name for field in found.type]
        return from_columns(specimen, dict(zip(names, (part.to_numpy(False) for part in found.flatten()), strict=True)))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


class Dask(InTable):
    """A Dask frame with two partitions."""

    name, share = "Dask", 0.02

    def answers(self, specimen: Specimen, table: Table) -> Answers:
        import dask.dataframe as dd

        from approxsvm.dask import score

        frame = as_arrow(specimen, table).to_pandas()
        ddf = dd.from_pandas(frame, npartitions=2)
        try:
            lazy = score(ddf, specimen.path, outputs=available_outputs(specimen.artifact))
            found = lazy.compute(scheduler="sync")
        except InputError as error:
            raise RefusedError(str(error).replace("the row of index", "row")) from error
        return from_columns(specimen, {name: found[name].to_numpy() for name in found.columns})


class Command(InTable):
    """`approxsvm score`, with input and output files in the same format."""

    share = 0.02

    def __init__(self, suffix: str) -> None:
        self.name, self.suffix = f"score, {suffix}", suffix
        self.names_row = suffix == "parquet"

    def takes(self, specimen: Specimen, table: Table) -> bool:
        if self.suffix == "csv" and not set(table.kinds) <= {"float64", "text", "str"}:
            return False  # numbers in text are read as float64
        empty = [text for j, kind in enumerate(table.kinds) if kind in _TEXTS for text in table.values[:, j]]
        has_empty = any(pd.isna(text) or text == "" for text in empty)  # indistinguishable in a CSV file
        return super().takes(specimen, table) and not (self.suffix == "csv" and has_empty)

    def answers(self, specimen: Specimen, table: Table) -> Answers:
        rows, given = (specimen.folder / f"{name}.{self.suffix}" for name in ("rows", "answers"))
        data = as_arrow(specimen, table)
        if self.suffix == "csv":
            if not specimen.artifact.feature_names and len(table.kinds) > 2 and table.values[0, 0] % 1:
                data = data.rename_columns(list(map(str, range(len(table.kinds)))))  # pandas' names for an array
            pyarrow.csv.write_csv(data, rows)
        else:
            pyarrow.parquet.write_table(data, rows)
        outputs = available_outputs(specimen.artifact)
        arguments = ["score", specimen.path, rows, "-o", given, "--outputs", ",".join(outputs), "-j", "1"]
        done = CliRunner().invoke(main, list(map(str, arguments)))
        if done.exit_code != 0:
            if done.exception is not None and not isinstance(done.exception, SystemExit):
                raise done.exception
            raise RefusedError(done.output)
        found = self._read(given)
        return from_columns(specimen, {name: found[name].to_numpy() for name in found.schema.names})

    def _read(self, path: Any) -> Any:
        return pyarrow.parquet.read_table(path) if self.suffix == "parquet" else pyarrow.csv.read_csv(path)


TABLES: tuple[Executor, ...] = (
    Parts(_MANY),
    *map(Arrow, ("fail", "null")),
    DuckDB(),
    Dask(),
    *map(Command, ("csv", "parquet")),
)
