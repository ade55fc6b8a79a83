"""The user's settings in the app: their theme and keys, and the settings that the app saves when the user changes them
there.

Without settings (in tests, or if the file cannot be read) nothing is saved.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jaxprof.base.config import Config, Value, keep
from jaxprof.base.errors import JaxprofError, StorageError, UsageError, system_words
from jaxprof.tui.keys import checked, clashes, remap
from jaxprof.tui.theme import DARK, LIGHT

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.app import App


class UserSettings:
    """The user's settings, and where the app writes changes to them. Runs on the UI thread."""

    def __init__(self, app: App[None], tell: Callable[[JaxprofError, str], None], config: Config | None) -> None:
        self._app, self._tell, self._keeps = app, tell, config is not None
        self.config = config or Config()
        self._errors: list[JaxprofError] = []
        self._keys: dict[str, str] = {}
        try:
            self._keys = checked(self.config.keys)
        except JaxprofError as error:
            self._errors.append(error)
        self._errors += [
            UsageError(str(clash), "`jaxprof config set keys.ID KEY` changes one.") for clash in clashes(self._keys)
        ]
        remap(self._keys)

    def theme(self, *, light: bool) -> str:
        """Return the theme to begin with: the user's if there is one of that name, otherwise the one that suits the
        terminal's background."""
        name, default = self.config.get("theme", str) or "auto", LIGHT.name if light else DARK.name
        name = {"auto": default, "light": LIGHT.name, "dark": DARK.name}.get(name, name)
        if name in self._app.available_themes:
            return name
        hint = f"Available themes: auto, dark, light, {', '.join(sorted(self._app.available_themes))}."
        self._errors.append(JaxprofError(f"there is no theme {name!r}", hint))
        return default

    def start(self) -> None:
        """Set the user's keys, report what is wrong with the settings, and save changes of the theme from now on."""
        if self._keys:
            self._app.set_keymap(self._keys)
            self._app.call_after_refresh(self._app.refresh_bindings)  # no screen and key bar exist before the refresh
        for error in self._errors:
            self._tell(error, "Your settings")
        self._app.theme_changed_signal.subscribe(self._app, lambda theme: self.keep("theme", theme.name))

    def keep(self, name: str, value: Value) -> None:
        """Write a setting that the user has chosen into their file, and report if that fails."""
        if not self._keeps:
            return
        try:
            keep(name, value)
        except OSError as error:
            self._tell(StorageError(f"{name} was not saved: {system_words(error)}", ""), "Your settings")
        except JaxprofError as error:
            self._tell(error, "Your settings")
