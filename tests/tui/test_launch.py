"""Where the app draws, and whether its terminal is light."""

import io
import sys

import pytest

from jaxprof.cli.output import terminal_problem
from jaxprof.tui.launch import drawing_on_stdout, is_light


class _Tty(io.StringIO):
    def isatty(self):
        return True


def test_the_app_draws_on_stdout_where_stderr_goes_to_a_file(monkeypatch):
    terminal, file = _Tty(), io.StringIO()
    monkeypatch.setattr(sys, "__stdout__", terminal)
    for name, stream in (("stdin", terminal), ("stdout", terminal), ("stderr", file), ("__stderr__", file)):
        monkeypatch.setattr(sys, name, stream)
    monkeypatch.setenv("TERM", "xterm")
    assert not terminal_problem()
    with drawing_on_stdout():
        assert sys.__stderr__ is terminal
    assert sys.__stderr__ is file
    monkeypatch.setattr(sys, "stdout", file)
    assert "stdout is not one" in terminal_problem()


@pytest.mark.parametrize(
    ("variable", "light"),
    [
        *((variable, True) for variable in ("0;15", "0;default;7")),
        *((variable, False) for variable in ("15;0", "15;8", "", "15", "0;default")),
    ],
)
def test_the_variable_says_whether_the_terminal_is_light(variable, light):
    assert is_light(variable) is light
