"""Every finding that jaxprof reports, from any source: what it means, how to fix it, and where to read more.

`jaxprof explain --code` prints an entry. A code may be written with hyphens or underscores. The figures of a case are
not here: they are in the finding itself. Each entry stands with what finds it.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from jaxprof.base.errors import unknown_name
from jaxprof.events.finding import CatalogueEntry

SOURCES: dict[str, str] = {
    "program": "recorded programs",
    "job": "jobs of several processes",
    "hlo": "compiled programs",
    "capture": "captures and profiles",
    "run": "measured runs",
    "comparison": "comparisons",
    "trust": "what makes a capture doubtful",
}
"""Sources of findings, each with its text."""


@cache
def entries() -> dict[str, CatalogueEntry]:
    """Return all entries by code, grouped by source. Loads all checks, which nothing but this needs together."""
    from jaxprof.analysis.runs import warnings
    from jaxprof.findings import captures, hlo, jobs, out_of_memory, programs, runs
    from jaxprof.trace.checks import TRUST

    doubt = "The capture does not show what it seems to show; figures that rest on it may be off."
    of_trust = (
        CatalogueEntry(code, title, doubt, fix, "trust", "traces.md#trust") for code, (title, fix) in TRUST.items()
    )
    every = (
        *programs.CHECKS, *programs.REMARKS, *jobs.ENTRIES, *hlo.CHECKS, *captures.ENTRIES, *of_trust,
        *warnings.ENTRIES, *runs.ENTRIES, out_of_memory.ENTRY,
    )  # fmt: skip
    return {entry.code: entry for entry in every}


def find_entry(code: str, offered: Iterable[str] | None = None) -> CatalogueEntry:
    """Return the entry of a code, written with hyphens or underscores. Raises UsageError with similar codes of those
    `offered`, by default all."""
    known = entries()
    entry = known.get(code.strip().lower().replace("-", "_"))
    if entry is None:
        raise unknown_name("finding", code, known if offered is None else offered)
    return entry
