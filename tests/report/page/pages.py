"""Sessions for pages: on a device with ceilings, and with names that would be markup."""

from analysis import made_runs
from folding import fold
from jaxprof import events as e
from report import sessions

EVIL = "<script>alert('x')</script></script><img src=x onerror=alert(1)>\"'&amp;"


def with_ceilings():
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
            *(e.TextRecorded(name=name, text=EVIL, **run) for name in ("hlo", "jaxpr")),
            e.WarningRaised(code="x", message=EVIL, advice=EVIL, **run),
            e.RunFinished(status="failed", error=EVIL, advice=EVIL, **run),
        ],
    )
