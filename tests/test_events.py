from __future__ import annotations

import json
from dataclasses import MISSING, fields

import pytest

from jaxprof import events as e
from jaxprof.store.codec import UnknownEvent, decode_line, encode_line

SAMPLES = [
    e.RunPlanned(run="r1", workload="selu", variant="jit", how="jit", device="cpu:0", parameters={"n": 3, "x": 0.5}),
    e.PhaseEnded(run="r1", phase="transfer_in", seconds=None, bytes=64, zero_copy=True),
    e.SamplesTaken(run="r1", series="run", seconds=[1e-3, 2e-3], calls_per_sample=4),
    e.TextRecorded(run="r1", name="hlo", text='quote " and \u2028 and \x1b', bytes=9),
    e.DeviceReading(device="cpu:0", core_utilisation=[0.5], processes=[{"pid": 1, "name": None}]),
    e.RunClosed(run="r1", workload="selu", variant="jit", device="cpu:0", status="ok", ci95_seconds=[1.0, 2.0]),
    e.SessionClosed(),
]


@pytest.mark.parametrize("event", SAMPLES, ids=lambda event: event.type)
def test_what_the_engine_writes_the_client_reads(event: e.Event) -> None:
    assert decode_line(e.encode(event)) == event


@pytest.mark.parametrize("event", SAMPLES, ids=lambda event: event.type)
def test_what_the_log_holds_is_read_back(event: e.Event) -> None:
    line = encode_line(event)
    assert line.endswith(b"\n")
    assert b"\n" not in line[:-1]
    assert decode_line(line[:-1]) == event
    assert json.loads(line)["type"] == event.type


def test_every_type_has_a_name_of_its_own() -> None:
    written = [name for name, cls in vars(e).items() if isinstance(cls, type) and issubclass(cls, e.Event)]
    assert len(e.EVENT_TYPES) == len(written) - 1  # all but the base
    assert "" not in e.EVENT_TYPES


def test_a_number_that_is_not_finite_is_refused() -> None:
    with pytest.raises(ValueError, match="samples_taken"):
        e.encode(e.SamplesTaken(series="run", seconds=[float("nan")]))
    assert e.finite(float("inf")) is None
    assert e.finite(1.5) == 1.5


def test_lone_surrogates_do_not_break_the_pipe() -> None:
    assert b"\\udc80" in e.encode(e.LogLine(stream="stderr", text="\udc80"))


def test_unknown_types_and_fields() -> None:
    with pytest.raises(UnknownEvent, match="hologram"):
        decode_line(b'{"type":"hologram","seq":3}')
    event = decode_line(b'{"type":"heartbeat","seq":3,"run":"","monotonic_seconds":1.0,"colour":"blue"}')
    assert event == e.Heartbeat(seq=3, monotonic_seconds=1.0)


@pytest.mark.parametrize("line", [b"", b"{", b"[]", b'"x"', b'{"type":"hologram', b'{"type":"phase_ended"}', b"\xff"])
def test_damaged_lines_are_value_errors(line: bytes) -> None:
    with pytest.raises(ValueError):
        decode_line(line)


def test_order_of_fields_does_not_matter() -> None:
    assert decode_line(b'{"seq":1,"type":"session_closed","reason":"x"}') == e.SessionClosed(seq=1, reason="x")


def test_every_optional_field_of_an_event_has_a_default_after_its_first_version() -> None:
    """A file of an older schema must load for ever: the required fields are frozen."""
    required = {
        name: sorted(item.name for item in fields(cls) if item.default is MISSING and item.default_factory is MISSING)
        for name, cls in e.EVENT_TYPES.items()
    }
    assert {name: names for name, names in required.items() if names} == {
        "run_planned": ["device", "how", "variant", "workload"],
        "worker_started": ["pid", "python"],
        "environment_read": ["numpy", "python"],
        "phase_started": ["phase"],
        "phase_ended": ["phase", "seconds"],
        "samples_taken": ["seconds", "series"],
        "text_recorded": ["name"],
        "text_chunk": ["count", "data", "digest", "index"],
        "check_reported": ["passed"],
        "compile_observed": ["function", "seconds", "stage"],
        "capture_taken": ["kind"],
        "kernels_measured": ["kind"],
        "steps_measured": ["found_by"],
        "compile_passes": ["tree"],
        "trust_reported": ["kind"],
        "buffers_reported": ["source"],
        "warning_raised": ["code", "message"],
        "log_line": ["stream", "text"],
        "device_reading": ["device"],
        "run_finished": ["status"],
        "run_closed": ["device", "status", "variant", "workload"],
        "program_started": ["argv", "how"],
        "jax_imported": ["seconds"],
        "stage_running": ["began_seconds", "function", "stage"],
        "compiled": ["function"],
        "program_sampled": ["began_seconds", "samples"],
        "steps_counted": ["count", "found_by", "seconds", "where"],
        "arrays_counted": ["bytes", "count"],
        "capture_window": ["state"],
        "program_ended": ["exit_code", "wall_seconds"],
    }
