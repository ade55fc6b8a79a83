"""The HLO in a profile tells what its program holds in memory, as its executable does."""

import pytest
from xplane_wire import nested, number

from jaxprof.analysis.memory import memory_of_dump
from jaxprof.engine.measure.stages import buffers_of
from jaxprof.events import BuffersReported
from jaxprof.hlo.open.paths import modules_at
from jaxprof.hlo.read.proto import text as hlo_text
from jaxprof.trace.buffers import buffers_in
from jaxprof.trace.imported import import_profile
from jaxprof.trace.sources import read_profile


@pytest.fixture(scope="module")
def captured(tmp_path_factory):
    """A profile of a program with temporaries, and its executable."""
    import jax
    import jax.numpy as jnp

    x = jnp.ones((64, 64))
    folder = tmp_path_factory.mktemp("captured")
    lowered = jax.jit(lambda x: jnp.sort(x @ x, axis=0) @ (x + 1.0)).lower(x)
    compiled = lowered.compile(compiler_options={"xla_dump_to": str(folder / "dump")})
    jax.profiler.start_trace(str(folder))
    compiled(x).block_until_ready()
    jax.profiler.stop_trace()
    return folder, compiled


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
    assert {part.kind: part.bytes for part in dumped.parts} == expected.parts
    assert {(one.bytes, one.instruction) for one in dumped.buffers} == {(size, name) for size, _, name in rows}


def test_without_an_assignment_a_dump_has_an_estimate(captured, tmp_path):
    (text,) = (captured[0] / "dump").glob("*after_optimizations.txt")
    (tmp_path / text.name).write_text(text.read_text())
    (tmp_path / f"{text.stem}-buffer-assignment.txt").write_text("BufferAssignment:\n")
    (stages,) = modules_at(tmp_path)
    found = memory_of_dump(stages)
    assert found.is_estimate


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
