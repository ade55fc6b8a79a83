"""Annotated steps are of the device: planted profiles whose device times are known, and links that do not hold. How
often a program and an op ran: by run ids and by the host's calls. What the host did while a GPU
waited: each cause in a profile made by hand, and what is not claimed. Counters that lie in a profile: sampled power and
performance counters of a device, allocators' bytes of a host."""

import numpy as np
import pytest
from made_traces import US, async_loop, host, module_plane, on_cpu, on_gpu, op, read
from xplane_wire import Event, Line, Plane

from jaxprof.trace.executions import executions_on
from jaxprof.trace.intervals import Coverage
from jaxprof.trace.steps import steps_of
from jaxprof.trace.summary import op_executions, op_times
from tables import rows


def milliseconds(steps):
    return [round(row.seconds * 1e3, 4) for row in steps.rows]


def test_gpu_step_is_what_the_outer_annotation_launched():
    steps = steps_of(read(*async_loop()))
    assert steps.found_by == "annotation"
    assert milliseconds(steps) == [10.0] * 12
    assert steps.outside_seconds == 0
    assert [row.name for row in steps.rows[:2]] == ["train 0", "train 1"]
    assert [row.to_next for row in steps.rows] == [True] * 11 + [False]
    waiting = steps_of(read(*async_loop(host_us=20_000, device_us=8_000, steps=1)))
    assert milliseconds(waiting) == [20.0]  # the annotation holds all that it launched


def test_what_no_annotation_launched_is_in_no_step():
    steps = steps_of(read(*async_loop(outside=40_000)))
    assert milliseconds(steps) == [10.0] * 12
    assert steps.outside_seconds == pytest.approx(0.04)


def test_without_a_link_the_profile_is_one_step():
    steps = steps_of(read(*async_loop(correlated=False)))
    assert (steps.found_by, steps.unlinked) == ("whole", {"gpu:0": 12})


def test_step_includes_launches_of_other_threads():
    device, threads = async_loop()
    threads.lines[1].id = 43  # type: ignore[attr-defined]
    assert milliseconds(steps_of(read(device, threads))) == [10.0] * 12


def cpu(calls, *, late=0.0, named="step"):
    """Twelve calls of 7 us, each annotated, and their executions of 366 us on a thread of the runtime."""
    marks = [host("train", 10 * step, 7, step_num=step) for step in range(12)]
    ops = [op("dot", 20 + late + 366 * step, 366, run_id=-step - 1, module=f"jit_{named}") for step in range(12)]
    lines = [Line("python", [*marks, *calls], id=5), Line("tf_XLAPjRtCpuClient/1", ops, id=6)]
    return steps_of(read(Plane("/host:CPU", lines)))


def jit_calls(count, name="step", start=1):
    return [host(f"PjitFunction({name})", start + 10 * step, 5) for step in range(count)]


def test_a_cpus_executions_belong_to_the_calls_in_their_order():
    steps = cpu(jit_calls(12))
    assert steps.found_by == "annotation"
    assert steps.total == 12
    assert milliseconds(steps) == [0.366] * 12
    for module in ("_lambda_", "_lambda"):
        assert cpu(jit_calls(12, "<lambda>"), named=module).found_by == "annotation"


@pytest.mark.parametrize(
    ("calls", "late"),
    [(jit_calls(11), 0.0), (jit_calls(12, "other"), 0.0), ([], 0.0), (jit_calls(12, start=3), -18.0)],
    ids=["fewer calls than executions", "calls of another function", "no calls", "an execution before its call"],
)
def test_calls_that_do_not_fit_the_executions_are_no_link(calls, late):
    steps = cpu(calls, late=late)
    assert (steps.found_by, steps.unlinked) == ("modules", {"cpu:0": 12})
    assert set(milliseconds(steps)) == {0.366}


def test_a_tpus_steps_are_in_its_own_clock():
    """The converted clock is late by 100 us from the second execution on, and back again at the fourth."""
    late, metadata = [0, 100, 100, 0], {"%dot = f32[] dot()": {"program_id": 9}}
    ops, modules = [], []
    for step, more in enumerate(late):
        own = {"device_offset_ps": 784_000_000 * step, "device_duration_ps": 783_000_000}
        ops.append(host("%dot = f32[] dot()", 5000 + 784 * step + more, 783, **own))
        modules.append(host("jit_f(9)", 5000 + 784 * step + more, 783))
    lines = [Line("XLA Ops", ops), Line("XLA Modules", modules, id=2)]
    plane = Plane("/device:TPU:0", lines, metadata=metadata, display={"%dot = f32[] dot()": "dot"})
    steps = steps_of(read(plane))
    assert milliseconds(steps) == [0.784, 0.784, 0.784, 0.783]
    assert [row.parts.launch_gaps for row in steps.rows] == [0] * 4


def exposed(*modules, names=("dot", "psum.14", "fusion.2", "ppermute")):
    """Share of the steps in collectives beside which nothing ran: of 4 ops of 10, 45, 13 and 32 us."""
    lengths, at, ops = (10, 45, 13, 32), 0, []
    for step in range(4):
        for name, length in zip(names, lengths, strict=True):
            ops.append(op(name, at, length, run_id=step + 1))
            at += length
    steps = steps_of(read(Plane("/host:CPU", [Line("tf_XLAPjRtCpuClient/1", ops)]), *modules))
    return round(sum(row.parts.collectives_exposed for row in steps.rows) / sum(row.seconds for row in steps.rows), 4)


def test_collectives_are_known_by_their_opcode_in_the_module():
    rest = [("dot", "dot"), ("fusion.2", "fusion")]
    both = module_plane(7, ("psum.14", "all-reduce"), ("ppermute", "collective-permute"), *rest)
    assert exposed(both) == 0.77
    other = module_plane(7, ("psum.14", "add"), ("ppermute", "custom-call"), *rest)
    assert exposed(other) == 0  # the names are those of the user's functions
    held = module_plane(
        7, ("psum.14", "fusion"), *rest, called={"psum.14": ("all-reduce",), "fusion.2": ("dot", "all-reduce")}
    )
    assert exposed(held) == 0.45  # a product beside a collective is a kernel


def test_asynchronous_pairs_that_hold_a_collective():
    names = ("a", "b", "c", "d")
    pairs = [("a", "async-start"), ("b", "async-done"), ("c", "async-start"), ("d", "async-done")]
    module = module_plane(7, *pairs, called={"a": ("reduce-scatter",), "c": ("dynamic-slice",)})
    assert exposed(module, names=names) == 0.55


def test_nccl_kernels_are_collectives():
    def of(kernel):
        steps = steps_of(read(on_gpu(*(op("custom-call", 10 * at, 10, kernel=kernel) for at in range(4)))))
        return sum(row.parts.collectives_exposed for row in steps.rows)

    assert of("ncclDevKernel_AllReduce_Sum_f32") == pytest.approx(40e-6)
    assert of("my_nccl_collective_reference") == 0


RAN = {
    # what ran how often, and on each thread the ops with start, microseconds and run id
    "a sort is a copy and a sort, and ran once a call": (
        "dot 2, sort 2",
        "dot 0 5 1, sort 5 1 1, sort 7 30 1, dot 100 5 2, sort 105 1 2, sort 107 30 2",
    ),
    "parts on several threads are one execution": ("dot 2", "dot 0 10 1, dot 50 10 2", "dot 2 10 1, dot 58 4 2"),
    "iterations of a loop are executions of its body": (
        "while 1, sort 3, add 3",
        "while 0 100 1, sort 2 1 1, sort 4 9 1, add 14 1 1, sort 22 1 1, sort 24 9 1, add 34 1 1, "
        "sort 42 1 1, sort 44 9 1, add 54 1 1",
    ),
    "of a loop with one op every slice is an iteration": (
        "while 1, fusion 3",
        "while 0 100 1, fusion 2 9 1, fusion 22 9 1, fusion 42 9 1",
    ),
    "a loop goes on in another thread, without the while around it": (
        "while 1, dot 4, tanh 4",
        "while 0 20 1, dot 2 9 1, tanh 12 8 1, dot 90 9 1, tanh 100 2 1",
        "dot 30 9 1, tanh 40 9 1, dot 50 9 1, tanh 60 9 1",
    ),
    "a sort that goes on in another thread": (
        "while 1, sort 3, add 3",
        "while 0 20 1, sort 2 1 1, sort 4 9 1, add 14 1 1",
        "sort 22 1 1, sort 24 9 1, add 34 1 1, sort 42 1 1, sort 44 9 1, add 54 1 1",
    ),
    "parts of an iteration that overlap are one": (
        "while 1, dot 3, add 3",
        "while 0 100 1, dot 2 9 1, add 14 1 1, dot 22 9 1, add 34 1 1, dot 42 9 1, add 54 1 1",
        "dot 4 9 1, dot 24 9 1, dot 44 9 1",
    ),
    "without run ids every slice is counted": ("dot 3", "dot 0 1, dot 5 1, dot 9 1"),
}


@pytest.mark.parametrize("name", RAN)
def test_how_often_an_op_ran(name):
    expected, *threads = (text.split(", ") for text in RAN[name])
    lines = []
    for number, thread in enumerate(threads):
        ran = [(name, *map(int, figures)) for name, *figures in map(str.split, thread)]
        events = [op(name, start, took, **({"run_id": run[0]} if run else {})) for name, start, took, *run in ran]
        lines.append(Line(str(number), events))
    rows = {row.name: row for row in op_times(read(Plane("/host:CPU", lines)))}
    assert {f"{name} {row.count}" for name, row in rows.items()} == set(expected)
    if "while" not in rows and "sort" in rows:
        assert (rows["sort"].median_seconds, rows["sort"].maximum_seconds) == pytest.approx((31e-6, 31e-6))


def test_the_hlo_says_how_often_a_sort_ran():
    """Another op runs between its parts, and two slices have none between them."""
    ran = [op(name, 10 * at, 2, run_id=1) for at, name in enumerate(["sort", "add", "sort", "sort", "add", "sort"])]
    hlo = [module_plane(7, ("sort", opcode), ("add", "add")) for opcode in ("sort", "add")]
    for planes, expected in (([hlo[0]], 1), ([hlo[1]], 1), ([], 3)):
        rows = {row.name: row for row in op_times(read(on_cpu(t=ran), *planes))}
        assert (rows["sort"].count, rows["add"].count) == (expected, 2), expected


OFTEN = [
    # how often it runs, whether it is a sort, and the executions of four slices of which the middle two are neighbours
    (2, True, [0, 0, 1, 1]),
    (2, False, [0, 0, 1, 1]),
    (4, True, [0, 1, 2, 3]),
    (3, True, [0, 1, 1, 2]),
    (0, True, [0, 1, 1, 2]),
    (0, False, [0, 1, 2, 3]),
]


@pytest.mark.parametrize(("often", "is_sort", "expected"), OFTEN)
def test_slices_are_divided_by_how_often_an_op_runs(often, is_sort, expected):
    """What does not divide them belongs to a run that the profile has in part."""
    op, starts = np.array([0, 1, 0, 0, 1, 0]), np.arange(0, 60, 10)
    one = np.ones(6, np.int64)
    found = op_executions(
        one, one, op, starts, starts + 5, lambda ops: (np.array([often, 0]), np.array([is_sort, False])), one > 0
    )
    assert found[op == 0].tolist() == expected
    assert len({*found[op == 1].tolist()}) == 2


def test_slices_that_are_known_to_lie_apart_are_found_the_same():
    random = np.random.default_rng(4)
    for ops in (np.arange(60) % 3, random.integers(0, 3, 60)):
        runs, starts, asked = (
            random.integers(1, 4, 60),
            np.arange(0, 600, 10),
            (np.array([5, 0, 3]), np.array([True] * 3)),
        )
        found = [
            op_executions(np.zeros(60, np.int64), runs, ops, starts, starts + 5, lambda _, asked=asked: asked, apart)
            for apart in (np.ones(3, np.bool_), np.zeros(3, np.bool_))
        ]
        assert (
            len(set(zip(*(each.tolist() for each in found), strict=True))) == found[0].max() + 1 == found[1].max() + 1
        )


class TestOpsOnThreads:
    def test_equal_run_ids_of_two_programs_are_two_runs(self):
        events = [op("dot", 0, 5, run_id=3), op("dot", 9, 5, run_id=3, module="jit_g", program=8)]
        rows = op_times(read(on_cpu(t=events)))
        assert [(row.module, row.count) for row in rows] == [("jit_f", 1), ("jit_g", 1)]

    @pytest.mark.parametrize("ids", [[5], [300, 300, 301], [-1, -1, -2, 4], [-2_000_000_000, -1_999_999_999, 1 << 40]])
    def test_runs_have_the_ids_that_events_name(self, ids):
        runs = [ids[number // 7 % len(ids)] for number in range(60)]
        lanes = read(on_cpu(t=[op("dot", 9 * number, 5, run_id=run) for number, run in enumerate(runs)])).op_lanes()
        assert [number for lane in lanes for number in lane.executions.tolist()] == runs

    def test_numbers_count_up_and_far_times_do_not_matter(self):
        for seed in range(20):
            random = np.random.default_rng(seed)
            count = random.integers(1, 13)
            runs, ops = random.integers(0, 3, (2, count))
            starts, by_hlo = random.integers(0, 51, count), (np.array([2, 0, 3]), random.random(3) < 0.5)
            program, no = np.zeros(count, np.int64), np.zeros(3, np.bool_)
            near = op_executions(program, runs, ops, starts, starts + 5, lambda _, by_hlo=by_hlo: by_hlo, no)
            assert sorted(set(near.tolist())) == list(range(int(near.max()) + 1)), seed
            far = op_executions(
                program, runs, ops, starts << 55, (starts + 5) << 55, lambda _, by_hlo=by_hlo: by_hlo, no
            )
            assert far.tolist() == near.tolist(), seed


def gpu(kernels, *hosts):
    """Executions of the program that took the longest: begin and end in microseconds."""
    found = executions_on(read(on_gpu(*kernels), Plane("/host:CPU", hosts)), "gpu:0")[0]
    return list(zip((found.starts // US).tolist(), (found.ends // US).tolist(), strict=True))


class TestProgramsOnGpus:
    def test_the_calls_of_the_host_tell_executions_of_one_op_apart(self):
        kernels = [op("gemm", 100 + 10 * n, 5, correlation_id=n) for n in range(6)]
        launches = [host("cuLaunchKernel", 5 + 10 * n, 2, correlation_id=n) for n in range(6)]
        called = [host("PjRtStreamExecutorLoadedExecutable::Execute", 20 * n, 18) for n in range(3)]
        hosts = [Line("Host Threads/7", launches, id=7), Line("python", called, id=7)]
        assert gpu(kernels, *hosts) == [(100, 115), (120, 135), (140, 155)]
        assert not executions_on(read(on_gpu(*kernels)), "gpu:0")


def test_samples_of_counters_are_no_lane():
    events = [Event("HBM FW Power Meter PL2(W)", 1_000_000, 0, {"power": 312.5})]
    trace = read(Plane("/device:TPU:1", [Line("_counters_", events)]))
    assert not trace.lanes
    assert not trace.problems


def test_the_bytes_of_an_allocator():
    marks = [
        host("MemoryAllocation", 1, 0, bytes_allocated=64, allocator_name="GPU_0_bfc"),
        host("MemoryDeallocation", 2, 0, bytes_allocated=0, allocator_name="GPU_0_bfc"),
    ]
    trace = read(on_cpu(python=marks))
    trace.read_rest()
    (counter,) = trace.counters
    assert (counter.device, counter.name, counter.unit) == ("host", "GPU_0_bfc allocated", "bytes")
    assert counter.values.tolist() == [64.0, 0.0]


STEPS = 4


def device():
    """Four steps of 100 µs, of which the device works for the first 60."""
    ops = [op("fusion", 100 * step, 60, correlation_id=step + 1) for step in range(STEPS)]
    marks = [host(str(step), 100 * step, 100) for step in range(STEPS)]
    return on_gpu(*ops, lines=[Line("Steps", marks, id=2)])


def thread(*events):
    """A host thread with these events in each step."""
    return Line(
        "python", [host(name, 100 * step + start, length) for step in range(STEPS) for name, start, length in events]
    )


def causes(*lines, more=None):
    """Microseconds of each cause in a step, with the name."""
    planes = [device(), Plane("/host:CPU", [*lines, Line("other", more or [])])]
    (found,) = [each for each in steps_of(read(*planes)).devices if each.device == "gpu:0"]
    return {cause.cause: (round(cause.seconds / STEPS * 1e6, 3), cause.name) for cause in found.idle_causes}


@pytest.mark.parametrize(
    ("events", "expected"),
    rows("""
        backend_compile_and_load 60 40   compile 40
        DevicePut 60 40                  copy 40
        np.asarray(jax.Array) 60 40      copy 40
        PjitFunction(step) 60 40         launch 40
        BlockHostUntilReady 60 40        wait 40
        # while the device worked
        PjitFunction(step) 0 60          unknown 40
        # names of the program's own are no cause of JAX's
        ExecuteOrder 60 40               host 40 ExecuteOrder
        $re.py:226 compile 60 40         host 40 $re.py:226 compile
        MemcpyBenchmark 60 40            host 40 MemcpyBenchmark
        SlinkyThreadPool::Await 60 40    host 40 SlinkyThreadPool::Await
        LaunchKernelAnalysis 60 40       host 40 LaunchKernelAnalysis
        my PjitFunction(step) 60 40      host 40 my PjitFunction(step)
        # a call that waits waits; a moment has one cause, and all of them add up
        PjitFunction(step) 60 40, hipStreamSynchronize 70 30              wait 30, launch 10
        PjitFunction(step) 60 30, backend_compile 65 10, DevicePut 72 10  compile 10, copy 7, launch 13, unknown 10
        # work of the host is named by what holds most of it
        main 0 100, load_batch 61 38, $numpy.py:3 stack 70 5              host 40 load_batch
        one 60 15, two 75 15                                              unknown 40
        # a function without a line is named with the one that calls it
        $a.py:9 main 0 100, $a.py:3 load 61 38, $time sleep 62 36         host 40 $time sleep in $a.py:3 load
    """),
)
def test_what_the_host_did_while_the_device_waited(events, expected):
    """Each event with its begin and length in a step; each cause with its microseconds and a name."""
    placed = [event.rsplit(" ", 2) for event in events.split(", ")]
    found = causes(thread(*((name, int(start), int(length)) for name, start, length in placed)))
    told = {f"{cause} {microseconds:g} {name}".strip() for cause, (microseconds, name) in found.items()}
    assert told == set(expected.split(", "))


def test_what_the_runtimes_own_threads_do_is_no_cause():
    task = thread(("BufferSequencingEvent::Execute", 60, 40), ("DevicePut", 60, 40))
    task.name = "tf_pjrt_thread_pool/7"
    assert causes(thread(("PjitFunction(step)", 0, 10)), task) == {"unknown": (40, "")}
    call = thread(("PjitFunction(step)", 60, 40), ("BufferSequencingEvent::ExecuteOrAddToFutureTasks", 65, 33))
    assert causes(call) == {"launch": (7, ""), "host": (33, "BufferSequencingEvent::ExecuteOrAddToFutureTasks")}


def test_after_its_launch_a_kernel_waits_for_no_host():
    """The host prepares a batch meanwhile, which keeps nobody waiting."""
    launches = [host("cuLaunchKernel", 100 * step - 15, 1, correlation_id=step + 1) for step in range(1, STEPS)]
    found = causes(thread(("load_batch", 60, 40), ("PjitFunction(step)", 80, 5)), more=launches)
    assert found == {"launch": (16.25, ""), "host": (23.75, "load_batch")}  # the last one is launched by nobody


@pytest.mark.parametrize(
    ("events", "complete", "expected"),
    rows("""
        load_batch 63 32, PjitFunction(f) 95 3            60  wait 3, host 32 load_batch, launch 5
        PjitFunction(f) 95 3                              60  wait 3, unknown 32, launch 5
        # back to back
        PjitFunction(f) 63 35                             60  wait 3, launch 37
        # what is not recorded may have run until then
        load_batch 63 32, PjitFunction(f) 95 3            90  -
        # nothing called a program after the pause: it was called before
        load_batch 63 32, PjitFunction(f) 10 3            60  -
    """),
)
def test_cpu_is_idle_from_an_execution_to_the_next_call(events, complete, expected):
    """The wait ends 2 µs after the execution is complete."""

    def found(devices):
        ops = [
            op("fusion", 100 * step + at, 60 - at, run_id=step + 1, device_ordinal=at)
            for step in range(STEPS)
            for at in range(devices)
        ]
        ends = [host("ThunkExecutor::Execute (wait for completion)", 100 * n + int(complete), 1) for n in range(STEPS)]
        placed = [event.rsplit(" ", 2) for event in events.split(", ")]
        python = thread(
            *((name, int(start), int(length)) for name, start, length in placed),
            ("CommonPjRtBuffer::Await", int(complete) + 2, 1),
        )
        (first, *_) = steps_of(read(Plane("/host:CPU", [Line("tf_XLAPjRtCpuClient/1", ops + ends), python]))).devices
        return {
            f"{cause.cause} {cause.seconds / (STEPS - 1) * 1e6:.0f} {cause.name}".strip() for cause in first.idle_causes
        }

    assert found(1) == set(filter(None, expected.split(", ")))
    assert not found(2)  # several devices share the threads


def test_a_tpu_has_a_clock_of_its_own():
    plane = Plane(
        "/device:TPU:0",
        [Line("XLA Ops", [op("f", 100 * n, 60) for n in range(4)]), Line("Steps", [host("1", 0, 400)], id=2)],
    )
    (found,) = steps_of(read(plane, Plane("/host:CPU", [thread(("DevicePut", 60, 40))]))).devices
    assert found.idle_causes == ()


@pytest.mark.parametrize("seed", range(3))
def test_intersection_and_difference_of_coverages(seed):
    random = np.random.default_rng(seed)

    def some():
        starts = random.integers(0, 60, random.integers(0, 8))
        return Coverage.of(starts, starts + random.integers(0, 12, len(starts)))

    def moments(covered):
        assert (covered.starts[1:] > covered.ends[:-1]).all()
        return {at for start, end in zip(covered.starts, covered.ends, strict=True) for at in range(start, end)}

    one, other = some(), some()
    assert moments(one & other) == moments(one) & moments(other)
    assert moments(one - other) == moments(one) - moments(other)
