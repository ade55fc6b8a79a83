"""A word that is plainly a path is answered as one, by every command that takes a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.calling import Caller
from jaxprof.cli.output import ExitCode

COMMANDS = {
    "hlo": ("hlo", "{}"),
    "hlo of a function": ("hlo", "{}:step"),
    "hlo with passes": ("hlo", "{}", "--passes"),
    "open": ("open", "{}"),
    "show": ("show", "{}"),
    "show of a view": ("show", "{}", "--kernels"),
    "export": ("export", "{}"),
    "import": ("import", "{}"),
    "query": ("query", "{}", "SELECT 1"),
    "run": ("run", "{}:step"),
    "run of a file": ("run", "{}"),
    "run again": ("run", "--from", "{}"),
    "run one run again": ("run", "--from", "{}:r1"),
    "workloads": ("workloads", "{}"),
    "sessions rename": ("sessions", "rename", "{}", "other"),
    "sessions scrub": ("sessions", "scrub", "{}"),
    "sessions delete": ("sessions", "delete", "{}", "--yes"),
}


@pytest.mark.process
@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
def test_there_is_no_such_file(call: Caller, kept: Path, tmp_path: Path, words: tuple[str, ...]) -> None:
    (tmp_path / "train.py").touch()
    ending = ".py" if "hlo" not in words and words[0] in ("run", "workloads") and "--from" not in words else ""
    missing = tmp_path / f"trian{ending}"
    said = call(*(word.format(missing) for word in words))
    assert said.code == ExitCode.USAGE
    assert f"there is no file {missing}" in said.err
    assert "In that folder there is: train.py" in said.err


@pytest.mark.parametrize("name", ["gone.hlo", "gone.jaxprof", "gone.xplane.pb", "~nobody-of-this-name/x", "a/b"])
def test_what_makes_a_word_a_path(
    call: Caller, kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert f"there is no file {name}" in call("show", name).err


def test_a_kept_session_may_be_called_like_a_file(call: Caller, kept: Path) -> None:
    assert call("sessions", "rename", "last", "run.hlo").code == ExitCode.OK
    assert call("show", "run.hlo").code == ExitCode.OK
