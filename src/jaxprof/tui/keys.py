"""The bindings that the key table gives to screens, and the words of the keys for texts on screen and in the docs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from jaxprof.tui.key_table import GROUPS, HIDDEN, MEANINGS, QUESTION, Key

if TYPE_CHECKING:
    from textual.binding import BindingType

SHOWN_AS = {
    "slash": "/", "question_mark": "?", "full_stop": ".", "comma": ",", "plus": "+", "equals_sign": "=", "minus": "-",
    "underscore": "_", "left_square_bracket": "[", "right_square_bracket": "]", "less_than_sign": "<",
    "greater_than_sign": ">", "asterisk": "*", "number_sign": "#", "dollar_sign": "$", "left_curly_bracket": "{",
    "right_curly_bracket": "}", "escape": "Esc", "enter": "Enter", "space": "Space", "tab": "Tab",
}  # fmt: skip
"""Textual's names of keys that people call otherwise."""

ACTIONS = {f"{group}.{key.name}": key for group, listed in GROUPS.items() for key in listed.keys}
"""Every action, by the id of its bindings."""
_remapped: dict[str, str] = {}


def keys_of(action: Key) -> list[str]:
    """Textual's names of the keys of an action."""
    meanings = {**MEANINGS, **QUESTION}
    return [key for means in action.means.split() for key in meanings[means].keys.split(",")]


def bindings(group: str) -> list[BindingType]:
    """The bindings of a class: those of a group of the table."""
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


def action_of(binding_id: str) -> Key:
    """The row of the table that a binding comes from. Raises KeyError for an unknown id."""
    return ACTIONS[binding_id]


def remap(keys: Mapping[str, str]) -> None:
    """Takes note of the user's keys by binding id, for `key_of`; the app sets them with `App.set_keymap`."""
    _remapped.clear()
    _remapped.update(keys)


def checked(keys: Mapping[str, str]) -> dict[str, str]:
    """A user's keys by binding id, as Textual names them. Raises UsageError for an unknown action, and for no key."""
    from jaxprof.errors import UsageError, unknown_name

    found: dict[str, str] = {}
    for action, given in keys.items():
        if action not in ACTIONS:
            raise unknown_name("action", action, ACTIONS)
        found[action] = ",".join(word.strip() for word in given.split(",") if word.strip())
        if not found[action]:
            raise UsageError(f"keys.{action} is empty", "Name a key: ctrl+k, F4, x.")
    return found


def key_of(binding_id: str) -> str:
    """The key of an action for a text on screen: `a`, `Esc`. Raises KeyError for an unknown id."""
    first = (_remapped.get(binding_id) or ",".join(keys_of(ACTIONS[binding_id]))).split(",")[0].strip()
    return shown(first)


def shown(key: str) -> str:
    """Textual's name of a key as people write it: `/` for `slash`, `^p` for `ctrl+p`."""
    *modifiers, last = key.split("+") if key != "+" else [key]
    last = SHOWN_AS.get(last, last.upper() if last[0] == "f" and last[1:].isdigit() else last)
    return "".join("^" if word == "ctrl" else f"{word}+" for word in modifiers) + last


def as_markdown() -> str:
    """The body of docs/keys.md: the meanings, then the actions of each screen."""
    lines = ["| key | means everywhere |", "|---|---|"]
    for meaning in MEANINGS.values():
        keys = " ".join(f"`{shown(key)}`" for key in meaning.keys.split(","))
        lines.append(f"| {keys} | {meaning.does} |")
    for name, group in GROUPS.items():
        lines += ["", f"### {group.title}", "", "| key | action | | id |", "|---|---|---|---|"]
        for action in group.keys:
            keys = " ".join(f"`{shown(key)}`" for key in keys_of(action))
            lines.append(f"| {keys} | {action.label} | {action.help} | `{name}.{action.name}` |")
    return "\n".join(lines) + "\n"
