"""A program as plain text, 80 columns wide: how it ended, where its time went, what it compiled and why, what to do.

The time line is in letters, so that it says the same without colours. Its column of seconds is rounded so that it adds
up to the wall time; which rows are exact and which rest on samples stands in each row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from jaxprof.report.outcome import outcome
from jaxprof.report.recording.bar import LETTERS, letters, rounded
from jaxprof.report.recording.ledger import functions_lines, rows_lines
from jaxprof.report.recording.words import ARGV_WIDTH, WIDTH, command, compilations, loop, remark, title, words
from jaxprof.report.table import table, wrap
from jaxprof.results.programs.copies import copies_remark
from jaxprof.results.programs.derive import NOT_SEEN, ProgramResult, program_result, programs
from jaxprof.results.programs.places import place
from jaxprof.safe_text import columns, safe, shorten
from jaxprof.session import Run, Session
from jaxprof.units import UNKNOWN, bytes_, integer, percent, seconds

_LINES_SHOWN: Final = 6
_LEAST_LINE: Final = 0.01
"""Share of the wall time below which a line of the source is not shown."""
_LOOPS_SHOWN: Final = 2
_TRANSFERS_SHOWN: Final = 8
_SUMMARY_LINES: Final = 6
_SUMMARY_STATES: Final = 4
_SUMMARY_NOTES: Final = 2
_BAR: Final = 30


def program_lines(session: Session, run: Run, *, live: bool = False) -> Iterator[str]:
    """The whole report of one program."""
    found = program_result(session, run.id)
    yield from _head(session, found, live)
    for part in (
        _time_line, functions_lines, _finding_list, _line_list, _loops, _transfer_list, _array_lines, _notes,
    ):  # fmt: skip
        lines = list(part(found))
        if lines:
            yield ""
            yield from lines


def program_view_text(session: Session, view: str) -> str:
    """One of `PROGRAM_VIEWS` of every program of the session, for people."""
    parts = [
        "\n".join([title(found), "", *(list(_VIEWS[view](found)) or [f"  {_NOTHING.get(view, '')}"])])
        for run in programs(session)
        for found in (program_result(session, run.id),)
    ]
    return "\n\n".join(parts) if parts else "This session has no program."


def summary_lines(session: Session, run_id: str = "", width: int = WIDTH) -> list[str]:
    """What `jaxprof script` says when the program is over: at most 6 lines of at most `width` columns, of the program
    `run_id` (the first one, where it is not given); none for a session without a program.

    How it ended and where its time went, what it compiled, what was not seen, and the dearest findings.
    """
    first = next((run.id for run in programs(session)), "")
    if not (run_id or first):
        return []
    found = program_result(session, run_id or first)
    lines = [title(found)]
    most = sorted((share for share in found.timeline if share.seconds > 0), key=lambda share: -share.seconds)
    if found.samples:
        said = (f"{words(share.state)} {percent(found.of_wall(share.seconds))}" for share in most[:_SUMMARY_STATES])
        lines.append(f"  {', '.join(said)}")
    if found.functions:
        dearest = found.functions[0]
        most_by = f"; most by {dearest.function}: {integer(dearest.count)} in {seconds(dearest.seconds)}"
        lines.append(f"  {compilations(found.compile_count)}, {seconds(found.compile_seconds)}{most_by}")
    lines += [f"  note: {note.message or words(note.code)}" for note in found.notes[:_SUMMARY_NOTES]]
    room = _SUMMARY_LINES - len(lines)
    shown = found.findings if len(found.findings) <= room else found.findings[: room - 1]
    lines += [f"  ! {remark(found, one)}" for one in shown]
    more = len(found.findings) - len(shown)
    lines += [f"  and {more} more finding{'' if more == 1 else 's'}"] if more else []
    return [shorten(line, width) for line in lines]


def _head(session: Session, found: ProgramResult, live: bool) -> Iterator[str]:
    heading = title(found, live=live)
    yield heading
    yield "─" * min(WIDTH, columns(heading))
    if columns(command(found)) > ARGV_WIDTH:
        yield from wrap(command(found), width=WIDTH, indent="    ", first="  ")
    ended = outcome(session, found.run, live=live)
    if ended.status not in ("ok", "running", "queued"):
        word = ended.status if ended.error in ("", ended.status) else f"{ended.status}: {ended.error}"
        yield from wrap(word, width=WIDTH, indent="    ", first="  ✗ ")
        yield from wrap(ended.advice, width=WIDTH, indent="    ")
    for one in found.running:
        took = seconds(max(0.0, found.began_seconds + found.wall_seconds - one.began_seconds))
        at = place(one.called_from)
        where = f", from {at.short(found.directory)}" if at is not None else ""
        yield from wrap(f"{one.stage} of {one.function}{where}: {took} so far", width=WIDTH, indent="    ", first="  ")


def _time_line(found: ProgramResult) -> Iterator[str]:
    shown = [share for share in found.timeline if share.seconds > 0]
    if all(share.state == NOT_SEEN for share in shown):
        return
    yield "where the time of the main thread went, from start to end"
    yield f"  {letters(found, WIDTH - 4)}"
    yield ""
    texts, total = rounded([share.seconds for share in shown], found.wall_seconds)
    rows = [("", "", "time", "share", "", "")]
    for share, text in zip(shown, texts, strict=True):
        part = found.of_wall(share.seconds) or 0.0
        how = "" if share.state == NOT_SEEN else "exact" if share.exact else "estimate"
        rows.append((LETTERS[share.state], words(share.state), text, percent(part), "█" * round(_BAR * part), how))
    rows.append(("", "wall time", total, percent(1.0), "", ""))
    yield from table(rows, right=(2, 3), width=WIDTH, gives_way=4)
    if found.samples:
        yield from wrap(
            f"Exact is what JAX announced; estimates are from {integer(found.samples)} samples of the main thread's "
            f"stack{_error(found.samples)}.",
            width=WIDTH,
            indent="  ",
        )


def _error(samples: int) -> str:
    """Half the 95 % interval of a share of one half, the widest that there is, from so many samples."""
    half = 0.98 / samples**0.5
    return f", each good to some ± {percent(half)} of the wall time" if half < 0.5 else ""


def _finding_list(found: ProgramResult) -> Iterator[str]:
    if not found.findings:
        return
    yield "1 finding" if len(found.findings) == 1 else f"{len(found.findings)} findings, the dearest first"
    for one in found.findings:
        yield from wrap(remark(found, one), width=WIDTH, indent="    ", first="  ! ")
        yield from wrap(one.advice, width=WIDTH, indent="      ", first="    → ")


def _line_list(found: ProgramResult) -> Iterator[str]:
    lines = [line for line in found.lines if line.seconds > _LEAST_LINE * found.wall_seconds][:_LINES_SHOWN]
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
            words(line.state),
            line.call,
        )
        for line in lines
    ]
    yield from table(rows, right=(0, 1), widest=(0, 0, 28, 18, 0, 24), width=WIDTH, gives_way=2)


def _loops(found: ProgramResult) -> Iterator[str]:
    for one in found.loops[:_LOOPS_SHOWN]:
        yield from wrap(loop(found, one), width=WIDTH, indent="  ", first="")


def _transfer_list(found: ProgramResult) -> Iterator[str]:
    if not found.transfers:
        return
    yield "implicit copies between host and device"
    rows = [("direction", "type", "times", "bytes", "time", "line", "seen by")]
    rows += [
        (
            words(one.direction),
            one.type or (UNKNOWN if one.source == "guard" else ""),
            integer(one.count),
            bytes_(one.bytes),
            seconds(one.seconds, 2),
            one.where.short(found.directory) if one.where is not None else UNKNOWN,
            "transfer guard" if one.source == "guard" else "samples (estimate)",
        )
        for one in found.transfers[:_TRANSFERS_SHOWN]
    ]
    yield from table(rows, right=(2, 3, 4), widest=(0, 18), width=WIDTH, gives_way=5)
    if len(found.transfers) > _TRANSFERS_SHOWN:
        yield f"  and {len(found.transfers) - _TRANSFERS_SHOWN} more"
    yield from wrap(copies_remark(found.run, found.transfers), width=WIDTH, indent="  ")


def _transfers(found: ProgramResult) -> Iterator[str]:
    """Also where there are none: by whom none was seen."""
    if found.transfers:
        yield from _transfer_list(found)
    else:
        yield "  No implicit copy was seen."
        yield from wrap(copies_remark(found.run, ()), width=WIDTH, indent="  ")


def _array_lines(found: ProgramResult) -> Iterator[str]:
    if found.arrays is None:
        return
    yield "live arrays"
    rows = [("", "arrays", "bytes")]
    counted = (("at first", *found.arrays.first), ("at last", *found.arrays.last))
    rows += [(when, integer(count), bytes_(size)) for when, count, size in counted]
    rows.append(("at most", integer(found.arrays.peak_count), bytes_(found.arrays.peak_bytes)))
    rows += [(f"in use on {name}", UNKNOWN, bytes_(peak)) for name, peak in found.arrays.device_peak_bytes.items()]
    yield from table(rows, right=(1, 2), width=WIDTH)


def _notes(found: ProgramResult) -> Iterator[str]:
    """What was not seen, what the recording says of itself, and what it cost."""
    for note in found.notes:
        yield from wrap(note.message or words(note.code), width=WIDTH, indent="  ", first="note: ")
    for warning in found.run.warnings:
        yield from wrap(f"{warning.message}. {warning.advice}", width=WIDTH, indent="  ", first="note: ")
    if found.own_seconds is not None:
        share = percent(found.of_wall(found.own_seconds))
        yield safe(f"recording took {seconds(found.own_seconds, 2)} of CPU time, {share} of the wall time")


def _compiles(found: ProgramResult) -> Iterator[str]:
    """The ledger by function, all of it, then row by row."""
    yield from functions_lines(found, len(found.functions))
    if found.compiles:
        yield ""
        yield from rows_lines(found)


_VIEWS: Final[dict[str, Callable[[ProgramResult], Iterator[str]]]] = {
    "compiles": _compiles,
    "findings": _finding_list,
    "transfers": _transfers,
    "timeline": _time_line,
}
_NOTHING: Final = {
    "compiles": "Nothing was compiled.",
    "findings": "Nothing to remark.",
    "timeline": "Nothing was recorded.",
}
