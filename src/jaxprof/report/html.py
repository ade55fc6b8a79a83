"""A session as a small piece of HTML, for a notebook's output: tables without scripts, styles of their own or ids.

Everything from outside is escaped. What would make it long is cut, with how much was left out: the whole of it is in
`print(session)`.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from jaxprof.report.groups import Group, environment, groups, parameters_text
from jaxprof.report.outcome import outcome
from jaxprof.report.recording.words import ledger_title, remark, title, words
from jaxprof.report.text import check_text, interval_text, speedup_text
from jaxprof.results import RunResult
from jaxprof.results.programs.derive import NOT_SEEN, ProgramResult, program_result, programs
from jaxprof.safe_text import safe
from jaxprof.session import Session
from jaxprof.units import UNKNOWN, integer, percent, seconds

_ROWS_SHOWN: Final = 12
_GROUPS_SHOWN: Final = 12
_CELL_LONGEST: Final = 200
_BAR_PIXELS: Final = 480
_COLOURS: Final = {
    "import": "#8c8c8c",
    "data": "#b07aa1",
    "trace": "#edc948",
    "lower": "#f28e2b",
    "compile": "#e15759",
    "transfer": "#ff9da7",
    "device_busy": "#59a14f",
    "host_busy": "#4e79a7",
    "waiting": "#76b7b2",
    NOT_SEEN: "#d9d9d9",
}
_REASONS_SHOWN: Final = 3


def to_html(session: Session) -> str:
    """The session as one `<div>`."""
    lines = [f"<b>jaxprof</b> session {_text(session.header.session)}{_versions(session)}"]
    for run in programs(session):
        lines += _program(program_result(session, run.id))
    found = groups(session)
    for group in found[:_GROUPS_SHOWN]:
        lines += _group(session, group)
    if len(found) > _GROUPS_SHOWN:
        lines.append(_paragraph(f"and {len(found) - _GROUPS_SHOWN} more"))
    if not session.runs:
        lines.append(_paragraph("No run was recorded."))
    return "<div>" + "\n".join(lines) + "</div>"


def _versions(session: Session) -> str:
    found = environment(session)
    return f", jax {_text(found.jax)}" if found is not None and found.jax else ""


def _group(session: Session, group: Group) -> Iterator[str]:
    parameters = parameters_text(group.parameters)
    yield _paragraph(group.workload, f" ({parameters})" if parameters else "")
    head = ("variant", "device", "compile", "median", "95 %", "speed-up", "check")
    yield _table(head, [_run(session, one) for one in group.runs], figures=(2, 3, 4, 5))
    notes = {f"{warning.message} {warning.advice}".strip(): None for one in group.runs for warning in one.warnings}
    yield from _list(notes)


def _run(session: Session, one: RunResult) -> Sequence[str]:
    plan, ended = one.run.plan, outcome(session, one.run, live=False)
    if ended.status != "ok" and one.summary is None:
        return (plan.variant, plan.device, *(UNKNOWN,) * 4, f"{ended.status}: {ended.error}")
    return (
        plan.variant,
        plan.device,
        seconds(one.phase_seconds.get("compile")),
        seconds(one.summary.median if one.summary else None),
        interval_text(one),
        speedup_text(one),
        check_text(one),
    )


def _program(found: ProgramResult) -> Iterator[str]:
    yield _paragraph(title(found))
    shares = [share for share in found.timeline if share.seconds > 0]
    if shares and found.wall_seconds > 0:
        yield _bar([(share.state, share.seconds / found.wall_seconds) for share in shares])
        rows = [(words(share.state), seconds(share.seconds), percent(found.of_wall(share.seconds))) for share in shares]
        yield _table(("main thread", "time", "share"), rows, figures=(1, 2))
    if found.functions:
        yield _paragraph(ledger_title(found))
        listed = [
            (
                one.function,
                integer(one.count),
                seconds(one.seconds),
                one.called_from.short(found.directory) if one.called_from is not None else UNKNOWN,
                ", ".join(f"{integer(why.count)} × {words(why.code)}" for why in one.reasons[:_REASONS_SHOWN]),
            )
            for one in found.functions
        ]
        yield _table(("compiled", "times", "time", "called from", "why"), listed, figures=(1, 2))
    yield from _list(f"{remark(found, one)} {one.advice}".strip() for one in found.findings)


def _bar(shares: Sequence[tuple[str, float]]) -> str:
    """The time line's shares side by side; each says its name where the pointer rests."""
    parts = [
        f'<span title="{_text(words(state))}" style="display:inline-block;height:12px;'
        f'width:{share * _BAR_PIXELS:.1f}px;background:{_COLOURS.get(state, _COLOURS[NOT_SEEN])}"></span>'
        for state, share in shares
    ]
    return f'<div style="white-space:nowrap;line-height:0">{"".join(parts)}</div>'


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], figures: Sequence[int]) -> str:
    def row(cells: Sequence[str], tag: str) -> str:
        sides = ("right" if index in figures else "left" for index in range(len(cells)))
        inside = (
            f'<{tag} style="text-align:{side}">{_text(cell)}</{tag}>' for cell, side in zip(cells, sides, strict=True)
        )
        return f"<tr>{''.join(inside)}</tr>"

    lines = [row(head, "th"), *(row(cells, "td") for cells in rows[:_ROWS_SHOWN])]
    if len(rows) > _ROWS_SHOWN:
        lines.append(f'<tr><td colspan="{len(head)}">and {len(rows) - _ROWS_SHOWN} more</td></tr>')
    return f"<table>{''.join(lines)}</table>"


def _list(items: Iterable[str]) -> Iterator[str]:
    listed = list(items)
    if listed:
        shown = "".join(f"<li>{_text(item)}</li>" for item in listed[:_ROWS_SHOWN])
        more = f"<li>and {len(listed) - _ROWS_SHOWN} more</li>" if len(listed) > _ROWS_SHOWN else ""
        yield f"<ul>{shown}{more}</ul>"


def _paragraph(strong: str, rest: str = "") -> str:
    return f"<p><b>{_text(strong)}</b>{_text(rest)}</p>"


def _text(text: str) -> str:
    shown = safe(text)
    return html.escape(shown if len(shown) <= _CELL_LONGEST else shown[:_CELL_LONGEST] + "…")
