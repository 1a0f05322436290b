"""Pixel arrays: every pixel's answer equals its row's, in every shape and container; gaps are masked."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import approxsvm
from approxsvm.errors import InputError
from approxsvm.integrations.rasters.pixels import PixelModel

N_BANDS = 3
X, Y = make_blobs(300, N_BANDS, centers=4, cluster_std=2.0, random_state=0)
X = np.rint((X - X.min()) * 8.0)
SOURCE = make_pipeline(StandardScaler(), SVC()).fit(X, Y * 2 - 3)
FAST = approxsvm.compile(SOURCE, X)
TEXTS = approxsvm.compile(make_pipeline(StandardScaler(), SVC()).fit(X, np.array(list("abcd"))[Y]), X)


def picture(*shape, dtype="uint8"):
    rows = np.random.default_rng(1).integers(0, len(X), int(np.prod(shape)))
    return np.ascontiguousarray(X[rows].T.reshape(N_BANDS, *shape)).astype(dtype)


def truth(bands):
    return SOURCE.predict(bands.reshape(N_BANDS, -1).T).reshape(bands.shape[1:])


@pytest.mark.parametrize(
    ("dtype", "shape", "axis"),
    [
        ("uint8", (20, 31), 0),
        ("int16", (20, 31), -1),
        (">u2", (3, 8, 9), 1),
        ("float32", (50,), 0),
        ("float64", (), 0),
        ("bool", (4, 5), 0),
        (">f4", (4, 5), 2),
    ],
)
@pytest.mark.parametrize("most", [1 << 16, 7])
def test_every_shape_and_dtype(monkeypatch, dtype, shape, axis, most):
    """Check chunks of any size, from C, Fortran and strided arrays, and nested lists."""
    monkeypatch.setattr("approxsvm.integrations.rasters.image._MOST_PIXELS", most)
    bands = picture(*shape, dtype=dtype)
    image = np.moveaxis(bands, 0, axis)
    for form in (image, np.ascontiguousarray(image), np.asfortranarray(image), np.repeat(image, 2, axis=-1)[..., ::2]):
        found = approxsvm.predict_image(FAST, form, axis=axis)
        assert not np.ma.getmaskarray(found).any()
        np.testing.assert_array_equal(found, truth(bands))
    np.testing.assert_array_equal(approxsvm.predict_image(FAST, image.tolist(), axis=axis), truth(bands))


def test_outputs():
    image = picture(12, 13)
    rows = image.reshape(N_BANDS, -1).T
    found = approxsvm.predict_image(FAST, image, outputs=["label", "value", "certified", "error_bound"])
    assert list(found) == ["label", "value", "certified", "error_bound"]
    np.testing.assert_array_equal(found["value"].reshape(4, -1).T, FAST.decision_function(rows))
    np.testing.assert_array_equal(found["certified"].ravel(), FAST.certified(rows))
    assert found["certified"].dtype == np.bool_
    last = approxsvm.predict_image(FAST, np.moveaxis(image, 0, -1), axis=-1, outputs="value")
    np.testing.assert_array_equal(np.moveaxis(last, -1, 0), found["value"])
    assert approxsvm.predict_image(TEXTS, image).dtype.kind == "U"
    assert approxsvm.predict_image(FAST, image[:, :0], outputs="value").shape == (4, 0, 13)


@pytest.mark.parametrize("how", ["nodata", "nan", "masked", "infinite"])
def test_gaps(how):
    image = picture(20, 30, dtype="float32" if how in ("nan", "infinite") else "int16")
    gaps = np.random.default_rng(2).random((20, 30)) < 0.1
    gaps[3:5] = True
    clean, options = image.copy(), {}
    if how == "masked":
        image = np.ma.MaskedArray(image, np.broadcast_to(gaps, image.shape) & (np.arange(N_BANDS) == 1)[:, None, None])
    else:
        image[2, gaps] = {"nodata": -1, "nan": np.nan, "infinite": -np.inf}[how]
        options = {"nodata": -1} if how == "nodata" else {}
    found = approxsvm.predict_image(FAST, image, outputs=["label", "value"], **options)
    for answer in found.values():
        np.testing.assert_array_equal(np.ma.getmaskarray(answer).any(axis=0 if answer.ndim == 3 else ()), gaps)
    np.testing.assert_array_equal(found["label"][~gaps], truth(clean)[~gaps])
    assert found["label"].fill_value not in SOURCE.classes_
    image = np.ma.MaskedArray(clean, True)
    assert approxsvm.predict_image(FAST, image).mask.all()


def test_an_imputer_gets_nan():
    source = make_pipeline(SimpleImputer(), StandardScaler(), SVC()).fit(X, Y)
    image = picture(20, 30, dtype="float64")
    image[0, 3:9] = np.nan
    image[:, 4, 5] = np.nan
    found = approxsvm.predict_image(approxsvm.compile(source, X), image)
    assert np.argwhere(found.mask).tolist() == [[4, 5]]
    expected = source.predict(image.reshape(N_BANDS, -1).T).reshape(20, 30)
    np.testing.assert_array_equal(found[~found.mask], expected[~found.mask])


def test_a_memory_map_is_not_copied(tmp_path, monkeypatch):
    """Chunks are passed to the model as views."""
    np.save(tmp_path / "image.npy", picture(200, 300, dtype="float32"))
    image = np.load(tmp_path / "image.npy", mmap_mode="r")
    answer, seen = PixelModel.answer, []
    monkeypatch.setattr(PixelModel, "answer", lambda self, rows, data: seen.append(rows) or answer(self, rows, data))
    for axis, form in ((0, image), (-1, np.ascontiguousarray(np.moveaxis(image, 0, -1)))):
        seen.clear()
        np.testing.assert_array_equal(approxsvm.predict_image(FAST, form, axis=axis), truth(np.asarray(image)))
        assert seen
        assert all(np.shares_memory(rows, form) for rows in seen)


@pytest.mark.parametrize(
    ("image", "options", "words"),
    [
        (np.zeros((5, 6, 3)), {}, "has 5 bands along the axis, but the model has 3 features"),
        (np.zeros((3, 6, 5), complex), {}, "the pixels are complex128, but must be real numbers"),
        (np.zeros((3, 6, 5)), {"axis": 3}, r"axis is 3, but the image has shape \(3, 6, 5\)"),
        (np.zeros((3, 6, 5)), {"axis": 0.5}, "axis is 0.5, but must be a whole number"),
        (np.zeros((3, 6, 5)), {"axis": "band"}, "axis is 'band', but a ndarray has no names of dimensions"),
        (np.zeros((3, 6, 5)), {"outputs": "probability"}, "has no output 'probability'"),
        (np.zeros((3, 6, 5)), {"nodata": "none"}, "nodata is 'none', but must be a number"),
        (7.0, {}, r"axis is 0, but the image has shape \(\)"),
        ("scene.tif", {}, "image is a str, but must be an array; score_raster reads files"),
    ],
)
def test_wrong_images(image, options, words):
    with pytest.raises(InputError, match=words):
        approxsvm.predict_image(FAST, image, **options)


# --- xarray


@pytest.mark.parametrize(("place", "is_lazy"), [(0, True), (1, False), (2, True)])
def test_data_arrays(place, is_lazy):
    xarray = pytest.importorskip("xarray", reason="xarray is not installed")
    bands = picture(20, 30, dtype="int16")
    bands[1, 4, 5] = -9
    dims = ["y", "x"]
    dims.insert(place, "band")
    coords = {"y": np.arange(20) * -10.0, "x": np.arange(30) * 10.0, "band": ["b", "g", "r"], "time": 7}
    image = xarray.DataArray(np.moveaxis(bands, 0, place), dims=dims, coords=coords, attrs={"_FillValue": -9})
    if is_lazy:
        pytest.importorskip("dask.array")
        image = image.chunk({"y": 7, "x": 11, "band": 2})
    found = approxsvm.predict_image(FAST, image, axis="band", outputs=["label", "value"])
    assert (found["label"].chunks is not None) == is_lazy
    assert found["label"].dims == ("y", "x")
    assert {"y", "x", "time"} <= set(found["label"].coords)
    expected = truth(bands)
    expected[4, 5] = found["label"].attrs["_FillValue"]
    assert found["label"].attrs["_FillValue"] not in SOURCE.classes_
    np.testing.assert_array_equal(found["label"].values, expected)
    assert found["value"].dims == tuple(dims)
    assert found["value"]["band"].values.tolist() == [f"value_{label}" for label in SOURCE.classes_]
    values = np.moveaxis(found["value"].values, place, -1).reshape(-1, 4)
    keep = np.arange(600) != 4 * 30 + 5
    np.testing.assert_array_equal(values[keep], FAST.decision_function(bands.reshape(N_BANDS, -1).T)[keep])
    assert np.isnan(values[~keep]).all()
    texts = approxsvm.predict_image(TEXTS, image, axis=place)
    assert texts.attrs["flag_meanings"] == "a b c d"
    assert texts.attrs["flag_values"].tolist() == [0, 1, 2, 3]


def test_attributes_of_bands_do_not_hold_for_answers():
    """Labels have no scale and no names of three bands, but the image's location."""
    xarray = pytest.importorskip("xarray", reason="xarray is not installed")
    attributes = {"long_name": ("b", "g", "r"), "scale_factor": 1e-4, "_FillValue": -9, "crs": "EPSG:4326"}
    image = xarray.DataArray(picture(6, 7), dims=("band", "y", "x"), attrs=attributes)
    image = image.assign_coords(utm=xarray.Variable((), 0, {"crs_wkt": "PROJCS"}))
    image.encoding["grid_mapping"] = "utm"
    found = approxsvm.predict_image(FAST, image)
    assert set(found.attrs) == {"_FillValue", "crs", "grid_mapping"}
    assert found["utm"].attrs == image["utm"].attrs == {"crs_wkt": "PROJCS"}
    assert found.attrs["_FillValue"] not in {-9, *SOURCE.classes_}


def test_lazy_answers_travel_to_other_processes():
    image = picture(4, 5).reshape(N_BANDS, -1).T
    again = pickle.loads(pickle.dumps(PixelModel(FAST.artifact, ["value"])))
    np.testing.assert_array_equal(again.answer(image, None).answers["value"], FAST.decision_function(image))


def test_bands_of_a_data_array_by_name():
    xarray = pytest.importorskip("xarray", reason="xarray is not installed")
    pd = pytest.importorskip("pandas")
    source = SVC().fit(pd.DataFrame(X, columns=["b", "g", "r"]), Y)
    fast = approxsvm.compile(source, pd.DataFrame(X, columns=["b", "g", "r"]))
    bands = picture(6, 7)
    image = xarray.DataArray(bands[[2, 0, 1]], dims=("band", "y", "x"), coords={"band": ["r", "b", "g"]})
    expected = source.predict(pd.DataFrame(bands.reshape(N_BANDS, -1).T, columns=["b", "g", "r"]))
    np.testing.assert_array_equal(approxsvm.predict_image(fast, image).values.ravel(), expected)
    opened = image.assign_coords(band=[1, 2, 3]).assign_attrs(long_name=("r", "b", "g"))  # as opened by rioxarray
    for bands in (opened, opened.isel(band=[2, 1, 0]), opened.isel(band=[0, 2, 1])):
        np.testing.assert_array_equal(approxsvm.predict_image(fast, bands).values.ravel(), expected)
    others = opened.isel(band=[1, 2, 0]).assign_coords(band=[0, 1, 2])  # unrelated numbers: bands are read by position
    np.testing.assert_array_equal(approxsvm.predict_image(fast, others).values.ravel(), expected)
    with pytest.raises(InputError, match="there is no band 'b'"):
        approxsvm.predict_image(fast, image.assign_coords(band=["r", "x", "g"]))
