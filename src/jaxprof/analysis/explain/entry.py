"""An entry of the catalogue of findings, and the sources that findings come from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

SOURCES: Final[dict[str, str]] = {
    "program": "recorded programs",
    "job": "jobs of several processes",
    "hlo": "compiled programs",
    "capture": "captures and profiles",
    "run": "measured runs",
    "comparison": "comparisons",
    "trust": "what makes a capture doubtful",
}
"""Where findings come from, in words."""


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """What holds for all cases of a finding; the figures of a case stand in its own finding."""

    code: str
    """As its source calls it."""
    source: str
    """One of `SOURCES`."""
    title: str
    means: str
    fix: str
    page: str
    """A page of the documentation, with its heading: `programs.md#findings`."""
