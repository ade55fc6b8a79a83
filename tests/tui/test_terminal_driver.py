"""ASCII terminals: which ones they are, and that every character keeps its width."""

from __future__ import annotations

import io
import sys

import pytest

from jaxprof.text import columns
from jaxprof.tui.launch import drawing_on_stdout, terminal_problem
from jaxprof.tui.terminal_driver import TO_ASCII, driver_for_this_terminal, wants_ascii


@pytest.mark.parametrize(
    ("variables", "ascii_wanted"),
    [
        ({"LC_ALL": "C"}, True),
        ({"LC_ALL": "C.UTF-8"}, False),
        ({"LANG": "en_US.utf8"}, False),
        ({"LANG": "de_DE.ISO-8859-1"}, True),
        ({"LC_ALL": "", "LC_CTYPE": "C.UTF-8", "LANG": "C"}, False),
        ({"LANG": "C.UTF-8", "JAXPROF_ASCII": "1"}, True),
        ({"LC_ALL": "C", "JAXPROF_ASCII": "0"}, False),
    ],
)
def test_the_locale_decides(variables: dict[str, str], ascii_wanted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LC_ALL", "LC_CTYPE", "LANG", "JAXPROF_ASCII"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert wants_ascii() is ascii_wanted
    assert driver_for_this_terminal().in_ascii is ascii_wanted


@pytest.mark.parametrize(
    "text", ["╭─ Devices ─╮│", "▁▂▃▄▅▆▇█", "▏▎▍▌▋▊▉", "▣ □ ● ✓ ✗", "7.6 µs ± 1 % 6.9× 1\u202f000", "日本", "⠁⠿", "ä"]
)
def test_what_leaves_is_ascii_of_the_same_width(text: str) -> None:
    said = text.translate(TO_ASCII)
    assert said.isascii()
    assert len(said) == columns(text)


def test_escape_sequences_pass_unchanged() -> None:
    for apart in ("█▓▒░▚", "✗▣✓○", "─━┄", "⠉⠁⠿"):
        assert len(set(apart.translate(TO_ASCII))) == len(apart), f"{apart} differ without colours"
    assert not "0.52× (0-∞)".translate(TO_ASCII).endswith("8)"), "no bound that nobody measured"
    assert "\x1b[38;2;1;2;3m─\x1b[0m".translate(TO_ASCII) == "\x1b[38;2;1;2;3m-\x1b[0m"


class _Tty(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_app_draws_on_stdout_where_stderr_goes_to_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
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
