"""Where the app draws, whether its terminal is light, and what is done however the app ends."""

import gc
import io
import signal
import sys
from pathlib import Path
from unittest.mock import Mock, call

import pytest

import program_events
from jaxprof.cli.output import terminal_problem
from jaxprof.session import LogWriter, Session, load
from jaxprof.tui.shell import launch
from jaxprof.tui.shell.launch import drawing_on_stdout, is_light
from jaxprof.tui.shell.live import Live
from jaxprof.tui.theme import variables
from waiting import until


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


@pytest.mark.parametrize(
    ("term", "colours", "few"), [("xterm", "", True), ("xterm-256color", "", False), ("xterm", "truecolor", False)]
)
def test_a_terminal_of_16_colours_has_a_theme_of_them(monkeypatch, term, colours, few):
    """Rich sent most of the others as grey."""
    opened = []
    monkeypatch.setattr(launch, "_run", opened.append)
    monkeypatch.setenv("TERM", term)
    monkeypatch.setenv("COLORTERM", colours)
    assert launch.launch() == 0
    assert opened[0].get_theme_variable_defaults() == variables(few=few)


def test_garbage_is_not_looked_for_before_the_first_frame(monkeypatch):
    before, meanwhile = gc.get_threshold(), []
    monkeypatch.setattr(launch, "_run", lambda app: meanwhile.append(gc.get_threshold()))
    assert launch.launch() == 0
    assert meanwhile[0] > before == gc.get_threshold()


def test_session_is_closed_before_its_conclusion():
    app = Mock(run=Mock(side_effect=ZeroDivisionError))
    app.live.last_words.return_value = []
    with pytest.raises(ZeroDivisionError):
        launch._run(app)
    assert app.mock_calls == [call.run(), call.live.close(), call.live.last_words()]


def test_an_unsaved_session_is_kept_elsewhere_at_the_end(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    writer = LogWriter(program_events.HEADER, Path("/dev/null/s.jaxprof"))
    live = Live(Mock())
    live._scheduler = Mock(writer=writer, session=program_events.training())
    words = [*live.last_words()]
    (path,) = tmp_path.glob("jaxprof-*.jaxprof")
    assert words[0].startswith(f"session: {path} (the session cannot be written to /dev/null/s.jaxprof")
    assert words[-1].endswith(f"jaxprof explain {path}")
    assert load(path, Session).header.session == program_events.HEADER.session
    assert live.is_kept is False


def test_a_signal_closes_the_session_and_then_ends_the_app(monkeypatch):
    monkeypatch.setattr(launch, "_end_hard", Mock())  # it would end the tests
    app = Mock()
    with launch._signals(app):
        signal.raise_signal(signal.SIGTERM)
        until(lambda: app.call_from_thread.called)
    assert app.mock_calls == [call.live.close("SIGTERM"), call.call_from_thread(app.exit, return_code=143)]
