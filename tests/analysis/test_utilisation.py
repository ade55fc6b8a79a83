"""Model FLOPs utilisation and the share of the roofline, against figures that can be worked out by hand."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from analysis.made_runs import run, session
from jaxprof import events as e
from jaxprof.analysis.ceilings import Utilisation, utilisations
from jaxprof.report.explain import utilisation_text
from jaxprof.session import Session
from report.sessions import kernel_times

PRODUCT = """HloModule jit_f, is_scheduled=true

ENTRY main {
  a = bf16[4096,4096]{1,0} parameter(0)
  b = bf16[4096,4096]{1,0} parameter(1)
  ROOT y = bf16[4096,4096]{1,0} dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""
FLOPS = 2 * 4096**3
H100 = "NVIDIA H100 80GB HBM3"
PEAK = 989.4e12
NO_PRODUCT = PRODUCT.replace("dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}", "add(a, b)")
TWICE = PRODUCT.replace(
    "  ROOT y",
    """  p = bf16[4096,4096]{1,0} dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  y.remat = bf16[4096,4096]{1,0} dot(p, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT y""",
).replace("dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n}", "add(y.remat, p)\n}")
OPAQUE = PRODUCT.replace(
    "  ROOT y",
    '  c = bf16[4096,4096]{1,0} custom-call(a), custom_call_target="some_library"\n  ROOT y',
).replace("dot(a, b)", "dot(c, b)")


def measured(hlo: str, seconds: float = 1e-3, *, platform: str = "cuda", kind: str = H100) -> list[e.Event]:
    """One measured function on a device."""
    samples = [seconds * (1 + 0.001 * n) for n in range(-4, 5)]
    return run(hlo=hlo, samples=samples, kind=kind, device=f"{platform}:0")


def only(*runs: list[e.Event], host: str = "box") -> Utilisation:
    (use,) = utilisations(session(*runs, host=host, wall_seconds=1.0))
    return use


def test_the_flops_of_a_product_over_the_vendors_peak():
    use = only(measured(PRODUCT))
    assert (use.flops, use.of, use.dtypes, use.hfu) == (FLOPS, "call", ("bf16",), use.mfu)
    assert use.mfu == use.roofline == pytest.approx(FLOPS / PEAK / 1e-3)  # the product is bound by its FLOPs
    assert utilisation_text(use) == "MFU 14 % of the vendor's bf16 peak, 14 % of its device's roofline"


def test_each_product_has_the_peak_of_its_dtype():
    use = only(measured(PRODUCT.replace("bf16", "f32")))
    assert use.mfu == pytest.approx(FLOPS / 494.7e12 / 1e-3)
    assert use.peak_flops_per_second == pytest.approx(494.7e12)


def test_what_is_done_twice_counts_for_the_hardware_and_not_for_the_model():
    use = only(measured(TWICE))
    assert (use.flops, use.recomputed_flops, use.hfu) == (FLOPS, FLOPS, pytest.approx(2 * use.mfu))
    assert "(HFU 28 %)" in utilisation_text(use)


def test_an_opaque_kernel_makes_it_a_lower_bound():
    use = only(measured(OPAQUE))
    assert use.at_least
    assert utilisation_text(use).startswith("MFU at least 14 %")


@pytest.mark.parametrize(
    ("hlo", "device", "reason"),
    [
        (PRODUCT, {"kind": "Graphcore"}, "no peak is known for Graphcore"),
        (PRODUCT, {"kind": ""}, "the model of cuda:0 was not recorded"),
        (PRODUCT, {"platform": "cpu", "kind": "cpu"}, "jaxprof run gemm-peak"),
        (PRODUCT.replace("bf16", "f64"), {"kind": "NVIDIA A10"}, "no known peak for products of f64"),
        (NO_PRODUCT, {}, "it has no matrix products"),
    ],
    ids=["model", "no-model", "cpu", "dtype", "no-product"],
)
def test_what_is_unknown_has_a_reason(hlo, device, reason):
    use = only(measured(hlo, **device))
    assert (use.mfu, use.hfu) == (None, None)
    assert reason in use.reason
    assert "MFU" not in utilisation_text(use)


def test_a_cpus_peak_is_what_was_measured_here_and_said_to_be():
    ceilings = [
        run(
            name,
            e.CostReported(run=name, flops=flops, bytes_accessed=traffic, source=e.ESTIMATED_BY),
            e.CheckReported(run=name, passed=True, precision="float32"),
            workload=workload,
            samples=[1.0] * 6,
        )
        for name, workload, flops, traffic in (("r2", "gemm-peak", 1e11, 1e9), ("r3", "triad", 1e9, 1e10))
    ]
    use = only(run(hlo=PRODUCT.replace("bf16", "f32"), samples=[10.0] * 9), *ceilings, host=os.uname().nodename)
    assert use.peak_is_measured
    assert use.mfu == pytest.approx(FLOPS / 1e11 / 10.0)
    assert "of the peak measured on this machine" in utilisation_text(use)


def profile(found_by: str, *, executions: tuple[int, ...] = (10,)) -> Session:
    """A profile of ten steps of 1 ms, in which programs with a product were executed so often."""
    imported = {"variant": "profile", "how": "imported", "device": "gpu:0", "kind": H100}
    steps = e.StepsMeasured(
        run="r1",
        found_by=found_by,
        devices=[e.StepsDevice(device="gpu:0", found_by=found_by, steps=10)],
        steps=[
            e.StepTimes(
                name=str(n), device="gpu:0", start_seconds=n * 1e-3, seconds=1e-3, parts=e.StepParts(kernels=1e-3)
            )
            for n in range(10)
        ],
    )
    programs = []
    for number, calls in enumerate(executions, start=2):
        row = kernel_times("y", calls * 1e-4, calls, device="gpu:0", module="jit_f")
        capture = e.KernelsMeasured(run=f"r{number}", kind="imported", calls=calls, rows=[row])
        programs.append(run(f"r{number}", capture, hlo=PRODUCT, workload="jit_f", **imported))
    return session(run("r1", steps, **imported), *programs, host="box")


@pytest.mark.parametrize(
    ("found_by", "executions", "products"),
    [
        ("modules", (10,), 1),
        ("modules", (10, 40), 1),  # where the others ran is not known
        ("annotation", (10,), 1),
        ("annotation", (21, 10), 3),  # a warm-up before the steps is not in them
        ("annotation", (10, 3), 1),
    ],
)
def test_a_step_has_what_every_step_had(found_by, executions, products):
    (use,) = utilisations(profile(found_by, executions=executions))
    assert use.of == "step"
    assert use.mfu == pytest.approx(products * FLOPS / PEAK / 1e-3)
    assert use.at_least is (3 in executions)


@pytest.mark.parametrize(("found_by", "executions"), [("whole", (10,)), ("annotation", (3,))])
def test_without_steps_there_is_no_utilisation_of_them(found_by, executions):
    assert utilisations(profile(found_by, executions=executions)) == ()


def test_steps_that_are_cut_off_do_not_count():
    whole = profile("modules")
    run = whole.runs["r1"]
    long = [replace(step, seconds=1.0, complete=False) if step.name in "12345" else step for step in run.steps.steps]
    run.steps = replace(run.steps, steps=long)
    assert utilisations(whole)[0].seconds == pytest.approx(1e-3)
