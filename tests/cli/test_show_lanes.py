"""`jaxprof show FILE --lanes --from TIME --to TIME`."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from cli.calling import Caller
from folding import written
from tui import profiles


@pytest.fixture
def captured(tmp_path: Path) -> Path:
    """Steps of 2 ms: 0.9 ms of a matmul and 0.5 ms of a fusion on one stream, a copy on another."""
    tape = profiles.captured()
    path = tmp_path / "captured.jaxprof"
    written(path, tape.events, tape.session().header)
    return path


def test_busy_and_idle_time_and_the_kernels_of_a_range(call: Caller, captured: Path) -> None:
    (run,) = call("show", captured, "--lanes", "--from", "2ms", "--to", "3.5 ms", "--format", "json").data["runs"]
    assert (run["run"], run["begin_seconds"], run["end_seconds"]) == ("r2", pytest.approx(0.002), pytest.approx(0.0035))
    stream = next(lane for lane in run["lanes"] if lane["lane"] == "Stream #1(Compute)")
    assert stream["busy_seconds"] == pytest.approx(0.9e-3 + 0.35e-3)
    assert stream["idle_seconds"] == pytest.approx(0.25e-3)
    assert stream["busy_share"] == pytest.approx(1.25 / 1.5)
    assert [(one["name"], one["self_seconds"]) for one in run["kernels"]] == [
        ("gemm_kernel", pytest.approx(0.9e-3)),
        ("loop_fusion", pytest.approx(0.35e-3)),
    ]


def test_for_people_and_as_csv(call: Caller, captured: Path) -> None:
    text = call("show", captured, "--lanes", "--from", "2000us", "--to", ".0035").out
    assert "1.50 ms from 2.0000 ms to 3.5000 ms" in text
    assert "gpu:0   900 µs      60 %      1  gemm_kernel" in text
    assert "idle throughout: 1 of 4 lanes" in text, "the stream of the copies"
    rows = list(csv.DictReader(io.StringIO(call("show", captured, "--lanes", "--format", "csv").out)))
    assert {row["lane"] for row in rows} >= {"python", "Stream #1(Compute)"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--lanes", "--from", "9s"), "nothing was recorded in this range"),
        (("--lanes", "--from", "2ms", "--to", "1ms"), "before it begins"),
        (("--lanes", "--to", "soon"), "is not a time"),
        (("--steps", "--to", "1ms"), "has no effect without --lanes"),
        (("--lanes", "--format", "markdown"), "--lanes has no markdown form"),
    ],
)
def test_what_cannot_be_is_refused(call: Caller, captured: Path, words: tuple[str, ...], message: str) -> None:
    said = call("show", captured, *words)
    assert said.code == 2
    assert message in said.err


def test_a_session_without_a_timeline_says_so(call: Caller, kept: Path) -> None:
    assert call("show", kept, "--lanes").out == "This session has no timeline.\n"
    assert call("show", kept, "--lanes", "--format", "json").data == {"runs": []}
