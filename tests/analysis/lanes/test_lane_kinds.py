"""The kind of an interval."""

from __future__ import annotations

import pytest

from jaxprof.analysis.lanes.kinds import KINDS, kind_of


@pytest.mark.parametrize(
    ("lane", "name", "kind"),
    [
        ("stream", "ampere_sgemm_128x64_tn", "matmul"),
        ("stream", "loop_broadcast_fusion_3", "fusion"),
        ("stream", "input_reduce_fusion", "reduction"),
        ("stream", "MemcpyD2H", "move"),
        ("stream", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "collective"),
        ("ops", "all-gather-start.1", "collective"),
        ("ops", "convolution.12", "matmul"),
        ("ops", "convert.3", "kernel"),
        ("modules", "jit_step", "program"),
        ("host", "PjRtStreamExecutorLoadedExecutable::Execute", "dispatch"),
        ("host", "ThunkExecutor::Execute (wait for completion)", "wait"),
        ("host", "BufferFromHostBuffer", "move"),
    ],
)
def test_kinds_by_name(lane: str, name: str, kind: str) -> None:
    assert KINDS[kind_of(lane, name)] == kind


def test_the_kind_in_the_hlo_overrides_a_guess_from_the_name() -> None:
    assert KINDS[kind_of("stream", "fusion.1", "fusion.1", {"fusion.1": "GEMM"})] == "matmul"
