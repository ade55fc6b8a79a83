"""The commands of an explanation: each can be typed as it is, and does what it stands for."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jaxprof.analysis.explain.model import command, program_verified, record_again, run_verified
from jaxprof.analysis.explain.sources import captured_too, measured_longer, undecided
from jaxprof.events import RunSpec
from jaxprof.session import Run


def run(**spec: Any) -> Run:
    values = {"workload": "selu", "variant": "jit", "how": "jit", "device": "cpu:0", **spec}
    return Run("r2", RunSpec(**values))


def session(*words: str) -> Any:
    return SimpleNamespace(header=SimpleNamespace(command=list(words)))


def program(how: str = "script", argv: tuple[str, ...] = ("train.py", "--epochs", "3")) -> Any:
    return SimpleNamespace(how=how, argv=argv)


def test_a_word_is_quoted_where_a_shell_would_not_take_it_as_it_is() -> None:
    assert command("open", "", "my session", "--arg", "f32[8]") == "jaxprof open '' 'my session' --arg 'f32[8]'"
    assert command("open", "[redacted]") == "", "nobody could type it"


def test_a_program_is_recorded_again_unless_it_records_itself() -> None:
    assert record_again(program(), "--capture-steps", "5") == (
        "jaxprof script --plain --capture-steps 5 train.py --epochs 3"
    )
    assert record_again(program("module", ("-m", "train"))) == "jaxprof script --plain -m train"
    assert record_again(program("record")) == record_again(program(argv=())) == ""
    assert program_verified("s", program()) == ("jaxprof script --plain train.py --epochs 3 && jaxprof compare s last")
    assert program_verified("s", program("record")) == "jaxprof compare s last"


@pytest.mark.parametrize("committed", [True, False])
def test_a_function_is_compared_with_the_committed_one_where_there_is_one(tmp_path: Path, committed: bool) -> None:
    if committed:
        (tmp_path / ".git").mkdir()
    file = tmp_path / "deep" / "f.py"
    again = "jaxprof run --from s:r2 && jaxprof compare s last"
    found = run_verified("s", run(target=f"{file}:step", arguments=("f32[8]",)))
    assert found == (f"jaxprof compare --git HEAD --arg 'f32[8]' {file}:step" if committed else again)
    if committed:
        on_gpu = run(target=f"{file}:step", device="cuda:1")
        assert run_verified("s", on_gpu) == f"jaxprof compare --git HEAD --device cuda:1 {file}:step"
    assert run_verified("s", run(target=str(file))) == again, "which function it was is not known"
    assert run_verified("s", run(target=f"{tmp_path}/f:step")) == again
    assert run_verified("s", run()) == again
    side = run(target=f"{file}:step", side="B")
    assert run_verified("s", side) == "jaxprof run --from s && jaxprof compare s last", "the whole comparison"


def test_what_was_only_compiled_is_compiled_again() -> None:
    assert run_verified("s", run(how="compile", target="f.py:step", arguments=("f32[8]",))) == (
        "jaxprof hlo f.py:step --arg 'f32[8]' --findings"
    )
    assert run_verified("s", run(how="compile", variant="jit-highest")) == (
        "jaxprof hlo selu --variant jit-highest --findings"
    )


def test_a_measurement_is_made_longer_and_a_comparison_whole() -> None:
    assert measured_longer("s", run()) == "jaxprof run --from s:r2 --launches 10"
    assert measured_longer("s", run(), 30) == "jaxprof run --from s:r2 --launches 30"
    assert measured_longer("s", run(side="B")) == "jaxprof run --from s --launches 10"
    for how in ("compile", "imported", "program"):
        assert measured_longer("s", run(how=how)) == "", "nothing was measured"


def test_a_run_is_captured_with_all_that_it_was_given() -> None:
    assert captured_too(session(), run(parameters={"n": 64}, device="cuda:1")) == (
        "jaxprof run selu --variant jit --set n=64 --device cuda:1"
    )
    own = run(target="f.py:step", parameters={"n": 64}, arguments=("f32[8]", "3"))
    assert captured_too(session(), own) == "jaxprof run f.py:step --variant jit --arg 'f32[8]' --arg 3"
    side = run(side="B")
    assert captured_too(session("jaxprof", "ab", "f.py", "g.py"), side) == "jaxprof ab f.py g.py --capture"
    assert captured_too(session("jaxprof", "run", "f.py"), side) == ""


@pytest.mark.parametrize(
    ("notes", "said", "again"),
    [
        ([], "lines were not timed", "jaxprof script --plain train.py --epochs 3"),
        (
            ["steps are not counted and lines are not timed, because that needs Python 3.12 or newer"],
            "lines were not timed, because that needs Python 3.12 or newer",
            "",
        ),
    ],
)
def test_the_same_command_is_not_proposed_where_this_python_cannot_time_lines(
    notes: list[str], said: str, again: str
) -> None:
    seen = program()
    seen.verdict = SimpleNamespace(reason="lines were not timed")
    seen.notes = [SimpleNamespace(message=note) for note in notes]
    assert undecided(seen) == (said, again)
