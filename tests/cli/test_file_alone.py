"""`jaxprof FILE` does what one would expect of the file, in a terminal and without one; other files are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from jaxprof.cli.main import COMMANDS
from jaxprof.cli.target import command_for

HLO = """HloModule m

ENTRY main {
  x = f32[8] parameter(0)
  ROOT y = f32[8] negate(x)
}
"""


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("print('trained')\n")
    (tmp_path / "program").mkdir()
    (tmp_path / "program" / "__main__.py").write_text("")
    (tmp_path / "empty").mkdir()
    (tmp_path / "m.hlo").write_text(HLO)
    (tmp_path / "s.jaxprof").write_text('{"format":"jaxprof"}\n')
    (tmp_path / "p.xplane.pb").write_bytes(b"\x0a\x00")
    (tmp_path / "notes.md").write_text("nothing of ours")
    return tmp_path


@pytest.mark.parametrize(
    ("words", "in_terminal", "elsewhere"),
    [
        (["train.py"], "script", "script"),
        (["train.py", "--epochs", "3"], "script", "script"),
        (["program"], "script", "script"),
        (["train.py:step"], "run", "run"),
        (["s.jaxprof"], "open", "open"),
        (["s.jaxprof", "--full"], "open", "open"),
        (["p.xplane.pb"], "open", "open"),
        (["m.hlo"], "open", "hlo"),
        (["m.hlo", "--kernels"], "hlo", "hlo"),
    ],
)
def test_a_file_alone_stands_for_a_command(files, words, in_terminal, elsewhere):
    assert command_for(words, COMMANDS, in_terminal=True) == in_terminal
    assert command_for(words, COMMANDS, in_terminal=False) == elsewhere


def test_a_command_wins_over_a_file_of_its_name(call, files):
    (files / "sessions").write_text(HLO)
    assert "negate" not in call("sessions", "--help").out
    assert "negate" in call("./sessions").out
