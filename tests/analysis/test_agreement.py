"""Results beside each other: written as an engine writes them, read as the client reads them."""

import ml_dtypes
import numpy as np
import pytest

from golden import figures_text, held_cases
from jaxprof.analysis.ab import agreement
from jaxprof.engine.measure import kept_arrays

TREE = {"w": np.arange(6.0, dtype=np.float32).reshape(2, 3), "n": np.array([1, 2]), "x": np.array([np.nan, np.inf])}
QUARTER = np.array([0.25, 1.0], dtype=np.float32)
ONES = np.ones((2, 3), np.float32)
BIG = 2**60
CASES = {
    "the same": (TREE, TREE),
    "one ulp": (QUARTER, np.nextafter(QUARTER, np.float32(2))),
    "nothing in them": (np.ones((0, 3)), np.ones((0, 3))),
    "a cancelled sum is no thousand ulps off": (np.float32([1e-9, 1.0]), np.float32([-1e-9, 1.0])),
    "complex": (np.array([1 + 1j], np.complex64), np.array([1 + 1.5j], np.complex64)),
    "not a number on one side": (np.array([1.0, 2.0]), np.array([1.0, np.nan])),
    "infinite on one side": (np.array([1.0, 2.0]), np.array([1.0, np.inf])),
    "integers that a float64 does not tell apart": (np.array([BIG, 1]), np.array([BIG + 1, 1])),
    "truths": (np.array([True, False]), np.array([True, True])),
    "where": ({"b": ONES, "w": 2 * ONES}, {"b": ONES, "w": 2.06 * ONES}),
    "two ulps of bfloat16": (np.ones(3, ml_dtypes.bfloat16), np.full(3, 1 + 2**-6, ml_dtypes.bfloat16)),
    "two ulps of float8": (np.ones(3, ml_dtypes.float8_e4m3fn), np.full(3, 1.25, ml_dtypes.float8_e4m3fn)),
    "another dtype": (ONES, np.ones((2, 3), np.float16)),
    "another shape": (ONES, ONES.T),
    "another structure": (ONES, (ONES, 1.0)),
    "no result": (ONES, ()),
}


def test_how_far_results_are_apart(tmp_path):
    told = {}
    for case, (baseline, other) in CASES.items():
        kept_arrays.keep(str(tmp_path / "a.npz"), baseline)
        kept_arrays.keep(str(tmp_path / "b.npz"), other)
        found = agreement(tmp_path / "a.npz", tmp_path / "b.npz")
        told[case] = figures_text(found, {"equal": found.equal})
    held_cases("results_compared.txt", told)


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
