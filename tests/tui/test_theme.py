"""Text can be read on both themes: the contrast that WCAG 2 asks for, of every colour that a word can have."""

import pytest
from textual.color import Color

from jaxprof.tui.kit.screen_bars import KeyBar, ModeBar
from jaxprof.tui.theme import DARK, LIGHT
from tui.fakes import walking

TEXT, PICTURE = 4.5, 3.0
NO_WORDS = ("bar", "rule", "border", "scrollbar", "block-cursor", "footer-background", "state-waiting")
"""What is drawn, and never a word; `state-waiting` is faint because nothing happens there."""
FAINT = ("text-disabled", "state-import")
"""What is off is less than text, and still seen."""


def luminance(colour):
    parts = [part / 255 for part in Color.parse(colour).rgb]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, other):
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("theme", [DARK, LIGHT], ids=["dark", "light"])
def test_every_word_can_be_read(theme):
    words = ("primary", "secondary", "accent", "error", "warning", "success", "foreground")
    named = {name: getattr(theme, name) for name in words}
    colours = {name: value for name, value in (theme.variables | named).items() if value.startswith("#")}
    cursor = theme.variables["block-cursor-background"]
    grounds = [theme.background, theme.surface]
    if not theme.dark:  # on dark, the row under the cursor stands out more than its faint words do
        grounds += [theme.panel, cursor]
    found = {
        name: round(min(contrast(colour, ground) for ground in grounds), 2)
        for name, colour in colours.items()
        if not name.startswith(NO_WORDS)
    }
    assert {name: ratio for name, ratio in found.items() if ratio < (PICTURE if name in FAINT else TEXT)} == {}
    assert contrast(theme.variables["block-cursor-foreground"], cursor) > TEXT


async def test_a_theme_reaches_the_screens_that_are_out_of_view_when_it_is_chosen():
    async with walking() as walk:
        await walk.home()
        for mode in ("results", "home", "hlo"):
            walk.app.switch_mode(mode)
            await walk.mode(mode)
            await walk.pause()
        walk.app.theme = LIGHT.name
        await walk.pause()
        for mode in ("hlo", "results", "home", "profile"):
            walk.app.switch_mode(mode)
            await walk.mode(mode)
            await walk.pause()
            for bar in map(walk.find, (ModeBar, KeyBar)):
                expected = LIGHT.surface if isinstance(bar, ModeBar) else LIGHT.variables["footer-background"]
                assert bar.styles.background == Color.parse(expected), mode
