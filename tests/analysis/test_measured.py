"""Measured kernels joined with those of the HLO, and whether they add up to what was measured. The memory of a run:
from the assignment, from the schedule, from sums, and from a failure alone."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from folding import fold
from jaxprof import events as e
from jaxprof.analysis.ceilings import ceilings_for, measured_in, remember
from jaxprof.analysis.measured import measured, seconds_per_call
from jaxprof.analysis.memory import ASSIGNMENT, REQUEST, SCHEDULE, TOTALS, asked_bytes, buffers_of, peak_memory
from jaxprof.session import Session
from report import sessions

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
    kernels = found.by_name()
    first = kernels["sum"]
    assert first.flops_per_second == pytest.approx(1000 / 1e-6)
    assert first.bytes_per_second == pytest.approx(12_000 / 1e-6)
    assert first.of_bandwidth == pytest.approx(12e9 / 3.35e12, rel=0.01)
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
    assert found.unmatched_share == pytest.approx(0.25)


SMALL_HLO = """HloModule m, is_scheduled=true

ENTRY %main (x: f32[256]) -> f32[256] {
  %x = f32[256]{0} parameter(0)
  %t = f32[256]{0} custom-call(%x), custom_call_target="f"
  ROOT %out = f32[256]{0} custom-call(%t), custom_call_target="g"
}
"""


def _session_holding(*events: e.Event) -> Session:
    return fold(
        e.Header(),
        [e.RunPlanned(run="r1", spec=e.RunSpec(workload="w", variant="v", how="jit", device="cpu:0")), *events],
    )


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
def test_what_was_asked_for(text: str, expected: int | None) -> None:
    assert asked_bytes(text) == expected


def test_the_assignment_comes_first_and_the_schedule_adds_the_live_sizes() -> None:
    row = e.HeldBuffer(bytes=1024, kind="temporary", instruction="t", shape="f32[256]{0}")
    event = e.BuffersReported(
        run="r1", source="buffer assignment", peak_bytes=3072, parts={"argument": 1024, "output": 2048}, buffers=[row]
    )
    picture = buffers_of(_session_holding(e.TextRecorded(run="r1", name="hlo", text=SMALL_HLO), event), "r1")
    assert (picture.source, picture.peak_bytes, picture.is_estimate) == (ASSIGNMENT, 3072, False)
    assert [(part.kind, part.bytes) for part in picture.parts] == [("output", 2048), ("argument", 1024)]
    assert picture.live_bytes == (1024, 2048, 3072)
    assert picture.buffers[0].at_peak is True
    assert picture.buffers[0].line is None


def test_without_it_the_schedule_gives_an_estimate() -> None:
    picture = buffers_of(_session_holding(e.TextRecorded(run="r1", name="hlo", text=SMALL_HLO)), "r1")
    assert (picture.source, picture.peak_bytes, picture.is_estimate) == (SCHEDULE, 3072, True)
    assert [buffer.instruction for buffer in picture.buffers] == ["x", "t", "out"]


def test_sums_alone_and_a_failure_alone() -> None:
    memory = e.MemoryReported(run="r1", argument_bytes=100, output_bytes=50, alias_bytes=50, temporary_bytes=7)
    picture = buffers_of(_session_holding(memory), "r1")
    assert (picture.source, picture.peak_bytes) == (TOTALS, 107)
    failed = e.RunFinished(run="r1", status="failed", error="RESOURCE_EXHAUSTED: Out of memory allocating 99 bytes.")
    picture = buffers_of(_session_holding(failed), "r1")
    assert (picture.source, picture.peak_bytes, picture.asked_bytes) == (REQUEST, None, 99)
    assert buffers_of(_session_holding(), "r1") is None


def test_sums_of_which_one_is_missing_are_no_peak() -> None:
    session = sessions.captured()
    (run,) = (run for run in session.runs.values() if run.buffers is not None)
    run.buffers = None
    run.memory = e.MemoryReported(run=run.id, argument_bytes=100, output_bytes=60, alias_bytes=50, temporary_bytes=7)
    assert peak_memory(run) == 117, "a donated argument is not counted twice"
    run.memory = e.MemoryReported(run=run.id, argument_bytes=100, output_bytes=60, peak_bytes=3_000_000)
    assert peak_memory(run) is None


def session_of(
    *,
    began: float = 1_767_312_000.0,
    host: str,
    workloads: dict[str, tuple[float, float]],
    platform: str = "cpu",
    kind: str = "cpu",
    settings: dict[str, float] | None = None,
) -> Session:
    """Runs of one second a call, with these FLOPs and bytes."""
    made: list[e.Event] = []
    for number, (workload, (flops, traffic)) in enumerate(workloads.items()):
        run = f"r{number + 1}"
        made += [
            e.RunPlanned(run=run, spec=e.RunSpec(workload=workload, variant="jit", how="jit", device=f"{platform}:0")),
            e.EnvironmentRead(
                run=run,
                python="3",
                numpy="2",
                settings={"cpu_model": "Some CPU", **(settings or {})},
                devices=[{"platform": platform, "kind": kind}],
            ),
            e.CostReported(run=run, flops=flops, bytes_accessed=traffic, source=e.ESTIMATED_BY),
            e.SamplesTaken(run=run, series="run", seconds=[1.0] * 6),
            e.CheckReported(run=run, passed=True, precision="float32"),
            e.RunFinished(run=run, status="ok"),
        ]
    return fold(e.Header(host=host, wall_seconds=began), made)


HERE = os.uname().nodename
JUDGED = {"triad": (1e9, 10e9), "gemm-peak": (100e9, 1e9), "selu": (5e6, 8e6)}


def test_a_cpu_has_the_roofline_that_was_measured() -> None:
    session = session_of(host=HERE, workloads=JUDGED)
    device = ceilings_for(session, session.runs["r3"])
    assert device.bandwidth == pytest.approx(10e9)
    assert device.peak("f32", matrix=True) == pytest.approx(100e9)


def test_it_is_kept_for_the_machine_and_only_grows(tmp_path: Path) -> None:
    remember(session_of(host=HERE, workloads=JUDGED), tmp_path)
    remember(session_of(host=HERE, workloads={"triad": (1e9, 4e9)}), tmp_path)
    later = session_of(host=HERE, workloads={"selu": (5e6, 8e6)})
    device = ceilings_for(later, later.runs["r1"], tmp_path)
    assert device.bandwidth == pytest.approx(10e9)


def test_a_ceiling_says_with_what_and_when_it_was_measured_itself(tmp_path: Path) -> None:
    remember(session_of(host=HERE, workloads={"triad": (1e9, 10 << 30)}), tmp_path)
    later = session_of(host=HERE, workloads={**JUDGED, "triad": (1e9, 4e9)}, began=1_777_312_000.0)
    remember(later, tmp_path)
    device = ceilings_for(later, later.runs["r3"], tmp_path)
    assert device.source == (
        "measured on this machine, otherwise idle: memory 10.0 GiB a call on 2026-01-02, products on 2026-04-27"
    )


def test_what_fits_a_cache_or_shares_the_machine_is_no_ceiling(tmp_path: Path) -> None:
    small = session_of(host=HERE, workloads={**JUDGED, "triad": (1e6, 48e6)})
    assert measured_in(small, "cpu:0").memory is None
    busy = session_of(host=HERE, workloads=JUDGED, settings={"other_busy_cores": 1.5, "cores": 2})
    assert not measured_in(busy, "cpu:0")
    old = '{"Some CPU": {"bandwidth": 1e12, "peaks": {"f32": 1e12}, "bandwidth_bytes": 4e8, "measured": 1.7e9}}'
    (tmp_path / "ceilings.json").write_text(old)
    later = session_of(host=HERE, workloads={"selu": (5e6, 8e6)})
    assert ceilings_for(later, later.runs["r1"], tmp_path) is None, "kept without size and date"


def test_another_machines_session_does_not_get_ours(tmp_path: Path) -> None:
    remember(session_of(host=HERE, workloads=JUDGED), tmp_path)
    other = session_of(host="elsewhere", workloads={"selu": (5e6, 8e6)})
    assert ceilings_for(other, other.runs["r1"], tmp_path) is None


def test_a_known_gpu_has_the_vendors_and_what_was_measured_replaces_them() -> None:
    plain = session_of(host=HERE, workloads={"selu": (5e6, 8e6)}, platform="cuda", kind="NVIDIA H100 80GB HBM3")
    vendor = ceilings_for(plain, plain.runs["r1"])
    assert vendor.bandwidth > 3e12
    measured = session_of(host=HERE, workloads=JUDGED, platform="cuda", kind="NVIDIA H100 80GB HBM3")
    found = ceilings_for(measured, measured.runs["r3"])
    assert found.bandwidth == pytest.approx(10e9)
    assert "measured" in found.source


def test_a_program_that_was_compiled_for_a_device_elsewhere_has_that_ones() -> None:
    plan = e.RunPlanned(run="r1", spec=e.RunSpec(workload="selu", variant="jit", how="compile", device="4xh100:8"))
    session = fold(e.Header(host=HERE), [plan])
    found = ceilings_for(session, session.runs["r1"])
    assert found.name == "h100"
    here = e.RunPlanned(run="r2", spec=e.RunSpec(workload="selu", variant="jit", how="compile", device="cpu:0"))
    session.apply(here)
    assert ceilings_for(session, session.runs["r2"]) is None
