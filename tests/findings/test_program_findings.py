"""Each finding with the events that give it, and with near ones that do not."""

from dataclasses import asdict, replace

import pytest

import program_events as made
from folding import changed, fold
from golden import finding_text, held_cases
from jaxprof import events as e
from jaxprof.events.finding import Finding
from jaxprof.findings import rank
from jaxprof.findings.derive import largest_gap
from jaxprof.findings.program_result import program_result
from jaxprof.findings.programs.claims import Claims
from jaxprof.report.program_words import condition
from program_events import inline, loop

WORKS = {"compile": 0.5, "device_busy": 0.5}
"""What a second of a program goes to that says nothing of it."""


def found(*inside):
    """The findings of a program, which worked for ten seconds where that is not said: a share is of that."""
    has = any(isinstance(event, e.ProgramSampled) for event in inside)
    return list(made.result(*(inside if has else [*made.steady(10, WORKS), *inside])).findings)


def codes(*inside):
    return [one.code for one in found(*inside)]


def every_code(*inside):
    """The codes of the findings and of the remarks."""
    return [*codes(*inside), *(one.code for one in made.result(*inside).remarks)]


def only(code, *inside):
    """The one finding or remark of that code."""
    every = [*found(*inside), *made.result(*inside).remarks]
    (one,) = [one for one in every if one.code == code]
    return one


def again(reason_code, count, **more):
    """A function that is compiled for the first time, and `count` times more."""
    return [made.compiled(**more), *(made.compiled(reason_code=reason_code, **more) for _ in range(count))]


def statics(count):
    return [
        made.compiled(
            reason_code="static_argument" if value else "first",
            signature=[made.leaf("n", str(value), static=True)],
            reasons=[made.reason("static_argument", "n", str(value - 1), str(value))] if value else [],
        )
        for value in range(count)
    ]


def differing(code, programs, **more):
    """A function that is made anew for each of these programs, which are told by their operations."""
    return [made.compiled(reason_code=code if at else "first", operations=40 + each, **more)
            for at, each in enumerate(programs)]  # fmt: skip


def large(operations, seconds, **more):
    """A program of so many operations, and how long its compilation took."""
    return [made.compiled(operations=operations, compile_seconds=seconds, **more)]


def tiny(count, **more):
    """Programs of a few operations, each another function."""
    usual = {"operations": 4, **more}
    return [made.compiled(f"f{index}", defined_at=made.at(index, ""), **usual) for index in range(count)]


def eager(line=40, function="advance", times=1):
    single = {"op_by_op": True, "operations": 1, "library": True, "defined_at": e.NOWHERE}
    return [
        made.compiled(name, called_from=made.at(line, function), **single) for name in ("add", "mul", "sin") * times
    ]


STEP = made.line(88, 0.4, "device_busy", "step")
BUSY = made.line(40, 0.5, "host_busy", "jnp.sin()", "advance", kind="dispatch", under=89)
SYNC = made.line(91, 0.4, "device_busy", "float()", kind="sync")
FETCH = made.line(92, 0.4, "transfer", "jax.device_get()", kind="transfer", bytes=8 << 20)
FED = made.line(88, 0.4, "transfer", "step", kind="fed")
CALL = made.line(88, 0.8, "host_busy", "step", kind="call")
THROUGH = {**CALL, "through": "flax.nnx"}
WRAPPED = made.line(88, 0.01, "device_busy", "step", kind="inline", through="flax.nnx")
KEYS = made.line(88, 0.1, "host_busy", "rngs.params()", kind="dispatch", through="flax.nnx")
KEYS_COMPILED = made.line(88, 0.1, "compile", "rngs.params()", kind="compile", through="flax.nnx")
AROUND_KEYS = made.line(88, 0.3, "host_busy", "rngs.params()", kind="call", through="flax.nnx")
WORKERS = made.line(85, 0.4, "waiting", "pool.imap()")
STARTED = made.sampled(0, 4.0, {"waiting": 4.0}, [{**WORKERS, "seconds": 4.0}])
SORT = made.line(30, 0.4, "data", "np.sort()", under=86)
CALLBACK = made.line(88, 0.4, "host_busy", "step", kind="callback")
PLACED = made.line(88, 0.4, "transfer", "jax.device_put()")
COPIES = [
    made.line(89, 0.5, "device_busy", "jax.tree.map()", kind="compiled"),
    made.line(89, 0.1, "host_busy", "jax.tree.map()", kind="dispatch"),
]
PREDICT = {"line": 40, "function": "predict"}
LAYERS = [{**each, **PREDICT, "at": [{**each["at"][0], **PREDICT, "loop_line": 39}, *each["at"]]} for each in COPIES]
"""Operations in a loop of a function that line 89 calls."""
PUT = made.line(87, 0.4, "transfer", "jnp.asarray()", kind="transfer", put_bytes=16 << 20)
BATCH = made.line(87, 0.4, "transfer", "jax.device_put()")
STEPPED = made.line(88, 0.2, "device_busy", "step", kind="compiled")
COPIED = made.line(91, 0.4, "transfer", "x > 3", kind="transfer")
SINGLE = made.line(89, 0.5, "host_busy", "x + batch", kind="dispatch")
AROUND = made.line(89, 0.4, "host_busy", kind="call")
CALLED = made.line(89, 0.1, "device_busy", "step", kind="inline")
BESIDE = made.line(41, 0.1, "data", "np.load()", "advance", under=89)
AFTER = made.line(101, 1.0, "device_busy", "float()", kind="sync", loop=None)
COSINE = made.line(60, 0.3, "host_busy", "jnp.cos()", "measure", kind="dispatch", under=91)
EXPRESSION = {"a * b + c": 0.3, "a * b": 0.1, "plt.draw()": 0.05}
PLOT = made.line(95, 0.4, "host_busy", "plt.draw()")
SLEEP = made.line(95, 0.88, "waiting", "time.sleep()")
HALVES = {"host_busy": 0.5, "device_busy": 0.5}
LONG_PASSES = made.steps(100, 0.1, lines={91: 0.88, 92: 0.1, 88: 0.02})
PASSES = made.steps(1000, 0.01, lines={88: 0.6, 91: 0.4})
BIG = [e.ProgramArray(type="f32[2048,1024]", bytes=8 << 20)]
SEEN_COPIES = made.copies("device_to_host", 40, seconds=4.0, **asdict(made.at(91)))
GROWING = made.shaped(30, "append", op_by_op=True, operations=2, compile_seconds=0.04)
"""Operations beside a function: `tokens = jnp.append(tokens, next_token(tokens))`."""
ELSEWHERE = changed(GROWING, e.Compiled, called_from=made.at(12, "prepare"), reason_code="static_argument")
FACTORY = {"made_at": made.at(86), "factory": "make_step", "closure": [e.ClosureChange(name="rate")]}
OBJECT = made.reason("static_argument", "self", "Model", "Model")


def single(name="copy", size="f32[4096,1024]", **more):
    """An operation outside any jit, in line 89 of the loop."""
    return made.compiled(name, line=89, op_by_op=True, library=True, signature=[made.leaf("x", size)], **more)


def split(operations):
    """An array that is split into its rows: two operations for each."""
    return [single("unstack", operations=operations, compile_seconds=2.0)]


def uneven(usual, long):
    """A hundred iterations, three of ten of which are long, as on a busy machine; line 91 takes four fifths of them."""
    intervals = [long if index % 10 < 3 else usual for index in range(100)]
    return replace(made.steps(100, sum(intervals) / 100, lines={88: 0.2, 91: 0.8}), intervals_seconds=intervals)


def timed(count, each, **lines):
    """Iterations of the loop, and the share of each that its lines take (`at88`)."""
    return made.steps(count, each, lines={int(name[2:]): share for name, share in lines.items()})


def site(line, **more):
    """The line, of whose place in the loop this is known besides."""
    return {**line, "at": [{**line["at"][0], **more}]}


def inside(line):
    """The line, in a loop that begins at line 86, inside the other one."""
    return {**line, "at": [{**line["at"][0], "loop_line": 86, "last_line": 88}, *line["at"]]}


def brief(seconds):
    """A program that waits for a value in three fifths of its time."""
    lines = [{**SYNC, "seconds": 0.6 * seconds}, {**STEP, "seconds": 0.4 * seconds}]
    return [made.sampled(0, seconds, {"device_busy": seconds}, lines)]


def checked(setting, count):
    """`count` seconds of work with a setting of JAX on."""
    return changed(made.steady(count, {"device_busy": 1.0}), e.ProgramSampled, debug_settings=[setting])


def profiled(count):
    """Ten seconds of work, in `count` of which the program has the profiler on."""
    work = made.steady(10, {"device_busy": 1.0})
    on = changed(work[:count], e.ProgramSampled, profiled_seconds=1.0, profiled_from=made.at(12))
    return [*on, *work[count:]]


def missed(new_cache, **more):
    """Three programs of ten seconds' work that the cache did not have."""
    work = changed(made.steady(10, WORKS), e.ProgramSampled, new_cache=new_cache)
    at = {"jax_compilation_cache_dir": made.at(4)}
    rows = [made.compiled(name, cache="miss", compile_seconds=0.5, **more) for name in ("init", "step", "report")]
    return [*changed(work, e.ProgramSampled, debug_settings_at=at), *rows]


def after_import(*inside):
    return [made.sampled(0, 3.0, {"import": 3.0}), *inside]


def ended(exit_code, error="ValueError: no loss", **more):
    """The end of a program whose line 91 raised something last."""
    fields = {"wall_seconds": 10.0, "error": error, "error_at": made.at(91)} | more
    return e.ProgramEnded(run=made.RUN, exit_code=exit_code, **fields)


def gpu_filled():
    """A program that wants more of a GPU: readings, the last of which comes after the error."""
    gib = 1 << 30
    moments = [("cpu:0", 1, 79), ("cuda:0", 1, 10), ("cuda:0", 2, 64), ("cuda:0", 9, 1)]
    readings = [
        e.DeviceReading(
            run=made.RUN,
            device=device,
            monotonic_seconds=made.BEGAN + at,
            memory_used_bytes=used * gib,
            memory_limit_bytes=80 * gib,
        )
        for device, at, used in moments
    ]
    error = (
        "JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 30.02GiB with allocator GPU_0_bfc"
    )
    seen = e.EnvironmentRead(
        run=made.RUN, python="3.12.3", numpy="2.5.2", devices=[{"id": "cuda:0", "memory_limit_bytes": 60 * gib}]
    )
    return [seen, *readings, ended(1, error, error_seconds=made.BEGAN + 3)]


def stopped(seconds):
    return e.ProgramStopped(run=made.RUN, began_seconds=102.0, seconds=seconds, found_by="state")


def donated(size):
    return made.compiled(unused_donations=[e.ProgramArray(name="w", type=f"f32[{size}]", bytes=4 * size)])


def traced(seconds, **more):
    """Ten seconds, a part of which went to tracing."""
    share = seconds / 10
    line = made.line(33, 0.8 * share, "trace", "attend()", **more)
    return [made.compiled(trace_seconds=seconds), *made.steady(10, {"trace": share, "device_busy": 1 - share}, [line])]


def held_by(cpu_seconds, **more):
    """Ten seconds of a loop that waits for the lock for three of them, and what another thread ran in each."""
    line = made.line(91, 0.3, "waiting", "", **{"kind": "contended", **more})
    thread = e.ThreadTime(name="metrics", at=made.at(30), cpu_seconds=cpu_seconds * 0.3, samples=20)
    return [replace(each, threads=[thread]) if isinstance(each, e.ProgramSampled) else each for each in loop(line)]


def below(kind, seconds, number=33, name="", jax_seconds=0.0):
    """Ten seconds, in a part of which a statement of line `number` was on the stack."""
    times = {"seconds": seconds, "jax_seconds": jax_seconds}
    statement = e.StatementTime(kind=kind, where=made.at(number, "attend"), name=name, **times)
    return replace(made.sampled(0, 10.0, {"host_busy": 5.0, "device_busy": 5.0}), statements=[statement])


def unrolled(*loops):
    """A large program, traced for two seconds, and by line how much of that was in a loop of which function."""
    seen = [below("unrolled", took, number, name) for number, name, took in loops]
    return [*large(2_500, 4.0, trace_seconds=2.0), *(replace(each, samples=100) for each in seen)]


def leaves(count, operations):
    return made.compiled(signature=[made.leaf("x", "f32[3]")], signature_more=count - 1, operations=operations)


def sized(sizes):
    signatures = [[made.leaf("x", f"f32[{size}]")] for size in sizes]
    return [made.compiled(reason_code="shape" if at else "first", signature=each) for at, each in enumerate(signatures)]


def arrays(*counts, size=1 << 20):
    """How many arrays lived, once a second."""
    return made.arrays(list(counts), size)


def seldom_counted(*later, rests=0.0):
    """Beside other work a count is followed by a long pause. Nothing grows for `rests` seconds from 1.7 s on."""
    moments = [1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, *later]
    grown = [3000 * (at if at <= 1.7 else at - rests) for at in moments]
    return [
        e.ArraysCounted(run=made.RUN, monotonic_seconds=made.BEGAN + at, count=round(count), bytes=round(1e3 * count))
        for at, count in zip(moments, grown, strict=True)
    ]


def held_memory(size, programs=1, kept=0, reason="shape"):
    """The memory of a process of 100 MiB, which grows by `size` a second, as do the programs and the bytes of arrays
    that it holds. `reason`: why they were compiled."""
    counts = [
        replace(each, host_bytes=(100 << 20) + at * size, programs=at * programs, bytes=at * kept)
        for at, each in enumerate(made.arrays([10] * 20))
    ]
    rows = [made.compiled(reason_code=reason, monotonic_seconds=made.BEGAN + at) for at in range(5, 20)]
    return [*counts, *rows]


def compiling(share):
    return [made.compiled(), *made.steady(10, {"compile": share, "device_busy": 1 - share})]


XLA = "I1129 13:59:31.154999   21841 hlo_pass_pipeline.cc:211]   "
MODULE = "Running HLO pass pipeline on module jit_step: simplification"


def unfinished(seconds, *log, then="compile", **more):
    """A compile that began two seconds after the start, what XLA wrote in it, and the state of the time after it."""
    running = {"stage": "compile", "began_seconds": made.BEGAN + 2, "called_from": made.at(88)}
    lines = [
        e.LogLine(run=made.RUN, stream="stderr", text=text, monotonic_seconds=made.BEGAN + 3 + at)
        for at, text in enumerate(log)
    ]
    stage = e.StageRunning(run=made.RUN, function="step", **{"defined_at": made.at(20, ""), **running, **more})
    after = [*made.steady(seconds + 1, {"compile": 1.0}), made.sampled(seconds + 1, 1.0, {then: 1.0})]
    return [stage, *lines, *after, replace(ended(137, ""), wall_seconds=seconds + 2.0)]


def from_lines(**shares):
    """The lines of a program that made these shares of its operations: `made_by` of its event."""
    return [
        e.LineOperations(file=f"{made.FOLDER}/model.py", line=int(line[1:]), name="sin", share=share)
        for line, share in shares.items()
    ]


PAIRS = {
    "unfinished_compile": (unfinished(25), unfinished(15)),
    "program_failed": ([ended(1)], [ended(0)]),
    "standstill": ([made.stands(30.0), ended(130, wall_seconds=50.0)], [made.stands(15.0), ended(130)]),
    "paused": ([stopped(1.0)], [stopped(0.1)]),
    "debug_settings": (
        after_import(*checked("jax_debug_nans", 6), *made.steady(4, {"device_busy": 1.0})),
        after_import(*checked("jax_debug_nans", 4), *made.steady(6, {"device_busy": 1.0})),
    ),
    "profiler_on": (after_import(*profiled(6)), after_import(*profiled(4))),
    "caches_cleared": (
        again("caches_cleared", 2, cleared_at=made.at(97)),
        again("caches_cleared", 1, cleared_at=made.at(97)),
    ),
    "closure_varies": (again("closure", 3, **FACTORY), again("closure", 2, **FACTORY)),
    "recompile_in_loop": (again("new_function", 3), again("new_function", 2)),
    "iterated_array": (split(operations=200), split(operations=4)),
    "varying_shapes": (made.shaped(4), made.shaped(3)),
    "static_argument_varies": (statics(4), statics(3)),
    "weak_type_flips": (again("weak_type", 1, compile_seconds=0.5), again("weak_type", 1)),
    "arguments_vary": (again("structure", 3), again("structure", 2)),
    "large_program": (large(60_000, 4.0), large(400, 4.0)),
    "callback_in_loop": (loop(CALLBACK), loop({**CALLBACK, "seconds": 0.04})),
    "repeated_fetch": (loop(FETCH), loop({**FETCH, "bytes": 4000})),
    "host_sync": (loop(SYNC), loop({**SYNC, "kind": "compiled", "call": "step"})),
    "op_by_op_loop": ([*eager(), *loop(BUSY)], [*eager(), *loop({**BUSY, "kind": "host", "call": "plt.draw()"})]),
    "numpy_argument": ([made.compiled(numpy_bytes=8 << 20), *loop(FED)], loop({**FED, "kind": "compiled"})),
    "large_operations": ([single(), *loop(*COPIES)], [single(size="f32[1024]"), *loop(*COPIES)]),
    "unchanging_transfer": (loop(site(PLACED, unchanging=True)), loop(PLACED)),
    "batch_copies": (loop(PUT), loop({**PUT, "put_bytes": None})),
    "implicit_transfers": (
        [*loop(COPIED), SEEN_COPIES],
        [*loop({**COPIED, "seconds": 0.04}), SEEN_COPIES],
    ),
    "data_waits": (loop(SORT), loop({**SORT, "state": "host_busy", "kind": "host"})),
    "host_work": (
        loop(made.line(95, 0.4, "host_busy", "plt.draw()")),
        loop(made.line(95, 0.04, "host_busy", "plt.draw()")),
    ),
    "host_between": (loop(site(PLOT, between=True)), loop(PLOT)),
    "host_waits": (loop(SLEEP), loop({**SLEEP, "state": "host_busy"})),
    "lock_held": (held_by(0.9), held_by(0.2)),
    "dispatch_bound": (
        [*loop(CALL), timed(100_000, 14e-6, at88=1.0)],
        [*loop({**CALL, "kind": "compiled", "state": "device_busy"}), timed(100_000, 14e-6, at88=1.0)],
    ),
    "many_tiny_jits": (tiny(20), tiny(20, operations=400)),
    "slow_tracing": (traced(2.0), traced(0.5)),
    "slow_import": ([below("imports", 3.0, 2, "tables")], [below("imports", 3.0, 2, "train", jax_seconds=0.3)]),
    "captured_constants": (
        [made.compiled(constants=BIG)],
        [made.compiled(constants=[e.ProgramArray(type="f32[100]", bytes=400)])],
    ),
    "unused_donation": ([donated(1 << 20)], [donated(1 << 8)]),
    "programs_grow": (held_memory(8 << 20), held_memory(80 << 20)),
    "arrays_grow": (arrays(*range(100, 600, 20)), arrays(100, 300, 500, *[600, 590] * 12)),
    "compile_dominates": (compiling(0.52), compiling(0.48)),
    "cache_never_found": (missed("temporary"), missed("")),
    "cache_off": (
        [made.compiled(cache="off", compile_seconds=5.0)],
        [made.compiled(cache="miss", compile_seconds=5.0)],
    ),
}

NEAR = {
    "an interrupt is no failure": ("program_failed", [ended(130, "")]),
    "a product takes as long in a compiled function": ("large_operations", [single("matmul"), *loop(*COPIES)]),
    "a mean beside a compiled function is fused with nothing": (
        "large_operations",
        [single("mean"), made.compiled(), *loop(*COPIES, STEPPED)],
    ),
    "a compiled function is no operation": ("large_operations", [single(), *loop(COPIES[0])]),
    "a few shapes of operations are those of layers": (
        "varying_shapes",
        made.shaped(15, "add", op_by_op=True, compile_seconds=0.5),
    ),
    "arrays of several ranks are a model's, and no data to pad": (
        "varying_shapes",
        [
            *made.shaped(30, "add", op_by_op=True),
            made.compiled("add", "shape", op_by_op=True, signature=[made.leaf("x", "f32[3]"), made.leaf("w", "f32[]")]),
        ],
    ),
    "tiny programs cost something": (
        "many_tiny_jits",
        tiny(30, trace_seconds=None, lower_seconds=None, compile_seconds=0.001),
    ),
    "a large program is no library's": ("large_program", large(2_500, 4.0, library=True)),
    "compiling takes a second at least": ("compile_dominates", compiling(0.6)[:2]),
    "a function that waits itself is no value that is fetched, wherever it was compiled": (
        "host_sync",
        [made.compiled("step", line=12), *loop({**SYNC, "call": "model.step()"})],
    ),
    "a sleep under a condition is a poll that found nothing: not sleeping would save nothing": (
        "host_work",
        loop(site(SLEEP, conditional=True)),
    ),
    "a value that is fetched after the loop is not waited for in it": (
        "host_sync",
        [*loop(count=9), made.sampled(9, 1.0, {"device_busy": 1.0}, [AFTER])],
    ),
    "a copy that the device's work is behind takes no time of the program": (
        "batch_copies",
        [*loop(PUT, count=9), made.sampled(9, 3.0, {"device_busy": 3.0}, [{**AFTER, "seconds": 3.0}])],
    ),
    "an iteration with an inner loop of steps is not brief, though none was timed": (
        "host_sync",
        loop(SYNC, {**STEPPED, "at": [{**STEPPED["at"][0], "loop_line": 87}, *STEPPED["at"]]}),
    ),
    "a loop inside a library's call is none of a program that has none": (
        "host_work",
        made.steady(10, HALVES, [site(PLOT, library=True), {**STEP, "at": []}]),
    ),
    "what is under a condition is not of every iteration": ("host_sync", loop(site(SYNC, conditional=True))),
    "a wait that is asked for is the device's time": ("host_sync", loop({**SYNC, "call": "jax.block_until_ready()"})),
    "a loop of a jitted function is not op by op": ("op_by_op_loop", [*eager(72), made.compiled(), *loop()]),
    "a loop of a library is not the reader's to change": (
        "op_by_op_loop",
        [*eager(), *made.steady(10, HALVES, [site(line, library=True) for line in (BUSY, {**STEP, "seconds": 0.5})])],
    ),
    "an import of a tenth of a second takes most of what ends soon after": (
        "slow_import",
        [replace(made.sampled(0, 0.5, HALVES), statements=below("imports", 0.4, 2, "tables").statements)],
    ),
    "an import of a second is a small part of ten": ("slow_import", [below("imports", 1.0, 2, "tables")]),
    "a folder that had one of the programs is not new": (
        "cache_never_found",
        [*missed("process"), made.compiled("other", cache="hit")],
    ),
    "memory that grows while nothing is compiled": ("programs_grow", held_memory(8 << 20, programs=0)),
    "a set-up compiles one function after the other": ("programs_grow", held_memory(8 << 20, reason="first")),
    "memory of live arrays is none of programs": ("programs_grow", held_memory(8 << 20, kept=6 << 20)),
    "five counts tell nothing": ("arrays_grow", arrays(*range(100, 600, 100))),
}
"""Further events that are near to those of a pair."""
EDGES = {
    "what few brief iterations leave open is not called dispatch": (
        "dispatch_bound",
        [*loop(CALL, count=1), timed(250, 19e-6, at88=1.0)],
        [*loop(CALL, count=1), timed(20, 19e-6, at88=1.0)],
    ),
    "a quarter is dispatch where a library is around it": (
        "dispatch_bound",
        loop({**THROUGH, "seconds": 0.3}, WRAPPED),
        loop({**CALL, "seconds": 0.3}, WRAPPED),
    ),
    "and most of that goes through the library": (
        "dispatch_bound",
        loop({**THROUGH, "seconds": 0.3}, {**CALL, "seconds": 0.1}, WRAPPED),
        loop({**THROUGH, "seconds": 0.1}, {**CALL, "seconds": 0.1}, WRAPPED),
    ),
    "a library that only makes keys is around no compiled function": (
        "dispatch_bound",
        loop({**THROUGH, "seconds": 0.3}, WRAPPED),
        [made.compiled(), *loop(AROUND_KEYS, KEYS, KEYS_COMPILED, {**WRAPPED, "through": ""})],
    ),
    "its Python around the operations for them belongs to these": (
        "op_by_op_loop",
        [*eager(88, "main"), made.compiled(), *loop(AROUND_KEYS, {**KEYS, "seconds": 0.25}, WRAPPED)],
        [
            *eager(88, "main"),
            made.compiled(),
            *loop({**AROUND_KEYS, "call": "step"}, {**KEYS, "seconds": 0.25}, WRAPPED),
        ],
    ),
    "launching what the thread computes itself is dispatch, computing it is none": (
        "dispatch_bound",
        inline(0.7, 0.3, 10e-6, empty=9e-6),
        inline(0.7, 0.3, 1e-3, empty=9e-6),
    ),
    "operations beside a function belong to it": (
        "many_tiny_jits",
        [*made.shaped(30), *ELSEWHERE],
        [*made.shaped(30), *GROWING],
    ),
    "programs that differ are made anew, whoever makes them": (
        "recompile_in_loop",
        differing("new_function", [0, 1, 2, 0, 1, 2]),
        differing("new_function", range(6)),
    ),
    "and those that a factory makes": (
        "closure_varies",
        differing("closure", [0, 0, 0, 0, 1, 2], **FACTORY),
        differing("closure", [0, 0, 0, 1, 2, 3], **FACTORY),
    ),
    "programs of as many operations differ where these are others": (
        "recompile_in_loop",
        again("new_function", 3, checksum=1),
        [made.compiled(checksum=at, reason_code="new_function" if at else "first") for at in range(4)],
    ),
    "weak types that are cheap are many": ("weak_type_flips", again("weak_type", 3), again("weak_type", 2)),
    "a single other dtype is dear": (
        "arguments_vary",
        again("dtype", 1, compile_seconds=0.5),
        again("dtype", 1, compile_seconds=0.2),
    ),
    "a recompilation is slow tracing where nearly all of it is tracing": (
        "varying_shapes",
        [made.compiled(trace_seconds=4.0), made.compiled(reason_code="shape", trace_seconds=1.4, compile_seconds=0.6)],
        [made.compiled(trace_seconds=4.0), made.compiled(reason_code="shape", trace_seconds=1.4, compile_seconds=0.3)],
    ),
    "a large program is most of the work": ("large_program", large(2_500, 4.0), large(2_500, 1.5)),
    "a large program has a thousand operations": ("large_program", large(1_100, 4.0), large(900, 4.0)),
    "an empty queue is a wait for data, and a sleep is none": (
        "data_waits",
        loop(made.line(86, 0.8, "waiting", "q.get()")),
        loop(made.line(86, 0.8, "waiting", "time.sleep()")),
    ),
    "a counter of the loop is no work": (
        "host_work",
        [*loop(made.line(95, 0.4, "host_busy", "step += 1")), timed(100_000, 100e-6, at88=0.8, at95=0.2)],
        [*loop(made.line(95, 0.4, "host_busy", "step += 1")), timed(100_000, 100e-6, at88=0.92, at95=0.08)],
    ),
    "what every tenth iteration does is not of every iteration": (
        "host_sync",
        [*loop(SYNC), PASSES],
        [*loop(SYNC), replace(PASSES, lines=[PASSES.lines[0], replace(PASSES.lines[1], hits=100)])],
    ),
    "nor what one of fifty iterations takes": (
        "host_sync",
        [*loop(SYNC), PASSES],
        [*loop(SYNC), made.steps(500, 0.01, lines={88: 0.6, 91: 0.4}, seldom=0.4)],
    ),
    "of uneven iterations most wait for it, or three of ten": (
        "host_sync",
        [*loop(SYNC), uneven(0.009, 0.03)],
        [*loop(SYNC), uneven(0.0005, 0.03)],
    ),
    "a fetch of one of fifty iterations": (
        "repeated_fetch",
        [*loop(FETCH), timed(500, 0.01, at88=0.6, at92=0.4)],
        [*loop(FETCH), made.steps(500, 0.01, lines={88: 0.6, 92: 0.4}, seldom=0.4)],
    ),
    "long iterations gain nothing from not waiting": (
        "host_sync",
        [*loop({**SYNC, "seconds": 0.97}), timed(1000, 0.01, at91=0.97, at88=0.03)],
        [*loop({**SYNC, "seconds": 0.97}), timed(100, 0.1, at91=0.97, at88=0.03)],
    ),
    "nor does waiting for a processor in between": (
        "host_sync",
        [*loop({**SYNC, "seconds": 0.88}, made.line(92, 0.1, "host_busy", "log()")), LONG_PASSES],
        [*loop({**SYNC, "seconds": 0.88}, made.line(92, 0.1, "waiting", "log()", kind="preempted")), LONG_PASSES],
    ),
    "compiling the operations of a loop belongs to running them": (
        "many_tiny_jits",
        [*eager(times=10), *loop()],
        [*eager(times=10), *loop(BUSY)],
    ),
    "Python around the call of a compiled function is not that of an operation in its arguments": (
        "op_by_op_loop",
        [*eager(89, "main"), *loop({**SINGLE, "seconds": 0.03}, {**AROUND, "seconds": 0.6})],
        [*eager(89, "main"), made.compiled(), *loop({**SINGLE, "seconds": 0.03}, {**AROUND, "seconds": 0.6}, CALLED)],
    ),
    "but the operations in its arguments are": (
        "op_by_op_loop",
        [*eager(89, "main"), made.compiled(), *loop({**SINGLE, "seconds": 0.6}, CALLED)],
        [*eager(89, "main"), made.compiled(), *loop({**SINGLE, "seconds": 0.03}, CALLED)],
    ),
    "operations that the device outlasts are not waited for": (
        "op_by_op_loop",
        [*eager(89, "main"), *loop({**SINGLE, "seconds": 0.6})],
        [*eager(89, "main"), *loop({**SINGLE, "seconds": 0.4})],
    ),
    "what takes longer than memory does is waited for behind other work": (
        "large_operations",
        [single(), *loop(*COPIES), timed(500, 0.02, at89=0.6, at88=0.4)],
        [single(), *loop(*COPIES), timed(50, 0.2, at89=0.6, at88=0.4)],
    ),
    "so is what takes longer in a loop of a function that the loop calls": (
        "large_operations",
        [single(called_from=made.at(40, "predict")), *loop(*LAYERS), timed(500, 0.02, at89=0.6, at88=0.4)],
        [single(called_from=made.at(40, "predict")), *loop(*LAYERS), timed(50, 0.2, at89=0.6, at88=0.4)],
    ),
    "operations of the set-up are not those of the loop": (
        "op_by_op_loop",
        [*eager(89, "main"), *loop(SINGLE)],
        [*eager(12, "main"), *loop(SINGLE)],
    ),
    "the Python around operations belongs to them, and what takes longer does not": (
        "data_waits",
        [*eager(), *loop({**BUSY, "seconds": 0.2}, {**BESIDE, "seconds": 0.3})],
        [*eager(), *loop(BUSY, BESIDE)],
    ),
    "a set-up of some layers is not a loop of operations": (
        "op_by_op_loop",
        [*eager(times=100), *loop(BUSY), timed(500, 0.02, at89=1.0)],
        [*eager(times=100), *loop(BUSY), timed(5, 2.0, at89=1.0)],
    ),
    "a line that fetches a value is told once": (
        "implicit_transfers",
        [*loop(COPIED), SEEN_COPIES],
        [*loop(SYNC), SEEN_COPIES],
    ),
    "making an array on the device is no implicit copy": (
        "implicit_transfers",
        [*loop(COPIED), SEEN_COPIES],
        [*loop({**COPIED, "call": "jnp.array()"}), SEEN_COPIES],
    ),
    "twenty samples are enough for sixty per cent, and one is not": ("host_sync", brief(0.2), brief(0.01)),
    "what a loop waits for before it first works is no wait of its iterations": (
        "host_waits",
        [STARTED, *loop(WORKERS)],
        [STARTED, *loop()],
    ),
    "what grows at first and then stays is a start": (
        "arrays_grow",
        arrays(*range(10, 800, 10)),
        arrays(*range(10, 300, 10), *[300] * 30),
    ),
    "scalars that are fetched at the end are no leak": (
        "arrays_grow",
        arrays(*range(100, 9100, 300), size=4),
        arrays(*range(100, 600, 20), size=4),
    ),
    "fifty arrays more are growth": (
        "arrays_grow",
        arrays(0, 0, 0, *range(100, 151, 5)),
        arrays(0, 0, 0, *range(100, 150, 5), 149),
    ),
    "one jump is no growth, and several are": (
        "arrays_grow",
        arrays(*[100] * 8, *[200] * 4, *[300] * 4, *[400] * 4, *[500] * 4),
        arrays(*[150] * 14, *[300] * 10),
    ),
    "a wait after an inner loop does not delay what the inner loop does on the host": (
        "host_sync",
        [*loop(SYNC, BATCH, STEPPED), timed(10, 1.0, at91=0.4, at87=0.4, at88=0.2)],
        [*loop(SYNC, *map(inside, (BATCH, STEPPED))), timed(10, 1.0, at91=0.4, at87=0.4, at88=0.2)],
    ),
    "each compilation that is done is progress": (
        "standstill",
        [made.compiled(monotonic_seconds=made.BEGAN + 25), made.stands(30.0), ended(130, wall_seconds=50.0)],
        [made.compiled(monotonic_seconds=made.BEGAN + 35), made.stands(30.0), ended(130, wall_seconds=50.0)],
    ),
    "what is dropped after each epoch is no leak, and what stays of it is": (
        "arrays_grow",
        arrays(*[10] * 10, *[100 * epoch + 4 * kept for epoch in (1, 2, 3) for kept in range(10)]),
        arrays(*[10] * 10, *[100 + 20 * kept for _epoch in (1, 2, 3) for kept in range(10)]),
    ),
    "a set-up in two steps, far apart": ("arrays_grow", seldom_counted(2.7, 5.7), seldom_counted(5.7, 6.1, rests=4.0)),
}
"""Where a finding begins: the events on the one side, and on the other."""

SAID = {
    "a profiler that is never stopped": ("profiler_on", profiled(10)),
    "calls through a library": (
        "dispatch_bound",
        [made.compiled(), *loop(THROUGH, WRAPPED), timed(1_000, 2e-3, at88=1.0)],
    ),
    "calls with many leaves, most unused": ("dispatch_bound", [leaves(3000, operations=3), *loop(CALL)]),
    "calls with many leaves": ("dispatch_bound", [leaves(3000, operations=3000), *loop(CALL)]),
    "two loops, one inside the other, that are unrolled": (
        "large_program",
        unrolled((33, "step", 1.9), (35, "step", 1.5)),
    ),
    "out of memory in XLA": (
        "program_failed",
        [ended(1, "JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory allocating 35184372088832 bytes.")],
    ),
    "out of memory on a GPU": ("program_failed", gpu_filled()),
    "out of memory in NumPy": (
        "program_failed",
        [ended(1, "numpy._core._exceptions._ArrayMemoryError: Unable to allocate 8.00 TiB for an array")],
    ),
    "an exit code": ("program_failed", [*loop(), ended(3, "")]),
    "the same list in each step": (
        "unchanging_transfer",
        loop(site({**PLACED, "state": "data", "kind": "data", "call": "jnp.array()"}, unchanging=True)),
    ),
    "sums of large arrays": ("large_operations", [single("add"), *loop(*COPIES)]),
    "sums beside a compiled function": ("large_operations", [single("add"), made.compiled(), *loop(*COPIES, STEPPED)]),
    "means where nothing is compiled": ("large_operations", [single("mean"), *loop(*COPIES)]),
    "one short batch": ("varying_shapes", again("shape", 1, compile_seconds=0.5)),
    "operations of many shapes": (
        "varying_shapes",
        [*GROWING, *made.shaped(30, "solve", line=50, op_by_op=True), *made.shaped(30, "mean", line=51, op_by_op=True)],
    ),
    "shapes close together": ("varying_shapes", sized(range(200, 206))),
    "six static values": ("static_argument_varies", statics(6)),
    "an object that is another each time": ("static_argument_varies", again("static_argument", 3, reasons=[OBJECT])),
    "another structure once": (
        "arguments_vary",
        again("structure", 1, compile_seconds=1.5, reasons=[made.reason("added", leaves={"[0]": 1})]),
    ),
    "work whose source nobody has": ("host_work", loop(made.line(95, 0.3, "host_busy"))),
    "another setting of JAX": (
        "arguments_vary",
        again("config", 3, reasons=[made.reason("config", "x64", "False", "True")]),
    ),
    "other donated arguments": (
        "arguments_vary",
        again("config", 3, reasons=[made.reason("jit_option", "donate_argnames", "", "w")]),
    ),
    "a cache that would not keep small ones": (
        "cache_off",
        [made.compiled(f"f{index}", cache="off", compile_seconds=0.3) for index in range(10)],
    ),
    "constants in all compilations": ("captured_constants", again("shape", 4, constants=BIG)),
    "a line that calls two things": (
        "data_waits",
        loop(SORT, {**SORT, "call": "np.load()", "seconds": 0.2}, made.line(31, 0.1, "data", under=86)),
    ),
    "a device that is busy meanwhile": (
        "host_sync",
        [*loop({**SYNC, "seconds": 0.95}), timed(1000, 0.01, at91=0.95, at88=0.05)],
    ),
    "a wait behind a long import": (
        "host_sync",
        [
            made.sampled(0, 90.0, {"import": 45.0, "compile": 0.1, "host_busy": 44.9}),
            *(made.sampled(90 + second, 1.0, {"device_busy": 1.0}, [SYNC, STEP]) for second in range(10)),
        ],
    ),
    "parts of an expression": (
        "host_work",
        loop(*(made.line(95, took, "host_busy", call) for call, took in EXPRESSION.items())),
    ),
    "operations of two functions": ("op_by_op_loop", [*eager(), *eager(60), *loop({**BUSY, "seconds": 0.3}, COSINE)]),
}


@pytest.mark.parametrize(
    ("code", "events", "near"),
    [
        *((code, PAIRS[code][0], near) for code, near in NEAR.values()),
        *EDGES.values(),
    ],
    ids=[*NEAR, *EDGES],
)
def test_it_is_found_and_near_it_is_not(code, events, near):
    assert only(code, *events)
    assert code not in every_code(*near)


def test_time_at_the_line_of_a_standstill_is_no_work_of_the_loop():
    waits = loop(made.line(95, 0.4, "host_busy", "queue.get()"))
    assert "host_work" in codes(*waits, ended(130))
    stands = made.stands(30.0, line=95)
    assert codes(*waits, stands, ended(130))[:1] == ["standstill"]
    assert "host_work" not in codes(*waits, stands, ended(130))
    assert "host_work" in codes(*waits, made.stands(30.0, line=96), ended(130))


@pytest.mark.parametrize(
    ("call", "wait", "is_said"),
    [
        ("open()", e.SystemWait(state="S", call="open", file="/data/shard-7"), True),
        ("lock.acquire()", e.SystemWait(state="S", call="futex"), True),
        ("with", e.SystemWait(state="S", call="futex"), True),
        ("thread.join()", e.SystemWait(state="S", call="futex"), False),
        ("time.sleep()", e.SystemWait(state="S", call="sleep"), False),
        ("input()", e.SystemWait(state="S", call="read", file="/dev/pts/0"), False),
        ("sys.stdin.read()", e.SystemWait(state="S", call="read", file="pipe"), False),
        ("server.accept()", e.SystemWait(state="S", call="accept", file="socket"), False),
    ],
)
def test_what_is_a_standstill_before_any_iteration(call, wait, is_said):
    stands = made.stands(48.0, call=call, wait=wait, step=None, usual_seconds=0.0, longest_seconds=0.0)
    said = [one.message for one in found(stands, ended(130)) if one.code == "standstill"]
    assert bool(said) is is_said
    assert not said or said[0].startswith("it stood still (48.0 s) at")
    earlier = made.stands(40.0, call=call, wait=wait, usual_seconds=0.0, longest_seconds=0.0)
    assert "standstill" not in codes(earlier, ended(130))


FUTEX = e.SystemWait(state="S", call="futex")
MAIN = e.ThreadStack(name="MainThread", frames=[made.at(95)])
IN_QUEUE, IN_LOCK = (e.SourceLocation("/usr/lib/python3.13/" + file, 1, "get") for file in ("queue.py", "threading.py"))
FEEDER = e.ThreadStack(name="feeder", frames=[IN_LOCK, made.at(7, "feed")])
IN_QUEUES = e.SourceLocation("/usr/lib/python3.13/multiprocessing/queues.py", 1, "get")
ENDING = e.ThreadStack(name="MainThread", frames=[e.SourceLocation(IN_LOCK.file, 1, "_shutdown")])


@pytest.mark.parametrize(
    ("more", "said", "fix"),
    [
        (
            {"inner": IN_QUEUE, "wait": FUTEX, "threads": [MAIN, FEEDER]},
            "waits for a queue; its other threads: `feeder` stands at train.py:7 in feed()",
            "fills or empties it",
        ),
        (
            {"inner": IN_LOCK, "wait": FUTEX, "threads": [replace(MAIN, frames=[IN_LOCK, IN_QUEUE, *MAIN.frames])]},
            "it waits for a queue; it has no other Python thread",
            "the one that was to do so has ended",
        ),
        (
            {"inner": IN_QUEUES, "wait": FUTEX, "threads": [MAIN]},
            "it waits for a queue, lock or event of several processes",
            "or to fail",
        ),
        (
            {"at": e.NOWHERE, "inner": e.NOWHERE, "threads": [FEEDER]},
            "it has come to its end, and a function that ends it does not return",
            "or to fail",
        ),
        (
            {"inner": IN_LOCK, "wait": FUTEX, "threads": [MAIN, *[FEEDER] * 4], "call": "with"},
            "train.py:91 in a with statement: it waits for a lock or a thread; its other threads: `feeder` stands at "
            "train.py:7 in feed(), `feeder` stands at train.py:7 in feed(), `feeder` stands at train.py:7 in feed() "
            "and 1 more",
            "same order of locks",
        ),
        (
            {"at": e.NOWHERE, "wait": FUTEX, "threads": [ENDING, FEEDER]},
            "has come to its end, and waits for its other threads; its other threads: `feeder` stands at",
            "make them daemons",
        ),
        (
            {"wait": e.SystemWait(state="S", call="flock", file="/a"), "threads": [MAIN]},
            "the lock of a file (/a)",
            "or",
        ),
        ({"kind": "callback"}, "it sleeps, in a function that a compiled one calls back", "or to fail"),
        ({"kind": "sync", "threads": [MAIN, FEEDER]}, "waits in a compiled function, or for its result", "or to fail"),
        (
            {"stage": "trace", "function": "f", "stage_seconds": 30.0, "still_seconds": made.BEGAN + 49},
            "it has been tracing f for 30.0 s",
            "or to fail",
        ),
    ],
    ids=["queue", "alone", "processes", "exit handler", "locks", "end", "file lock", "callback", "device", "tracing"],
)
def test_what_a_standstill_waits_for(more, said, fix):
    standstill = only("standstill", made.stands(48.0, **more), ended(130))
    assert standstill.message.endswith(said) or said.endswith("stands at")
    assert said in standstill.message
    assert fix in standstill.fix


@pytest.mark.parametrize(
    ("lines", "of_it", "fix"),
    [
        ([95], ", 3.0 s of it in 1 iteration", "One iteration took most of it"),
        ([95, 95], ", 4.0 s of it in 2 iterations", "Do it every N iterations"),
        ([96], "of the loop", "Do it every N iterations"),
        ([], "of the loop", "Do it every N iterations"),
    ],
)
def test_what_stalled_once_is_not_to_be_done_less_often(lines, of_it, fix):
    stalls = []
    for line in lines:
        over = e.StandstillSeen(run=made.RUN, monotonic_seconds=made.BEGAN + 8.0, since_seconds=0.0, over=True)
        stalls += [made.stands(3.0, line=line, until=8.0), over]
    waits = loop(made.line(95, 0.4, "host_busy", "open()"))
    (said,) = [one for one in found(*waits, *stalls, ended(0, error="")) if one.code == "host_work"]
    assert said.message.endswith(of_it)
    assert said.fix.startswith(fix)


@pytest.mark.parametrize("since", [made.BEGAN + 9.0, None], ids=["in its loop", "before an iteration"])
def test_a_stopped_program_is_said_to_be_at_once(since):
    waits = loop(made.line(95, 0.4, "host_busy", "queue.get()"))
    silence = e.SilenceSeen(
        run=made.RUN,
        monotonic_seconds=made.BEGAN + 11.5,
        silent_seconds=made.BEGAN + 10.0,
        since_seconds=since,
        usual_seconds=0.1 if since else 0.0,
        wait=e.SystemWait(state="T"),
    )

    def said(seen):
        session = made.session(*waits, seen, wall=None)
        session.desert(deserted=False)
        result = program_result(session, made.RUN)
        return result.findings[0].code, condition(result)

    assert said(silence) == ("standstill", "standing still")
    for goes_on in (e.SystemWait(state="R"), e.SystemWait(state="S", call="futex")):
        assert said(replace(silence, wait=goes_on)) == ("host_work", "running")


def test_standstill_of_a_stopped_program_costs_its_stop():
    """No sample saw the stop: the time at its line is all from before, and is the loop's."""
    waits = loop(made.line(95, 0.4, "host_busy", "queue.get()"))
    silence = e.SilenceSeen(
        run=made.RUN,
        monotonic_seconds=made.BEGAN + 50.0,
        silent_seconds=made.BEGAN + 10.0,
        since_seconds=made.BEGAN + 10.0,
        usual_seconds=0.1,
        wait=e.SystemWait(state="T"),
        at=made.at(95),
    )
    stop = e.ProgramStopped(run=made.RUN, began_seconds=made.BEGAN + 10.0, seconds=40.0, found_by="state")
    for stopped in ([silence], [silence, stop, ended(137, wall_seconds=50.0)]):
        found = made.result(*waits, *stopped, wall=None if stopped == [silence] else 50.0)
        by_code = {finding.code: finding for finding in found.findings}
        assert by_code["standstill"].seconds == pytest.approx(40.0)
        assert "SIGSTOP" in by_code["standstill"].fix
        assert "paused" not in by_code, "each second belongs to one finding"
        assert by_code["host_work"].seconds == pytest.approx(4.0)


@pytest.mark.parametrize("line", [88, 89], ids=["around it", "another"])
def test_standstill_in_a_callback_has_its_seconds(line):
    stack = e.ThreadStack(name="MainThread", frames=[made.at(7, "report"), made.at(88), made.at(100)])
    events = loop({**CALLBACK, "line": line})
    stands = made.stands(48.0, kind="callback", at=made.at(7, "report"), threads=[stack])
    assert ("callback_in_loop" in codes(*events, stands, ended(130))) is (line == 89)


def test_wait_before_any_iteration_is_no_work_of_a_loop():
    waits = loop(made.line(91, 0.9, "waiting", "queue.get()"))
    assert "data_waits" in codes(*waits)
    stands = made.stands(35.0, call="open()", usual_seconds=0.0, longest_seconds=0.0)
    assert codes(*waits, stands, ended(130)) == []


def test_tiny_programs_of_a_library_that_loops_cannot_be_jitted():
    def fix(library):
        step = site(made.line(88, 1.0, "device_busy", "step", kind="compiled"), library=True)
        step["at"][0]["file"] = "/venv/lib/site-packages/flows/run.py"
        each = {"trace_seconds": 0.1, "lower_seconds": 0.0, "compile_seconds": 0.0}
        return only("many_tiny_jits", *tiny(20, through=library, **each), *made.steady(10, WORKS, [step])).fix

    assert fix("flows.train").startswith("flows.train has a loop in Python around them")
    assert fix("layers").startswith("Put jax.jit around a call of layers")


def test_tiny_programs_of_an_import_are_found_apart():
    each = {"trace_seconds": 0.1, "lower_seconds": 0.0, "compile_seconds": 0.0}
    own, theirs = tiny(20, **each), tiny(30, through="flows", called_from=made.at(2, "attend"), **each)
    found = made.result(*own, *theirs, below("imports", 3.0, 2)).findings
    fixes = [one.fix for one in found if one.code == "many_tiny_jits"]
    assert [fix.startswith("They run whenever flows is imported") for fix in fixes] == [True, False]


def test_an_import_leads_less_than_what_is_avoidable():
    slow = only("slow_import", below("imports", 3.0, 2, "tables"))
    assert rank(slow) > rank(replace(slow, seconds=2.0, at_most=False))


@pytest.mark.parametrize(("count", "words"), [(3, "3 times, each time as a"), (1, "once, as a new function object")])
def test_new_function_objects_are_counted_in_words(count, words):
    rows = again("new_function", count, checksum=7, compile_seconds=0.5)
    assert words in only("recompile_in_loop", *rows).message


@pytest.mark.parametrize(("library", "own"), [("flows.train", 0), ("", 20), ("flows.train", 30)])
def test_tiny_programs_fix_is_about_who_makes_most_of_them(library, own):
    each = {"trace_seconds": 0.1, "lower_seconds": 0.0, "compile_seconds": 0.0}
    one = only("many_tiny_jits", *tiny(20, through=library, **each), *(tiny(own, **each) if own else []))
    named = library if own < 20 else ""
    assert ("a call of flows.train" in one.fix, "inside flows.train" in one.message) == (bool(named), bool(named))
    assert ("in your own code" in one.fix) is not bool(named)


@pytest.mark.parametrize(
    ("inside", "words"),
    [
        (loop(PUT), "smallest dtype"),
        ([made.compiled(signature=[made.leaf("tiles", "u8[16777216]")]), *loop(PUT)], "before the loop, and index"),
        ([made.compiled(signature=[made.leaf("tiles", "f32[4194304]")]), *loop(PUT)], "smallest dtype"),
        (loop({**PUT, "put_bytes": 4000}), "Pass arrays this small"),
        (loop(PUT, {**SYNC, "kind": "sync"}), "before the loop waits for its result"),
    ],
    ids=["unknown", "narrow", "wide", "small", "waited for"],
)
def test_batch_copies_fix_follows_from_the_evidence(inside, words):
    one = only("batch_copies", *inside)
    assert words in one.fix
    assert ("smallest dtype" in one.fix) is (words == "smallest dtype")


def test_batch_copies_fix_names_sharing_only_on_a_cpu():
    def fix(platform):
        device = {"id": f"{platform}:0", "platform": platform}
        read = e.EnvironmentRead(run=made.RUN, python="3.13", numpy="2.4", devices=[device])
        return only("batch_copies", read, *loop(PUT)).fix

    assert "64 bytes" in fix("cpu")
    assert "64 bytes" not in fix("cuda")


def test_one_more_thread_is_not_advised_where_one_holds_the_lock():
    alone, beside = only("data_waits", *loop(SORT)), held_by(0.9)
    both = [replace(each, lines=[*each.lines, *loop(SORT)[0].lines], sites=each.sites) for each in beside]
    fix = only("data_waits", *both).fix
    assert "in a thread or" in alone.fix
    assert "not in one more thread" in fix


def test_what_is_said_of_each():
    """A generator, or a method that JAX cannot trace, may have the name of a function: no `jax.jit` on that."""
    cases = {f"{code}, its pair": (code, pair[0]) for code, pair in PAIRS.items()} | SAID
    told = {name: only(code, *events) for name, (code, events) in cases.items()}
    assert [name for name, one in told.items() if not one.fix.endswith(".") or "jax.jit on `" in one.fix] == []
    held_cases("findings_of_programs.txt", {name: finding_text(one) for name, one in told.items()})


def test_program_made_again_is_to_be_kept_among_others():
    some = only("closure_varies", *differing("closure", [0, 1, 2, 0, 1, 2], **FACTORY))
    assert "compiled again 3 times" in some.message
    assert some.saves_seconds == pytest.approx(0.3)
    assert "functools.cache on `make_step`" in some.fix
    every = only("closure_varies", *differing("closure", [0] * 6, **FACTORY))
    assert "Call `make_step` once" in every.fix


def test_value_of_the_next_call_is_not_to_be_fetched_less():
    fetched = {**FETCH, "seconds": 0.2}
    for code, line in (("host_sync", SYNC), ("repeated_fetch", fetched)):
        one, other = only(code, *loop(site(line, between=True))), only(code, *loop(line))
        assert "in the compiled function" in one.fix
        assert "every N" not in one.fix
        assert "every N" in other.fix
    assert "host_work" not in codes(*loop(site(PLOT, between=True)))


@pytest.mark.parametrize(("code", "line"), [("host_work", PLOT), ("callback_in_loop", CALLBACK)])
def test_work_in_few_iterations_is_not_to_be_done_in_fewer(code, line):
    often = only(code, *loop(line), made.steps(1000, 0.01, lines={line["line"]: 0.4}))
    seldom = only(code, *loop(line), made.steps(1000, 0.01, lines={line["line"]: 0.4}, seldom=0.4))
    under = only(code, *loop(site(line, conditional=True)))
    assert "very N iterations" in often.fix
    assert seldom.fix == under.fix
    assert "Only a few iterations" in seldom.fix


@pytest.mark.parametrize(
    ("call", "said", "at_most"),
    [
        ("time.sleep()", "the loop sleeps", False),
        ("input()", "waits for input", True),
        ("lock.acquire()", "waits for another thread or process", True),
        ("open()", "waits for something outside it", True),
        ("", "waits for something outside it: a statement without a call", True),
        ("asleep()", "waits for something outside it", True),
    ],
)
def test_a_wait_says_for_what_as_far_as_its_call_tells(call, said, at_most):
    events = loop(made.line(95, 0.88, "waiting", call))
    waits = only("host_waits", *events)
    assert said in waits.message
    assert waits.at_most == at_most
    assert "host_work" not in codes(*events)


def on(platform):
    devices = [{"id": f"{platform}:0", "platform": platform}]
    return e.EnvironmentRead(run=made.RUN, python="3.13", numpy="2", devices=devices)


def waited_after(seconds, **more):
    return made.sampled(9, seconds, {"device_busy": seconds}, [{**AFTER, "seconds": seconds, **more}])


@pytest.mark.parametrize(("line", "code"), [(SLEEP, "host_waits"), ({**PLOT, "seconds": 0.8}, "host_work")])
def test_what_a_device_behind_the_loop_hides_saves_nothing(line, code):
    """The device has 3 s left at the end of a loop whose iterations take 9 ms."""
    events, behind = [made.compiled(), *loop(line, count=9)], [made.steps(1000, 9e-3), waited_after(3.0)]
    assert codes(on("gpu"), *events, *behind) == []
    gap, _ = largest_gap(None, made.result(on("gpu"), *events, *behind), [], "s")
    assert "the device is 3.0 s behind the loop" in gap.reason
    around = [{**line["at"][0], "loop_line": 80, "last_line": 110}]
    for what_else in (
        [made.steps(1000, 9e-3)],
        [made.steps(1000, 9e-3), waited_after(0.008)],
        [made.steps(2, 4.0), waited_after(3.0)],
        [waited_after(3.0)],
        [made.compiled("score"), *behind],  # which it may wait for
        [made.steps(1000, 9e-3), waited_after(3.0, at=around)],  # once for each epoch
    ):
        assert codes(on("gpu"), *events, *what_else) == [code]
    assert codes(on("cpu"), *events, *behind) == ([] if code == "host_waits" else [code]), "Python takes its processor"


def test_a_window_without_length_shows_no_device_behind():
    damaged = made.sampled(9, 0.0, {"device_busy": 0.0}, [{**AFTER, "seconds": 3.0}])
    events = [on("gpu"), made.compiled(), *loop(SLEEP, count=9), made.steps(1000, 9e-3), damaged]
    assert codes(*events) == ["host_waits"]


def test_a_line_that_mostly_runs_is_work_with_its_waits():
    runs, waits = (made.line(95, 0.3, state, "log.write()") for state in ("host_busy", "waiting"))
    assert codes(*loop(runs, {**waits, "seconds": 0.1})) == ["host_work"]
    assert codes(*loop({**runs, "seconds": 0.1}, waits)) == ["host_waits"]
    assert only("host_waits", *loop({**runs, "seconds": 0.1}, waits)).seconds == pytest.approx(4.0)
    below = made.line(7, 0.1, "host_busy", "pickle.dumps()", "save", under=95)
    assert codes(*loop({**waits, "line": 8, "function": "save"}, below)) == ["host_waits"]


def test_a_librarys_loop_is_changed_where_it_is_called():
    file = "/usr/lib/python3/site-packages/numpyro/infer/svi.py"
    lines = [site(line, library=True, file=file, function="run") for line in (PLOT, {**STEP, "seconds": 0.6})]
    theirs = only("host_work", *made.steady(10, HALVES, lines))
    assert "The loop is in numpyro" in theirs.fix
    assert [place for place in (theirs.where, *theirs.others) if place.file == file] == []
    assert theirs.where.line == PLOT["line"]
    assert "not yours" not in only("host_work", *loop(PLOT)).fix


@pytest.mark.parametrize(
    ("name", "values", "kind", "checksums", "said", "not_said"),
    [
        ("n", "3456", "", "1111", "out of static_argnums", "lax.cond"),
        ("n", "3456", "", "1234", "lax.cond", "out of static_argnums"),
        ("cfg.width", "3456", "", "1111", "where `cfg.width` is only computed with", "out of static_argnums"),
        ("cfg", "CCCC", "", "1111", "make the object once", "keep to a few values"),
        ("cfg", "CCCC", "unequal_object", "1111", "__eq__ of its own", "make the object once"),
    ],
)
def test_the_fix_of_a_static_argument_is_about_what_changed(name, values, kind, checksums, said, not_said):
    """An object that has `__eq__` and `__hash__` needs neither."""
    rows = [
        made.compiled(
            reason_code="static_argument" if at else "first",
            reasons=[made.reason(kind or "static_argument", name, values[at - 1], values[at])] if at else [],
            checksum=int(checksums[at]),
        )
        for at in range(4)
    ]
    fix = only("static_argument_varies", *rows).fix
    assert said.lower() in fix.lower()
    assert not_said not in fix


def test_the_attribute_that_differs_is_named_before_its_object():
    models = ["Model(layers=[128, 128, 128])", "Model(layers=[256, 256, 256])", "Other(layers=[256, 256, 256])"]
    changes = [("self", models[0], models[1]), ("self.size", "16", "32"), ("self", models[1], models[2])]
    rows = [
        made.compiled(reason_code="static_argument", reasons=[made.reason("static_argument", *each)])
        for each in changes
    ]
    message = only("static_argument_varies", made.compiled(), *rows).message
    assert "of a static argument: self.size = 16, 32; self = Model(" in message


@pytest.mark.parametrize(
    ("status", "hint", "more", "advised"),
    [
        ("failed", "", {}, "Run it with `python -i`"),
        ("failed", "It last wrote: no data", {}, "It last wrote: no data. Run it with `python -i`"),
        ("failed", "", {"error_at": made.at(91)}, "That line called sys.exit"),
        ("failed", "", {"notes": [e.Note(code="not_unwound")]}, "Search its files for os._exit"),
        ("failed", "", {"notes": [e.Note(code="not_recorded")]}, "Its end was not recorded"),
        ("crashed", "", {}, "Look for what sent that signal"),
        ("crashed", "XLA aborted", {}, "XLA aborted"),
    ],
)
def test_the_fix_of_an_exit_is_one_that_can_be_followed(status, hint, more, advised):
    """A program that ends by sys.exit, os._exit or a signal may have written nothing at all."""
    finished = e.RunFinished(run=made.RUN, status=status, error="exit code 3", advice=hint)
    last = ended(3, "", **{"error_at": e.NOWHERE, **more})
    session = fold(made.HEADER, [*made.program(*loop(SYNC), last)[:-3], finished])
    (found,) = (each for each in program_result(session, made.RUN).findings if each.code == "program_failed")
    assert found.fix.startswith(advised)
    assert "stderr" not in found.fix


def test_what_is_a_static_part_of_the_arguments_is_named():
    def fix(*changes):
        rows = [made.compiled(reason_code="structure", reasons=[made.reason(*each)]) for each in changes]
        return only("arguments_vary", made.compiled(), *rows).fix

    assert fix(*[("static_part", "state.tx", "Adam", "Adam")] * 3).startswith("Make `state.tx` once")
    assert "Each value of `model.rate`" in fix(
        *[("static_part", "model.rate", str(at), str(at + 1)) for at in range(3)]
    )
    assert "Keep the structure" in fix(*[("added", "x", "", "")] * 3)


def test_where_all_are_single_operations_they_are_called_all():
    single = tiny(20, op_by_op=True)
    assert ", all of them single operations" in only("many_tiny_jits", *single).message
    assert ", 20 of them single operations" in only("many_tiny_jits", made.compiled("g", operations=4), *single).message


def test_the_rate_in_a_sentence_is_the_rate_of_the_loop():
    """To record the lines of a brief iteration takes about as long as the iteration."""
    lines = [*loop(CALL), timed(1_000, 8e-6, at88=1.0)]
    counted = made.iterations(0, [9.0], counts=[2_000_000], found_by="number")
    assert "compiled functions (an iteration takes 4.5 µs)" in only("dispatch_bound", *lines, counted).message
    assert "an iteration takes" not in only("dispatch_bound", *lines).message, "unknown"


@pytest.mark.parametrize(
    ("loops", "where"),
    [([(33, "step", 1.9)], 33), ([(33, "other", 1.9)], 20), ([(33, "step", 0.9)], 20)],
    ids=["the loop", "a loop of another function", "less than half of its tracing"],
)
def test_large_program_names_the_loop_that_is_unrolled(loops, where):
    said = only("large_program", *unrolled(*loops))
    assert said.where.line == where
    assert ("unrolls the loop at train.py:33" in said.message) is (where == 33)


@pytest.mark.parametrize(
    ("checksum", "value", "is_said"),
    [(7, None, True), (8, None, False), (None, None, False), (7, "3", False)],
    ids=["another object", "another program", "unknown", "another value"],
)
def test_one_program_made_again_for_another_static_object(checksum, value, is_said):
    changed = made.reason("static_argument", "f", value or "PjitFunction", "4" if value else "PjitFunction")
    first = made.compiled(checksum=7, signature=[made.leaf("f", value or "PjitFunction", static=True)])
    again = made.compiled(
        reason_code="static_argument",
        reasons=[changed],
        checksum=checksum,
        compile_seconds=0.5,
        signature=[made.leaf("f", "4" if value else "PjitFunction", static=True)],
    )
    assert ("static_argument_varies" in codes(first, again)) is is_said


@pytest.mark.parametrize(("operations", "is_unrolled"), [(600, True), (300, False)])
def test_loop_is_unrolled_where_operations_account_for_it(operations, is_unrolled):
    """Tracing takes two seconds, all of them in a loop: of operations, or of Python that adds none."""
    line = made.line(22, 1.9, "trace", "nodes()")
    loops = below("unrolled", 1.9, 17, "step").statements
    sampled = made.sampled(0, 10.0, {"trace": 2.0, "device_busy": 8.0}, [line])
    compiled = made.compiled(trace_seconds=2.0, operations=operations)
    said = only("slow_tracing", compiled, replace(sampled, statements=loops))
    assert ("unrolls the loop at train.py:17" in said.message) is is_unrolled
    assert (said.where.line, "lax.scan" in said.fix) == ((17, True) if is_unrolled else (22, False))


@pytest.mark.parametrize(
    ("operations", "shares", "words"),
    [
        (2_900, {"L5": 0.18, "L6": 0.1}, "may need its size"),
        (2_900, {"L5": 0.5}, "same ones over and over"),
        (2_900, {}, "same ones over and over"),
        (60_000, {"L5": 0.18}, "same ones over and over"),
    ],
    ids=["spread", "of one line", "unknown", "huge"],
)
def test_large_program_fix_follows_from_its_lines(operations, shares, words):
    one = only("large_program", *large(operations, 4.0, made_by=from_lines(**shares)))
    assert words in one.fix


@pytest.mark.parametrize(("count", "through", "fix"), [(12, "", True), (3, "", False), (12, "flows", False)])
def test_tiny_programs_of_many_shapes_need_no_jit(count, through, fix):
    each = {"trace_seconds": 0.1, "operations": 1, "through": through, "called_from": made.at(40, "report")}
    rows = [single("select", **each), *(single("select", reason_code="shape", **each) for _ in range(count))]
    one = only("many_tiny_jits", *rows, *tiny(20, trace_seconds=0.1, through=through))
    assert ("jnp.where" in one.fix) is fix


def test_lines_of_a_library_are_named_after_the_users():
    theirs = e.LineOperations(file="/venv/lib/site-packages/layers/dense.py", line=5, name="sin", share=0.9)
    where = only("large_program", *large(60_000, 4.0, made_by=[theirs])).places
    assert (where[0].short(made.FOLDER), where[-1].file) == ("train.py:20", theirs.file)


@pytest.mark.parametrize(("share", "where"), [(0.6, "model.py:5"), (0.06, "train.py:20")], ids=["most", "few of many"])
def test_large_program_names_the_line_of_its_operations(share, where):
    said = only("large_program", *large(60_000, 4.0, made_by=from_lines(L5=share)))
    assert said.where.short(made.FOLDER) == where
    assert ("they are from model.py:5 (60 %)" in said.message) is (share == 0.6)


@pytest.mark.parametrize("stage", ["compile", ""], ids=["compiles", "sleeps"])
def test_standstill_in_a_compile_leads_to_what_is_known(stage):
    stands = made.stands(60.0, until=63.0, stage=stage, function="step", stage_seconds=60.0)
    found = made.result(*(unfinished(60) if stage else [ended(137)]), stands, wall=62.0).findings
    about = [one for one in found if one.code in ("standstill", "unfinished_compile")]
    assert [one.code for one in about] == ["standstill", "unfinished_compile"][: 2 if stage else 1]
    assert ("See unfinished_compile" in about[0].fix) is bool(stage)
    assert (about[0].seconds is None) is bool(stage), "no second is in two findings"


def test_unfinished_tracing_names_the_loop_that_it_unrolls():
    *events, _ = unfinished(30, stage="trace", then="trace")
    events = [replace(each, states={"trace": 1.0}) if isinstance(each, e.ProgramSampled) else each for each in events]
    in_loop = replace(below("unrolled", 20.0, 33, "step"), samples=100)
    [said] = [one for one in made.result(*events, in_loop, wall=None).findings if one.code == "unfinished_compile"]
    assert said.message.startswith("tracing `step` had taken 40.0 s, since 2.00 s after the start")
    assert said.message.endswith("; tracing unrolls the loop at train.py:33")
    assert said.where.short(made.FOLDER) == "train.py:33"
    assert "lax.scan" in said.fix


@pytest.mark.parametrize(("outside_jit", "advised"), [(True, "in one function under jax.jit"), (False, "Make it once")])
def test_a_loop_outside_any_jit_is_put_under_one(outside_jit, advised):
    more = {"op_by_op": True, "library": True} if outside_jit else {}
    assert advised in only("recompile_in_loop", *again("new_function", 3, function="scan", **more)).fix


def test_the_missing_cache_names_what_takes_longest_to_compile():
    rows = [made.compiled(name, compile_seconds=took, cache="off") for name, took in [("init", 1.0), ("step", 3.0)]]
    assert only("cache_off", *rows).message.endswith("75 % of them for `step`")


def test_standstill_after_compilations_begins_with_the_last_one():
    said = only(
        "standstill", made.compiled(monotonic_seconds=made.BEGAN + 25), made.stands(30.0), ended(130, wall_seconds=50.0)
    )
    assert said.message.startswith("it stood still since the compilation after step 188 (25.0 s) at")


def test_unfinished_compile_ends_with_another_state():
    assert "unfinished_compile" in codes(*unfinished(60))
    assert "unfinished_compile" not in codes(*unfinished(60, then="device_busy"))
    assert "unfinished_compile" not in codes(*unfinished(60)[:-1], made.compiled(), ended(137, ""))


@pytest.mark.parametrize(("operations", "where"), [(25_000, "model.py:5"), (40, "train.py:20")])
def test_unfinished_compile_names_lines_of_large_programs(operations, where):
    said = only("unfinished_compile", *unfinished(30, operations=operations, made_by=from_lines(L5=0.7)))
    assert said.where.short(made.FOLDER) == where
    assert ("they are from model.py:5 (70 %)" in said.message) is ("lax.scan" in said.fix) is (operations > 1_000)


ALARM = "E1129 13:31:05.284887   13404 slow_operation_alarm.cc:73] Constant folding an instruction is taking > 1s:"
FOLDED = '  %sin.7 = f32[9]{0} sine(%constant.4), metadata={op_name="jit(step)/sin" stack_frame_id=2}'
OVER = "E1129 13:32:05.284887   13404 slow_operation_alarm.cc:141] The operation took 60.1s"
FOLDS = "in the pass constant_folding, which computes the sin at model.py:5"


@pytest.mark.parametrize(
    ("log", "doing", "tried"),
    [
        ([], "the pass is unknown", ""),
        ([ALARM, "", FOLDED], FOLDS, "slow_constant_folding"),
        ([ALARM, FOLDED, OVER, "Constant folding an instruction is taking > 1s:", FOLDED], "the pass is unknown", ""),
        ([ALARM, FOLDED.replace("step", "loss")], "the pass is unknown", ""),
        ([XLA + MODULE, XLA + "HLO pass dce", XLA + "HLO pass cse"], "in the pass cse", ""),
        ([XLA + MODULE, XLA + "HLO pass autotuner"], "in the pass autotuner", "slow_autotuning"),
        ([XLA + MODULE.replace("step", "loss"), XLA + "HLO pass dce"], "the pass is unknown", ""),
        (
            [XLA + MODULE, XLA + "HLO pass dce", XLA + "HLO pass: [redacted] time: 2 us (2 us)"],
            "past its passes, in code generation",
            "slow_llvm",
        ),
        ([XLA.replace("21841", "1") + MODULE, XLA + "HLO pass dce"], "past its passes", "slow_llvm"),
    ],
)  # fmt: skip
def test_unfinished_compile_is_in_the_pass_that_xla_names(log, doing, tried):
    said = only("unfinished_compile", *unfinished(30, *log, operations=40, made_by=from_lines(L5=0.7)))
    assert doing in said.message
    assert f"--try {tried or 'nothing'}" in said.fix or (not tried and "--try" not in said.fix)
    assert ("TF_CPP_VMODULE" in said.fix) is ("unknown" in doing)


def test_unfinished_compile_has_no_pass_where_the_output_is_cut():
    cut = e.WarningRaised(run=made.RUN, code="output_cut", message="")
    said = only("unfinished_compile", *unfinished(30, XLA + MODULE, XLA + "HLO pass dce"), cut)
    assert "the pass is unknown" in said.message


def test_shapes_far_apart_are_padded_to_powers_of_two():
    assert "3 compilations instead of 11" in only("varying_shapes", *sized(range(7, 18))).fix


@pytest.mark.parametrize(
    ("saves", "samples", "worth"),
    [(0.6, 60, True), (0.4, 200, False), (0.6, 6, False)],
    ids=["enough", "little, and surely", "enough, by a few samples"],
)
def test_finding_saves_a_twentieth_of_the_loop_at_least(saves, samples, worth):
    """The loop takes ten seconds, of which there are a thousand samples."""
    assert Claims(made.result(*loop(SORT))).worth(saves, samples) is worth


def test_a_short_clean_program_has_no_finding():
    inside = [made.compiled(), *made.steady(10, {"device_busy": 0.9, "host_busy": 0.1}), made.steps(500, 0.02)]
    assert codes(*inside, *made.arrays([50] * 10)) == []


def test_a_place_that_is_nowhere_is_none():
    finding = Finding("it ended", (e.NOWHERE, made.at(88), made.at(91)), code="program_failed")
    assert finding.where == made.at(88)
    assert finding.others == (made.at(91),)
    assert Finding("it ended", (e.NOWHERE,), code="program_failed").where is None


def test_after_a_signal_the_line_of_the_last_samples_is_named():
    crashed = e.RunFinished(run=made.RUN, status="crashed", error="crashed with SIGSEGV")
    session = fold(made.HEADER, [*made.program(*loop(SYNC), ended(139, ""))[:-3], crashed])
    (failed, _) = program_result(session, made.RUN).findings
    assert (failed.code, failed.where) == ("program_failed", made.at(88))


def test_reading_a_value_belongs_to_waiting_for_it():
    """`np.asarray(step(x))` waits, and then it runs: both are the price of having the value on the host."""
    waits = made.line(91, 0.5, "device_busy", "np.asarray()", kind="read")
    runs = made.line(91, 0.15, "host_busy", "np.asarray()", kind="read")
    assert codes(*loop(waits, runs)) == ["host_sync"]
    assert codes(*loop(runs)) == ["host_work"]
    assert codes(*loop({**waits, "seconds": 0.02}, {**runs, "seconds": 0.3})) == ["host_work"]


@pytest.mark.parametrize(("waits", "reported"), [(0.7, []), (0.1, ["host_work"])])
def test_the_end_of_a_wait_for_the_device_is_no_host_work(waits, reported):
    """In a coroutine, whose lines have no times, the wait itself is no finding."""
    read = {"call": "np.asarray()", "kind": "read"}
    spots = (made.line(91, waits, "device_busy", **read), made.line(91, 0.15, "host_busy", **read))
    assert codes(*loop(*spots), timed(40, 0.25)) == reported


@pytest.mark.parametrize(("calls", "reported"), [(0.3, ["dispatch_bound"]), (0.26, [])])
def test_calls_are_reported_where_no_part_is_known_to_be_larger(calls, reported):
    """Half of the loop's time is unknown, so that nothing is known to bound it."""
    unseen = made.line(95, 0.45, "host_busy", kind="unseen")
    inside = loop(made.line(88, calls, "host_busy", "step", kind="call"), unseen)
    assert made.result(*inside).verdict.kind is None
    assert codes(*inside) == reported


def test_faults_precede_what_saves_most():
    on = changed(loop(SORT), e.ProgramSampled, profiled_seconds=1.0, debug_settings=["jax_debug_nans"])
    assert codes(*on) == ["debug_settings", "profiler_on", "data_waits"]


@pytest.mark.parametrize(("each", "left"), [(0.01, 4.0), (0.1, 3.0)])
def test_savings_are_limited_to_time_beside_the_device(each, left):
    """The device takes 6 s of 10; in long iterations, whose calls do not return at once, also the second of calls."""
    waits, prepares = {**SYNC, "seconds": 0.6}, {**SORT, "seconds": 0.3}
    iterations = timed(100, each, at91=0.6, at86=0.3, at88=0.1)
    every = found(*loop(waits, prepares), iterations)
    assert sorted(one.code for one in every) == ["data_waits", "host_sync"]
    assert sum(one.saves_seconds or 0.0 for one in every) == pytest.approx(left, rel=1e-3)
    (alone,) = found(*loop(prepares), replace(iterations, lines=iterations.lines[1:]))
    assert alone.saves_seconds == pytest.approx(3.0)


def test_what_a_loop_compiles_is_saved_once():
    """Of 10 s, 4 go to compilations and 3 to a value that the device makes: nothing else of the loop saves more than
    the other 3."""
    compiles = made.line(88, 0.4, "compile", "step", kind="compile")
    every = found(*again("new_function", 40), *loop({**SYNC, "seconds": 0.3}, {**SORT, "seconds": 0.2}, compiles))
    assert sorted(one.code for one in every) == ["data_waits", "host_sync", "recompile_in_loop"]
    assert sum(one.saves_seconds or 0.0 for one in every) == pytest.approx(7.0)


def test_findings_are_by_saving_and_count_no_second_twice():
    inside = [*made.shaped(30), *again("new_function", 3), *eager(), *loop(BUSY, {**SYNC, "seconds": 0.2})]
    every = found(*inside)
    saved = [one.saves_seconds or 0.0 for one in every]
    assert saved == sorted(saved, reverse=True)
    assert len(every) == 4
    compiled = sum(0.1 for event in inside if isinstance(event, e.Compiled) and event.reason_code != "first")
    assert sum(one.seconds or 0.0 for one in every) == pytest.approx(compiled + 0.3 + 5.0 + 2.0)


def test_a_function_beside_the_step_in_its_line_is_host_work():
    """`state = step(state); book(i)`: the Python of `book`, whose loop stands in one line, does not lead into JAX."""
    books = made.line(8, 0.6, "host_busy", function="book", under=88)
    own = {**asdict(made.at(8, "book")), "call": "", "loop_line": 8, "last_line": 8}
    books["at"] = [own, *books["at"]]
    assert codes(*loop(books)) == ["host_work"]
    assert "goes to the device" not in only("host_work", *loop(books)).message, "JAX works in that line, too"
    assert made.result(*loop(books)).verdict.kind == "host-bound"
    assert made.result(*loop(made.line(88, 0.6, "host_busy"))).verdict.kind == "dispatch-bound"


@pytest.mark.parametrize(("lines", "delay", "found"), [((30, 31), 0.0, True), ((30,), 0.1, True), ((30,), 0.0, False)])
def test_thread_that_holds_the_lock_has_lines_and_waits(lines, delay, found):
    """It ran for a third of the loop's waits at each line; without a processor it keeps the lock."""
    threads = [
        e.ThreadTime(name="metrics", at=made.at(number), cpu_seconds=0.09, delay_seconds=delay, samples=20)
        for number in lines
    ]
    events = [replace(each, threads=threads) if isinstance(each, e.ProgramSampled) else each for each in held_by(0.9)]
    assert ("lock_held" in codes(*events)) is found


@pytest.mark.parametrize(
    ("names", "who"), [(["metrics"], "the thread metrics runs"), (["a", "b"], "the threads a, b run")]
)
def test_time_of_several_threads_is_not_said_to_be_of_one(names, who):
    threads = [e.ThreadTime(name=name, at=made.at(30), cpu_seconds=0.27 / len(names), samples=20) for name in names]
    events = [replace(each, threads=threads) if isinstance(each, e.ProgramSampled) else each for each in held_by(0.9)]
    assert f"{who} Python meanwhile: 2.7 s of CPU" in only("lock_held", *events).message


@pytest.mark.parametrize(("functions", "computes"), [(1, True), (10, False)])
def test_operations_are_held_against_their_own_tracing(functions, computes):
    """Ten functions that trace for two seconds together are not one of 100 operations that does."""
    seconds = {"trace_seconds": 2.0 / functions, "compile_seconds": 0.01, "operations": 100}
    rows = [made.compiled(f"f{number}", line=40 + number, **seconds) for number in range(functions)]
    fix = only("slow_tracing", *rows, *made.steady(10, {"trace": 0.2, "device_busy": 0.8})).fix
    assert ("compute what does not depend on the arguments once" in fix) is computes


def test_nothing_is_reported_of_a_loop_beside_another_thread():
    waits = [made.sampled(at, 1.0, {"waiting": 1.0}, [made.line(30, 1.0, "waiting", "q.put()")]) for at in range(10)]
    here = made.result(made.compiled(), *waits)
    there = made.result(made.compiled(thread="worker"), *waits)
    both = made.result(made.compiled(thread="worker"), *loop(SYNC))
    assert here.other_thread == both.other_thread == ""
    assert both.verdict.kind
    assert (there.verdict.kind, there.other_thread, there.findings) == (None, "worker", ())
    assert there.verdict.reason == "JAX works in worker, and only the main thread is sampled"


def test_fix_of_waits_for_decisions_is_to_decide_seldom():
    def advice(decided, fetched):
        waits = {"bool()": (91, decided), "float()": (93, fetched)}
        lines = [made.line(at, took, "device_busy", call, kind="sync") for call, (at, took) in waits.items()]
        return only("host_sync", *loop(*lines)).fix

    assert advice(0.2, 0.3) == advice(0.0, 0.5) != advice(0.3, 0.2)


@pytest.mark.parametrize(("narrowed", "conversion", "cast"), [("f64", " (converted from f64)", True), ("", "", False)])
def test_numpy_arguments_are_to_be_narrowed_once(narrowed, conversion, cast):
    leaf = e.SignatureLeaf(name="x", type="f32[1024,2048]", bytes=8 << 20, narrowed=narrowed)
    batch = made.compiled(numpy_bytes=8 << 20, signature=(leaf,), called_from=made.at(88))
    (fed,) = [one for one in found(batch, *loop(FED)) if one.code == "numpy_argument"]
    assert f"copies 8.00 MiB to the device at every call{conversion}: about" in fed.message
    assert ("x.astype(np.float32)" in (fed.fix or "")) is cast
