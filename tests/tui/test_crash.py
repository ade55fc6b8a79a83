"""What Textual itself raises ends the app, because no public method of it hears of that: then in order. The terminal is
restored, the session is closed and kept, the program is gone, and one line says where the traceback is."""

import os
import secrets
import sys
from pathlib import Path

import pytest

from jaxprof.cli.output import ExitCode
from jaxprof.session import Library, Session, load
from pythons import stand_in
from terminal import Terminal
from waiting import processes_with, until

PALETTE = b"\x10"
CRASHES = """
import sys
from textual.command import CommandPalette

def compose(self):
    secret = "not on the screen"
    raise ZeroDivisionError("of Textual\\x1b[31m")

CommandPalette.compose = compose
from jaxprof.cli.main import main
from jaxprof.runner import program_run
program_run.PATIENCE_SECONDS = 0.2
sys.argv[0] = "jaxprof"
main()
"""
RUNS = """
trap '' INT TERM
sleep 60 &
echo it runs
while :; do sleep 0.1; done
"""


@pytest.mark.process
@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="finds what is left in /proc")
def test_an_error_of_textual_ends_the_app_in_order(state_home, tmp_path):
    (tmp_path / "app.py").write_text(CRASHES)
    (tmp_path / "train.py").touch()
    words = ("script", "--python", stand_in(tmp_path, RUNS), "train.py")
    mark = f"JAXPROF_MARK={secrets.token_hex(8)}"
    environment = {**os.environ, "JAXPROF_HOME": str(state_home), "JAXPROF_MARK": mark.partition("=")[2]}
    with Terminal([sys.executable, "app.py", *words], tmp_path, environment) as terminal:
        terminal.sees("it runs")
        assert not terminal.echoes()
        terminal.type(PALETTE)
        assert terminal.end() == ExitCode.FAILED
        assert terminal.echoes()
        said = terminal.plain.rpartition("jaxprof: the app ended: ")[2]
        assert "\x1b[?1049l" in terminal.shown, "the screen that was there before is back"
    log = state_home / "errors.log"
    assert said.splitlines()[0].startswith("ZeroDivisionError: of Textual")
    assert said.count("\n") <= 2
    assert f"The traceback is in {log}." in said
    assert "secret" not in terminal.plain, "what the variables held is for the log"
    assert "in compose" in log.read_text()
    (path,) = Library(state_home / "sessions").paths()
    session = load(path, Session)
    assert session.complete
    assert session.notices == []
    until(lambda: not processes_with(mark))
