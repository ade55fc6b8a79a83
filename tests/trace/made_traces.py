"""Profiles for the tests, made by hand: one for each platform, small enough to add up on paper."""

from xplane_wire import Event, Line, Plane, nested, number, space_bytes, varint

from jaxprof.trace.lanes import lanes_of
from jaxprof.trace.xspace import parse_xspace

US = 1_000_000
"""Picoseconds."""


def read(*planes, **more):
    """The trace of these planes."""
    return lanes_of(parse_xspace(space_bytes(planes, **more), "made by hand"))


def op(name, start_us, us, *, kernel="", module="jit_f", program=7, **stats):
    """An event that names its HLO op."""
    named = {"hlo_op": name, "hlo_module": module, "program_id": program, **stats}
    return Event(kernel or name, round(start_us * US), round(us * US), named)


def host(name, start_us, us, **stats):
    """An event of a host thread, or of a kernel that names no op."""
    return Event(name, round(start_us * US), round(us * US), stats)


def hosts(text):
    """Events of a host thread, each with its begin and length: `Codegen 60 30, CSEPass 65 5`."""
    placed = (event.rsplit(" ", 2) for event in text.split(", "))
    return [host(name, float(start), float(us)) for name, start, us in placed]


def on_cpu(**threads):
    """A host with threads of these names."""
    return Plane("/host:CPU", [Line(name, events) for name, events in threads.items()])


def on_gpu(*events, number=0, lines=()):
    """A GPU with one stream, and these lines beside it."""
    return Plane(f"/device:GPU:{number}", [Line("Stream #1(Kernel)", events), *lines])


def cpu_plane():
    """Two threads; a loop holds its body; `dot` runs on both threads at once from 20 to 30 µs."""
    run = {"run_id": -5, "device_ordinal": 0}
    client = [op("while.1", 0, 50, **run), op("dot", 10, 20, **run), host("end: dot", 30, 1), op("add", 35, 5, **run)]
    return Plane(
        "/host:CPU",
        [
            Line("tf_XLAPjRtCpuClient/1", client),
            Line("tf_XLAEigen/2", [op("dot", 20, 20, **run), host("ThreadpoolListener::Record", 21, 0)]),
            Line("python", [host("train", 0, 60, step_num=3), host("PjitFunction(f)", 1, 4)]),
        ],
    )


def gpu_planes():
    """One stream with a copy, two kernels of `fusion`, a library kernel between them, and one that names nothing."""
    details = " regs:32 static_shared:0 dynamic_shared:1024 grid:16,2,1 block:128,1,1 occ_pct:50"
    copied = "kind_src:host kind_dst:device size:4000 dest:0 async:1"
    fused = {"kernel": "loop_fusion.kd", "kernel_details": details}
    stream = [
        host("MemcpyH2D", 0, 10, correlation_id=1, memcpy_details=copied),
        op("fusion", 10, 20, correlation_id=2, **fused),
        host("cutlass_gemm", 30, 5, correlation_id=3),
        op("fusion", 40, 30, correlation_id=4, **fused),
        host("ampere_sgemm", 80, 15, correlation_id=5),
        host("mystery", 100, 5, correlation_id=6),
    ]
    device = Plane(
        "/device:GPU:0",
        [
            Line("Stream #7(Kernel)", stream),
            Line("XLA Ops", [op("fusion", 10, 20), op("fusion", 40, 30)], id=2),
            Line("XLA Modules", [host("jit_f(7)", 10, 85)], id=3),
        ],
        stats={
            "device_vendor": "Nvidia",
            "core_count": 132,
            "memory_bandwidth": 3_350_000_000_000,
            "clock_rate": 1_980_000,
        },
    )
    launches = [
        op("fusion", 5, 2, kernel="cuLaunchKernel", correlation_id=2),
        op("fusion", 8, 1, kernel="cuLaunchKernel", correlation_id=3),
        op("dot.1", 70, 2, kernel="cuLaunchKernel", correlation_id=5),
    ]
    return device, Plane("/host:CPU", [Line("Host Threads/1", launches)])


def tpu_plane():
    """Two executions of one program, an asynchronous collective beside a fusion, a copy that is waited for."""
    program = -5
    facts = {"program_id": program, "flops": 10}
    ops = hosts(
        "%fusion.1 = f32[8] fusion(...) 0 40, %all-reduce-done = f32[8] all-reduce-done(...) 40 10, "
        "%copy-done = f32[8] copy-done(...) 50 20, %fusion.1 = f32[8] fusion(...) 100 40"
    )
    started = host("%all-reduce-start = f32[8] all-reduce-start(...)", 20, 30)
    module = f"jit_f({program & 0xFFFF_FFFF_FFFF_FFFF})"
    return Plane(
        "/device:TPU:0",
        [
            Line("XLA Ops", ops),
            Line("Async XLA Ops", [started], id=2),
            Line("XLA Modules", [host(module, 0, 80), host(module, 100, 40)], id=3),
        ],
        stats={"device_type_string": "TPU v6 Lite", "peak_teraflops_per_second": 918.0},
        metadata={event.name: facts for event in (*ops, started)},
        display={event.name: event.name[1:].split(" ")[0] for event in ops},
    )


def async_loop(*, steps=12, host_us=300, device_us=10_000, correlated=True, outside=0.0):
    """The loop of JAX's documentation on a GPU: each call returns after 300 us, and its two kernels take 10 ms.

    Within each annotation is another one, as of a microbatch. With `outside`, another program follows the last step.
    """
    kernels, launches, marks = [], [], []
    for step in range(steps):
        begin, at = step * host_us, 500 + step * device_us
        marks += [host("train", begin, host_us, step_num=step), host("micro", begin + 10, 200, step_num=step)]
        for half in (0, 1):
            id_ = {"correlation_id": 2 * step + half + 1} if correlated else {}
            launches.append(host("cuLaunchKernel", begin + 50 + 100 * half, 5, **id_))
            kernels.append(op(f"fusion.{half}", at + half * device_us / 2, device_us / 2, **id_))
    if outside:
        launches.append(host("cuLaunchKernel", steps * host_us + 50, 5, correlation_id=999))
        kernels.append(op("eval", 500 + steps * device_us, outside, correlation_id=999, module="jit_eval", program=8))
    return (
        Plane("/device:GPU:0", [Line("Stream #7(Kernel)", kernels)]),
        Plane("/host:CPU", [Line("python", marks, id=42), Line("Host Threads/42", launches, id=42)]),
    )


def module_plane(program, *instructions, called=None):
    """The metadata plane with an `HloProto` of these instructions (name, opcode), numbered from 1.

    `called`: the opcodes in the computation that an instruction calls.
    """
    computations, entry = [], b""
    for index, (name, opcode) in enumerate(instructions, start=1):
        content = nested(1, name) + nested(2, opcode) + number(35, index)
        if inner := (called or {}).get(name):
            key = 100 + index
            body = b"".join(
                nested(2, nested(1, f"inner.{at}") + nested(2, each) + number(35, key * 100 + at))
                for at, each in enumerate(inner)
            )
            computations.append(nested(3, nested(1, f"computation.{key}") + body + number(5, key)))
            content += nested(38, varint(key))
        if opcode == "async-done":
            content += nested(36, varint(index - 1))
        entry += nested(2, content)
    computations.append(nested(3, nested(1, "main") + entry + number(5, 1)))
    proto = nested(1, nested(1, "jit_f") + nested(2, "main") + b"".join(computations))
    return Plane("/host:metadata", metadata={f"jit_f({program})": {"Hlo Proto": proto, "program_id": program}})
