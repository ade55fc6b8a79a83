"""What a capture says against itself."""

from __future__ import annotations

from made_traces import cpu_plane, gpu_planes, host, op, read
from xplane_wire import Line, Plane

from jaxprof.events import TrustReported
from jaxprof.trace.model import Trace
from jaxprof.trace.summary import events_of


def trust(trace: Trace, kind: str = "imported", **more: object) -> dict[str, tuple[str, str]]:
    (event,) = [one for one in events_of(trace, kind, **more) if isinstance(one, TrustReported)]  # type: ignore[arg-type]
    return {row["code"]: (row["verdict"], row["message"]) for row in event.rows}


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


def test_no_kernels_because_the_devices_records_are_missing() -> None:
    verdict, message = trust(read(gpu_planes()[1]))["no_kernels"]
    assert verdict == "bad"
    assert "the host launched some" in message


def test_no_kernels_because_the_device_has_none() -> None:
    planes = (Plane("/device:GPU:0"), Plane("/host:CPU", [Line("python", [host("f", 0, 1)])]))
    assert "the planes of gpu:0 name no HLO op" in trust(read(*planes))["no_kernels"][1]


def test_no_kernels_because_nothing_ran() -> None:
    plane = Plane("/host:CPU", [Line("python", [host("f", 0, 1)])])
    assert "a host's events only" in trust(read(plane))["no_kernels"][1]


def test_a_profile_of_a_compile() -> None:
    line = Line("python", [host("backend_compile_and_load", 0, 90), host("f", 95, 1)])
    verdict, message = trust(read(Plane("/host:CPU", [line]), cpu_plane()))["compile"]
    assert (verdict, "of a compile more than of a run" in message) == ("doubt", True)


def test_device_time_outside_of_the_steps() -> None:
    line = Line("t", [op("a", 0, 10, run_id=1), op("a", 50, 30, run_id=1)])
    step = Line("python", [host("train", 0, 20, step_num=0)])
    assert trust(read(Plane("/host:CPU", [line, step])))["outside_steps"][1].startswith("75%")


def test_busy_time_against_the_measured_time_of_a_call() -> None:
    assert trust(read(cpu_plane()), "run", calls=1, seconds_with=60e-6)["sum"][0] == "good"
    assert trust(read(cpu_plane()), "run", calls=1, seconds_with=600e-6)["sum"][0] == "doubt"
