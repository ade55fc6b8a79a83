"""What an explanation ranks first, what it costs and rests on, and what it does not say. What the kernels of a compiled
program weigh: by a capture, by the least times on their device, or not at all."""

import hashlib
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
    with_hlo,
)

import program_events as made
from analysis.made_runs import run, session
from folding import changed, fold
from golden import explanation_text, figures_text, held, held_cases
from hlo.kernels.programs import written
from jaxprof import events as e
from jaxprof.analysis.kernels import module_of
from jaxprof.analysis.kernels.measured import longest_kernel
from jaxprof.analysis.runs.ceilings import of_call
from jaxprof.events.finding import Finding
from jaxprof.findings import rank
from jaxprof.findings.catalogue import entries
from jaxprof.findings.modules import KernelWeights, weights_of_call, with_cost, without_overlap
from jaxprof.hlo.kernels.kernels import kernels
from jaxprof.report.explain import answers
from report import sessions

SEEN = [*made.shaped(33, compile_seconds=0.1), *made.steady(5, {"device_busy": 1.0})]
"""A program with one finding."""


def warned(*runs, code="noise"):
    return [e.WarningRaised(run=run, code=code, message="± 12 % only", advice="Look.") for run in runs]


DEBUGGED = changed(made.steady(2, {"device_busy": 1.0}), e.ProgramSampled, debug_settings=["jax_debug_nans"])


def with_window():
    """A program that compiles for most of the time, and a capture window of it."""
    run = replanned(with_hlo(sessions.jit_run("r2", ""), TRANSPOSES), how="imported")
    whole = made.program(*mostly_compiling(6.0))
    return fold(made.HEADER, [*whole[:-1], *run[:-2], replace(CAPTURE, kind="imported"), *run[-2:], whole[-1]])


def failed_window(**why):
    return made.session(*SEEN, e.CaptureWindow(run="r1", state="failed", **why))


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


def captured_program():
    recorded = made.program(*made.shaped(2, compile_seconds=0.1), *made.steady(50, {"device_busy": 1.0}))
    return fold(made.HEADER, [*recorded, *(replace(event, run="c" + event.run) for event in profile())])


WAITED = made.line(88, 1.0, "device_busy", "jax.block_until_ready()", kind="sync")
UNSEEN = made.line(88, 0.9, "host_busy", "jnp.sin()", kind="dispatch")
"""A line of a loop that no finding is about."""
MOSTLY_IDLE = [e.StepsDevice(device="gpu:0", busy_seconds=4e-3, span_seconds=0.8)]
DOUBT = e.TrustReported(
    run="r1", kind="imported", rows=[e.TrustCheck(code="sum", verdict="doubt", message="busy for 20%")]
)


def to_explain():
    """Sessions, each by what is to be seen in it."""
    return {
        "compilations that are not kept are what is left to save": made.session(*mostly_compiling(6.0)),
        "compilations that take a third": made.session(*mostly_compiling(3.0)),
        "compilations that are kept": made.session(*mostly_compiling(6.0, "hit")),
        "what the program itself can change for less time comes after them": made.session(
            *mostly_compiling(6.0, "off", *made.shaped(5))
        ),
        "what costs more than they do comes before them": made.session(
            *mostly_compiling(6.0, "off", *made.shaped(40, compile_seconds=0.2))
        ),
        "kernels of a capture window come after them": with_window(),
        "what is unexplained of a short loop does not lead before them": made.session(
            *mostly_compiling(9.0), *(made.sampled(at, 0.9, {"host_busy": 0.9}, [UNSEEN]) for at in (10, 11, 12))
        ),
        "it does before those that take less of the work": made.session(
            *mostly_compiling(4.0), *(made.sampled(at, 0.9, {"host_busy": 0.9}, [UNSEEN]) for at in (10, 11, 12))
        ),
        "seconds of another finding are no compilations to keep": made.session(
            made.compiled(cache="off", operations=2_000, compile_seconds=2.6),
            made.compiled(cache="off", operations=900, compile_seconds=5.5),
            *made.steady(10, {"compile": 0.8, "device_busy": 0.2}),
        ),
        "a setting that makes the program another one comes first": made.session(*DEBUGGED, *made.shaped(9)),
        "of a run that is compared its pitfalls are said": session_of(
            *sessions.jit_run("r2", "r1"), *warned("r2", code="compiled_again")
        ),
        "what a baseline could do better is not told": session_of(
            *sessions.jit_run("r2", "r1"), *warned("r1", code="compiled_again")
        ),
        "a program that records itself cannot be started by a command": fold(
            made.HEADER, changed(made.program(*SEEN), e.ProgramStarted, how="record")
        ),
        "a window that failed for want of steps is taken by time": failed_window(code="ended_uncounted", seconds=0.5),
        "a window that failed otherwise is not advised again": failed_window(code="no_file"),
        "nor is it where the device is waited for": made.session(
            *made.steady(20, {"device_busy": 1.0}, [WAITED]), e.CaptureWindow(run="r1", state="failed", code="no_file")
        ),
        "a program without jax": made.without_jax(),
        "a captured kernel costs its share of a call": run_of(TRANSPOSES, CAPTURE),
        "without a capture and without ceilings it costs bytes": run_of(TRANSPOSES),
        "kernels that take next to nothing": run_of(TRANSPOSES, sessions.kernels(fusion_1=1e-5, fusion_2=1e-3)),
        "a run without a planned capture is run with one": session_of(
            *replanned(sessions.jit_run("r2", "r1"), capture=False)
        ),
        "a side that is slower": compared(1.5),
        "a comparison without a verdict": compared(1.5, together=False),
        "what makes times meaningless comes before what costs time": run_of(
            TRANSPOSES, CAPTURE, *warned("r2", code="folded_constants")
        ),
        "a refused allocation": sessions.whole(),
        "a doubt about two runs": run_of(MENDED, *warned("r1", "r2")),
        "what JAX announced is in both ends of an interval": single_operations(),
        "findings in a profile cost the time of its kernels": fold(sessions.HEADER, profile(DOUBT)),
        "what devices did not do is no part of that": fold(
            sessions.HEADER, changed(profile(), e.StepsMeasured, devices=MOSTLY_IDLE)
        ),
        "what a recorded program captured is a part of its device time": captured_program(),
        "a call on a GPU that is bound by its dispatch": on_gpu(630e-6, 400e-6, 1e-4),
    }


def test_what_is_found_in_which_order_and_what_is_said_of_each():
    """Their costs, places and commands, and what is not known."""
    told = {case: explained(session) for case, session in to_explain().items()}
    held_cases("explanations.txt", {case: explanation_text(found) for case, found in told.items()})
    assert {code for found in told.values() for code in codes(found)} <= set(entries())


@pytest.mark.parametrize(
    ("name", "recorded", "line"),
    [("turn.py", "y = x.T", "y = x.T"), ("turn.py", "y = x", ""), ("turn.py", None, ""), ("secret", "y = x.T", "")],
)
def test_line_is_quoted_only_of_a_file_with_its_digest(tmp_path, name, recorded, line):
    """Whatever the time of the file is: the session states that, too."""
    file = tmp_path / name
    file.write_text("\n" * 6 + "    y = x.T\n")
    os.utime(file, (1, 1))
    session = run_of(TRANSPOSES.replace("/home/me/turn.py", str(file)))
    if recorded is not None:
        content = "\n" * 6 + f"    {recorded}\n"
        session.runs["r1"].sources[str(file)] = hashlib.sha256(content.encode()).hexdigest()
    (finding,) = explained(session).findings
    assert finding.code_line == line


H200 = "NVIDIA H200"


def measured(name="r1", seconds=1e-3, **more):
    """A run on a GPU: how long its calls took, if they were made."""
    how = "jit" if seconds else "compile"
    samples = [seconds] * 9 if seconds else []
    return run(name, samples=samples, how=how, device="cuda:0", **{"kind": H200, "hlo": TRANSPOSES, **more})


def share(*events):
    of = session(events)
    reached = of_call(of, of.runs["r1"])
    return reached.roofline if reached is not None else None


@pytest.mark.parametrize(
    "lacks", [{"kind": "a device that nobody knows"}, {"hlo": None}, {"hlo": "no HLO"}, {"seconds": None}]
)
def test_nothing_is_reported_without_device_hlo_or_time(lacks):
    assert share(*measured(**lacks)) is None


def test_kernel_without_a_capture_costs_part_of_the_least_time():
    def weights(**more):
        of = session(measured(**more))
        module = module_of(of, of.runs["r1"])
        assert module is not None
        return weights_of_call(of, of.runs["r1"], module)

    timed, compiled, unknown = weights(), weights(seconds=None), weights(kind="a device that nobody knows")
    assert timed.scope == "call"
    assert timed.estimate is True
    assert timed.seconds == pytest.approx(1e-3)
    assert sum(timed.shares.values()) == pytest.approx(1.0)
    assert 0 < compiled.seconds < 1e-3, "of a program that was only compiled it is an estimate"
    assert (compiled.low, compiled.high) == (None, None)
    assert (unknown.shares, unknown.seconds) == ({}, None)


@pytest.mark.parametrize(("kernel_seconds", "most"), [(1e-3, 1e-4), (9e-3, 9e-4), (2e-2, 1e-3)])
def test_kernels_cost_no_more_of_a_call_than_they_ran(kernel_seconds, most):
    """Ten calls of a millisecond each, of which the rest is the host's; with the profiler on they may be slower."""
    of = session(measured(), sessions.kernels("r1", fusion_1=kernel_seconds))
    weights = weights_of_call(of, of.runs["r1"], module_of(of, of.runs["r1"]))
    assert (weights.seconds, weights.scope_seconds or 1e-3) == (pytest.approx(most), pytest.approx(1e-3))
    assert weights.shares == {"fusion.1": 1.0}


@pytest.mark.parametrize(("kind", "known"), [(H200, "its ceilings"), ("a device that nobody knows", "its work")])
def test_kernels_of_a_partly_recorded_call_cost_parts_of_all(kind, known):
    """Ops that went on in threads without a record took longer than is recorded."""
    gaps = e.TrustReported(run="r1", kind="run", rows=[e.TrustCheck(code="unrecorded", verdict="doubt")])
    of = session(measured(kind=kind), sessions.kernels("r1", fusion_1=1e-5), gaps)
    weights = weights_of_call(of, of.runs["r1"], module_of(of, of.runs["r1"]))
    assert weights.seconds == pytest.approx(1e-3), known
    assert len(weights.shares) > 1
    assert sum(weights.shares.values()) == pytest.approx(1.0)


def test_the_longest_kernel_is_that_of_all_captures_together():
    first = [*measured(), sessions.kernels("r1", fusion_1=1e-3, fusion_2=2e-3)]
    longest = longest_kernel(session(first, measured("r2"), sessions.kernels("r2", fusion_1=5e-3)))
    alone = longest_kernel(session(measured(hlo=None), sessions.kernels("r1", fusion_1=1e-3)))
    told = [
        (run, kernel.name, kernel.share, kernel.kernel and kernel.kernel.kind, kernel.kernel and kernel.kernel.source)
        for run, kernel in (longest, alone)
    ]
    held("longest_kernel.txt", figures_text(*told))
    assert longest_kernel(session(measured())) is None
    assert longest_kernel(session(measured(), sessions.kernels("r1", fusion_1=0.0))) is None


def test_causes_of_a_call_precede_those_of_its_compilation():
    of_call = Finding("", scope="call", seconds=0.01, share=0.9, code="slow_kernel")
    of_compile = Finding("", scope="compile", seconds=9.0, share=0.9, code="slow_llvm")
    negligible = Finding("", scope="call", seconds=0.001, share=0.02, code="padding")
    assert sorted([negligible, of_compile, of_call], key=rank) == [of_call, of_compile, negligible]


def test_two_findings_about_one_kernel_save_its_time_once():
    weights = KernelWeights(scope="call", shares={"a": 0.6, "b": 0.3}, seconds=1.0)
    both = Finding("", kernels=("a", "b"), seconds=0.9, at_most=True, code="slow_kernel")
    first = Finding("", kernels=("a",), seconds=0.6, saves_seconds=0.6, code="layout_copy")
    apart = Finding("", kernels=("b",), seconds=0.3, code="padding")
    assert [each.saves_seconds for each in without_overlap([both, first], weights, {})] == [0.6, pytest.approx(0.3)]
    assert list(without_overlap([apart, first], weights, {})) == [first, apart]


def test_kernels_that_go_with_a_finding_have_no_second_one():
    weights = KernelWeights(scope="call", shares={"a": 0.6, "b": 0.3}, seconds=1.0)
    gone = Finding("", kernels=("a", "b"), seconds=0.9, saves_seconds=0.9, code="padding")
    again = Finding("", kernels=("a",), seconds=0.6, saves_seconds=0.6, code="layout_copy")
    part = replace(gone, saves_seconds=None, at_most=True, seconds=1.8)
    assert list(without_overlap([again, gone], weights, {})) == [gone]
    assert [each.code for each in without_overlap([again, part], weights, {})] == ["padding", "layout_copy"]


def test_kernels_without_times_cost_at_most_their_module():
    unseen = Finding("", kernels=("y",), code="random_bits")
    of_program = KernelWeights(scope="program", shares={"call": 0.04}, seconds=10.0)
    found = with_cost(unseen, of_program, {})
    assert found.seconds == pytest.approx(0.4)
    assert found.at_most
    assert with_cost(unseen, replace(of_program, shares={"call": 0.01}), {}) is None
    assert with_cost(unseen, replace(of_program, scope="call"), {}).seconds is None


@pytest.mark.parametrize(("mark", "seconds"), [(', frontend_attributes={xla_cpu_small_call="true"}', 0.9), ("", None)])
def test_finding_in_an_xla_function_costs_at_most_its_call(mark, seconds):
    """A capture has the call alone; it may do more than what the finding is about."""
    module = written(f"""
        body {{
          s = (s32[], f32[8]) parameter(0)
          x = f32[8] get-tuple-element(s), index=1
          i = s32[] get-tuple-element(s), index=0
          y = f32[8] negate(x)
          ROOT t = (s32[], f32[8]) tuple(i, y)
        }}

        condition {{
          s = (s32[], f32[8]) parameter(0)
          ROOT go = pred[] constant(true)
        }}

        outlined {{
          s = (s32[], f32[8]) parameter(0)
          ROOT loop = (s32[], f32[8]) while(s), condition=condition, body=body
        }}

        ENTRY main {{
          s = (s32[], f32[8]) parameter(0)
          x = f32[8] get-tuple-element(s), index=1
          first = f32[8] copy(x)
          ROOT call = (s32[], f32[8]) call(s), to_apply=outlined{mark}
        }}
    """)
    weights = KernelWeights(scope="call", shares={"call": 0.9, "first": 0.05, "other": 0.05}, seconds=1.0)
    by_name = {each.name: each for each in kernels(module)}
    both = with_cost(Finding("", kernels=("y", "first"), code="copy_traffic"), weights, by_name)
    assert both.seconds == pytest.approx(0.05 + (seconds or 0.0)), "what stands before the call is timed by itself"
    found = with_cost(Finding("", kernels=("y",), code="whole_carry"), weights, by_name)
    assert (found.seconds, found.saves_seconds) == (seconds, None)
    assert found.at_most is (seconds is not None)
    assert found.kernels == (("call", "y") if seconds else ("y",)), "what it explains is what has the time"


def test_times_of_a_profile_are_the_mean_of_one_device():
    both = profile()
    alone = [replace(event, rows=event.rows[::2]) if isinstance(event, e.KernelsMeasured) else event for event in both]
    one, two = ("\n".join(answers(explained(fold(sessions.HEADER, each)))) for each in (alone, both))
    assert two.count("mean of 2 devices") == 1
    assert two.replace(", the mean of 2 devices, as is each time that names no device", "") == one


BRIEF = [
    made.sampled(0, 1.0, {"compile": 1.0}, [made.line(88, 1.0, "compile", "step", kind="compile")]),
    made.compiled(),
    made.compiled("evaluate", line=120, compile_seconds=3.0),
]


@pytest.mark.parametrize(
    ("more", "options"),
    [([], "--function step "), (made.loop(), "--capture-steps 5 ")],
    ids=["too brief to see", "seen long enough"],
)
def test_brief_function_is_to_be_measured_by_itself(more, options):
    """The one that the loop calls, although another one took longer to compile."""
    unknown = explained(made.session(*BRIEF, *more)).abstentions
    commands = [each.command for each in unknown]
    assert commands == [f"jaxprof script --plain {options}train.py --epochs 3"]


def test_function_of_one_program_is_not_that_of_another():
    """Of two programs in a session, the first was recorded with the function that is to be measured by itself."""
    first, second = made.program(*BRIEF), [replace(event, run="r2") for event in made.program(*BRIEF)]
    named = [
        replace(event, options={"function": "step"}) if isinstance(event, e.ProgramStarted) else event
        for event in first
    ]
    (unknown,) = [
        each for each in explained(fold(made.HEADER, [*named, *second])).abstentions if each.code == "no_verdict"
    ]
    assert "--function" not in unknown.command


@pytest.mark.parametrize(("steps", "proposed"), [("5", False), ("50", True)], ids=["it was that", "it was another"])
def test_command_that_recorded_a_session_is_not_proposed(steps, proposed):
    """Wherever its answer went; what is unknown is said all the same."""
    typed = f"/usr/bin/jaxprof script --out a.jaxprof --capture-steps {steps} train.py --epochs 3"
    recorded = made.program(*BRIEF, *made.loop())
    (unknown,) = explained(fold(replace(made.HEADER, command=typed.split()), recorded)).abstentions
    assert unknown.reason
    assert bool(unknown.command) is proposed


def other_compiler(jaxlib="0.12.0", code="1", *, captured=False, parts=1, variables=None):
    """Two sides with the same HLO, of which B takes three times as long."""
    runs = []
    for number, (name, version, digest) in enumerate((("r1", "0.10.2", "1"), ("r2", jaxlib, code))):
        median = 1e-3 * (1 + 2 * number)
        taken = [*sessions.turns(name, median, number), *sessions.later_launches(name, median, number)]
        taken += [sessions.environment(name, version), e.SourcesRead.of({"/w/m.py": digest}, name)]
        taken.append(
            e.ComparisonPlanned(
                run=name,
                margin=0.02,
                sides=[e.SideSpec(label="A", title=""), e.SideSpec(label="B", title="", environment=variables or {})],
            )
        )
        parted = {f"fusion_{part}": median / 2 / parts for part in range(2, 2 + parts)}
        taken += [sessions.kernels(name, fusion_1=1e-4, **parted)] * captured
        side = {"workload": "m.py:f", "target": "/w/m.py:f", "side": "AB"[number], "launches": 3}
        runs.append(run(name, *taken, hlo=TRANSPOSES, baseline="r1" * number, **side))
    return session(*runs, command=["jaxprof", "compare", "m.py:f", "--python-b", "other"])


def test_other_compiler_is_no_fault_of_the_program():
    found = explained(other_compiler())
    assert found.findings == ()
    assert (
        "A and B are the same program with other code from the compiler (jax 0.10.2 and 0.12.0, jaxlib 0.10.2 and"
        in (found.leading.reason)
    )
    assert found.leading.command == "jaxprof compare m.py:f --python-b other --capture"
    timed = explained(other_compiler(captured=True)).leading
    assert "kernels of a call" in timed.reason
    assert "fusion.2 " in timed.reason.partition("kernels of a call")[2]
    assert "fusion.1 " not in timed.reason, "it takes no part in the difference"
    many = explained(other_compiler(captured=True, parts=11)).leading
    assert many.reason.endswith(": none of them makes a tenth of the difference")


@pytest.mark.parametrize("changed", [{"jaxlib": "0.10.2"}, {"code": "2"}, {"variables": {"DEPTH": "9"}}])
def test_of_other_code_or_one_compiler_the_side_is_slower(changed):
    found = explained(other_compiler(**changed))
    assert found.leading is None
    assert "slower" in codes(found)
