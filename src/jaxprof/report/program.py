"""Report a program: how it ended, where its time went, what it compiled and why, what to do.

The time line consists of letters, so that it needs no colours. Its column of seconds is rounded so that it adds up to
the wall time, and each row names whether it is exact or an estimate from samples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter

from jaxprof.analysis.programs.functions import FunctionCompiles
from jaxprof.analysis.programs.result import NOT_SEEN, ProgramResult, states_by_column
from jaxprof.base.text import columns, shorten
from jaxprof.base.units import bytes_, counted, integer, percent, seconds, whole_steps
from jaxprof.base.values import frozen
from jaxprof.facts import Facts, column, pick
from jaxprof.facts.programs import COMPILES, LINES, SHARE_OF_WALL, ProgramFact, ProgramRow, rows_of
from jaxprof.findings.program_result import function_request, program_result
from jaxprof.report import WIDTH, Headline, Piece, Prose, Table, report_lines, text_lines, wrap
from jaxprof.report.program_words import (
    ARGV_WIDTH,
    cache,
    command,
    finding_text,
    ledger_title,
    loop,
    signature,
    title,
    verdict,
    verdict_parts,
    why_again,
    widest_error,
    words,
)
from jaxprof.session import Run, Session

_FUNCTIONS_SHOWN = 10
_REASONS_SHOWN = 4
_ARRAYS: Facts[tuple[str, int | None, int | None]] = (
    column("", itemgetter(0)),
    column("arrays", itemgetter(1), integer),
    column("bytes", itemgetter(2), bytes_),
)


LETTERS = {
    "import": "i",
    "data": "d",
    "trace": "t",
    "lower": "l",
    "compile": "C",
    "transfer": "x",
    "device_busy": "D",
    "host_busy": "h",
    "waiting": "w",
    "paused": "p",
    NOT_SEEN: "·",
}
"""Letter of each state in the time line; upper case for the two that usually matter most."""


def letters(program: ProgramResult, width: int) -> str:
    """Return the time line in `width` columns, each with the letter of the state that took most of its time."""
    if program.wall_seconds <= 0:
        return ""
    begin = program.began_seconds
    shares = states_by_column(program.sample_windows, begin, begin + program.wall_seconds, width)
    seen = ({NOT_SEEN: 1 - sum(states.values())} | states for states in shares)
    return "".join(LETTERS.get(max(states, key=lambda state: states[state]), "?") for states in seen)


def round_parts(parts: Sequence[float], whole: float) -> tuple[list[str], str]:
    """Format `parts` and their sum `whole`, in seconds, rounded so that printed parts add up to the printed sum."""
    decimals = 3
    if whole >= 100:  # the sum has four or five digits
        decimals = 1 if whole >= 1000 else 2
    unit = 10.0**-decimals
    total = round(whole / unit)
    units = whole_steps([part / unit for part in parts], total)
    return [f"{value * unit:.{decimals}f} s" for value in units], f"{total * unit:.{decimals}f} s"


_BAR = 30


CALLED_FROM: ProgramFact = column("called from", lambda row: row.short(row.item.called_from))
COMPILES_TEXT: tuple[ProgramFact, ...] = (
    *COMPILES,
    column(
        "function",
        lambda row: f"{row.item.function} × {integer(row.item.count)}" if row.item.count > 1 else row.item.function,
        gives_way=True,
    ),
    CALLED_FROM,
)
TRANSFERS_TEXT: tuple[ProgramFact, ...] = (
    column("direction", "item.direction", words, right=False),
    column("time", "item.seconds", lambda took: seconds(took, 2)),
    column("line", lambda row: row.short(row.item.where), gives_way=True),
)
LINES_TEXT: tuple[ProgramFact, ...] = (
    column("time", "item.seconds", lambda took: seconds(took, 2)),
    SHARE_OF_WALL,
    column("line", lambda row: row.short(row.item.location), widest=28, gives_way=True),
    *pick(LINES, "function"),
    column("state", "item.state", lambda state: words(state or ""), right=False),
    *pick(LINES, "call"),
)
FUNCTIONS: tuple[ProgramFact, ...] = (
    column("times", "item.count", integer),
    column("time", "item.seconds", seconds),
    SHARE_OF_WALL,
    column(
        "function",
        lambda row: f"{row.item.function} (op by op)" if row.item.op_by_op else row.item.function,
        gives_way=True,
    ),
    CALLED_FROM,
    column("cache", lambda row: cache(row.item.rows)),
)
"""Columns of the compile ledger by function; the reasons are below each."""


@frozen
class TimeLineRow:
    """A state of the main thread in the time line, or the wall time below all states."""

    state: str
    time: str
    """Rounded so that the column adds up to the wall time."""
    share: float | None
    how: str = ""
    """`exact` or `estimate`; empty for the wall time."""
    letter: str = ""
    bar: str = ""


TIME_LINE: Facts[TimeLineRow] = (
    column("", "letter", str, right=False),
    column("", "state"),
    column("time", "time", right=True),
    column("share", "share", percent),
    column("", "bar", str, right=False, gives_way=True),
    column("", "how", str, right=False),
)
"""Columns of the time line; the first one is for text alone."""


def time_line_rows(program: ProgramResult) -> list[TimeLineRow]:
    """Return a row for each state that took time, then one for the wall time; none if nothing was seen."""
    shown = [state for state in program.timeline if state.seconds > 0]
    if all(state.state == NOT_SEEN for state in shown):
        return []
    times, total = round_parts([state.seconds for state in shown], program.wall_seconds)
    rows = []
    for state, time in zip(shown, times, strict=True):
        part = program.of_wall(state.seconds)
        how = "exact" if state.exact else "estimate"
        if state.state == NOT_SEEN:
            how = ""
        letter, bar = LETTERS[state.state], "█" * round(_BAR * (part or 0.0))
        rows.append(TimeLineRow(words(state.state), time, part, how, letter, bar))
    return [*rows, TimeLineRow("wall time", total, 1.0)]


def program_report(session: Session, run: Run) -> Iterator[Piece]:
    program = program_result(session, run.id)
    yield Headline(title(program))
    if columns(command(program)) > ARGV_WIDTH:
        yield Prose(command(program), hang=2)
    ended = program.run.shown
    if ended.status not in ("ok", "running", "queued"):
        yield Prose(ended.text, "  ✗ ")
        yield Prose(ended.hint, "    ")
    if (state := program.standstill) is not None and state.is_one:
        # it stands still, or did when it was ended: where, and the stacks of its threads then
        stands = "stands still" if program.stands_still else "stood still"
        yield Prose(f"{stands} {state.text(program.directory)}", "  ✗ ")
        for thread in state.threads:
            frames = [f"{frame.function} ({frame.short(program.directory)})" for frame in thread.frames]
            yield Prose(f"{thread.name or 'a thread without a name'}: {' ← '.join(frames)}", "    ")
    for stage in program.running:
        took = seconds(program.stage_seconds(stage))
        where = f", from {stage.called_from.short(program.directory)}" if stage.called_from else ""
        yield Prose(f"{stage.stage} of {stage.function}{where}: {took} so far", hang=2)
    bounds: list[Piece] = [Prose(verdict(program))] if verdict(program) else []
    if others := verdict_parts(program):
        bounds.append(Prose(f"besides: {others}" if program.verdict.kind else others, hang=2))
    # Source lines with less than 1 % of the wall time are not shown.
    count = sum(line.seconds > 0.01 * program.wall_seconds for line in program.lines[:6])
    lines = Table(LINES_TEXT, rows_of(program, program.lines), "lines that took most (estimates)", most=count, rest="")
    parts = (bounds, _time_line(program), functions_report(program), _finding_list(program), [lines] if count else [])
    for pieces in (*map(list[Piece], parts), *parts_beside(program)):
        if pieces:
            yield ""
            yield from pieces


def program_view_text(session: Session, view: str) -> str:
    parts = []
    for run in session.programs:
        program = program_result(session, run.id)
        pieces = list(_VIEWS[view](program)) or [Prose(_NOTHING[view])]
        parts.append("\n".join([title(program), "", *report_lines(pieces)]))
    return "\n\n".join(parts) or "This session has no recorded program: that needs jaxprof script"


def summary_lines(session: Session, run_id: str = "", width: int = WIDTH) -> list[str]:
    """Return the summary that `jaxprof script` prints when a program has ended, in lines of at most `width` columns.
    `run_id`: run of the program, by default of the first one. A session without a program has no summary.

    The summary has how the program ended, what it compiled, what was not seen, and the three findings that would save
    most. The conclusion, which follows it, has what costs most and what to do.
    """
    run_id = run_id or next((run.id for run in session.programs), "")
    if not run_id:
        return []
    program = program_result(session, run_id)
    lines = [title(program)]
    if program.functions:
        first = program.functions[0]
        most_by = f"; most by {first.function}: {integer(first.count)} in {seconds(first.seconds)}"
        count = counted(program.compile_count, "compilation")
        lines.append(f"  {count}, {seconds(program.compile_seconds)}{most_by}")
    asked = function_request(session, session.runs[run_id])
    if asked is not None and asked.error:
        lines.append(f"  ! --function {asked.name}: {asked.error}. {asked.hint}".rstrip())
    lines += [f"  note: {note.message or words(note.code)}" for note in program.notes[:2]]
    lines = [shorten(line, width) for line in lines]
    if program.verdict.kind is None:
        lines[1:1] = wrap(verdict(program), hang=2, width=width)
    for finding in program.findings[:3]:
        lines += wrap(finding_text(program, finding), first="  ! ", width=width)
    return lines


def _time_line(program: ProgramResult) -> Iterator[Piece]:
    rows = time_line_rows(program)
    if not rows:
        return
    yield "where the time of the main thread went, from start to end"
    yield f"  {letters(program, WIDTH - 4)}"
    yield ""
    yield from text_lines(Table(TIME_LINE, rows), width=WIDTH)
    if program.samples > 0:
        samples, half = counted(program.samples, "sample"), widest_error(program.samples)
        known = f"Exact is what JAX announced; estimates are from {samples} of the main thread's stack"
        few = half >= 0.5  # too few samples to say how exact a share is
        yield Prose(f"{known}." if few else f"{known}, each good to some ± {percent(half)} of the wall time.")


def _finding_list(program: ProgramResult) -> Iterator[Piece]:
    if program.findings:
        count = len(program.findings)
        yield Prose("1 finding" if count == 1 else f"{count} findings, those first that would save most", "")
    for finding in program.findings:
        yield Prose(finding_text(program, finding), "  ! ")
        yield Prose(finding.fix, "    → ")
    for footer in program.remarks:
        yield Prose(f"{footer.message}. {footer.fix}", "  · ")


def parts_beside(program: ProgramResult) -> Iterator[list[Piece]]:
    """Yield what is known of its loops, copies, live arrays, and of the recording, in parts that are not empty."""
    loops: list[Piece] = [Prose(loop(program, steps), "", 2) for steps in program.loops[:2]]
    arrays: list[Piece] = []
    if program.arrays is not None:
        counts = [("at first", *program.arrays.first), ("at last", *program.arrays.last)]
        counts.append(("at most", program.arrays.peak_count, program.arrays.peak_bytes))
        used = [(f"in use on {name}", None, peak) for name, peak in program.arrays.device_peak_bytes.items()]
        arrays = [Table(_ARRAYS, [*counts, *used], "live arrays")]
    notes: list[Piece] = [Prose(note.message or words(note.code), "note: ") for note in program.notes]
    notes += [Prose(f"{warning.message}. {warning.advice}", "note: ") for warning in program.run.warnings]
    if program.own_seconds is not None:
        part, took = percent(program.of_wall(program.own_seconds)), seconds(program.own_seconds, 2)
        notes.append(Prose(f"profiler overhead {part} of the wall time: {took} of CPU time", ""))
    yield from filter(None, (loops, list(_transfer_list(program)), arrays, notes))


_COPIES_REMARK = Prose(
    "By samples, which show the lines, not the number of copies: JAX_TRANSFER_GUARD=log makes JAX log each of them. "
    "A copy to the host first waits for its value, and the time is that of both."
)


def _transfer_list(program: ProgramResult) -> Iterator[Piece]:
    if program.transfers:
        rows = rows_of(program, program.transfers)
        yield Table(TRANSFERS_TEXT, rows, "implicit copies between host and device", most=8)
        yield _COPIES_REMARK


def _compiles(program: ProgramResult) -> Iterator[Piece]:
    yield from functions_report(program, 0)
    if program.compiles:
        yield from ("", ledger(program))


def functions_report(program: ProgramResult, shown: int = _FUNCTIONS_SHOWN) -> Iterator[Piece]:
    """Yield the compiled functions, the most expensive first, with the reasons. `shown`: most in text, 0 for all."""
    if not program.functions:
        return
    rest = program.functions[shown:]
    count, took = sum(function.count for function in rest), sum(function.seconds for function in rest)

    def under(row: ProgramRow) -> Iterator[Prose]:
        """Yield the range of each stage, then the reasons for compiling again, the most frequent first."""
        function: FunctionCompiles = row.item
        if spreads := function.spreads():
            ranges = []
            for name, each in spreads.items():
                low, high = seconds(each.minimum), seconds(each.maximum)
                ranges.append(f"{name} {low}" if low == high else f"{name} {low} to {high}")
            yield Prose(f"each: {', '.join(ranges)}", " " * 9, 3)
        again = [reason for reason in function.reasons if reason.code != "first"]
        for reason in again[:_REASONS_SHOWN]:
            yield Prose(f"{integer(reason.count)} × {reason.text}", " " * 9, 3)
        if len(again) > _REASONS_SHOWN:
            yield Prose(f"and {len(again) - _REASONS_SHOWN} more kinds of reason", " " * 9)

    yield Table(
        FUNCTIONS,
        rows_of(program, program.functions),
        ledger_title(program),
        most=shown,
        rest=f"and {counted(len(rest), 'more function')}: {counted(count, 'compilation')}, {seconds(took)}",
        under=under,
    )


def ledger(program: ProgramResult) -> Table[ProgramRow]:
    """Return every compilation in the order of its report, with its reason and the arguments of the call."""

    def under(row: ProgramRow) -> Iterator[Prose]:
        return (Prose(text, " " * 6, 2) for text in (why_again(row.item), signature(row.item)))

    return Table(COMPILES_TEXT, rows_of(program, program.compiles), under=under)


_VIEWS: dict[str, Callable[[ProgramResult], Iterator[Piece]]] = {
    "compiles": _compiles,
    "findings": _finding_list,
    "transfers": _transfer_list,
    "timeline": _time_line,
}
_NOTHING = {
    "compiles": "Nothing was compiled.",
    "findings": "No findings.",
    "transfers": f"No implicit copy was seen. {_COPIES_REMARK.text}",
    "timeline": "Nothing was recorded.",
}
