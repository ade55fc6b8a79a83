"""Run."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.widgets import Static

from jaxprof.tui.screens.base import SessionScreen

if TYPE_CHECKING:
    from textual.app import ComposeResult


class RunScreen(SessionScreen):
    """Run."""

    MODE: ClassVar[str] = "run"

    def compose_body(self) -> ComposeResult:
        yield Static("Run", markup=False)
