"""What an explanation ranks first, what it costs, what it rests on, and what it does not say."""

import os
from dataclasses import replace

import pytest
from explained_sessions import (
    CAPTURE,
    MENDED,
    TRANSPOSES,
    codes,
    compared,
    explained,
    mostly_compiling,
    on_gpu,
    profile,
    replanned,
    run_of,
    session_of,
    unknown,
    with_hlo,
)

import program_events as made
from folding import changed, fold
from golden import explanation_text, held_cases
from jaxprof import events as e
from jaxprof.analysis.explain.catalogue import entries
from jaxprof.analysis.explain.derive import explanation_of_modules
from jaxprof.errors import HloError
from jaxprof.hlo.open.paths import modules_at
from report import sessions

SEEN = [*made.shaped(33, compile_seconds=0.1), *made.steady(5, {"device_busy": 1.0})]
"""A program with one finding."""


def warned(*runs, code="noise"):
    return [e.WarningRaised(run=run, code=code, message="± 12 % only", advice="Look.") for run in runs]


def debugged():
    return changed(made.steady(2, {"device_busy": 1.0}), e.ProgramSampled, debug_settings=["jax_debug_nans"])


def with_window():
    """A program that compiles for most of the time, and a capture window of it."""
    run = replanned(with_hlo(sessions.jit_run("r2", ""), TRANSPOSES), how="imported")
    whole = made.program(*mostly_compiling(6.0))
    return fold(made.HEADER, [*whole[:-1], *run[:-2], replace(CAPTURE, kind="imported"), *run[-2:], whole[-1]])


def recording_itself():
    return fold(made.HEADER, changed(made.program(*SEEN), e.ProgramStarted, how="record"))


def failed_window(note):
    return made.session(*SEEN, e.CaptureWindow(run="r1", state="failed", note=note))


def without_capture():
    return session_of(*replanned(sessions.jit_run("r2", "r1"), capture=False))


def single_operations():
    """Operations of a loop, of which JAX announced the compilations, and samples saw the rest."""
    rows = [
        made.compiled(name, op_by_op=True, operations=1, compile_seconds=0.5, library=True)
        for name in ("sin", "add", "mul")
    ]
    lines = [
        made.line(88, 0.6, "host_busy", "jnp.sin()", kind="dispatch"),
        made.line(89, 0.4, "host_busy", "jnp.add()", kind="dispatch"),
    ]
    return made.session(*made.steady(8, {"host_busy": 1.0}, lines), *rows, made.steps(4000, 2e-3))


def idle_profile():
    busy = [e.StepsDevice(device="gpu:0", busy_seconds=4e-3, span_seconds=8e-3)]
    return fold(sessions.HEADER, changed(profile(), e.StepsMeasured, devices=busy))


def captured_program():
    recorded = made.program(*made.shaped(2, compile_seconds=0.1), *made.steady(50, {"device_busy": 1.0}))
    return fold(made.HEADER, [*recorded, *(replace(event, run="c" + event.run) for event in profile())])


DOUBT = e.TrustReported(
    run="r1", kind="imported", rows=[e.TrustCheck(code="sum", verdict="doubt", message="busy for 20%")]
)
CASES = {
    "compilations that are not kept are what is left to save": (
        lambda: made.session(*mostly_compiling(6.0)),
        ["cache_off"],
    ),
    "compilations that take a third": (lambda: made.session(*mostly_compiling(3.0)), []),
    "compilations that are kept": (lambda: made.session(*mostly_compiling(6.0, "hit")), []),
    "what the program itself can change comes instead": (
        lambda: made.session(*mostly_compiling(6.0, "off", *made.shaped(5))),
        ["varying_shapes"],
    ),
    "kernels of a capture window come instead": (with_window, ["layout-copy"]),
    "seconds of another finding are no compilations to keep": (
        lambda: made.session(
            made.compiled(cache="off", operations=2_000, compile_seconds=2.6),
            made.compiled(cache="off", operations=900, compile_seconds=5.5),
            *made.steady(10, {"compile": 0.8, "device_busy": 0.2}),
        ),
        ["cache_off", "large_program"],
    ),
    "a setting that makes the program another one comes first": (
        lambda: made.session(*debugged(), *made.shaped(9)),
        ["debug_settings", "varying_shapes"],
    ),
    "of a run that is compared its pitfalls are said": (
        lambda: session_of(*sessions.jit_run("r2", "r1"), *warned("r2", code="compiled_again")),
        ["compiled_again"],
    ),
    "what a baseline could do better is not told": (
        lambda: session_of(*sessions.jit_run("r2", "r1"), *warned("r1", code="compiled_again")),
        [],
    ),
    "a program that records itself cannot be started by a command": (recording_itself, ["varying_shapes"]),
    "a window that failed for want of steps is taken by time": (
        lambda: failed_window("no capture: no steps were counted before the program ended"),
        ["varying_shapes"],
    ),
    "a window that failed otherwise is not advised again": (
        lambda: failed_window("no capture: the profiler wrote no file"),
        ["varying_shapes"],
    ),
    "a program without jax": (made.without_jax, ["program_failed"]),
    "a captured kernel costs its share of a call": (lambda: run_of(TRANSPOSES, CAPTURE), ["layout-copy"]),
    "without a capture and without ceilings it costs bytes": (lambda: run_of(TRANSPOSES), ["layout-copy"]),
    "kernels that take next to nothing": (
        lambda: run_of(TRANSPOSES, sessions.kernels(fusion_1=1e-5, fusion_2=1e-3)),
        [],
    ),
    "a run without a planned capture is run with one": (without_capture, []),
    "a side that is slower": (lambda: compared(1.5), ["slower"]),
    "a comparison without a verdict": (lambda: compared(1.5, together=False), []),
    "what makes times meaningless comes before what costs time": (
        lambda: run_of(TRANSPOSES, CAPTURE, *warned("r2", code="folded_constants")),
        ["folded_constants", "layout-copy"],
    ),
    "a refused allocation": (sessions.whole, ["out-of-memory"]),
    "a doubt about two runs": (lambda: run_of(MENDED, *warned("r1", "r2")), []),
    "what JAX announced is in both ends of an interval": (single_operations, ["op_by_op_loop"]),
    "a profile costs the time of its devices": (
        lambda: fold(sessions.HEADER, profile(DOUBT)),
        ["layout-copy", "device-idle", "launch-gaps"],
    ),
    "what devices did not do is a part of their time": (idle_profile, ["layout-copy", "device-idle", "launch-gaps"]),
    "what a recorded program captured is a part of its device time": (captured_program, ["layout-copy", "launch-gaps"]),
    "a call on a GPU that is bound by its dispatch": (lambda: on_gpu(630e-6, 400e-6, 1e-4), ["dispatch-bound-call"]),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_found_and_in_which_order(case):
    session, expected = CASES[case]
    found = explained(session())
    assert codes(found) == expected
    assert {*expected} <= set(entries())


def test_what_is_said_of_each():
    """Their costs, places and commands, and what is not known."""
    held_cases("explanations.txt", {case: explanation_text(explained(make())) for case, (make, _) in CASES.items()})


def test_hlo_alone_costs_bytes_and_says_so(tmp_path):
    file = tmp_path / "turn.hlo"
    file.write_text(TRANSPOSES)
    modules = modules_at(file)
    found = explanation_of_modules(modules, str(file))
    (finding,) = found.findings
    assert (found.subject, finding.code, finding.cost.bytes) == ("hlo", "layout-copy", 8 << 20)
    assert finding.verify == f"jaxprof hlo {file} --findings"
    assert unknown(found) == ["no-times"]
    file.write_text("no HLO at all")
    with pytest.raises(HloError):
        explanation_of_modules([replace(modules[0], stages={"hlo": file.read_text})], str(file))


@pytest.mark.parametrize(
    ("name", "changed_after", "line"), [("turn.py", -10.0, "y = x.T"), ("turn.py", 10.0, ""), ("secret", -10.0, "")]
)
def test_a_line_is_quoted_only_of_a_program_that_is_as_old_as_the_session(tmp_path, name, changed_after, line):
    file = tmp_path / name
    file.write_text("\n" * 6 + "    y = x.T\n")
    changed_at = sessions.HEADER.wall_seconds + changed_after
    os.utime(file, (changed_at, changed_at))
    (finding,) = explained(run_of(TRANSPOSES.replace("/home/me/turn.py", str(file)))).findings
    assert finding.code_line == line
