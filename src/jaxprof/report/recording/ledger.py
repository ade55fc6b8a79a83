"""The compile ledger as plain text: by function with the reasons summed up, and row by row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from jaxprof.events import Compiled
from jaxprof.report.recording.words import WIDTH, cache, compilations, ledger_title
from jaxprof.report.table import table, wrap
from jaxprof.results.programs.derive import FunctionCompiles, ProgramResult
from jaxprof.results.programs.places import place
from jaxprof.units import UNKNOWN, integer, percent, seconds

_FUNCTIONS_SHOWN: Final = 10
_REASONS_SHOWN: Final = 4
_ARGUMENTS_SHOWN: Final = 4


def functions_lines(found: ProgramResult, shown: int = _FUNCTIONS_SHOWN) -> Iterator[str]:
    """The functions that cost most, each with the reasons of its compilations; nothing where nothing was compiled."""
    if not found.functions:
        return
    yield ledger_title(found)
    listed = found.functions[:shown]
    rows = [("times", "time", "share", "function", "called from", "cache")]
    rows += [_function_row(found, one) for one in listed]
    lines = table(rows, right=(0, 1, 2), width=WIDTH, gives_way=3)
    yield lines[0]
    for line, one in zip(lines[1:], listed, strict=True):
        yield line
        yield from _reasons(one)
    rest = found.functions[shown:]
    if rest:
        count, took = sum(one.count for one in rest), sum(one.seconds for one in rest)
        yield f"  and {len(rest)} more function{'' if len(rest) == 1 else 's'}: {compilations(count)}, {seconds(took)}"


def rows_lines(found: ProgramResult) -> Iterator[str]:
    """Every compilation in the order in which it was told, with its reason and what the function was called with."""
    if not found.compiles:
        return
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
        yield from wrap(_reason(row), width=WIDTH, indent=" " * 8, first=" " * 6)
        yield from wrap(_signature(row), width=WIDTH, indent=" " * 8, first=" " * 6)


def _function_row(found: ProgramResult, one: FunctionCompiles) -> tuple[str, str, str, str, str, str]:
    return (
        integer(one.count),
        seconds(one.seconds),
        percent(found.of_wall(one.seconds)),
        f"{one.function} (op by op)" if one.op_by_op else one.function,
        one.called_from.short(found.directory) if one.called_from is not None else UNKNOWN,
        cache(one.rows),
    )


def _reasons(one: FunctionCompiles) -> Iterator[str]:
    """Why it was compiled again, a line for each kind of reason."""
    again = [reason for reason in one.reasons if reason.code != "first"]
    for reason in again[:_REASONS_SHOWN]:
        yield from wrap(f"{integer(reason.count)} × {reason.text}", width=WIDTH, indent=" " * 12, first=" " * 9)
    if len(again) > _REASONS_SHOWN:
        yield f"         and {len(again) - _REASONS_SHOWN} more kinds of reason"


def _reason(row: Compiled) -> str:
    return row.reason or ("first time" if row.reason_code == "first" else row.reason_code.replace("_", " "))


def _signature(row: Compiled) -> str:
    """`(x: f32[4,128], n: 3, and 12 more)`; empty where nothing is known of the arguments."""
    shown = row.signature[:_ARGUMENTS_SHOWN]
    more = len(row.signature) + row.signature_more - len(shown)
    parts = [f"{leaf.get('name')}: {leaf.get('type')}" for leaf in shown]
    parts += [f"and {integer(more)} more"] if more else []
    return f"({', '.join(parts)})" if parts else ""
