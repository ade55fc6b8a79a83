"""Sessions for pages: with a timeline, and with names that would be markup."""

from __future__ import annotations

import json

from folding import fold
from jaxprof import events as e
from jaxprof.session import Session
from report import sessions

EVIL = "<script>alert('x')</script></script><img src=x onerror=alert(1)>\"'&amp;"


def timeline_text(name: str = "fusion", calls: int = 6) -> str:
    """A host lane with nested intervals and a stream, `calls` calls a millisecond apart."""
    starts = [100_000] + [1_000_000] * (calls - 1)
    host_starts = [value for call in range(calls) for value in (900_000 if call else 50_000, 100_000)]
    return json.dumps(
        {
            "version": 1,
            "unit": "ns",
            "started_unix_ns": None,
            "left_out": 3,
            "ops": [["jit_selu", None, name]],
            "lanes": [
                {"device": "gpu:0", "name": "stream 7", "kind": "stream", "labels": [[name, 0]],
                 "label": [0] * calls, "start": starts, "duration": [400_000] * calls},
                {"device": "host", "name": "main", "kind": "host", "labels": [["call", None], ["dispatch", None]],
                 "label": [0, 1] * calls, "start": host_starts, "duration": [600_000, 50_000] * calls},
            ],
        }
    )  # fmt: skip


def with_timeline() -> Session:
    """A compiled run with captures and a timeline."""
    run = sessions.jit_run("r2", "r1")
    stored = e.TextRecorded(run="r2", name="timeline", text=timeline_text())
    captures = sessions.captures("r2")
    return fold(
        sessions.HEADER, [*sessions.numpy_run("r1"), *run[:-2], *captures, stored, *run[-2:], e.SessionClosed()]
    )


def with_ceilings() -> Session:
    """A compiled run with captures on a device whose ceilings are known."""
    run = {"run": "r1"}
    device = {"id": "cuda:0", "platform": "cuda", "kind": "NVIDIA H100 80GB HBM3"}
    spec = e.RunSpec(workload="selu", variant="jit", how="jit", device="cuda:0")
    return fold(
        sessions.HEADER,
        [
            e.RunPlanned(spec=spec, **run),
            e.EnvironmentRead(python="3.11.7", numpy="2.3.0", jax="0.10.2", devices=[device], **run),
            e.TextRecorded(name="hlo", text=sessions.HLO, **run),
            *sessions.captures("r1"),
            e.RunFinished(status="ok", **run),
        ],
    )


def hostile() -> Session:
    """Every name is markup."""
    rows = [
        e.KernelTimes(name=EVIL, module=EVIL, device=EVIL, self_seconds=2e-3, wall_seconds=2e-3, count=3),
        e.KernelTimes(name="other", module=EVIL, device=EVIL, self_seconds=1e-3, wall_seconds=1e-3, count=3),
    ]
    parts = e.StepParts(kernels=4e-4)
    tree = e.PassTimes(name=EVIL, seconds=1.0, self_seconds=0.5, children=(e.PassTimes(name=EVIL, seconds=0.5),))
    run = {"run": "r2"}
    return fold(
        e.Header(session=EVIL, host=EVIL, command=[EVIL], environment={EVIL: EVIL}),
        [
            *sessions.numpy_run("r1"),
            sessions.plan("r2", EVIL, "jit", "r1", workload=EVIL),
            *sessions.turns("r2", 1e-3, side=1),
            e.KernelsMeasured(kind="run", rows=rows, **run),
            e.StepsMeasured(
                found_by="annotation",
                steps=[e.StepTimes(name=EVIL, device="gpu:0", start_seconds=2e-3, seconds=1e-3, parts=parts)],
                **run,
            ),
            e.CompilePasses(tree=tree, **run),
            e.TextRecorded(name="timeline", text=timeline_text(EVIL), **run),
            e.TextRecorded(name="hlo", text=EVIL, **run),
            e.TextRecorded(name="jaxpr", text=EVIL, **run),
            e.WarningRaised(code="x", message=EVIL, advice=EVIL, **run),
            e.RunFinished(status="failed", error=EVIL, advice=EVIL, **run),
        ],
    )
