"""Named baselines: a list of them, and the exact facts and decisions of one, as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from jaxprof.analysis.gate import program_name, versions_of
from jaxprof.analysis.run_difference import FACTS, facts_of, unit_of
from jaxprof.facts import at
from jaxprof.report.comparison import figure
from jaxprof.report.renderers import records, text_lines, wrap
from jaxprof.report.table import Column, Table
from jaxprof.session import Session
from jaxprof.session.log import Entry
from jaxprof.session.log.baselines import Decision
from jaxprof.units import bytes_, counted

WIDTH: Final = 100


@dataclass(frozen=True, slots=True)
class BaselineEntry:
    """A baseline as a list shows it."""

    name: str
    entry: Entry
    decisions: tuple[Decision, ...]


def _when(text: str | None) -> str:
    return "-" if text is None else text.replace("T", " ").removesuffix("Z")


BASELINES: Final[tuple[Column[BaselineEntry], ...]] = (
    Column("name", "baseline"),
    Column("created", "saved", at("entry.header.created"), _when, right=False),
    Column("programs", "programs", lambda row: len(row.entry.planned)),
    Column("decisions", "decisions", lambda row: len(row.decisions)),
    Column("size_bytes", "size", at("entry.size_bytes"), bytes_),
    Column("", "workloads", lambda row: row.entry.problem or ", ".join(row.entry.workloads), widest=40),
    Column("workloads", value=at("entry.workloads")),
    Column("path", value=lambda row: str(row.entry.path)),
    Column("problem", value=lambda row: row.entry.problem or None),
)


@dataclass(frozen=True, slots=True)
class _Fact:
    code: str
    value: float


FACTS_KEPT: Final[tuple[Column[_Fact], ...]] = (
    Column("", "exact fact", lambda row: FACTS[row.code]),
    Column("", "value", lambda row: figure(row.value, unit_of(row.code)), right=True),
)


def baselines_lines(entries: Sequence[BaselineEntry], folder: str) -> Iterator[str]:
    """A line for each, and where they are."""
    yield from text_lines(Table(BASELINES, entries), indent="")
    yield f"{counted(len(entries), 'baseline')} in {folder}"


def baselines_json(entries: Iterable[BaselineEntry]) -> list[dict[str, Any]]:
    """The same as data."""
    return list(records(Table(BASELINES, list(entries))))


def baseline_lines(entry: BaselineEntry, session: Session) -> Iterator[str]:
    """The programs with their exact facts, then the decisions."""
    header = session.header
    yield f"{entry.name}, saved {_when(header.created)} on {header.host}, {entry.entry.path}"
    for run in session.runs.values():
        yield ""
        yield f"{program_name(run)}, {versions_of(run) or 'jax unknown'}"
        facts = [_Fact(code, value) for code, value in facts_of(session, run).items() if value]
        yield from text_lines(Table(FACTS_KEPT, facts))
    if entry.decisions:
        yield ""
        yield "decisions"
    for decision in entry.decisions:
        value = figure(decision.value, unit_of(decision.fact))
        detail = f" ({decision.detail})" if decision.detail else ""
        said = f"{decision.program}: {FACTS.get(decision.fact, decision.fact)} {value}{detail}: {decision.reason}"
        yield from wrap(f"{said} ({_when(decision.decided)})", width=WIDTH, indent="    ", first="  ")


def baseline_json(entry: BaselineEntry, session: Session) -> dict[str, Any]:
    """The same as data: facts as numbers in their base units, null where one is not known."""
    return {
        **next(records(Table(BASELINES, [entry]))),
        "decisions": [decision_json(decision) for decision in entry.decisions],
        "programs": [
            {
                "program": program_name(run),
                "run": run.id,
                "device": run.plan.device,
                "jax": run.environment.jax if run.environment is not None else None,
                "jaxlib": run.environment.jaxlib if run.environment is not None else None,
                "facts": facts_of(session, run),
            }
            for run in session.runs.values()
        ],
    }


def decision_json(decision: Decision) -> dict[str, Any]:
    """One decision as data."""
    return {
        "program": decision.program,
        "fact": decision.fact,
        "value": decision.value,
        "detail": decision.detail or None,
        "reason": decision.reason,
        "decided": decision.decided,
        "jax": decision.jax,
        "jaxlib": decision.jaxlib,
    }
