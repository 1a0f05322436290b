"""Spark with two local workers: predict's labels in every interface, even if a worker dies."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from conftest import GOLDEN
from sklearn.compose import make_column_transformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import approxsvm
from approxsvm.errors import ApproxSVMError, ColumnsByPositionWarning, InputError

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed; it is part of the extra spark")
pytest.importorskip("pyspark", minversion="4.1", reason="pyspark is not installed; it is the extra spark")
if shutil.which("java") is None:
    pytest.skip("there is no Java, which Spark needs (Debian: default-jre-headless)", allow_module_level=True)

from approxsvm import spark as our_spark  # noqa: E402
from approxsvm.integrations.scoring.jobs import Job  # noqa: E402
from approxsvm.integrations.spark import _file_name, _folder, _shipped  # noqa: E402

# A Java VM takes seconds to start; PySpark warns about pandas 3, and leaves sockets to the garbage collector.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

PREDICTOR = approxsvm.Predictor(GOLDEN / "iris_classes.asvm")
FEATURES = [f"f{k}" for k in range(PREDICTOR.n_features)]
ROWS = np.random.default_rng(0).normal(size=(900, PREDICTOR.n_features)) * 2.0 + 3.0
LABELS = PREDICTOR.predict(ROWS).tolist()
TABLE = pa.table(dict(zip(FEATURES, ROWS.T.copy(), strict=True))).append_column("id", pa.array(range(900)))


@pytest.fixture(scope="module")
def spark():
    from pyspark.sql import SparkSession

    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "100",
        "spark.log.level": "OFF",
    }
    builder = SparkSession.builder.master("local[2,2]")  # two workers, two attempts at each task
    for name, value in settings.items():
        builder = builder.config(name, value)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)  # otherwise, its workers would use the first python3 on PATH
        session = builder.getOrCreate()
    yield session
    session.stop()


@pytest.fixture(scope="module")
def frame(spark):
    return spark.createDataFrame(TABLE).repartition(2).cache()


def test_labels_that_spark_has_no_type_for(spark):
    labels = np.array([1, 2**64 - 1], np.uint64)[PREDICTOR.predict(ROWS) % 2]
    fast = approxsvm.compile(SVC().fit(ROWS, labels), mode="exact")
    for door in (lambda: our_spark.score(spark.createDataFrame(TABLE), fast), lambda: our_spark.predict_udf(fast)):
        with pytest.raises(InputError, match="label 18446744073709551615 is beyond int64"):
            door()


def rows_of(frame):
    return frame.toArrow().sort_by("id")


def test_score(frame):
    found = rows_of(our_spark.score(frame, PREDICTOR, outputs=["label", "value", "certified"]))
    assert found.schema.names[:6] == [*FEATURES, "id", "label"]
    assert found["label"].to_pylist() == LABELS
    values = np.stack([found[name].to_numpy() for name in found.schema.names if name.startswith("value")], axis=1)
    np.testing.assert_array_equal(values, PREDICTOR.decision_function(ROWS))
    assert found["certified"].to_pylist() == PREDICTOR.certified(ROWS).tolist()
    few = rows_of(our_spark.score(frame, PREDICTOR, FEATURES, keep=["id"]))
    assert few.to_pydict() == {"id": list(range(900)), "label": LABELS}


def test_several_models_and_bad_rows(frame):
    from pyspark.sql import functions

    models = {"classes": GOLDEN / "iris_classes.asvm", "cubic": GOLDEN / "iris_cubic.asvm"}
    hole = frame.withColumn("f1", functions.when(frame.id != 7, frame.f1))
    nulled = rows_of(our_spark.score(hole, models, keep=["id"], on_error="null"))
    assert nulled["classes_label"].to_pylist() == [None if k == 7 else label for k, label in enumerate(LABELS)]
    assert nulled["cubic_label"].null_count == 1
    left = rows_of(our_spark.score(hole, models, keep=["id"], on_error="skip"))
    assert left["id"].to_pylist() == [k for k in range(900) if k != 7]
    with pytest.raises(Exception, match="column 'f1' is null"):
        our_spark.score(hole, models, keep=["id"]).collect()
    with pytest.raises(InputError, match="there is no column 'f3'"):
        our_spark.score(frame.drop("f3"), PREDICTOR, FEATURES)


def test_whole_texts(spark):
    from pyspark.sql import functions

    texts = [f"a {a} {b}" for a in ("red", "green", "old") for b in ("apple", "car", "tree")] * 8
    pipeline = make_pipeline(TfidfVectorizer(), SVC()).fit(texts, [text.endswith("car") for text in texts])
    fast = approxsvm.compile(pipeline, texts)
    frame = spark.createDataFrame(pa.table({"id": range(72), "text": texts})).repartition(2)
    found = rows_of(our_spark.score(frame, fast, ["text"], outputs=["label", "certified"]))
    assert found["label"].to_pylist() == pipeline.predict(texts).tolist()
    assert all(found["certified"].to_pylist())
    texts_of = our_spark.predict_udf(fast)
    found = rows_of(frame.select("id", texts_of("text").alias("label")))
    assert found["label"].to_pylist() == pipeline.predict(texts).tolist()
    hole = frame.withColumn("text", functions.when(frame.id != 7, frame.text))
    nulled = rows_of(our_spark.score(hole, fast, ["text"], keep=["id"], on_error="null"))
    assert [k for k, label in enumerate(nulled["label"].to_pylist()) if label is None] == [7]


def test_columns_by_position_are_told_of_and_a_missing_feature_is_none_of_them(frame):
    with pytest.raises(InputError, match="there is no column 'f3', but other features have such names"):
        our_spark.score(frame.drop("f3"), PREDICTOR, keep=[])
    named = frame.drop("id").toDF("a", "b", "c", "d")
    with pytest.warns(ColumnsByPositionWarning, match="the columns 'a', 'b', 'c', 'd' are taken") as caught:
        found = our_spark.score(named, PREDICTOR, keep=[])
    assert caught[0].filename == __file__
    assert sorted(row["label"] for row in found.collect()) == sorted(LABELS)


def test_columns_that_a_pipeline_drops_may_be_text(spark):
    rows = pd.DataFrame({"name": ["x", None] * 30, "a": ROWS[:60, 0], "b": ROWS[:60, 1], "id": range(60)})
    columns = make_column_transformer((StandardScaler(), ["b", "a"]))
    fast = approxsvm.compile(make_pipeline(columns, SVC()).fit(rows, rows["a"] > rows["b"]), rows)
    expected = fast.predict(rows).tolist()
    for columns in (["name", "a", "b", "id"], ["id", "b", "a"]):
        frame = spark.createDataFrame(pa.Table.from_pandas(rows[columns], preserve_index=False))
        assert rows_of(our_spark.score(frame, fast, keep=["id"]))["label"].to_pylist() == expected
    frame = spark.createDataFrame(pa.Table.from_pandas(rows, preserve_index=False))
    svm = our_spark.predict_udf(fast)
    found = frame.select("id", svm("name", "a", "b", "id").alias("label"))
    assert rows_of(found)["label"].to_pylist() == expected


def test_odd_columns(frame):
    """Check names with Spark syntax, or that differ in case, and types unsupported by Arrow, or only without nulls."""
    from pyspark.sql import functions

    odd = ["a.b", "c`d", "e f", "ü, 'g\""]
    kept = {
        "at.": functions.timestamp_seconds("id"),
        "of`": functions.when(functions.col("id") > 0, functions.struct(functions.lit(True).alias("yes"))),
    }
    named = frame.toDF(*odd, "id").withColumns(kept)
    found = our_spark.score(named, PREDICTOR, odd, keep=["id", *kept])
    assert [field.dataType for field in found.schema][1:3] == [named.schema[name].dataType for name in kept]
    rows = sorted(found.collect())
    assert [row["label"] for row in rows] == LABELS
    assert [row[:3] for row in rows] == sorted(named.select("id", "`at.`", "`of```").collect())
    with pytest.raises(InputError, match="would be named 'Label' and 'label'"):
        our_spark.score(frame.withColumn("Label", frame.id), PREDICTOR, FEATURES)
    with pytest.raises(InputError, match="column 'f0' is timestamp, but a feature must be a number"):
        our_spark.score(frame.withColumn("f0", kept["at."]), PREDICTOR)


def test_udf(spark, frame):
    svm = our_spark.predict_udf(PREDICTOR)
    assert rows_of(frame.select("id", svm(*FEATURES).alias("label")))["label"].to_pylist() == LABELS
    frame.createOrReplaceTempView("rows")
    spark.udf.register("svm", our_spark.predict_udf(PREDICTOR, outputs=["label", "certified"]))
    found = rows_of(spark.sql(f"SELECT id, svm({', '.join(FEATURES)}).label AS label FROM rows WHERE id < 300"))
    assert found["label"].to_pylist() == LABELS[:300]
    with pytest.raises(Exception, match="got 2 columns, but the model takes 4"):
        frame.select(svm("f0", "f1")).collect()
    with pytest.raises(Exception, match=r"row \d+ of a batch of partition \d+: column 'f0' is infinite"):
        frame.withColumn("f0", frame.f0 + float("inf")).select(svm(*FEATURES)).collect()
    with pytest.raises(InputError, match="not 'skip': a function answers every row"):
        our_spark.predict_udf(PREDICTOR, on_error="skip")


def test_transformer(spark, frame, tmp_path):
    """The transformer works in a pipeline, after a vector assembler, and is saved and loaded with it."""
    from pyspark.ml import PipelineModel
    from pyspark.ml.feature import VectorAssembler

    by_name = our_spark.SVMTransformer(PREDICTOR, inputCols=FEATURES)
    assert rows_of(by_name.transform(frame))["label"].to_pylist() == LABELS
    assembler = VectorAssembler(inputCols=FEATURES, outputCol="vector")
    pipeline = PipelineModel([assembler, our_spark.SVMTransformer(PREDICTOR, featuresCol="vector", outputs=["label"])])
    pipeline.save(str(tmp_path / "pipeline"))
    (metadata,) = (tmp_path / "pipeline").glob("stages/1_*/metadata/part-*")
    assert '"class":"approxsvm.spark.SVMTransformer"' in metadata.read_text()  # later releases must find this
    loaded = PipelineModel.load(str(tmp_path / "pipeline"))
    assert loaded.stages[1].artifact == PREDICTOR.artifact
    found = loaded.transform(frame)
    assert found.columns == [*FEATURES, "id", "vector", "label"]
    assert rows_of(found.drop("vector"))["label"].to_pylist() == LABELS
    with pytest.raises(InputError, match="give only one of them"):
        our_spark.SVMTransformer(PREDICTOR, inputCols=FEATURES, featuresCol="vector")
    with pytest.raises(InputError, match="give only one of them"):
        by_name.transform(frame, {by_name.featuresCol: "vector"})


def test_vectors(spark):
    """Check dense, sparse and missing vectors, in a column whose name has a dot, and which is kept with the answers."""
    from pyspark.ml.linalg import Vectors, VectorUDT
    from pyspark.sql.types import LongType, StructType

    few = np.where(np.arange(4) == 1, 0.0, ROWS[:9])
    vectors = [
        Vectors.sparse(4, [0, 2, 3], row[[0, 2, 3]]) if k % 2 else Vectors.dense(row) for k, row in enumerate(few)
    ]
    schema = StructType().add("id", LongType()).add("a.v", VectorUDT())
    table = spark.createDataFrame([*enumerate(vectors), (9, None)], schema)
    stage = our_spark.SVMTransformer(PREDICTOR, featuresCol="a.v", onError="null")
    found = sorted(stage.transform(table).collect())
    assert [row["a.v"] for row in found] == [*vectors, None]
    assert [row["label"] for row in found] == [*PREDICTOR.predict(few).tolist(), None]
    with pytest.raises(Exception, match=r"row \d of partition \d: column 'a\.v, as an array' is null"):
        our_spark.score(table, PREDICTOR, ["a.v"]).collect()


def test_the_artifact_is_shipped_once_and_compared(spark, frame):
    """All jobs with a model share one file; a worker refuses another version, or other bytes."""
    our_spark.score(frame, PREDICTOR).count()
    name = _file_name(Job.of(PREDICTOR, None, (), None, "fail").checksums[0][1])
    assert sum(path.endswith(name) for path in spark.sparkContext.listFiles) == 1
    job = Job.of(PREDICTOR, None, (), None, "fail").without_contents()

    def on_a_worker(changed):
        def run(batches):
            _shipped(changed)
            yield from batches

        return frame.coalesce(1).mapInArrow(run, frame.schema).count()

    assert on_a_worker(job) == 900
    with pytest.raises(Exception, match="this worker has approxsvm"):
        on_a_worker(replace(job, version="0.0.1"))
    (_folder() / _file_name("0" * 64)).write_bytes(PREDICTOR.artifact.data)
    spark.sparkContext.addFile(str(_folder() / _file_name("0" * 64)))
    with pytest.raises(Exception, match="the artifact of model has the checksum"):
        on_a_worker(replace(job, checksums=(("model", "0" * 64),)))
    assert issubclass(approxsvm.ArtifactError, ApproxSVMError)


def test_a_worker_that_dies(frame, tmp_path):
    marker = str(tmp_path / "died")

    def die_once(batches):
        try:
            os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            yield from batches
            return
        os.kill(os.getpid(), signal.SIGKILL)

    found = rows_of(our_spark.score(frame.mapInArrow(die_once, frame.schema), PREDICTOR, keep=["id"]))
    assert os.path.exists(marker)
    assert found["label"].to_pylist() == LABELS
