"""What a capture says against itself."""

from __future__ import annotations

import pytest
from made_traces import cpu_plane, gpu_planes, host, op, read
from xplane_wire import Line, Plane

from jaxprof.events import TrustReported
from jaxprof.trace.model import Trace
from jaxprof.trace.summary import events_of


def trust(trace: Trace, kind: str = "imported", **more: object) -> dict[str, tuple[str, str]]:
    (event,) = [one for one in events_of(trace, kind, **more) if isinstance(one, TrustReported)]  # type: ignore[arg-type]
    return {row.code: (row.verdict, row.message) for row in event.rows}


def test_a_sound_profile_has_good_rows() -> None:
    rows = trust(read(cpu_plane()))
    assert {rows[code][0] for code in ("file", "dropped", "python_tracer", "clock", "unmatched", "steps")} == {"good"}


def test_modules_without_hlo_are_named() -> None:
    assert trust(read(cpu_plane()))["modules"] == (
        "doubt",
        "the HLO of jit_f is not in the file, so its kernels have times and nothing else",
    )


def test_the_python_tracer() -> None:
    plane = Plane("/host:CPU", [Line("python", [host("$train.py:3 step", 0, 5)])])
    assert trust(read(plane, cpu_plane()))["python_tracer"][0] == "doubt"


def test_levels_of_tracing_are_read_from_the_options() -> None:
    options = Plane("Task Environment", stats={"profile_options": b"\x08\x01\x10\x02\x18\x01\x20\x01\x28\x01\x38\x01"})
    assert trust(read(cpu_plane(), options))["tracers"] == ("good", "levels of tracing: host 2, device 1, python 1")


def test_a_tracer_that_was_off_is_said_where_it_is_missing() -> None:
    """The device's is none of a CPU's; without the host's, a GPU still has its kernels."""

    def off(*planes: Plane, host: int, device: int) -> str:
        options = Plane("Task Environment", stats={"profile_options": bytes([8, 1, 16, host, 24, device])})
        return trust(read(*planes, options))["tracers"][0]

    assert off(cpu_plane(), host=2, device=0) == "good"
    assert off(*gpu_planes(), host=2, device=1) == "good"
    assert off(*gpu_planes(), host=2, device=0) == "bad"
    assert off(*gpu_planes(), host=0, device=1) == "doubt"


def test_devices_on_which_nothing_ran() -> None:
    rows = trust(read(*gpu_planes(), Plane("/device:GPU:7")))
    assert rows["idle_devices"] == ("good", "nothing ran on gpu:7")
    assert "idle_devices" not in trust(read(*gpu_planes()))


def test_kernels_without_a_match_and_their_share() -> None:
    verdict, message = trust(read(*gpu_planes()))["unmatched"]
    assert (verdict, message) == ("doubt", "kernels with 6% of the device's time name no HLO op")
    assert "guessed" in trust(read(*gpu_planes()))


def test_dropped_events_and_errors_of_the_profiler() -> None:
    rows = trust(
        read(cpu_plane(), warnings=["device activities dropped: 5"], errors=["CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"])
    )
    assert rows["dropped"] == ("doubt", "the profiler says: device activities dropped: 5")
    assert rows["profiler_error"][0] == "bad"


@pytest.mark.parametrize(
    ("events", "verdict"),
    [(999_999, "good"), (1_000_000, "bad"), (1_000_001, "good"), (5_000_000, "bad"), (5_000_001, "good")],
)
def test_a_chrome_trace_that_stops_at_a_limit(events: int, verdict: str) -> None:
    """JAX 0.12 writes up to five million: one with more than a million has all of them."""
    assert trust(Trace(chrome=True, read=events))["dropped"][0] == verdict
    assert trust(Trace(read=events))["dropped"][0] == "good"


def test_no_kernels_because_the_devices_records_are_missing() -> None:
    verdict, message = trust(read(gpu_planes()[1]))["no_kernels"]
    assert verdict == "bad"
    assert "the host launched some" in message


def test_no_kernels_because_the_device_has_none() -> None:
    planes = (Plane("/device:GPU:0"), Plane("/host:CPU", [Line("python", [host("f", 0, 1)])]))
    assert "the planes of gpu:0 name no HLO op" in trust(read(*planes))["no_kernels"][1]


def test_no_kernels_because_nothing_ran() -> None:
    plane = Plane("/host:CPU", [Line("python", [host("f", 0, 1)])])
    assert "only host events" in trust(read(plane))["no_kernels"][1]


def test_a_profile_of_a_compile() -> None:
    line = Line("python", [host("backend_compile_and_load", 0, 90), host("f", 95, 1)])
    verdict, message = trust(read(Plane("/host:CPU", [line]), cpu_plane()))["compile"]
    assert (verdict, "shows a compile more than a run" in message) == ("doubt", True)


def test_device_time_outside_of_the_steps() -> None:
    line = Line("t", [op("a", 0, 10, run_id=1), op("a", 50, 30, run_id=1)])
    step = Line("python", [host("train", 0, 20, step_num=0)])
    assert trust(read(Plane("/host:CPU", [line, step])))["outside_steps"][1].startswith("75%")


def test_busy_time_against_the_measured_time_of_a_call() -> None:
    assert trust(read(cpu_plane()), "run", calls=1, seconds_of_calls=[60e-6])["sum"][0] == "good"
    assert trust(read(cpu_plane()), "run", calls=1, seconds_of_calls=[600e-6])["sum"][0] == "doubt"


def test_time_of_an_execution_in_which_no_op_was_recorded() -> None:
    """As JAX 0.12 records a sort on CPU: its begin, and then nothing for half a second."""
    sort = [op("dot", 0, 200, run_id=1), op("sort", 200, 2, run_id=1), op("add", 800, 10, run_id=1)]
    rows = trust(read(Plane("/host:CPU", [Line("t", sort)])))
    assert rows["unrecorded"] == (
        "doubt",
        "74% of the time in which programs were executed on cpu:0 has no op in the record",
    )
    close = [op("dot", 0, 200, run_id=1), op("sort", 200, 600, run_id=1), op("add", 801, 10, run_id=1)]
    assert trust(read(Plane("/host:CPU", [Line("t", close)])))["unrecorded"][0] == "good"
    assert "unrecorded" not in trust(read(*gpu_planes()))


def test_how_the_steps_were_found_is_said_for_each_device() -> None:
    annotated = Line("Steps", [host("1", 0, 30), host("2", 30, 30)])
    planes = [
        Plane("/device:GPU:0", [Line("Stream #1", [op("a", 0, 20), op("a", 30, 20)]), annotated]),
        Plane("/device:GPU:1", [Line("Stream #1", [op("a", 0, 20), op("b", 21, 5), op("a", 30, 20), op("b", 51, 5)])]),
    ]
    message = trust(read(*planes))["steps"][1]
    assert message.startswith("4 steps on 2 devices found ")
    assert "on gpu:0 by their annotations" in message
    assert "on gpu:1 by the executions of the program" in message
