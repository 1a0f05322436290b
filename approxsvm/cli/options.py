"""Options shared by several commands, and the records in which commands receive them."""

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from importlib.util import find_spec
from inspect import signature
from pathlib import Path
from typing import Any

import click

import approxsvm
from approxsvm.cli.group import INPUT
from approxsvm.errors import InputError, ModelFormatError, UnsupportedModelError

_Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
# Extensions of files in which labels can only be in a column.
_TABLES = (".npy", ".npz", ".csv", ".parquet")


@dataclass(frozen=True)
class RowsFormat:
    """Format of the rows and labels in a file, and the choice of feature columns in a table."""

    dense: bool
    delimiter: str | None
    labels: bool
    columns: str | None = None
    target: str | None = None
    header: bool | None = None

    def is_dense(self, path: Path) -> bool:
        """Return whether a file is dense text: a delimiter implies it unless the extension indicates another format."""
        return self.dense or (self.delimiter is not None and path.suffix.lower() not in _TABLES)

    def read(self, path: Path, n_features: int | None, names: Sequence[str] | None = None) -> Any:
        """Read the rows of a file; `names` lists the columns to use if the user has chosen none."""
        if not self.is_dense(path):
            rows = approxsvm.read_rows(
                path,
                n_features=n_features,
                columns=names if self.columns is None else column_names(self.columns),
                target=self.target,
                delimiter=character(self.delimiter),
                header=self.header,
            )
        elif self.columns is not None or self.target is not None:
            raise InputError("--columns and --target are for .csv and .parquet files, without --dense")
        else:
            rows = self.read_dense(path, n_features)[0]
        return check_rows(rows, path)

    def read_for(self, model: Any, path: Path) -> Any:
        """Read rows for a model or an artifact; without feature names, columns are matched by position."""
        from approxsvm.frames.columns import choose_columns, frame_names, warn
        from approxsvm.frames.raw_columns import RawColumns  # imported here because the module needs NumPy

        raw = RawColumns.of(model)
        is_found_by_name = raw.by_column and raw.names is not None and path.suffix.lower() in (".csv", ".parquet")
        sought = raw.names if self._reads_no_names(path) else None
        rows = self.read(path, None if is_found_by_name else raw.n_columns, sought)
        names = frame_names(rows)
        refused = getattr(getattr(model, "row_dtypes", None), "refused", {})
        if hasattr(rows, "tocsr") and any("sparse" in kind for kind in refused):
            rows = rows.toarray()
        if path.suffix.lower() == ".csv" and refused and hasattr(rows, "dtypes"):
            # Numbers in a text file have no dtype; pandas reads some columns as integers, and the source might compute
            # in integers.
            rows = rows.astype({name: float for name, dtype in rows.dtypes.items() if dtype.kind in "iu"})
        if names is None and hasattr(rows, "to_numpy"):
            # Columns are matched by position. With string columns, the array has dtype object, because numbers in a
            # numeric array would be string codes.
            return rows.to_numpy(object if raw.texts else None)
        if names is None or raw.names is not None:
            return rows
        if self.columns is None:
            choose_columns(names, raw, tell=warn)
            numbered = [f"f{k}" for k in range(raw.n_columns)]
            rows = rows[numbered] if set(numbered) <= set(names) else rows
        return rows.to_numpy()

    def _reads_no_names(self, path: Path) -> bool:
        """Return whether the rows read from a file have no column names, so that the reader must select the columns."""
        if path.suffix.lower() != ".csv" or self.is_dense(path) or find_spec("pandas") is not None:
            return False
        from approxsvm.frontends.data import csv_names  # imported here because the module needs NumPy

        return csv_names(path, character(self.delimiter), self.header) is not None

    def truth(self, path: Path, n_features: int) -> Any:
        """Read the true labels or targets; None if the file has no labels."""
        if self.is_dense(path) and not self.labels:
            return None
        if self.is_dense(path):
            return self.read_dense(path, n_features)[1]
        if path.suffix.lower() not in _TABLES:
            return approxsvm.read_libsvm_data(path, n_features=n_features)[1]
        if self.target is None:
            return None
        delimiter = character(self.delimiter)
        rows = approxsvm.read_rows(path, columns=[self.target], delimiter=delimiter, header=self.header)
        return rows.iloc[:, 0] if hasattr(rows, "iloc") else rows[:, 0]

    def read_dense(self, path: Path, n_features: int | None) -> Any:
        """Read rows and labels from dense text."""
        delimiter = character(self.delimiter)
        return approxsvm.read_dense(
            path, delimiter=delimiter, labels=self.labels, n_features=n_features, header=self.header
        )


def _as_record(options: Sequence[_Decorator], name: str, record: Callable[..., Any]) -> _Decorator:
    """Return a decorator that adds options to a command; their values become a record in the argument `name`."""

    def add(command: Any) -> Any:
        @wraps(command)
        def with_record(*args: Any, **given: Any) -> Any:
            fields = {key: given.pop(key) for key in signature(record).parameters if key in given}
            return command(*args, **given, **{name: record(**fields)})

        result: Any = with_record
        for option in reversed(options):
            result = option(result)
        return result

    return add


_DENSE_OPTIONS = (
    click.option(
        "--dense", is_flag=True, help="Read the data as dense text: one row per line, with a value for every column."
    ),
    click.option(
        "--delimiter",
        help="Character between the columns of a .csv file or of dense text. With any other suffix it implies --dense. "
        "Default: a comma in .csv files, white space in dense text.",
    ),
    click.option(
        "--header/--no-header",
        default=None,
        help="Whether the first line of dense text or of a .csv file has column names. Default: yes unless all cells "
        "are numbers. A line 0, 1, 2, ... is taken for names; this option is needed if it may also be a row of data.",
    ),
    click.option(
        "--labels/--no-labels",
        "labels",
        default=True,
        show_default=True,
        help="Whether the first column of dense text contains labels.",
    ),
)
_TABLE_OPTIONS = (
    click.option(
        "--columns",
        metavar="NAME,NAME,...",
        help="The feature columns of a .csv or .parquet file, in the model's order. Default: all columns. The columns "
        "of a file without names are called 1, 2, ...",
    ),
    click.option("--target", help="A column of a .csv or .parquet file that is not a feature, such as the label."),
)
dense_options = _as_record(_DENSE_OPTIONS, "rows_format", RowsFormat)
rows_options = _as_record((*_TABLE_OPTIONS, *_DENSE_OPTIONS), "rows_format", RowsFormat)


@dataclass(frozen=True)
class SourceFormat:
    """Format of a model file, and the scaling of the model's rows and target."""

    trust: bool
    range_file: Path | None
    restore_target: bool

    def read(self, path: Path, n_features: int | None) -> tuple[Any, Any]:
        """Return a model and its source, which is an estimator or the path to the model.

        If there is a range file, the source is the model itself.
        """
        from approxsvm.frontends import read_estimator_file  # imported here because the module needs NumPy
        from approxsvm.frontends.sklearn.vectorizers import split

        if self.range_file is None and self.restore_target:
            raise InputError("--restore-target needs --range, the file with the range of the target")
        estimator = read_estimator_file(path, trust=self.trust)
        model = approxsvm.read_any(path if estimator is None else split(estimator)[1], n_features=n_features)
        if self.range_file is None:
            return model, path if estimator is None else estimator
        model = approxsvm.with_range_file(model, self.range_file, restore_target=self.restore_target)
        return model, model

    def read_source(self, path: Path, compiled: Any) -> tuple[Any, Any]:
        """Read the source of a compiled model, as `read` does; raise InputError for a model with other features."""
        try:
            return self.read(path, compiled.n_features_in_)
        except (ModelFormatError, UnsupportedModelError):
            other = self.read(path, None)[0]
        raise InputError(
            f"{path}: not this artifact's source: it has {other.n_raw_features} features, but the artifact has "
            f"{compiled.n_features_in_}"
        )


_SOURCE_OPTIONS = (
    click.option(
        "--range",
        "range_file",
        type=INPUT,
        help="Range file that svm-scale -s wrote for the training rows, the scale file of R's write.svm, or the file "
        "rescale of GRASS GIS's i.svm.train. The artifact then takes unscaled rows and scales these rows itself.",
    ),
    click.option(
        "--restore-target",
        is_flag=True,
        help="With --range: return regression values in the units of the unscaled target (svm-scale -y).",
    ),
    click.option(
        "--trust", is_flag=True, help="Load a pickle, which can run any code, or a skops file with unknown types."
    ),
)
source_options = _as_record(_SOURCE_OPTIONS, "source_format", SourceFormat)


def choice(flag: str, choices: str, default: str, help: str) -> _Decorator:
    """Create an option with a few possible values, whose help shows the default."""
    return click.option(flag, type=click.Choice(choices.split()), default=default, show_default=True, help=help)


def check_rows(rows: Any, path: Path) -> Any:
    """Return rows unchanged; raise InputError if there are none."""
    if rows.shape[0] == 0:
        raise InputError(f"{path}: the file has no rows")
    return rows


def character(delimiter: str | None) -> str | None:
    """Return the delimiter as one character; the user may write a tab as \\t."""
    return {"\\t": "\t"}.get(delimiter, delimiter) if delimiter is not None else None


def column_names(text: str | None) -> list[str] | None:
    """Split comma-separated names; a name that contains a comma must be quoted."""
    return None if text is None else next(csv.reader([text], skipinitialspace=True), [])
