"""Dask data frames: partitions in, partitions of answers out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from approxsvm.packages import import_package

pa = import_package("pyarrow", "dask", "approxsvm.dask")
dask = import_package("dask", "dask", "approxsvm.dask")

from approxsvm.arrow.batches import score_batches  # noqa: E402  # behind what names the extra
from approxsvm.scoring.jobs import Job  # noqa: E402


def score(
    ddf: Any,
    model: Any,
    *,
    outputs: Sequence[str] | None = None,
    keep: Sequence[str] = (),
    columns: Sequence[str] | None = None,
    on_error: Literal["fail", "null", "skip"] = "fail",
) -> Any:
    """Score a Dask data frame, lazily, partition by partition.

    The artifact is a task of its own, so that the scheduler ships it to each worker once; a worker checks its checksum
    and opens it once. Workers need approxsvm of the same version.

    Parameters
    ----------
    ddf : dask.dataframe.DataFrame
        Columns are found as by `Predictor.predict_arrow`.
    model : path, bytes, Artifact, Predictor or compiled estimator; or a mapping of names to these
        Several models answer in one pass over the rows; their columns begin with their names.
    outputs : sequence of {"label", "value", "probability", "error_bound", "certified"}, optional
        "label" when left out, of a regression "value".
    keep : sequence of str
        Columns that are handed on, in front.
    columns : sequence of str, optional
        The columns that are features, in the models' order.
    on_error : {"fail", "null", "skip"}
        What becomes of rows with a null, NaN, infinity, or a number beyond the model's range. With "null" answers have
        pandas' nullable types.

    Returns
    -------
    dask.dataframe.DataFrame
        With the index and the partitions of `ddf`.

    Raises
    ------
    InputError
        A column is missing or is no number, or an output does not exist. A bad row is one when the result is computed.
    MissingPackageError
        dask or pyarrow is not installed: ``pip install 'approxsvm[dask]'``.
    """
    job = Job.of(model, outputs, keep, columns, on_error)
    meta = _score_partition(ddf._meta, job.contents, job.without_contents())
    shipped = dask.delayed(job.contents, name=f"approxsvm-{job.token}")
    return ddf.map_partitions(_score_partition, shipped, job.without_contents(), meta=meta, enforce_metadata=False)


def _score_partition(frame: Any, contents: dict[str, bytes], job: Job) -> Any:
    """Answers for a partition, with its index."""
    scorer = job.scorer(lambda: contents)
    names = [str(column) for column in frame.columns]
    needed = scorer.needed(scorer.features(names))
    table = pa.Table.from_pandas(frame.loc[:, [name in needed for name in names]], preserve_index=False)
    found, rows = score_batches(
        scorer, table.schema, table.to_batches(), lambda row: f"the row of index {frame.index[row]}"
    )
    nullable = _nullable().get if job.on_error == "null" else None
    answers = found.to_pandas(types_mapper=nullable)
    answers.index = frame.index[rows]
    return answers


def _nullable() -> dict[Any, Any]:
    """Pandas' types whose numbers may be missing."""
    import pandas as pd

    kinds = ("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64", "Float32", "Float64")
    by_name = {pa.type_for_alias(kind.lower()): pd.api.types.pandas_dtype(kind) for kind in kinds}
    return {**by_name, pa.bool_(): pd.BooleanDtype()}
