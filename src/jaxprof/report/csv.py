"""A session as CSV: a row a run, times in seconds, sizes in bytes; an empty cell is unknown or does not exist.

The phases of a program are those of all its compilations together, and its warnings are the codes of its findings.
"""

from __future__ import annotations

import csv
import io
import json
from typing import Any

from jaxprof.events import PHASES, STAGES
from jaxprof.report.outcome import outcome
from jaxprof.results import RunResult, results
from jaxprof.results.programs.derive import ProgramResult, is_program, program_result
from jaxprof.session import Session

COLUMNS = (
    "run",
    "workload",
    "variant",
    "how",
    "device",
    "parameters",
    "status",
    "error",
    *(f"{phase}_seconds" for phase in PHASES),
    "ci95_low_seconds",
    "ci95_high_seconds",
    "mad_seconds",
    "samples",
    "dispatch_median_seconds",
    "pipelined_median_seconds",
    "flops",
    "bytes_accessed",
    "check_passed",
    "max_relative_error",
    "versus",
    "speedup",
    "speedup_low",
    "speedup_high",
    "break_even_calls",
    "warnings",
    "wall_seconds",
)


def to_csv(session: Session, *, live: bool = False) -> str:
    """The table with its heading, lines ended by a line feed; every row is followed by one."""
    target = io.StringIO()
    writer = csv.DictWriter(target, COLUMNS, lineterminator="\n", restval="")
    writer.writeheader()
    for found in results(session):
        writer.writerow({name: safe_cell(value) for name, value in _row(session, found, live).items()})
    return target.getvalue()


def _row(session: Session, found: RunResult, live: bool) -> dict[str, Any]:
    run, plan, ended = found.run, found.run.plan, outcome(session, found.run, live=live)
    summary, speedup = found.summary, found.versus.speedup if found.versus else None
    phases, warnings = found.phase_seconds, [warning.code for warning in found.warnings]
    wall = run.closed.wall_seconds if run.closed is not None else None
    if is_program(run):
        program = program_result(session, run.id)
        phases, wall = _stages(program), program.wall_seconds
        warnings += [one.code for one in program.findings]
    return {
        "run": run.id,
        "workload": plan.workload,
        "variant": plan.variant,
        "how": plan.how,
        "device": plan.device,
        "parameters": json.dumps(plan.parameters),
        "status": ended.status,
        "error": ended.error,
        **{f"{name}_seconds": phases.get(name) for name in PHASES},
        "ci95_low_seconds": summary.low if summary else None,
        "ci95_high_seconds": summary.high if summary else None,
        "mad_seconds": summary.mad if summary else None,
        "samples": summary.count if summary else None,
        "dispatch_median_seconds": found.dispatch_median_seconds,
        "pipelined_median_seconds": found.pipelined_median_seconds,
        "flops": found.flops,
        "bytes_accessed": found.bytes_accessed,
        "check_passed": run.check.passed if run.check else None,
        "max_relative_error": run.check.max_relative_error if run.check else None,
        "versus": found.versus.baseline if found.versus else None,
        "speedup": speedup.ratio if speedup else None,
        "speedup_low": speedup.low if speedup else None,
        "speedup_high": speedup.high if speedup else None,
        "break_even_calls": found.versus.break_even_calls if found.versus else None,
        "warnings": " ".join(warnings),
        "wall_seconds": wall,
    }


def _stages(program: ProgramResult) -> dict[str, float | None]:
    """What each stage took in all compilations; None for one that never happened."""
    told = {name: [getattr(row, f"{name}_seconds") for row in program.compiles] for name in STAGES}
    known = {name: [seconds for seconds in values if seconds is not None] for name, values in told.items()}
    return {name: sum(values) if values else None for name, values in known.items()}


def safe_cell(value: Any) -> Any:
    """Unknown as an empty cell; a text that a spreadsheet would take for a formula, quoted so that it does not."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r"):
        return "'" + value
    return value
