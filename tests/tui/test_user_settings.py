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
from tui.fakes import Stage, screen_text, until

SIZE = (120, 40)


async def test_the_app_begins_with_what_is_set(state_home: Path) -> None:
    values = {"theme": LIGHT.name, "preset": "published", "devices": ("cuda:0", "cpu:0"), "budget": 7.5}
    stage = Stage(config=Config(values, {"app.help": "f12"}))
    async with stage.app.run_test(size=SIZE, notifications=True) as pilot:
        await until(pilot, lambda: isinstance(stage.app.screen, HomeScreen) and stage.app.screen.info)
        screen = stage.app.screen
        assert isinstance(screen, HomeScreen)
        assert stage.app.theme == LIGHT.name
        assert (screen.choices.preset, screen.choices.budget_seconds) == ("published", 7.5)
        assert screen.choices.devices == ["cuda:0", "cpu:0"]
        await until(pilot, lambda: "f12 Help" in screen_text(stage.app))
        await pilot.press("question_mark")
        await pilot.pause()
        assert stage.app.screen is screen, "the key is the user's now"
        await pilot.press("m", "11")
        await until(pilot, lambda: stage.app.screen is not screen)
    assert not (state_home / "config.toml").exists(), "nothing was chosen"


async def test_what_is_chosen_is_kept_for_the_next_time(state_home: Path) -> None:
    stage = Stage(config=Config())
    async with stage.app.run_test(size=SIZE, notifications=True) as pilot:
        await until(pilot, lambda: isinstance(stage.app.screen, HomeScreen) and stage.app.screen.info)
        screen = stage.app.screen
        assert isinstance(screen, HomeScreen)
        screen.action_preset()
        stage.app.theme = LIGHT.name
        await until(pilot, lambda: read_config(state_home).theme == LIGHT.name)
        assert read_config(state_home).preset == "published"


async def test_wrong_settings_are_told_and_the_app_goes_on() -> None:
    stage = Stage(config=Config({"theme": "mauve"}, {"app.hlep": "f12"}))
    async with stage.app.run_test(size=SIZE, notifications=True) as pilot:
        await until(pilot, lambda: isinstance(stage.app.screen, HomeScreen))
        await until(pilot, lambda: "no theme 'mauve'" in screen_text(stage.app))
        await until(pilot, lambda: "unknown action 'app.hlep'" in screen_text(stage.app))
        assert stage.app.theme == DARK.name


async def test_a_file_that_cannot_be_written_is_told_once_it_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("JAXPROF_CONFIG", str(tmp_path / "file" / "config.toml"))
    stage = Stage(config=Config())
    async with stage.app.run_test(size=SIZE, notifications=True) as pilot:
        await until(pilot, lambda: isinstance(stage.app.screen, HomeScreen) and stage.app.screen.info)
        stage.app.user.keep("preset", "quick")
        await until(pilot, lambda: "preset was not kept" in screen_text(stage.app))


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
