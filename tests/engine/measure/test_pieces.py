"""The parts of a measurement that can be looked at alone."""

from __future__ import annotations

from collections import namedtuple
from types import SimpleNamespace

import jax
import numpy as np
import pytest

from jaxprof.engine.measure.check import ALIGNMENT_BYTES, aligned, effective_precision, map_arrays, tolerance_key
from jaxprof.engine.measure.environment import HostLoad, HostLoadMeter
from jaxprof.engine.measure.transfer import Arguments


@pytest.mark.parametrize("offset", [0, 1, 3, 16])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_are_aligned_whatever_the_allocator_gave(offset, order):
    block = np.zeros(4096, np.uint8)
    start = -block.ctypes.data % ALIGNMENT_BYTES + 4 * offset
    odd = block[start : start + 4 * 15].view(np.float32).reshape((3, 5), order=order)  # type: ignore[call-overload]
    odd[...] = np.arange(15).reshape(3, 5)
    even = aligned(odd)
    assert even.ctypes.data % ALIGNMENT_BYTES == 0
    assert aligned(even) is even, "nothing is copied twice"
    assert even.strides == odd.strides
    np.testing.assert_array_equal(even, odd)


def test_trees_of_arrays_keep_their_form():
    Pair = namedtuple("Pair", "left right")
    tree = (Pair(np.ones(2), 3.0), [np.zeros(1), "word"], {"a": None})
    changed = map_arrays(lambda array: array + 1, tree)
    assert isinstance(changed[0], Pair)
    np.testing.assert_array_equal(changed[0].left, [2, 2])
    assert changed[0].right == 3.0
    assert changed[1][1] == "word"
    assert changed[2] == {"a": None}


@pytest.mark.parametrize(
    ("platform", "capability", "asked", "dtypes", "expected"),
    [
        ("cpu", None, "", {"float32"}, "float32"),
        ("cpu", None, "", {"float64"}, "float64"),
        ("cpu", None, "", {"bfloat16", "float32"}, "bfloat16"),
        ("gpu", "9.0", "", {"float32"}, "tf32"),
        ("gpu", "7.5", "", {"float32"}, "float32"),
        ("gpu", "9.0", "highest", {"float32"}, "float32"),
        ("gpu", "9.0", "bfloat16", {"float32"}, "bfloat16"),
        ("gpu", "gfx90a", "", {"float32"}, "float32"),
        ("tpu", None, "", {"float32"}, "bfloat16"),
        ("tpu", None, "highest", {"float32"}, "float32"),
        ("tpu", None, "high", {"float32"}, "bfloat16_3x"),
    ],
)
def test_the_effective_precision_follows_the_device(platform, capability, asked, dtypes, expected):
    device = SimpleNamespace(platform=platform, compute_capability=capability)
    found = effective_precision(device, asked, dtypes)
    assert found == expected
    assert tolerance_key(found) in {"float64", "float32", "tf32", "bfloat16"}


def test_only_numpy_arrays_go_to_the_device_and_scalars_stay_python():
    arguments = Arguments.of((np.ones(4, np.float32), 3.0, [np.zeros(2, np.float32)]))
    placed = arguments.placed(jax.device_put(arguments.host_arrays()))
    assert isinstance(placed[0], jax.Array)
    assert placed[1] == 3.0
    assert type(placed[1]) is float
    assert isinstance(placed[2][0], jax.Array)


def test_runs_that_have_their_turns_meanwhile_are_no_work_of_others(monkeypatch):
    readings = iter(
        [HostLoad(0, 0, 0), HostLoad(2, 5, 2), HostLoad(10, 21, 2), HostLoad(12, 25, 4), HostLoad(12, 25, 4)]
    )
    monkeypatch.setattr(HostLoad, "now", lambda: next(readings))
    meter = HostLoadMeter()
    meter.wait(begins=True)
    meter.wait(begins=False)
    assert meter.other_busy_cores() == pytest.approx((3 + 2) / 4)
