"""Every finding that jaxprof can have, from whichever source, in one table: what it means, what to do, where to read.

`jaxprof explain --code` prints an entry. Hyphens and underscores are the same when a code is looked up.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from jaxprof.analysis.explain import captured_entries, job_entries, program_entries, run_entries
from jaxprof.analysis.explain.hlo_entries import hlo_entries
from jaxprof.errors import unknown_name

if TYPE_CHECKING:
    from jaxprof.analysis.explain.entry import CatalogueEntry


@cache
def entries() -> dict[str, CatalogueEntry]:
    """All entries by their code, source by source."""
    tables = (
        program_entries.ENTRIES,
        job_entries.ENTRIES,
        hlo_entries(),
        captured_entries.ENTRIES,
        run_entries.ENTRIES,
    )
    return {entry.code: entry for table in tables for entry in table}


def find_entry(code: str) -> CatalogueEntry:
    """The entry of a code, written with hyphens or underscores. Raises UsageError with similar codes."""
    wanted = code.strip().lower().replace("_", "-")
    by_name = {known.replace("_", "-"): entry for known, entry in entries().items()}
    if wanted not in by_name:
        raise unknown_name("finding", code, entries())
    return by_name[wanted]
