"""A program as plain dicts, with the keys that `docs/json.md` promises; the same rows make its CSV."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from typing import Any, Final

from jaxprof.events import Compiled
from jaxprof.report.csv import safe_cell
from jaxprof.results.programs.derive import (
    Finding,
    Place,
    ProgramResult,
    Share,
    StepFigures,
    Transfer,
    program_result,
    programs,
)
from jaxprof.results.programs.places import place
from jaxprof.session import Run, Session

LINES_KEPT: Final = 100
"""Lines of the source in the JSON, those that took most."""
COUNTS_KEPT: Final = 200
"""Counts of the live arrays in the JSON; of more, evenly spread ones."""


def program_keys(session: Session, run: Run) -> dict[str, Any]:
    """The keys that a run has because it is a program."""
    found = program_result(session, run.id)
    return {"program": program_json(found), **{view: rows(found) for view, rows in _ROWS.items() if view != "timeline"}}


def program_json(found: ProgramResult) -> dict[str, Any]:
    """The program as a whole: how it ended, where its time went."""
    return {
        "argv": list(found.argv),
        "how": found.how or None,
        "directory": found.directory or None,
        "exit_code": found.exit_code,
        "wall_seconds": found.wall_seconds,
        "timeline": _ROWS["timeline"](found),
        "samples": found.samples,
        "import_seconds": found.import_seconds,
        "compile_count": found.compile_count,
        "compile_seconds": found.compile_seconds,
        "functions": _functions(found),
        "lines": _lines(found),
        "steps": _step(found.steps) if found.steps is not None else None,
        "loops": [_step(one) for one in found.loops],
        "arrays": _arrays(found),
        "own_seconds": found.own_seconds,
        "notes": [{"code": note.code, "message": note.message} for note in found.notes],
    }


def program_view_json(session: Session, view: str) -> dict[str, Any]:
    """One of `PROGRAM_VIEWS` of every program of the session, as flat rows, each with the id of its run."""
    return {view: view_rows(session, view)}


def program_view_csv(session: Session, view: str) -> str:
    """The same rows as CSV; lists and dicts are JSON in their cell."""
    rows = view_rows(session, view)
    target = io.StringIO()
    writer = csv.DictWriter(target, ["run", *_COLUMNS[view]], lineterminator="\n", restval="")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: safe_cell(_flat(value)) for name, value in row.items()})
    return target.getvalue()


def view_rows(session: Session, view: str) -> list[dict[str, Any]]:
    """The rows of a view; none for a session without a program."""
    return [{"run": run.id, **row} for run in programs(session) for row in _ROWS[view](program_result(session, run.id))]


def _flat(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else value


def _compiled(row: Compiled, began_seconds: float) -> dict[str, Any]:
    return {
        "function": row.function,
        "called_from": _text(called := place(row.called_from)),
        "called_in": (called.function or None) if called is not None else None,
        "defined_at": _text(place(row.defined_at)),
        "began_seconds": row.began_seconds - began_seconds if row.began_seconds else None,
        "trace_seconds": row.trace_seconds,
        "lower_seconds": row.lower_seconds,
        "compile_seconds": row.compile_seconds,
        "cache": row.cache,
        "saved_seconds": row.saved_seconds,
        "reason": row.reason or None,
        "reason_code": row.reason_code,
        "signature": list(row.signature),
        "signature_more": row.signature_more,
        "operations": row.operations,
        "constants": list(row.constants),
        "thread": row.thread or None,
        "op_by_op": row.op_by_op,
        "library": row.library,
        "count": row.count,
    }


def _functions(found: ProgramResult) -> list[dict[str, Any]]:
    return [
        {
            "function": one.function,
            "called_from": _text(one.called_from),
            "defined_at": _text(one.defined_at),
            "count": one.count,
            "seconds": one.seconds,
            "reasons": [
                {"reason_code": reason.code, "count": reason.count, "seconds": reason.seconds, "reason": reason.text}
                for reason in one.reasons
            ],
            "op_by_op": one.op_by_op,
            "library": one.library,
        }
        for one in found.functions
    ]


def _finding(one: Finding) -> dict[str, Any]:
    return {
        "code": one.code,
        "message": one.message,
        "advice": one.advice,
        "where": _text(one.where),
        "seconds": one.seconds,
        "estimate": one.estimate,
        "others": [other.text for other in one.others],
    }


def _transfer(one: Transfer) -> dict[str, Any]:
    return {
        "direction": one.direction,
        "type": one.type or None,
        "count": one.count,
        "bytes": one.bytes,
        "seconds": one.seconds,
        "where": _text(one.where),
        "source": one.source or None,
    }


def _share(share: Share, part: float | None) -> dict[str, Any]:
    return {"state": share.state, "seconds": share.seconds, "share": part, "exact": share.exact}


def _lines(found: ProgramResult) -> list[dict[str, Any]]:
    return [
        {
            "where": line.place.text,
            "function": line.place.function or None,
            "state": line.state or None,
            "call": line.call or None,
            "seconds": line.seconds,
        }
        for line in found.lines[:LINES_KEPT]
    ]


def _step(one: StepFigures) -> dict[str, Any]:
    return {
        "where": _text(one.where),
        "name": one.name or None,
        "found_by": one.found_by,
        "count": one.count,
        "seconds": one.seconds,
        "per_second": one.per_second,
        "median_seconds": one.median_seconds,
        "jitter": one.jitter,
    }


def _arrays(found: ProgramResult) -> dict[str, Any] | None:
    arrays = found.arrays
    if arrays is None:
        return None
    stride = -(-len(arrays.counts) // COUNTS_KEPT)
    kept = [*arrays.counts[:-1:stride], arrays.counts[-1]]
    return {
        "peak_count": arrays.peak_count,
        "peak_bytes": arrays.peak_bytes,
        "growth_a_minute": arrays.growth_a_minute,
        "device_peak_bytes": dict(arrays.device_peak_bytes),
        "counts": [{"at_seconds": at, "count": count, "bytes": size} for at, count, size in kept],
    }


def _text(where: Place | None) -> str | None:
    return where.text if where is not None else None


_ROWS: Final[dict[str, Callable[[ProgramResult], list[dict[str, Any]]]]] = {
    "compiles": lambda found: [_compiled(row, found.began_seconds) for row in found.compiles],
    "findings": lambda found: [_finding(one) for one in found.findings],
    "transfers": lambda found: [_transfer(one) for one in found.transfers],
    "timeline": lambda found: [_share(one, found.of_wall(one.seconds)) for one in found.timeline],
}
_COLUMNS: Final = {
    "compiles": list(_compiled(Compiled(function=""), 0.0)),
    "findings": list(_finding(Finding("", "", "", None))),
    "transfers": list(_transfer(Transfer("", "", None, 0, None, None))),
    "timeline": list(_share(Share("", 0.0, False), None)),
}
"""Of the CSV, also where there is no row."""
PROGRAM_VIEWS: Final = tuple(_ROWS)
"""What can be asked for of a program alone."""
