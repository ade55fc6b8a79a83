"""The bindings that the key table gives to screens, and the names of the keys for texts on screen and in the docs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jaxprof.tui.key_table import GROUPS, HIDDEN, Key

if TYPE_CHECKING:
    from textual.binding import BindingType

SHOWN_AS = {
    "slash": "/", "question_mark": "?", "full_stop": ".", "comma": ",", "plus": "+", "equals_sign": "=", "minus": "-",
    "underscore": "_", "left_square_bracket": "[", "right_square_bracket": "]", "less_than_sign": "<",
    "greater_than_sign": ">", "asterisk": "*", "number_sign": "#", "dollar_sign": "$", "left_curly_bracket": "{",
    "right_curly_bracket": "}", "escape": "Esc", "enter": "Enter", "space": "Space", "tab": "Tab",
}  # fmt: skip
"""Names of keys as people write them, by Textual's names."""

ACTIONS = {f"{group}.{key.name}": key for group, listed in GROUPS.items() for key in listed.keys}
"""Every action, by the id of its bindings."""
IN_MENU = "m:"
"""Prefix of a key that is the letter of an action in the menu."""
LETTERS = frozenset("rwcCyes")
"""Keys whose actions are also in the menu, under the same letter."""
_remapped: dict[str, str] = {}


def keys_of(action: Key) -> list[str]:
    """Return Textual's names of the keys of an action."""
    return action.keys.split()


def letter_of(action: Key) -> str:
    """Return the letter of an action in the menu; empty if it is not there, as for one that only moves the cursor."""
    listed = [key.removeprefix(IN_MENU) for key in keys_of(action) if key.startswith(IN_MENU) or key in LETTERS]
    return shown(listed[0]) if listed else ""


def bindings(group: str) -> list[BindingType]:
    """Return the bindings of a class: those of one group of the table."""
    from textual.binding import Binding

    return [
        Binding(
            key,
            action.action,
            action.label,
            show=action.bar > HIDDEN,
            tooltip=action.help,
            priority=action.priority,
            id=f"{group}.{action.name}",
        )
        for action in GROUPS[group].keys
        for key in keys_of(action)
    ]


def remap(keys: Mapping[str, str]) -> None:
    """Remember the user's keys by binding id, for `key_of`; the app sets them with `App.set_keymap`."""
    _remapped.clear()
    _remapped.update(keys)


def checked(keys: Mapping[str, str]) -> dict[str, str]:
    """Return a user's keys by binding id, as Textual names them. Raises UsageError for an unknown action, and if there
    is no key."""
    from jaxprof.errors import UsageError, unknown_name

    by_action: dict[str, str] = {}
    for action, keys_text in keys.items():
        if action not in ACTIONS:
            raise unknown_name("action", action, ACTIONS)
        by_action[action] = ",".join(word.strip() for word in keys_text.split(",") if word.strip())
        if not by_action[action]:
            raise UsageError(f"keys.{action} is empty", "Name a key: ctrl+k, F4, x.")
    return by_action


@dataclass(frozen=True, slots=True)
class Clash:
    """A key that the user gives to two actions of one place, so that one of them is never reached."""

    key: str
    """Name of the key as people write it."""
    actions: tuple[str, str]

    def __str__(self) -> str:
        return f"{self.key} is assigned to both {self.actions[0]} and {self.actions[1]}: only one of them can work"


_IN_EVERY_PLACE = ("app", "rows")
"""Groups whose keys also act on every screen."""


def clashes(keys: Mapping[str, str]) -> list[Clash]:
    """Return where a user's keys, as `checked` returns them, collide with each other or with a key of the table."""

    def keys_now(name: str) -> set[str]:
        return set(keys[name].split(",") if name in keys else keys_of(ACTIONS[name]))

    collisions = []
    order = list(keys)
    for name in keys:
        place = name.partition(".")[0]
        for other, action in ACTIONS.items():
            other_place = other.partition(".")[0]
            same_place = place == other_place or other_place in _IN_EVERY_PLACE or place in _IN_EVERY_PLACE
            if not same_place or other == name or (other in keys and order.index(other) < order.index(name)):
                continue
            if set(keys_of(ACTIONS[name])) & set(keys_of(action)):
                continue  # by default they share a key: at any time only one of them does something
            collisions += [Clash(shown(key), (name, other)) for key in sorted(keys_now(name) & keys_now(other))]
    return collisions


def key_of(binding_id: str) -> str:
    """Return the key of an action for a text on screen: `a`, `Esc`. Raises KeyError for an unknown id."""
    first = (_remapped.get(binding_id) or ",".join(keys_of(ACTIONS[binding_id]))).split(",")[0].strip()
    return shown(first)


def in_words(binding_id: str) -> str:
    """Return the key of an action for a sentence: `q`, or `m, then V` for a letter of the menu."""
    return ", then ".join(key_of(binding_id).split(" "))


def shown(key: str) -> str:
    """Return Textual's name of a key as people write it: `/` for `slash`, `^p` for `ctrl+p`."""
    if key.startswith(IN_MENU):
        return f"{key_of('app.menu')} {shown(key.removeprefix(IN_MENU))}"
    *modifiers, last = key.split("+") if key != "+" else [key]
    last = SHOWN_AS.get(last, last.upper() if last[0] == "f" and last[1:].isdigit() else last)
    return "".join("^" if word == "ctrl" else f"{word}+" for word in modifiers) + last
