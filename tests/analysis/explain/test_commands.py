"""The commands of an explanation: each can be typed as it is, and does what it stands for."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from jaxprof.analysis.explain.model import command, program_verified, record_again, run_verified
from jaxprof.analysis.explain.sources import captured_too, measured_longer, undecided
from jaxprof.events import RunSpec
from jaxprof.session import Run

AGAIN = "jaxprof run --from s:r2 && jaxprof compare s last"
GIVEN = {"target": "f.py:step", "arguments": ("f32[8]", "3")}


def run(**spec: Any) -> Run:
    values = {"workload": "selu", "variant": "jit", "how": "jit", "device": "cpu:0", **spec}
    return Run("r2", RunSpec(**values))


def program(how: str = "script", *argv: str) -> Any:
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


@pytest.mark.parametrize(
    ("spec", "verified"),
    [
        ({"target": "FILE.py:step"}, "jaxprof compare --git HEAD FILE.py:step"),
        (
            {"target": "FILE.py:step", "arguments": ("f32[8]",), "device": "cuda:1"},
            "jaxprof compare --git HEAD --arg 'f32[8]' --device cuda:1 FILE.py:step",
        ),
        ({"target": "FILE.py"}, AGAIN),  # which function it was is not known
        ({"target": "FILE:step"}, AGAIN),
        ({"target": "/nowhere/f.py:step"}, AGAIN),  # no repository
        ({}, AGAIN),
        ({"target": "FILE.py:step", "side": "B"}, "jaxprof run --from s && jaxprof compare s last"),
        ({**GIVEN, "how": "compile"}, "jaxprof hlo f.py:step --arg 'f32[8]' --arg 3 --findings"),
        ({"how": "compile", "variant": "jit-highest"}, "jaxprof hlo selu --variant jit-highest --findings"),
    ],
)
def test_a_function_is_compared_with_the_committed_one_where_there_is_one(tmp_path, spec, verified):
    (tmp_path / ".git").mkdir()
    file = str(tmp_path / "deep" / "f")
    if "target" in spec:
        spec = {**spec, "target": spec["target"].replace("FILE", file)}
    assert run_verified("s", run(**spec)) == verified.replace("FILE", file)


@pytest.mark.parametrize(
    ("spec", "longer"),
    [
        ({}, "jaxprof run --from s:r2 --launches 10"),
        ({"side": "B"}, "jaxprof run --from s --launches 10"),
        *(({"how": how}, "") for how in ("compile", "imported", "program")),  # nothing was measured
    ],
)
def test_a_measurement_is_made_longer_and_a_comparison_whole(spec, longer):
    assert measured_longer("s", run(**spec)) == longer


@pytest.mark.parametrize(
    ("typed", "spec", "captured"),
    [
        (
            (),
            {"parameters": {"n": 64}, "device": "cuda:1"},
            "jaxprof run selu --variant jit --set n=64 --device cuda:1",
        ),
        ((), {**GIVEN, "parameters": {"n": 64}}, "jaxprof run f.py:step --variant jit --arg 'f32[8]' --arg 3"),
        (("jaxprof", "ab", "f.py", "g.py"), {"side": "B"}, "jaxprof ab f.py g.py --capture"),
        (("jaxprof", "run", "f.py"), {"side": "B"}, ""),
    ],
)
def test_a_run_is_captured_with_all_that_it_was_given(typed, spec, captured):
    session: Any = SimpleNamespace(header=SimpleNamespace(command=list(typed)))
    assert captured_too(session, run(**spec)) == captured


def test_the_same_command_is_not_proposed_where_this_python_cannot_time_lines():
    why = ", because that needs Python 3.12 or newer"
    seen = program()
    seen.verdict, seen.notes = SimpleNamespace(reason="lines were not timed"), []
    assert undecided(seen) == ("lines were not timed", "jaxprof script --plain train.py --epochs 3")
    seen.notes = [SimpleNamespace(message=f"steps are not counted and lines are not timed{why}")]
    assert undecided(seen) == (f"lines were not timed{why}", "")
