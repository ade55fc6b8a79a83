"""The table of ops, the steps and the transfers of profiles that can be added up on paper. The tree of a compile:
nesting, threads that wait for each other, stages."""

from dataclasses import asdict

import numpy as np
import pytest
from made_traces import cpu_plane, gpu_planes, hosts, on_gpu, op, read, tpu_plane
from xplane_wire import Line, Plane

from jaxprof.analysis.kernels.measured import stage_times
from jaxprof.events import KernelLaunch
from jaxprof.trace.intervals import distinct, self_times, union_by_group
from jaxprof.trace.launch import copy_details, launch_details, transfers_of
from jaxprof.trace.passes import STAGES, compile_passes, stage_of
from jaxprof.trace.steps import steps_of
from jaxprof.trace.summary import op_times, seconds_without_op
from tables import rows

US = 1e-6


def table(trace):
    return {row.name: row for row in op_times(trace)}


def parts(trace):
    """The parts of the first step in microseconds, without those that are 0."""
    return {name: round(took / US, 6) for name, took in asdict(steps_of(trace).rows[0].parts).items() if took}


class TestCpu:
    def test_op_times_on_two_threads(self):
        rows = table(read(cpu_plane()))
        assert set(rows) == {"while.1", "dot", "add"}, "the ends of arrows and events of the pool are no ops"
        row = rows["dot"]
        assert (row.count, row.total_seconds, row.wall_seconds) == (1, pytest.approx(40 * US), pytest.approx(30 * US))
        assert row.median_seconds == row.minimum_seconds == row.maximum_seconds == pytest.approx(30 * US)
        assert row.total_seconds / row.wall_seconds == pytest.approx(40 / 30)

    def test_an_annotated_step_is_made_of_kernels_and_idle_time(self):
        steps = steps_of(read(cpu_plane()))
        (row,) = steps.rows
        assert steps.found_by == "annotation"
        assert row.name == "train 3"
        assert row.seconds == pytest.approx(60 * US)
        assert parts(read(cpu_plane())) == {"kernels": 50, "idle": 10}


class TestGpu:
    def test_streams_are_counted_and_derived_lines_are_not(self):
        row = table(read(*gpu_planes()))["fusion"]
        assert row.count == 3
        assert row.device == "gpu:0"
        assert row.kernels[0] == "cutlass_gemm"
        assert row.total_seconds == pytest.approx(55 * US)
        library = table(read(*gpu_planes()))["dot.1"]  # found by the correlation of its launch
        assert (library.total_seconds, library.kernels) == (pytest.approx(15 * US), ("ampere_sgemm",))
        assert seconds_without_op(read(*gpu_planes())) == pytest.approx({"gpu:0": 15 * US})

    def test_a_copy_has_direction_and_bytes(self):
        (copy,) = transfers_of(read(*gpu_planes()))
        assert (copy.direction, copy.device, copy.count, copy.bytes) == ("host to device", "gpu:0", 1, 4000)
        assert copy.total_seconds == pytest.approx(10 * US)

    def test_the_time_of_an_execution_without_a_kernel_is_a_gap(self):
        """10 to 95 µs: kernels 20 + 5 + 30 + 15; nothing from 35 to 40 and from 70 to 80."""
        assert steps_of(read(*gpu_planes())).found_by == "modules"
        assert parts(read(*gpu_planes())) == {"kernels": 70, "launch_gaps": 15}


class TestTpu:
    def test_parts_of_a_step(self):
        row = table(read(tpu_plane()))["fusion.1"]  # from the metadata, with a program id without sign
        assert (row.module, row.program, row.count) == ("jit_f", str((1 << 64) - 5), 2)
        first = steps_of(read(tpu_plane())).rows[0]
        assert first.seconds == pytest.approx(100 * US)
        of_the_step = {"kernels": 40, "collectives_exposed": 10, "transfers": 20, "launch_gaps": 10, "idle": 20}
        assert parts(read(tpu_plane())) == of_the_step
        assert first.collectives_overlapped_seconds == pytest.approx(20 * US)


class TestDetails:
    def test_amd(self):
        text = " grid:4096,1,1 block:256,1,1 private_mem:0 group_mem:16384 occ_pct:0"
        assert launch_details(text) == KernelLaunch(
            grid=(4096, 1, 1), block=(256, 1, 1), private_bytes=0, group_bytes=16384
        )

    @pytest.mark.parametrize(
        "text",
        ["", "garbage", "regs:-4 grid:1,2 block:0,0,0", "regs:99999999999999999999", "block:1024,1024,1 occ_pct:nan"],
    )
    def test_what_no_hardware_can_do_is_unknown(self, text):
        assert launch_details(text) is None

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("kind_src:device kind_dst:pinned size:8 dest:0 async:1", ("device to host", 8)),
            ("kind:Unknown size:0 dest:512 async:1", ("", None)),
            ("size:99999999999999999999999", ("", None)),
        ],
    )
    def test_copies(self, text, expected):
        assert copy_details(text) == expected


class TestArithmetic:
    """Against the plain way, on random intervals."""

    def test_unions(self):
        random = np.random.default_rng(1)
        starts, lengths = random.integers(0, 300, 200), random.integers(0, 40, 200)
        groups = random.integers(0, 5, 200)
        for number, found in enumerate(union_by_group(groups, starts, lengths, 5).tolist()):
            there = [(s, d) for s, d, g in zip(starts, lengths, groups, strict=True) if g == number]
            assert found == len({moment for s, d in there for moment in range(s, s + d)})

    def test_a_union_of_groups_that_do_not_fit_behind_each_other(self):
        far = 1 << 59
        groups, starts = np.array([0, 1, 1, 7]), np.array([0, 5, 10, far])
        assert union_by_group(groups, starts, np.array([4, 10, 10, 6]), 8).tolist() == [4, 15, 0, 0, 0, 0, 0, 6]

    def test_self_times_of_any_intervals(self):
        random = np.random.default_rng(7)
        for _ in range(200):
            starts, lengths = random.integers(0, 30, 12), random.integers(0, 20, 12)
            order = np.lexsort((-lengths, starts)).tolist()
            expected = np.zeros(12, np.int64)
            for moment in range(60):
                running = [index for index in order if starts[index] <= moment < starts[index] + lengths[index]]
                expected[running[-1:]] += 1
            assert self_times(starts, lengths).tolist() == expected.tolist()
        nothing = np.zeros(0, np.int64)
        assert self_times(nothing, nothing).tolist() == []

    @pytest.mark.parametrize("values", [[5, 3, 5], [-7, 1 << 60, -7]])
    def test_distinct_is_unique(self, values):
        found, which = distinct(np.array(values, np.int64))
        assert found.tolist() == sorted(set(values))
        assert found[which].tolist() == values


def compiled(*planes):
    python = Line("python", hosts("PjitFunction(f) 0 120, backend_compile_and_load 10 100"))
    compiler = Line(
        "tf_PjRtCompilerThreadPool/1",
        hosts(
            "PjRtCpuClient::Compile 20 80, HLO passes through layout assignment (jit_f) 22 30, "
            "algsimp 25 5, algsimp 32 5, some-new-pass 40 4, Codegen 60 30"
        ),
        id=2,
    )
    workers = [
        Line(f"tf_xla-cpu-codegen/{number}", hosts("FusionCompiler::Compile 62 20, CSEPass 65 5"), id=3 + number)
        for number in range(2)
    ]
    return compile_passes(read(Plane("/host:CPU", [python, compiler, *workers]), *planes))


def tree():
    return compiled().tree


def test_which_modules_were_compiled_and_whether_devices_waited():
    """From 10 to 110 µs; the device works until 30."""
    found = compiled(on_gpu(op("f", 0, 30)))
    assert [(each.module, each.count) for each in found.modules] == [("jit_f", 1)]
    assert found.modules[0].seconds == pytest.approx(100 * US)
    assert found.idle_seconds == pytest.approx(80 * US)
    assert compiled().idle_seconds is None  # no device that could wait


def node(of, *names):
    for name in names:
        (of,) = [child for child in of.children if child.name == name]
    return of


COMPILE = ("backend_compile_and_load", "PjRtCpuClient::Compile")


def test_compile_tree_over_threads():
    found = tree()
    assert found.seconds == pytest.approx(100 * US)
    assert node(found, *COMPILE).seconds == pytest.approx(80 * US)
    assert node(found, COMPILE[0]).self_seconds == pytest.approx(20 * US)
    passes = node(found, *COMPILE, "HLO passes through layout assignment")  # without the module's name
    assert passes.self_seconds == pytest.approx(16 * US)
    assert (node(passes, "algsimp").count, node(passes, "algsimp").seconds) == (2, pytest.approx(10 * US))
    codegen = node(found, *COMPILE, "Codegen")  # workers side by side add up to more than what waits for them
    workers = node(codegen, "FusionCompiler::Compile")
    assert (workers.count, workers.seconds) == (2, pytest.approx(40 * US))
    assert codegen.self_seconds == pytest.approx(10 * US)


def test_stages_add_up_to_the_self_time_of_the_tree():
    stages = stage_times(tree())
    assert sum(one.seconds for one in stages) == pytest.approx(120 * US)  # 100, and 20 by the second worker
    assert [one.seconds for one in stages] == sorted((one.seconds for one in stages), reverse=True)
    assert {one.stage: one.passes for one in stages} == {"codegen": 3, "compile": 3, "HLO passes": 4, "MLIR": 2}


def test_stages():
    for name, stage in rows("""
        layout-assignment      layout
        fusion                 fusion
        buffer-assignment      buffer assignment
        gemm-algorithm-picker  autotuning
        CompileToTargetBinary  PTX
        CanonicalizerPass      MLIR
        RunInvariantCheckers   verification
        OptimizeLLVMModule     LLVM
        spmd-partitioning      partitioning
        copy-insertion         scheduling
        dce                    HLO passes
    """):
        assert stage_of(name) == stage
        assert stage in STAGES
