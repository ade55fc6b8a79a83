"""The memory of a run: from the assignment, from the schedule, from sums, and from a failure alone."""

from __future__ import annotations

import pytest

from folding import fold
from jaxprof import events as e
from jaxprof.analysis.memory import ASSIGNMENT, REQUEST, SCHEDULE, TOTALS, asked_bytes, buffers_of, peak_memory
from jaxprof.session import Session
from report import sessions

HLO = """HloModule m, is_scheduled=true

ENTRY %main (x: f32[256]) -> f32[256] {
  %x = f32[256]{0} parameter(0)
  %t = f32[256]{0} custom-call(%x), custom_call_target="f"
  ROOT %out = f32[256]{0} custom-call(%t), custom_call_target="g"
}
"""


def _session(*events: e.Event) -> Session:
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
    picture = buffers_of(_session(e.TextRecorded(run="r1", name="hlo", text=HLO), event), "r1")
    assert picture is not None
    assert (picture.source, picture.peak_bytes, picture.is_estimate) == (ASSIGNMENT, 3072, False)
    assert [(part.kind, part.bytes) for part in picture.parts] == [("output", 2048), ("argument", 1024)]
    assert picture.live_bytes == (1024, 2048, 3072)
    assert picture.buffers[0].at_peak is True
    assert picture.buffers[0].line is None


def test_without_it_the_schedule_gives_an_estimate() -> None:
    picture = buffers_of(_session(e.TextRecorded(run="r1", name="hlo", text=HLO)), "r1")
    assert picture is not None
    assert (picture.source, picture.peak_bytes, picture.is_estimate) == (SCHEDULE, 3072, True)
    assert [buffer.instruction for buffer in picture.buffers] == ["x", "t", "out"]


def test_sums_alone_and_a_failure_alone() -> None:
    memory = e.MemoryReported(run="r1", argument_bytes=100, output_bytes=50, alias_bytes=50, temporary_bytes=7)
    picture = buffers_of(_session(memory), "r1")
    assert picture is not None
    assert (picture.source, picture.peak_bytes) == (TOTALS, 107)
    failed = e.RunFinished(run="r1", status="failed", error="RESOURCE_EXHAUSTED: Out of memory allocating 99 bytes.")
    picture = buffers_of(_session(failed), "r1")
    assert picture is not None
    assert (picture.source, picture.peak_bytes, picture.asked_bytes) == (REQUEST, None, 99)
    assert buffers_of(_session(), "r1") is None


def test_sums_of_which_one_is_missing_are_no_peak() -> None:
    session = sessions.captured()
    (run,) = (run for run in session.runs.values() if run.buffers is not None)
    run.buffers = None
    run.memory = e.MemoryReported(run=run.id, argument_bytes=100, output_bytes=60, alias_bytes=50, temporary_bytes=7)
    assert peak_memory(run) == 117, "a donated argument is not counted twice"
    run.memory = e.MemoryReported(run=run.id, argument_bytes=100, output_bytes=60, peak_bytes=3_000_000)
    assert peak_memory(run) is None
