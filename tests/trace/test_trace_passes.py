"""The tree of a compile: nesting, threads that wait for each other, stages."""

import pytest
from made_traces import hosts, read
from xplane_wire import Line, Plane

from jaxprof.analysis.measured import seconds_of_threads, stage_times
from jaxprof.trace.passes import STAGES, compile_tree, stage_of
from tables import rows

US = 1e-6


def tree():
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
    return compile_tree(read(Plane("/host:CPU", [python, compiler, *workers])))


def node(of, *names):
    for name in names:
        (of,) = [child for child in of.children if child.name == name]
    return of


COMPILE = ("backend_compile_and_load", "PjRtCpuClient::Compile")


def test_threads_hang_below_what_waits_for_them_and_passes_of_one_name_are_one():
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
    assert seconds_of_threads(tree()) == pytest.approx(120 * US)
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
