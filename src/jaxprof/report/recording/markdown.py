"""A program as Markdown: how it ended, its time line, its ledger by function, its findings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from jaxprof.report.escape import markdown
from jaxprof.report.outcome import outcome
from jaxprof.report.recording.bar import rounded
from jaxprof.report.recording.words import ledger_title, loop, remark, title, words
from jaxprof.results.programs.derive import NOT_SEEN, ProgramResult, program_result
from jaxprof.session import Run, Session
from jaxprof.units import UNKNOWN, integer, percent, seconds

_FUNCTIONS_SHOWN: Final = 20


def program_markdown(session: Session, run: Run, *, live: bool = False) -> Iterator[str]:
    """The report of one program, a line at a time."""
    found = program_result(session, run.id)
    yield f"### {markdown(title(found, live=live))}"
    ended = outcome(session, run, live=live)
    if ended.status not in ("ok", "running", "queued"):
        yield ""
        yield f"{ended.status}: {markdown(f'{ended.error}. {ended.advice}'.rstrip('. '))}"
    yield from _time_line(found)
    yield from _ledger(found)
    if found.steps is not None:
        yield ""
        yield markdown(loop(found, found.steps))
    if found.findings:
        yield ""
        yield from (f"- {markdown(remark(found, one))}. {markdown(one.advice)}" for one in found.findings)


def _time_line(found: ProgramResult) -> Iterator[str]:
    shown = [share for share in found.timeline if share.seconds > 0]
    if all(share.state == NOT_SEEN for share in shown):
        return
    texts, total = rounded([share.seconds for share in shown], found.wall_seconds)
    yield from ("", "| main thread | time | share | |", "|---|--:|--:|---|")
    for share, text in zip(shown, texts, strict=True):
        how = "" if share.state == NOT_SEEN else "exact" if share.exact else "estimate"
        yield f"| {words(share.state)} | {text} | {percent(found.of_wall(share.seconds))} | {how} |"
    yield f"| wall time | {total} | {percent(1.0)} | {integer(found.samples)} samples |"


def _ledger(found: ProgramResult) -> Iterator[str]:
    if not found.functions:
        return
    yield from ("", ledger_title(found), "")
    yield from ("| function | times | time | called from | why again |", "|---|--:|--:|---|---|")
    for one in found.functions[:_FUNCTIONS_SHOWN]:
        why = "; ".join(f"{integer(reason.count)} × {reason.text}" for reason in one.reasons if reason.code != "first")
        called = one.called_from.short(found.directory) if one.called_from is not None else UNKNOWN
        cells = (one.function, integer(one.count), seconds(one.seconds), called, why)
        yield "| " + " | ".join(map(markdown, cells)) + " |"
    more = len(found.functions) - _FUNCTIONS_SHOWN
    if more > 0:
        yield ""
        yield f"and {more} more function{'' if more == 1 else 's'}"
