"""The installed app, in a real terminal, with every Python that there is: each screen and each dialog comes up.

What Pilot cannot show is shown here: how a terminal starts the app, with the task factory, the driver and the signals
that only a terminal gets.
"""

import os
import re
import signal
import sys

import pytest
from textual.color import Color

from folding import written
from jaxprof.base.files import read_source
from jaxprof.session import Library, Session, load
from jaxprof.tui.theme import DARK, LIGHT
from pythons import EVERY, command_beside
from terminal import Terminal
from tui import profiles

ESCAPE, ENTER, PALETTE = b"\x1b", b"\r", b"\x10"
every_python = pytest.mark.parametrize(
    "python", [python for python in EVERY if python == sys.executable or command_beside(python).exists()]
)

DIALOGS = {
    b"?": "╭─ Help",
    PALETTE: "Search actions, kernels",
    b"mx": "╭─ Profile a script ─",
    b"mo": "╭─ Open ──",
    b"+": "╭─ Add a function",
}
"""What comes up over Home, and goes with Esc."""

TRAINS = """
import os, sys
import jax, numpy as np
print("given", sys.stdin.read(), os.environ.get("PYTHONUNBUFFERED"))

@jax.jit
def train_step(x):
    return (x * 2).sum()

for size in (3, 4, 5):
    train_step(np.ones(size, np.float32))
print("\\rhalf\\rtrained", end="")
sys.stderr.write("err\\n")
sys.exit(3)
"""


def app(python, folder, *words, **variables):
    left_out = ("PYTHONPATH", "PYTHONUNBUFFERED", "COLORFGBG", "NO_COLOR")
    environment = {name: value for name, value in os.environ.items() if name not in left_out}
    return Terminal([command_beside(python), *words], folder, environment | {"COLORTERM": "truecolor"} | variables)


def brings(terminal, key, text):
    """Presses a key that brings something up, and Esc, which takes it away."""
    shown = terminal.screen.text
    assert text not in shown
    terminal.type(key)
    terminal.sees(text)
    terminal.type(ESCAPE)
    terminal.loses(text)


def quits(terminal, code=0, says=""):
    """Leaves with `q`; the app ends in good order, and no more than what it says is left on the terminal."""
    terminal.type(b"q")
    assert terminal.end() == code
    assert re.fullmatch(says, "".join(terminal.screen.text.split()))
    assert [terminal.shown.count(f"\x1b[?1049{final}") for final in "hl"] == [1, 1]


def shows_background(terminal, background):
    red, green, blue = Color.parse(str(background)).rgb
    return f"48;2;{red};{green};{blue}m" in terminal.shown


@pytest.mark.process
@every_python
def test_every_screen_and_its_dialogs_come_up(python, tmp_path):
    tape = profiles.captured()
    session = written(tmp_path / "measured.jaxprof", tape.events, tape.header)
    with app(python, tmp_path, "open", session) as terminal:
        terminal.sees("speed-up")
        assert shows_background(terminal, DARK.background), "what a terminal has that does not answer"
        terminal.type(b"4")
        terminal.sees("loop_fusion")
        brings(terminal, b"mV", "╭─ Can this capture be trusted?")
        brings(terminal, b"mR", "╭─ Which program?")
        for key, text in (
            *((b"]", tab) for tab in ("[Findings", "[Roofline", "[HLO]")),
            *((b"5", "[Timeline]"), (b"3", "╭─ Compile"), (b"6", "╭─ Largest buffers")),
            *((b"2", "╭─ Runs"), (ENTER, "esc Back")),
        ):
            terminal.type(key)
            terminal.sees(text)
        terminal.type(ESCAPE)
        terminal.loses("esc Back")
        terminal.type(b"1")
        terminal.sees("Examples")
        for key, title in DIALOGS.items():
            brings(terminal, key, title)
        quits(terminal)


@pytest.mark.process(programs=1)
@every_python
def test_a_program_is_recorded_and_its_exit_code_is_the_apps(python, tmp_path, state_home):
    program = tmp_path / "train.py"
    program.write_text(TRAINS)
    with app(python, tmp_path, "script", "train.py") as terminal:
        terminal.sees("exit code")
        for key, text in ((b"3", "▸ train_step"), (ENTER, "▾ train_step")):
            terminal.type(key)
            terminal.sees(text)
        terminal.type(b"j")
        brings(terminal, ENTER, "╭─ Compilation of ")
        terminal.type(b"5")
        terminal.sees("╭─ Time")
        for letter, title in ((b"L", "╭─ Lines"), (b"O", "╭─ Flame")):
            terminal.type(b"m")
            terminal.sees("What can be done here")
            terminal.type(letter)
            terminal.loses("What can be done here")
            terminal.sees(title)
        quits(terminal, code=3, says=r"session:/.*\.jaxprofcostsmost.*howsure.*donext.*jaxprofexplain.*")
    (path,) = Library(state_home / "sessions").paths()
    run = load(path, Session).runs["r1"]
    said = [(line.stream, line.text) for line in run.log]
    assert [text for stream, text in said if stream == "stdout"] == ["given  None", "trained"]
    assert ("stderr", "err") in said
    assert run.sources[str(program)] == read_source(program)[1]
    log = path.read_text()
    assert log.index("given  None") < log.index('"compiled"'), "a line is there before the program ends"


@pytest.mark.process
def test_the_theme_follows_the_terminal(tmp_path):
    with app(sys.executable, tmp_path, COLORFGBG="0;15") as terminal:
        terminal.sees("╭─ Your code")
        assert shows_background(terminal, LIGHT.background)
        quits(terminal)


@pytest.mark.process
def test_an_app_that_was_suspended_is_drawn_again(tmp_path):
    with app(sys.executable, tmp_path) as terminal:
        terminal.sees("Examples")
        terminal.type(b"\x1a")
        terminal.loses("Examples")
        _, status = os.waitpid(terminal.process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        terminal.process.send_signal(signal.SIGCONT)
        terminal.sees("Examples")
        terminal.type(b"q")
        assert terminal.end() == 0
