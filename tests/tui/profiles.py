"""Sessions with captures, made of events: a step with matmuls and copies on a GPU, seen from the host as well."""

import json

from jaxprof import events as e
from tui import session_tapes as sessions
from tui.session_tapes import HLO, Tape

MS = 1_000_000


def lane(device, name, kind, intervals, left_out=0):
    """A lane of the timeline's text: intervals of name, op, start and duration in nanoseconds, in their order."""
    labels = list(dict.fromkeys((name, op) for name, op, _, _ in intervals))
    starts = [start for _, _, start, _ in intervals]
    return {
        "device": device,
        "name": name,
        "kind": kind,
        "labels": labels,
        "label": [labels.index((name, op)) for name, op, _, _ in intervals],
        "start": [start - before for start, before in zip(starts, [0, *starts], strict=False)],
        "duration": [duration for _, _, _, duration in intervals],
        "left_out": left_out,
    }


def text(lanes, ops, left_out=0):
    return json.dumps(
        {"version": 1, "unit": "ns", "started_unix_ns": None, "left_out": left_out, "ops": ops, "lanes": lanes}
    )


def timeline(steps=10, name="loop_fusion"):
    """Some steps of 2 ms: 0.9 ms of a matmul, 0.5 ms of `name`, 0.2 ms of a copy, gaps between."""
    host, stream, copies = [], [], []
    for step in range(steps):
        begin = step * 2 * MS
        host += [("call", None, begin, 2 * MS - 5_000), ("PjitFunction(selu)", None, begin + 10_000, 300_000),
                 ("ExecuteHelper", None, begin + 60_000, 150_000)]  # fmt: skip
        stream += [("gemm_kernel", 0, begin + 200_000, 900_000), (name, 1, begin + 1_150_000, 500_000)]
        copies.append(("MemcpyD2H", None, begin + 1_700_000, 200_000))
    pool = [
        lane("host", f"pool/{number}", "host", [("wait for completion", None, number * MS, 3 * MS)])
        for number in (1, 2)
    ]
    return text(
        [
            lane("gpu:0", "Stream #1(Compute)", "stream", stream),
            lane("gpu:0", "Stream #2(MemcpyD2H)", "stream", copies),
            lane("host", "python", "host", host),
            *pool,
        ],
        [("jit_selu", "4", "dot.1"), ("jit_selu", "4", name)],
    )


def steps(count=10):
    return [
        e.StepTimes(
            name=f"call {number}",
            device="gpu:0",
            start_seconds=number * 2e-3,
            seconds=2e-3,
            parts=e.StepParts(kernels=1.4e-3, transfers=0.2e-3, launch_gaps=0.1e-3, idle=0.3e-3),
        )
        for number in range(count)
    ]


def passes(name="CpuCompiler::RunBackend"):
    """A compile of 50 ms, of which 30 ms are LLVM's."""

    def node(name, stage, seconds, own, *children):
        return e.PassTimes(name=name, stage=stage, seconds=seconds, self_seconds=own, children=children)

    return node(
        "compile", "compile", 0.05, 0.0,
        node(name, "compile", 0.05, 0.004,
             node("HLO passes", "HLO passes", 0.010, 0.002, node("fusion", "fusion", 0.008, 0.008)),
             node("Codegen", "codegen", 0.036, 0.006, node("JitCompiler::Compile", "LLVM", 0.03, 0.03))),
    )  # fmt: skip


TRUST = [
    e.TrustCheck(code="file", verdict="good", message="the whole file was read: 60 events"),
    e.TrustCheck(
        code="unmatched",
        verdict="doubt",
        message="kernels with 12 % of the device's time name no HLO op",
        advice="Library kernels are launched without a name; run with --no-command-buffers to have them.",
    ),
    e.TrustCheck(code="steps", verdict="good", message="10 steps were found by their annotations"),
]


def captured(name="loop_fusion", count=10):
    """A NumPy baseline and a compiled run with everything that can be recorded of it."""
    tape = Tape()
    tape.plan("r1", "numpy", "numpy")
    tape.plan("r2", "jit", baseline="r1", device="cuda:0")
    tape.numpy_run("r1")
    tape.start("r2")
    tape.startup("r2")
    tape.stages("r2")
    tape.steady("r2", 2e-3)
    record(tape, "r2", name, count)
    tape.check("r2")
    tape.finish("r2")
    tape.close()
    return tape


def record(tape, run, name="loop_fusion", count=10):
    tape.add(e.CaptureTaken, run, kind="run", platform="gpu", calls=count, seconds_with=2.2e-3, wall_seconds=0.02,
             events=60, bytes=20_000)  # fmt: skip
    tape.add(e.TextRecorded, run, name="timeline", text=timeline(count, name))
    tape.add(e.KernelsMeasured, run, kind="run", calls=count, rows=[])
    tape.add(e.StepsMeasured, run, found_by="annotation", steps=steps(count))
    tape.add(e.TrustReported, run, kind="run", rows=TRUST)
    tape.add(e.CaptureTaken, run, kind="compile", calls=1, events=40)
    tape.add(e.CompilePasses, run, tree=passes(f"{name}::RunBackend"))
    tape.add(
        e.BuffersReported, run, source="buffer assignment", peak_bytes=12_000_000,
        parts={"argument": 4_000_000, "output": 4_000_000, "temporary": 4_000_000},
        buffers=[
            e.HeldBuffer(bytes=4_000_000, kind="argument", instruction="x", shape="f32[1000000]{0}", op_name="x"),
            e.HeldBuffer(bytes=4_000_000, kind="temporary", instruction=name, shape="f32[1000000]{0}",
                         op_name=f"jit(selu)/{name}", file="/home/me/selu.py", line=12, shared_with=2),
        ],
        live_bytes=[4_000_000, 8_000_000, 12_000_000, 12_000_000, 8_000_000],
    )  # fmt: skip


def imported(hostile=""):
    """A profile that was opened: the whole, and one program of it with its HLO."""
    tape = Tape()
    tape.plan("r1", "profile", "imported", workload="2026_11_20", device="gpu:0", parameters={})
    tape.plan("r2", "profile", "imported", workload="jit_selu", device="gpu:0", parameters={"program": "4"})
    tape.add(e.CaptureTaken, "r1", kind="imported", platform="gpu", events=60, wall_seconds=0.02, bytes=20_000)
    tape.add(e.TextRecorded, "r1", name="timeline", text=timeline())
    device = e.StepsDevice(
        device="gpu:0", found_by="modules", steps=10, span_seconds=0.02, busy_seconds=0.016, idle_seconds=0.004
    )
    tape.add(e.StepsMeasured, "r1", found_by="modules", steps=steps(), devices=[device])
    tape.add(e.TrustReported, "r1", kind="imported", rows=TRUST)
    scheduled = HLO.replace("HloModule jit_selu,", "HloModule jit_selu, is_scheduled=true,", 1)
    tape.add(e.TextRecorded, "r2", name="hlo", text=scheduled)
    tape.add(e.CaptureTaken, "r2", kind="imported", platform="gpu", calls=10)
    rows = [
        e.KernelTimes(
            module="jit_selu",
            program="4",
            name=name,
            device="gpu:0",
            count=10,
            total_seconds=seconds,
            self_seconds=seconds,
            wall_seconds=seconds,
            median_seconds=seconds / 10,
            minimum_seconds=seconds / 10,
            maximum_seconds=seconds / 10,
            kernels=(name,),
        )
        for name, seconds in (("dot.1", 9e-3), (hostile or "loop_fusion", 5e-3))
    ]
    tape.add(e.KernelsMeasured, "r2", kind="imported", calls=10, rows=rows)
    tape.finish("r1")
    tape.finish("r2")
    return tape


HOSTILE = sessions.HOSTILE
