"""The elements of the page: text, lists, tables, folded parts, and places for charts. All text is escaped here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Final

from jaxprof.report.table import Table
from jaxprof.text import safe, safe_lines
from jaxprof.units import UNKNOWN, integer

ROWS_KEPT: Final = 1_000
"""Rows of a table on the page; how many more there are stands under it."""
TEXT_KEPT: Final = 1_000
"""Characters of a cell or a line."""
FOLDED_KEPT: Final = 256 << 10
"""Characters of a folded text."""


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the page with a heading, which the navigation leads to."""

    anchor: str
    title: str
    content: Sequence[str]
    """HTML."""


def text(words: str, longest: int = TEXT_KEPT) -> str:
    """`words` on one line, so that HTML shows every character; a longer text is cut."""
    shown = safe(words)
    return escape(shown if len(shown) <= longest else shown[:longest] + "…")


def heading(words: str, level: int = 3) -> str:
    """A heading inside a section."""
    return f"<h{level}>{text(words)}</h{level}>"


def paragraph(words: str, kind: str = "") -> str:
    """A paragraph; `kind` is its class in the style."""
    return f"<p{_kind(kind)}>{text(words)}</p>"


def command(line: str) -> Iterator[str]:
    """A command to copy; nothing for an empty one."""
    if line:
        yield f'<p class="command"><code>{text(line)}</code></p>'


def listed(items: Iterable[str], kind: str = "") -> Iterator[str]:
    """A list; nothing without items."""
    shown = "".join(f"<li>{text(item)}</li>" for item in items)
    if shown:
        yield f"<ul{_kind(kind)}>{shown}</ul>"


def facts(pairs: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Names with their values; nothing without any."""
    shown = "".join(f"<dt>{text(name)}</dt><dd>{text(value)}</dd>" for name, value in pairs)
    if shown:
        yield f"<dl>{shown}</dl>"


def folded(summary: str, body: str) -> str:
    """A long text that is closed at first; cut after `FOLDED_KEPT` characters, which the summary says."""
    cut = len(body) - FOLDED_KEPT
    note = f" (the first {integer(FOLDED_KEPT)} of {integer(len(body))} characters)" if cut > 0 else ""
    lines = "\n".join(safe_lines(body[:FOLDED_KEPT]))
    return f"<details><summary>{text(summary + note)}</summary><pre>{escape(lines)}</pre></details>"


def table(shown: Table[Any], rest: str = "and {} more") -> Iterator[str]:
    """The table with its notes, without the columns that say nothing; nothing at all without rows.

    A number stands in `data-v` as it is, for sorting; its cell shows it as a quantity.
    """
    columns = [(column, column.reader()) for column in shown.for_people()]
    rows = list(shown.rows)
    cells = [[(value := read(row), column.shown(value)) for column, read in columns] for row in rows[:ROWS_KEPT]]
    kept = [at for at in range(len(columns)) if any(row[at][1] not in ("", UNKNOWN) for row in cells)]
    if not kept:
        return
    sides = [' class="n"' if columns[at][0].is_right else "" for at in kept]
    heads = "".join(
        f'<th scope="col"{side}>{text(columns[at][0].title or "")}</th>' for at, side in zip(kept, sides, strict=True)
    )
    body = "".join(
        f"<tr>{''.join(_cell(*row[at], side) for at, side in zip(kept, sides, strict=True))}</tr>\n" for row in cells
    )
    title = f"<caption>{text(shown.title)}</caption>" if shown.title else ""
    yield f'<div class="table"><table>{title}<thead><tr>{heads}</tr></thead><tbody>\n{body}</tbody></table></div>'
    if len(rows) > ROWS_KEPT:
        yield paragraph(rest.format(integer(len(rows) - ROWS_KEPT)), "note")
    yield from (paragraph(note, "note") for note in shown.notes)


def _cell(value: Any, shown: str, side: str) -> str:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return f"<td{side}{f' data-v={_quoted(repr(value))}' if number else ''}>{text(shown)}</td>"


def _quoted(value: str) -> str:
    return f'"{escape(value)}"'


def _kind(kind: str) -> str:
    return f' class="{kind}"' if kind else ""


class Charts:
    """The data of the charts of one page, in the order of their places."""

    def __init__(self) -> None:
        self.data: list[dict[str, Any]] = []

    def figure(self, kind: str, caption: str, data: Mapping[str, Any]) -> str:
        """A place where the script draws a chart of this kind. `html_assets/page.js` lists the kinds."""
        number = len(self.data)
        self.data.append({"kind": kind, "caption": caption, **data})
        place = f'<div class="chart" role="img" aria-label="{escape(safe(caption))}"></div>'
        return f'<figure data-chart="{number}"><figcaption>{text(caption)}</figcaption>{place}</figure>'
