"""Programs made of events, as tapes: a training loop that recompiles, one that compiles right now, hostile names."""

from dataclasses import asdict

import program_events as made
from jaxprof import events as e
from tui.session_tapes import HOSTILE, Tape


def tape_of(events, seconds):
    """A tape that stands so many seconds after the start."""
    tape = Tape(made.BEGAN)
    tape.events = list(events)
    tape.now += seconds
    return tape


def finished():
    """A loop whose batches have many shapes, over 20 s, with readings of the GPU and what was printed."""
    *events, ended, finished, closed, end = made.training_events()
    for second in range(5, 20):
        busy = 0.3 if second % 6 == 5 else 0.75
        readings = {"utilisation": busy, "memory_used_bytes": int(20e9 + 4e9 * busy), "memory_limit_bytes": int(140e9)}
        moment = {"monotonic_seconds": made.BEGAN + second}
        events.append(e.DeviceReading(device="cuda:0", power_watts=120 + 400 * busy, **readings, **moment))
        events.append(e.LogLine(run=made.RUN, stream="stdout", text=f"step {second}: loss {9 / second:.3f}", **moment))
    return tape_of([*events, ended, finished, closed, end], 20.4)


def compiling():
    """In the middle of a long compile, of which nothing more is heard."""
    stage = e.StageRunning(
        run=made.RUN, function="step", stage="compile", began_seconds=made.BEGAN + 1.0,
        monotonic_seconds=made.BEGAN + 1.5, called_from=made.at(88),
    )  # fmt: skip
    imported = e.JaxImported(run=made.RUN, seconds=0.61, version="0.10.2", monotonic_seconds=made.BEGAN + 1.0)
    return tape_of(made.program(made.sampled(0.0, 1.0, {"import": 1.0}), imported, stage, wall=None), 1.5)


def hostile():
    """Names and lines that no screen may obey."""
    where = e.SourceLocation(f"/home/{HOSTILE}.py", 3, HOSTILE)
    line = {**asdict(where), "seconds": 0.9, "state": "host_busy", "call": HOSTILE, "kind": "host"}
    at = {"called_from": where, "defined_at": where}
    static = made.leaf(HOSTILE, HOSTILE, static=True)
    reasons = [made.reason("static_argument", HOSTILE, "3", "4")]
    events = made.program(
        made.sampled(0.0, 1.0, {"host_busy": 1.0}, [line]),
        made.compiled(HOSTILE, **at),
        made.compiled(HOSTILE, "static_argument", reasons=reasons, signature=[static], **at),
        e.LogLine(run=made.RUN, stream="stderr", text=HOSTILE),
        argv=(HOSTILE, HOSTILE),
        exit_code=1,
    )
    return tape_of(events, 10.0)
