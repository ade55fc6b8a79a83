"""The commands of an explanation: each can be typed as it is, and does what it stands for."""

from types import SimpleNamespace

import pytest

from golden import figures_text, held_cases
from jaxprof.analysis.explain.model import command, program_verified, record_again, run_verified
from jaxprof.analysis.explain.sources import captured_too, measured_longer, undecided
from jaxprof.events import RunSpec
from jaxprof.session import Run

GIVEN = {"target": "f.py:step", "arguments": ("f32[8]", "3")}


def run(**spec):
    values = {"workload": "selu", "variant": "jit", "how": "jit", "device": "cpu:0", **spec}
    return Run("r2", RunSpec(**values))


def program(how="script", *argv):
    return SimpleNamespace(how=how, argv=argv or ("train.py", "--epochs", "3"))


def test_a_word_is_quoted_where_a_shell_would_not_take_it_as_it_is():
    assert command("open", "", "my session", "--arg", "f32[8]") == "jaxprof open '' 'my session' --arg 'f32[8]'"
    assert command("open", "[redacted]") == "", "nobody could type it"


def test_a_program_is_recorded_again_unless_it_records_itself():
    script = "jaxprof script --plain train.py --epochs 3"
    assert record_again(program(), "--capture-steps", "5") == script.replace("train", "--capture-steps 5 train")
    assert record_again(program("module", "-m", "train")) == "jaxprof script --plain -m train"
    assert record_again(program("record")) == ""
    assert program_verified("s", program()) == f"{script} && jaxprof compare s last"
    assert program_verified("s", program("record")) == "jaxprof compare s last"


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


def test_a_function_is_compared_with_the_committed_one_where_there_is_one(tmp_path):
    (tmp_path / ".git").mkdir()
    file, told = str(tmp_path / "deep" / "f"), {}
    for case, spec in VERIFIED.items():
        given = {**spec, "target": spec["target"].replace("FILE", file)} if "target" in spec else spec
        told[case] = figures_text(run_verified("s", run(**given)).replace(file, "FILE"))
    held_cases("verifying.txt", told)


def test_a_measurement_is_made_longer_and_a_comparison_whole():
    assert measured_longer("s", run()) == "jaxprof run --from s:r2 --launches 10"
    assert measured_longer("s", run(side="B")) == "jaxprof run --from s --launches 10"
    assert not any(measured_longer("s", run(how=how)) for how in ("compile", "imported", "program"))


@pytest.mark.parametrize(
    ("typed", "spec", "captured"),
    [
        ("run", {"parameters": {"n": 64}, "device": "cuda:1"}, "run selu --variant jit --set n=64 --device cuda:1"),
        ("run", {**GIVEN, "parameters": {"n": 64}}, "run f.py:step --variant jit --arg 'f32[8]' --arg 3"),
        ("ab f.py g.py", {"side": "B"}, "ab f.py g.py --capture"),
        ("run f.py", {"side": "B"}, None),
    ],
)
def test_a_run_is_captured_with_all_that_it_was_given(typed, spec, captured):
    session = SimpleNamespace(header=SimpleNamespace(command=["jaxprof", *typed.split()]))
    assert captured_too(session, run(**spec)) == (f"jaxprof {captured}" if captured else "")


def test_the_same_command_is_not_proposed_where_this_python_cannot_time_lines():
    why = ", because that needs Python 3.12 or newer"
    seen = program()
    seen.verdict, seen.notes = SimpleNamespace(reason="lines were not timed"), []
    assert undecided(seen) == ("lines were not timed", "jaxprof script --plain train.py --epochs 3")
    seen.notes = [SimpleNamespace(message=f"steps are not counted and lines are not timed{why}")]
    assert undecided(seen) == (f"lines were not timed{why}", "")
