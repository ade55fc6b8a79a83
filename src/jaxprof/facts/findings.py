"""The findings about all that a session holds: programs, HLO, and warnings about measurements."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from jaxprof.analysis.explain.model import command, program_verified, run_verified
from jaxprof.analysis.explain.sources import measured_longer, program_cost
from jaxprof.analysis.programs.derive import program_result
from jaxprof.analysis.run_result import result
from jaxprof.errors import JaxprofError
from jaxprof.facts import SENTENCE, Fact, Relation, SessionFile
from jaxprof.facts.programs import text_of
from jaxprof.facts.units import BYTES, SECONDS, TEXT, TRUTH
from jaxprof.session import Run, Session


@dataclass(frozen=True, slots=True)
class _Finding:
    run: str
    source: str
    code: str
    message: str
    advice: str
    place: str | None = None
    seconds: float | None = None
    saves_seconds: float | None = None
    bytes: int | None = None
    estimate: bool | None = None
    low_seconds: float | None = None
    high_seconds: float | None = None
    verify: str | None = None


def _findings(file: SessionFile) -> Iterator[_Finding]:
    session, name = file.session, file.name
    for run in session.runs.values():
        if run.plan.how == "program" or run.program is not None:
            program = program_result(session, run.id)
            for found in program.findings:
                cost = program_cost(program, found)
                yield _Finding(
                    run.id, "program", found.code, found.message, found.advice, text_of(found.where), found.seconds,
                    found.saves_seconds, cost.bytes, found.estimate, cost.low, cost.high,
                    program_verified(name, program),
                )  # fmt: skip
        yield from _of_hlo(session, run, name)
        again = measured_longer(name, run) or None
        for warning in result(session, run.id).warnings:
            yield _Finding(run.id, "measurement", warning.code, warning.message, warning.advice, verify=again)


def _of_hlo(session: Session, run: Run, name: str) -> Iterator[_Finding]:
    """The findings about the run's HLO; none without HLO that can be read."""
    if "hlo" not in run.texts:
        return
    from jaxprof.hlo.analysis.findings.catalogue import findings
    from jaxprof.hlo.open.parsed import modules

    try:
        text = session.text(run.id, "hlo")
        found = findings(modules(text)[0]) if text else ()
    except JaxprofError:
        return
    verify = run_verified(name, run) if run.plan.how not in ("program", "imported") else command("explain", name)
    for one in found:
        place = ", ".join(one.where) or None
        yield _Finding(run.id, "hlo", one.code, one.message, one.advice, place, bytes=one.bytes, verify=verify)


FINDINGS: Final = Relation(
    "findings",
    "What is worth changing: findings about programs and HLO, and warnings about measurements",
    (
        Fact("run", TEXT, "Id of the run, unique within its session: r2"),
        Fact("source", TEXT, "program, hlo, or measurement (a warning: the figures mean less than they seem to)"),
        *SENTENCE,
        Fact("place", TEXT, "file:line of a program, kernels of HLO"),
        Fact("seconds", SECONDS, "What it cost in this run; no second is in two findings of a program"),
        Fact("saves_seconds", SECONDS, "What changing it would save: an estimate"),
        Fact("bytes", BYTES, "Traffic of one call that it accounts for; of a program, memory that it holds"),
        Fact("estimate", TRUTH, "Whether seconds is an estimate"),
        Fact("low_seconds", SECONDS, "Lower bound of the 95 % interval of seconds; null if exact or of unknown error"),
        Fact("high_seconds", SECONDS, "Upper bound of the 95 % interval"),
        Fact("verify", TEXT, "The command that shows whether a change helped; null if none can"),
    ),
    _findings,
)
