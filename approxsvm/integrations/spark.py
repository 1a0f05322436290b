"""Predictions for Spark data frames, in batches of Arrow columns, and a Transformer for Spark ML pipelines.

Spark sends an artifact to each machine once, as a file, and each Python worker opens it once.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal

from approxsvm.errors import ArtifactError, InputError
from approxsvm.system.packages import import_package

pa = import_package("pyarrow", "spark", "approxsvm.spark")
import_package("pyspark", "spark", "approxsvm.spark")

from pyspark import SparkFiles, TaskContext  # noqa: E402  # after the packages, see dask.py
from pyspark.ml import Transformer  # noqa: E402
from pyspark.ml.functions import vector_to_array  # noqa: E402
from pyspark.ml.param import Param, Params, TypeConverters  # noqa: E402
from pyspark.ml.util import (  # noqa: E402
    DefaultParamsReader,
    DefaultParamsWriter,
    MLReadable,
    MLReader,
    MLWritable,
    MLWriter,
)
from pyspark.sql import SparkSession  # noqa: E402
from pyspark.sql.functions import arrow_udf, col, when  # noqa: E402
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_type  # noqa: E402
from pyspark.sql.types import ArrayType, BooleanType, NullType, NumericType, StringType, StructType  # noqa: E402

from approxsvm.frames.columns import Features, warn  # noqa: E402
from approxsvm.integrations.arrow.batches import Block, BoundScorer, Scorer  # noqa: E402
from approxsvm.integrations.scoring.folders import checksum  # noqa: E402
from approxsvm.integrations.scoring.jobs import Job  # noqa: E402
from approxsvm.runtime.evaluator import artifact_of  # noqa: E402
from approxsvm.system.output_files import write_whole  # noqa: E402

OnError = Literal["fail", "null", "skip"]


def score(
    dataframe: Any,
    model: Any,
    columns: Sequence[str] | None = None,
    *,
    outputs: Sequence[str] | None = None,
    keep: Sequence[str] | None = None,
    on_error: OnError = "fail",
) -> Any:
    """Make predictions for a Spark data frame, lazily, with ``mapInArrow``.

    Spark sends the artifact to each machine once, as a file. A worker verifies the file's checksum, and checks that it
    has the same version of approxsvm as the driver.

    Parameters
    ----------
    dataframe : pyspark.sql.DataFrame
        Columns are matched as in `Predictor.predict_arrow`. Spark Connect is not supported.
    model : path, bytes, Artifact, Predictor or compiled estimator; or a mapping of names to these
        Several models predict in one pass; the names of each model's output columns begin with the model's name in the
        mapping.
    columns : sequence of str, optional
        The feature columns, in the models' order, or one column of arrays or of Spark ML vectors.
    outputs : sequence of {"label", "value", "probability", "error_bound", "certified"}, optional
        Default: "label", or "value" for a regressor.
    keep : sequence of str, optional
        Columns to copy to the result; they precede the outputs. Default: all columns.
    on_error : {"fail", "null", "skip"}
        Treatment of rows that contain a null, NaN, infinity, or a number beyond the model's range.

    Returns
    -------
    pyspark.sql.DataFrame
        The copied columns and the predictions.

    Raises
    ------
    InputError
        A column is missing or not numeric, or an output does not exist or has the name of a copied column. An invalid
        row makes the job fail with a message that gives the row's number within its partition.
    MissingPackageError
        pyspark or pyarrow is not installed: ``pip install 'approxsvm[spark]'``.
    """
    kept = dataframe.columns if keep is None else keep
    job = Job.of(model, outputs, kept, columns, on_error)
    scorer = job.scorer(lambda: job.contents)
    sentences: list[str] = []
    chosen, features = _chosen(
        dataframe, kept, scorer.features(dataframe.columns, others=keep or (), tell=sentences.append)
    )
    for sentence in dict.fromkeys(sentences):
        warn(sentence, stacklevel=2)
    _check_labels(scorer)
    answers = list(scorer.bind(_arrow_schema(chosen, features), features).schema)[len(kept) :]
    _check_case(dataframe, kept, [field.name for field in answers])
    schema = StructType([*(chosen.schema[name] for name in kept), *_spark_fields(answers)])
    _ship(dataframe.sparkSession, job)
    small, names = job.without_contents(), chosen.columns
    plain = chosen.toDF(*(f"c{k}" for k in range(len(names))))  # `mapInArrow` would parse dots and backticks in names
    return plain.mapInArrow(lambda batches: _score_partition(batches, small, names, features), schema)


def predict_udf(
    model: Any, *, outputs: Sequence[str] | None = None, on_error: Literal["fail", "null"] = "fail", spark: Any = None
) -> Any:
    """Create an Arrow UDF for ``select``, ``withColumn`` and SQL.

    The UDF takes the features in the model's order, ``df.select("id", svm("a", "b", "c"))``, or one column of strings
    if the model takes documents. To use it in SQL, register it with ``spark.udf.register("svm", svm)``.

    Parameters
    ----------
    model : path, bytes, Artifact, Predictor or compiled estimator
    outputs : sequence of {"label", "value", "probability", "error_bound", "certified"}, optional
        Default: "label", or "value" for a regressor. Several output columns are returned as a struct.
    on_error : {"fail", "null"}
        Treatment of rows that contain a null, NaN, infinity, or a number beyond the model's range.
    spark : pyspark.sql.SparkSession, optional
        Default: the active session.

    Returns
    -------
    function
        An Arrow UDF.

    Raises
    ------
    InputError
        The model lacks a requested output, or `on_error` is invalid. The job fails on an invalid row or a call with the
        wrong number of columns.
    """
    if on_error not in ("fail", "null"):
        raise InputError(f"on_error must be one of 'fail', 'null', not {on_error!r}: a function answers every row")
    artifact = artifact_of(model)
    names = ("text",) if artifact.takes_texts else tuple(f"f{k}" for k in range(artifact.n_raw_features))
    job = Job.of(artifact, outputs, (), names, on_error)
    scorer = job.scorer(lambda: job.contents)
    _check_labels(scorer)
    kinds = _spark_fields(_bound_to_columns(scorer, names).schema)
    _ship(spark or SparkSession.active(), job)
    small = job.without_contents()

    def predict(*columns: Any) -> Any:
        return _score_columns(columns, small, names)

    # Spark infers the type of a UDF from its annotations.
    predict.__annotations__ = {"columns": pa.Array, "return": pa.Array}
    return arrow_udf(predict, kinds if len(kinds) > 1 else kinds[0].dataType)


# --- code that runs on the driver


def _bound_to_columns(scorer: Scorer, names: Sequence[str]) -> BoundScorer:
    (evaluator,) = scorer.evaluators.values()
    artifact = evaluator.artifact
    kinds = (
        pa.string() if artifact.takes_texts or k in artifact.raw_columns.texts else pa.float64()
        for k in range(len(names))
    )
    return scorer.bind_schema(pa.schema(list(zip(names, kinds, strict=True))))


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _chosen(dataframe: Any, kept: Sequence[str], features: Mapping[str, Features]) -> tuple[Any, dict[str, Features]]:
    """Select the copied columns, then the other features; convert vectors to arrays under different names."""
    names = list(dict.fromkeys(name for some in features.values() for name in some if name is not None))
    is_vector = {field.name: field.dataType.typeName() == "vectorudt" for field in dataframe.schema}
    arrays = {name: f"{name}, as an array" for name in names if is_vector[name]}
    columns = [col(_quoted(name)) for name in [*kept, *(name for name in names if name not in {*kept, *arrays})]]
    for name, array in arrays.items():
        vectors = col(_quoted(name))  # Spark cannot convert null vectors
        columns.append(when(vectors.isNotNull(), vector_to_array(vectors)).alias(array))
    return dataframe.select(*columns), {
        model: tuple(name if name is None else arrays.get(name, name) for name in some)
        for model, some in features.items()
    }


def _arrow_schema(chosen: Any, features: Mapping[str, Features]) -> Any:
    """Return the Arrow types of features. Columns that are only copied may have any type and are declared as null."""
    names = {name for some in features.values() for name in some}
    return pa.schema(
        [
            (field.name, _feature_type(field.name, field.dataType) if field.name in names else pa.null())
            for field in chosen.schema
        ]
    )


def _feature_type(name: str, kind: Any) -> Any:
    if isinstance(kind, ArrayType):
        return pa.list_(_feature_type(name, kind.elementType))
    if not isinstance(kind, (NumericType, BooleanType, NullType, StringType)):
        raise InputError(f"column {name!r} is {kind.simpleString()}, but a feature must be a number")
    return to_arrow_type(kind)


def _check_case(dataframe: Any, kept: Sequence[str], answers: Sequence[str]) -> None:
    """Raise InputError for output names that differ only in case, unless Spark is case-sensitive."""
    if dataframe.sparkSession.conf.get("spark.sql.caseSensitive") == "true":
        return
    lower = {name.lower(): name for name in kept}
    for name in answers:
        if name.lower() in lower:
            raise InputError(f"two columns of the output would be named {lower[name.lower()]!r} and {name!r}")


def _check_labels(scorer: Scorer) -> None:
    for evaluator in scorer.evaluators.values():
        labels = evaluator.artifact.labels
        if labels.dtype.kind == "u" and int(labels.max()) >= 2**63:
            raise InputError(f"label {int(labels.max())} is beyond int64, which is Spark's largest integer type")


def _spark_fields(fields: Any) -> Any:
    return from_arrow_schema(pa.schema([_spark_field(field) for field in fields]))


def _spark_field(field: Any) -> Any:
    """Convert a field to a type supported by Spark, which has no unsigned integers and no float16."""
    if pa.types.is_unsigned_integer(field.type):
        return pa.field(field.name, pa.int64())
    return pa.field(field.name, pa.float32() if field.type == pa.float16() else field.type)


@cache
def _folder() -> Path:
    """Create the folder for the files sent by Spark; it exists until this process ends."""
    folder = Path(tempfile.mkdtemp(prefix="approxsvm-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _file_name(digits: str) -> str:
    return f"approxsvm-{digits}.asvm"


def _ship(spark: Any, job: Job) -> None:
    """Add the artifacts to the Spark context, which copies a file to a machine when a task there needs it."""
    context = spark.sparkContext
    shipped = {Path(name).name for name in context.listFiles}
    for name, digits in job.checksums:
        path = _folder() / _file_name(digits)
        if not path.exists():  # written once and kept: machines that join the cluster later copy it
            write_whole(job.contents[name], path)
        if path.name not in shipped:
            context.addFile(str(path))


# --- code that runs on the workers


def _shipped(job: Job) -> Scorer:
    return job.scorer(
        lambda: {name: Path(SparkFiles.get(_file_name(digits))).read_bytes() for name, digits in job.checksums}
    )


def _partition() -> str:
    return f"partition {TaskContext.get().partitionId()}"


def _score_partition(
    batches: Iterator[Any], job: Job, names: Sequence[str], features: Mapping[str, Features]
) -> Iterator[Any]:
    scorer, bound, first = _shipped(job), None, 0
    for batch in batches:
        batch = pa.RecordBatch.from_arrays(batch.columns, names)
        if bound is None:
            bound = scorer.bind(batch.schema, features)
        yield _for_spark(bound.score(Block(batch, _place(first))).batch)
        first += batch.num_rows


def _place(first: int) -> Callable[[int], str]:
    return lambda row: f"row {first + row} of {_partition()}"


def _for_spark(batch: Any) -> Any:
    schema = pa.schema([_spark_field(field) for field in batch.schema])
    columns = [
        column if column.type == field.type else column.cast(field.type)  # a cast would reject some nulls in structs
        for column, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


_bound_scorers: dict[tuple[Job, tuple[Any, ...]], BoundScorer] = {}


def _score_columns(columns: Sequence[Any], job: Job, names: Sequence[str]) -> Any:
    if len(columns) != len(names):
        raise InputError(f"the function got {len(columns)} columns, but the model takes {len(names)}")
    batch = pa.RecordBatch.from_arrays(list(columns), list(names))
    key = (job, tuple(batch.schema.types))
    if key not in _bound_scorers:
        _bound_scorers.clear()  # one entry suffices, because column types are constant during a query
        _bound_scorers[key] = _shipped(job).bind_schema(batch.schema)
    answers = _for_spark(
        _bound_scorers[key].score(Block(batch, lambda row: f"row {row} of a batch of {_partition()}")).batch
    )
    return answers.column(0) if answers.num_columns == 1 else answers.to_struct_array()


class SVMTransformer(Transformer, MLReadable, MLWritable):  # type: ignore[misc]
    """Spark ML pipeline stage that predicts with a compiled model; it is saved and loaded with the pipeline.

    The stage adds the columns returned by `score`.

    Parameters
    ----------
    model : path, bytes, Artifact, Predictor or compiled estimator
    inputCols : list of str, optional
        The feature columns, in the model's order. Default: columns are matched by name.
    featuresCol : str, optional
        Name of a column of arrays or vectors, such as VectorAssembler output, instead of `inputCols`.
    outputs : list of str, optional
        See `score`.
    onError : {"fail", "null", "skip"}
        See `score`.

    Raises
    ------
    InputError
        Both `inputCols` and `featuresCol` are given.
    """

    __module__ = "approxsvm.spark"  # import path that Spark ML writes to saved pipelines

    inputCols: Any = Param(  # noqa: N815  # Spark's names
        Params._dummy(), "inputCols", "feature columns", typeConverter=TypeConverters.toListString
    )
    featuresCol: Any = Param(  # noqa: N815
        Params._dummy(), "featuresCol", "a column of vectors", typeConverter=TypeConverters.toString
    )
    outputs: Any = Param(Params._dummy(), "outputs", "outputs for each row", typeConverter=TypeConverters.toListString)
    onError: Any = Param(  # noqa: N815
        Params._dummy(), "onError", "what to do with bad rows", typeConverter=TypeConverters.toString
    )

    def __init__(
        self,
        model: Any = None,
        *,
        inputCols: Sequence[str] | None = None,
        featuresCol: str | None = None,
        outputs: Sequence[str] | None = None,
        onError: OnError = "fail",
    ) -> None:
        super().__init__()
        self._setDefault(onError="fail")
        self.artifact = None if model is None else artifact_of(model)
        given = {"inputCols": inputCols, "featuresCol": featuresCol, "outputs": outputs, "onError": onError}
        self._set(**{name: value for name, value in given.items() if value is not None})
        self._columns()

    def _value(self, name: str) -> Any:
        parameter = self.getParam(name)
        return self.getOrDefault(parameter) if self.isDefined(parameter) else None

    def _columns(self) -> Any:
        several, one = self._value("inputCols"), self._value("featuresCol")
        if several is not None and one is not None:
            raise InputError("inputCols and featuresCol are both given; give only one of them")
        return several if one is None else [one]

    def _transform(self, dataset: Any) -> Any:
        return score(
            dataset, self.artifact, self._columns(), outputs=self._value("outputs"), on_error=self._value("onError")
        )

    def write(self) -> MLWriter:
        """Return a writer that saves the parameters as JSON and the artifact as a file."""
        return _TransformerWriter(self)

    @classmethod
    def read(cls) -> MLReader:
        """Return a reader for saved transformers."""
        return _TransformerReader(cls)


class _TransformerWriter(DefaultParamsWriter):  # type: ignore[misc]
    def saveImpl(self, path: str) -> None:  # noqa: N802
        super().saveImpl(path)
        data = self.instance.artifact.data
        frame = self.sparkSession.createDataFrame(
            [(checksum(data), bytearray(data))], "checksum string, artifact binary"
        )
        frame.coalesce(1).write.parquet(f"{path}/data")


class _TransformerReader(DefaultParamsReader):  # type: ignore[misc]
    def load(self, path: str) -> SVMTransformer:
        transformer: SVMTransformer = super().load(path)
        row = self.sparkSession.read.parquet(f"{path}/data").first()
        data = bytes(row["artifact"])
        if checksum(data) != row["checksum"]:
            raise ArtifactError(f"{path}: checksum of the artifact is {checksum(data)}, expected {row['checksum']}")
        transformer.artifact = artifact_of(data)
        return transformer
