"""Predictions for record batches, used by all table engines."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from approxsvm.errors import InputError
from approxsvm.frames.columns import Features, Tell, check_names, choose_columns, warn
from approxsvm.frames.raw_columns import RawColumns
from approxsvm.frames.rows import finite_rows, zero_unused
from approxsvm.integrations.arrow.answers import AnswerColumns
from approxsvm.integrations.arrow.columns import FeatureColumns, TextRowsColumn, are_narrow
from approxsvm.runtime.gaps import answers_with_gaps
from approxsvm.system.packages import import_package

pa = import_package("pyarrow", "arrow", "scoring tables")
pc = import_package("pyarrow.compute", "arrow", "scoring tables")

Columns = FeatureColumns | TextRowsColumn
OnError = Literal["fail", "null", "skip"]
ON_ERROR = ("fail", "null", "skip")
_MAX_REASONS = 20  # maximum number of reasons reported for one batch
# Rows per batch of a whole table, such that the matrix stays in a cache while the core reads it.
_BATCH_ROWS = 1 << 16


@dataclass(frozen=True)
class Block:
    """Consecutive rows from a reader."""

    batch: Any  # pyarrow.RecordBatch of the columns; for LIBSVM text, only columns that can be copied
    place: Callable[[int], str]  # returns the name of the row with a given index: "rows.parquet, row 17"
    rows: Any = None  # features as an array or csr_array, if `batch` has no feature columns
    unreadable: Mapping[int, str] = field(default_factory=dict)  # reason for each unreadable row; such rows are empty
    lost: tuple[str, ...] = ()  # place and error of each earlier row that belongs to no block
    share: float | None = None  # fraction of the source read so far
    is_end: bool = False  # True for the block, without rows, that marks the end of the source


@dataclass(frozen=True)
class Scored:
    """Predictions for a block."""

    batch: Any  # pyarrow.RecordBatch
    n_rows: int  # number of rows in the block, including lost rows
    n_bad: int  # rows without a prediction
    reasons: tuple[str, ...]  # place and error of each of the first bad rows
    skipped: tuple[int, ...] = ()  # indices of the rows omitted from `batch`


class Scorer:
    """Models and options, before a table's columns are known.

    `evaluators` maps the prefix of output columns to a model's evaluator; `AnswerColumns` explains `outputs`. `keep`
    lists columns to copy to the result, before the outputs; `columns` lists the features in the models' order. For a
    row without a prediction, `on_error` "fail" raises an error, "null" returns null, and "skip" omits the row. Raises
    InputError if there is no model, an option is invalid, or two columns have the same name.
    """

    def __init__(
        self,
        evaluators: Mapping[str, Any],
        *,
        outputs: Sequence[str] | None = None,
        keep: Sequence[str] = (),
        columns: Sequence[str] | None = None,
        on_error: OnError = "fail",
    ) -> None:
        if not evaluators:
            raise InputError("no model to score with")
        if on_error not in ON_ERROR:
            raise InputError(f"on_error must be one of {', '.join(map(repr, ON_ERROR))}, not {on_error!r}")
        self.evaluators = dict(evaluators)
        self.keep = tuple(keep)
        self.columns = None if columns is None else tuple(columns)
        self.on_error = on_error
        several = len(self.evaluators) > 1
        self.answers = {
            name: AnswerColumns(evaluator.artifact, outputs, f"{name}_" if several else "")
            for name, evaluator in self.evaluators.items()
        }
        names = [*self.keep, *(field.name for answer in self.answers.values() for field in answer.fields)]
        twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
        if twice:
            raise InputError(f"two columns of the output would be named {twice[0]!r}")

    def features(
        self,
        names: Sequence[str],
        *,
        generated: bool = False,
        others: Sequence[str] | None = None,
        tell: Tell | None = None,
    ) -> dict[str, Features]:
        """Choose each model's feature columns from the given names, with `choose_columns`.

        A model without column names does not use the columns in `others` (default: the copied columns).
        """
        check_names(self.keep, names)
        return {
            name: choose_columns(
                names,
                evaluator.artifact.raw_columns,
                columns=self.columns,
                others=self.keep if others is None else others,
                generated=generated,
                tell=None if evaluator.artifact.takes_texts else tell,  # documents are not matched by position
            )
            for name, evaluator in self.evaluators.items()
        }

    def needed(self, features: Mapping[str, Features]) -> list[str]:
        """Return the distinct columns to read."""
        read = (name for names in features.values() for name in names if name is not None)
        return list(dict.fromkeys([*self.keep, *read]))

    def bind(
        self, schema: Any, features: Mapping[str, Features], *, text: bool = False, truths: Set[str] = frozenset()
    ) -> "BoundScorer":
        """Bind the models to the columns of a schema; with `text`, string columns are parsed as numbers or booleans."""
        matrices: dict[Any, Columns] = {}
        bound = {}
        for name, names in features.items():
            artifact = self.evaluators[name].artifact
            columns = artifact.raw_columns
            only = names[0] if len(names) == 1 else None
            is_text = artifact.takes_texts and only and TextRowsColumn.takes(schema.field(only).type)
            narrow = not is_text and are_narrow(schema, names, artifact.row_dtypes)
            key = (names, name if columns.texts or artifact.takes_texts else "", narrow)
            if key not in matrices and is_text and only:
                matrices[key] = TextRowsColumn(only, artifact.text_rows, columns)
            elif key not in matrices:
                matrices[key] = FeatureColumns(
                    schema, names, columns.n_columns, columns, text=text, truths=truths, narrow=narrow
                )
            bound[name] = matrices[key]
        return BoundScorer(self, schema, bound)

    def bind_schema(self, schema: Any) -> "BoundScorer":
        """Bind the models to the columns of a schema, chosen by their names."""
        return self.bind(schema, self.features(schema.names))

    def bind_rows(self, schema: Any, none: Any) -> "BoundScorer":
        """Bind the models to blocks of feature arrays or CSR matrices; `none` is an array or matrix without rows."""
        check_names(self.keep, schema.names)
        return BoundScorer(self, schema, {}, none)


class BoundScorer:
    """Thread-safe scorer for batches with one input schema; `schema` is the output schema."""

    def __init__(self, scorer: Scorer, schema: Any, features: Mapping[str, Columns], none: Any = None) -> None:
        self._scorer = scorer
        self._none = none
        self._features = dict(features)
        self._row_schema = schema
        kept = [pa.field(name, _plain_type(schema.field(name).type)) for name in scorer.keep]
        self.schema = pa.schema([*kept, *(field for answer in scorer.answers.values() for field in answer.fields)])

    def end(self) -> Block:
        """Return a block without rows that marks the end of a source."""
        # Not from_pylist(), which does not support every possible column type.
        nothing = [pa.nulls(0, column.type) for column in self._row_schema]
        return Block(
            pa.RecordBatch.from_arrays(nothing, schema=self._row_schema), str, self._none, share=1.0, is_end=True
        )

    def score(self, block: Block) -> Scored:
        """Score a block of rows; raise InputError if a row is bad and `on_error` is "fail"."""
        n_rows = block.batch.num_rows
        faults = dict(block.unreadable)
        columns = [_plain(block.batch.column(name)) for name in self._scorer.keep]
        rows: dict[int, Any] = {}
        for name, evaluator in self._scorer.evaluators.items():
            features = self._features.get(name)
            if id(features) not in rows:
                rows[id(features)] = block.rows if features is None else features.matrix(block.batch)
            answers = self._scorer.answers[name]
            columns += self._answers(evaluator, answers, rows[id(features)], block, features, faults)
        reasons = tuple(f"{block.place(row)}: {faults[row]}" for row in sorted(faults)[:_MAX_REASONS])
        if faults and self._scorer.on_error == "fail":
            raise InputError(reasons[0])
        batch = pa.RecordBatch.from_arrays(columns, schema=self.schema)
        skipped = tuple(sorted(faults)) if self._scorer.on_error == "skip" else ()
        if skipped:
            try:
                batch = batch.take(pa.array(np.setdiff1d(np.arange(n_rows), skipped)))
            except pa.ArrowNotImplementedError as error:  # for example, Arrow cannot filter lists of views
                raise InputError(f"rows of a kept column cannot be skipped, only nulled: {error}") from None
        n_lost = len(block.lost)
        return Scored(batch, n_rows + n_lost, len(faults) + n_lost, (*block.lost[:_MAX_REASONS], *reasons), skipped)

    def _answers(
        self,
        evaluator: Any,
        answers: AnswerColumns,
        rows: Any,
        block: Block,
        features: Columns | None,
        faults: dict[int, str],
    ) -> list[Any]:
        """Return one model's columns, with nulls for missing predictions; add the reasons to `faults`."""
        reasons_by_row: dict[int, str] = dict(block.unreadable)
        if not reasons_by_row:
            try:
                return answers.arrays(evaluator.answers(rows, answers.outputs))
            except InputError:
                pass  # the bad rows and their reasons are found below
        columns = evaluator.artifact.raw_columns
        finite = finite_rows(zero_unused(rows, columns), columns)
        for row in np.flatnonzero(~finite).tolist():
            reason = "" if len(reasons_by_row) > _MAX_REASONS else _fault(block, features, rows, row, columns)
            reasons_by_row.setdefault(row, reason)
        candidates = np.flatnonzero(finite & ~np.isin(np.arange(block.batch.num_rows), list(block.unreadable)))
        whole, answered_rows, rejected = answers_with_gaps(
            evaluator, rows, candidates, answers.outputs, stop=self._scorer.on_error == "fail"
        )
        reasons_by_row |= rejected
        for row, reason in reasons_by_row.items():
            faults.setdefault(row, reason)
        positions, has_answer = np.zeros(block.batch.num_rows, np.int64), np.zeros(block.batch.num_rows, np.bool_)
        positions[answered_rows], has_answer[answered_rows] = np.arange(len(answered_rows)), True
        where = pa.array(positions, mask=~has_answer)
        return [array.take(where) for array in answers.arrays(whole)]


def predict_stream(
    evaluator: Any,
    data: Any,
    *,
    outputs: Sequence[str] | None,
    keep: Sequence[str],
    columns: Sequence[str] | None,
    on_error: OnError,
) -> Any:
    """Implement `Predictor.predict_arrow`."""
    scorer = Scorer({"model": evaluator}, outputs=outputs, keep=keep, columns=columns, on_error=on_error)
    schema, batches = _stream(data)
    sentences: list[str] = []
    bound = scorer.bind(schema, scorer.features(schema.names, tell=sentences.append))
    for sentence in sentences:
        warn(sentence, stacklevel=3)  # attribute the warning to the caller of predict_arrow
    return score_batches(bound, schema, batches)[0]


def score_batches(
    bound: BoundScorer, schema: Any, batches: Iterable[Any], place: Callable[[int], str] = "row {}".format
) -> tuple[Any, slice | npt.NDArray[np.intp]]:
    """Return a table of predictions for batches with one schema, and the rows' indices; `place` names bad rows."""
    first, answers, skipped = 0, [], []
    for batch in batches:
        for piece in pieces(batch):
            if piece.schema != schema:
                raise InputError(f"a batch has the columns {piece.schema.names}, but the first one has {schema.names}")
            scored = bound.score(Block(piece, _offset(first, place)))
            answers.append(scored.batch)
            skipped += [first + row for row in scored.skipped]
            first += piece.num_rows
    rows = np.setdiff1d(np.arange(first), skipped) if skipped else slice(first)
    return pa.Table.from_batches(answers, bound.schema), rows


def pieces(batch: Any, n_rows: int = _BATCH_ROWS) -> Iterator[Any]:
    """Yield slices of a batch with at most `n_rows` rows each, without copying; yield nothing for an empty batch."""
    for first in range(0, batch.num_rows, n_rows):
        yield batch.slice(first, n_rows)


def _stream(data: Any) -> tuple[Any, Iterable[Any]]:
    """Return the schema and the batches of Arrow data of any supported type."""
    if isinstance(data, pa.RecordBatch):
        return data.schema, [data]
    if isinstance(data, pa.Table):
        return data.schema, data.to_batches()
    if hasattr(data, "__arrow_c_stream__"):
        reader = pa.RecordBatchReader.from_stream(data)
        return reader.schema, reader
    try:
        batches = iter(data)
        first = next(batches, None)
    except TypeError:
        raise InputError(f"expected Arrow columns or batches, got {type(data).__name__}") from None
    if not isinstance(first, pa.RecordBatch):
        raise InputError(f"expected Arrow columns or batches, got {type(first).__name__}")
    return first.schema, (batch for some in ([first], batches) for batch in some)


def _offset(first: int, place: Callable[[int], str]) -> Callable[[int], str]:
    return lambda row: place(first + row)


def _fault(block: Block, features: Columns | None, rows: Any, row: int, used: RawColumns) -> str:
    if features is not None:
        return features.fault(block.batch, row, used)
    if isinstance(rows, np.ndarray):
        columns, values = np.arange(rows.shape[1]), rows[row]
    else:
        entries = slice(rows.indptr[row], rows.indptr[row + 1])
        columns, values = rows.indices[entries], rows.data[entries]
    k = int(np.flatnonzero(~used.are_taken(values, columns) & np.isin(columns, used.used))[0])
    return f"the feature in column {int(columns[k])} {'is NaN' if np.isnan(values[k]) else 'is infinite'}"


def _plain_type(kind: Any) -> Any:
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        kind = kind.value_type
    return {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}.get(kind, kind)


def _plain(column: Any) -> Any:
    """Convert a copied column to a type supported by files and `take`.

    Dictionaries are decoded, because a file cannot store different ones for different batches. Views, which Polars
    produces, are converted, because neither CSV files nor `take` support them.
    """
    if pa.types.is_dictionary(column.type):
        return _plain(column.dictionary).take(column.indices)
    if pa.types.is_run_end_encoded(column.type):
        column = pc.run_end_decode(column)
    kind = _plain_type(column.type)
    if column.type == kind:
        return column
    try:
        return column.cast(kind)
    except pa.ArrowNotImplementedError:  # pyarrow 16 cannot cast views
        return pa.array(column.to_pylist(), kind)
