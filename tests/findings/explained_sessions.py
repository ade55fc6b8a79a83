"""Sessions that have something to explain, each with the figures that a test plants."""

from dataclasses import replace

import program_events as made
from analysis.made_runs import hlo_text, planned, run, session
from folding import fold
from jaxprof import events as e
from jaxprof.findings.derive import explanation
from report import sessions

TRANSPOSES = sessions.TRANSPOSES
MENDED = TRANSPOSES.replace("transpose(%p), dimensions={1,0}", "negate(%p)")
CAPTURE = sessions.kernels(fusion_1=3e-3, fusion_2=1e-3)


def codes(explained):
    return [finding.code for finding in explained.findings]


def unknown(explained):
    return [abstention.code for abstention in explained.abstentions]


def explained(session):
    return explanation(session, "s")


def replanned(events, **spec):
    """The events of a run, whose plan is another in these."""
    return [
        replace(event, spec=replace(event.spec, **spec)) if isinstance(event, e.RunPlanned) else event
        for event in events
    ]


def with_hlo(events, hlo):
    return [event for event in events if getattr(event, "name", "") != "hlo"] + [hlo_text(hlo, "r2")]


def session_of(*events):
    """These events after a run of NumPy."""
    return fold(sessions.HEADER, [*sessions.numpy_run("r1"), *events, e.SessionClosed()])


def run_of(hlo, *captured):
    """A compiled run of `hlo` beside NumPy's, with what was captured of it."""
    run = with_hlo(sessions.jit_run("r2", "r1"), hlo)
    return session_of(*run[:-2], *captured, *run[-2:])


def compared(slower, *, together=True):
    """A and B of a comparison, where B takes `slower` times as long as A."""
    sides = []
    for number, (name, baseline, median) in enumerate((("r1", "", 1e-3), ("r2", "r1", 1e-3 * slower))):
        blocks = sessions.turns(name, median, number) + sessions.later_launches(name, median, number)
        taken, side = blocks if together or not number else [], "AB"[number]
        spec = {"workload": f"m.py:{side}", "side": side, "baseline": baseline, "launches": 3}
        sides.append(run(name, *taken, hlo=sessions.HLO, **spec))
    return session(*sides)


def on_gpu(median, dispatch, copy, *, out=True):
    """A run on a GPU: how long a call takes, until it returns, and how long its arguments take to be copied. `out`:
    whether its result is on the GPU."""
    took = {"run": median, "dispatch": dispatch, "transfer_in": copy}
    taken = [e.SamplesTaken(run="r2", series=name, seconds=sessions.around(each)) for name, each in took.items()]
    copied = [e.PhaseEnded(run="r2", phase="transfer_in", seconds=copy, zero_copy=False)]
    copied += [e.PhaseEnded(run="r2", phase="transfer_out", seconds=1e-6, zero_copy=True)] * out
    return session_of(*run("r2", *taken, *copied, hlo=MENDED, device="cuda:0"))


def step(device="gpu:0", *, number=0, complete=True, **parts):
    """A step of 1 ms, of which so much goes to each of these parts, and the rest to kernels."""
    parts = e.StepParts(kernels=1e-3 - sum(parts.values()), **parts)
    times = {"start_seconds": 1e-3 * number, "seconds": 1e-3, "complete": complete}
    return e.StepTimes(name=str(number), device=device, parts=parts, **times)


def steps(platform, found_by="annotation", run="r2", **parts):
    """A capture of ten steps."""
    return [
        e.CaptureTaken(run=run, kind="run", platform=platform, calls=10, wall_seconds=0.01),
        e.StepsMeasured(run=run, found_by=found_by, steps=[step(number=at, **parts) for at in range(10)]),
    ]


def profile(*more, hlo=TRANSPOSES, gap=2e-4):
    """A profile that was opened: all of it as one run, and one program with its HLO as another. On two devices."""

    imported = {"variant": "profile", "how": "imported", "device": "gpu:0"}
    rows = [replace(row, device=device) for row in CAPTURE.rows for device in ("gpu:0", "gpu:1")]
    return [
        planned("r1", workload="2026", **imported),
        *steps("gpu", run="r1", launch_gaps=gap, idle=gap),
        planned("r2", workload="jit_turn", **imported),
        hlo_text(hlo, "r2"),
        e.CaptureTaken(run="r2", kind="imported", platform="gpu", calls=10),
        e.KernelsMeasured(run="r2", kind="imported", calls=10, rows=rows),
        *more,
    ]


def mostly_compiling(seconds, cache="off", *more):
    """Ten seconds of a program, of which so many went to one compilation."""
    share = seconds / 10
    states = {"compile": share, "device_busy": 1 - share}
    return [made.compiled(cache=cache, compile_seconds=seconds), *made.steady(10, states), *more]
