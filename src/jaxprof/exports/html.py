"""Export a session as one HTML page, which `jaxprof.report.page` makes. It always has all runs."""

from __future__ import annotations

from collections.abc import Iterator

from jaxprof.exports.formats import ExportSource


def pieces(source: ExportSource) -> Iterator[str]:
    """Yield the page."""
    from jaxprof.report.page.document import to_page

    yield to_page(source.session, source.name)
