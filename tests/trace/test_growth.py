"""Every reader of what comes from outside is linear: four times the input takes less than six times as long."""

import gc
import time

import pytest
from made_traces import host, op
from xplane_wire import Line, Plane, nested, number, space_bytes, varint

from jaxprof import events as e
from jaxprof.base.files import LineBuffer
from jaxprof.hlo import files
from jaxprof.hlo.kernels.barriers import barriers
from jaxprof.hlo.kernels.kernels import kernels
from jaxprof.hlo.text import parse
from jaxprof.session import Session, lines, load
from jaxprof.session.library import read_entry
from jaxprof.session.lines import encode_header, encode_line
from jaxprof.trace.lanes import lanes_of
from jaxprof.trace.passes import compile_passes
from jaxprof.trace.steps import steps_of
from jaxprof.trace.summary import op_times
from jaxprof.trace.xspace import parse_xspace

TIMES, MOST, MEASURED = 4, 6.0, 10
LEAST_SECONDS = 0.03
"""How long each measurement takes at least: the clock is coarse on some systems."""


def session_of_many_events(size):
    spec = e.RunSpec(workload="selu", variant="jit", how="jit", device="cpu:0")
    lines = [encode_header(e.Header(jaxprof="0.1.0", session="0123")), encode_line(e.RunPlanned(run="r1", spec=spec))]
    samples = e.SamplesTaken(run="r1", series="run", seconds=[1e-3] * 20)
    lines += [encode_line(samples), encode_line(e.LogLine(run="r1", stream="stderr", text="hello"))] * (1200 * size)
    return b"".join(lines), lambda path: (load(path, Session), read_entry(path))


def session_of_one_line(size):
    header = encode_header(e.Header(jaxprof="0.1.0", session="0123"))
    long = encode_line(e.LogLine(run="r1", stream="stderr", text="x" * (size << 19)))
    return header + long, lambda path: load(path, Session)


def hlo_text(size):
    lines = [
        "HloModule m, is_scheduled=true",
        "",
        "ENTRY %main (p: f32[64]) -> f32[64] {",
        "  %add.0 = f32[64] parameter(0)",
    ]
    for at in range(1, 700 * size):
        metadata = f'metadata={{op_name="jit(f)/add" source_line={at}}}'
        lines.append(f"  %add.{at} = f32[64]{{0}} add(%add.{at - 1}, %add.0), {metadata}")
    lines += ["  ROOT %r = f32[64]{0} negate(%add.0)", "}", ""]
    return "\n".join(lines).encode(), lambda path: barriers(parse.modules(files.read_text(path))[0])


def hlo_of_one_line(size):
    """A constant of a million numbers."""
    count = 25_000 * size
    literal = ", ".join(["1.5"] * count)
    text = (
        f"HloModule m\n\nENTRY %main () -> f32[{count}] {{\n  ROOT %c = f32[{count}]{{0}} constant({{{literal}}})\n}}\n"
    )
    return text.encode(), lambda path: kernels(parse.modules(files.read_text(path))[0])


def hlo_proto(size):
    """A chain of instructions, as HloProto has it."""
    shape = number(2, 11) + nested(5, nested(1, b"\x00"))
    chain = [nested(1, "x") + nested(2, "parameter") + nested(3, shape) + number(9, 0) + number(35, 1)]
    chain += [
        nested(1, f"n.{at}") + nested(2, "negate") + nested(3, shape) + number(35, at) + nested(36, varint(at - 1))
        for at in range(2, 400 * size)
    ]
    main = nested(1, "main") + b"".join(nested(2, each) for each in chain) + number(5, 1) + number(6, len(chain))
    module = nested(1, "jit_g") + nested(2, "main") + nested(3, main) + number(5, 9) + number(6, 1)
    return nested(1, module), lambda path: parse.modules(files.read_text(path))


def profile(size):
    """Calls with their ops on a thread; on another frames of Python around all, and around compiles with passes."""
    ops = []
    frames = [host(f"frame {depth}", depth, 30_000_000 - 2 * depth) for depth in range(40)]
    for call in range(30 * size):
        at = 1000 * call
        ops.append(op("while", at, 900, run_id=call + 1))
        ops += [op("dot", at + 40 * turn, 30, run_id=call + 1) for turn in range(20)]
        frames.append(host("train", at + 90, 900, step_num=call))
        frames += [host(f"$file.py:{turn} f", at + turn, 990 - 2 * turn) for turn in range(20)]
        frames.append(host("backend_compile", at + 100, 500))
        frames += [host("fusion", at + 110 + 10 * turn, 9) for turn in range(20)]
    raw = space_bytes([Plane("/host:CPU", [Line("tf_XLA/1", ops), Line("python", frames)])])

    def read(path):
        trace = lanes_of(parse_xspace(path.read_bytes(), "made by hand"))
        op_times(trace), steps_of(trace), compile_passes(trace)

    return raw, read


def _lines_of(path):
    """As a pipe gives them: in blocks of 64 KiB."""
    buffer = LineBuffer(1 << 30)
    with path.open("rb") as file:
        while block := file.read(1 << 16):
            yield from buffer.feed(block)


def child_line(size):
    return b"x" * (size << 19) + b"\n", lambda path: sum(map(len, _lines_of(path)))


READERS = (session_of_many_events, session_of_one_line, hlo_text, hlo_of_one_line, hlo_proto, profile, child_line)


def seconds(read, path, times):
    """The CPU time in which it is read so many times: what other processes take does not count."""
    began = time.process_time()
    for _ in range(times):
        read(path)
    return time.process_time() - began


@pytest.mark.parametrize("make", READERS, ids=lambda make: make.__name__)
def test_time_grows_with_the_input(make, tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "BLOCK_BYTES", 1 << 16)
    small, large = tmp_path / "small.hlo", tmp_path / "large.hlo"
    content, read = make(1)
    small.write_bytes(content)
    large.write_bytes(make(TIMES)[0])
    read(small)  # imports, and what is made once
    times = max(1, round(LEAST_SECONDS / max(1e-3, seconds(read, small, 1))))
    gc.collect()
    gc.disable()  # when it runs depends on what other tests have made
    try:
        # Once of many times, because another process may take the caches; a square would take 16 times as long.
        assert any(seconds(read, large, times) < MOST * seconds(read, small, times) for _ in range(MEASURED))
    finally:
        gc.enable()
