"""The user's settings in the app: their theme and keys, and what the app keeps of what they choose there.

Without settings (in tests, or where the file cannot be read) nothing is kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jaxprof.config import Config, keep
from jaxprof.errors import JaxprofError, StorageError, UsageError, system_words
from jaxprof.tui.keys import checked, clashes, remap
from jaxprof.tui.theme import DARK, LIGHT

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.app import App
    from textual.theme import Theme

    from jaxprof.config import Value


class UserSettings:
    """What the user has set, and where the app writes what they choose. Runs on the UI thread."""

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
            UsageError(str(clash), "`jaxprof config edit` opens your keys.") for clash in clashes(self._keys)
        ]
        remap(self._keys)

    def theme(self, *, light: bool) -> str:
        """The theme to begin with: the user's if there is one of that name, else by the terminal's background."""
        wanted, usual = self.config.theme or "auto", LIGHT.name if light else DARK.name
        wanted = {"auto": usual, "light": LIGHT.name, "dark": DARK.name}.get(wanted, wanted)
        if wanted in self._app.available_themes:
            return wanted
        hint = f"There are auto, dark, light, {', '.join(sorted(self._app.available_themes))}."
        self._errors.append(JaxprofError(f"there is no theme {wanted!r}", hint))
        return usual

    def start(self) -> None:
        """Sets the user's keys, reports what is wrong with the settings, and keeps the theme from now on."""
        if self._keys:
            self._app.set_keymap(self._keys)
            self._app.call_after_refresh(self._app.refresh_bindings)  # there is no screen yet, whose key bar would hear
        for error in self._errors:
            self._tell(error, "Your settings")
        self._app.theme_changed_signal.subscribe(self._app, self._theme_changed)

    def _theme_changed(self, theme: Theme) -> None:
        self.keep("theme", theme.name)

    def keep(self, name: str, value: Value) -> None:
        """Writes what the user has chosen into their file, and reports if that fails."""
        if not self._keeps:
            return
        try:
            keep(name, value)
        except OSError as error:
            self._tell(StorageError(f"{name} was not kept: {system_words(error)}", ""), "Your settings")
        except JaxprofError as error:
            self._tell(error, "Your settings")
