"""A program as plain dicts, with the keys that `docs/json.md` promises; the same tables make its CSV."""

from __future__ import annotations

from typing import Any, Final

from jaxprof.analysis.programs.derive import (
    AskedFunction,
    ProgramResult,
    StepFigures,
    Verdict,
    asked_function,
    program_result,
)
from jaxprof.analysis.programs.passes import PassSeries
from jaxprof.report.recording.tables import LINES, RUN, VIEWS, ProgramRow, rows_of, text_of, view_table
from jaxprof.report.renderers import records, to_csv_text
from jaxprof.report.table import Table
from jaxprof.session import Run, Session

LINES_KEPT: Final = 100
"""Lines of the source in the JSON, those that took most."""
COUNTS_KEPT: Final = 200
"""Counts of the live arrays in the JSON; of more, evenly spread ones."""


def program_keys(session: Session, run: Run) -> dict[str, Any]:
    """The keys that a run has because it is a program."""
    program = program_result(session, run.id)
    data = {**program_json(program), "function": _asked(asked_function(session, run))}
    return {"program": data, **{view: _rows(program, view) for view in VIEWS if view != "timeline"}}


def _asked(asked: AskedFunction | None) -> dict[str, Any] | None:
    if asked is None:
        return None
    return {
        "name": asked.name,
        "run": asked.run or None,
        "status": asked.status,
        "error": asked.error or None,
        "advice": asked.advice or None,
    }


def program_json(program: ProgramResult) -> dict[str, Any]:
    """The program as a whole: how it ended, where its time went."""
    return {
        "argv": list(program.argv),
        "how": program.how or None,
        "directory": program.directory or None,
        "exit_code": program.exit_code,
        "wall_seconds": program.wall_seconds,
        "verdict": _verdict(program.verdict),
        "remarks": [
            {"code": remark.code, "message": remark.message, "advice": remark.advice} for remark in program.remarks
        ],
        "timeline": _rows(program, "timeline"),
        "samples": program.samples,
        "import_seconds": program.import_seconds,
        "compile_count": program.compile_count,
        "compile_seconds": program.compile_seconds,
        "functions": _functions(program),
        "lines": list(records(Table(LINES, rows_of(program, program.lines[:LINES_KEPT])))),
        "steps": _step(program.steps) if program.steps is not None else None,
        "loops": [_step(loop) for loop in program.loops],
        "passes": _passes(program.passes) if program.passes is not None else None,
        "arrays": _arrays(program),
        "stops": [
            {"began_seconds": stop.began_seconds, "seconds": stop.seconds, "cause": stop.cause}
            for stop in program.stops
        ],
        "own_seconds": program.own_seconds,
        "notes": [{"code": note.code, "message": note.message} for note in program.notes],
    }


def program_view_json(session: Session, view: str) -> dict[str, Any]:
    """One of `PROGRAM_VIEWS` of every program of the session, as flat rows, each with the id of its run."""
    return {view: list(records(_view(session, view)))}


def program_view_csv(session: Session, view: str) -> str:
    """The same rows as CSV; lists and dicts are JSON in their cell."""
    return to_csv_text(_view(session, view))


def _view(session: Session, view: str) -> Table[ProgramRow]:
    return view_table((program_result(session, run.id) for run in session.programs), view, RUN)


def _rows(program: ProgramResult, view: str) -> list[dict[str, Any]]:
    return list(records(view_table([program], view)))


def _functions(program: ProgramResult) -> list[dict[str, Any]]:
    return [
        {
            "function": function.function,
            "called_from": text_of(function.called_from),
            "defined_at": text_of(function.defined_at),
            "count": function.count,
            "seconds": function.seconds,
            "stages": {
                name: {
                    "count": spread.count,
                    "minimum_seconds": spread.minimum,
                    "median_seconds": spread.median,
                    "maximum_seconds": spread.maximum,
                }
                for name, spread in function.spreads().items()
            },
            "reasons": [
                {"reason_code": reason.code, "count": reason.count, "seconds": reason.seconds, "reason": reason.text}
                for reason in function.reasons
            ],
            "op_by_op": function.op_by_op,
            "library": function.library,
        }
        for function in program.functions
    ]


def _verdict(verdict: Verdict) -> dict[str, Any]:
    return {
        "kind": verdict.kind,
        "share": verdict.share,
        "low": verdict.low,
        "high": verdict.high,
        "where": text_of(verdict.where),
        "last_line": verdict.last_line,
        "reason": verdict.reason or None,
        "needs_seconds": verdict.needs_seconds,
        "seconds": verdict.seconds,
        "parts": dict(verdict.parts),
        "unknown_seconds": verdict.unknown,
    }


def _step(loop: StepFigures) -> dict[str, Any]:
    return {
        "where": text_of(loop.where),
        "name": loop.name or None,
        "found_by": loop.found_by,
        "count": loop.count,
        "seconds": loop.seconds,
        "per_second": loop.per_second,
        "median_seconds": loop.median_seconds,
        "jitter": loop.jitter,
    }


def _passes(passes: PassSeries) -> dict[str, Any]:
    return {
        "where": text_of(passes.where),
        "numbered_by": passes.numbered_by or None,
        "first": passes.first,
        "last": passes.last,
        "count": passes.count,
        "timed": passes.timed,
        "seconds": passes.seconds,
        "found_by": passes.found_by,
    }


def _arrays(program: ProgramResult) -> dict[str, Any] | None:
    arrays = program.arrays
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


PROGRAM_VIEWS: Final = tuple(VIEWS)
"""The views of a program that can be printed alone."""
