"""Text can be read on both themes: the contrast that WCAG 2 asks for, of every colour that a word can have."""

from __future__ import annotations

import pytest
from textual.color import Color
from textual.theme import Theme

from jaxprof.tui.theme import DARK, LIGHT, ON_LIGHT, VARIABLES

TEXT, PICTURE = 4.5, 3.0
NO_WORDS = ("bar", "rule", "border", "scrollbar", "block-cursor", "footer-background", "state-waiting")
"""What is drawn, and never a word; `state-waiting` is faint because nothing happens there."""
FAINT = ("text-disabled", "state-import")
"""What is off is less than text, and still seen."""


def luminance(colour: str) -> float:
    parts = [part / 255 for part in Color.parse(colour).rgb]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def test_the_contrast_is_that_of_wcag() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize(("theme", "meanings"), [(DARK, VARIABLES), (LIGHT, ON_LIGHT)], ids=["dark", "light"])
def test_every_word_can_be_read(theme: Theme, meanings: dict[str, str]) -> None:
    named = {"primary": theme.primary, "accent": theme.accent, "error": theme.error, "warning": theme.warning}
    named |= {"foreground": theme.foreground, "success": theme.success, "secondary": theme.secondary}
    colours = {name: value for name, value in (meanings | theme.variables | named).items() if value.startswith("#")}
    grounds = [theme.background, theme.surface]
    if not theme.dark:  # on dark, the row under the cursor stands out more than its faint words do
        grounds += [theme.panel, theme.variables["block-cursor-background"]]
    weak = {
        name: round(min(contrast(colour, ground) for ground in grounds), 2)
        for name, colour in colours.items()
        if not name.startswith(NO_WORDS)
        and min(contrast(colour, ground) for ground in grounds) < (PICTURE if name in FAINT else TEXT)
    }
    assert weak == {}


def test_the_word_under_the_cursor_can_be_read() -> None:
    for theme in (DARK, LIGHT):
        ground = theme.variables["block-cursor-background"]
        assert contrast(theme.variables["block-cursor-foreground"], ground) > TEXT
