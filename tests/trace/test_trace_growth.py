"""Reading a profile costs what it holds: eight times the events take about eight times as long, in every view."""

from __future__ import annotations

import pytest
from made_traces import host, op
from xplane_wire import Event, Line, Plane, space_bytes

from jaxprof.trace.lanes import lanes_of
from jaxprof.trace.ops import op_times
from jaxprof.trace.passes import compile_tree
from jaxprof.trace.steps import steps_of
from jaxprof.trace.xspace import parse_xspace

SMALL, TIMES = 8, 8


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
    assert tree is not None
    assert (tree.count, tree.children[0].name) == (SMALL, "backend_compile")
    assert sum(seen) == SMALL * 11
