"""What is written to a terminal is less than what was to be written, and looks the same."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxprof.tui.shell.terminal_cells import ScreenCells

STYLES = (
    "",
    "1",
    "38;2;1;2;3",
    "38;2;9;9;9;48;2;1;2;3",
    "1;4;31;44",
    "48;5;7",
    "97;104",
    "7;97",
    "7;31",
    "1;2;3",
    "2;9;38;5;9",
)
OFF = {"22": ("1", "2"), "23": ("3",), "24": ("4",), "27": ("7",), "39": ("fg",), "49": ("bg",)}
drawings = st.lists(
    st.tuples(st.integers(1, 3), st.integers(1, 30), st.sampled_from(STYLES), st.text("ab ─", min_size=1, max_size=30)),
    min_size=1,
    max_size=6,
)


def frame(*pieces, sync=True):
    """What draws text at rows and columns in styles, as Textual writes it."""
    drawn = "".join(
        f"\x1b[{row};{column}H" + (f"\x1b[{style}m{text}\x1b[0m" if style else text)
        for row, column, style, text in pieces
    )
    return [*["\x1b[?2026h"] * sync, f"{drawn}\x1b[1;1H", *["\x1b[?2026l"] * sync]


def looks(written):
    """The cells of a terminal that got this: character, foreground, background and attributes; of a blank, no colour
    of its text, which nobody sees."""
    cells, row, column, style = {}, 1, 1, {}
    for at_row, at_column, numbers, text in re.findall(
        r"\x1b\[(\d+);(\d+)H|\x1b\[([\d;]*)m|\x1b\[\?\d+[hl]|([^\x1b])", written
    ):
        if at_row:
            row, column = int(at_row), int(at_column)
        elif text:
            inked = text != " " or {"4", "7"} & style.keys()
            seen = {kind: value for kind, value in style.items() if inked or kind == "bg"}
            cells[row, column] = text, seen
            column += 1
        else:
            parts = re.findall(r"[34]8;2;\d+;\d+;\d+|[34]8;5;\d+|\d+", numbers) or ["0"]
            for part in parts:
                if part == "0":
                    style = {}
                elif part in OFF:
                    style = {kind: value for kind, value in style.items() if kind not in OFF[part]}
                else:
                    kind = "fg" if re.match(r"[39]\d", part) else "bg" if re.match(r"4\d|10\d", part) else part
                    style = {**style, kind: part}
    return cells


@given(st.lists(drawings, min_size=1, max_size=6))
def test_what_is_left_out_makes_no_difference(frames):
    cells, raw, written = ScreenCells(), "", ""
    for pieces in frames:
        parts = frame(*pieces)
        raw += "".join(parts)
        written += "".join(map(cells.changes, parts))
        assert looks(written) == looks(raw)


def test_what_looks_the_same_sends_nothing():
    cells, pieces = ScreenCells(), [(1, 1, "1", "title"), (2, 3, "38;2;1;2;3", "a long line of text")]
    first = sum(len(cells.changes(part)) for part in frame(*pieces))
    assert first > 40
    assert [cells.changes(part) for part in frame(*pieces)] == ["", "", ""]
    other = "".join(map(cells.changes, frame(pieces[0], (2, 3, "38;2;1;2;3", "a long line of tekt"))))
    assert "k" in other
    assert "long" not in other
    cells.forget()
    assert sum(len(cells.changes(part)) for part in frame(*pieces)) == first


@pytest.mark.parametrize("sequence", ["\x1b[2J", "\x1b[?1049h", "\x1b[K", "\x1bc"])
def test_after_what_may_clear_the_terminal_all_is_written(sequence):
    cells = ScreenCells()
    pieces = [(1, 1, "1", "title")]
    first = cells.changes(frame(*pieces, sync=False)[0])
    assert cells.changes(sequence) == sequence
    assert cells.changes(frame(*pieces, sync=False)[0]) == first


def test_a_text_of_other_widths_is_written_whole_each_time():
    cells = ScreenCells()
    for _ in range(2):
        assert "表x" in cells.changes(frame((1, 5, "1", "表x"), sync=False)[0])
    assert "b" in cells.changes(frame((1, 6, "", "b"), sync=False)[0]), "half of a character is no cell that is known"


def test_other_sequences_pass_through():
    cells = ScreenCells()
    for sequence in ("\x1b]52;c;YQ==\x07", "\x1b[?1006h", "\x1b[>1u", "\x07"):
        assert cells.changes(sequence) == sequence
