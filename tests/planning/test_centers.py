"""Centers and routing to them: reproducible, distinct, and nearly always to the nearest."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from threadpoolctl import threadpool_limits

from approxsvm.errors import InputError
from approxsvm.expansion.router import route
from approxsvm.planning.families.centers import choose_centers, varying_features


def crowds(n_rows: int, n_features: int = 5, n_crowds: int = 30, seed: int = 0):
    rng = np.random.default_rng(seed)
    return 3 * rng.normal(size=(n_crowds, n_features))[rng.integers(0, n_crowds, n_rows)] + rng.normal(
        size=(n_rows, n_features)
    )


def nearest(centers, rows):
    return np.array([np.argmin(((centers - z) ** 2).sum(axis=1)) for z in rows])


@pytest.mark.slow
@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 1000),
    n_rows=st.integers(1, 300),
    d=st.integers(1, 6),
    n_centers=st.integers(1, 80),
    distinct=st.integers(1, 300),
    sparse=st.booleans(),
)
def test_a_router_always_has_an_answer(seed, n_rows, d, n_centers, distinct, sparse):
    rows = crowds(distinct, d, seed=seed)[np.arange(n_rows) % distinct]
    centers, router = choose_centers(csr_array(rows) if sparse else rows, n_centers, seed)
    assert centers.dtype == router.groups.dtype == router.reference.dtype == np.float32
    assert 1 <= len(centers) <= min(n_centers, n_rows, distinct)
    assert len(np.unique(centers, axis=0)) == len(centers)
    assert len(router.members) == len(router.groups)
    for members in router.members:
        assert members.dtype == np.uint32
        assert len(members) > 0
        assert (np.diff(members.astype(int)) > 0).all()
    assert (np.unique(np.concatenate(router.members)) == np.arange(len(centers))).all()
    awkward = np.full((3, d), [[np.nan], [np.inf], [-1e308]])
    for chosen in (route(router, centers, rows), route(router, centers, awkward)):
        assert ((chosen >= 0) & (chosen < len(centers))).all()


def test_rows_of_the_sample_get_their_nearest_center():
    rows = crowds(3000)
    centers, router = choose_centers(rows, 100)
    np.testing.assert_array_equal(route(router, centers, rows), nearest(centers, rows))
    np.testing.assert_array_equal(route(router, centers, csr_array(rows)), nearest(centers, rows))


@pytest.mark.parametrize("offset", [0.0, 1e5])
def test_most_other_rows_do_too_and_lists_are_short(offset):
    rows = crowds(12_000) + offset
    centers, router = choose_centers(rows[:8000], 225)
    assert np.mean(route(router, centers, rows[8000:]) == nearest(centers, rows[8000:])) > 0.97
    assert np.mean([len(members) for members in router.members]) < 3 * len(centers) / len(router.groups)


def test_the_same_again_whatever_the_threads():
    rows = crowds(2000)
    once, router = choose_centers(rows, 64, 7)
    with threadpool_limits(1):
        again, same_router = choose_centers(rows, 64, 7)
    np.testing.assert_array_equal(once, again)
    np.testing.assert_array_equal(router.groups, same_router.groups)
    for mine, theirs in zip(router.members, same_router.members, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert not np.array_equal(once, choose_centers(rows, 64, 8)[0])


def test_no_center_is_a_row_when_that_is_forbidden():
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.normal(size=(200, 3)), 100 * rng.normal(size=(5, 3))])
    free, _ = choose_centers(rows, 20)
    narrow = {row.tobytes() for row in rows.astype(np.float32)}
    assert any(center.tobytes() in narrow for center in free)
    centers, _ = choose_centers(rows, 20, min_rows=3)
    assert not any(center.tobytes() in narrow for center in centers)
    only, _ = choose_centers(rows, 205, min_rows=100)
    np.testing.assert_allclose(only, [rows.mean(axis=0)], rtol=1e-5)


def test_refusals():
    with pytest.raises(InputError, match="2 rows are too few to place centers: at least 5 are needed"):
        choose_centers(np.zeros((2, 3)), 2, min_rows=5)
    with pytest.raises(InputError, match="0 rows are too few to place centers: at least 1 are needed"):
        choose_centers(np.zeros((0, 3)), 2)
    with pytest.raises(InputError, match="beyond float32"):
        choose_centers(np.full((2, 3), 1e300), 2)


# --- slices ----------------------------------------------------------------------------------------------------------


def with_categories(n_rows: int, n_categories: int = 5, seed: int = 0):
    """Return standardized one-hot features, three continuous ones, and a constant column."""
    rng = np.random.default_rng(seed)
    one_hot = np.eye(n_categories)[rng.integers(0, n_categories, n_rows)]
    one_hot = (one_hot - one_hot.mean(axis=0)) / one_hot.std(axis=0)
    return np.hstack([one_hot, rng.normal(size=(n_rows, 3)), np.full((n_rows, 1), 0.7)])


@pytest.mark.parametrize("sparse", [False, True])
def test_categories_make_slices(sparse):
    rows = with_categories(2000)
    rows = csr_array(rows) if sparse else rows
    varying = varying_features(rows, 64)
    assert varying.tolist() == [5, 6, 7]
    centers, router = choose_centers(rows, 64, varying=varying)
    fixed = np.setdiff1d(np.arange(9), varying)
    dense = with_categories(2000).astype(np.float32)
    assert {tuple(center) for center in centers[:, fixed]} == {tuple(row) for row in dense[:, fixed]}
    found = route(router, centers, rows)
    np.testing.assert_array_equal(centers[found][:, fixed], dense[:, fixed])  # every row is routed to its own slice


def test_rows_of_rare_categories_are_routed_somewhere():
    rows = with_categories(2000)
    rows[:10, :5] = 3.25  # a category of ten rows
    varying = varying_features(rows, 64)
    assert varying.tolist() == [5, 6, 7]
    centers, router = choose_centers(rows, 64, varying=varying)
    found = route(router, centers, rows)
    assert ((found >= 0) & (found < len(centers))).all()
    assert not (centers[:, 0] == np.float32(3.25)).any()


@pytest.mark.parametrize(
    ("rows", "n_centers"),
    [
        pytest.param(crowds(500), 64, id="continuous"),
        pytest.param((crowds(500, 40) > 0).astype(float), 64, id="more combinations than slices"),
        pytest.param(with_categories(2000, 40), 2, id="more categories than centers allow"),
        pytest.param(with_categories(10), 64, id="few rows"),
        pytest.param(np.zeros((0, 4)), 64, id="no row"),
        pytest.param(np.hstack([crowds(500, 12), with_categories(500)[:, :2]]), 64, id="two features of many"),
    ],
)
def test_no_slices_where_they_save_little(rows, n_centers):
    assert varying_features(rows, n_centers) is None


def test_at_least_one_feature_varies():
    rows = np.repeat(np.eye(3), 50, axis=0)
    varying = varying_features(rows, 16)
    assert len(varying) == 1
    centers, _ = choose_centers(rows, 16, varying=varying)
    assert len(centers) <= 3


def test_features_of_any_size_make_slices():
    rows = with_categories(400, 2)
    rows[:, :2] *= [1e-30, 1e30]
    varying = varying_features(rows, 16)
    assert varying.tolist() == [2, 3, 4]
    centers, router = choose_centers(rows, 16, varying=varying)
    assert np.isfinite(router.metric).all()
    assert np.isfinite(centers).all()
