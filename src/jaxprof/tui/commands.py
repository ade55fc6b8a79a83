"""Every action that a key does here, as a command of the palette: who forgot the key finds it by its name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from textual.app import SystemCommand

if TYPE_CHECKING:
    from textual.app import App
    from textual.screen import Screen


def bound_commands(app: App[Any], screen: Screen[Any]) -> Iterable[SystemCommand]:
    """The bindings that are active in `screen`, each action once."""
    seen: set[str] = set()
    for active in screen.active_bindings.values():
        binding = active.binding
        if binding.description and binding.id and active.enabled and binding.action not in seen:
            seen.add(binding.action)
            yield SystemCommand(binding.description, binding.tooltip, _doing(app, active.node, binding.action))


def _doing(app: App[Any], node: Any, action: str) -> Callable[[], Any]:
    return lambda: app.run_action(action, node)
