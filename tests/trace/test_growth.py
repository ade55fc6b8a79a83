"""Every reader of what comes from outside is linear: four times the input takes less than six times as long. Reading a
profile costs what it holds: eight times the events take about eight times as long, in every view."""

from __future__ import annotations

import functools
import gc
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from made_traces import host, op
from xplane_wire import Event, Line, Plane, space_bytes

from jaxprof import events as e
from jaxprof.analysis.explain.derive import explanation
from jaxprof.hlo.analysis.kernels import kernels
from jaxprof.hlo.read import files
from jaxprof.lines import LineBuffer
from jaxprof.session import Session
from jaxprof.session.log import load, reader
from jaxprof.session.log.codec import encode_header, encode_line
from jaxprof.session.log.entry import read_entry
from jaxprof.trace.intervals import self_times
from jaxprof.trace.lanes import lanes_of
from jaxprof.trace.ops import op_times
from jaxprof.trace.passes import compile_tree
from jaxprof.trace.steps import steps_of
from jaxprof.trace.xspace import parse_xspace

TIMES, MOST, ATTEMPTS = 4, 6.0, 5
LEAST_SECONDS = 0.03
"""How long each measurement takes at least: the clock is coarse on some systems."""
Read = tuple[bytes, Callable[[Path], object]]
"""An input, and what reads it."""


def session_of_many_events(size: int) -> Read:
    spec = e.RunSpec(workload="selu", variant="jit", how="jit", device="cpu:0")
    lines = [encode_header(e.Header(jaxprof="0.1.0", session="0123")), encode_line(e.RunPlanned(run="r1", spec=spec))]
    samples = e.SamplesTaken(run="r1", series="run", seconds=[1e-3] * 20)
    lines += [encode_line(samples), encode_line(e.LogLine(run="r1", stream="stderr", text="hello"))] * (1200 * size)
    return b"".join(lines), lambda path: (load(path, Session), read_entry(path))


def session_of_many_runs(size: int) -> Read:
    spec = e.RunSpec(workload="selu", variant="jit", how="jit", device="cpu:0")
    lines = [encode_line(e.RunPlanned(run=f"r{number}", spec=spec)) for number in range(150 * size)]
    header = encode_header(e.Header(jaxprof="0.1.0", session="0123"))
    return header + b"".join(lines), lambda path: explanation(load(path, Session), "many")


def session_of_one_line(size: int) -> Read:
    header = encode_header(e.Header(jaxprof="0.1.0", session="0123"))
    long = encode_line(e.LogLine(run="r1", stream="stderr", text="x" * (size << 19)))
    return header + long, lambda path: load(path, Session)


def hlo_text(size: int) -> Read:
    lines = [
        "HloModule m, is_scheduled=true",
        "",
        "ENTRY %main (p: f32[64]) -> f32[64] {",
        "  %add.0 = f32[64] parameter(0)",
    ]
    for number in range(1, 1500 * size):
        metadata = f'metadata={{op_name="jit(f)/add" source_line={number}}}'
        lines.append(f"  %add.{number} = f32[64]{{0}} add(%add.{number - 1}, %add.0), {metadata}")
    lines += ["  ROOT %r = f32[64]{0} negate(%add.0)", "}", ""]
    return "\n".join(lines).encode(), lambda path: kernels(files.load(path)[0])


def hlo_of_one_line(size: int) -> Read:
    """A constant of a million numbers."""
    count = 50_000 * size
    literal = ", ".join(["1.5"] * count)
    text = (
        f"HloModule m\n\nENTRY %main () -> f32[{count}] {{\n  ROOT %c = f32[{count}]{{0}} constant({{{literal}}})\n}}\n"
    )
    return text.encode(), lambda path: kernels(files.load(path)[0])


CHAIN = """
import sys
import jax

for count, path in zip(sys.argv[1::2], sys.argv[2::2]):
    def chain(x):
        for _ in range(int(count)):
            x = x * 2.0
        return x

    with open(path, "wb") as file:
        file.write(jax.jit(chain).lower(1.0).compiler_ir("hlo").as_serialized_hlo_module_proto())
"""


@functools.cache
def chains() -> dict[int, bytes]:
    """Modules with a chain of instructions, written by JAX: in a process of its own, because native code recurses over
    the chain."""
    with tempfile.TemporaryDirectory() as folder:
        paths = {size: Path(folder, str(size)) for size in (1, TIMES)}
        words = [str(word) for size, path in paths.items() for word in (400 * size, path)]
        subprocess.run([sys.executable, "-c", CHAIN, *words], check=True)
        return {size: path.read_bytes() for size, path in paths.items()}


def hlo_proto(size: int) -> Read:
    return chains()[size], files.load


def profile(size: int) -> Read:
    """Calls with their ops on a thread; on another one Python's frames, each around a compile with its passes."""
    ops: list[Event] = []
    frames: list[Event] = []
    for call in range(60 * size):
        at = 1000 * call
        ops += [op("dot", at + 40 * turn, 30, run_id=call + 1) for turn in range(20)]
        frames += [host(f"$file.py:{turn} f", at + turn, 990 - 2 * turn) for turn in range(20)]
        frames.append(host("backend_compile", at + 100, 500))
        frames += [host("fusion", at + 110 + 10 * turn, 9) for turn in range(20)]
    raw = space_bytes([Plane("/host:CPU", [Line("tf_XLA/1", ops), Line("python", frames)])])

    def read(path: Path) -> None:
        trace = lanes_of(parse_xspace(path.read_bytes(), "made by hand"))
        op_times(trace), steps_of(trace), compile_tree(trace)

    return raw, read


def profile_in_one_frame(size: int) -> Read:
    """As it is without a main loop: frames within frames around everything, and many threads that compile."""
    rows = [
        Line(
            f"pool/{thread}",
            [
                host(name, 1_000 * call + 100 * thread + 5 * depth, 90 - 10 * depth)
                for call in range(60 * size)
                for depth, name in enumerate(("frame", "backend_compile", "fusion", "inner"))
            ],
        )
        for thread in range(8)
    ]
    outer = Line("python", [host(f"frame {depth}", depth, 30_000_000 - 2 * depth) for depth in range(40)])
    raw = space_bytes([Plane("/host:CPU", [outer, *rows])])

    def read(path: Path) -> None:
        trace = lanes_of(parse_xspace(path.read_bytes(), "made by hand"))
        op_times(trace), steps_of(trace), compile_tree(trace)

    return raw, read


def _lines_of(path: Path) -> Iterator[bytes]:
    """As a pipe gives them: in blocks of 64 KiB."""
    buffer = LineBuffer(1 << 30)
    with path.open("rb") as file:
        while block := file.read(1 << 16):
            yield from buffer.feed(block)


def child_lines(size: int) -> Read:
    return b"an ordinary line of output\n" * (100_000 * size), lambda path: sum(map(len, _lines_of(path)))


def child_line(size: int) -> Read:
    return b"x" * (size << 19) + b"\n", lambda path: sum(map(len, _lines_of(path)))


def intervals_within_each_other(size: int) -> Read:
    starts = np.arange(40_000 * size)
    return starts.tobytes(), lambda path: self_times(read := np.fromfile(path, np.int64), 2 * (len(read) - read))


READERS = (
    session_of_many_events, session_of_many_runs, session_of_one_line, hlo_text, hlo_of_one_line, hlo_proto, profile,
    profile_in_one_frame, intervals_within_each_other, child_lines, child_line,
)  # fmt: skip


def seconds(read: Callable[[Path], object], path: Path, times: int) -> float:
    """The least CPU time in which it is read so many times: what other processes take does not count."""
    took = []
    for _ in range(2):
        began = time.process_time()
        for _ in range(times):
            read(path)
        took.append(time.process_time() - began)
    return min(took)


@pytest.mark.parametrize(
    "make", [pytest.param(make, marks=pytest.mark.process if make is hlo_proto else ()) for make in READERS],
    ids=lambda make: make.__name__,
)  # fmt: skip
def test_time_grows_with_the_input(
    make: Callable[[int], Read], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "BLOCK_BYTES", 1 << 16)
    small, large = tmp_path / "small.hlo", tmp_path / "large.hlo"
    content, read = make(1)
    small.write_bytes(content)
    large.write_bytes(make(TIMES)[0])
    read(small)  # imports, and what is made once
    times = max(1, round(LEAST_SECONDS / max(1e-3, seconds(read, small, 1))))
    gc.collect()
    gc.disable()  # when it runs depends on what other tests have made
    try:
        ratios: list[float] = []
        while not ratios or (ratios[-1] >= MOST and len(ratios) < ATTEMPTS):  # another process may take the caches
            ratios.append(seconds(read, large, times) / seconds(read, small, times))
        assert min(ratios) < MOST
    finally:
        gc.enable()


SMALL = 8


def cpu(calls: int) -> bytes:
    """Calls with a loop each, on one thread; Python's frames and a compile on another, step annotations around."""
    ops: list[Event] = []
    frames: list[Event] = []
    for call in range(calls):
        at = 1000 * call
        ops.append(op("while", at, 900, run_id=call + 1))
        for turn in range(20):
            ops += [op(name, at + 40 * turn + shift, 9, run_id=call + 1) for shift, name in ((1, "dot"), (12, "add"))]
        frames.append(host("train", at, 950, step_num=call))
        frames += [host(f"$file.py:{turn} f", at + 20 * turn, 15) for turn in range(40)]
        frames.append(host("backend_compile", at + 900, 20))
        frames += [host("fusion", at + 901 + turn, 0.5) for turn in range(10)]
    return space_bytes([Plane("/host:CPU", [Line("tf_XLA/1", ops), Line("python", frames)])])


def test_a_table_of_kernels_does_not_read_the_frames_of_python() -> None:
    raw = cpu(SMALL)
    trace = lanes_of(parse_xspace(raw, "made by hand"))
    assert {row.op.name for row in op_times(trace)} == {"while", "dot", "add"}
    assert steps_of(trace).found_by == "annotation"
    waiting = lanes_of(parse_xspace(raw, "made by hand"))
    op_times(waiting)
    assert waiting.pending
    assert all(lane.kind != "host" for lane in waiting.ready)
    assert waiting.events == 8 * (41 + 52)
    assert not waiting.pending


def test_of_events_that_only_a_timeline_shows_no_python_object_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tree of a compile looks at what is in compiles, one by one; at nothing else."""
    from jaxprof.trace import passes

    seen = []
    nested = passes._nested
    monkeypatch.setattr(passes, "_nested", lambda lane: seen.append(len(lane)) or nested(lane))
    tree = compile_tree(lanes_of(parse_xspace(cpu(SMALL), "made by hand")))
    assert (tree.count, tree.children[0].name) == (SMALL, "backend_compile")
    assert sum(seen) == SMALL * 11
