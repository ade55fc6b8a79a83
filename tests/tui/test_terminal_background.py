"""What a terminal says of its background is told from what the user types, in every form that terminals have."""

from __future__ import annotations

import pytest

from jaxprof.tui.terminal_background import keys_of_typed, light_by_variable, read_answer

KIND = b"\x1b[?62;22c"


@pytest.mark.parametrize(
    ("said", "light"),
    [
        (b"\x1b]11;rgb:ffff/ffff/ffff\x1b\\", True),
        (b"\x1b]11;rgb:fd/f6/e3\x07", True),
        (b"\x1b]11;rgba:f/f/f/f\x07", True),
        (b"\x1b]11;rgb:0000/2b2b/3636\x1b\\", False),
        (b"\x1b]11;rgb:0000/0000/ffff\x1b\\", False),
        (b"", None),
        (b"\x1b]11;?\x1b\\", None),
    ],
)
def test_a_colour_is_light_or_dark(said: bytes, light: bool | None) -> None:
    assert read_answer(said + KIND, "").light is light


def test_the_variable_speaks_where_the_terminal_does_not() -> None:
    assert read_answer(KIND, "0;15").light is True
    assert read_answer(b"\x1b]11;rgb:00/00/00\x07" + KIND, "0;15").light is False
    found = [light_by_variable(value) for value in ("0;15", "15;0", "0;default;7", "15;8", "", "15", "0;default")]
    assert found == [True, False, True, False, None, None, None]


def test_what_is_typed_meanwhile_is_kept() -> None:
    said = "é3".encode() + b"\x1b]11;rgb:ffff/ffff/ffff\x1b\\/" + KIND
    answer = read_answer(said, "")
    assert (answer.light, answer.typed) == (True, "é3/")
    keys = keys_of_typed("é3/?\x1b[B\r\n\x1b\x10 Q")
    assert [name for name, _ in keys] == [
        "é", "3", "slash", "question_mark", "down", "enter", "enter", "escape", "ctrl+p", "space", "Q"
    ]  # fmt: skip
    assert [character for _, character in keys[:4]] == ["é", "3", "/", "?"]
