"""Text can be read on both themes: the contrast that WCAG 2 asks for, of every colour that a word can have."""

from itertools import combinations
from math import dist
from operator import mul

import pytest
from rich.color import Color as Ansi
from rich.color import ColorSystem
from textual.color import Color

from jaxprof.tui.hlo.kernels import KINDS as KERNEL_KINDS
from jaxprof.tui.kit import plots
from jaxprof.tui.kit.program_summary import STATES
from jaxprof.tui.kit.screen_bars import KeyBar, ModeBar
from jaxprof.tui.profile import memory
from jaxprof.tui.profile.timeline import drawing
from jaxprof.tui.results.result_panel import PHASE_STYLES
from jaxprof.tui.theme import DARK, LIGHT, themes
from tui.fakes import walking

TEXT, PICTURE = 4.5, 3.0
LEAST_DIFFERENCE = 20.0
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


def styles_of_legends():
    """The styles of the kinds that stand beside each other, by where they do."""
    states = [style for _, style in STATES.values()]
    kinds = [*(style for _, style in memory.STYLES.values()), "$error"]
    return {
        "states": [*states, "$bar-track"], "timeline": [*drawing.STYLES.values()], "phases": [*PHASE_STYLES.values()],
        "plots": plots.STYLES, "memory": kinds, "kernels": KERNEL_KINDS, "findings": ("$better", "$worse", "$warning"),
    }  # fmt: skip


def lab(colour):
    """A colour in CIELAB, in which distances are differences that people see; about 2 can just be seen."""
    parts = [part / 255 for part in Color.parse(colour).rgb]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    rows = ((0.4339, 0.3762, 0.1899), (0.2126, 0.7152, 0.0722), (0.0177, 0.1095, 0.8728))
    x, y, z = (sum(map(mul, row, linear)) for row in rows)
    x, y, z = (part ** (1 / 3) if part > 0.008856 else 7.787 * part + 16 / 116 for part in (x, y, z))
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


@pytest.mark.parametrize("few", [False, True])
@pytest.mark.parametrize("light", [False, True])
@pytest.mark.parametrize("legend", styles_of_legends())
def test_no_two_kinds_of_a_legend_look_alike(legend, light, few):
    theme = themes(few=few)[light]
    known = theme.variables | {name: getattr(theme, name) for name in ("primary", "error", "warning")}
    colours = {style: known[style.removeprefix("$")] for style in styles_of_legends()[legend]}
    assert len(colours) == len(styles_of_legends()[legend]), "each has its own meaning"
    for one, other in combinations(colours, 2):
        pair = colours[one], colours[other]
        if few:
            first, second = (Ansi.parse(colour).downgrade(ColorSystem.STANDARD).number for colour in pair)
            assert first != second, (one, other)
        else:
            assert dist(*map(lab, pair)) >= LEAST_DIFFERENCE, (one, other)


async def test_theme_reaches_screens_out_of_view():
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
