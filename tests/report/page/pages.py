"""Sessions for pages: with a timeline, and with names that would be markup."""

import json

from analysis import made_runs
from folding import fold
from jaxprof import events as e
from report import sessions

EVIL = "<script>alert('x')</script></script><img src=x onerror=alert(1)>\"'&amp;"


def timeline_text(name="fusion", calls=6):
    """A host lane with nested intervals and a stream, `calls` calls a millisecond apart."""
    starts = [100_000] + [1_000_000] * (calls - 1)
    host_starts = [value for call in range(calls) for value in (900_000 if call else 50_000, 100_000)]
    lanes = [
        {"device": "gpu:0", "name": "stream 7", "kind": "stream", "labels": [[name, 0]],
         "label": [0] * calls, "start": starts, "duration": [400_000] * calls},
        {"device": "host", "name": "main", "kind": "host", "labels": [["call", None], ["dispatch", None]],
         "label": [0, 1] * calls, "start": host_starts, "duration": [600_000, 50_000] * calls},
    ]  # fmt: skip
    ops = [["jit_selu", None, name]]
    return json.dumps({"version": 1, "unit": "ns", "started_unix_ns": None, "left_out": 3, "ops": ops, "lanes": lanes})


def with_timeline():
    """A compiled run with captures and a timeline."""
    stored = e.TextRecorded(run="r2", name="timeline", text=timeline_text())
    return fold(sessions.HEADER, [*sessions.captured_events()[:-1], stored, e.SessionClosed()])


def with_ceilings():
    """A compiled run with captures on a device whose ceilings are known."""
    captures = sessions.captures("r1")
    run = made_runs.run("r1", *captures, hlo=sessions.HLO, device="cuda:0", kind="NVIDIA H100 80GB HBM3")
    return fold(sessions.HEADER, run)


def hostile():
    """Every name is markup."""
    rows = [sessions.kernel_times(name, 2e-3, 3, module=EVIL, device=EVIL) for name in (EVIL, "other")]
    step = e.StepTimes(name=EVIL, device="gpu:0", start_seconds=2e-3, seconds=1e-3, parts=e.StepParts(kernels=4e-4))
    tree = e.PassTimes(name=EVIL, seconds=1.0, self_seconds=0.5, children=(e.PassTimes(name=EVIL, seconds=0.5),))
    run = {"run": "r2"}
    return fold(
        e.Header(session=EVIL, host=EVIL, command=[EVIL], environment={EVIL: EVIL}),
        [
            *sessions.numpy_run("r1"),
            sessions.plan("r2", EVIL, "jit", "r1", workload=EVIL),
            *sessions.turns("r2", 1e-3, side=1),
            e.KernelsMeasured(kind="run", rows=rows, **run),
            e.StepsMeasured(found_by="annotation", steps=[step], **run),
            e.CompilePasses(tree=tree, **run),
            e.TextRecorded(name="timeline", text=timeline_text(EVIL), **run),
            *(e.TextRecorded(name=name, text=EVIL, **run) for name in ("hlo", "jaxpr")),
            e.WarningRaised(code="x", message=EVIL, advice=EVIL, **run),
            e.RunFinished(status="failed", error=EVIL, advice=EVIL, **run),
        ],
    )
