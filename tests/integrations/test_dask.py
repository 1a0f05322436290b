"""Dask data frames: predict's labels for any partitions, with two processes, one of which dies."""

from __future__ import annotations

import os
import signal
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from conftest import GOLDEN

import approxsvm
from approxsvm.errors import ApproxSVMError, ArtifactError, ColumnsByPositionWarning, InputError

pytest.importorskip("pyarrow", reason="pyarrow is not installed; it is part of the extra dask")
dask = pytest.importorskip("dask", reason="dask is not installed; it is the extra dask")
dd = pytest.importorskip("dask.dataframe", reason="dask is not installed; it is the extra dask")

from approxsvm.dask import score  # noqa: E402
from approxsvm.integrations.scoring.jobs import Job  # noqa: E402

PREDICTOR = approxsvm.Predictor(GOLDEN / "iris_classes.asvm")
ROWS = np.random.default_rng(0).normal(size=(900, PREDICTOR.n_features)) * 2.0 + 3.0
FRAME = pd.DataFrame(ROWS, columns=[f"f{k}" for k in range(PREDICTOR.n_features)], index=np.arange(900) * 3 + 5)
FRAME["id"] = [f"row {k}" for k in range(900)]
LABELS = PREDICTOR.predict(ROWS)


def computed(frame):
    return frame.compute(scheduler="sync")


def test_answers_are_those_of_predict():
    """The frame's index and divisions are kept; a partition may be empty."""
    ddf = dd.from_pandas(FRAME, npartitions=4)
    lazy = score(ddf, PREDICTOR, outputs=["label", "value"], keep=["id"])
    found = computed(lazy)
    assert lazy.divisions == ddf.divisions
    assert lazy.dtypes.astype(str).to_dict() == found.dtypes.astype(str).to_dict()
    assert found.index.equals(FRAME.index)
    assert found["id"].tolist() == FRAME["id"].tolist()
    np.testing.assert_array_equal(found["label"], LABELS)
    np.testing.assert_array_equal(found.filter(like="value"), PREDICTOR.decision_function(ROWS))
    some = ddf[ddf["f0"] > 1e9]
    assert computed(score(some, PREDICTOR)).shape == (0, 1)
    assert computed(ddf.assign(label=score(ddf, PREDICTOR)["label"]))["label"].tolist() == LABELS.tolist()


@pytest.mark.parametrize("on_error", ["fail", "null", "skip"])
def test_kept_columns_are_handed_on_as_they_are(on_error):
    """A round trip through Arrow would turn integers into floats in partitions with gaps."""
    kept = {
        "whole": pd.array([2**60 + 1 + k if k > 300 and k % 3 else None for k in range(900)], dtype="Int64"),
        "flag": pd.array([None if k % 7 else True for k in range(900)], dtype="boolean"),
        "kind": pd.Categorical(["a", "b", "c"] * 300),
        "small": np.arange(900, dtype=np.int16),
        "gaps": np.where(np.arange(900) % 2, 0.5, np.nan),
    }
    frame = FRAME.assign(**kept)
    lazy = score(dd.from_pandas(frame, npartitions=4), PREDICTOR, keep=[*kept], on_error=on_error)
    found = computed(lazy)
    pd.testing.assert_frame_equal(found[[*kept]], frame[[*kept]], check_freq=False)
    assert lazy.dtypes.to_dict() == found.dtypes.to_dict()
    assert found["label"].tolist() == LABELS.tolist()


def test_names_that_are_numbers_and_columns_of_lists():
    numbered = FRAME.set_axis(range(FRAME.shape[1]), axis=1)
    found = computed(score(dd.from_pandas(numbered, npartitions=3), PREDICTOR, columns=[0, 1, 2, 3], keep=[4]))
    assert found["label"].tolist() == LABELS.tolist()
    assert found[4].tolist() == FRAME["id"].tolist()
    lists = pd.DataFrame({"x": pd.Series([None, *ROWS[1:].tolist()], dtype=object)})
    with dask.config.set({"dataframe.convert-string": False}):  # also applies to lists
        parts = dd.from_map(lambda first: lists.iloc[first : first + 1], range(3), meta=lists.iloc[:0])
        found = computed(score(parts, PREDICTOR, columns=["x"], on_error="null"))
    assert found["label"].isna().tolist() == [True, False, False]
    assert found["label"][1:].tolist() == LABELS[1:3].tolist()


def test_bad_rows():
    frame = FRAME.copy()
    frame.iloc[[3, 500], 1] = np.nan
    ddf, good = dd.from_pandas(frame, npartitions=4), np.delete(np.arange(900), [3, 500])
    with pytest.raises(InputError, match=r"the row of index (14|1505): column 'f1' is null"):
        computed(score(ddf, PREDICTOR))
    left = computed(score(ddf, PREDICTOR, on_error="skip"))
    assert left.index.equals(frame.index[good])
    assert left["label"].tolist() == LABELS[good].tolist()
    lazy = score(ddf, PREDICTOR, on_error="null")
    nulled = computed(lazy)
    assert lazy.dtypes["label"] == nulled.dtypes["label"] == "Int64"
    assert nulled["label"].isna().to_numpy().nonzero()[0].tolist() == [3, 500]
    assert nulled["label"].iloc[good].tolist() == LABELS[good].tolist()


def test_columns_by_position_are_told_of_once_and_a_missing_feature_is_none_of_them():
    without = dd.from_pandas(FRAME.drop(columns="f3"), npartitions=3)
    with pytest.raises(InputError, match="there is no column 'f3', but other features have such names"):
        score(without, PREDICTOR)
    named = FRAME.drop(columns="id").set_axis(list("abcd"), axis=1)
    with pytest.warns(ColumnsByPositionWarning, match="the columns 'a', 'b', 'c', 'd' are taken") as caught:
        found = computed(score(dd.from_pandas(named, npartitions=3), PREDICTOR))
    assert [one.filename for one in caught] == [__file__]
    assert found["label"].tolist() == LABELS.tolist()


def test_wrong_columns_are_told_of_at_once():
    with pytest.raises(InputError, match="there is no column 'day'"):
        score(dd.from_pandas(FRAME, npartitions=2), PREDICTOR, keep=["day"])
    with pytest.raises(InputError, match=r"column 'id' is .*string, but a feature must be a number"):
        score(dd.from_pandas(FRAME, npartitions=2), PREDICTOR, columns=["id", "f0", "f1", "f2"])
    with pytest.raises(InputError, match=r"expected a Dask data frame, got pandas\..*DataFrame"):
        score(FRAME, PREDICTOR)
    with pytest.raises(InputError, match=r"a feature must be a number: .* column f0 with type complex"):
        score(dd.from_pandas(FRAME.assign(f0=1j), npartitions=2), PREDICTOR)


def test_workers_compare_version_and_checksum():
    job = Job.of(PREDICTOR, None, (), None, "fail")
    with pytest.raises(ApproxSVMError, match=r"this worker has approxsvm .*, but the job was made by 0\.0\.1"):
        replace(job, version="0.0.1").scorer(lambda: job.contents)
    wrong = replace(job, checksums=(("model", "0" * 64),))
    with pytest.raises(ArtifactError, match=f"has the checksum {job.checksums[0][1]}, but the job has 0000"):
        wrong.scorer(lambda: job.contents)
    opened = job.scorer(lambda: job.contents)
    assert job.without_contents().scorer(lambda: pytest.fail("it is open already")) is opened
    other = Job.of(PREDICTOR, ["value"], (), None, "null").without_contents()
    shared = other.scorer(lambda: pytest.fail("its model is open already"))
    assert shared.evaluators["model"] is opened.evaluators["model"]
    twice = Job.of(dict.fromkeys("ab", GOLDEN / "iris_degree3.asvm"), ["value"], (), None, "null")
    both = twice.scorer(lambda: twice.contents).evaluators
    assert both["a"] is both["b"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # distributed warns about the dead worker
def test_two_processes_of_which_one_dies(tmp_path):
    distributed = pytest.importorskip("distributed", reason="distributed is not installed")
    marker = tmp_path / "died"

    def die_once(frame, marker):  # inside, so that workers do not import this file
        """Kill the first worker that calls this."""
        try:
            os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return frame
        return os.kill(os.getpid(), signal.SIGKILL)

    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50) as cluster,
        distributed.Client(cluster),
    ):
        ddf = dd.from_pandas(FRAME, npartitions=6).map_partitions(die_once, str(marker), meta=FRAME.iloc[:0])
        found = score(ddf, PREDICTOR, outputs=["label", "value"]).compute()
    assert marker.exists()
    np.testing.assert_array_equal(found["label"], LABELS)
    np.testing.assert_array_equal(found.filter(like="value"), PREDICTOR.decision_function(ROWS))
