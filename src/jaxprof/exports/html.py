"""The page of a session. `jaxprof.report.page` makes it; it always has all runs."""

from __future__ import annotations

from collections.abc import Iterator

from jaxprof.exports.source import ExportSource
from jaxprof.session import Run, Session


def runs(session: Session) -> list[Run]:
    """Every run."""
    return list(session.runs.values())


def pieces(source: ExportSource) -> Iterator[str]:
    """The page."""
    from jaxprof.report.page.document import to_page

    yield to_page(source.session, source.name, live=source.live)
