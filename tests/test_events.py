from __future__ import annotations

import json
from dataclasses import MISSING, fields

import pytest

from jaxprof import events as e
from jaxprof.events.base import TEXT_CHARACTERS
from jaxprof.session.log import codec
from jaxprof.session.log.codec import UnknownEvent, decode_line, encode_line

EXPORTED = [getattr(e, name) for name in e.__all__]  # each is loaded on its first use
EVENT_TYPES = [cls for cls in EXPORTED if isinstance(cls, type) and issubclass(cls, e.Event) and cls is not e.Event]
SAMPLES = [
    e.RunPlanned(
        run="r1",
        spec=e.RunSpec(workload="selu", variant="jit", how="jit", device="cpu:0", parameters={"n": 3, "x": 0.5}),
    ),
    e.PhaseEnded(run="r1", phase="transfer_in", seconds=None, bytes=64, zero_copy=True),
    e.SamplesTaken(run="r1", series="run", seconds=[1e-3, 2e-3], calls_per_sample=4),
    e.TextRecorded(run="r1", name="hlo", text='quote " and \u2028 and \x1b', bytes=9),
    e.DeviceReading(device="cpu:0", core_utilisation=[0.5], processes=[{"pid": 1, "name": None}]),
    e.RunClosed(run="r1", workload="selu", variant="jit", device="cpu:0", status="ok", ci95_seconds=[1.0, 2.0]),
    e.SessionClosed(),
    e.KernelsMeasured(
        run="r1",
        kind="run",
        rows=[e.KernelTimes(name="dot.1", program="4", kernels=("gemm",), launch=e.KernelLaunch(grid=(16, 2, 1)))],
        transfers=[e.CopyTimes(direction="fill", device="gpu:0", count=2, total_seconds=1e-6)],
    ),
    e.StepsMeasured(
        run="r1",
        found_by="modules",
        steps=[e.StepTimes(start_seconds=0.0, seconds=2.0, parts=e.StepParts(idle=2.0), to_next=False)],
        devices=[e.StepsDevice(device="gpu:0", steps=1, busy_seconds=0.0)],
    ),
    e.CompilePasses(run="r1", tree=e.PassTimes(name="compile", children=(e.PassTimes(name="fusion", seconds=0.1),))),
    e.TrustReported(run="r1", kind="run", rows=[e.TrustCheck(code="file", verdict="good", message="whole")]),
    e.TransfersSeen(run="r1", rows=[e.CopiesSeen(direction="device_to_host", source="samples", count=2, seconds=0.1)]),
    e.StepsTaken(
        run="r1",
        where=e.SourceLocation("train.py", 8, "main"),
        found_by="monitoring",
        first=310,
        numbered_by="number",
        began_seconds=12.5,
        seconds=[0.02, 0.08],
        counts=[1, 4],
    ),
    e.Compiled(
        run="r1",
        function="step",
        called_from=e.SourceLocation("train.py", 8, "main"),
        signature=[
            e.SignatureLeaf(name="x", type="f32[3]", bytes=12),
            e.SignatureLeaf(name="n", type="3", static=True),
        ],
        closure=[e.ClosureChange(name="rate", before="0.5", now="0.25")],
        constants=[e.ProgramArray(type="f32[300,300]", bytes=360_000)],
    ),
    e.ProgramEnded(run="r1", exit_code=0, wall_seconds=1.0, notes=[e.Note("no_jax", "the program did not import jax")]),
    e.ComparisonPlanned(
        run="r1",
        sides=[e.SideSpec(label="B", title="train.py:step", environment={"FLAGS": "--x=1"}, dirty=True)],
        margin=0.05,
        inputs=["float32[3]"],
    ),
    e.ResultsCompared(run="r3", alike=True, agree=False, relative=None, ulps=None, where="['w']"),
    e.BuffersReported(run="r1", source="buffer assignment", buffers=[e.HeldBuffer(bytes=64, kind="argument")]),
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


def test_every_type_is_found_by_its_name_in_the_log() -> None:
    assert [cls for cls in EVENT_TYPES if e.event_type(cls.type) is not cls] == []
    assert len({cls.type for cls in EVENT_TYPES}) == len(EVENT_TYPES)
    for name in ("", "event", "run_spec", "Run_planned", "of_a_newer_version"):
        assert e.event_type(name) is None


def test_a_number_that_is_not_finite_is_refused() -> None:
    with pytest.raises(ValueError, match="samples_taken"):
        e.encode(e.SamplesTaken(series="run", seconds=[float("nan")]))
    assert e.finite(float("inf")) is None
    assert e.finite(1.5) == 1.5


def test_a_text_that_would_make_a_line_too_long_is_cut_and_its_event_comes() -> None:
    long = "x" * (TEXT_CHARACTERS + 1)
    event = decode_line(e.encode(e.RunFinished(run="r1", status="failed", error=long, traceback="where" + long)))
    assert event == e.RunFinished(run="r1", status="failed", error=long[:-1] + " …", traceback=f"where{long[:-6]} …")
    rows = [e.TrustCheck(code="file", message=long)]
    read = decode_line(e.encode(e.TrustReported(kind="run", rows=rows)))
    assert isinstance(read, e.TrustReported)
    assert [len(row.message) for row in read.rows] == [TEXT_CHARACTERS + 2]
    chunk = e.TextChunk(digest="d", index=0, count=1, data=long)
    assert decode_line(e.encode(chunk)) == chunk, "pieces of a text that is kept whole"


def test_lone_surrogates_do_not_break_the_pipe() -> None:
    assert b"\\udc80" in e.encode(e.LogLine(stream="stderr", text="\udc80"))


def test_unknown_types_and_fields() -> None:
    with pytest.raises(UnknownEvent, match="hologram"):
        decode_line(b'{"type":"hologram","seq":3}')
    event = decode_line(b'{"type":"heartbeat","seq":3,"run":"","monotonic_seconds":1.0,"colour":"blue"}')
    assert event == e.Heartbeat(seq=3, monotonic_seconds=1.0)


def test_what_was_asked_for_stands_flat_in_the_log_as_it_always_has() -> None:
    older = (
        b'{"type":"run_planned","run":"r1","workload":"selu","variant":"jit","how":"jit","device":"cpu:0",'
        b'"parameters":{"n":3},"baseline":"r0","arguments":["f32[3]"]}'
    )
    event = decode_line(older)
    assert event == e.RunPlanned(
        run="r1",
        spec=e.RunSpec(
            workload="selu",
            variant="jit",
            how="jit",
            device="cpu:0",
            parameters={"n": 3},
            baseline="r0",
            arguments=("f32[3]",),
        ),
    )
    for line in (e.encode(event), encode_line(event)):
        assert {"workload": "selu", "arguments": ["f32[3]"], "check": True}.items() <= json.loads(line).items()
        assert "spec" not in json.loads(line)
    with pytest.raises(ValueError, match="workload"):
        decode_line(b'{"type":"run_planned","run":"r1","variant":"jit","how":"jit","device":"cpu:0"}')


def test_flat_values_are_those_that_their_type_marks() -> None:
    marked = {
        cls: flat for cls in EVENT_TYPES if (flat := [item.name for item in fields(cls) if "flat" in item.metadata])
    }
    assert marked == codec._FLAT


@pytest.mark.parametrize("line", [b"", b"{", b"[]", b'"x"', b'{"type":"hologram', b'{"type":"phase_ended"}', b"\xff"])
def test_damaged_lines_are_value_errors(line: bytes) -> None:
    with pytest.raises(ValueError):
        decode_line(line)


@pytest.mark.parametrize(
    ("line", "read", "left_out"),
    [
        (
            b'{"type":"kernels_measured","kind":"run","rows":[{"name":"a","launch":{"grid":"x"}},{"name":3},7,null,{}]}',
            e.KernelsMeasured(kind="run", rows=[e.KernelTimes(name="a")]),
            5,
        ),
        (
            b'{"type":"trust_reported","kind":"run","rows":[{"code":"a","verdict":null},{"code":"b","later":[1]}]}',
            e.TrustReported(kind="run", rows=[e.TrustCheck(code="b")]),
            1,
        ),
        (
            b'{"type":"steps_measured","found_by":"x","steps":[{"start_seconds":0,"seconds":1}],"devices":[{}]}',
            e.StepsMeasured(found_by="x"),
            2,
        ),
        (
            b'{"type":"compile_passes","tree":{"name":"c","children":[{"name":"a","children":[{"name":[]}]},{"count":1}]}}',
            e.CompilePasses(tree=e.PassTimes(name="c", children=(e.PassTimes(name="a"),))),
            2,
        ),
        (
            b'{"type":"buffers_reported","source":"x","buffers":[{"bytes":"many","line":[]},{"bytes":1}]}',
            e.BuffersReported(source="x", buffers=[e.HeldBuffer(bytes=1)]),
            1,
        ),
    ],
    ids=["kernels", "trust", "steps", "passes", "buffers"],
)
def test_a_damaged_row_costs_that_row(line: bytes, read: e.Event, left_out: int) -> None:
    told: list[str] = []
    assert decode_line(line, told.append) == read
    assert told == [read.type] * left_out


@pytest.mark.parametrize(
    "line",
    [
        b'{"type":"kernels_measured","kind":"run","rows":{"name":"a"}}',
        b'{"type":"kernels_measured","kind":7,"rows":[{"name":"a"}]}',
        b'{"type":"compile_passes","tree":[]}',
        b'{"type":"compile_passes","tree":' + b'{"name":"a","children":[' * 9000 + b"]}" * 9000 + b"}",
    ],
    ids=["no list", "another field", "no tree", "bottomless"],
)
def test_an_event_whose_damage_is_no_row_is_none(line: bytes) -> None:
    with pytest.raises(ValueError, match="not an event"):
        decode_line(line)


def test_order_of_fields_does_not_matter() -> None:
    assert decode_line(b'{"seq":1,"type":"session_closed","reason":"x"}') == e.SessionClosed(seq=1, reason="x")


def test_every_optional_field_of_an_event_has_a_default_after_its_first_version() -> None:
    """A file of an older schema must load for ever: the required fields are frozen."""
    required = {
        cls.type: sorted(
            item.name for item in fields(cls) if item.default is MISSING and item.default_factory is MISSING
        )
        for cls in EVENT_TYPES
    }
    assert {name: names for name, names in required.items() if names} == {
        "run_planned": ["spec"],
        "comparison_planned": ["margin"],
        "results_compared": ["agree", "alike"],
        "worker_started": ["pid", "python"],
        "revision_read": ["commit", "repository"],
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
        "turn_awaited": ["call_seconds"],
        "buffers_reported": ["source"],
        "warning_raised": ["code", "message"],
        "log_line": ["stream", "text"],
        "device_reading": ["device"],
        "run_finished": ["status"],
        "run_closed": ["device", "status", "variant", "workload"],
        "program_started": ["argv", "how"],
        "program_stopped": ["began_seconds", "found_by", "seconds"],
        "jax_imported": ["seconds"],
        "stage_running": ["began_seconds", "function", "stage"],
        "compiled": ["function"],
        "program_sampled": ["began_seconds", "samples"],
        "steps_counted": ["count", "found_by", "seconds", "where"],
        "steps_taken": ["began_seconds", "first", "found_by", "seconds", "where"],
        "arrays_counted": ["bytes", "count"],
        "capture_window": ["state"],
        "program_ended": ["exit_code", "wall_seconds"],
        "process_identified": ["count", "index"],
    }


def test_a_place_of_an_older_file_may_be_empty() -> None:
    left_out: list[str] = []
    line = b'{"type":"compiled","function":"f","called_from":{},"defined_at":{"file":"a.py","line":3}}'
    event = decode_line(line, left_out.append)
    assert isinstance(event, e.Compiled)
    assert (event.called_from, event.defined_at) == (e.NOWHERE, e.SourceLocation("a.py", 3))
    assert not event.called_from
    assert left_out == []


def test_a_damaged_place_costs_itself() -> None:
    left_out: list[str] = []
    line = b'{"type":"compiled","function":"f","called_from":{"file":3},"defined_at":{"file":"a.py","line":3}}'
    event = decode_line(line, left_out.append)
    assert isinstance(event, e.Compiled)
    assert (event.called_from, event.defined_at) == (e.NOWHERE, e.SourceLocation("a.py", 3))
    assert left_out == ["compiled"]


def test_an_argument_of_an_older_file_is_from_numpy_where_it_has_bytes() -> None:
    rows = b'[{"name":"x","type":"f32[3]","from":"numpy","bytes":12},{"name":"w","type":"f32[4]"},{"name":3}]'
    left_out: list[str] = []
    event = decode_line(b'{"type":"compiled","function":"f","signature":' + rows + b"}", left_out.append)
    assert isinstance(event, e.Compiled)
    assert [(leaf.name, leaf.from_numpy) for leaf in event.signature] == [("x", True), ("w", False)]
    assert left_out == ["compiled"]


def test_a_damaged_line_of_a_stretch_costs_itself() -> None:
    left_out: list[str] = []
    rows = b'[{"file":"a.py","line":3,"seconds":0.5},{"file":3},{"file":"a.py","line":4,"seconds":null}]'
    start = b'{"type":"program_sampled","began_seconds":1.0,"samples":9,"lines":'
    event = decode_line(start + rows + b"}", left_out.append)
    assert isinstance(event, e.ProgramSampled)
    assert [(line.place, line.seconds) for line in event.lines] == [(e.SourceLocation("a.py", 3), 0.5)]
    assert left_out == ["program_sampled"] * 2
