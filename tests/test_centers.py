"""Centers and the way to them: reproducible, distinct, and nearly always the nearest."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from threadpoolctl import threadpool_limits

from approxsvm.errors import InputError
from approxsvm.expansion.centers import choose_centers, route


def crowds(n_rows: int, n_features: int = 5, n_crowds: int = 30, seed: int = 0):
    rng = np.random.default_rng(seed)
    return 3 * rng.normal(size=(n_crowds, n_features))[rng.integers(0, n_crowds, n_rows)] + rng.normal(
        size=(n_rows, n_features)
    )


def nearest(centers, rows):
    return np.array([np.argmin(((centers - z) ** 2).sum(axis=1)) for z in rows])


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
    with pytest.raises(InputError, match="from 2 rows, but at least 5 are needed"):
        choose_centers(np.zeros((2, 3)), 2, min_rows=5)
    with pytest.raises(InputError, match="from 0 rows, but at least 1"):
        choose_centers(np.zeros((0, 3)), 2)
    with pytest.raises(InputError, match="beyond float32"):
        choose_centers(np.full((2, 3), 1e300), 2)
