"""`jaxprof gate`: programs whose truth is known, each limit, each form, each exit code. Times are limited where they
were measured in turns with the base, and undecided wherever they were not."""

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

import program_events
from cli.calling import commit_all
from cli.compiled import compiled, session
from folding import fold, written
from jaxprof import events as e
from jaxprof.analysis.runs.ab import ab_results
from jaxprof.base.errors import UsageError
from jaxprof.cli.answers import Outcome
from jaxprof.cli.commands.gate import _exit_code
from jaxprof.cli.output import ExitCode
from jaxprof.facts.gate import read_limit, read_limits
from jaxprof.findings.compare import FigureDifference
from jaxprof.findings.compare.gate import GateBase, GateResult, GateRow, judge_facts, judge_times
from jaxprof.findings.compare.session_difference import run_difference
from jaxprof.session.run import UNLIKE_RESULTS
from job_folders import ALL_REDUCE, job, loop
from report import sessions
from tables import rows


def _state(before, after, limit):
    (row,) = judge_facts("x", run_difference(before, before.runs["r1"], after, after.runs["r1"]), [read_limit(limit)])
    return row.state


def _holding(count):
    """Only the sums of its memory are known, and what its constants take."""
    hlo = f"""HloModule m, is_scheduled=true

ENTRY main {{
  x = f32[{count}]{{0}} parameter(0)
  c = f32[{count}]{{0}} constant({{...}})
  ROOT y = f32[{count}]{{0}} add(x, c)
}}
"""
    sums = e.MemoryReported(run="r1", argument_bytes=4, output_bytes=4, temporary_bytes=0)
    return session(hlo, sums)


COST = e.CostReported(run="r1", bytes_accessed=100.0, source=e.ESTIMATED_BY)
FACTS = {
    "cost": lambda flops: session(None, replace(COST, flops=None if flops == "?" else float(flops))),
    "holding": lambda count: _holding(int(count)),
    "donating": lambda size: session(None, e.MemoryReported(run="r1", alias_bytes=int(size))),
    "collective": lambda groups: session(ALL_REDUCE.replace("{{0,1,2,3}}", groups) if groups else sessions.HLO),
    "program": lambda n: session(parameters={"n": int(n)}),
}


def test_what_is_more_or_worse_than_its_limit_allows():
    for limit, fact, before, after, state in rows("""
        flops           cost        100          100            within
        flops           cost        100          101            exceeded
        flops:1%        cost        100          101            within
        flops:1%        cost        100          101.1          exceeded
        flops:0.5 %     cost        100          101            exceeded
        flops           cost        100          ?              undecided
        constant_bytes  holding     10           20             exceeded
        alias_bytes     donating    4096         0              exceeded
        alias_bytes     donating    0            4096           within
        collectives     collective  -            {{0,1,2,3}}    exceeded
        collectives     collective  {{0,1,2,3}}  {{0,1},{2,3}}  exceeded
        kernels         program     1            2              undecided
    """):
        assert _state(FACTS[fact](before), FACTS[fact](after), limit) == state, (limit, before, after)


@pytest.mark.parametrize("text", ["", "flops:", "flops:-1%", "flops:1", "run", "run:0%", "transfer_in:5%", "kernel"])
def test_a_limit_that_cannot_be_read(text):
    with pytest.raises(UsageError):
        read_limit(text)


def test_the_form_for_ci_is_printed(call, known):
    known |= {"old:f": session(), "new:f": session(sessions.HLO.replace("f32", "f64"))}
    words = ("gate", "new:f", "--base", "old:f", "--fail-on", "kernels", "--fail-on", "accessed_bytes:1%")
    said = call(*words, "--format", "markdown")
    assert said.code == 3
    assert said.out.startswith("```text\na limit was exceeded")
    assert call("gate", "old:f", "--base", "old:f", "--fail-on", "accessed_bytes").code == 0


def test_that_nothing_is_kept_comes_before_that_there_is_no_base(call):
    said = call("gate", "last", "--fail-on", "kernels")
    assert (said.code, said.err) == (ExitCode.USAGE, call("export", "last").err)


@pytest.mark.parametrize("words", ["", "--fail-on kernels", "--base selu:jit --fail-on kernels", "--base HEAD~1"])
def test_missing_target_is_unknown(call, kept, words):
    said = call("gate", "nosuch", *words.split())
    assert (said.code, said.err.splitlines()[0]) == (2, "jaxprof: unknown path, workload or session 'nosuch'")


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("last --for h100", "gate last --for h100 --base OTHER --fail-on kernels"),
        ("own.py:step", "gate own.py:step --fail-on kernels"),
        ("selu --base selu:jax", "gate selu --base selu:jax --fail-on kernels"),
    ],
)
def test_without_a_limit_the_whole_command_is_given(call, kept, words, line):
    said = call("gate", *words.split())
    assert (said.code, said.err.split("jaxprof ")[-1].strip()) == (ExitCode.USAGE, line)


def test_no_command_shows_how_a_session_differs_from_itself(call, kept):
    said = call("gate", "last", "--base", kept, "--fail-on", "compile:5%")
    assert said.code == 0
    assert said.out.startswith("undecided")
    assert "jaxprof compare" not in said.out


def test_what_grew_is_shown_by_a_command_that_can_be_run(call, known, tmp_path):
    grown = sessions.HLO.replace("f32", "f64")
    old, new = str(tmp_path / "old.jaxprof"), str(tmp_path / "new.jaxprof")
    for path, hlo in ((old, sessions.HLO), (new, grown)):
        written(Path(path), compiled(hlo), sessions.HEADER)
    known |= {"old:f": session(), "new:f": session(grown), old: session(), new: session(grown)}
    for words, told in (
        (("new:f", "--base", "old:f", "--arg", "f32[8]"), "compare --arg 'f32[8]' old:f new:f"),
        (("new:f", "--base", old, "--arg", "f32[8]"), f"hlo new:f --arg 'f32[8]' --diff {old}"),
        (("new:f", "--base", old, "--for", "h100"), f"compare --for h100 {old} new:f"),
        ((new, "--base", old), f"compare {old} {new}"),
    ):
        said = call("gate", *words, "--fail-on", "accessed_bytes")
        assert (said.code, said.out.splitlines()[-1].strip()) == (3, f"jaxprof {told}")


@pytest.mark.parametrize("option", ["--device cpu:0", "--arg f32[8]", "--for h100", "--set n=3"])
def test_options_of_a_compile_are_refused_if_nothing_is_compiled(call, known, tmp_path, option):
    old, new = str(tmp_path / "old.jaxprof"), str(tmp_path / "new.jaxprof")
    for path in (old, new):
        written(Path(path), compiled(sessions.HLO), sessions.HEADER)
    known |= {old: session(), new: session()}
    said = call("gate", new, "--base", old, "--fail-on", "accessed_bytes", *option.split())
    assert (said.code, said.err.splitlines()[0]) == (2, f"jaxprof: {option.split()[0]} applies to what is compiled now")
    assert call("gate", new, "--base", old, "--fail-on", "accessed_bytes").code == 0


def test_each_device_is_held_against_its_own(call, known):
    known |= {"old:f": session(devices=("h100", "tpu-v5e")), "new:f": session(devices=("tpu-v5e", "h100"))}
    known["other:f"] = session(devices=("a100",))
    words = ("gate", "new:f", "--fail-on", "kernels", "--format", "json", "--base")
    assert [row["label"].split()[-1] for row in call(*words, "old:f").data["limits"]] == ["tpu-v5e", "h100"]
    assert call(*words, "other:f").code == 2


def test_of_several_programs_the_new_ones_fail_nothing(call, known):
    def several(*names):
        events = [replace(each, run=name) for name in names for each in compiled(workload=name)]
        return fold(sessions.HEADER, events)

    known |= {"old:f": several("one", "two"), "new:f": several("two", "three"), "other:f": several("x", "y")}
    words = ("gate", "new:f", "--fail-on", "accessed_bytes", "--format", "json", "--base")
    said = call(*words, "old:f")
    assert [row["label"].split()[0] for row in said.data["limits"]] == ["two"]
    assert any("not in the base: three" in note for note in said.data["notes"])
    assert call(*words, "other:f").code == 2


@pytest.mark.parametrize(
    ("count", "wall", "code", "state"), [(2, 1.0, 0, "within"), (3, 1.0, 3, "exceeded"), (2, None, 0, "undecided")]
)
def test_a_recorded_program_is_gated_on_its_compiles(call, tmp_path, count, wall, code, state):
    traced = program_events.compiled("only_traced", lower_seconds=None, compile_seconds=None)
    for name, number, took in (("before", 2, 1.0), ("now", count, wall)):
        program = program_events.program(*program_events.shaped(number), traced, wall=took)
        written(tmp_path / f"{name}.jaxprof", program, sessions.HEADER)
    words = ("--base", tmp_path / "before.jaxprof", "--fail-on", "compiles", "--format", "json")
    said = call("gate", tmp_path / "now.jaxprof", *words)
    (row,) = said.data["limits"]
    assert said.code == code
    assert row["state"] == state
    assert row["before"] == 2
    assert row["growth"] == {"within": 0, "exceeded": 0.5, "undecided": None}[state]


def test_the_last_session_is_gated_also_where_a_job_is_newer(call, state_home, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    kept = state_home / "sessions" / "before.jaxprof"
    written(kept, program_events.program(*program_events.shaped(2), wall=1.0), sessions.HEADER)
    job(tmp_path / "run.jaxprof.d", loop(), loop())
    said = call("gate", "last", "--base", kept, "--fail-on", "compiles", "--format", "json")
    assert (said.code, [row["before"] for row in said.data["limits"]]) == (0, [2])


SIDES = {"r1": "A", "r2": "B"}


def measured(call_seconds, compile_seconds, launches=3, *more):
    """A comparison of that many launches. A takes 10 ms a call, and compiles in 1 s."""
    events = []
    for run, side in SIDES.items():
        spec = e.RunSpec(workload="own.py:step", variant="jit", how="jit", device="cpu:0", side=side, launches=launches)
        events.append(e.RunPlanned(run=run, spec=replace(spec, baseline="" if side == "A" else "r1")))
    for launch in range(1, launches + 1):
        wobble = 1 + 0.002 * (launch % 3)
        for run, side in SIDES.items():
            took = compile_seconds if side == "B" else 1.0
            events.append(e.WorkerStarted(run=run, pid=1, python="python", launch=launch))
            events.append(e.PhaseEnded(run=run, phase="compile", seconds=took * (wobble if side == "B" else 1)))
        noise = Random(launch)
        for block, run in enumerate([*SIDES, *reversed(SIDES)] * 8):
            took = (call_seconds if SIDES[run] == "B" else 0.01) * (1 + noise.gauss(0, 0.004))
            events.append(e.SamplesTaken(run=run, series="run", seconds=[took], block=1000 * launch + block))
    events += [e.RunFinished(run=run, status="ok") for run in SIDES]
    (found,) = ab_results(fold(sessions.HEADER, [*events, *more]))
    return found


def states(found, *limits):
    return {row.limit.text: row.state for row in judge_times("x", found, read_limits(limits))}


def test_a_call_and_a_compile_that_took_longer_pass_their_limits():
    limits = ("run:5%", "compile:20%", "kernels")
    for call, took, run, compiling in (
        (0.01, 1.0, "within", "within"), (0.015, 1.0, "exceeded", "within"), (0.01, 1.5, "within", "exceeded"),
    ):  # fmt: skip
        assert states(measured(call, took), *limits) == {"run:5%": run, "compile:20%": compiling}
    assert states(measured(0.015, 1.5), "run:60%", "compile:60%") == {"run:60%": "within", "compile:60%": "within"}


def test_one_launch_decides_no_compile_time():
    limits = ("run:5%", "compile:20%")
    assert states(measured(0.0115, 1.5, 1), *limits) == {"run:5%": "undecided", "compile:20%": "undecided"}
    assert states(measured(0.015, 1.0, 1), "run:5%") == {"run:5%": "exceeded"}
    warning = e.WarningRaised(run="r2", code=UNLIKE_RESULTS, message="the results are not alike: f32[2], f32[3]")
    assert states(measured(0.015, 1.0, 3, warning), "run:5%") == {"run:5%": "undecided"}


def test_the_intervals_of_several_limits_hold_together():
    found = measured(0.011, 1.0)
    (alone,) = judge_times("x", found, read_limits(["run:5%"]))
    beside, _ = judge_times("x", found, read_limits(["run:5%", "compile:20%"]))
    assert alone.times.half_width < beside.times.half_width
    assert alone.growth == beside.growth


def test_a_session_of_another_time_decides_no_time(call, kept):
    said = call("gate", kept, "--base", kept, "--fail-on", "compile:5%", "--format", "json")
    (row,) = said.data["limits"]
    assert said.code == 0
    assert row["state"] == "undecided"
    assert "--base REV" in row["reason"]
    assert row["before"] > 0
    assert row["growth"] is None


@pytest.mark.parametrize("measured_code", [None, ExitCode.OK, ExitCode.FAILED, 130])
def test_exit_code_is_of_the_failure_or_the_worst_limit(measured_code):
    outcome = None if measured_code is None else Outcome(session(), None, measured_code)
    figure = FigureDifference("flops", 1.0, 1.0)
    for state, strict, code in (
        ("within", True, 0), ("exceeded", False, 3), ("undecided", False, 0), ("undecided", True, 4),
    ):  # fmt: skip
        judgement = GateResult(GateBase("old", "path", "old"), (GateRow("x", read_limit("flops"), state, figure),))
        assert _exit_code(judgement, outcome, strict=strict) == (measured_code or code)


@pytest.mark.process
def test_revision_and_present_tree_are_measured(call, tmp_path, monkeypatch):
    own = "def step(x):\n    return x\n\ndef step_inputs():\n    return (1.0,)\n"
    (tmp_path / "own.py").write_text(own)
    commit_all(tmp_path, "one")
    (tmp_path / "own.py").write_text(own.replace("return x", "return x + 1"))
    monkeypatch.chdir(tmp_path)
    given = []

    def measure(read, folder, how, *words, **more):
        given.extend((read, how))
        return Outcome(session=measured(0.015, 1.0).session, path=None, exit_code=ExitCode.OK)

    monkeypatch.setattr("jaxprof.cli.commands.gate.measure", measure)
    said = call("gate", "own.py:step", "--fail-on", "run:5%", "--launches", "2", "--format", "json")
    (row,) = said.data["limits"]
    assert (said.code, row["state"]) == (3, "exceeded")
    (sides, _), how = given
    assert ([side.spec().revision for side in sides], how["launches"]) == (["HEAD", ""], 2)
