"""A program as plain text, 80 columns wide: how it ended, where its time went, what it compiled and why, what to do.

The time line is in letters, so that it says the same without colours. Its column of seconds is rounded so that it adds
up to the wall time; which rows are exact and which rest on samples stands in each row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from jaxprof.events import Compiled
from jaxprof.report.outcome import outcome
from jaxprof.report.program_bar import letters, rounded
from jaxprof.report.table import table, wrap
from jaxprof.results.program import (
    NOT_SEEN,
    FunctionCompiles,
    ProgramResult,
    StepFigures,
    program_result,
    programs,
)
from jaxprof.results.program_places import place
from jaxprof.safe_text import safe, shorten
from jaxprof.session import Run, Session
from jaxprof.units import UNKNOWN, bytes_, integer, percent, scaled, seconds

WIDTH: Final = 80
_FUNCTIONS_SHOWN: Final = 10
_REASONS_SHOWN: Final = 4
_LINES_SHOWN: Final = 6
_LEAST_LINE: Final = 0.01
"""Share of the wall time below which a line of the source is not shown."""
_TRANSFERS_SHOWN: Final = 8
_SUMMARY_FINDINGS: Final = 3
_BAR: Final = 30
_ARGV_WIDTH: Final = 44


def program_lines(session: Session, run: Run, *, live: bool = False) -> Iterator[str]:
    """The whole report of one program."""
    found = program_result(session, run.id)
    yield from _head(session, found, live)
    for part in (_time_line, _ledger, _finding_list, _line_list, _loops, _transfer_list, _array_lines, _notes):
        lines = list(part(found))
        if lines:
            yield ""
            yield from lines


def program_view_text(session: Session, view: str) -> str:
    """One of `PROGRAM_VIEWS` of every program of the session, for people."""
    parts = [
        "\n".join([_title(found), "", *(list(_VIEWS[view](found)) or [f"  {_NOTHING[view]}"])])
        for run in programs(session)
        for found in (program_result(session, run.id),)
    ]
    return "\n\n".join(parts) if parts else "This session has no program."


def summary_lines(session: Session) -> list[str]:
    """What `jaxprof script` says when the program is over: at most 6 lines; none for a session without a program."""
    found = next((program_result(session, run.id) for run in programs(session)), None)
    if found is None:
        return []
    most = sorted((share for share in found.timeline if share.seconds > 0), key=lambda share: -share.seconds)
    said = ", ".join(f"{_words(share.state)} {percent(found.of_wall(share.seconds))}" for share in most[:4])
    lines = [safe(f"{_title(found)}: {said}" if said else _title(found))]
    if found.functions:
        first = found.functions[0]
        lines.append(
            safe(
                f"{_compilations(found.compile_count)} in {seconds(found.compile_seconds)}; the dearest is "
                f"{first.function}: {integer(first.count)} in {seconds(first.seconds)}"
            )
        )
    shown = found.findings[:_SUMMARY_FINDINGS]
    for one in shown:
        at = f"{one.where.short(found.directory)}: " if one.where is not None else ""
        lines.append(f"! {safe(at + one.message)}")
    if len(found.findings) > len(shown):
        more = len(found.findings) - len(shown)
        lines.append(f"  and {more} more finding{'' if more == 1 else 's'}")
    return [shorten(line, 2 * WIDTH) for line in lines]


def _title(found: ProgramResult) -> str:
    """`train.py --epochs 3  ·  exit code 0  ·  42.1 s`."""
    command = safe(" ".join(found.argv)) or safe(found.run.plan.workload)
    parts = [shorten(command, _ARGV_WIDTH)]
    if found.exit_code is not None:
        parts.append(f"exit code {found.exit_code}")
    elif not found.ended:
        parts.append("running")
    parts.append(seconds(found.wall_seconds))
    if found.steps is not None and found.steps.per_second is not None:
        parts.append(f"{scaled(found.steps.per_second)} steps/s")
    return "  ·  ".join(parts)


def _head(session: Session, found: ProgramResult, live: bool) -> Iterator[str]:
    title = _title(found)
    yield title
    yield "─" * min(WIDTH, len(title))
    command = safe(" ".join(found.argv))
    if len(command) > _ARGV_WIDTH:
        yield from wrap(command, width=WIDTH, indent="    ", first="  ")
    ended = outcome(session, found.run, live=live)
    if ended.status not in ("ok", "running", "queued"):
        word = ended.status if ended.error in ("", ended.status) else f"{ended.status}: {ended.error}"
        yield from wrap(word, width=WIDTH, indent="    ", first="  ✗ ")
        yield from wrap(ended.advice, width=WIDTH, indent="    ")


def _time_line(found: ProgramResult) -> Iterator[str]:
    if found.wall_seconds <= 0:
        return
    yield "where the time of the main thread went, from start to end"
    drawn, letter_of = letters(found, WIDTH - 4)
    yield f"  {drawn}"
    yield ""
    shown = [share for share in found.timeline if share.seconds > 0]
    texts, total = rounded([share.seconds for share in shown], found.wall_seconds)
    rows = [("", "", "time", "share", "", "")]
    for share, text in zip(shown, texts, strict=True):
        part = found.of_wall(share.seconds) or 0.0
        how = "" if share.state == NOT_SEEN else "exact" if share.exact else "estimate"
        rows.append((letter_of[share.state], _words(share.state), text, percent(part), "█" * round(_BAR * part), how))
    rows.append(("", "wall time", total, percent(1.0), "", ""))
    yield from table(rows, right=(2, 3), width=WIDTH, gives_way=4)
    if found.samples:
        yield from wrap(
            f"Exact is what JAX announced; estimates are from {integer(found.samples)} samples of the main thread's "
            f"stack{_error(found)}.",
            width=WIDTH,
            indent="  ",
        )


def _error(found: ProgramResult) -> str:
    """Half the 95 % interval of a share of one half, the widest there is, for so many samples."""
    half = 0.98 / found.samples**0.5
    return f", each good to some ± {percent(half)} of the wall time" if half < 0.5 else ""


def _ledger(found: ProgramResult) -> Iterator[str]:
    if not found.functions:
        return
    share = found.of_wall(found.compile_seconds)
    of_wall = f", {percent(share)} of the wall time" if share is not None else ""
    yield f"{_compilations(found.compile_count)} of {_functions(found)}, {seconds(found.compile_seconds)}{of_wall}"
    shown = found.functions[:_FUNCTIONS_SHOWN]
    rows = [("times", "time", "share", "function", "called from", "cache")]
    rows += [_function_row(found, one) for one in shown]
    lines = table(rows, right=(0, 1, 2), width=WIDTH, gives_way=3)
    yield lines[0]
    for line, one in zip(lines[1:], shown, strict=True):
        yield line
        yield from _reasons(one)
    rest = found.functions[_FUNCTIONS_SHOWN:]
    if rest:
        count, took = sum(one.count for one in rest), sum(one.seconds for one in rest)
        yield f"  and {len(rest)} more functions: {_compilations(count)}, {seconds(took)}"


def _function_row(found: ProgramResult, one: FunctionCompiles) -> tuple[str, str, str, str, str, str]:
    kind = " (op by op)" if one.op_by_op else ""
    return (
        integer(one.count),
        seconds(one.seconds),
        percent(found.of_wall(one.seconds)),
        one.function + kind,
        one.called_from.short(found.directory) if one.called_from is not None else UNKNOWN,
        _cache(one.rows),
    )


def _cache(rows: Sequence[Compiled]) -> str:
    """`3 hits, 1 miss`; a dash where the cache is off or nothing is known."""
    hits = sum(row.count for row in rows if row.cache == "hit")
    misses = sum(row.count for row in rows if row.cache == "miss")
    said = [f"{hits} hit{'' if hits == 1 else 's'}"] if hits else []
    said += [f"{misses} miss{'' if misses == 1 else 'es'}"] if misses else []
    return ", ".join(said) or UNKNOWN


def _reasons(one: FunctionCompiles) -> Iterator[str]:
    """Why it was compiled again, a line for each kind of reason."""
    again = [reason for reason in one.reasons if reason.code != "first"]
    for reason in again[:_REASONS_SHOWN]:
        yield from wrap(f"{integer(reason.count)} × {reason.text}", width=WIDTH, indent=" " * 12, first=" " * 9)
    if len(again) > _REASONS_SHOWN:
        yield f"         and {len(again) - _REASONS_SHOWN} more kinds of reason"


def _finding_list(found: ProgramResult) -> Iterator[str]:
    if not found.findings:
        return
    yield f"{len(found.findings)} finding{'' if len(found.findings) == 1 else 's'}, the dearest first"
    for one in found.findings:
        at = f"{one.where.short(found.directory)}: " if one.where is not None else ""
        mark = " (estimate)" if one.estimate else ""
        yield from wrap(f"{at}{one.message}{mark}", width=WIDTH, indent="    ", first="  ! ")
        yield from wrap(one.advice, width=WIDTH, indent="      ", first="    → ")


def _line_list(found: ProgramResult) -> Iterator[str]:
    if found.wall_seconds <= 0:
        return
    lines = [line for line in found.lines if line.seconds >= _LEAST_LINE * found.wall_seconds][:_LINES_SHOWN]
    if not lines:
        return
    yield "lines that took most (estimates)"
    rows = [("time", "share", "line", "in", "state", "calls")]
    rows += [
        (
            seconds(line.seconds, 2),
            percent(found.of_wall(line.seconds)),
            line.place.short(found.directory),
            line.place.function,
            _words(line.state),
            line.call,
        )
        for line in lines
    ]
    yield from table(rows, right=(0, 1), widest=(0, 0, 28, 18, 0, 24), width=WIDTH, gives_way=2)


def _loops(found: ProgramResult) -> Iterator[str]:
    for one in found.loops[:2]:
        yield from wrap(_loop(found, one), width=WIDTH, indent="  ", first="")


def _loop(found: ProgramResult, one: StepFigures) -> str:
    where = f"at {one.where.short(found.directory)}" if one.where is not None else f"of {one.name!r}"
    how = "counted" if one.found_by == "monitoring" else "by its annotation"
    spread = f", jitter {percent(one.jitter)}" if one.jitter is not None else ""
    median = f", median {seconds(one.median_seconds)}{spread}" if one.median_seconds is not None else ""
    return f"loop {where}: {integer(one.count)} steps ({how}), {scaled(one.per_second)} steps/s{median}"


def _transfer_list(found: ProgramResult) -> Iterator[str]:
    if not found.transfers:
        return
    yield "implicit copies between host and device"
    rows = [("direction", "times", "bytes", "time", "line", "seen by")]
    rows += [
        (
            _words(one.direction),
            integer(one.count),
            bytes_(one.bytes),
            seconds(one.seconds, 2),
            one.where.short(found.directory) if one.where is not None else UNKNOWN,
            "transfer guard" if one.source == "guard" else "samples (estimate)",
        )
        for one in found.transfers[:_TRANSFERS_SHOWN]
    ]
    yield from table(rows, right=(1, 2, 3), width=WIDTH, gives_way=4)
    if len(found.transfers) > _TRANSFERS_SHOWN:
        yield f"  and {len(found.transfers) - _TRANSFERS_SHOWN} more"


def _array_lines(found: ProgramResult) -> Iterator[str]:
    if found.arrays is None:
        return
    (first, first_bytes), (last, last_bytes) = found.arrays.first, found.arrays.last
    yield from wrap(
        f"live arrays: {integer(first)} ({bytes_(first_bytes)}) at first, {integer(last)} ({bytes_(last_bytes)}) at "
        f"last, at most {integer(found.arrays.peak_count)} ({bytes_(found.arrays.peak_bytes)})",
        width=WIDTH,
        indent="  ",
        first="",
    )
    for device, peak in found.arrays.device_peak_bytes.items():
        yield safe(f"  in use on {device}: at most {bytes_(peak)}")


def _notes(found: ProgramResult) -> Iterator[str]:
    """What was not seen, what the recording says of itself, and what it cost."""
    for note in found.notes:
        yield from wrap(note.message or note.code, width=WIDTH, indent="    ", first="  note: ")
    for warning in found.run.warnings:
        yield from wrap(f"{warning.message} {warning.advice}", width=WIDTH, indent="    ", first="  ! ")
    if found.own_seconds is not None:
        share = found.of_wall(found.own_seconds)
        yield f"  recording it took {seconds(found.own_seconds, 2)} of CPU time, {percent(share)} of the wall time"


def _compile_rows(found: ProgramResult) -> Iterator[str]:
    """The ledger by function, then row by row in the order of time."""
    yield from _ledger(found)
    if not found.compiles:
        return
    yield ""
    rows = [("at", "trace", "lower", "compile", "cache", "function", "called from")]
    for row in found.compiles:
        where = place(row.called_from)
        rows.append(
            (
                seconds(row.began_seconds - found.began_seconds) if row.began_seconds else UNKNOWN,
                seconds(row.trace_seconds),
                seconds(row.lower_seconds),
                seconds(row.compile_seconds),
                row.cache or UNKNOWN,
                row.function + (f" × {integer(row.count)}" if row.count > 1 else ""),
                where.short(found.directory) if where is not None else UNKNOWN,
            )
        )
    lines = table(rows, right=(0, 1, 2, 3), width=WIDTH, gives_way=5)
    yield lines[0]
    for line, row in zip(lines[1:], found.compiles, strict=True):
        yield line
        yield from wrap(_why(row), width=WIDTH, indent="        ", first="      ")


def _why(row: Compiled) -> str:
    """Its reason, and what it was called with."""
    types = ", ".join(f"{leaf.get('name')}: {leaf.get('type')}" for leaf in row.signature[:4])
    more = len(row.signature) + row.signature_more - 4
    signature = f"({types}{f', and {more} more' if more > 0 else ''})" if types else ""
    reason = row.reason or ("first time" if row.reason_code == "first" else row.reason_code.replace("_", " "))
    return f"{reason}  {signature}".rstrip()


def _compilations(count: int) -> str:
    return f"{integer(count)} compilation{'' if count == 1 else 's'}"


def _functions(found: ProgramResult) -> str:
    return f"{integer(len(found.functions))} function{'' if len(found.functions) == 1 else 's'}"


def _words(state: str) -> str:
    return state.replace("_", " ")


_VIEWS: Final[dict[str, Callable[[ProgramResult], Iterator[str]]]] = {
    "compiles": _compile_rows,
    "findings": _finding_list,
    "transfers": _transfer_list,
    "timeline": _time_line,
}
_NOTHING: Final = {
    "compiles": "Nothing was compiled.",
    "findings": "Nothing to remark.",
    "transfers": "No implicit copy was seen.",
    "timeline": "Nothing was recorded.",
}
