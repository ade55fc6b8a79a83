"""Sessions made of events with fixed figures: the same report every time, everywhere."""

from dataclasses import replace

from folding import fold
from jaxprof import events as e

HLO = """HloModule jit_selu, is_scheduled=true, entry_computation_layout={(f32[1000000]{0})->f32[1000000]{0}}

%fused_computation (p: f32[1000000]) -> f32[1000000] {
  %p = f32[1000000]{0} parameter(0)
  %e = f32[1000000]{0} exponential(%p)
  ROOT %m = f32[1000000]{0} multiply(%e, %p)
}

ENTRY %main (x: f32[1000000]) -> f32[1000000] {
  %x = f32[1000000]{0} parameter(0)
  ROOT %fusion = f32[1000000]{0} fusion(%x), kind=kLoop, calls=%fused_computation, \
metadata={op_name="jit(selu)/mul" source_file="/home/me/selu.py" source_line=28}
}
"""

TRANSPOSES = """HloModule jit_turn, is_scheduled=true, \
entry_computation_layout={(f32[1024,1024]{1,0})->f32[1024,1024]{1,0}}

%turned (p: f32[1024,1024]) -> f32[1024,1024] {
  %p = f32[1024,1024]{1,0} parameter(0)
  ROOT %t = f32[1024,1024]{1,0} transpose(%p), dimensions={1,0}
}

%doubled (q: f32[1024,1024]) -> f32[1024,1024] {
  %q = f32[1024,1024]{1,0} parameter(0)
  ROOT %s = f32[1024,1024]{1,0} add(%q, %q)
}

ENTRY %main (x: f32[1024,1024]) -> f32[1024,1024] {
  %x = f32[1024,1024]{1,0} parameter(0)
  %fusion.1 = f32[1024,1024]{1,0} fusion(%x), kind=kLoop, calls=%turned, \
metadata={op_name="jit(turn)/transpose" source_file="/home/me/turn.py" source_line=7}
  ROOT %fusion.2 = f32[1024,1024]{1,0} fusion(%fusion.1), kind=kLoop, calls=%doubled
}
"""
"""A kernel that only rewrites an array in another order."""

HEADER = e.Header(
    jaxprof="0.1.0",
    session="0123456789ab",
    created="2026-11-21T04:05:06Z",
    host="box",
    command=["jaxprof", "run", "selu"],
    environment={"cpu_model": "A CPU"},
    wall_seconds=1000.0,
    monotonic_seconds=10.0,
)


def around(median, count=21):
    """Samples of which `median` is the median, spread evenly over ± 2 %."""
    half = count // 2
    return [median * (1 + 0.02 * (index - half) / half) for index in range(count)]


def turns(run, median, side, launch=1, calls=1):
    """The blocks of one of three launches of a run; those of side 1 lie between those of side 0, the baseline."""
    third = around(median * (1 + 0.002 * side * (launch - 2)))[launch - 1 :: 3]
    if side:
        third = third[3:] + third[:3]
    return [
        e.SamplesTaken(
            run=run, series="run", seconds=[seconds], calls_per_sample=calls, block=100 * launch + 2 * index + side
        )
        for index, seconds in enumerate(third)
    ]


def later_launches(run, median, side, calls=1):
    """The second and the third launch: their processes and their blocks."""
    return [
        event
        for launch in (2, 3)
        for event in (
            e.WorkerStarted(run=run, pid=100 * launch, python="/usr/bin/python3", launch=launch),
            *turns(run, median, side, launch, calls),
        )
    ]


def environment(run, jax="0.10.2"):
    devices = [{"id": "cpu:0", "platform": "cpu", "kind": "cpu", "process": 0}] if jax else []
    return e.EnvironmentRead(
        run=run, python="3.11.7", numpy="2.3.0", jax=jax, jaxlib=jax, devices=devices, settings={"x64": False}
    )


def plan(run, variant, how, baseline="", workload="selu", n=1_000_000):
    spec = e.RunSpec(workload=workload, variant=variant, how=how, device="cpu:0", baseline=baseline, launches=3)
    return e.RunPlanned(run=run, spec=replace(spec, parameters={"n": n}, preset="quick", budget_seconds=2.0))


def closed(run, variant, at):
    kept = {"workload": "selu", "variant": variant, "device": "cpu:0"}
    return e.RunClosed(run=run, status="ok", monotonic_seconds=at, **kept)


def numpy_run(run, median=4.37e-3, n=1_000_000):
    return [
        plan(run, "numpy", "numpy", n=n),
        e.WorkerStarted(run=run, pid=100, python="/usr/bin/python3", monotonic_seconds=11.0),
        environment(run, jax=None),
        e.PhaseEnded(run=run, phase="import", seconds=0.1),
        e.PhaseEnded(run=run, phase="first_run", seconds=6e-3),
        *turns(run, median, side=0),
        e.PhaseEnded(run=run, phase="run", seconds=2.0),
        *later_launches(run, median, side=0),
        e.RunFinished(run=run, status="ok", monotonic_seconds=14.0),
        closed(run, "numpy", 14.0),
    ]


def jit_run(run, baseline, median=0.63e-3, n=1_000_000):
    checked = {"tolerance": 1e-5, "against": "numpy twin", "worst_at": "[437171]"}
    checked |= {"worst_got": "-0.00022367835", "worst_expected": "-0.00022392868"}
    once = {"import": 0.5, "backend_init": 0.04, "warm_up": 0.09, "trace": 7e-3, "lower": 8e-3, "compile": 38e-3}
    return [
        plan(run, "jit", "jit", baseline, n=n),
        e.WorkerStarted(run=run, pid=101, python="/usr/bin/python3", monotonic_seconds=15.0),
        environment(run),
        *(e.PhaseEnded(run=run, phase=name, seconds=seconds) for name, seconds in once.items()),
        e.SamplesTaken(run=run, series="transfer_in", seconds=around(0.4e-3, 9)),
        e.PhaseEnded(run=run, phase="transfer_in", seconds=0.01, bytes=4 * n, zero_copy=False),
        e.PhaseEnded(run=run, phase="first_run", seconds=0.9e-3),
        *turns(run, median, side=1, calls=4),
        e.PhaseEnded(run=run, phase="run", seconds=2.0),
        e.SamplesTaken(run=run, series="dispatch", seconds=around(20e-6)),
        e.SamplesTaken(run=run, series="pipelined", seconds=around(0.6e-3)),
        e.SamplesTaken(run=run, series="transfer_out", seconds=around(1e-6, 9)),
        e.PhaseEnded(run=run, phase="transfer_out", seconds=0.01, bytes=4 * n, zero_copy=True),
        e.TextRecorded(run=run, name="jaxpr", text="{ lambda ; a:f32[1000000]. let b:f32[1000000] = exp a in (b,) }"),
        e.TextRecorded(run=run, name="hlo", text=HLO),
        e.MemoryReported(run=run, argument_bytes=4 * n, output_bytes=4 * n, temporary_bytes=0, peak_bytes=8 * n),
        e.CheckReported(run=run, passed=True, max_relative_error=1.2e-7, elements=n, wrong_elements=0, **checked),
        e.WarningRaised(
            run=run,
            code="zero_copy",
            message="transfer out moved nothing: host and device share the buffer",
            advice="On an accelerator it will cost time; measure it there.",
        ),
        *later_launches(run, median, side=1, calls=4),
        e.RunFinished(run=run, status="ok", monotonic_seconds=19.0),
        closed(run, "jit", 19.0),
    ]


def failed_run(run, baseline):
    error, advice = "RESOURCE_EXHAUSTED: out of memory allocating 4 TB", "Choose a smaller size."
    return [
        plan(run, "jax", "eager", baseline),
        e.WorkerStarted(run=run, pid=102, python="/usr/bin/python3", monotonic_seconds=20.0),
        environment(run),
        e.PhaseEnded(run=run, phase="import", seconds=None),
        e.RunFinished(run=run, status="failed", error=error, advice=advice, monotonic_seconds=21.0),
        replace(closed(run, "jax", 21.0), status="failed", error=error, advice=advice),
    ]


def events():
    """NumPy, a compiled twin, a failed variant; ended in good order."""
    return [*numpy_run("r1"), *jit_run("r2", "r1"), *failed_run("r3", "r1"), e.SessionClosed()]


def captures(run):
    """What two captures of the run of `HLO` tell: kernels on two devices, steps, passes, buffers, checks."""
    times = {"wall_seconds": 2e-3, "median_seconds": 1e-4, "minimum_seconds": 9e-5, "maximum_seconds": 3e-4}
    launch = e.KernelLaunch(grid=(8, 1, 1), block=(128, 1, 1), registers=32, occupancy=0.5)
    step = {"collectives_exposed": 1e-4, "launch_gaps": 5e-5, "idle": 5e-5}
    return [
        e.CaptureTaken(run=run, kind="run", platform="gpu", calls=10, seconds_with=7e-4, wall_seconds=8e-3, events=50),
        e.KernelsMeasured(run=run, kind="run", calls=10, unattributed_seconds={"gpu:0": 1e-4}, rows=[
            e.KernelTimes(name="fusion", device=f"gpu:{number}", module="jit_selu", count=10, total_seconds=2e-3,
                          self_seconds=2e-3, kernels=("void fused<1, 2>",), launch=launch, **times)
            for number in (0, 1)
        ] + [e.KernelTimes(name="copy", device="gpu:0", module="jit_selu", count=10, total_seconds=1e-3,
                           self_seconds=1e-3, **times),
             e.KernelTimes(name="tiny", device="gpu:0", module="jit_selu", count=1, total_seconds=1e-8,
                           self_seconds=1e-8)],
            transfers=[e.CopyTimes(direction="host to device", device="gpu:0", count=2, total_seconds=1e-3, bytes=9),
                       e.CopyTimes(direction="fill", device="gpu:0", count=1, total_seconds=1e-6)],
        ),
        e.StepsMeasured(run=run, found_by="annotation", steps=[
            e.StepTimes(name=f"call {number}", device="gpu:0", start_seconds=1e-3 * number, seconds=7e-4,
                        complete=number < 5, collectives_overlapped_seconds=1e-5,
                        parts=e.StepParts(kernels=4e-4, transfers=1e-4, **step))
            for number in range(6)
        ], devices=[e.StepsDevice(device="gpu:0", found_by="annotation", steps=6, span_seconds=8e-3, busy_seconds=6e-3,
                                  idle_seconds=2e-3)]),
        e.CompilePasses(run=run, tree=e.PassTimes(name="compile", stage="compile", seconds=0.04, children=(
            e.PassTimes(name="fusion", stage="optimize", seconds=0.03, self_seconds=0.03, count=2),
            e.PassTimes(name="LLVM", stage="code", seconds=0.01, self_seconds=0.01),
            e.PassTimes(name="too short to show", seconds=1e-5),
        ))),
        e.BuffersReported(run=run, source="buffer assignment", peak_bytes=8_000_000,
                          parts={"output": 4_000_000, "argument": 4_000_000}, buffers=[
            e.HeldBuffer(bytes=4_000_000, kind="output", instruction="fusion", shape="f32[1000000]{0}",
                         op_name="jit(selu)/mul", file="/home/me/selu.py", line=28, shared_with=1),
            e.HeldBuffer(bytes=4_000_000, kind="argument", instruction="x", shape="f32[1000000]{0}"),
        ]),
        e.TrustReported(run=run, kind="run", rows=[
            e.TrustCheck(code="file", verdict="good", message="the whole file was read"),
            e.TrustCheck(code="dropped", verdict="doubt", message="events were dropped", advice="Capture fewer calls."),
        ]),
    ]  # fmt: skip


def kernel_times(name, seconds, count=1, **more):
    whole = dict.fromkeys(("total_seconds", "self_seconds", "wall_seconds"), seconds)
    each = dict.fromkeys(("median_seconds", "minimum_seconds", "maximum_seconds"), seconds / count)
    return e.KernelTimes(name=name, count=count, **{**whole, **each, **more})


def kernels(run="r2", /, **seconds):
    rows = [
        kernel_times(name.replace("_", "."), took, 10, device="gpu:0", module="jit_turn")
        for name, took in seconds.items()
    ]
    return e.KernelsMeasured(run=run, kind="run", calls=10, rows=rows)


def captured_events():
    run = jit_run("r2", "r1")
    return [*numpy_run("r1"), *run[:-2], *captures("r2"), *run[-2:], e.SessionClosed()]


def captured():
    return fold(HEADER, captured_events())


def whole():
    return fold(HEADER, events())


def torn_events():
    """Cut off in the middle of the compile of its second run; a third one waited."""
    return [
        *numpy_run("r1"),
        plan("r2", "jit", "jit", "r1"),
        plan("r3", "jax", "eager", "r1"),
        e.WorkerStarted(run="r2", pid=101, python="/usr/bin/python3", monotonic_seconds=15.0),
        e.PhaseEnded(run="r2", phase="trace", seconds=7e-3),
        e.PhaseStarted(run="r2", phase="compile", monotonic_seconds=16.0),
    ]


def torn():
    return fold(HEADER, torn_events())


def swept_events():
    """Sizes from 1e3 to 1e6; jit overtakes NumPy between 1e4 and 1e5."""
    made = []
    sizes = {1_000: (2e-6, 8e-6), 10_000: (6e-6, 9e-6), 100_000: (60e-6, 20e-6), 1_000_000: (4e-3, 0.6e-3)}
    for at, (n, (theirs, ours)) in enumerate(sizes.items()):
        made += numpy_run(f"r{2 * at + 1}", theirs, n)
        made += jit_run(f"r{2 * at + 2}", f"r{2 * at + 1}", ours, n)
    return [*made, e.SessionClosed()]


def swept():
    return fold(HEADER, swept_events())
