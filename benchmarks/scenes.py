"""Rasters: pixels per second and memory of `score_raster`, a bare file copy, and scikit-learn on windows.

None of the data sets contains spectra. The scene therefore has ten bands of uint16 in tiles of 512: the ten
measurements of covtype, scaled to 0 to 10,000, arranged by elevation along a smooth field, so that neighbors are
similar. The model is a pipeline of StandardScaler and SVC, trained on 3,000 rows in seven classes, compiled as
certified; probabilities are from CalibratedClassifierCV. scikit-learn predicts the first rows of the scene, on one
thread, as it always does. The copy reads all bands and writes one, with the same options. Each run is a separate
process; its memory is the peak recorded by the kernel (VmHWM), minus the memory used before the work began. Labels are
compared with scikit-learn's.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import joblib
import numpy as np
import numpy.typing as npt
from scipy.ndimage import gaussian_filter
from sklearn.calibration import CalibratedClassifierCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import approxsvm
from benchmarks.experiment import Experiment, Rows, Run, WrongAnswerError, number
from benchmarks.problems import SOURCES, split_rows
from benchmarks.scoring import in_a_process

N_BANDS = 10
STAGES = ("reading", "predicting", "writing")  # in seconds, summed over threads
ZOOM = 8  # pixels per cell of the field
SCORE = """
import approxsvm, rasterio
predictor = approxsvm.Predictor(sys.argv[1])
# --- measured
found = approxsvm.score_raster(predictor, sys.argv[2], sys.argv[3], outputs=sys.argv[4], bands=list(range(1, 11)))
result = dict(reading=found.seconds_reading, predicting=found.seconds_predicting, writing=found.seconds_writing)
"""
COPY = """
import rasterio
# --- measured
with rasterio.open(sys.argv[2]) as scene:
    profile = {**scene.profile, "count": 1, "dtype": "uint8", "compress": "deflate", "zlevel": 1}
    with rasterio.open(sys.argv[3], "w", **profile, num_threads="all_cpus") as copy:
        for _, window in scene.block_windows(1):
            copy.write(scene.read(window=window)[:1].astype("uint8"), window=window)
"""
SKLEARN = """
import joblib, rasterio
source = joblib.load(sys.argv[1])
# --- measured
with rasterio.open(sys.argv[2]) as scene:
    bands = scene.read(window=rasterio.windows.Window(0, 0, scene.width, int(sys.argv[5])))
    labels = source.predict(bands.reshape(len(bands), -1).T)
with rasterio.open(sys.argv[3], "w", driver="GTiff", count=1, width=len(labels), height=1, dtype="uint8") as file:
    file.write(labels.reshape(1, 1, -1).astype("uint8"))
"""


def measure(run: Run, outputs: str) -> Rows:
    """Measure a scene with one kind of output."""
    import rasterio

    size, n_sample = run.options.size, run.options.sample_rows
    scene, out = run.scratch / "scene.tif", run.scratch / "out.tif"
    source, n_pixels = _written(run, scene, size, outputs), size * size

    def row(what: str, program: str, model: Path, pixels: int) -> dict[str, Any]:
        measured = in_a_process(program, model, scene, out, outputs, n_sample)
        figures = {"what": f"{outputs}, {what}", "megapixels_per_second": pixels / measured["seconds"] / 1e6}
        return figures | {name: measured.get(name) for name in ("seconds", "mebibytes", *STAGES)}

    yield "runs", row("a bare copy", COPY, source, n_pixels)
    yield "runs", row("approxsvm score", SCORE, source.with_suffix(".asvm"), n_pixels)
    with rasterio.open(out) as file:
        found = file.read(1, window=rasterio.windows.Window(0, 0, size, n_sample)).ravel()
    if outputs == "label":
        yield "runs", row("scikit-learn", SKLEARN, source, n_sample * size)
        with rasterio.open(out) as file:
            if not np.array_equal(found, file.read(1).ravel()):
                raise WrongAnswerError("labels of pixels differ from scikit-learn's")


def _written(run: Run, scene: Path, size: int, outputs: str) -> Path:
    """Write the scene and both forms of the model, source and compiled; return the path of the source."""
    X, y, X_test, _ = split_rows(run.data, SOURCES["covtype, 7 classes"])
    low, high = (limit(X[:, :N_BANDS], axis=0) for limit in (np.min, np.max))
    X, X_test = (np.rint(1e4 * np.clip((rows[:, :N_BANDS] - low) / (high - low), 0, 1)) for rows in (X, X_test))
    if not scene.exists():
        _write_scene(scene, size, X_test[np.argsort(X_test[:, 0])].astype(np.uint16))
    svc, chosen = SVC(C=10), slice(3000)
    is_calibrated = outputs == "probability"
    pipeline = make_pipeline(StandardScaler(), CalibratedClassifierCV(svc, ensemble=False) if is_calibrated else svc)
    path = run.scratch / f"{outputs}.joblib"
    joblib.dump(pipeline.fit(X[chosen], y[chosen]), path)
    fast = approxsvm.compile(pipeline, X[chosen], tolerance=1e-3 if is_calibrated else None)
    fast.save(path.with_suffix(".asvm"))
    run.record.add("model", {"outputs": outputs, "n_sv": fast.summary.n_support_vectors, "plan": fast.summary.plan})
    return path


def _write_scene(scene: Path, size: int, rows: npt.NDArray[np.uint16]) -> None:
    """Lay out sorted rows along a smooth field, with some noise."""
    import rasterio

    rng, n = np.random.default_rng(0), size // ZOOM + 1
    field = gaussian_filter(rng.normal(size=(n, n)), 5, mode="wrap")
    ranks = np.argsort(np.argsort(field, axis=None)).reshape(n, n)
    profile = {"driver": "GTiff", "count": N_BANDS, "height": size, "width": size, "dtype": "uint16", "tiled": True}
    with rasterio.open(scene, "w", **profile, blockxsize=512, blockysize=512, bigtiff="if_safer") as file:
        for _, window in file.block_windows(1):
            (top, bottom), (left, right) = window.toranges()
            places = ranks[np.ix_(np.arange(top, bottom) // ZOOM, np.arange(left, right) // ZOOM)] / n**2
            places = np.clip(places + rng.normal(scale=0.01, size=places.shape), 0, 1 - 1e-9)
            file.write(np.moveaxis(rows[(places * len(rows)).astype(int)], -1, 0), window=window)


_OPTIONS = [
    number("--size", 2000, "Height and width of the scene; 10,980 is a tile of Sentinel-2."),
    number("--sample-rows", 10, "Rows of the scene for scikit-learn."),
]
EXPERIMENT = Experiment("scenes", __doc__, measure, {name: name for name in ("label", "probability")}, _OPTIONS)

if __name__ == "__main__":
    EXPERIMENT.main()
