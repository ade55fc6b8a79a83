"""Two profiles of one program on an H100 (`tests/tapes/profiles`): eight annotated train steps, a loop of 50 products
twice, a slice that compiles, copies in and out. `h100_graphs` is as JAX runs it, the train step as a CUDA graph;
`h100_streams` has command buffers off. They were recorded with jax 0.11.2, and their paths replaced.

Expected times are what xprof 2.24.2 says of the same files: `kernel_stats` (microseconds), as its `hlo_stats` leaves
out the kernels of graphs, and the steps of `overview_page`, which has no first and no last step."""

from dataclasses import replace

import pytest
from made_traces import module_plane, op, read
from xplane_wire import Line, Plane

from jaxprof.analysis.kernels.measured import kernels_of, measure_kernels, whole_profile
from jaxprof.analysis.kernels.ranking import ranking_on, roofline_ceilings
from jaxprof.analysis.runs.ceilings import ceilings_for, machine_of_run
from jaxprof.analysis.timeline import read_timeline
from jaxprof.analysis.timeline.lanes import kernels_on, lanes_of, range_totals
from jaxprof.findings.derive import explanation
from jaxprof.report.conclusion import cost_and_certainty
from jaxprof.report.explain import answers
from jaxprof.session import Session
from jaxprof.trace.imported import import_profile
from jaxprof.trace.launch import transfers_of
from jaxprof.trace.sources import read_file
from jaxprof.trace.steps import steps_of
from jaxprof.trace.summary import TIMELINE, op_times, seconds_without_op
from jaxprof.trace.trust import kernels as checks_of_kernels
from report.sessions import HEADER
from tables import rows
from tapes import TAPES

NAMES = ("h100_graphs", "h100_streams")
KERNELS = rows("""
    # program      op                         times  with graphs  without
    chain          gemm_fusion_dot            100    560.272      557.229
    chain          loop_multiply_fusion       100    292.392      189.352
    chain          loop_add_fusion            100    101.988      102.049
    mlp_step       gemm_fusion_dot_general.4  8      50.080       50.723
    mlp_step       gemm_fusion_dot.2          8      50.209       49.440
    mlp_step       gemm_fusion_dot.3          8      41.889       40.290
    mlp_step       gemm_fusion_dot_general.6  8      28.801       29.757
    mlp_step       loop_subtract_fusion       8      28.354       16.031
    mlp_step       loop_subtract_fusion.1     8      24.705       16.482
    mlp_step       loop_add_fusion            8      18.560       18.783
    mlp_step       loop_multiply_fusion       8      16.451       16.480
    dynamic_slice  loop_dynamic_slice_fusion  1      1.375        1.440
    # copies, which kernel_stats does not have: with graphs the sum of the events, without hlo_stats
    chain          copy.1                     2      2.623        2.592
    chain          copy.7                     2      2.017        2.017
""")
STEPS = {
    # time of the kernels in the steps 1 to 6, and of kernels and the gaps between them, in microseconds
    "h100_graphs": ([27.457, 27.745, 27.937, 27.680, 27.712, 27.905],) * 2,
    "h100_streams": (
        [29.505, 29.503, 29.472, 29.410, 29.567, 29.280],
        [89.762, 56.897, 59.585, 69.282, 58.434, 56.034],
    ),
}


def profile(name):
    return TAPES / "profiles" / f"{name}.xplane.pb.gz"


@pytest.fixture(scope="module")
def traces():
    return {name: read_file(profile(name)) for name in NAMES}


@pytest.fixture(scope="module")
def sessions():
    folded = {}
    for name in NAMES:
        session = folded[name] = Session(HEADER)
        import_profile(profile(name), "r1", lambda event, to=session: to.apply(replace(event, run=event.run or "r1")))
    return folded


@pytest.mark.parametrize(("name", "column"), [("h100_graphs", 3), ("h100_streams", 4)])
def test_each_kernel_has_its_op_and_the_time_that_xprof_gives_it(name, column, traces):
    """Kernels of the graph name `command_buffer_1`, which no instruction is called."""
    found = {(row.module, row.name): (row.count, round(row.total_seconds * 1e6, 3)) for row in op_times(traces[name])}
    assert found == {(f"jit_{row[0]}", row[1]): (int(row[2]), float(row[column])) for row in KERNELS}


def test_how_the_ops_of_kernels_were_found_is_said(traces):
    said = {name: {row.code: (row.verdict, row.message) for row in checks_of_kernels(traces[name], "imported")}
            for name in NAMES}  # fmt: skip
    by_name = "64 of CUDA graphs by the kernel's name, so ops that share a kernel count as one"
    assert said["h100_graphs"]["unmatched"] == ("good", f"every kernel names its HLO op, {by_name}")
    assert said["h100_streams"]["unmatched"] == ("good", "every kernel names its HLO op")
    # A graph is one launch of eight kernels.
    assert said["h100_graphs"]["lost_kernels"][1] == "309 of 309 launches left a kernel in the file"
    assert said["h100_streams"]["lost_kernels"][1] == "365 of 365 launches left a kernel in the file"


@pytest.mark.parametrize("name", NAMES)
def test_copies_by_direction(name, traces):
    copies = {row.direction: (row.count, row.bytes) for row in transfers_of(traces[name])}
    assert copies == {
        "device to device": (4, 2 * (1 << 20) + 8),
        "host to device": (3, (4 << 20) + 8),
        "device to host": (1, 8192),
    }
    took = {row.direction: row.total_seconds for row in transfers_of(traces[name])}
    across = took["host to device"] + took["device to host"]
    assert seconds_without_op(traces[name]) == pytest.approx({"gpu:0": across})


@pytest.mark.parametrize("name", NAMES)
def test_steps(name, traces):
    found = steps_of(traces[name])
    assert [step.name for step in found.rows] == [f"train {number}" for number in range(8)]
    kernels, without_pauses = STEPS[name]
    inner = found.rows[1:-1]
    assert [step.parts.kernels * 1e6 for step in inner] == pytest.approx(kernels, abs=1e-3)
    executing = [(step.parts.kernels + step.parts.launch_gaps) * 1e6 for step in inner]
    assert executing == pytest.approx(without_pauses, abs=2e-3)
    (device,) = found.devices
    assert device.found_by == "annotation"
    assert 1 - device.busy_seconds / device.span_seconds == pytest.approx(0.98, abs=0.01)


@pytest.mark.parametrize("name", NAMES)
def test_device_and_ceilings_of_each_program(name, sessions):
    """A float32 product of default precision runs as TF32 on an H100, at most at 494.7 TFLOP/s."""
    for run in sessions[name].runs.values():
        (device,) = run.environment.devices
        assert (device["kind"], device["core_count"]) == ("NVIDIA H100 80GB HBM3", 132)
        assert (device["memory_bytes_per_second"], device["clock_hertz"]) == (3_352_320_000_000, 1_980_000_000)
    kernels = {kernel.name: kernel for kernel in whole_profile(sessions[name])}
    product = kernels["gemm_fusion_dot"]
    flops = 2 * 512**3 * 100 / product.total_seconds
    assert product.flops_per_second == pytest.approx(flops)
    assert product.of_peak == pytest.approx(flops / 494.7e12)
    assert product.of_bandwidth == pytest.approx(6 * (1 << 20) * 100 / product.total_seconds / 3.35e12, rel=0.01)
    assert product.launch.grid == (128, 1, 1)
    assert product.launch.occupancy == 0.125
    assert any("of the vendor's tf32 peak" in line for line in answers(explanation(sessions[name], "profile")))


def test_roofline_ceiling_is_named_after_the_product_rate(sessions):
    session = sessions["h100_graphs"]
    chain = session.runs["program:1"]
    ceilings = ceilings_for(session, chain)
    ranking = ranking_on(machine_of_run(chain, ceilings), None, kernels_of(session, chain.id), None)
    labels = dict(roofline_ceilings(ranking, range(len(ranking)), ceilings))
    assert labels == pytest.approx({"tf32 matrix": 494.7e12, "f32 vector": 66.9e12, "s32 vector": 66.9e12})


def test_all_time_is_that_of_kernels_in_the_hlo(sessions):
    """`loop_compare_fusion`, the condition of the loop, was never launched: XLA knows the trip count."""
    for session in sessions.values():
        for number in (1, 2, 3):
            assert measure_kernels(session, f"program:{number}").unmatched_share == pytest.approx(0)
        assert "loop_compare_fusion" not in {kernel.name for kernel in whole_profile(session)}
        assert "tiny_kernels" not in {finding.code for finding in explanation(session, "profile").findings}


def test_kernels_of_one_name_in_two_programs_are_two(sessions):
    cost, _ = cost_and_certainty(explanation(sessions["h100_streams"], "profile"))
    assert cost.startswith("gemm_fusion_dot 0.56 ms (51 %), loop_multiply_fusion of jit_chain 0.19 ms (17 %)")


def test_the_share_of_a_finding_about_steps_is_of_the_steps(sessions):
    found = {finding.code: finding for finding in explanation(sessions["h100_streams"], "profile").findings}
    idle, gaps = found["device_idle"], found["launch_gaps"]
    assert (idle.scope, gaps.scope) == ("steps", "steps")
    whole = sum(step.seconds for step in sessions["h100_streams"].runs["r1"].steps.steps)
    assert idle.seconds / whole == pytest.approx(idle.share)
    with_graphs = {finding.code for finding in explanation(sessions["h100_graphs"], "profile").findings}
    assert "launch_gaps" not in with_graphs


def test_timeline_rows_of_overlapping_kernels(sessions):
    """In the graph each kernel begins within the end of the one before it, and never three at once."""
    timeline = read_timeline(sessions["h100_graphs"].text("r1", TIMELINE))
    lanes = lanes_of(timeline)
    (stream,) = [lane for lane in lanes.lanes if "#14" in lane.title]
    assert len(stream.rows) == 2
    assert stream.rows[0].starts[:4].tolist() == [12843034, 12851994, 12859098, 12864603]
    # The values of the allocators' counters are no events.
    assert lanes.intervals == 2032
    # Each counts in full: none is held by another.
    found = range_totals(lanes, 0, 1 << 40)
    of_stream = {total.name: round(total.self_ns / 1e3, 1) for total in kernels_on(lanes, "gpu:0", found)}
    assert of_stream["gemm_fusion_dot_general_4"] == 50.1
    assert of_stream["loop_subtract_fusion"] == 28.4


def test_a_kernel_that_two_instructions_may_have_named_has_no_op():
    """And one that carries its own op keeps it, as where a graph was made while the profiler was on."""
    events = [in_graph("command_buffer", 0, "fusion_1"), in_graph("command_buffer", 20, "dot_1")]
    stream = Line("Stream #1(Kernel)", [*events, in_graph("fusion.1", 40, "nvjet_tst")])
    module = module_plane(7, ("fusion.1", "fusion"), ("fusion_1", "fusion"), ("dot.1", "dot"))
    trace = read(Plane("/device:GPU:0", [stream]), module)
    assert {row.name for row in op_times(trace)} == {"fusion_1", "dot.1", "fusion.1"}
    assert (len(trace.nameless), trace.renamed) == (1, 1)


def in_graph(name, start, kernel):
    return op(name, start, 10, kernel=kernel, cuda_graph_node_id=1 << 33)


@pytest.mark.parametrize(
    ("ran", "expected", "nameless"),
    [
        # Without the HLO a graph is told by its name, and its kernels have only their own.
        ([("command_buffer", "gemm_a")], ["gemm_a"], 1),
        ([("dot.1", "nvjet_tst")], ["dot.1"], 0),
        # A copy of a graph belongs to no op.
        ([("command_buffer", "MemcpyD2D")], [], 0),
    ],
)
def test_kernels_of_graphs_without_hlo(ran, expected, nameless):
    events = [in_graph(name, 20 * at, kernel) for at, (name, kernel) in enumerate(ran)]
    trace = read(Plane("/device:GPU:0", [Line("Stream #1(Kernel)", events)]))
    assert [row.name for row in op_times(trace)] == expected
    assert len(trace.nameless) == nameless
    (check,) = [row for row in checks_of_kernels(trace, "imported") if row.code in ("unmatched", "no_kernels")]
    assert check.verdict == ("bad" if nameless else "good")
