"""What is written to a terminal: only what changes, only ASCII where it has nothing else; what it says of itself."""

import io
import sys
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.ansi import AnsiDecoder
from rich.style import Style

from jaxprof.text import columns
from jaxprof.tui.launch import drawing_on_stdout, terminal_problem
from jaxprof.tui.terminal_background import keys_of_typed, read_answer
from jaxprof.tui.terminal_driver import TO_ASCII, ChangedCells, driver_for_this_terminal, wants_ascii
from terminal import Screen


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
def test_the_locale_decides(variables, ascii_wanted, monkeypatch):
    for name in ("LC_ALL", "LC_CTYPE", "LANG", "JAXPROF_ASCII"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert wants_ascii() is ascii_wanted
    assert driver_for_this_terminal().in_ascii is ascii_wanted


@pytest.mark.parametrize(
    "text", ["╭─ Devices ─╮│", "▁▂▃▄▅▆▇█", "▏▎▍▌▋▊▉", "▣ □ ● ✓ ✗", "7.6 µs ± 1 % 6.9× 1\u202f000", "日本", "⠁⠿", "ä"]
)
def test_what_leaves_is_ascii_of_the_same_width(text):
    said = text.translate(TO_ASCII)
    assert said.isascii()
    assert len(said) == columns(text)


def test_escape_sequences_pass_unchanged():
    for apart in ("█▓▒░▚", "✗▣✓○", "─━┄", "⠉⠁⠿"):
        assert len(set(apart.translate(TO_ASCII))) == len(apart), f"{apart} differ without colours"
    assert not "0.52× (0-∞)".translate(TO_ASCII).endswith("8)"), "no bound that nobody measured"
    assert "\x1b[38;2;1;2;3m─\x1b[0m".translate(TO_ASCII) == "\x1b[38;2;1;2;3m-\x1b[0m"


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


KIND = b"\x1b[?62;22c"


@pytest.mark.parametrize(
    ("said", "variable", "light"),
    [
        (b"\x1b]11;rgb:ffff/ffff/ffff\x1b\\", "", True),
        (b"\x1b]11;rgb:fd/f6/e3\x07", "", True),
        (b"\x1b]11;rgba:f/f/f/f\x07", "", True),
        (b"\x1b]11;rgb:0000/2b2b/3636\x1b\\", "", False),
        (b"\x1b]11;rgb:0000/0000/ffff\x1b\\", "0;15", False),
        (b"\x1b]11;?\x1b\\", "", None),
        *((b"", variable, True) for variable in ("0;15", "0;default;7")),
        *((b"", variable, False) for variable in ("15;0", "15;8")),
        *((b"", variable, None) for variable in ("", "15", "0;default")),
    ],
)
def test_a_colour_is_light_or_dark_and_the_variable_speaks_where_the_terminal_does_not(said, variable, light):
    assert read_answer(said + KIND, variable).light is light


def test_what_is_typed_meanwhile_is_kept():
    said = "é3".encode() + b"\x1b]11;rgb:ffff/ffff/ffff\x1b\\/" + KIND
    answer = read_answer(said, "")
    assert (answer.light, answer.typed) == (True, "é3/")
    keys = keys_of_typed("é3/?\x1b[B\r\n\x1b\x10 Q")
    assert [name for name, _ in keys] == [
        "é", "3", "slash", "question_mark", "down", "enter", "enter", "escape", "ctrl+p", "space", "Q"
    ]  # fmt: skip
    assert [character for _, character in keys[:4]] == ["é", "3", "/", "?"]


SIZE = (20, 5)


class Painted(Screen):
    """The characters of a terminal and their looks; a blank looks like its background."""

    def __init__(self):
        super().__init__(*SIZE)
        self._looks = {}
        self._styles = AnsiDecoder()

    @property
    def shown(self):
        """All that can be seen, and where the cursor is."""
        return self._rows, self._looks, self._x, self._y

    @property
    def halved(self):
        """Whether half of a wide character was written over: terminals differ in what they show then."""
        pairs = (pair for row in self._rows for pair in pairwise([*row, " "]))
        return any((columns(one) == 2) != (other == "") for one, other in pairs)

    def _put(self, character):
        style = self._styles.style
        blank = character == " " and not (style.underline or style.reverse)
        for x in range(self._x, self._x + columns(character)):
            self._looks[self._y, x] = Style(bgcolor=style.bgcolor) if blank else style
        super()._put(character)

    def _control(self, final, arguments):
        super()._control(final, arguments)
        if final == "m":
            self._styles.decode_line(f"\x1b[{arguments or 0}m")


STYLES = st.sampled_from(
    ["", "1", "7", "4;38;2;1;2;3", "1;2;38;2;1;2;3;48;2;9;9;9", "38;5;7;48;5;0", "31", "92;101", "48;2;9;9;9"]
)
TEXTS = st.text("ab ─日", min_size=1, max_size=6)


@st.composite
def frames(draw):
    """What Textual writes: places, pieces of text with a whole style and a reset behind, where the cursor is."""
    written = []
    for _ in range(draw(st.integers(1, 4))):
        y, x = draw(st.integers(0, SIZE[1] - 1)), draw(st.integers(0, 6))
        written.append(f"\x1b[{y + 1};{x + 1}H")
        for text in draw(st.lists(TEXTS, min_size=1, max_size=3)):
            room, kept = SIZE[0] - x, ""
            for character in text:
                kept += character if columns(kept + character) <= room else ""
            x += columns(kept)
            style = draw(STYLES)
            written.append(f"\x1b[{style}m{kept}\x1b[0m" if style and kept else kept)
    return "".join([*written, f"\x1b[{draw(st.integers(1, SIZE[1]))};3H"])


@given(st.lists(frames(), min_size=1, max_size=5))
def test_the_terminal_looks_as_if_all_had_been_written(drawn):
    whole, lean, cells = Painted(), Painted(), ChangedCells()
    for frame in drawn:
        whole.write(frame)
        if whole.halved:
            return
        lean.write(cells.changes(frame, SIZE))
        assert lean.shown == whole.shown


FRAME = (
    "\x1b[1;1H\x1b[4m\x1b[0m\x1b[1;38;2;1;2;3;48;2;4;5;6mhello there\x1b[0m"
    "\x1b[38;2;9;9;9;48;2;4;5;6m you\x1b[0m\x1b[1;1H"
)


def test_what_is_there_is_not_written_again_and_what_changes_is_written_alone():
    cells = ChangedCells()
    sent = [cells.changes(data, SIZE) for data in ("\x1b[?2026h", FRAME, "\x1b[?2026l") * 2]
    assert sent[1].startswith("\x1b[?2026h\x1b[1;1H")
    assert "hello there" in sent[1]
    assert [sent[0], *sent[2:]] == ["", "\x1b[?2026l", "", "", ""], "without a change, no begin and no end"
    changed = cells.changes(FRAME.replace("you", "yes"), SIZE)
    assert changed.endswith("es\x1b[1;1H")
    assert "hello" not in changed


def test_modes_pass_and_leave_what_is_known():
    cells = ChangedCells()
    cells.changes(FRAME, SIZE)
    for mode in ("\x1b[?25l", "\x1b[?1000h\x1b[?1003h", "\x1b[>25u", "\x1b]52;c;aGVsbG8=\x07"):
        assert cells.changes(mode, SIZE) == mode
    assert cells.changes(FRAME, SIZE) == ""


def test_what_may_have_changed_the_screen_is_followed_by_all_of_it():
    link = "\x1b[1;1H\x1b]8;id=1;https://x.y\x1b\\hello\x1b]8;;\x1b\\"
    cells = ChangedCells()
    for unknown in ("\x1b[?1049h", link, "\x1b[2J", "\x1b[1;1Ha\tb"):
        cells.changes(FRAME, SIZE)
        assert cells.changes(unknown, SIZE) == f"\x1b[0m{unknown}", "in no style, as Textual leaves it"
        assert "hello there" in cells.changes(FRAME, SIZE)


def test_a_terminal_of_another_size_is_written_anew():
    cells = ChangedCells()
    cells.changes(FRAME, SIZE)
    cells.forget()
    assert "hello there" in cells.changes(FRAME, SIZE)
    for smaller in ((10, 5), (20, 0)):  # a frame made before the app heard of the new size
        cells.changes(FRAME, smaller)
        assert "hello there" in cells.changes(FRAME, SIZE)
