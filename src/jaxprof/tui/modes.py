"""The modes, as data: key, name, and the screen that each begins with. Imported when it is first gone to."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jaxprof.tui.screens.base import SessionScreen


@dataclass(frozen=True, slots=True)
class Mode:
    """One of the app's places."""

    name: str
    key: str
    title: str
    tooltip: str
    screen: str
    """Class of the screen, in `jaxprof.tui.screens.<name>`."""

    def make(self) -> SessionScreen:
        """A new screen of this mode."""
        made: SessionScreen = getattr(import_module(f"jaxprof.tui.screens.{self.name}"), self.screen)()
        return made


PLACES = (
    Mode("home", "1", "Home", "Devices, workloads, and what was run before", "HomeScreen"),
    Mode("run", "2", "Run", "The runs that are going on, phase by phase", "RunScreen"),
    Mode("results", "3", "Results", "The variants side by side", "ResultsScreen"),
    Mode("hlo", "4", "HLO", "What XLA made of a run: kernels, and the text of each stage", "HloScreen"),
    Mode("sessions", "5", "Sessions", "The sessions that are kept", "SessionsScreen"),
    Mode("profile", "6", "Profile", "Recorded of a run: timeline, compile passes, memory", "ProfileScreen"),
    Mode("program", "7", "Program", "Your own program: its time, what it compiled and why, findings", "ProgramScreen"),
)
