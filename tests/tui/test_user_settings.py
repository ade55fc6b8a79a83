"""The app begins with the user's theme, preset, devices, budget and keys, and keeps what they choose."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.theme import Theme

from jaxprof.config import Config, read_config
from jaxprof.tui.app import JaxprofApp
from jaxprof.tui.home.screen import HomeScreen
from jaxprof.tui.keys import checked, clashes
from jaxprof.tui.theme import DARK, LIGHT
from tui.fakes import Stage, walking


async def test_the_app_begins_with_what_is_set_and_keeps_what_is_chosen(
    state_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = {"theme": LIGHT.name, "preset": "published", "devices": ("cuda:0", "cpu:0"), "budget": 7.5}
    async with walking(stage=Stage(config=Config(values, {"app.help": "f12"}))) as walk:
        home = await walk.on(HomeScreen)
        await walk.until(lambda: home.info)
        assert walk.app.theme == LIGHT.name
        choices = home.choices
        assert (choices.preset, choices.budget_seconds, choices.devices) == ("published", 7.5, ["cuda:0", "cpu:0"])
        await walk.press("?", "f12 Help")
        assert walk.screen is home, "the key is the user's now"
        await walk.press("f12")
        await walk.until(lambda: walk.screen is not home)
        await walk.press("escape")
        assert not (state_home / "config.toml").exists(), "nothing was chosen"
        home.action_preset()
        walk.app.theme = DARK.name
        await walk.until(lambda: read_config(state_home).theme == DARK.name)
        assert read_config(state_home).preset == "quick"
        (tmp_path / "file").write_text("")
        monkeypatch.setenv("JAXPROF_CONFIG", str(tmp_path / "file" / "config.toml"))
        walk.app.user.keep("preset", "published")
        await walk.until(lambda: "preset was not saved" in walk.said)


async def test_wrong_settings_are_told_and_the_app_goes_on() -> None:
    async with walking(stage=Stage(config=Config({"theme": "mauve"}, {"app.hlep": "f12"}))) as walk:
        await walk.shows("no theme 'mauve'", "unknown action 'app.hlep'")
        assert walk.app.theme == DARK.name


@pytest.mark.parametrize(
    ("wanted", "light", "theme"),
    [
        (None, True, LIGHT), (None, False, DARK), ("auto", True, LIGHT), ("auto", False, DARK), ("light", False, LIGHT),
        ("dark", True, DARK), ("jaxprof-dark", True, DARK),
    ],
)  # fmt: skip
def test_the_users_theme_wins_over_the_terminals(wanted: str | None, light: bool, theme: Theme) -> None:
    settings = Config({"theme": wanted} if wanted else {})
    assert JaxprofApp(config=settings, light=light).theme == theme.name


@pytest.mark.parametrize(
    ("keys", "found"),
    [
        ({"results.compare": "s"}, ["results.sort"]),
        ({"results.compare": "j"}, ["rows.down"]),
        ({"results.compare": "ctrl+p"}, ["app.palette"]),
        ({"results.compare": "d"}, []),  # of Home, which is not there at the same time
        ({"run.pause": "p", "run.resume": "p"}, []),  # at any time one of the two does something
        ({"results.compare": "s", "results.sort": "f12"}, []),
    ],
)
def test_a_key_that_two_actions_of_one_place_have_is_found(keys: dict[str, str], found: list[str]) -> None:
    assert [clash.actions[1] for clash in clashes(checked(keys))] == found
