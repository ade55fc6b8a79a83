"""Elements of the page: text, lists, tables, folded parts, and places for charts. All text is escaped here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Any

from jaxprof.base.text import safe, safe_lines
from jaxprof.base.units import UNKNOWN, integer
from jaxprof.base.values import frozen
from jaxprof.facts import column
from jaxprof.report import Headline, Piece, Prose, Table

ROWS_KEPT = 1_000
"""Most rows of a table on the page; a note under it counts the others."""
TEXT_KEPT = 1_000
"""Most characters of a cell or a line."""
FOLDED_KEPT = 256 << 10


@frozen
class Drawing:
    """A chart, which a script draws. `html_assets/page.js` lists the kinds."""

    kind: str
    caption: str
    data: Mapping[str, Any]


Element = str | Drawing
"""A piece of HTML, or a drawing that takes its place."""


@frozen
class Section:
    """A part of the page with a heading and a link in the navigation."""

    anchor: str
    title: str
    content: Sequence[Element]

    def html(self, charts: list[dict[str, Any]]) -> str:
        """Return the section. The data of its drawings is added to `charts`, those of all sections so far."""
        elements = []
        for element in self.content:
            if isinstance(element, Drawing):
                drawing = f'<div class="chart" role="img" aria-label="{escape(safe(element.caption))}"></div>'
                caption = f"<figcaption>{text(element.caption)}</figcaption>"
                elements.append(f'<figure data-chart="{len(charts)}">{caption}{drawing}</figure>')
                charts.append({"kind": element.kind, "caption": element.caption, **element.data})
            else:
                elements.append(element)
        content = "\n".join(elements)
        return f'<section id="{self.anchor}">\n<h2>{text(self.title)}</h2>\n{content}\n</section>\n'


def section(anchor: str, title: str, content: Sequence[Element]) -> Iterator[Section]:
    if content:
        yield Section(anchor, title, content)


def text(words: str) -> str:
    """Return `words` on one line, escaped so that HTML shows every character; a very long text is cut."""
    shown = safe(words)
    return escape(shown if len(shown) <= TEXT_KEPT else shown[:TEXT_KEPT] + "…")


def heading(words: str, level: int = 3) -> str:
    return f"<h{level}>{text(words)}</h{level}>"


def paragraph(words: str, kind: str = "") -> str:
    named = f' class="{kind}"' if kind else ""
    return f"<p{named}>{text(words)}</p>"


def command(line: str, *, from_file: bool) -> Iterator[str]:
    """Yield a command to copy, with a mark if it has words of a file; nothing for an empty one."""
    if line:
        yield f'<p class="command">{"from the file: " if from_file else ""}<code>{text(line)}</code></p>'


def facts(pairs: Iterable[tuple[str, str]]) -> Iterator[str]:
    shown = "".join(f"<dt>{text(name)}</dt><dd>{text(value)}</dd>" for name, value in pairs)
    if shown:
        yield f"<dl>{shown}</dl>"


def html(pieces: Iterable[Piece]) -> Iterator[str]:
    """Yield a report as HTML, without the lines that only text has, and with every row of its tables."""
    for piece in pieces:
        if isinstance(piece, Prose) and piece.text:
            yield paragraph(f"{piece.first.strip()} {piece.text}".strip(), "bad" if "✗" in piece.first else "")
        elif isinstance(piece, Headline):
            yield heading(piece.text)
        elif isinstance(piece, Table):
            yield from table(piece)


def details_element(summary: str, body: str) -> str:
    """Return a long text that is closed at first, cut after `FOLDED_KEPT` characters with a note."""
    cut = len(body) - FOLDED_KEPT
    note = f" (the first {integer(FOLDED_KEPT)} of {integer(len(body))} characters)" if cut > 0 else ""
    lines = "\n".join(safe_lines(body[:FOLDED_KEPT]))
    return f"<details><summary>{text(summary + note)}</summary><pre>{escape(lines)}</pre></details>"


def table(shown: Table[Any]) -> Iterator[str]:
    """Yield the table with its notes, without empty columns; `data-v` of a number's cell has it for sorting."""
    columns = shown.for_people()
    if (under := shown.under) is not None:
        columns.append(column("why", lambda row: "; ".join(words.text for words in under(row) if words.text)))
    rows = list(shown.rows)
    readers = [(fact.reader(), fact.shown) for fact in columns]
    cells = [[(value := read(row), show(value)) for read, show in readers] for row in rows[:ROWS_KEPT]]
    kept = [at for at in range(len(columns)) if any(row[at][1] not in ("", UNKNOWN) for row in cells)]
    if not kept:
        return
    sides = [' class="n"' if columns[at].is_right else "" for at in kept]
    heads = "".join(
        f'<th scope="col"{side}>{text(columns[at].title or "")}</th>' for at, side in zip(kept, sides, strict=True)
    )

    def cell(value: Any, words: str, side: str) -> str:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        sorted_by = f' data-v="{escape(repr(value))}"' if number else ""
        return f"<td{side}{sorted_by}>{text(words)}</td>"

    body = "".join(
        f"<tr>{''.join(cell(*row[at], side) for at, side in zip(kept, sides, strict=True))}</tr>\n" for row in cells
    )
    title = f"<caption>{text(shown.title)}</caption>" if shown.title else ""
    yield f'<div class="table"><table>{title}<thead><tr>{heads}</tr></thead><tbody>\n{body}</tbody></table></div>'
    if len(rows) > ROWS_KEPT:
        yield paragraph(f"and {integer(len(rows) - ROWS_KEPT)} more", "note")
    yield from (paragraph(note, "note") for note in shown.notes)
