"""Results beside each other: written as an engine writes them, read as the client reads them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from jaxprof.analysis.ab import agreement
from jaxprof.engine.measure import kept_arrays
from jaxprof.events import ResultsCompared


def compared(folder: Path, baseline: Any, other: Any) -> ResultsCompared:
    kept_arrays.keep(str(folder / "a.npz"), baseline)
    kept_arrays.keep(str(folder / "b.npz"), other)
    found = agreement(folder / "a.npz", folder / "b.npz")
    assert found is not None
    return found


TREE = {"w": np.arange(6.0, dtype=np.float32).reshape(2, 3), "n": np.array([1, 2]), "x": np.array([np.nan, np.inf])}
QUARTER = np.array([0.25, 1.0], dtype=np.float32)
ONES = np.ones(3, np.float32)
BIG = 2**60


@pytest.mark.parametrize(
    ("baseline", "other", "agree", "ulps", "relative"),
    [
        (TREE, TREE, True, 0, 0.0),
        (QUARTER, np.nextafter(QUARTER, np.float32(2)), True, 1, 2.0**-23),
        (np.ones((0, 3)), np.ones((0, 3)), True, 0, 0.0),
        (np.array([1 + 1j], np.complex64), np.array([1 + 1.5j], np.complex64), False, None, 0.5),
        # integers are equal or not, also where a float64 does not tell them apart
        (np.array([BIG, 1]), np.array([BIG + 1, 1]), False, None, None),
        (np.array([True, False]), np.array([True, True]), False, None, None),
    ],
)
def test_how_far_results_are_apart(baseline, other, agree, ulps, relative, tmp_path):
    found = compared(tmp_path, baseline, other)
    assert (found.alike, found.agree, found.equal) == (True, agree, baseline is other or ulps == 0)
    assert ulps is None or found.ulps == ulps
    assert relative is None or found.relative == pytest.approx(relative)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_what_is_not_finite_on_one_side_does_not_agree(tmp_path, bad):
    found = compared(tmp_path, np.array([1.0, 2.0]), np.array([1.0, bad]))
    assert (found.agree, found.relative, found.ulps) == (False, None, None)


def test_a_cancelled_sum_is_no_thousand_ulps_off(tmp_path):
    found = compared(tmp_path, np.array([1e-9, 1.0], np.float32), np.array([-1e-9, 1.0], np.float32))
    assert (found.agree, found.ulps) == (True, 1)


def test_results_that_differ_say_by_how_much_and_where(tmp_path):
    found = compared(tmp_path, {"b": ONES, "w": 2 * ONES}, {"b": ONES, "w": 2.06 * ONES})
    assert (found.alike, found.agree, found.where) == (True, False, "['w']")
    assert found.relative == pytest.approx(0.03, rel=1e-3)


@pytest.mark.parametrize(
    ("dtype", "ulp"), [(ml_dtypes.bfloat16, 2.0**-7), (np.float16, 2.0**-10), (ml_dtypes.float8_e4m3fn, 2.0**-3)]
)
def test_narrow_dtypes_have_their_own_ulp(tmp_path, dtype, ulp):
    found = compared(tmp_path, np.ones(3, dtype), np.full(3, 1 + 2 * ulp, dtype))
    assert (found.ulps, found.relative) == (2, pytest.approx(2 * ulp))


@pytest.mark.parametrize(
    ("other", "note"),
    [
        (np.ones((2, 3), np.float16), "float32[2,3] and float16[2,3]"),
        (np.ones((3, 2), np.float32), "float32[2,3] and float32[3,2]"),
        ((np.ones((2, 3), np.float32), 1.0), "1 array and 2 arrays"),
        ((), "1 array and 0 arrays"),
    ],
)
def test_other_shapes_and_dtypes_are_not_alike(tmp_path, other, note):
    found = compared(tmp_path, np.ones((2, 3), np.float32), other)
    assert (found.alike, found.agree, found.note) == (False, False, note)


def test_what_was_not_written_is_not_compared(tmp_path):
    kept_arrays.keep(str(tmp_path / "a.npz"), np.ones(3))
    (tmp_path / "cut.npz").write_bytes((tmp_path / "a.npz").read_bytes()[:200])
    (tmp_path / "pickled.npz").write_bytes(b"\x80\x04N.")
    for name in ("missing.npz", "cut.npz", "pickled.npz"):
        assert agreement(tmp_path / "a.npz", tmp_path / name) is None


def test_objects_are_refused_and_so_is_what_is_too_large(tmp_path, monkeypatch):
    with pytest.raises(TypeError):
        kept_arrays.keep(str(tmp_path / "a.npz"), [np.array([object()])])
    monkeypatch.setattr(kept_arrays, "MOST_BYTES", 100)
    with pytest.raises(ValueError, match="at most"):
        kept_arrays.keep(str(tmp_path / "a.npz"), np.ones(100))
