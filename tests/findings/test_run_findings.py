"""What an explanation is made of: commands that can be typed as they are, what the steps of a capture cost, the order
of findings, which of them are one, and what is said of what cannot be told."""

from types import SimpleNamespace

import pytest
from explained_sessions import step

import jaxprof.findings as model
import program_events as made
from analysis.made_runs import planned, session
from golden import figures_text, held_cases
from jaxprof import events as e
from jaxprof.events.finding import Finding
from jaxprof.findings import derive, runs
from jaxprof.session import Run, Session

GIVEN = {"target": "f.py:step", "arguments": ("f32[8]", "3")}


def run(**spec):
    values = {"workload": "selu", "variant": "jit", "how": "jit", "device": "cpu:0", **spec}
    return Run("r2", e.RunSpec(**values))


def program(how="script", *argv):
    return SimpleNamespace(how=how, argv=argv or ("train.py", "--epochs", "3"))


def test_word_of_a_command_is_quoted_for_the_shell():
    assert model.command("open", "", "my session", "--arg", "f32[8]") == "jaxprof open '' 'my session' --arg 'f32[8]'"
    assert model.command("open", "[redacted]") == "", "nobody could type it"


def test_a_program_is_recorded_again_unless_it_records_itself():
    script = "jaxprof script --plain train.py --epochs 3"
    assert model.record_again(program(), "--capture-steps", "5") == script.replace("train", "--capture-steps 5 train")
    assert model.record_again(program("module", "-m", "train")) == "jaxprof script --plain -m train"
    assert model.record_again(program("script", "-rf", "-x")) == "jaxprof script --plain ./-rf -x"
    assert model.record_again(program("record")) == ""
    assert model.record_again(program("script", "-", "-x")) == "", "what came from standard input is gone"
    assert model.program_verification("s", program()) == f"{script} && jaxprof compare s last"
    assert model.program_verification("s", program("record")) == "jaxprof compare s last"


VERIFIED = {
    "a function in a repository": {"target": "FILE.py:step"},
    "with arguments on a device": {"target": "FILE.py:step", "arguments": ("f32[8]",), "device": "cuda:1"},
    "which function it was is not known": {"target": "FILE.py"},
    "no Python file": {"target": "FILE:step"},
    "no repository": {"target": "/nowhere/f.py:step"},
    "a workload": {},
    "a side": {"target": "FILE.py:step", "side": "B"},
    "only compiled": {**GIVEN, "how": "compile"},
    "a workload that was only compiled": {"how": "compile", "variant": "jit-highest"},
}


COMPARED = SimpleNamespace(header=SimpleNamespace(command=["jaxprof", "compare", "f.py", "g.py"]))


def test_function_is_compared_with_the_committed_one(tmp_path):
    (tmp_path / ".git").mkdir()
    file, told = str(tmp_path / "deep" / "f"), {}
    for case, spec in VERIFIED.items():
        given = {**spec, "target": spec["target"].replace("FILE", file)} if "target" in spec else spec
        told[case] = figures_text(model.run_verification(COMPARED, "s", run(**given)).replace(file, "FILE"))
    held_cases("verifying.txt", told)


def test_a_measurement_is_made_longer_and_a_comparison_whole():
    assert runs.longer_run_command(COMPARED, "s", run()) == "jaxprof run --from s:r2 --launches 10"
    assert runs.longer_run_command(COMPARED, "s", run(side="B")) == "jaxprof compare f.py g.py --launches 10"
    words = ["jaxprof", "compare", "f.py", "g.py", "--launches", "1", "--seed", "10"]
    once = SimpleNamespace(header=SimpleNamespace(command=words))
    assert runs.longer_run_command(once, "s", run(side="B")) == "jaxprof compare f.py g.py --seed 10 --launches 10"
    assert not any(runs.longer_run_command(COMPARED, "s", run(how=how)) for how in ("compile", "imported", "program"))


@pytest.mark.parametrize(
    ("typed", "spec", "captured"),
    [
        ("run", {"parameters": {"n": 64}, "device": "cuda:1"}, "run selu --variant jit --set n=64 --device cuda:1"),
        (
            "run",
            {**GIVEN, "parameters": {"n": 64}},
            "run f.py:step --variant jit --arg 'f32[8]' --arg 3 --device cpu:0",
        ),
        ("ab f.py g.py", {"side": "B"}, "compare f.py g.py --capture"),
        (
            "compare f.py -o x.jaxprof g.py --force --margin 5% --format=json --limit 9",
            {"side": "B"},
            "compare f.py g.py --margin 5% --capture",
        ),
        ("compare f.py -ox.jaxprof g.py -o=y.jaxprof", {"side": "B"}, "compare f.py g.py --capture"),
        ("run f.py", {"side": "B"}, None),
    ],
)
def test_a_run_is_captured_with_all_that_it_was_given(typed, spec, captured):
    session = SimpleNamespace(header=SimpleNamespace(command=["jaxprof", *typed.split()]))
    assert runs.capture_command(session, run(**spec)) == (f"jaxprof {captured}" if captured else "")


@pytest.mark.parametrize(
    ("warned", "reason", "command"),
    [
        ((), "76 % of its time cannot be attributed", "jaxprof script --plain train.py --epochs 3"),
        (
            ("steps are not counted and lines are not timed, because that needs Python 3.12 or newer",),
            "76 % of its time cannot be attributed: lines were not timed, because that needs Python 3.12 or newer",
            "",
        ),
    ],
)
def test_same_command_is_not_proposed_without_timed_lines(warned, reason, command):
    lines = [made.line(88, 0.24, "device_busy", "step"), made.line(88, 0.76, "host_busy", kind="unseen")]
    warnings = [e.WarningRaised(run=made.RUN, code="steps_not_counted", message=message) for message in warned]
    seen = made.result(*made.steady(10, {"host_busy": 1.0}, lines), *warnings)
    assert derive.missing_verdict(seen) == (reason, command)


def test_same_command_is_not_proposed_for_a_short_loop():
    line = made.line(88, 0.05, "device_busy", "step")
    seen = made.result(made.sampled(0, 0.05, {"device_busy": 0.05}, [line]))
    reason, command = derive.missing_verdict(seen)
    assert reason.startswith("it was too short")
    assert "a recording with" in reason
    assert command == ""


CUT = {"complete": False}
ON_CPU = {"platforms": ("cpu",), "whole_program": True}
WHOLE = e.StepsDevice(device="gpu:0", found_by="whole")


def waiting(**causes):
    """A device and what the host did while it was idle."""
    names = {"host": "load_batch"}
    seen = [e.IdleCause(cause=cause, seconds=took, name=names.get(cause, "")) for cause, took in causes.items()]
    return e.StepsDevice(device="gpu:0", idle_causes=tuple(seen))


def found(*steps, platforms=("gpu",), scope="call", whole_program=False, found_by="annotation", devices=(), trust=()):
    of = session(
        planned(),
        (e.CaptureTaken(run="r1", kind=name, platform=name) for name in platforms),
        e.StepsMeasured(run="r1", found_by=found_by, steps=list(steps), devices=list(devices)),
        e.TrustReported(run="r1", kind="run", rows=[e.TrustCheck(code=trust[0], verdict=trust[1])] if trust else []),
    )
    return list(runs.step_findings(of.runs["r1"], scope, "verify", whole_program=whole_program))


@pytest.mark.parametrize(
    ("steps", "more", "codes"),
    [
        ([step(launch_gaps=1e-4)], {}, ["launch_gaps"]),  # a tenth is worth a finding
        ([step(launch_gaps=0.99e-4)], {}, []),
        ([step(launch_gaps=2e-4)], {"trust": ("lost_kernels", "doubt")}, []),  # kernels that are lost are no pause
        ([step(launch_gaps=2e-4)], {"trust": ("clock", "bad")}, []),  # nor those at a wrong time
        ([step(launch_gaps=2e-4)], {"trust": ("clock", "doubt")}, ["launch_gaps"]),
        ([step(launch_gaps=1e-5), step(launch_gaps=9e-4, **CUT)], {}, []),  # a step that was cut does not count
        ([step(idle=5e-4)], {}, []),  # on purpose, unless the whole program was captured
        ([step(idle=5e-4)], {"whole_program": True}, ["device_idle"]),
        ([step(launch_gaps=9e-4)], {"devices": (WHOLE,)}, []),  # a device whose profile is one step
        ([step(launch_gaps=9e-4), step("gpu:1", launch_gaps=2e-4)], {"devices": (WHOLE,)}, ["launch_gaps"]),
        ([step(launch_gaps=9e-4)], {"found_by": "whole"}, []),
        ([step(launch_gaps=5e-4)], {"platforms": ("cpu",)}, []),
        # on a CPU only the host's own work counts, if it is known
        ([step(idle=5e-4)], {**ON_CPU, "devices": (waiting(unknown=2e-5, wait=8e-5),)}, ["device_idle"]),
        ([step(idle=5e-4)], {**ON_CPU, "devices": (waiting(unknown=1e-5, launch=9e-5),)}, []),
        ([step(idle=5e-4)], ON_CPU, []),
        ([step(launch_gaps=5e-4)], {"platforms": ("cpu", "gpu")}, ["launch_gaps"]),
    ],
)
def test_what_is_a_finding(steps, more, codes):
    assert [finding.code for finding in found(*steps, **more)] == codes


def idle(**causes):
    """Four steps that are idle for half of their time, of which the host did this meanwhile."""
    return found(*[step(idle=5e-4)] * 4, whole_program=True, devices=[waiting(**causes)])


LOSE = [step("gpu:1", launch_gaps=3e-4), step("gpu:1", launch_gaps=1e-4), step("gpu:2", launch_gaps=0.9e-4)]
CAUSES = {"the host": {"host": 1.6e-3, "copy": 4e-4}, "compilations": {"compile": 1.95e-3, "wait": 5e-5}, "unknown": {}}
SAID = {
    "the device that loses most, with how many others lose": found(step(launch_gaps=1e-4), *LOSE),
    "it alone": found(*LOSE),
    **{f"what all steps lose in a {scope}": found(*[step(transfers=2e-4)] * 5, scope=scope)
       for scope in ("call", "profile", "program")},
    **{f"idle by {cause}": idle(**causes) for cause, causes in CAUSES.items()},
}  # fmt: skip


def test_what_is_said_of_each():
    """How much a change would save is unknown."""
    told = {case: figures_text(*findings, *(each.fix for each in findings)) for case, findings in SAID.items()}
    held_cases("findings_of_captures.txt", told)


DOUBTS = [
    "", "file good, sum good", "no such check bad", "sum doubt, slowdown doubt", "file doubt, sum bad, dropped doubt",
    "dropped bad", "python_tracer doubt, sum bad, clock doubt",
]  # fmt: skip


def test_worst_doubt_is_reported_then_the_first():
    told = {}
    for verdicts in DOUBTS:
        checks = [(each, *each.rsplit(" ", 1)) for each in verdicts.split(", ") if each]
        rows = [e.TrustCheck(code=code, verdict=verdict, message=words) for words, code, verdict in checks]
        of = session(planned(), e.TrustReported(run="r1", kind="run", rows=rows))
        told[verdicts] = figures_text(*runs.capture_abstentions(of.runs["r1"], "s"))
    held_cases("doubts.txt", told)


def finding(code, run="r1", *, fault=False, **cost):
    return Finding("", own_fix="", run=run, fault=fault, **{"scope": "call", **cost}, code=code)


def explained(*findings, abstentions=()):
    return derive.make_explanation(Session(), "s", "runs", [*findings, *abstentions], derive.MOST_FINDINGS)


@pytest.mark.parametrize(
    ("findings", "order"),
    [
        # faults first, then seconds that a change saves, then bytes
        (
            [
                finding("larger", bytes=9),
                finding("large", bytes=8),
                finding("some", seconds=2.0),
                finding("most", seconds=1.0, saves_seconds=3.0),
                finding("wrong", fault=True),
            ],
            "wrong most some larger large",
        ),
        ([finding("spared", seconds=9.0, saves_seconds=0.0), finding("some", seconds=1.0)], "some spared"),
        ([finding("unknown"), finding("large", bytes=8)], "large unknown"),
        # what saves only a part stands behind what surely costs as much
        ([finding("part", seconds=1.9, at_most=True), finding("sure", seconds=1.0)], "sure part"),
        ([finding("part", seconds=2.1, at_most=True), finding("sure", seconds=1.0)], "part sure"),
        ([finding("b", seconds=1.0), finding("a", seconds=1.0)], "a b"),
        # failures, slower sides and lines of a program are kept apart
        ([finding("layout_copy", "r1"), finding("layout_copy", "r2")], "layout_copy"),
        ([finding("run_failed", "r1"), finding("run_failed", "r2")], "run_failed run_failed"),
        ([finding("out_of_memory", "r1"), finding("out_of_memory", "r2")], "out_of_memory out_of_memory"),
        ([finding("slower", "r1"), finding("slower", "r2")], "slower slower"),
        ([finding("data_waits", "r1", scope="program"), finding("data_waits", "r2", scope="program")],
         "data_waits data_waits"),
        # copies are told once, by their kernels where these have a time
        ([finding("host_transfer", seconds=1.0), finding("copies_in_steps", seconds=1.0)], "host_transfer"),
        ([finding("host_transfer"), finding("copies_in_steps", seconds=1.0)], "copies_in_steps host_transfer"),
        ([finding("large_constant", bytes=8), finding("captured_constants", bytes=8)], "captured_constants"),
        ([finding("large_constant", bytes=9), finding("captured_constants", bytes=8)],
         "large_constant captured_constants"),
    ],
)  # fmt: skip
def test_the_order_of_findings_and_which_of_them_are_one(findings, order):
    assert [each.code for each in explained(*findings).findings] == order.split()


def test_finding_of_several_runs_names_the_costliest():
    costs = {"r1": 1.0, "r2": 2.0, "r3": 1.5}
    (one,) = explained(*(finding("a", run, seconds=cost) for run, cost in costs.items()), finding("a")).findings
    assert (one.run, one.also) == ("r2", ("r3", "r1"))


def test_a_list_is_short_and_says_how_many_are_left_out():
    many = [finding(f"f{number}", seconds=1.0) for number in range(model.MOST_FINDINGS + 3)]
    assert (len(explained(*many).findings), explained(*many).left_out) == (model.MOST_FINDINGS, 3)
    assert explained(*many[:2]).left_out == 0
    doubts = tuple(model.Abstention(f"a{number}", "") for number in range(model.MOST_ABSTENTIONS + 2))
    assert explained(abstentions=doubts).abstentions == doubts[: model.MOST_ABSTENTIONS]
    twice = (model.Abstention("noise", "of r1"), model.Abstention("noise", "of r2"), model.Abstention("drift", "of r1"))
    assert explained(abstentions=twice).abstentions == (twice[0], twice[2])


@pytest.mark.parametrize(("more", "launches"), [(7, 12), (None, 15), (400, 100)])
def test_comparison_without_verdict_proposes_enough_launches(more, launches):
    side = Run("r2", e.RunSpec(workload="f", variant="jit", how="jit", device="cpu:0", side="B"))
    of = {"launches": 5, "launches_to_decide": more, "is_near": False, "reason": ""}
    times = [SimpleNamespace(verdict=verdict, **of) for verdict in ("inconclusive", "faster", "same")]
    versus = [SimpleNamespace(times=each, label="B", run=side) for each in times]
    compared = SimpleNamespace(session=COMPARED, versus=versus, sides=[SimpleNamespace(summary=None)])
    (told,) = runs.side_items(compared, "s")
    assert told.command == f"jaxprof compare f.py g.py --launches {launches}"
