"""Measured kernels joined with those of the HLO, and whether they add up to what was measured. The memory of a run:
from the assignment, from the schedule, from sums, and from a failure alone."""

from __future__ import annotations

import os
from typing import Any

import pytest

from analysis.made_runs import planned, run, session
from jaxprof import events as e
from jaxprof.analysis.ceilings import ceilings_for, measured_in, remember
from jaxprof.analysis.measured import measured, seconds_per_call
from jaxprof.analysis.memory import ASSIGNMENT, REQUEST, SCHEDULE, TOTALS, asked_bytes, buffers_of, peak_memory
from jaxprof.session import Run, Session
from report.sessions import kernel_times

H100 = "NVIDIA H100 80GB HBM3"
HLO = """HloModule jit_f, is_scheduled=true

ENTRY %main (x: f32[1000], y: f32[1000]) -> f32[1000] {
  %x = f32[1000]{0} parameter(0)
  %y = f32[1000]{0} parameter(1)
  %sum = f32[1000]{0} add(%x, %y)
  ROOT %out = f32[1000]{0} multiply(%sum, %x)
}
"""


def _row(name: str, seconds: float, **more: Any) -> e.KernelTimes:
    return kernel_times(name, seconds, **{"module": "jit_f", "device": "gpu:0", **more})


def _capture(*rows: e.KernelTimes, kind: str = "run", calls: int | None = 1, **more: Any) -> e.KernelsMeasured:
    return e.KernelsMeasured(run="r1", kind=kind, calls=calls, rows=list(rows), **more)


def _captured(*captures: e.KernelsMeasured) -> Session:
    return session(run("r1", *captures, device="cuda:0", kind=H100, hlo=HLO))


def test_rates_and_shares_of_the_ceilings():
    rows = [_row("sum", 1e-6), _row("out", 2e-6, uncertain=True), _row("stray", 1e-6)]
    found = measured(_captured(_capture(*rows, unattributed_seconds={"gpu:0": 0.0})), "r1")
    first, out, stray = (found.by_name()[name] for name in ("sum", "out", "stray"))
    assert (first.flops_per_second, first.bytes_per_second) == pytest.approx((1000 / 1e-6, 12_000 / 1e-6))
    assert first.of_bandwidth == pytest.approx(12e9 / 3.35e12, rel=0.01)
    assert 0 < first.of_peak < 0.001
    assert [(each.in_hlo, each.uncertain) for each in (first, out, stray)] == [
        (True, False),
        (True, True),
        (False, False),
    ]
    assert (stray.flops_per_second, stray.of_peak) == (None, None)
    assert found.unmatched_share == pytest.approx(0.25)


def test_seconds_of_a_call_are_those_of_one_device_and_of_the_capture_with_names():
    rows = [_row("sum", 4e-6), _row("sum", 2e-6, device="gpu:1"), _row("out", 1e-6)]
    of = _captured(_capture(*rows, kind="attribution", calls=2), _capture(_row("graph", 1.0)))
    assert seconds_per_call(of.runs["r1"]) == pytest.approx({"sum": 1.5e-6, "out": 0.5e-6})
    assert seconds_per_call(None) == {}
    assert seconds_per_call(_captured(_capture(*rows, calls=None)).runs["r1"]) == {}


def test_kernels_without_a_name_are_part_of_what_has_no_match_and_copies_are_not():
    copies = [e.CopyTimes(direction="HtoD", device="gpu:0", total_seconds=5e-6)]
    capture = _capture(_row("sum", 3e-6), transfers=copies, unattributed_seconds={"gpu:0": 6e-6})
    assert measured(_captured(capture), "r1").unmatched_share == pytest.approx(0.25)


SMALL_HLO = """HloModule m, is_scheduled=true

ENTRY %main (x: f32[256]) -> f32[256] {
  %x = f32[256]{0} parameter(0)
  %t = f32[256]{0} custom-call(%x), custom_call_target="f"
  ROOT %out = f32[256]{0} custom-call(%t), custom_call_target="g"
}
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 17179869184 bytes.", 17179869184),
        ("XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory allocating 4000000000 bytes.", 4000000000),
        ("RESOURCE_EXHAUSTED: Attempting to allocate 4.00GiB. That was not possible. There are 1.00GiB free.", 4 << 30),
        ("Unable to allocate 7.45 GiB for an array with shape (1000000000,)", int(7.45 * (1 << 30))),
        ("RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm. Used 20.00G of 15.48G hbm.", 20 << 30),
        ("Failed to allocate 512 B", 512),
        ("ValueError: shapes do not match", None),
        ("RESOURCE_EXHAUSTED: quota", None),
    ],
)
def test_what_was_asked_for(text, expected):
    assert asked_bytes(text) == expected


def test_the_assignment_comes_first_and_the_schedule_adds_the_live_sizes():
    row = e.HeldBuffer(bytes=1024, kind="temporary", instruction="t", shape="f32[256]{0}")
    event = e.BuffersReported(
        run="r1", source="buffer assignment", peak_bytes=3072, parts={"argument": 1024, "output": 2048}, buffers=[row]
    )
    picture = buffers_of(session(run("r1", event, hlo=SMALL_HLO)), "r1")
    assert (picture.source, picture.peak_bytes, picture.is_estimate) == (ASSIGNMENT, 3072, False)
    assert [(part.kind, part.bytes) for part in picture.parts] == [("output", 2048), ("argument", 1024)]
    assert picture.live_bytes == (1024, 2048, 3072)
    assert (picture.buffers[0].at_peak, picture.buffers[0].line) == (True, None)
    alone = buffers_of(session(run(hlo=SMALL_HLO)), "r1")
    assert (alone.source, alone.peak_bytes, alone.is_estimate) == (SCHEDULE, 3072, True)
    assert [buffer.instruction for buffer in alone.buffers] == ["x", "t", "out"]


def test_sums_alone_and_a_failure_alone():
    memory = e.MemoryReported(run="r1", argument_bytes=100, output_bytes=50, alias_bytes=50, temporary_bytes=7)
    picture = buffers_of(session(run("r1", memory)), "r1")
    assert (picture.source, picture.peak_bytes) == (TOTALS, 107)
    failed = e.RunFinished(run="r1", status="failed", error="RESOURCE_EXHAUSTED: Out of memory allocating 99 bytes.")
    picture = buffers_of(session(planned(), failed), "r1")
    assert (picture.source, picture.peak_bytes, picture.asked_bytes) == (REQUEST, None, 99)
    assert buffers_of(session(run()), "r1") is None


def test_sums_of_which_one_is_missing_are_no_peak():
    def peak(**memory: int) -> int | None:
        return peak_memory(session(run("r1", e.MemoryReported(run="r1", **memory))).runs["r1"])

    sums = {"argument_bytes": 100, "output_bytes": 60}
    assert peak(**sums, alias_bytes=50, temporary_bytes=7) == 117, "a donated argument is not counted twice"
    assert peak(**sums, peak_bytes=3_000_000) is None


HERE = os.uname().nodename
JUDGED = {"triad": (1e9, 10e9), "gemm-peak": (100e9, 1e9), "selu": (5e6, 8e6)}
OLD = '{"Some CPU": {"bandwidth": 1e12, "peaks": {"f32": 1e12}, "bandwidth_bytes": 4e8, "measured": 1.7e9}}'
"""As an older version kept it: without size and date."""


def machine(
    workloads: dict[str, tuple[float, float]] | None = None,
    *,
    began: float = 1_767_312_000.0,
    host: str = HERE,
    device: str = "cpu:0",
    kind: str = "cpu",
    **settings: float,
) -> Session:
    """Runs of one second a call, with these FLOPs and bytes."""
    runs = []
    for number, (workload, (flops, traffic)) in enumerate((workloads or {"selu": (5e6, 8e6)}).items(), start=1):
        name = f"r{number}"
        seen = e.EnvironmentRead(
            run=name,
            python="3",
            numpy="2",
            settings={"cpu_model": "Some CPU", **settings},
            devices=[{"platform": device.partition(":")[0], "kind": kind}],
        )
        cost = e.CostReported(run=name, flops=flops, bytes_accessed=traffic, source=e.ESTIMATED_BY)
        checked = e.CheckReported(run=name, passed=True, precision="float32")
        runs.append(run(name, seen, cost, checked, workload=workload, device=device, samples=[1.0] * 6))
    return session(*runs, host=host, wall_seconds=began)


def last(of: Session) -> Run:
    return list(of.runs.values())[-1]


def test_a_cpu_has_the_roofline_that_was_measured():
    of = machine(JUDGED)
    device = ceilings_for(of, last(of))
    assert (device.bandwidth, device.peak("f32", matrix=True)) == pytest.approx((10e9, 100e9))


def test_it_is_kept_for_the_machine_and_only_grows(tmp_path):
    """With what and when each was measured."""
    remember(machine({"triad": (1e9, 10 << 30)}), tmp_path)
    remember(machine({**JUDGED, "triad": (1e9, 4e9)}, began=1_777_312_000.0), tmp_path)
    later = machine()
    device = ceilings_for(later, last(later), tmp_path)
    assert device.bandwidth == pytest.approx(10 << 30)
    assert device.source == (
        "measured on this machine, otherwise idle: memory 10.0 GiB a call on 2026-01-02, products on 2026-04-27"
    )
    other = machine(host="elsewhere")
    assert ceilings_for(other, last(other), tmp_path) is None


def test_what_fits_a_cache_or_shares_the_machine_is_no_ceiling(tmp_path):
    assert measured_in(machine({**JUDGED, "triad": (1e6, 48e6)}), "cpu:0").memory is None
    assert not measured_in(machine(JUDGED, other_busy_cores=1.5, cores=2), "cpu:0")
    (tmp_path / "ceilings.json").write_text(OLD)
    later = machine()
    assert ceilings_for(later, last(later), tmp_path) is None


def test_a_known_gpu_has_the_vendors_and_what_was_measured_replaces_them():
    of = [machine(workloads, device="cuda:0", kind=H100) for workloads in (None, JUDGED)]
    vendor, found = (ceilings_for(each, last(each)) for each in of)
    assert vendor.bandwidth > 3e12
    assert found.bandwidth == pytest.approx(10e9)
    assert "measured" in found.source


@pytest.mark.parametrize(("device", "name"), [("4xh100:8", "h100"), ("cpu:0", None)])
def test_a_program_that_was_compiled_for_a_device_elsewhere_has_that_ones(device, name):
    of = session(planned(how="compile", device=device), host=HERE)
    found = ceilings_for(of, last(of))
    assert (found and found.name) == name
