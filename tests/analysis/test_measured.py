"""Measured kernels joined with those of the HLO, and whether they add up to what was measured."""

from __future__ import annotations

from typing import Any

import pytest

from folding import fold
from jaxprof import events as e
from jaxprof.analysis.measured import measured, seconds_per_call
from jaxprof.session import Session

HLO = """HloModule jit_f, is_scheduled=true

ENTRY %main (x: f32[1000], y: f32[1000]) -> f32[1000] {
  %x = f32[1000]{0} parameter(0)
  %y = f32[1000]{0} parameter(1)
  %sum = f32[1000]{0} add(%x, %y)
  ROOT %out = f32[1000]{0} multiply(%sum, %x)
}
"""


def _row(name: str, seconds: float, **more: Any) -> e.KernelTimes:
    keys = ("total_seconds", "self_seconds", "wall_seconds", "median_seconds", "minimum_seconds", "maximum_seconds")
    given = {"module": "jit_f", "device": "gpu:0", "count": 1, **dict.fromkeys(keys, seconds), **more}
    return e.KernelTimes(name=name, **given)


def _session(*events: e.Event) -> Session:
    plan = e.RunPlanned(run="r1", spec=e.RunSpec(workload="w", variant="v", how="jit", device="cuda:0"))
    device = {"id": "cuda:0", "platform": "cuda", "kind": "NVIDIA H100 80GB HBM3"}
    seen = e.EnvironmentRead(run="r1", python="3.11", numpy="2", devices=[device])
    return fold(e.Header(), [plan, seen, *events])


def test_rates_and_shares_of_the_ceilings() -> None:
    hlo = e.TextRecorded(run="r1", name="hlo", text=HLO)
    rows = [_row("sum", 1e-6), _row("out", 2e-6, uncertain=True), _row("stray", 1e-6)]
    event = e.KernelsMeasured(run="r1", kind="run", calls=1, rows=rows, unattributed_seconds={"gpu:0": 0.0})
    found = measured(_session(hlo, event), "r1")
    assert found is not None
    kernels = found.by_name()
    first = kernels["sum"]
    assert first.flops_per_second == pytest.approx(1000 / 1e-6)
    assert first.bytes_per_second == pytest.approx(12_000 / 1e-6)
    assert first.of_bandwidth == pytest.approx(12e9 / 3.35e12, rel=0.01)
    assert first.of_peak is not None
    assert 0 < first.of_peak < 0.001
    assert [kernels[name].in_hlo for name in ("sum", "out", "stray")] == [True, True, False]
    assert [kernels[name].uncertain for name in ("sum", "out", "stray")] == [False, True, False]
    assert (kernels["stray"].flops_per_second, kernels["stray"].of_peak) == (None, None)
    assert found.unmatched_share == pytest.approx(0.25)


def test_seconds_of_a_call_are_those_of_one_device_and_of_the_capture_with_names() -> None:
    rows = [_row("sum", 4e-6), _row("sum", 2e-6, device="gpu:1"), _row("out", 1e-6)]
    named = e.KernelsMeasured(run="r1", kind="attribution", calls=2, rows=rows)
    other = e.KernelsMeasured(run="r1", kind="run", calls=1, rows=[_row("graph", 1.0)])
    run = _session(named, other).runs["r1"]
    assert seconds_per_call(run) == pytest.approx({"sum": 1.5e-6, "out": 0.5e-6})
    assert seconds_per_call(None) == {}
    assert seconds_per_call(_session(e.KernelsMeasured(run="r1", kind="run", calls=None, rows=rows)).runs["r1"]) == {}


def test_kernels_without_a_name_are_part_of_what_has_no_match_and_copies_are_not() -> None:
    hlo = e.TextRecorded(run="r1", name="hlo", text=HLO)
    event = e.KernelsMeasured(
        run="r1",
        kind="run",
        calls=1,
        rows=[_row("sum", 3e-6)],
        transfers=[e.CopyTimes(direction="HtoD", device="gpu:0", total_seconds=5e-6)],
        unattributed_seconds={"gpu:0": 6e-6},
    )
    found = measured(_session(hlo, event), "r1")
    assert found is not None
    assert found.unmatched_share == pytest.approx(0.25)
