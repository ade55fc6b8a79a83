"""Model FLOPs utilisation and the share of the roofline, against figures that can be worked out by hand."""

import os
from dataclasses import replace

import pytest

from analysis.made_runs import program_text, run, session
from golden import figures_text, held_cases
from jaxprof import events as e
from jaxprof.analysis.ceilings import utilisations
from jaxprof.report.explain import utilisation_text
from report.sessions import kernel_times

H100 = "NVIDIA H100 80GB HBM3"


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


def measured(hlo, *, platform="cuda", kind=H100):
    """One measured function of a millisecond on a device."""
    samples = [1e-3 * (1 + 0.001 * n) for n in range(-4, 5)]
    return session(run(hlo=hlo, samples=samples, kind=kind, device=f"{platform}:0"), host="box")


def on_a_cpu():
    """Whose peak was measured here."""
    peaks = []
    for name, workload, flops, traffic in (("r2", "gemm-peak", 1e11, 1e9), ("r3", "triad", 1e9, 1e10)):
        cost = e.CostReported(run=name, flops=flops, bytes_accessed=traffic, source=e.ESTIMATED_BY)
        checked = e.CheckReported(run=name, passed=True, precision="float32")
        peaks.append(run(name, cost, checked, workload=workload, samples=[1.0] * 6))
    product = run(hlo=PRODUCT.replace("bf16", "f32"), samples=[10.0] * 9)
    return session(product, *peaks, host=os.uname().nodename, wall_seconds=1.0)


def profile(found_by, *, executions=(10,)):
    """A profile of ten steps of 1 ms, in which programs with a product were executed so often."""
    imported = {"variant": "profile", "how": "imported", "device": "gpu:0", "kind": H100}
    parts = e.StepParts(kernels=1e-3)
    steps = e.StepsMeasured(
        run="r1",
        found_by=found_by,
        devices=[e.StepsDevice(device="gpu:0", found_by=found_by, steps=10)],
        steps=[
            e.StepTimes(name=str(n), device="gpu:0", start_seconds=n * 1e-3, seconds=1e-3, parts=parts)
            for n in range(10)
        ],
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
    "the FLOPs of a product over the vendor's peak": measured(PRODUCT),
    "each product has the peak of its dtype": measured(PRODUCT.replace("bf16", "f32")),
    "what is done twice counts for the hardware and not for the model": measured(TWICE),
    "an opaque kernel makes it a lower bound": measured(OPAQUE),
    "an unknown model": measured(PRODUCT, kind="Graphcore"),
    "no model": measured(PRODUCT, kind=""),
    "a CPU that was not measured": measured(PRODUCT, platform="cpu", kind="cpu"),
    "a CPU that was": on_a_cpu(),
    "a dtype without a peak": measured(PRODUCT.replace("bf16", "f64"), kind="NVIDIA A10"),
    "no product": measured(NO_PRODUCT),
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
    (use,) = utilisations(measured(PRODUCT))
    assert use.mfu == use.roofline == pytest.approx(2 * 4096**3 / 989.4e12 / 1e-3)
