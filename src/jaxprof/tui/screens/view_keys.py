"""The keys that lead from a run to what is known of it: its HLO, and the three views of Profile."""

from __future__ import annotations

from textual.binding import Binding

_VIEWS = (
    ("h", "hlo", "HLO", "What XLA made of this run", True),
    ("t", "timeline", "Timeline", "When the kernels of this run ran", True),
    ("p", "compile", "Compile", "Where the time of this compile went", False),
    ("m", "memory", "Memory", "What the peak of this run's memory is made of", False),
)
"""Key, view, its name, its line in the help, and whether it stands in the line of keys."""


def view_keys(screen: str) -> list[Binding]:
    """The bindings, with ids of `screen` (`run.timeline`), which has the actions `hlo` and `profile(view)`."""
    return [
        Binding(
            key,
            "hlo" if view == "hlo" else f"profile('{view}')",
            title,
            show=show,
            tooltip=tooltip,
            id=f"{screen}.{view}",
        )
        for key, view, title, tooltip, show in _VIEWS
    ]
