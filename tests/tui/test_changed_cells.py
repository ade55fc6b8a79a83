"""Only what changes is written: the terminal looks the same as if all had been, and less was sent."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from jaxprof.text import columns
from jaxprof.tui.terminal_driver import ChangedCells

SIZE = (20, 5)
CODE = re.compile(r"\x1b\[([?\d;]*)([A-Za-z])")


class Painted:
    """The cells of a terminal and their looks, after what was written; blanks look like their background."""

    def __init__(self, size: tuple[int, int] = SIZE) -> None:
        self.size = size
        self.cells: dict[tuple[int, int], tuple[str, frozenset[str], str, str]] = {}
        self.place = (0, 0)
        self.style = frozenset[str](), "", ""

    def write(self, data: str) -> None:
        at = 0
        while at < len(data):
            if found := CODE.match(data, at):
                self.obey(found[1], found[2])
                at = found.end()
            elif data[at] == "\n":
                self.place = self.place[0] + 1, self.place[1]
                at += 1
            else:
                self.put(data[at])
                at += 1

    def obey(self, numbers: str, final: str) -> None:
        y, x = self.place
        if final == "H":
            y, x = (int(number) - 1 for number in numbers.split(";"))
        elif final == "C":
            x += int(numbers)
        elif final == "m":
            self.style = looks(self.style, [int(number or 0) for number in numbers.split(";")])
        elif (final, numbers) == ("h", "?1049"):
            self.cells.clear()
        self.place = min(y, self.size[1] - 1), min(x, self.size[0] - 1)

    def put(self, character: str) -> None:
        (y, x), (attributes, front, back) = self.place, self.style
        blank = character == " " and not attributes & {"4", "7"}
        self.cells[y, x] = (character, frozenset(), "", back) if blank else (character, attributes, front, back)
        if columns(character) == 2:
            self.cells[y, x + 1] = ("", frozenset(), "", "")
        self.place = y, min(x + columns(character), self.size[0] - 1)


def looks(style: tuple[frozenset[str], str, str], numbers: list[int]) -> tuple[frozenset[str], str, str]:
    attributes, front, back = style
    while numbers:
        number = numbers.pop(0)
        if number == 0:
            attributes, front, back = frozenset(), "", ""
        elif number in (38, 48):
            count = 4 if numbers[0] == 2 else 2
            colour, numbers = str(numbers[:count]), numbers[count:]
            front, back = (colour, back) if number == 38 else (front, colour)
        elif 30 <= number <= 39 or 90 <= number <= 97:
            front = str(number)
        elif 40 <= number <= 49 or 100 <= number <= 107:
            back = str(number)
        else:
            attributes |= {str(number)}
    return attributes, front, back


STYLES = st.sampled_from(
    ["", "1", "7", "4;38;2;1;2;3", "1;2;38;2;1;2;3;48;2;9;9;9", "38;5;7;48;5;0", "31", "92;101", "48;2;9;9;9"]
)
TEXTS = st.text("ab ─日", min_size=1, max_size=6)


@st.composite
def frames(draw: st.DrawFn) -> str:
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


def halved(painted: Painted) -> bool:
    """Whether half of a wide character was written over: terminals differ in what they show then."""
    return any(
        columns(cell[0]) == 2 and painted.cells.get((y, x + 1), ("x",))[0] != ""
        for (y, x), cell in painted.cells.items()
    ) or any(
        cell[0] == "" and columns(painted.cells.get((y, x - 1), ("x",))[0]) != 2
        for (y, x), cell in painted.cells.items()
    )


@given(st.lists(frames(), min_size=1, max_size=5))
def test_the_terminal_looks_as_if_all_had_been_written(drawn: list[str]) -> None:
    whole, lean, cells = Painted(), Painted(), ChangedCells()
    for frame in drawn:
        whole.write(frame)
        if halved(whole):
            return
        lean.write(cells.changes(frame, SIZE))
        assert lean.cells == whole.cells
        assert lean.place == whole.place


FRAME = "\x1b[1;1H\x1b[1;38;2;1;2;3;48;2;4;5;6mhello there\x1b[0m\x1b[38;2;9;9;9;48;2;4;5;6m you\x1b[0m\x1b[1;1H"


def test_what_is_there_is_not_written_again_and_what_changes_is_written_alone() -> None:
    cells = ChangedCells()
    assert "hello there" in cells.changes(FRAME, SIZE)
    assert cells.changes(FRAME, SIZE) == ""
    changed = cells.changes(FRAME.replace("you", "yes"), SIZE)
    assert changed.endswith("es\x1b[1;1H")
    assert "hello" not in changed


def test_a_frame_that_changes_nothing_has_no_begin_and_no_end() -> None:
    cells = ChangedCells()
    sent = [cells.changes(data, SIZE) for data in ("\x1b[?2026h", FRAME, "\x1b[?2026l") * 2]
    assert sent[1].startswith("\x1b[?2026h\x1b[1;1H")
    assert [sent[0], *sent[2:]] == ["", "\x1b[?2026l", "", "", ""]


def test_modes_pass_and_leave_what_is_known() -> None:
    cells = ChangedCells()
    cells.changes(FRAME, SIZE)
    for mode in ("\x1b[?25l", "\x1b[?1000h\x1b[?1003h", "\x1b[>25u", "\x1b]52;c;aGVsbG8=\x07"):
        assert cells.changes(mode, SIZE) == mode
    assert cells.changes(FRAME, SIZE) == ""


def test_what_may_have_changed_the_screen_is_followed_by_all_of_it() -> None:
    link = "\x1b[1;1H\x1b]8;id=1;https://x.y\x1b\\hello\x1b]8;;\x1b\\"
    cells = ChangedCells()
    for unknown in ("\x1b[?1049h", link, "\x1b[2J", "\x1b[1;1Ha\tb"):
        cells.changes(FRAME, SIZE)
        assert cells.changes(unknown, SIZE) == f"\x1b[0m{unknown}", "in no style, as Textual leaves it"
        assert "hello there" in cells.changes(FRAME, SIZE)


def test_a_terminal_of_another_size_is_written_anew() -> None:
    cells = ChangedCells()
    cells.changes(FRAME, SIZE)
    cells.forget()
    assert "hello there" in cells.changes(FRAME, SIZE)
    for smaller in ((10, 5), (20, 0)):  # a frame made before the app heard of the new size
        cells.changes(FRAME, smaller)
        assert "hello there" in cells.changes(FRAME, SIZE)
