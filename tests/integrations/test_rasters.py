"""Rasters of any size: pixels equal the source's answers; gaps stay gaps; no output is half-written."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.datasets import make_blobs
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

import approxsvm
from approxsvm.cli import main
from approxsvm.errors import ApproxSVMWarning, ColumnsByPositionWarning, DataFormatError, InputError

rasterio = pytest.importorskip("rasterio", reason="rasterio is not installed; it is the extra raster")

from rasterio.transform import Affine  # noqa: E402

from approxsvm.integrations.rasters.windows import Tiling  # noqa: E402

pytestmark = pytest.mark.filterwarnings(
    "ignore::approxsvm.errors.ColumnsByPositionWarning", "ignore::rasterio.errors.NotGeoreferencedWarning"
)

ROTATED = Affine(10.0, 1.5, 500_000.0, 1.5, -10.0, 5_000_000.0)
N_BANDS = 4
X, Y = make_blobs(400, N_BANDS, centers=5, cluster_std=2.0, random_state=0)
X = np.rint((X - X.min()) * 8.0)  # whole numbers from 0 to about 250, valid in every number type
TEXTS = np.array(["water", "forest", "field & <farm>", "town", "bare"])[Y]


def compiled(estimator, labels):
    source = make_pipeline(StandardScaler(), estimator).fit(X, labels)
    return SimpleNamespace(source=source, fast=approxsvm.compile(source, X))


CLASSES = compiled(SVC(), Y + 1)
NAMED = compiled(SVC(), TEXTS)
TWO = compiled(SVC(), np.where(Y == 0, -1, 1))
VALUES = compiled(SVR(), X[:, 0] / 3.0)
SOURCES = {"classes": CLASSES, "texts": NAMED, "two": TWO, "values": VALUES}


def scene(height, width, dtype="uint8", seed=1):
    """Pixels drawn from the rows, in no order."""
    rows = np.random.default_rng(seed).integers(0, len(X), height * width)
    return np.ascontiguousarray(X[rows].T.reshape(N_BANDS, height, width)).astype(dtype)


def write(path, bands, **options):
    tags, masks, names = (options.pop(name, None) for name in ("scales", "mask", "names"))
    offsets = options.pop("offsets", None)
    options = {"driver": "GTiff", "crs": "EPSG:32633", "transform": ROTATED, **options}
    count, height, width = bands.shape
    with (
        rasterio.Env(GDAL_TIFF_INTERNAL_MASK=True),
        rasterio.open(path, "w", count=count, height=height, width=width, dtype=bands.dtype, **options) as file,
    ):
        file.write(bands)
        if tags is not None:
            file.scales, file.offsets = tags, offsets
        if names is not None:
            file.descriptions = names
        if masks is not None:
            file.write_mask(masks)
    return path


def read(path):
    with rasterio.open(path) as file:
        return file.read(), file.nodata, file.profile, file.descriptions


def rows_of(bands):
    return bands.reshape(len(bands), -1).T


def expected_labels(model, bands):
    return model.source.predict(rows_of(bands)).reshape(bands.shape[1:])


# --- pixels


LAYOUTS = {
    "strips": {},
    "tiles": {"tiled": True, "blockxsize": 32, "blockysize": 48},
    "pixels": {"interleave": "pixel", "compress": "lzw", "tiled": True, "blockxsize": 64, "blockysize": 64},
    "one strip": {"blockysize": 150, "compress": "deflate"},
}


@pytest.mark.parametrize("window_bytes", [1 << 24, 1500, 20])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_labels_of_every_pixel(tmp_path, monkeypatch, layout, window_bytes):
    """In windows of any size, also smaller than blocks; the output has the grid of the input."""
    monkeypatch.setattr("approxsvm.integrations.rasters.windows._WINDOW_BYTES", window_bytes * 40)
    bands = scene(150, 301)
    path = write(tmp_path / "scene.tif", bands, **LAYOUTS[layout])
    scored = approxsvm.score_raster(CLASSES.fast, path, tmp_path / "classes.tif", n_jobs=2)
    found, nodata, profile, names = read(tmp_path / "classes.tif")
    np.testing.assert_array_equal(found[0], expected_labels(CLASSES, bands))
    assert (found.dtype, nodata, names) == (np.uint8, 255, ("label",))
    assert (profile["crs"], profile["transform"], profile["compress"]) == ("EPSG:32633", ROTATED, "deflate")
    assert (scored.n_rows, scored.n_bad, scored.written) == (150 * 301, 0, [str(tmp_path / "classes.tif")])
    assert sorted(os.listdir(tmp_path)) == ["classes.tif", "scene.tif"]


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16", "int32", "float32", "float64"])
@pytest.mark.parametrize("size", [(1, 1), (1, 700), (700, 1), (40, 50)])
def test_number_types_and_sizes(tmp_path, dtype, size):
    bands = scene(*size, dtype)
    write(tmp_path / "scene.tif", bands)
    for name, model in SOURCES.items():
        approxsvm.score_raster(model.fast, tmp_path / "scene.tif", tmp_path / "out.tif")
        found, nodata, _, _ = read(tmp_path / "out.tif")
        if name == "values":
            np.testing.assert_array_equal(found[0].ravel(), model.fast.predict(np.repeat(rows_of(bands), 2, 0))[::2])
            assert np.isnan(nodata)
            continue
        truth = expected_labels(model, bands)
        if name == "texts":
            truth = np.searchsorted(model.source.classes_, truth)
        np.testing.assert_array_equal(found[0], truth)
        assert nodata == (-32768 if name == "two" else 255)


def test_outputs(tmp_path):
    """One type for all bands of a file: the smallest that holds them."""
    bands = scene(30, 40)
    write(tmp_path / "scene.tif", bands)
    rows = rows_of(bands)
    out = tmp_path / "out.tif"

    def scored(**options):
        approxsvm.score_raster(CLASSES.fast, tmp_path / "scene.tif", out, **options)
        found, nodata, _, names = read(out)
        return rows_of(found), nodata, names

    found, nodata, names = scored(outputs=["label", "certified"])
    assert (found.dtype, nodata, names) == (np.uint8, 255, ("label", "certified"))
    np.testing.assert_array_equal(found, np.column_stack([CLASSES.fast.predict(rows), CLASSES.fast.certified(rows)]))
    found, nodata, names = scored(outputs=["value", "label"])
    assert (found.dtype, names[0], names[-1]) == (np.float64, "value_1", "label")
    np.testing.assert_array_equal(found[:, :-1], CLASSES.fast.decision_function(rows))


def test_probabilities(tmp_path):
    model = compiled(SVC(probability=True, random_state=0), Y)
    bands = scene(30, 40)
    bands[:, 3, 4] = 250
    write(tmp_path / "scene.tif", bands, nodata=250)
    truth = model.fast.predict_proba(rows_of(bands)).T.reshape(5, 30, 40)
    truth[:, (bands == 250).any(axis=0)] = np.nan
    approxsvm.score_raster(model.fast, tmp_path / "scene.tif", tmp_path / "p.tif", outputs=["probability"])
    found, nodata, _, names = read(tmp_path / "p.tif")
    assert (found.dtype, names[4]) == (np.float32, "probability_4")
    np.testing.assert_array_equal(found, truth.astype(np.float32))
    approxsvm.score_raster(
        model.fast,
        tmp_path / "scene.tif",
        tmp_path / "p.tif",
        outputs=["probability", "label"],
        probability_scale=10_000,
    )
    found, nodata, _, _ = read(tmp_path / "p.tif")
    assert (found.dtype, nodata) == (np.uint16, 65535)
    np.testing.assert_array_equal(found[:5], np.where(np.isnan(truth), 65535, np.rint(truth * 10_000)))
    with pytest.raises(InputError, match="probability_scale is given, but the output probability is not requested"):
        approxsvm.score_raster(model.fast, tmp_path / "scene.tif", tmp_path / "p.tif", probability_scale=100)


def test_texts_become_codes_with_names(tmp_path):
    """GDAL finds names of categories; a run with other labels removes them."""
    write(tmp_path / "scene.tif", scene(20, 30))
    out = tmp_path / "out.tif"
    approxsvm.score_raster(NAMED.fast, tmp_path / "scene.tif", out)
    with rasterio.open(out) as file:
        assert {file.tags(1)[f"CLASS_{k}"] for k in range(5)} == set(TEXTS.tolist())
        assert file.tags(1)["CLASS_1"] == "field & <farm>"
        colors = file.colormap(1)
        assert len({colors[k] for k in range(5)}) == 5
        assert colors[255][3] == 0
    assert "<Category>field &amp; &lt;farm&gt;</Category>" in (tmp_path / "out.tif.aux.xml").read_text()
    approxsvm.score_raster(CLASSES.fast, tmp_path / "scene.tif", out)
    assert sorted(os.listdir(tmp_path)) == ["out.tif", "scene.tif"]


@pytest.mark.parametrize(
    ("labels", "dtype", "nodata"),
    [
        ([0, 255], "uint8", 254),
        ([-1, 3], "int16", -32768),
        ([-32768, 0], "int16", 32767),
        ([7, 300], "int16", -32768),
        ([0, 60_000], "uint16", 65535),
        ([0, 1 << 20], "int32", -(1 << 31)),
        ([0, 1 << 40], "uint8", 255),  # codes
        ([0.5, 1.0], "uint8", 255),
        ([1.0, 2.0], "uint8", 255),
    ],
)
def test_number_types_of_labels(tmp_path, labels, dtype, nodata):
    model = compiled(SVC(), np.array(labels)[(Y > 2).astype(int)])
    bands = scene(9, 11)
    bands[0, 2, 2] = 0
    write(tmp_path / "scene.tif", bands, nodata=0)
    approxsvm.score_raster(model.fast, tmp_path / "scene.tif", tmp_path / "out.tif")
    found, of_file, _, _ = read(tmp_path / "out.tif")
    truth = expected_labels(model, bands)
    if max(labels) > 1 << 30 or 0.5 in labels:
        truth = np.searchsorted(model.source.classes_, truth)
    np.testing.assert_array_equal(found[0], np.where((bands == 0).any(axis=0), nodata, truth))
    assert (str(found.dtype), of_file) == (dtype, nodata)


# --- gaps


def holes(shape):
    return np.random.default_rng(3).random(shape) < 0.2


def nan_scene():
    bands = scene(40, 50, "float32")
    bands[np.broadcast_to(holes((40, 50)), bands.shape) & (np.arange(N_BANDS) == 2)[:, None, None]] = np.nan
    return bands


@pytest.mark.parametrize("how", ["nodata", "option", "mask", "alpha", "nan", "float nodata", "nodata outside"])
def test_pixels_without_data(tmp_path, how):
    gaps, bands, options = holes((40, 50)), scene(40, 50, "int16"), {}
    path = tmp_path / "scene.tif"
    if how in ("nodata", "option"):
        bands[1, gaps] = -7
        write(path, bands, nodata=-7 if how == "nodata" else None)
        options = {"nodata": -7} if how == "option" else {}
    elif how == "mask":
        write(path, bands, mask=~gaps)
    elif how == "alpha":
        with_alpha = np.concatenate([bands.astype(np.uint8), np.where(gaps, 0, 255).astype(np.uint8)[None]])
        write(path, with_alpha, alpha="yes")
    elif how == "nan":
        bands = bands.astype(np.float64)
        bands[3, gaps] = np.nan
        write(path, bands)
    elif how == "float nodata":  # -3.4e38 is rounded in float32
        bands = bands.astype(np.float32)
        bands[0, gaps] = -3.4e38
        write(path, bands, nodata=-3.4e38)
    else:
        bands, gaps = bands.astype(np.uint8), np.zeros_like(gaps)
        write(path, bands)
        options = {"nodata": -9999}
    scored = approxsvm.score_raster(CLASSES.fast, path, tmp_path / "out.tif", **options)
    found = read(tmp_path / "out.tif")[0][0]
    truth = expected_labels(CLASSES, np.where(gaps, 0, bands.astype(np.float64)))
    np.testing.assert_array_equal(found, np.where(gaps, 255, truth))
    assert scored.n_bad == gaps.sum()


def test_a_band_that_is_not_used_may_lack_data(tmp_path):
    bands = np.concatenate([scene(20, 30, "float64"), np.full((1, 20, 30), np.nan)])
    write(tmp_path / "scene.tif", bands)
    approxsvm.score_raster(CLASSES.fast, tmp_path / "scene.tif", tmp_path / "out.tif", bands=[1, 2, 3, 4])
    np.testing.assert_array_equal(read(tmp_path / "out.tif")[0][0], expected_labels(CLASSES, bands[:4]))


def test_an_imputer_gets_nan(tmp_path):
    """NaN is a value of the model, unless a pixel has nothing else."""
    source = make_pipeline(SimpleImputer(), StandardScaler(), SVC()).fit(X, Y)
    bands = nan_scene()
    bands[:, 5, 6] = np.nan
    write(tmp_path / "scene.tif", bands.astype(np.float64), nodata=np.nan)
    approxsvm.score_raster(approxsvm.compile(source, X), tmp_path / "scene.tif", tmp_path / "out.tif")
    truth = source.predict(rows_of(bands.astype(np.float64))).reshape(40, 50)
    truth[5, 6] = 255
    np.testing.assert_array_equal(read(tmp_path / "out.tif")[0][0], truth)


def test_pixels_that_the_model_rejects(tmp_path):
    """Each is named; the others have their answers."""
    bands = scene(20, 30, "float64")
    bands[2, 3, 4] = np.inf
    bands[1, 7, 8] = 1e300
    write(tmp_path / "scene.tif", bands)
    scored = approxsvm.score_raster(CLASSES.fast, tmp_path / "scene.tif", tmp_path / "out.tif", n_jobs=1)
    found = read(tmp_path / "out.tif")[0][0]
    assert np.argwhere(found == 255).tolist() == [[3, 4], [7, 8]]
    assert scored.n_bad == 2
    assert "scene.tif, row 3, column 4: a band is infinite" in scored.bad_rows[0]
    assert "scene.tif, row 7, column 8: " in scored.bad_rows[1]


# --- bands


def test_several_files_are_stacked(tmp_path):
    bands = scene(20, 30)
    paths = [write(tmp_path / f"b{k}.tif", bands[k : k + 1]) for k in range(N_BANDS)]
    approxsvm.score_raster(CLASSES.fast, paths, tmp_path / "out.tif")
    np.testing.assert_array_equal(read(tmp_path / "out.tif")[0][0], expected_labels(CLASSES, bands))
    mixed = [write(tmp_path / "m0.tif", bands[:1].astype(np.float32)), write(tmp_path / "m1.tif", bands[1:])]
    approxsvm.score_raster(CLASSES.fast, mixed, tmp_path / "out.tif")
    np.testing.assert_array_equal(read(tmp_path / "out.tif")[0][0], expected_labels(CLASSES, bands))


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
    names = ["B02", "B03", "B04", "B08"]
    source = make_pipeline(StandardScaler(), SVC()).fit(pd.DataFrame(X, columns=names), Y)
    fast = approxsvm.compile(source, pd.DataFrame(X, columns=names))
    bands, out = scene(20, 30), tmp_path / "out.tif"
    truth = source.predict(pd.DataFrame(rows_of(bands), columns=names)).reshape(20, 30)
    order = [3, 0, 2, 1]
    write(tmp_path / "named.tif", bands[order], names=[names[k] for k in order])
    write(tmp_path / "nameless.tif", bands[order])
    write(tmp_path / "in_order.tif", bands)
    cases = [("named.tif", None), ("named.tif", names), ("nameless.tif", [2, 4, 3, 1])]
    for name, chosen in cases:
        approxsvm.score_raster(fast, tmp_path / name, out, bands=chosen)
        np.testing.assert_array_equal(read(out)[0][0], truth)
    with pytest.warns(ColumnsByPositionWarning, match="the file has no names: by position, the bands '1', '2'"):
        approxsvm.score_raster(fast, tmp_path / "in_order.tif", out)
    np.testing.assert_array_equal(read(out)[0][0], truth)
    with pytest.raises(InputError, match="there is no band 5, only 1 to 4"):
        approxsvm.score_raster(fast, tmp_path / "named.tif", out, bands=[1, 2, 3, 5])
    with pytest.raises(InputError, match=r"named.tif: there is no band 'B8A'"):
        approxsvm.score_raster(fast, tmp_path / "named.tif", out, bands=["B02", "B03", "B04", "B8A"])
    write(tmp_path / "fewer.tif", bands[:3])
    with pytest.raises(InputError, match=r"fewer.tif: there are 3 bands .* 4 features"):
        approxsvm.score_raster(fast, tmp_path / "fewer.tif", out)


def test_scale_and_offset(tmp_path):
    """They are applied only if requested, and the warning says so."""
    bands = scene(20, 30)
    write(tmp_path / "scene.tif", bands, scales=[0.5] * N_BANDS, offsets=[3.0] * N_BANDS)
    out = tmp_path / "out.tif"
    with pytest.warns(ApproxSVMWarning, match="a scale and an offset, which are not applied; pass scaled=True"):
        approxsvm.score_raster(CLASSES.fast, tmp_path / "scene.tif", out)
    np.testing.assert_array_equal(read(out)[0][0], expected_labels(CLASSES, bands))
    approxsvm.score_raster(CLASSES.fast, tmp_path / "scene.tif", out, scaled=True)
    np.testing.assert_array_equal(read(out)[0][0], expected_labels(CLASSES, bands * 0.5 + 3.0))


def test_other_formats(tmp_path):
    """GDAL reads them: VRT, ENVI, PNG, and names of its own."""
    bands = scene(20, 30)
    tif = write(tmp_path / "scene.tif", bands)
    write(tmp_path / "scene.img", bands, driver="ENVI")
    write(tmp_path / "scene.png", bands[:3], driver="PNG", crs=None, transform=None)
    for name in ("scene.img", f"/vsisubfile/0_{tif.stat().st_size},{tif}"):
        path = name if name.startswith("/") else tmp_path / name
        approxsvm.score_raster(CLASSES.fast, path, tmp_path / "out.tif")
        np.testing.assert_array_equal(read(tmp_path / "out.tif")[0][0], expected_labels(CLASSES, bands))


def test_overviews(tmp_path):
    write(tmp_path / "scene.tif", scene(600, 700))
    approxsvm.score_raster(CLASSES.fast, tmp_path / "scene.tif", tmp_path / "out.tif", overviews=True)
    with rasterio.open(tmp_path / "out.tif") as file:
        assert file.overviews(1) == [2, 4]


# --- files


def in_a_process(tmp_path, program, *arguments):
    """Run a program that scores rasters."""
    text = """
        import os, re, resource, signal, sys, warnings
        import approxsvm
        warnings.simplefilter("ignore")
    """
    script = tmp_path.with_suffix(".py")
    script.write_text(textwrap.dedent(text) + textwrap.dedent(program))
    command = [sys.executable, script, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


@pytest.fixture(scope="module")
def artifact(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "classes.asvm"
    CLASSES.fast.save(path)
    return path


@pytest.mark.parametrize("share", [0.3, 0.9, 0.999])
@pytest.mark.parametrize("outputs", [["label"], ["value"]])
def test_no_room_on_the_disk(tmp_path, artifact, outputs, share):
    """GDAL does not report every failure when it closes a file: the blocks are checked."""
    write(tmp_path / "scene.tif", scene(300, 400))
    approxsvm.score_raster(CLASSES.fast, tmp_path / "scene.tif", tmp_path / "out.tif", outputs=outputs)
    limit = int((tmp_path / "out.tif").stat().st_size * share)
    os.unlink(tmp_path / "out.tif")
    program = f"""
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))
        approxsvm.score_raster(sys.argv[1], sys.argv[2], sys.argv[3], outputs={outputs})
    """
    found = in_a_process(tmp_path, program, artifact, tmp_path / "scene.tif", tmp_path / "out.tif")
    assert "out.tif'" in found.stderr.splitlines()[-1], found.stderr
    assert found.stderr.splitlines()[-1].startswith("OSError")
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
def test_a_folder_that_was_killed_is_continued(tmp_path, artifact):
    folder, out = tmp_path / "scenes", tmp_path / "out"
    folder.mkdir()
    for k in range(4):
        write(folder / f"s{k}.tif", scene(60, 70, seed=k))
    program = """
        def progress(pixels, share):
            if share > 0.6:
                os.kill(os.getpid(), signal.SIGKILL)
        approxsvm.score_raster(sys.argv[1], sys.argv[2], sys.argv[3], progress=progress)
    """
    assert in_a_process(tmp_path, program, artifact, folder, out).returncode == -signal.SIGKILL
    assert sorted(name for name in os.listdir(out) if name.endswith(".tif")) == ["s0.tif", "s1.tif"]
    scored = approxsvm.score_raster(artifact, folder, out)
    assert (scored.n_kept, scored.n_rows) == (2, 2 * 60 * 70)
    assert sorted(os.listdir(out)) == ["_approxsvm_score.json", *(f"s{k}.tif" for k in range(4))]
    for k in range(4):
        np.testing.assert_array_equal(read(out / f"s{k}.tif")[0][0], expected_labels(CLASSES, scene(60, 70, seed=k)))
    with pytest.raises(InputError, match="holds the answers of another run, with nodata None instead of 3"):
        approxsvm.score_raster(artifact, folder, out, nodata=3)


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


@pytest.mark.parametrize("size", [(700, 900), (3, 40_000), (40_000, 3), (1, 1), (5000, 5000)])
@pytest.mark.parametrize("block", [(1, 10**9), (512, 512), (100, 100), (10**9, 10**9), (7, 10**9)])
@pytest.mark.parametrize("bytes_per_pixel", [1, 20, 2000, 10**6])
def test_windows_cover_a_raster_in_bounded_memory(size, block, bytes_per_pixel):
    """Every pixel once."""
    tiling = Tiling.of(size, [block], bytes_per_pixel)
    assert tiling.height * tiling.width * bytes_per_pixel <= max(16 << 20, bytes_per_pixel)
    covered = 0
    ends = set()
    for n, window in enumerate(tiling.windows()):
        covered += window.height * window.width
        ends.add((window.row, window.column))
        if n > 10_000:
            return  # too many for a test
    assert covered == size[0] * size[1]
    assert len(ends) == n + 1


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="only Linux has the record")
@pytest.mark.parametrize(
    ("size", "options"),
    [
        ((4000, 5000), {"tiled": True, "blockxsize": 512, "blockysize": 512}),
        ((200, 100_000), {"interleave": "pixel"}),
        ((3000, 4000), {"tiled": True, "blockxsize": 2048, "blockysize": 2048, "compress": "deflate"}),
    ],
)
def test_memory_of_large_scenes(tmp_path, artifact, size, options):
    """Below 300 MB for a tiled scene, strips of a wide one, and huge blocks."""
    bands = np.broadcast_to(scene(1, size[1], "float32"), (N_BANDS, *size))
    write(tmp_path / "scene.tif", bands, **options)
    program = """
        approxsvm.score_raster(sys.argv[1], sys.argv[2], sys.argv[3], outputs=["label", "value"])
        print(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
    """
    found = in_a_process(tmp_path, program, artifact, tmp_path / "scene.tif", tmp_path / "out.tif")
    assert int(found.stdout) < 300_000, found.stdout  # kilobytes


# --- the command


def run(*arguments):
    return CliRunner().invoke(main, ["score", *map(str, arguments)])


def test_the_command(tmp_path, artifact):
    bands = scene(30, 40)
    write(tmp_path / "scene.tif", bands, nodata=0)
    out = tmp_path / "out.tif"
    options = ["--bands", "1,2,3,4", "--outputs", "label,certified", "--overviews", "--nodata", "1", "-j", "1"]
    found = run(artifact, tmp_path / "scene.tif", "-o", out, *options)
    assert found.exit_code == 0, found.output
    gaps = (bands <= 1).any(axis=0)
    np.testing.assert_array_equal(read(out)[0][0], np.where(gaps, 255, expected_labels(CLASSES, bands)))
    assert f"1,200 pixels, {gaps.sum():,} without an answer" in found.output or not gaps.any()
    for extra, words in [
        (["--keep", "id"], "--keep is for tables, but the input is a raster"),
        (["--model", artifact.with_name("classes.asvm").rename(artifact)], ""),
    ]:
        if words:
            assert words in run(artifact, tmp_path / "scene.tif", "-o", out, *extra).output
    (tmp_path / "rows.csv").write_text("1,2,3,4\n")
    found = run(artifact, tmp_path / "rows.csv", "-o", tmp_path / "o.csv", "--nodata", "0")
    assert "--nodata is for a raster, but the input is tables" in found.output
    found = run(artifact, tmp_path / "rows.csv", tmp_path / "scene.tif", "-o", tmp_path / "o.csv")
    assert "scene.tif: this is a TIFF image; score_raster reads it" in found.output


def test_without_the_package(tmp_path, artifact):
    """The error has the command that installs it."""
    write(tmp_path / "scene.tif", scene(5, 6))
    program = """
        sys.modules["rasterio"] = None
        from approxsvm.cli import main
        sys.argv = ["approxsvm", "score", *sys.argv[1:3], "-o", sys.argv[3]]
        main()
    """
    found = in_a_process(tmp_path, program, artifact, tmp_path / "scene.tif", tmp_path / "out.tif")
    assert found.returncode == 1
    assert "needs the package rasterio, install it with pip install 'approxsvm[raster]'" in found.stderr
