import json
from dataclasses import MISSING, fields

import pytest

from golden import held
from jaxprof import events as e
from jaxprof.events.base import TEXT_CHARACTERS
from jaxprof.session.lines import UnknownEvent, decode_line, encode_line
from tapes import unpacked

EXPORTED = [getattr(e, name) for name in e.__all__]  # each is loaded on its first use
EVENT_TYPES = [cls for cls in EXPORTED if isinstance(cls, type) and issubclass(cls, e.Event) and cls is not e.Event]
SAMPLES = [
    e.RunPlanned(
        run="r1",
        spec=e.RunSpec(workload="selu", variant="jit", how="jit", device="cpu:0", parameters={"n": 3, "x": 0.5}),
    ),
    e.TextRecorded(run="r1", name="hlo", text='quote " and \u2028 and \x1b', bytes=9),
    e.KernelsMeasured(
        run="r1",
        kind="run",
        rows=[e.KernelTimes(name="dot.1", program="4", kernels=("gemm",), launch=e.KernelLaunch(grid=(16, 2, 1)))],
        transfers=[e.CopyTimes(direction="fill", device="gpu:0", count=2, total_seconds=1e-6)],
    ),
    e.Compiled(
        run="r1",
        function="step",
        signature=[e.SignatureLeaf(name="n", type="3", static=True)],
        closure=[e.ClosureChange(name="rate", before="0.5", now="0.25")],
        constants=[e.ProgramArray(type="f32[300,300]", bytes=360_000)],
    ),
    e.ComparisonPlanned(
        run="r1", sides=[e.SideSpec(label="B", title="f", environment={"FLAGS": "--x=1"}, dirty=True)], margin=0.05
    ),
    e.ResultsCompared(run="r3", alike=True, agree=False, relative=None, where="['w']"),
]
"""What no tape has."""


@pytest.mark.parametrize("tape", ["", "engines/measures", "programs/point_clouds"])
def test_events_are_read_as_they_were_written(tape, tmp_path):
    taped = unpacked(*tape.split("/"), tmp_path).read_bytes().splitlines()[1:] if tape else []
    for event in SAMPLES if not tape else map(decode_line, taped):
        assert decode_line(e.encode(event)) == event
        line = encode_line(event)
        assert line.endswith(b"\n")
        assert b"\n" not in line[:-1]
        assert decode_line(line[:-1]) == event
        assert json.loads(line)["type"] == event.type


def test_every_type_is_found_by_its_name_in_the_log():
    assert [cls for cls in EVENT_TYPES if e.event_type(cls.type) is not cls] == []
    assert len({cls.type for cls in EVENT_TYPES}) == len(EVENT_TYPES)
    for name in ("", "event", "run_spec", "Run_planned", "of_a_newer_version"):
        assert e.event_type(name) is None


def test_a_number_that_is_not_finite_is_refused():
    with pytest.raises(ValueError, match="samples_taken"):
        e.encode(e.SamplesTaken(series="run", seconds=[float("nan")]))
    assert (e.finite(float("inf")), e.finite(1.5)) == (None, 1.5)
    assert b"\\udc80" in e.encode(e.LogLine(stream="stderr", text="\udc80")), "lone surrogates do not break the pipe"


def test_text_of_a_line_too_long_is_cut():
    long = "x" * (TEXT_CHARACTERS + 1)
    event = decode_line(e.encode(e.RunFinished(run="r1", status="failed", error=long, traceback="where" + long)))
    assert event == e.RunFinished(run="r1", status="failed", error=long[:-1] + " …", traceback=f"where{long[:-6]} …")
    read = decode_line(e.encode(e.TrustReported(kind="run", rows=[e.TrustCheck(code="file", message=long)])))
    assert [len(row.message) for row in read.rows] == [TEXT_CHARACTERS + 2]
    chunk = e.TextChunk(digest="d", index=0, count=1, data=long)
    assert decode_line(e.encode(chunk)) == chunk, "pieces of a text that is kept whole"


def test_unknown_types_and_fields():
    with pytest.raises(UnknownEvent, match="hologram"):
        decode_line(b'{"type":"hologram","seq":3}')
    event = decode_line(b'{"seq":3,"type":"heartbeat","run":"","monotonic_seconds":1.0,"colour":"blue"}')
    assert event == e.Heartbeat(seq=3, monotonic_seconds=1.0)


def test_plan_is_flat_in_the_log():
    planned = SAMPLES[0]
    for line in (e.encode(planned), encode_line(planned)):
        assert {"workload": "selu", "parameters": {"n": 3, "x": 0.5}, "check": True}.items() <= json.loads(line).items()
        assert "spec" not in json.loads(line)
    with pytest.raises(ValueError, match="workload"):
        decode_line(b'{"type":"run_planned","run":"r1","variant":"jit","how":"jit","device":"cpu:0"}')
    marked = {
        cls: flat for cls in EVENT_TYPES if (flat := [item.name for item in fields(cls) if "flat" in item.metadata])
    }
    assert marked == {e.RunPlanned: ["spec"]}


NONE = (
    b"", b"{", b"[]", b'"x"', b'{"type":"hologram', b'{"type":"phase_ended"}', b"\xff",
    b'{"type":"kernels_measured","kind":"run","rows":{"name":"a"}}',
    b'{"type":"kernels_measured","kind":7,"rows":[{"name":"a"}]}',
    b'{"type":"kernels_measured","kind":"run","rows":[{"name":"a"},{"name":3}]}',
    b'{"type":"compile_passes","tree":[]}',
    b'{"type":"compile_passes","tree":' + b'{"name":"a","children":[' * 9000 + b"]}" * 9000 + b"}",
)  # fmt: skip


@pytest.mark.parametrize("line", NONE, ids=lambda line: repr(line[:50]))
def test_what_is_damaged_is_no_event(line):
    with pytest.raises(ValueError):
        decode_line(line)


def test_optional_field_of_an_event_has_a_default():
    """A file of an older schema must load for ever: the required fields are frozen."""
    required = {
        cls.type: sorted(
            item.name for item in fields(cls) if item.default is MISSING and item.default_factory is MISSING
        )
        for cls in EVENT_TYPES
    }
    held("events.txt", "".join(f"{name}: {', '.join(names)}\n" for name, names in required.items() if names))
