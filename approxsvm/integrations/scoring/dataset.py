"""The public function score_dataset(), implemented in pipeline.py."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Literal

from approxsvm.integrations.scoring.result import Progress, Scoring


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
    delimiter: str | None = None,
    header: bool | None = None,
    batch_rows: int | None = None,
    n_jobs: int | None = -1,
    progress: Progress | None = None,
) -> Scoring:
    """Make predictions for files of any size in constant memory.

    Batches of rows are read while earlier ones are predicted and written. Predictions are identical to the results of
    `predict` and the related methods.

    Parameters
    ----------
    model : path, bytes, Artifact, Predictor or compiled estimator; or a mapping of names to these
        Several models predict in one pass; the names of each model's output columns begin with the model's name in the
        mapping.
    inputs : path or sequence of paths
        CSV (compressed or not), Parquet and Arrow files, LIBSVM text, arrays in .npy and .npz files, folders of such
        files, patterns like ``day=*/*.csv``, or "-" for standard input. Columns are matched as in
        `Predictor.predict_arrow`. A CSV file without a header has the columns 1, 2, ... LIBSVM text has a "target"
        column (the first number of each line) and arrays have a "row" column (the row number); `keep` may name these
        columns. A .npy file is memory-mapped, and a .npz file is read into memory.
    output : path
        A .csv, .parquet or .arrow file, or "-" for standard output. A name without an extension denotes a folder, to
        which one file per input file is written; if a run was killed, the same call continues with the first missing
        file.
    outputs : sequence of {"label", "value", "probability", "error_bound", "certified"}, optional
        Default: "label", or "value" for a regressor.
    keep : sequence of str
        Columns to copy to the output; they precede the predictions. CSV columns are copied unchanged, as strings.
    columns : sequence of str, optional
        The feature columns, in the models' order.
    on_error : {"fail", "null", "skip"}
        Treatment of rows that contain a null, NaN, infinity, a string that is not a number, or a number beyond the
        model's range.
    input_format : {"csv", "parquet", "arrow", "libsvm", "numpy"}, optional
        Default: the format that each file's extension identifies, and CSV for standard input. Other files are read as
        LIBSVM text if `delimiter` is not given, unless their first bytes indicate a different format.
    output_format : {"csv", "parquet", "arrow"}, optional
        Default: the format that the output's extension identifies, Parquet in a folder, and CSV on standard output.
    delimiter : str, optional
        Character between the columns of CSV inputs. Default: a comma. If given, files whose extension does not identify
        a format are read as CSV.
    header : bool, optional
        True if the first line of CSV inputs contains column names. Default: True unless all cells of the line are
        numbers or empty. The numbers 0, 1, 2, ... are treated as names, because pandas writes them for an array; if the
        first line may also be a data row, `header` must be given.
    batch_rows : int, optional
        Number of rows per batch. Default: 65,536, or fewer if there are more than 32 columns.
    n_jobs : int, optional
        Number of threads used for prediction. Default: all processors.
    progress : callable, optional
        Called with the number of rows written and the fraction of the input processed so far (None if unknown).

    Returns
    -------
    Scoring
        Counts and times of the run.

    Raises
    ------
    InputError
        A column is missing, an output does not exist, a row is invalid (the message names the file and the row), or the
        output is the same file as an input or a model, under any name.
    DataFormatError
        A file does not have the expected format.
    OSError
        A file cannot be read or written. Any output file under its final name is complete.
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
    from approxsvm.integrations.scoring.pipeline import run  # imported here because it needs pyarrow

    scoring = Scoring()
    run(
        scoring,
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
    return scoring
