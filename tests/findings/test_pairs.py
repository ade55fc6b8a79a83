"""Every code of the catalogue has a minimal pair: a case in which it is said, and the same mended, in which it is not.

A new code without a pair fails here, or in the tests of its source. Each finding of each source is in the catalogue,
which leads to pages that exist."""

import os
import re
import subprocess
import sys
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import pytest
import test_hlo_findings
import test_module_findings
import test_program_findings
import test_slow_forms
import test_trials
from explained_sessions import MENDED, codes, compared, explained, on_gpu, run_of, steps, unknown

from analysis.made_runs import hlo_text, planned, run, session
from jaxprof import events as e
from jaxprof.analysis.runs.run_result import result
from jaxprof.base.errors import UsageError
from jaxprof.base.units import seconds
from jaxprof.findings import hlo, programs
from jaxprof.findings.catalogue import SOURCES, entries, find_entry
from jaxprof.findings.hlo.scene import HloCheck
from jaxprof.findings.programs.claims import ProgramCheck
from jobs.test_job_findings import FOUND, NOTHING, figures
from report import sessions
from waiting import SLOWER

TESTS = Path(__file__).parents[1]
ELSEWHERE = {
    "engine": "folded_constants dead_code dtype_narrowed compiled_again zero_copy not_captured compile_cached "
    "over_budget max_seconds_reached",
    "runner": "unlike_results results_differ worker_silent",
}
"""Warnings that an engine or the scheduler raises: the tests of these have their cases. `tests/trace` has those of
trust, which the engine finds."""
STEADY = [1.0, 1.01, 0.99, 1.0, 1.02, 1.0] * 4


def said(make):
    """The findings and the abstentions of a session."""

    def of():
        found = explained(make())
        return codes(found) + unknown(found)

    return of


def captured(**parts):
    """What is said of a profile of ten steps of 1 ms on a GPU."""
    plan = planned("r2", variant="profile", how="imported", device="gpu:0")
    return said(lambda: session(plan, steps("gpu", **parts)))


def of_one_line(count, lines):
    """What is said of a profile of so many programs, of which each computes so many lines."""
    program = """HloModule f, is_scheduled=true
ENTRY %f (p: f32[64]) -> f32[64] {
  %p = f32[64]{0} parameter(0)
  %sine.1 = f32[64]{0} sine(%p), metadata={source_file="/home/me/f.py" source_line=FIRST}
  ROOT %tanh.2 = f32[64]{0} tanh(%sine.1), metadata={source_file="/home/me/f.py" source_line=LAST}
}
"""
    events = [planned("r0", variant="profile", how="imported", device="gpu:0"), *steps("gpu", run="r0")]
    for number in range(1, count + 1):
        events += [
            planned(f"r{number}", workload=f"jit_f{number}", variant="profile", how="imported", device="gpu:0"),
            hlo_text(program.replace("FIRST", f"{number}1").replace("LAST", f"{number}{lines}"), f"r{number}"),
            e.CaptureTaken(run=f"r{number}", kind="imported", platform="gpu", calls=10),
            replace(sessions.kernels(sine_1=1e-3, tanh_2=1e-3), run=f"r{number}", kind="imported"),
        ]
    return said(lambda: session(*events))


def slow_kernel(times):
    """A function whose kernel takes so many times as long as its device needs to move its data."""
    return test_module_findings.captured(times * test_module_findings.FAST)


def of_samples(samples, *more):
    """The warnings of a run with these samples."""
    return lambda: [one.code for one in result(session(run("r1", *more, samples=samples)), "r1").warnings]


def turns_of(turn, alone=STEADY, run="r1", second=0):
    """Three launches of a run: its calls in each of twenty turns, beside those of it alone. The blocks of a `second`
    one follow those of the first."""
    events = []
    for launch in (1, 2, 3):
        off = 1 + launch / 1000
        events.append(e.WorkerStarted(run=run, pid=launch, python="python", launch=launch))
        events.append(e.SamplesTaken(run=run, series="alone", seconds=[off * value for value in alone]))
        for block in range(1, 21):
            seconds = [value * off * (1 + block % 5 / 500) for value in turn]
            events.append(
                e.SamplesTaken(run=run, series="run", seconds=seconds, block=40 * launch + 2 * block + second)
            )
    return events


def in_turns(turn):
    return of_samples([], *turns_of(turn))


def machine(busy, run="r1"):
    return e.EnvironmentRead(run=run, python="3", numpy="2", settings={"other_busy_cores": busy, "cores": 2})


def of_two(turn, *more):
    """The warnings of a run beside one of a second a call, whose slow calls are as long, and whose fast ones not."""
    ours = [*turns_of(turn, alone=turn, run="r2", second=1), *more]
    runs = session(run("r1", *turns_of(STEADY)), run("r2", *ours, baseline="r1"))
    return lambda: [one.code for one in result(runs, "r2").warnings]


def faulting(faults, share):
    return e.PhaseEnded(run="r1", phase="run", seconds=2.0, page_faults=faults, kernel_share=share)


def checked(passed):
    return e.CheckReported(run="r1", passed=passed, tolerance=1e-5)


def throttled(*reasons):
    return e.DeviceReading(run="r1", device="cpu:0", throttle_reasons=list(reasons))


def compile_with(stage, took, name="part"):
    part = e.PassTimes(name=name, stage=stage, seconds=took, self_seconds=took)
    tree = e.PassTimes(
        name="compile", stage="compile", seconds=5.0, self_seconds=max(0.0, 5.0 - took), children=(part,)
    )
    return said(lambda: run_of(MENDED, e.CompilePasses(run="r2", tree=tree)))


def compiling(idle, *, in_steps=0.0):
    """What is said of a profile of 10 s in which no device ran anything while two modules were compiled."""
    tree = e.PassTimes(name="compile", stage="compile", seconds=5.0)
    modules = (e.ModuleCompiles(module="jit_step", count=9, seconds=4.0), e.ModuleCompiles(count=1, seconds=1.0))
    cause = e.IdleCause(cause="compile", seconds=in_steps)
    return said(
        lambda: session(
            planned("r2", variant="profile", how="imported", device="gpu:0"),
            e.CaptureTaken(run="r2", kind="imported", platform="gpu", wall_seconds=10.0),
            e.StepsMeasured(
                run="r2", found_by="modules", devices=[e.StepsDevice(device="gpu:0", idle_causes=(cause,))]
            ),
            e.CompilePasses(run="r2", tree=tree, modules=modules, idle_seconds=idle),
        )
    )


def ended(status, error=""):
    return said(lambda: session(planned(), e.RunFinished(run="r1", status=status, error=error)))


def of_job(processes):
    return lambda: [one.code for one in figures(processes).findings]


GOOD = of_samples(STEADY)
OF_JOBS = {
    # code: a job of the cases in which it is found, and one of those in which nothing is
    "process_failed": ("a session that has no end", "a clean job"),
    "failed_after": ("the exception that came first", "a clean job"),
    "process_awaited": ("one goes on, and the others wait for a minute", "one goes on"),
    "process_standstill": ("one sleeps, and the others wait in a collective", "one sleeps, for ten seconds"),
    "process_paused": ("one was stopped, and nobody waited", "a tenth of a second"),
    "recompiles_alone": ("one compiles again alone", "what all share"),
    "recompiles": ("all compile again", "all compile twice again"),
    "straggler": ("one of four works on its host", "a small difference"),
    "throttled_device": ("a device that is held back", "a lower clock without a reason"),
    "exposed_exchange": ("an exchange that takes much of the time", "a short exchange"),
    "slow_device": ("a device, as the host explains nothing", "captures of few steps"),
}
PAIRS = {
    "device_idle": (captured(idle=2e-4), captured(idle=5e-5)),
    "launch_gaps": (captured(launch_gaps=2e-4), captured(launch_gaps=5e-5)),
    "exposed_collectives": (captured(collectives_exposed=2e-4), captured(collectives_exposed=5e-5)),
    "copies_in_steps": (captured(transfers=2e-4), captured(transfers=5e-5)),
    "separate_programs": (of_one_line(4, lines=1), of_one_line(4, lines=2)),
    "compiles_in_profile": (compiling(4.0), compiling(0.9)),
    "slow_kernel": (said(lambda: slow_kernel(5)), said(lambda: slow_kernel(3))),
    "run_failed": (ended("failed", "ValueError: no"), ended("ok")),
    "out_of_memory": (said(sessions.whole), said(lambda: run_of(MENDED))),
    "wrong_result": (of_samples(STEADY, checked(False)), of_samples(STEADY, checked(True))),
    "noise": (of_samples([1.0, 2.0, 3.0, 1.0, 2.0, 3.0, 9.0]), GOOD),
    "no_interval": (of_samples([1.0 + 0.01 * index for index in range(12)]), GOOD),
    "few_samples": (of_samples(STEADY[:2]), GOOD),
    "drift": (of_samples(STEADY[:18] + [2 * value for value in STEADY[:18]]), GOOD),
    "two_modes": (of_samples([6.0 + n % 7 / 50 if n % 3 == 0 else 2.0 + n % 5 / 50 for n in range(100)]), GOOD),
    "outliers": (of_samples(STEADY + [9.0] * 6), GOOD),
    "busy_machine": (of_samples(STEADY, machine(0.8)), of_samples(STEADY, machine(0.1))),
    "page_faults": (of_samples(STEADY, faulting(576.0, 0.42)), of_samples(STEADY, faulting(8790.0, 0.05))),
    "disturbed": (in_turns([1.6, 1.62, 1.58, 1.6]), in_turns([1.01, 1.0, 1.02, 1.01])),
    "not_of_medians": (
        of_two([0.5, *STEADY], machine(0.8, "r2")),
        of_two([0.5, *STEADY], machine(0.1, "r2")),
    ),
    "unsettled": (in_turns([1.1, 1.1, 0.9, 0.9]), in_turns([1.0, 1.01, 1.0, 1.01])),
    "throttled": (of_samples(STEADY, throttled("power cap")), of_samples(STEADY, throttled())),
    "dispatch_bound_call": (said(lambda: on_gpu(630e-6, 400e-6, 1e-4)), said(lambda: on_gpu(630e-6, 2e-5, 1e-4))),
    "copies_outweigh_work": (said(lambda: on_gpu(630e-6, 2e-5, 9e-4)), said(lambda: on_gpu(630e-6, 2e-5, 1e-4))),
    "slow_autotuning": (compile_with("autotuning", 3.0), compile_with("autotuning", 0.5)),
    "slow_llvm": (compile_with("LLVM", 9.0), compile_with("LLVM", 3.0)),
    "slow_constant_folding": (
        compile_with("HLO passes", 3.0, "constant_folding"),
        compile_with("HLO passes", 3.0, "algsimp"),
    ),
    "slow_ptx": (compile_with("PTX", 3.0), compile_with("PTX", 0.5)),
    "slower": (said(lambda: compared(1.5)), said(lambda: compared(1.0))),
    "inconclusive": (said(lambda: compared(1.5, together=False)), said(lambda: compared(1.5))),
    "tried_and_faster": (
        said(lambda: test_trials.session_of(("map", 5e-4, test_trials.CLOSE))),
        said(lambda: test_trials.session_of(("map", 5e-4, test_trials.FAR))),
    ),
    **test_hlo_findings.PAIRS,
    **test_slow_forms.PAIRS,
    **{code: tuple(partial(test_program_findings.every_code, *events) for events in pair)
       for code, pair in test_program_findings.PAIRS.items()},
    **{code: (of_job(FOUND[case][0]), of_job(NOTHING[near])) for code, (case, near) in OF_JOBS.items()},
}  # fmt: skip
"""What says a code, and the same mended, which does not."""


def test_compile_in_the_steps_counts_once():
    assert "compiles_in_profile" in compiling(4.0, in_steps=2.9)()
    assert "compiles_in_profile" not in compiling(4.0, in_steps=3.1)()


def test_every_code_has_a_pair():
    for folder, codes_there in ELSEWHERE.items():
        texts = "".join(path.read_text() for path in (TESTS / folder).rglob("test_*.py"))
        assert [code for code in codes_there.split() if f'"{code}' not in texts] == []
    elsewhere = set(" ".join(ELSEWHERE.values()).split())
    assert PAIRS.keys() | elsewhere == {entry.code for entry in entries().values() if entry.source != "trust"}
    assert not PAIRS.keys() & elsewhere


@pytest.mark.parametrize(("package", "kind"), [(programs, ProgramCheck), (hlo, HloCheck)])
def test_every_check_is_in_the_list_of_its_package(package, kind):
    modules = [import_module(f"{package.__name__}.{each.name}") for each in iter_modules(package.__path__)]
    made = {each.code for module in (package, *modules) for each in vars(module).values() if isinstance(each, kind)}
    assert made == {each.code for each in (*package.CHECKS, *getattr(package, "REMARKS", ()))}


@pytest.mark.parametrize("near", [(2.0, 0.42), (None, 0.42), (576.0, None)])
def test_kernel_time_without_page_faults_is_not_reported(near):
    assert "page_faults" not in of_samples(STEADY, faulting(*near))()


@pytest.mark.parametrize(("how", "fix"), [("numpy", "out="), ("jit", "donate_argnums"), ("eager", "jax.jit")])
def test_what_avoids_page_faults_depends_on_what_allocates(how, fix):
    made = session(run("r1", faulting(576.0, 0.42), samples=STEADY, how=how))
    (warning,) = (one for one in result(made, "r1").warnings if one.code == "page_faults")
    assert warning.message.startswith("about 576 page faults a call, and 42 % of its CPU time in the kernel: ")
    assert fix in warning.advice


@pytest.mark.parametrize(("results", "fix"), [(1 << 20, "MALLOC_TOP_PAD_"), (64 << 20, "donate_argnums")])
def test_only_memory_of_results_can_be_donated(results, fix):
    memory = e.MemoryReported(run="r1", output_bytes=results, temporary_bytes=37 << 20)
    made = session(run("r1", faulting(9069.0, 0.33), memory, samples=STEADY))
    (warning,) = (one for one in result(made, "r1").warnings if one.code == "page_faults")
    assert fix in warning.advice


def test_page_faults_are_not_reported_of_a_gpu():
    made = session(run("r1", faulting(576.0, 0.42), samples=STEADY, device="cuda:0"))
    assert "page_faults" not in [one.code for one in result(made, "r1").warnings]


def test_call_that_copies_its_result_is_not_dispatch_bound():
    assert "dispatch_bound_call" not in said(lambda: on_gpu(630e-6, 620e-6, 1e-4, out=False))()


@pytest.mark.parametrize("code", PAIRS)
def test_it_is_said_of_the_case_and_not_of_the_mended_one(code):
    case, mended = PAIRS[code]
    assert code in case()
    assert code not in mended()


DOCS = Path(__file__).parents[2] / "docs"


def test_every_finding_is_an_entry_of_one_source():
    assert {entry.source for entry in entries().values()} == set(SOURCES)
    assert len({code.replace("_", "-") for code in entries()}) == len(entries())


def test_an_entry_is_whole():
    for entry in entries().values():
        assert all((entry.title, entry.means, entry.fix.endswith("."))), entry.code
        page, _, anchor = entry.page.partition("#")
        headings = re.findall(r"^#+ (.+)$", (DOCS / page).read_text(), re.MULTILINE)
        anchors = {re.sub(r"[^\w\- ]", "", each).lower().replace(" ", "-") for each in headings}
        assert not anchor or anchor in anchors, entry.code


@pytest.mark.process
def test_each_flag_that_an_entry_names_exists_in_this_jaxlib():
    """XLA ends a process that sets one that it does not know, and names all of these."""
    text = " ".join(f"{entry.means} {entry.fix}" for entry in entries().values())
    flags = sorted(set(re.findall(r"--xla_\w+=[\w,]*", text)))
    assert len(flags) >= 4
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": " ".join([*flags, "--xla_no_such_flag=1"])}
    command = [sys.executable, "-c", "import jax; jax.devices()"]
    said = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=50 * SLOWER, check=False
    ).stderr
    assert re.findall(r"--xla_\w+", said) == ["--xla_no_such_flag"]


def test_code_is_found_by_its_words_or_refused():
    assert find_entry("host_sync").code == find_entry(" HOST-SYNC ").code == "host_sync"
    with pytest.raises(UsageError, match="host_sync"):
        find_entry("host-sink")


@pytest.mark.parametrize(
    ("ours", "theirs", "measured"),
    [(1.05, 1.05, "in turns"), (1.6, 1.6, "in turns"), (1.6, 1.0, "launches in turns"), (1.0, 1.0, "in turns")],
    ids=["little", "much", "one", "none"],
)
def test_disturbed_run_has_the_speedup_of_its_turns(ours, theirs, measured):
    """One that is disturbed for itself has that of both alone."""
    noisy = [1.1, 0.9, 1.0, 1.08, 0.92, 1.0, 1.0, 1.02, 0.98, 1.0]
    sides = [turns_of([factor * value for value in STEADY], noisy, name, second)
             for factor, name, second in ((theirs, "r1", 0), (ours, "r2", 1))]  # fmt: skip
    speedup = result(session(run("r1", *sides[0]), run("r2", *sides[1], baseline="r1")), "r2").versus.speedup
    assert (speedup.measured, speedup.ratio) == (measured, pytest.approx(1.0, rel=0.01))


def test_the_time_alone_in_a_note_is_the_one_on_screen():
    skewed = [1.0, 1.4, 1.0, 1.4, 1.0, 1.4, 1.4, 1.4, 1.4]
    found = result(session(run("r1", *turns_of([2.0] * 4, skewed))), "r1")
    (note,) = [warning.message for warning in found.warnings if warning.code == "disturbed"]
    assert f"takes {seconds(found.summary.median)} alone and " in note
    assert found.summary.median != pytest.approx(1.4, rel=0.01), "the middle sample of the middle launch"
