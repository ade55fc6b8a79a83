"""Profiles that JAX records here and now, on CPU: what is in them, what their programs hold in memory, and what they
are doubted for. Beside them, what the xprof package answers for profiles of other machines: skipped unless
JAXPROF_REAL_PROFILES names a folder with `xplane/NAME.xplane.pb` and `reference/NAME/hlo_stats.json`."""

import json
import os
from collections import defaultdict
from contextlib import contextmanager
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from xplane_wire import nested, number

from jaxprof.analysis.kernels.memory import memory_of_dump
from jaxprof.engine.measure.capture import capture_run
from jaxprof.engine.measure.control import Reporter, RunControl
from jaxprof.engine.measure.stages import buffers_of
from jaxprof.events import BuffersReported, CaptureTaken, TrustReported
from jaxprof.hlo.paths import modules_at
from jaxprof.hlo.text.parse import module
from jaxprof.hlo.text.proto import text as hlo_text
from jaxprof.trace.buffers import buffers_in
from jaxprof.trace.imported import import_profile
from jaxprof.trace.sources import read_profile
from jaxprof.trace.steps import steps_of
from jaxprof.trace.summary import events_of, op_times, text_of

CALLS = 3


@contextmanager
def profiling(folder, *, python):
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = python
    jax.profiler.start_trace(str(folder), profiler_options=options)
    yield
    jax.profiler.stop_trace()


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Three annotated calls of a program with a loop, a compile outside of the profile."""

    @jax.jit
    def step(x):
        def body(carry, _):
            return jnp.tanh(carry @ carry.T), None

        return jnp.sort(jax.lax.scan(body, x, None, length=4)[0].sum(0))

    x = jnp.ones((64, 64))
    step(x).block_until_ready()
    folder = tmp_path_factory.mktemp("recorded")
    with profiling(folder, python=0):
        for call in range(CALLS):
            with jax.profiler.StepTraceAnnotation("train", step_num=call):
                step(x).block_until_ready()
    return folder


@pytest.fixture(scope="module")
def captured(tmp_path_factory):
    """A profile of a program with temporaries and of its compile, with Python's own tracer; and its executable."""
    x = jnp.ones((64, 64))
    folder = tmp_path_factory.mktemp("captured")
    lowered = jax.jit(lambda x: jnp.sort(x @ x, axis=0) @ (x + 1.0)).lower(x)
    with profiling(folder, python=1):
        compiled = lowered.compile(compiler_options={"xla_dump_to": str(folder / "dump")})
        compiled(x).block_until_ready()
    return folder, compiled


def events_by_jax(folder):
    """Thread, op, start and duration in ns, of each HLO op, as JAX's own reader gives them."""
    (file,) = folder.rglob("*.xplane.pb")
    for plane in jax.profiler.ProfileData.from_file(str(file)).planes:
        for line in plane.lines:
            for event in line.events:
                stats = dict(event.stats)
                if "hlo_op" in stats and not event.name.startswith("end: "):
                    yield line.name, str(stats["hlo_op"]), event.start_ns, event.duration_ns


def test_totals_and_self_times_agree_with_a_sum_by_hand(recorded):
    sums = {}
    lines = {}
    for line, name, start, duration in events_by_jax(recorded):
        sums.setdefault(name, []).append(duration)
        lines.setdefault(line, []).append((start, start + duration))
    rows = {row.name: row for row in op_times(read_profile(recorded))}
    assert set(rows) == set(sums)
    for name, durations in sums.items():
        assert rows[name].count == len(durations)
        assert rows[name].total_seconds == pytest.approx(sum(durations) * 1e-9, rel=1e-9)
    covered = 0.0
    for spans in lines.values():
        reached = float("-inf")
        for start, end in sorted(spans):
            covered += max(0.0, end - max(start, reached))
            reached = max(reached, end)
    assert sum(row.self_seconds for row in rows.values()) == pytest.approx(covered * 1e-9, rel=1e-6)


def test_the_hlo_in_the_file_has_the_ops_that_ran(recorded):
    trace = read_profile(recorded)
    ((name, program),) = {(row.module, row.program) for row in op_times(trace)}
    text, problem = text_of(trace, (name, int(program)))
    assert text is not None, problem
    names = {one.name for computation in module(text).computations.values() for one in computation.instructions}
    assert {row.name for row in op_times(trace)} <= names


def test_the_annotated_steps_hold_all_of_the_work(recorded):
    steps = steps_of(read_profile(recorded))
    assert (steps.found_by, [row.name for row in steps.rows]) == ("annotation", ["train 0", "train 1", "train 2"])
    assert steps.outside_seconds == pytest.approx(0, abs=1e-9)


def test_trust_in_a_sound_capture_and_in_a_compile(recorded, captured):
    rows = trust(recorded)
    for code in ("file", "dropped", "python_tracer", "tracers", "clock", "unmatched", "modules", "steps"):
        assert rows[code][0] == "good", rows[code]
    assert not {"one_step", "no_kernels", "profiler_error", "compile"} & set(rows)
    rows = trust(captured[0])
    assert (rows["compile"][0], rows["python_tracer"][0]) == ("doubt", "doubt")


def trust(path):
    (event,) = [one for one in events_of(read_profile(path), "imported") if isinstance(one, TrustReported)]
    return {row.code: (row.verdict, row.message) for row in event.rows}


def test_the_engine_holds_a_capture_against_its_timing():
    """The whole way: what the pass under the profiler knows of itself reaches the rows."""
    function = jax.jit(lambda x: jnp.tanh(x @ x))
    x = jnp.ones((256, 256))
    function(x).block_until_ready()
    events = []
    capture_run(Reporter(events.append, RunControl()), lambda: jax.block_until_ready(function(x)), 1e-9)
    (capture,) = [event for event in events if isinstance(event, CaptureTaken)]
    assert capture.seconds_with is not None
    codes = {row.code: row.verdict for event in events if isinstance(event, TrustReported) for row in event.rows}
    assert codes["slowdown"] == "bad"
    assert "sum" in codes


def test_they_are_those_of_the_executable_and_of_a_dump_in_words(captured):
    folder, compiled = captured
    expected = buffers_of(compiled, compiled.as_text())
    if expected is None:
        pytest.skip("this jax does not tell the buffers of an executable")
    events = []
    import_profile(folder, "r1", events.append)
    (found,) = [event for event in events if isinstance(event, BuffersReported)]
    assert (found.peak_bytes, found.parts) == (expected.peak_bytes, expected.parts)
    rows = [(row.bytes, row.kind, row.instruction) for row in expected.buffers]
    assert [(row.bytes, row.kind, row.instruction) for row in found.buffers] == rows
    (stages,) = modules_at(folder / "dump")
    dumped = memory_of_dump(stages)
    assert (dumped.source, dumped.peak_bytes) == ("buffer assignment", expected.peak_bytes)
    assert dumped.parts == expected.parts
    assert {(one.bytes, one.instruction) for one in dumped.buffers} == {(size, name) for size, _, name in rows}


def test_without_an_assignment_a_dump_has_an_estimate(captured, tmp_path):
    (text,) = (captured[0] / "dump").glob("*after_optimizations.txt")
    (tmp_path / text.name).write_text(text.read_text())
    (tmp_path / f"{text.stem}-buffer-assignment.txt").write_text("BufferAssignment:\n")
    (stages,) = modules_at(tmp_path)
    assert memory_of_dump(stages).is_estimate


def test_what_lies_in_the_hosts_memory_is_not_the_devices(captured):
    program = max(read_profile(captured[0]).programs, key=lambda one: len(one.proto))
    text = hlo_text(program.proto)
    plain = buffers_in(program.proto, text)
    assert plain.peak_bytes

    def peak_with(colour):
        """The same program with 1 GiB more, in the memory of that colour."""
        more = nested(3, nested(3, number(1, 99) + number(2, 1 << 30) + number(5, 1) + number(8, colour)))
        found = buffers_in(program.proto + more, text)
        return found.peak_bytes if found is not None else None

    assert peak_with(5) == plain.peak_bytes
    assert peak_with(0) == plain.peak_bytes + (1 << 30)


@pytest.mark.parametrize("proto", [b"", b"\x0a\x05abc", b"\xff" * 9, number(1, 7)])
def test_damage_is_no_memory(proto):
    assert buffers_in(proto, "HloModule m") is None


REAL = Path(os.environ.get("JAXPROF_REAL_PROFILES", "/nowhere"))


@pytest.mark.parametrize("name", sorted(path.name for path in (REAL / "reference").glob("*")) or [None])
def test_totals_agree_with_the_recorded_answers(name):
    """xprof's rows are sums over the devices; its IDLE rows are no ops."""
    if name is None:
        pytest.skip("JAXPROF_REAL_PROFILES names no folder with profiles and what xprof says of them")
    answer = json.loads((REAL / "reference" / name / "hlo_stats.json").read_text())
    columns = [column["id"] for column in answer["cols"]]
    rows = [dict(zip(columns, [cell.get("v") for cell in row["c"]], strict=True)) for row in answer["rows"]]
    theirs = {
        (row["program_id"], row["hlo_op_name"]): [row["occurrences"], row["total_time"], row["total_self_time"]]
        for row in rows
        if row["category"] != "IDLE"
    }
    ours = defaultdict(lambda: [0, 0.0, 0.0])
    for one in op_times(read_profile(REAL / "xplane" / f"{name}.xplane.pb")):
        figures = ours[one.program, one.name]
        for at, value in enumerate((one.count, one.total_seconds * 1e6, one.self_seconds * 1e6)):
            figures[at] += value
    assert set(ours) == set(theirs)
    for key, values in theirs.items():
        assert ours[key] == pytest.approx(values, rel=1e-6)
