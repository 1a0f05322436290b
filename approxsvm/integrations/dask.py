"""Predictions for Dask data frames, partition by partition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from approxsvm.system.packages import import_package

pa = import_package("pyarrow", "dask", "approxsvm.dask")
dask = import_package("dask", "dask", "approxsvm.dask")
dd = import_package("dask.dataframe", "dask", "approxsvm.dask")

from approxsvm.errors import InputError  # noqa: E402
from approxsvm.frames.columns import warn  # noqa: E402
from approxsvm.integrations.arrow.batches import score_batches  # noqa: E402  # packages first: errors name the extra
from approxsvm.integrations.scoring.jobs import Job  # noqa: E402


def score(
    ddf: Any,
    model: Any,
    *,
    outputs: Sequence[str] | None = None,
    keep: Sequence[str] = (),
    columns: Sequence[str] | None = None,
    on_error: Literal["fail", "null", "skip"] = "fail",
) -> Any:
    """Make predictions for a Dask data frame, lazily, partition by partition.

    The artifact is a separate task, so the scheduler sends it to each worker once. A worker verifies the checksum and
    opens the artifact once. All workers must have the same version of approxsvm as the client.

    Parameters
    ----------
    ddf : dask.dataframe.DataFrame
        Columns are matched as in `Predictor.predict_arrow`.
    model : path, bytes, Artifact, Predictor or compiled estimator; or a mapping of names to these
        Several models predict in one pass; the names of each model's output columns begin with the model's name in the
        mapping.
    outputs : sequence of {"label", "value", "probability", "error_bound", "certified"}, optional
        Default: "label", or "value" for a regressor.
    keep : sequence of str
        Columns to copy to the result; they precede the outputs.
    columns : sequence of str, optional
        The feature columns, in the models' order, or one column of lists. Lists are Arrow lists, or Python lists if
        Dask's option ``dataframe.convert-string`` is off, because Dask would otherwise convert them to strings.
    on_error : {"fail", "null", "skip"}
        Treatment of rows that contain a null, NaN, infinity, or a number beyond the model's range. With "null", the
        predictions' columns have pandas' nullable dtypes.

    Returns
    -------
    dask.dataframe.DataFrame
        The predictions, with the index and the partitions of `ddf`.

    Raises
    ------
    InputError
        A column is missing or not numeric, or an output does not exist. For an invalid row, the error is raised when
        the result is computed.
    MissingPackageError
        dask or pyarrow is not installed: ``pip install 'approxsvm[dask]'``.
    """
    if not isinstance(ddf, dd.DataFrame):
        raise InputError(f"expected a Dask data frame, got {type(ddf).__module__}.{type(ddf).__name__}")
    job = Job.of(model, outputs, [*map(str, keep)], None if columns is None else [*map(str, columns)], on_error)
    sentences: list[str] = []
    job.scorer(lambda: job.contents).features([*map(str, ddf.columns)], tell=sentences.append)
    for sentence in dict.fromkeys(sentences):
        warn(sentence, stacklevel=2)
    meta = _score_partition(ddf._meta, job.contents, job.without_contents())
    shipped = dask.delayed(job.contents, name=f"approxsvm-{job.token}")
    return ddf.map_partitions(_score_partition, shipped, job.without_contents(), meta=meta, enforce_metadata=False)


def _score_partition(frame: Any, contents: dict[str, bytes], job: Job) -> Any:
    """Return the copied columns and the predictions for a partition, with its index."""
    import pandas as pd

    scorer = job.scorer(lambda: contents)
    names = [str(column) for column in frame.columns]
    features = scorer.features(names)
    read = {name for some in features.values() for name in some}
    table = _as_arrow(frame.loc[:, [name in read for name in names]])
    for name in job.keep:
        if name not in read:
            table = table.append_column(name, pa.nulls(len(frame)))  # placeholders, because Arrow may change values
    bound = scorer.bind(table.schema, features)
    scored, rows = score_batches(
        bound, table.schema, table.to_batches(), lambda row: f"the row of index {frame.index[row]}"
    )
    nullable = _nullable().get if job.on_error == "null" else None
    answers = scored.drop_columns(list(job.keep)).to_pandas(types_mapper=nullable)
    kept = frame.iloc[rows, [names.index(name) for name in job.keep]]
    answers.index = kept.index
    return pd.concat([kept, answers], axis=1)


def _as_arrow(features: Any) -> Any:
    try:
        return pa.Table.from_pandas(features, preserve_index=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise InputError(f"a feature must be a number: {' '.join(map(str, error.args))}") from None


def _nullable() -> dict[Any, Any]:
    """Return pandas' nullable dtype for each Arrow type."""
    import pandas as pd

    kinds = ("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64", "Float32", "Float64")
    by_name = {pa.type_for_alias(kind.lower()): pd.api.types.pandas_dtype(kind) for kind in kinds}
    return {**by_name, pa.bool_(): pd.BooleanDtype()}
