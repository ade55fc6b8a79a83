# ruff: noqa: E501 - an instruction of HLO is one line
"""Measured kernels joined with those of the HLO, and whether they add up to what was measured. The memory of a run.
Ceilings; model FLOPs utilisation and the share of the roofline, against figures that can be worked out by hand."""

import os
from dataclasses import replace

import pytest

from analysis.made_runs import planned, program_text, run, session
from golden import cases, figures_text, held_cases
from jaxprof import events as e
from jaxprof.analysis.kernels.measured import measure_kernels, seconds_per_call
from jaxprof.analysis.kernels.memory import memory_of_run, peak_memory
from jaxprof.analysis.kernels.out_of_memory import read_out_of_memory
from jaxprof.analysis.runs.ceilings import ceilings_for, remember, session_rates, utilisations
from jaxprof.facts.kernels import capture_rows
from jaxprof.report.explain import utilisation_text
from report.sessions import kernel_times

H100 = "NVIDIA H100 80GB HBM3"
HLO = program_text(
    "x = f32[1000] parameter(0)",
    "y = f32[1000] parameter(1)",
    "sum = f32[1000] add(x, y)",
    "ROOT out = f32[1000] multiply(sum, x)",
)


def _row(name, seconds, **more):
    return kernel_times(name, seconds, **{"module": "jit_f", "device": "gpu:0", **more})


def _capture(*rows, kind="run", calls=1, **more):
    return e.KernelsMeasured(run="r1", kind=kind, calls=calls, rows=list(rows), **more)


def _captured(*captures):
    return session(run("r1", *captures, device="cuda:0", kind=H100, hlo=HLO))


def test_rates_and_shares_of_the_ceilings():
    """Kernels without a name are part of what has no match, and copies are not."""
    rows = [_row("sum", 1e-6), _row("out", 2e-6), _row("stray", 1e-6)]
    copies = [e.CopyTimes(direction="HtoD", device="gpu:0", total_seconds=5e-6)]
    capture = _capture(*rows, transfers=copies, unattributed_seconds={"gpu:0": 7e-6})
    found = measure_kernels(_captured(capture), "r1")
    told = {name: figures_text(kernel) for name, kernel in found.by_name().items()}
    held_cases("measured_kernels.txt", told | {"without a match": figures_text({"share": found.unmatched_share})})


@pytest.mark.parametrize(("launches", "rate"), [(5, 5e8), (10, 5e8), (7, 7e8)])
def test_an_op_that_launches_two_kernels_does_its_work_once(launches, rate):
    """Five calls of 1000 additions in 10 us; seven launches fit no number for each call."""
    captured = _captured(_capture(_row("sum", 1e-5, count=launches), calls=5))
    assert measure_kernels(captured, "r1").by_name()["sum"].flops_per_second == pytest.approx(rate)


LOOP = """HloModule jit_f, is_scheduled=true

body {
  state = (s32[], f32[1000]) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  x = f32[1000] get-tuple-element(state), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  y = f32[1000] negate(x)
  ROOT out = (s32[], f32[1000]) tuple(next, y)
}

condition {
  state = (s32[], f32[1000]) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  limit = s32[] constant(10)
  ROOT go = pred[] compare(i, limit), direction=LT
}

ENTRY main {
  first = (s32[], f32[1000]) parameter(0)
  ROOT loop.1 = (s32[], f32[1000]) while(first), condition=condition, body=body, metadata={op_name="jit(f)/while" source_file="/home/me/f.py" source_line=4}, backend_config={"known_trip_count":{"n":"10"}}
}
"""


@pytest.mark.parametrize(("inside_seconds", "rate"), [(0.0, 10_021.0), (0.75, 10_021.0), (0.9, None)])
def test_a_loop_has_its_line_and_the_rate_of_what_it_runs(inside_seconds, rate):
    """A second a call, of which the kernels inside took a part. If they took more than ran within its intervals, it
    went on elsewhere, and how long it took is unknown."""
    loop = _row("loop.1", 1.0, self_seconds=0.25 if inside_seconds else 1.0)
    inside = [_row("y", inside_seconds)] if inside_seconds else []
    of = session(run("r1", _capture(loop, *inside), device="cpu:0", hlo=LOOP))
    found = measure_kernels(of, "r1").by_name()["loop.1"]
    assert found.in_hlo is True
    assert found.kernel.kind == "loop"
    assert found.kernel.source.short == "f.py:4"
    assert found.flops_per_second == (None if rate is None else pytest.approx(rate))
    assert (found.bytes_per_second is None) == (rate is None)
    assert measure_kernels(of, "r1").unmatched_share == pytest.approx(0)
    rows = capture_rows(of, of.runs["r1"])
    assert [(row.name, row.static is not None, row.share is not None) for row in rows] == [
        (name, True, True) for name in sorted(["loop.1", *(["y"] if inside else [])], key=lambda name: name != "y")
    ]


def test_seconds_of_a_call_are_of_one_device():
    rows = [_row("sum", 4e-6), _row("sum", 2e-6, device="gpu:1"), _row("out", 1e-6)]
    of = _captured(_capture(*rows, kind="attribution", calls=2), _capture(_row("graph", 1.0)))
    assert seconds_per_call(of.runs["r1"]) == pytest.approx({"sum": 1.5e-6, "out": 0.5e-6})
    assert seconds_per_call(None) == {}
    assert seconds_per_call(_captured(_capture(*rows, calls=None)).runs["r1"]) == {}


def test_how_many_bytes_an_error_asked_for():
    said = {text: read_out_of_memory(text) for text in cases("asked_bytes.txt")}
    held_cases("asked_bytes.txt", {text: f"  {each and each.bytes['asked']}\n" for text, each in said.items()})


HELD = e.BuffersReported(
    run="r1",
    source="buffer assignment",
    peak_bytes=12_000,
    parts={"output": 4000, "argument": 8000},
    buffers=[e.HeldBuffer(bytes=4000, kind="temporary", instruction="sum", shape="f32[1000]{0}")],
)
SUMS = e.MemoryReported(run="r1", argument_bytes=100, output_bytes=50, alias_bytes=50, temporary_bytes=7)
REFUSED = e.RunFinished(run="r1", status="failed", error="RESOURCE_EXHAUSTED: Out of memory allocating 99 bytes.")
MEMORY = {
    "the assignment comes first, and the schedule adds the live sizes": run("r1", HELD, hlo=HLO),
    "the schedule alone": run(hlo=HLO),
    "sums alone": run("r1", SUMS),
    "a failure alone": [planned(), REFUSED],
}


def test_the_memory_of_a_run_and_where_it_is_from():
    pictures = {case: memory_of_run(session(events), "r1") for case, events in MEMORY.items()}
    told = {case: figures_text(picture, without=["schedule"]) for case, picture in pictures.items()}
    held_cases("memory.txt", told)
    assert [picture.is_estimate for picture in pictures.values()] == [False, True, False, False]
    assert memory_of_run(session(run()), "r1") is None


def test_sums_of_which_one_is_missing_are_no_peak():
    def peak(**memory):
        return peak_memory(session(run("r1", e.MemoryReported(run="r1", **memory))).runs["r1"])

    sums = {"argument_bytes": 100, "output_bytes": 60}
    assert peak(**sums, alias_bytes=50, temporary_bytes=7) == 117, "a donated argument is not counted twice"
    assert peak(**sums, peak_bytes=3_000_000) is None


HERE = os.uname().nodename
JUDGED = {"triad": (1e9, 10e9), "gemm-peak": (100e9, 1e9), "selu": (5e6, 8e6)}
OLD = '{"Some CPU": {"bandwidth": 1e12, "peaks": {"f32": 1e12}, "bandwidth_bytes": 4e8, "measured": 1.7e9}}'
"""As an older version kept it: without size and date."""


def costing(name, flops, traffic, *seen, **spec):
    """A run of one second a call, with these FLOPs and bytes."""
    cost = e.CostReported(run=name, flops=flops, bytes_accessed=traffic, source=e.ESTIMATED_BY)
    checked = e.CheckReported(run=name, passed=True, precision="float32")
    return run(name, *seen, cost, checked, samples=[1.0] * 6, **spec)


def machine(workloads=None, *, began=1_767_312_000.0, host=HERE, device="cpu:0", kind="cpu", **settings):
    runs = []
    for number, (workload, (flops, traffic)) in enumerate((workloads or {"selu": (5e6, 8e6)}).items(), start=1):
        name = f"r{number}"
        seen = e.EnvironmentRead(
            run=name,
            python="3",
            numpy="2",
            settings={"cpu_model": "Some CPU", **settings},
            devices=[{"platform": device.partition(":")[0], "kind": kind}],
        )
        runs.append(costing(name, flops, traffic, seen, workload=workload, device=device))
    return session(*runs, host=host, wall_seconds=began)


def last(of):
    return list(of.runs.values())[-1]


def test_it_is_kept_for_the_machine_and_only_grows():
    """With what and when each was measured."""
    remember(machine({"triad": (1e9, 10 << 30)}))
    remember(machine({**JUDGED, "triad": (1e9, 4e9)}, began=1_777_312_000.0))
    later = machine()
    device = ceilings_for(later, last(later))
    assert device.bandwidth == pytest.approx(10 << 30)
    assert device.source == (
        "measured on this machine, otherwise idle: memory 10.0 GiB a call on 2026-01-02, products on 2026-04-27"
    )
    other = machine(host="elsewhere")
    assert ceilings_for(other, last(other)) is None


def test_ceiling_is_what_the_fastest_call_reached():
    """Of compiled code with slow calls, and of NumPy beside it."""
    of = machine({"triad": (1e9, 10e9)})
    of.runs["r1"].samples("run")[:] = [4.0, 1.0, 4.0, 4.0, 4.0, 4.0]
    assert session_rates(of, "cpu:0")["memory"].per_second == pytest.approx(10e9)
    both = session(
        costing("r1", 1e9, 10e9, workload="triad", device="cpu:0"),
        costing("r2", 1e9, 30e9, workload="triad", device="cpu:0", how="numpy", variant="numpy"),
    )
    assert session_rates(both, "cpu:0")["memory"].per_second == pytest.approx(30e9)


def test_what_fits_a_cache_or_shares_the_machine_is_no_ceiling(state_home):
    assert session_rates(machine({**JUDGED, "triad": (1e6, 48e6)}), "cpu:0").get("memory") is None
    assert not session_rates(machine(JUDGED, other_busy_cores=1.5, cores=2), "cpu:0")
    (state_home / "ceilings.json").write_text(OLD)
    later = machine()
    assert ceilings_for(later, last(later)) is None


def test_measured_rates_replace_the_vendors():
    of = [machine(workloads, device="cuda:0", kind=H100) for workloads in (None, JUDGED)]
    vendor, found = (ceilings_for(each, last(each)) for each in of)
    assert vendor.bandwidth > 3e12
    assert (vendor.peak("f32", matrix=True), found.bandwidth) == pytest.approx((494.7e12, 10e9))
    assert "measured" in found.source


@pytest.mark.parametrize(("device", "name"), [("4xh100:8", "h100"), ("cpu:0", None)])
def test_absent_device_has_its_own_ceilings(device, name):
    of = session(planned(how="compile", device=device), host=HERE)
    found = ceilings_for(of, last(of))
    assert (found and found.name) == name


def program(*lines):
    """A program over two matrices, from lines such as `y = dot(a, b)`."""
    written = []
    for line in ("a = parameter(0)", "b = parameter(1)", *lines[:-1], f"ROOT {lines[-1]}"):
        name, _, operation = line.partition(" = ")
        contracted = ", lhs_contracting_dims={1}, rhs_contracting_dims={0}" if operation.startswith("dot") else ""
        written.append(f"{name} = bf16[4096,4096]{{1,0}} {operation}{contracted}")
    return program_text(*written)


PRODUCT, NO_PRODUCT = program("y = dot(a, b)"), program("y = add(a, b)")
TWICE = program("p = dot(a, b)", "y.remat = dot(p, b)", "y = add(y.remat, p)")
OPAQUE = program('c = custom-call(a), custom_call_target="some_library"', "y = dot(c, b)")


def timed(hlo, *, platform="cuda", kind=H100):
    """One measured function of a millisecond on a device."""
    samples = [1e-3 * (1 + 0.001 * n) for n in range(-4, 5)]
    return session(run(hlo=hlo, samples=samples, kind=kind, device=f"{platform}:0"), host="box")


def on_a_cpu():
    """Whose peak was measured here."""
    peaks = costing("r2", 1e11, 1e9, workload="gemm-peak"), costing("r3", 1e9, 1e10, workload="triad")
    product = run(hlo=PRODUCT.replace("bf16", "f32"), samples=[10.0] * 9)
    return session(product, *peaks, host=HERE, wall_seconds=1.0)


def profile(found_by, *, executions=(10,)):
    """A profile of ten steps of 1 ms, in which programs with a product were executed so often."""
    imported = {"variant": "profile", "how": "imported", "device": "gpu:0", "kind": H100}
    parts = e.StepParts(kernels=1e-3)
    each = {"device": "gpu:0", "seconds": 1e-3, "parts": parts}
    steps = e.StepsMeasured(
        run="r1",
        found_by=found_by,
        devices=[e.StepsDevice(device="gpu:0", found_by=found_by, steps=10)],
        steps=[e.StepTimes(name=str(n), start_seconds=n * 1e-3, **each) for n in range(10)],
    )
    programs = []
    for number, calls in enumerate(executions, start=2):
        row = kernel_times("y", calls * 1e-4, calls, device="gpu:0", module="jit_f")
        capture = e.KernelsMeasured(run=f"r{number}", kind="imported", calls=calls, rows=[row])
        programs.append(run(f"r{number}", capture, hlo=PRODUCT, workload="jit_f", **imported))
    return session(run("r1", steps, **imported), *programs, host="box")


def with_cut_steps():
    """Of which the long steps do not count."""
    whole = profile("modules")
    seen = whole.runs["r1"].steps
    steps = [replace(step, seconds=1.0, complete=False) if step.name in "12345" else step for step in seen.steps]
    whole.runs["r1"].steps = replace(seen, steps=steps)
    return whole


CASES = {
    "the FLOPs of a product over the vendor's peak": timed(PRODUCT),
    "each product has the peak of its dtype": timed(PRODUCT.replace("bf16", "f32")),
    "what is done twice counts for the hardware and not for the model": timed(TWICE),
    "an opaque kernel makes it a lower bound": timed(OPAQUE),
    "an unknown model": timed(PRODUCT, kind="Graphcore"),
    "no model": timed(PRODUCT, kind=""),
    "a CPU that was not measured": timed(PRODUCT, platform="cpu", kind="cpu"),
    "a CPU that was": on_a_cpu(),
    "a dtype without a peak": timed(PRODUCT.replace("bf16", "f64"), kind="NVIDIA A10"),
    "no product": timed(NO_PRODUCT),
    "a step has what every step had": profile("modules"),
    "where other executions ran is not known": profile("modules", executions=(10, 40)),
    "steps by their annotation": profile("annotation"),
    "a warm-up before the steps is not in them": profile("annotation", executions=(21, 10)),
    "some steps with another program": profile("annotation", executions=(10, 3)),
    "not in every step": profile("annotation", executions=(3,)),
    "no steps": profile("whole"),
    "steps that are cut off do not count": with_cut_steps(),
}


def test_the_utilisation_of_each_with_its_sentence():
    told = {}
    for case, of in CASES.items():
        uses = utilisations(of)
        told[case] = figures_text(*uses, *map(utilisation_text, uses))
    held_cases("utilisations.txt", told)


def test_a_product_is_bound_by_its_flops():
    (use,) = utilisations(timed(PRODUCT))
    assert use.mfu == use.roofline == pytest.approx(2 * 4096**3 / 989.4e12 / 1e-3)
