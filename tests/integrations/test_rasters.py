"""Rasters of any size: pixels equal the source's answers, gaps remain gaps, and no output is partially written."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from itertools import groupby
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_blobs
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

import approxsvm
from approxsvm.cli import main
from approxsvm.errors import (
    ApproxSVMWarning,
    ColumnsByPositionWarning,
    DataFormatError,
    InputError,
    MissingPackageError,
)

rasterio = pytest.importorskip("rasterio", reason="rasterio is not installed; it is the extra raster")

from rasterio.enums import ColorInterp  # noqa: E402
from rasterio.transform import Affine  # noqa: E402

from approxsvm.integrations.rasters.windows import Tiling  # noqa: E402

pytestmark = pytest.mark.filterwarnings(
    "ignore::approxsvm.errors.ColumnsByPositionWarning", "ignore::rasterio.errors.NotGeoreferencedWarning"
)

ROTATED = Affine(10.0, 1.5, 500_000.0, 1.5, -10.0, 5_000_000.0)
N_BANDS = 4
X, Y = make_blobs(400, N_BANDS, centers=5, cluster_std=2.0, random_state=0)
X = np.rint((X - X.min()) * 8.0)  # integers from 0 to about 250, valid in every numeric type
TEXTS = np.array(["water", "forest", "field & <farm>", "town", "bare"])[Y]


def compiled(estimator, labels):
    source = make_pipeline(StandardScaler(), estimator).fit(X, labels)
    return SimpleNamespace(source=source, fast=approxsvm.compile(source, X))


CLASSES = compiled(SVC(), Y + 1)
SOURCES = {
    "classes": CLASSES,
    "texts": compiled(SVC(), TEXTS),
    "two": compiled(SVC(), np.where(Y == 0, -1, 1)),
    "values": compiled(SVR(), X[:, 0] / 3.0),
}


def scene(height, width, dtype="int16", seed=1):
    """Return pixels drawn from the rows at random."""
    rows = np.random.default_rng(seed).integers(0, len(X), height * width)
    return np.ascontiguousarray(X[rows].T.reshape(N_BANDS, height, width)).astype(dtype)


def write(path, bands, *, mask=None, attributes=None, **options):
    """Write a file; bytes are not marked as an RGBA image, which GDAL would assume."""
    plain = {"photometric": "minisblack", "alpha": "no"} if options.get("driver", "GTiff") == "GTiff" else {}
    options = {"driver": "GTiff", "crs": "EPSG:32633", "transform": ROTATED, **plain, **options}
    count, height, width = bands.shape
    with (
        rasterio.Env(GDAL_TIFF_INTERNAL_MASK=True),
        rasterio.open(path, "w", count=count, height=height, width=width, dtype=bands.dtype, **options) as file,
    ):
        for name, value in (attributes or {}).items():
            setattr(file, name, value)
        file.write(bands)
        if mask is not None:
            file.write_mask(mask)
    return path


def read(path):
    with rasterio.open(path) as file:
        return file.read(), file.nodata, file.profile, file.descriptions


def rows_of(bands):
    return bands.reshape(len(bands), -1).T


def expected_labels(model, bands):
    return model.source.predict(rows_of(bands)).reshape(bands.shape[1:])


def check_labels(path, bands, gaps=False):
    """Compare a file with the source, pixel by pixel."""
    truth = expected_labels(CLASSES, np.where(gaps, 0, bands).astype(bands.dtype))
    np.testing.assert_array_equal(read(path)[0][0], np.where(gaps, 255, truth))


# --- pixels


LAYOUTS = {
    "strips": {},
    "tiles": {"tiled": True, "blockxsize": 32, "blockysize": 48},
    "pixels": {"interleave": "pixel", "compress": "lzw", "tiled": True, "blockxsize": 64, "blockysize": 64},
    "one strip": {"blockysize": 150, "compress": "deflate"},
}


@pytest.mark.parametrize("window_bytes", [1 << 24, 5000])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_labels_of_every_pixel(tmp_path, monkeypatch, layout, window_bytes):
    """Windows have any size, even smaller than blocks; the output has the input's grid."""
    monkeypatch.setattr("approxsvm.integrations.rasters.windows._WINDOW_BYTES", window_bytes)
    bands = scene(150, 301, "uint8")
    path = write(tmp_path / "scene.tif", bands, **LAYOUTS[layout])
    scored = approxsvm.score_raster(CLASSES.fast, path, tmp_path / "classes.tif", n_jobs=2)
    check_labels(tmp_path / "classes.tif", bands)
    found, nodata, profile, names = read(tmp_path / "classes.tif")
    assert (found.dtype, nodata, names) == (np.uint8, 255, ("label",))
    assert (profile["crs"], profile["transform"], profile["compress"]) == ("EPSG:32633", ROTATED, "deflate")
    assert (scored.n_rows, scored.n_bad, scored.written) == (150 * 301, 0, [str(tmp_path / "classes.tif")])
    assert sorted(os.listdir(tmp_path)) == ["classes.tif", "scene.tif"]


@pytest.mark.parametrize(
    ("dtype", "size"),
    [
        ("uint8", (1, 1)),
        ("uint16", (1, 700)),
        ("int16", (700, 1)),
        ("int32", (9, 8)),
        ("float32", (9, 8)),
        ("float64", (9, 8)),
        ("int64", (9, 8)),
    ],
)
def test_number_types_and_sizes(tmp_path, dtype, size):
    bands = scene(*size, dtype)
    write(tmp_path / "scene.tif", bands)
    for name, model in SOURCES.items():
        approxsvm.score_raster(model.fast, tmp_path / "scene.tif", tmp_path / "out.tif")
        found, nodata, _, _ = read(tmp_path / "out.tif")
        if name == "values":
            np.testing.assert_allclose(found[0].ravel(), model.fast.predict(rows_of(bands)), rtol=1e-12)
            assert np.isnan(nodata)
            continue
        truth = expected_labels(model, bands)
        if name == "texts":
            truth = np.searchsorted(model.source.classes_, truth)
        np.testing.assert_array_equal(found[0], truth)
        assert nodata == (-32768 if name == "two" else 255)


def test_outputs(tmp_path):
    """A file's bands all have the smallest type that represents them; probabilities may be scaled to integers."""
    calibrated = compiled(CalibratedClassifierCV(SVC(), ensemble=False), Y).fast
    bands = scene(30, 40)
    bands[:, 3, 4] = 250
    write(tmp_path / "scene.tif", bands, nodata=250)
    gaps, rows, fast = (bands == 250).any(axis=0).ravel(), rows_of(bands), CLASSES.fast
    labels, probabilities, scaled = fast.predict(rows), calibrated.predict_proba(rows), {"probability_scale": 10_000}
    integers, last = np.rint(probabilities * 10_000), "probability_4"
    for model, outputs, options, truth, dtype, nodata, name in [
        (fast, ["label", "certified"], {}, [labels, fast.certified(rows)], "uint8", 255, "certified"),
        (fast, ["value", "label"], {}, [fast.decision_function(rows), labels], "float64", np.nan, "label"),
        (calibrated, "probability", {}, [probabilities], "float32", np.nan, last),
        (calibrated, ["probability"], scaled, [integers], "uint16", 65535, last),
    ]:
        approxsvm.score_raster(model, tmp_path / "scene.tif", tmp_path / "out.tif", outputs=outputs, **options)
        found, of_file, _, names = read(tmp_path / "out.tif")
        assert (found.dtype, names[-1]) == (dtype, name)
        np.testing.assert_equal(of_file, nodata)
        np.testing.assert_array_equal(rows_of(found)[~gaps], np.column_stack(truth).astype(dtype)[~gaps])
        np.testing.assert_array_equal(rows_of(found)[gaps], nodata)
    for outputs, words in [
        ("label", "probability_scale is given, but the output probability is not requested"),
        (["probability", "error_bound"], "makes all bands integers, which error_bound does not fit in"),
        ([], "outputs is empty"),
    ]:
        with pytest.raises(InputError, match=words):
            approxsvm.score_raster(calibrated, tmp_path / "scene.tif", tmp_path / "p.tif", outputs=outputs, **scaled)


def test_texts_become_codes_with_names(tmp_path):
    """GDAL finds the category names; a run with other labels removes the earlier file's metadata."""
    write(tmp_path / "scene.tif", scene(20, 30))
    out = tmp_path / "out.tif"
    approxsvm.score_raster(SOURCES["texts"].fast, tmp_path / "scene.tif", out)
    with rasterio.open(out) as file:
        assert [file.tags(1)[f"CLASS_{k}"] for k in range(5)] == sorted(set(TEXTS.tolist()))
        colors = file.colormap(1)
        assert len({colors[k] for k in range(5)}) == 5
        assert colors[255][3] == 0
    assert "<Category>field &amp; &lt;farm&gt;</Category>" in (tmp_path / "out.tif.aux.xml").read_text()
    write(tmp_path / "out.tif.msk", np.zeros((1, 20, 30), np.uint8))
    approxsvm.score_raster(CLASSES.fast, tmp_path / "scene.tif", out)
    assert sorted(os.listdir(tmp_path)) == ["out.tif", "scene.tif"]


@pytest.mark.parametrize(
    ("labels", "dtype", "nodata"),
    [
        ([0, 255], "uint8", 254),
        ([-32768, 0], "int16", 32767),
        ([7, 300], "int16", -32768),
        ([0, 60_000], "uint16", 65535),
        ([0, 1 << 20], "int32", -(1 << 31)),
        ([0, 1 << 40], "uint8", 255),  # codes
        ([1.0, 2.0], "uint8", 255),
    ],
)
def test_number_types_of_labels(tmp_path, labels, dtype, nodata):
    model = compiled(SVC(), np.array(labels)[(Y > 2).astype(int)])
    bands = scene(9, 11)
    bands[0, 2, 2] = -9
    write(tmp_path / "scene.tif", bands, nodata=-9)
    approxsvm.score_raster(model.fast, tmp_path / "scene.tif", tmp_path / "out.tif")
    found, of_file, _, _ = read(tmp_path / "out.tif")
    truth = expected_labels(model, bands)
    if max(labels) > 1 << 30:
        truth = np.searchsorted(model.source.classes_, truth)
    np.testing.assert_array_equal(found[0], np.where((bands == -9).any(axis=0), nodata, truth))
    assert (str(found.dtype), of_file) == (dtype, nodata)


# --- gaps


GAPS = np.random.default_rng(3).random((40, 50)) < 0.2
GAPS[:7] = True  # whole chunks


def with_alpha(bands, place, **options):
    """Insert an alpha band."""
    colors = [ColorInterp.undefined] * (N_BANDS + 1)
    colors[place] = ColorInterp.alpha
    whole = np.insert(bands, place, np.where(GAPS, 0, 255), axis=0)
    return whole, {"attributes": {"colorinterp": colors}, **options}


def holed(bands, band, value):
    bands = bands.copy()
    bands[band, GAPS] = value
    return bands


INT16, UINT8, FLOAT32 = (scene(40, 50, dtype) for dtype in ("int16", "uint8", "float32"))
# The file's bands and options, and the call's options.
WITHOUT_DATA = {
    "number of the file": (holed(INT16, 1, -7), {"nodata": -7}, {}),
    "number of the caller": (holed(INT16, 1, -7), {}, {"nodata": np.int16(-7)}),
    "both": (holed(holed(INT16, 1, -7), 2, -8), {"nodata": -7}, {"nodata": -8.0}),
    "int64": (holed(scene(40, 50, "int64"), 1, -(1 << 53)), {}, {"nodata": -(1 << 53)}),
    "mask": (INT16, {"mask": ~GAPS}, {}),
    "mask and number": (holed(INT16, 1, -7), {"mask": ~np.roll(GAPS, 1, 1) | ~GAPS, "nodata": -7}, {}),
    "alpha": (*with_alpha(UINT8, 4), {}),
    "alpha between": (*with_alpha(UINT8, 1), {}),
    "alpha and number": (*with_alpha(UINT8, 4, nodata=251), {}),
    "NaN": (holed(FLOAT32, 3, np.nan), {}, {"nodata": np.nan}),
    "rounded number": (holed(FLOAT32, 0, -3.4e38), {"nodata": -3.4e38}, {}),
    "number in float64": (holed(FLOAT32, 0, 0.1), {}, {"nodata": 0.1, "scaled": True}),
}


@pytest.mark.parametrize("how", WITHOUT_DATA)
def test_pixels_without_data(tmp_path, how):
    bands, file, options = WITHOUT_DATA[how]
    write(tmp_path / "scene.tif", bands, **file)
    scored = approxsvm.score_raster(CLASSES.fast, tmp_path / "scene.tif", tmp_path / "out.tif", **options)
    bands = np.delete(bands, 1, 0) if how == "alpha between" else bands[:N_BANDS]
    check_labels(tmp_path / "out.tif", bands, GAPS)
    assert scored.n_bad == GAPS.sum()


def test_all_pixels_have_data(tmp_path):
    """A no-data value outside the pixel type never occurs; a band that the model does not use may lack data."""
    whole = np.concatenate([scene(40, 50, "float64"), np.full((1, 40, 50), np.nan)])
    for bands, options in [(UINT8, {"nodata": -9999}), (UINT8, {"nodata": 0.5}), (whole, {"bands": [1, 2, 3, 4]})]:
        write(tmp_path / "scene.tif", bands)
        approxsvm.score_raster(CLASSES.fast, tmp_path / "scene.tif", tmp_path / "out.tif", **options)
        check_labels(tmp_path / "out.tif", bands[:N_BANDS])


def test_an_imputer_gets_nan(tmp_path):
    """NaN is a valid value for the model, unless a pixel contains nothing else."""
    source = make_pipeline(SimpleImputer(), StandardScaler(), SVC()).fit(X, Y)
    bands = holed(FLOAT32, 2, np.nan).astype(np.float64)
    bands[:, 5, 6] = np.nan
    write(tmp_path / "scene.tif", bands, nodata=np.nan)
    approxsvm.score_raster(approxsvm.compile(source, X), tmp_path / "scene.tif", tmp_path / "out.tif")
    truth = source.predict(rows_of(bands)).reshape(40, 50)
    truth[5, 6] = 255
    np.testing.assert_array_equal(read(tmp_path / "out.tif")[0][0], truth)


def test_pixels_that_the_model_rejects(tmp_path):
    """Rejected pixels are named; the others get their answers."""
    model = compiled(SVC(kernel="poly", gamma=1.0), Y + 1)
    bands = scene(20, 30, "float64")
    truth = expected_labels(model, bands)
    bands[2, 3, 4], bands[1, 7, 8] = np.inf, 1e200
    truth[3, 4] = truth[7, 8] = 255
    write(tmp_path / "scene.tif", bands)
    scored = approxsvm.score_raster(model.fast, tmp_path / "scene.tif", tmp_path / "out.tif", n_jobs=1)
    np.testing.assert_array_equal(read(tmp_path / "out.tif")[0][0], truth)
    assert scored.n_bad == 2
    assert "scene.tif, row 3, column 4: a band is infinite" in scored.bad_rows[0]
    assert "scene.tif, row 7, column 8: " in scored.bad_rows[1]


# --- bands


def test_several_files_are_stacked(tmp_path):
    bands = scene(20, 30)
    paths = [write(tmp_path / f"b{k}.tif", bands[k : k + 1]) for k in range(N_BANDS)]
    mixed = [write(tmp_path / "m0.tif", bands[:1].astype(np.float32)), write(tmp_path / "m1.tif", bands[1:])]
    for files in (paths, mixed):
        approxsvm.score_raster(CLASSES.fast, files, tmp_path / "out.tif")
        check_labels(tmp_path / "out.tif", bands)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"size": (20, 31)}, "different sizes: 30 x 20 and 31 x 20 pixels"),
        ({"crs": "EPSG:32632"}, "different coordinate systems: EPSG:32633 and EPSG:32632"),
        ({"transform": Affine(10.0, 1.5, 500_001.0, 1.5, -10.0, 5_000_000.0)}, "different grids"),
    ],
)
def test_grids_that_differ(tmp_path, changes, words):
    write(tmp_path / "a.tif", scene(20, 30)[:2])
    write(tmp_path / "b.tif", scene(*changes.pop("size", (20, 30)))[:2], **changes)
    with pytest.raises(InputError, match=rf"a\.tif and .*b\.tif have {words}"):
        approxsvm.score_raster(CLASSES.fast, [tmp_path / "a.tif", tmp_path / "b.tif"], tmp_path / "out.tif")
    assert sorted(os.listdir(tmp_path)) == ["a.tif", "b.tif"]


def test_bands_by_name_number_and_position(tmp_path):
    pd = pytest.importorskip("pandas")
    names = ["B02", "B03", "B04", "842"]
    source = make_pipeline(StandardScaler(), SVC()).fit(pd.DataFrame(X, columns=names), Y + 1)
    fast = approxsvm.compile(source, pd.DataFrame(X, columns=names))
    bands, out, order = scene(20, 30), tmp_path / "out.tif", [3, 0, 2, 1]
    write(tmp_path / "named.tif", bands[order], attributes={"descriptions": [names[k] for k in order]})
    write(tmp_path / "nameless.tif", bands[order])
    for name, chosen in [("named.tif", None), ("named.tif", names), ("nameless.tif", [2, "4", np.int8(3), 1])]:
        approxsvm.score_raster(fast, tmp_path / name, out, bands=chosen)
        check_labels(out, bands)
    write(tmp_path / "in_order.tif", bands)
    with pytest.warns(ColumnsByPositionWarning, match="the file has no names: by position, the bands '1', '2'"):
        approxsvm.score_raster(fast, tmp_path / "in_order.tif", out)
    check_labels(out, bands)
    write(tmp_path / "fewer.tif", bands[:3])
    for name, chosen, words in [
        ("named.tif", [1, 2, 3, 5], "named.tif: a band is 5, but must be a whole number from 1 to 4"),
        ("named.tif", ["B02", "B03", "B04", "B8A"], "named.tif: there is no band 'B8A'"),
        ("named.tif", "B02", "named.tif: there is 1 band, but the model has 4 features"),
        ("fewer.tif", None, "fewer.tif: there are 3 bands .* 4 features"),
    ]:
        with pytest.raises(InputError, match=words):
            approxsvm.score_raster(fast, tmp_path / name, out, bands=chosen)


def test_four_bands_of_bytes(tmp_path):
    """GDAL marks the last as alpha; it is a feature if the model needs it, or on request."""
    bands = np.concatenate([scene(20, 30, "uint8")[:3], np.zeros((1, 20, 30), np.uint8)])
    bands[3, :10] = 1
    rgb = [ColorInterp.red, ColorInterp.green, ColorInterp.blue]
    write(tmp_path / "scene.tif", bands, attributes={"colorinterp": [*rgb, ColorInterp.alpha]})
    with pytest.warns(ColumnsByPositionWarning, match="an alpha band is taken for a feature"):
        approxsvm.score_raster(CLASSES.fast, tmp_path / "scene.tif", tmp_path / "out.tif")
    check_labels(tmp_path / "out.tif", bands)
    approxsvm.score_raster(CLASSES.fast, tmp_path / "scene.tif", tmp_path / "out.tif", bands=[1, 2, 3, 4])
    check_labels(tmp_path / "out.tif", bands)
    three = SVC().fit(X[:, :3], Y)
    approxsvm.score_raster(approxsvm.compile(three, X[:, :3]), tmp_path / "scene.tif", tmp_path / "out.tif")
    truth = np.where(bands[3] == 0, 255, three.predict(rows_of(bands[:3])).reshape(20, 30))
    np.testing.assert_array_equal(read(tmp_path / "out.tif")[0][0], truth)


def test_scale_and_offset(tmp_path):
    """A scale and offset are applied only on request, and a warning says so."""
    bands, out = scene(20, 30), tmp_path / "out.tif"
    factors = {"scales": [0.5] * N_BANDS, "offsets": [3.0] * N_BANDS}
    write(tmp_path / "scene.tif", bands, attributes=factors)
    with pytest.warns(ApproxSVMWarning, match="a scale and an offset, which are not applied; pass scaled=True"):
        approxsvm.score_raster(CLASSES.fast, tmp_path / "scene.tif", out)
    check_labels(out, bands)
    approxsvm.score_raster(CLASSES.fast, tmp_path / "scene.tif", out, scaled=True)
    check_labels(out, bands * 0.5 + 3.0)


def test_other_formats(tmp_path):
    """The command recognizes ENVI files and GDAL's own names, which GDAL reads."""
    bands = scene(20, 30)
    tif = write(tmp_path / "scene.tif", bands)
    write(tmp_path / "scene.img", bands, driver="ENVI")
    for name in (tmp_path / "scene.img", f"/vsisubfile/0_{tif.stat().st_size},{tif}"):
        found = run(CLASSES.fast.artifact, tmp_path, name, "-o", tmp_path / "out.tif")
        assert found.exit_code == 0, found.output
        check_labels(tmp_path / "out.tif", bands)


def test_overviews(tmp_path):
    write(tmp_path / "scene.tif", scene(600, 700))
    approxsvm.score_raster(CLASSES.fast, tmp_path / "scene.tif", tmp_path / "out.tif", overviews=True)
    with rasterio.open(tmp_path / "out.tif") as file:
        assert file.overviews(1) == [2, 4]


# --- files


def in_a_process(tmp_path, program, *arguments):
    """Run a program that scores rasters."""
    script = tmp_path.with_suffix(".py")
    script.write_text("import os, re, signal, sys, approxsvm\n" + textwrap.dedent(program))
    CLASSES.fast.save(tmp_path.with_suffix(".asvm"))
    command = [sys.executable, "-W", "ignore", script, tmp_path.with_suffix(".asvm"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit for the size of a file")
@pytest.mark.parametrize("share", [0.0, 0.3, 0.999])
@pytest.mark.parametrize("outputs", ["label", "value"])
def test_no_room_on_the_disk(tmp_path, outputs, share):
    """GDAL does not report every failure on closing a file, so the blocks are checked."""
    import resource

    write(tmp_path / "scene.tif", scene(300, 400))
    approxsvm.score_raster(CLASSES.fast, tmp_path / "scene.tif", tmp_path / "out.tif", outputs=outputs)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    limit = int((tmp_path / "out.tif").stat().st_size * share)
    os.unlink(tmp_path / "out.tif")
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limits[1]))
        with pytest.raises(OSError, match=r"out\.tif'"):
            approxsvm.score_raster(CLASSES.fast, tmp_path / "scene.tif", tmp_path / "out.tif", outputs=outputs)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert os.listdir(tmp_path) == ["scene.tif"]


@pytest.mark.parametrize("share", [0.0, 0.001, 0.5, 0.95])
def test_files_cut_short(tmp_path, share):
    path = write(tmp_path / "scene.tif", scene(300, 400), compress="deflate")
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    (tmp_path / "out.tif").write_bytes(b"of before")
    with pytest.raises(DataFormatError, match=r"scene.tif: (not a readable raster|rows \d+ to \d+ cannot be read): "):
        approxsvm.score_raster(CLASSES.fast, path, tmp_path / "out.tif")
    assert (tmp_path / "out.tif").read_bytes() == b"of before"
    assert sorted(os.listdir(tmp_path)) == ["out.tif", "scene.tif"]


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_a_folder_that_was_killed_is_continued(tmp_path):
    folder, out = tmp_path / "scenes", tmp_path / "out"
    folder.mkdir()
    for k in range(4):
        write(folder / f"s{k}.tif", scene(60, 70, seed=k))
    (folder / "notes.txt").write_text("not a picture\n")
    write(folder / "s0.tif.ovr", scene(30, 35))
    program = """
        def progress(pixels, share):
            if share > 0.6:
                os.kill(os.getpid(), signal.SIGKILL)
        approxsvm.score_raster(*sys.argv[1:], progress=progress)
    """
    assert in_a_process(tmp_path, program, folder, out).returncode == -signal.SIGKILL
    assert sorted(name for name in os.listdir(out) if name.endswith(".tif")) == ["s0.tif", "s1.tif"]
    scored = approxsvm.score_raster(CLASSES.fast, folder, out)
    assert (scored.n_kept, scored.n_rows) == (2, 2 * 60 * 70)
    assert sorted(os.listdir(out)) == ["_approxsvm_score.json", *(f"s{k}.tif" for k in range(4))]
    for k in range(4):
        check_labels(out / f"s{k}.tif", scene(60, 70, seed=k))
    with pytest.raises(InputError, match="holds the answers of another run, with nodata None instead of 3"):
        approxsvm.score_raster(CLASSES.fast, folder, out, nodata=3)


@pytest.mark.parametrize(
    ("output", "words"),
    [
        ("scene.tif", "output .*scene.tif is the same file as input .*scene.tif, which would be lost"),
        ("out.png", "out.png: the output of a raster must be a file whose name ends in .tif, or a folder"),
    ],
)
def test_outputs_that_cannot_be(tmp_path, output, words):
    write(tmp_path / "scene.tif", scene(5, 6))
    with pytest.raises(InputError, match=words):
        approxsvm.score_raster(CLASSES.fast, tmp_path / "scene.tif", tmp_path / output)


@pytest.mark.parametrize("size", [(700, 900), (3, 40_000), (40_000, 3), (1, 1)])
@pytest.mark.parametrize("block", [(1, 10**9), (512, 512), (100, 100), (10**9, 10**9), (7, 10**9)])
def test_windows_cover_a_raster_in_bounded_memory(size, block):
    """Windows cover every pixel once, and contain at least a row."""
    for bytes_per_pixel in (1, 20, 2000, 10**5):
        tiling = Tiling.of(size, [block], bytes_per_pixel)
        assert tiling.height * tiling.width * bytes_per_pixel <= 16 << 20
        windows = list(tiling.windows())
        assert sum(window.height * window.width for window in windows) == size[0] * size[1]
        assert len({(window.row, window.column) for window in windows}) == len(windows)
        if tiling.height <= block[0] and tiling.width <= block[1]:
            visited = [(window.row // block[0], window.column // block[1]) for window in windows]
            assert len(list(groupby(visited))) == len(set(visited))  # no block is decoded again


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="only Linux has the record")
def test_memory_of_a_large_scene(tmp_path):
    """Memory stays below 300 MB, although the pixels alone take 192 MB."""
    path = tmp_path / "scene.tif"
    options = {"tiled": True, "blockxsize": 512, "blockysize": 512, "sparse_ok": True}
    with rasterio.open(
        path, "w", driver="GTiff", count=N_BANDS, height=2000, width=3000, dtype="float64", **options
    ) as file:
        file.write(scene(512, 512, "float64"), window=rasterio.windows.Window(0, 0, 512, 512))
    program = """
        approxsvm.score_raster(*sys.argv[1:])
        print(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
    """
    found = in_a_process(tmp_path, program, path, tmp_path / "out.tif")
    assert int(found.stdout) < 300_000, found.stdout  # kilobytes


def test_the_cache_of_gdal(tmp_path):
    """The cache holds the blocks of a window, and is restored to the caller's size after the run."""
    get, seen = rasterio.env.get_gdal_config, []
    write(tmp_path / "scene.tif", scene(20, 30))
    with rasterio.Env(GDAL_CACHEMAX=7 << 20):
        approxsvm.score_raster(
            CLASSES.fast,
            tmp_path / "scene.tif",
            tmp_path / "out.tif",
            progress=lambda *_: seen.append(get("GDAL_CACHEMAX")),
        )
        assert get("GDAL_CACHEMAX") == 7 << 20
    assert 32 << 20 <= seen[0] <= 128 << 20


# --- the command


def run(model, folder, *arguments):
    (folder / "classes.asvm").write_bytes(model.data)
    return CliRunner().invoke(main, ["score", str(folder / "classes.asvm"), *map(str, arguments)])


def test_the_command(tmp_path):
    bands, model, tif, out = scene(30, 40), CLASSES.fast.artifact, tmp_path / "scene.tif", tmp_path / "out.tif"
    bands[0, 5, 6], bands[1, 7, 8] = -1, -2
    write(tif, bands, nodata=-1)
    options = ["--bands", "1,2,3,4", "--outputs", "label,certified", "--overviews", "--nodata", "-2", "-j", "1"]
    found = run(model, tmp_path, tif, "-o", out, *options)
    assert found.exit_code == 0, found.output
    check_labels(out, bands, (bands < 0).any(axis=0))
    assert "out.tif: 1,200 pixels, 2 without an answer" in found.output
    csv = tmp_path / "rows.csv"
    csv.write_text("1,2,3,4\n")
    for arguments, words in [
        ([tif, "-o", out, "--keep", "id"], "--keep is for tables, but the input is a raster"),
        ([tif, "-o", out, "--on-error", "fail"], "--on-error is for tables, but the input is a raster"),
        ([csv, "-o", tmp_path / "o.csv", "--nodata", "0"], "--nodata is for a raster, but the input is tables"),
        ([csv, tif, "-o", tmp_path / "o.csv"], "scene.tif: this is a TIFF image; score_raster reads it"),
        ([tmp_path / "typo.tif", "-o", out], "typo.tif: not a readable raster: "),
        ([tmp_path / "typo*.tif", "-o", tmp_path / "folder"], "no file matches "),
        ([tif, "--model", f"b={tmp_path / 'classes.asvm'}", "-o", out], "scored by one model, but 2 are given"),
    ]:
        assert words in run(model, tmp_path, *arguments).output


def test_without_the_package(tmp_path, monkeypatch):
    """The error contains the command that installs it."""
    monkeypatch.setitem(sys.modules, "rasterio", None)
    for name in ("scenes", "stack", "writing"):
        monkeypatch.delitem(sys.modules, f"approxsvm.integrations.rasters.{name}", raising=False)
    with pytest.raises(MissingPackageError, match=r"install it with pip install 'approxsvm\[raster\]'"):
        approxsvm.score_raster(CLASSES.fast, tmp_path / "scene.tif", tmp_path / "out.tif")
