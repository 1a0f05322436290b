"""score_dataset(), the door to files of any size; pipeline.py does it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Literal

from approxsvm.tables.scoring.result import Progress, Scoring


def score_dataset(
    model: Any,
    inputs: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    *,
    outputs: Sequence[str] | None = None,
    keep: Sequence[str] = (),
    columns: Sequence[str] | None = None,
    on_error: Literal["fail", "null", "skip"] = "fail",
    input_format: str | None = None,
    output_format: str | None = None,
    delimiter: str = ",",
    header: bool | None = None,
    batch_rows: int | None = None,
    n_jobs: int | None = -1,
    progress: Progress | None = None,
) -> Scoring:
    """Score files of any size, in memory that does not depend on it.

    Rows are read a batch at a time, while earlier batches are predicted and written. Answers are those of `predict` and
    its kin, number for number.

    Parameters
    ----------
    model : path, bytes, Artifact, Predictor or compiled estimator; or a mapping of names to these
        Several models answer in one pass over the rows; their columns begin with their names.
    inputs : path or sequence of paths
        CSV (compressed or not), Parquet and Arrow files, LIBSVM text; folders of them, patterns like ``day=*/*.csv``,
        "-" for standard input. Columns are found as by `Predictor.predict_arrow`. A CSV file without a line of names
        has the columns 1, 2, ... LIBSVM text has the column target, its first number, to be kept.
    output : path
        A .csv, .parquet or .arrow file, or "-", standard output. A name without a suffix is a folder, which gets one
        file for each that is read; a run that was killed is taken up at the first part that is missing.
    outputs : sequence of {"label", "value", "probability", "error_bound", "certified"}, optional
        What is wanted; "label" when left out, of a regression "value".
    keep : sequence of str
        Columns that are handed on, in front. Those of a CSV file stay text, letter by letter.
    columns : sequence of str, optional
        The columns that are features, in the models' order.
    on_error : {"fail", "null", "skip"}
        What becomes of rows with a null, NaN, infinity, a text that is no number, or a number beyond the model's range.
    input_format : {"csv", "parquet", "arrow", "libsvm"}, optional
        By the name of each file when left out; of standard input, CSV.
    output_format : {"csv", "parquet", "arrow"}, optional
        By the name when left out; Parquet in a folder, CSV on standard output.
    delimiter : str
        The character between columns of CSV files that are read.
    header : bool, optional
        Whether the first line of CSV files names the columns; when left out, it does unless it is all numbers and
        holes.
    batch_rows : int, optional
        65,536, or fewer where there are more than 32 columns.
    n_jobs : int, optional
        Threads that predict: all processors unless told otherwise.
    progress : callable, optional
        Told how many rows are written, and the share of the input that is, from 0 to 1, or None where nobody knows.

    Returns
    -------
    Scoring

    Raises
    ------
    InputError
        A column is missing, an output does not exist, a row is bad; the message names file and row. Or the output is
        the same file as an input or a model, under whatever name.
    DataFormatError
        A file cannot be read as what it is.
    OSError
        A file cannot be read or written. What is there under its final name is whole.
    MissingPackageError
        pyarrow is not installed: ``pip install 'approxsvm[arrow]'``.

    Examples
    --------
    >>> import approxsvm, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     scored = approxsvm.score_dataset("models/breast_cancer.asvm", "models/breast_cancer.t", folder + "/bc.csv")
    >>> scored.n_rows
    150
    """
    from approxsvm.tables.scoring.pipeline import run  # here, as it brings pyarrow along

    found = Scoring()
    run(
        found,
        model,
        [inputs] if isinstance(inputs, (str, os.PathLike)) else inputs,
        os.fspath(output),
        wanted={"outputs": outputs, "keep": keep, "columns": columns, "on_error": on_error},
        input_format=input_format,
        output_format=output_format,
        reading=(batch_rows, delimiter, header),
        n_jobs=n_jobs,
        progress=progress,
    )
    return found
