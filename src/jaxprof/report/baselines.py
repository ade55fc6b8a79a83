"""Show named baselines as text and as JSON: a list of them, or the exact facts and decisions of one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from jaxprof.analysis.difference import FACTS, FigureDifference, exact_facts
from jaxprof.analysis.gate import program_name, versions_of
from jaxprof.analysis.run_difference import facts_of
from jaxprof.facts import RUN, Fact, at, column, recorder, within
from jaxprof.facts.units import BYTES, COUNT, LIST, NUMBER, NUMBER_BY_NAME, ROWS, TEXT
from jaxprof.report.comparison import figure
from jaxprof.report.renderers import text_lines, wrap
from jaxprof.report.table import Table
from jaxprof.session import Run, Session
from jaxprof.session.log import Entry
from jaxprof.session.log.baselines import Decision
from jaxprof.units import counted

WIDTH: Final = 100


@dataclass(frozen=True, slots=True)
class BaselineEntry:
    """A baseline in a list."""

    name: str
    entry: Entry
    decisions: tuple[Decision, ...]


def _moment(text: str | None) -> str:
    return "-" if text is None else text.replace("T", " ").removesuffix("Z")


BASELINES: Final[tuple[Fact[BaselineEntry], ...]] = (
    Fact("name", TEXT, "Its name", title="baseline"),
    Fact("created", TEXT, "When it was saved, in UTC", at("entry.header.created"), "saved", show=_moment),
    Fact("programs", COUNT, "Programs in it", lambda row: len(row.entry.planned), "programs"),
    Fact("decisions", COUNT, "Decisions that are kept with it", lambda row: len(row.decisions), "decisions"),
    Fact("size_bytes", BYTES, "Size on disk", at("entry.size_bytes"), "size"),
    column("workloads", lambda row: row.entry.problem or ", ".join(row.entry.workloads), widest=40),
    Fact("workloads", LIST, "Their workloads", at("entry.workloads")),
    Fact("path", TEXT, "Its file", lambda row: str(row.entry.path)),
    Fact("problem", TEXT, "Why it cannot be read", at("entry.problem")),
)
DECISION: Final[tuple[Fact[Decision], ...]] = (
    Fact("program", TEXT, "The program that it is about"),
    Fact("fact", TEXT, "The figure that may grow"),
    Fact("value", NUMBER, "The value up to which it may grow"),
    Fact("detail", TEXT, "What exactly was accepted"),
    Fact("reason", TEXT, "Why it was accepted"),
    Fact("decided", TEXT, "When it was decided, in UTC"),
    Fact("jax", TEXT, "Version of jax"),
    Fact("jaxlib", TEXT, "Version of jaxlib"),
)
"""A decision to accept growth."""


_EXACT_FACTS: Final[tuple[Fact[FigureDifference], ...]] = (
    column("exact fact", lambda row: FACTS[row.code].title),
    column("value", lambda row: figure(row.before, row.unit), right=True),
)


def baselines_lines(entries: Sequence[BaselineEntry], folder: str) -> Iterator[str]:
    """Yield a line for each baseline, and the folder that they are in."""
    yield from text_lines(Table(BASELINES, entries), indent="")
    yield f"{counted(len(entries), 'baseline')} in {folder}"


def baseline_lines(entry: BaselineEntry, session: Session) -> Iterator[str]:
    """Yield the programs of a baseline with their exact facts, then its decisions."""
    header = session.header
    yield f"{entry.name}, saved {_moment(header.created)} on {header.host}, {entry.entry.path}"
    for run in session.runs.values():
        yield ""
        yield f"{program_name(run)}, {versions_of(run) or 'jax unknown'}"
        facts = [fact for fact in exact_facts(facts_of(session, run), {}) if fact.before]
        yield from text_lines(Table(_EXACT_FACTS, facts))
    if entry.decisions:
        yield ""
        yield "decisions"
    for decision in entry.decisions:
        fact = FACTS.get(decision.fact)
        title, unit = (fact.title, fact.unit) if fact is not None else (decision.fact, "byte")
        detail = f" ({decision.detail})" if decision.detail else ""
        accepted = f"{decision.program}: {title} {figure(decision.value, unit)}{detail}: {decision.reason}"
        yield from wrap(f"{accepted} ({_moment(decision.decided)})", width=WIDTH, indent="    ", first="  ")


@dataclass(frozen=True, slots=True)
class _Program:
    """A program of a baseline."""

    session: Session
    run: Run


_PROGRAM: Final[tuple[Fact[_Program], ...]] = (
    Fact("program", TEXT, "Its name", lambda row: program_name(row.run)),
    RUN,
    Fact("device", TEXT, "The device that it was compiled for", at("run.plan.device")),
    Fact("jax", TEXT, "Version of jax", at("run.environment.jax")),
    Fact("jaxlib", TEXT, "Version of jaxlib", at("run.environment.jaxlib")),
    Fact("facts", NUMBER_BY_NAME, "Exact figures by their code, in base units",
         lambda row: facts_of(row.session, row.run)),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Baseline:
    """A baseline with its session."""

    entry: BaselineEntry
    session: Session


BASELINE: Final[tuple[Fact[_Baseline], ...]] = (
    *within(at("entry"), (fact for fact in BASELINES if fact.key not in ("programs", "decisions"))),
    Fact("decisions", ROWS, "Growth that was accepted, with the reason", at("entry.decisions"), inside=DECISION),
    Fact("programs", ROWS, "Its programs",
         lambda row: [_Program(row.session, run) for run in row.session.runs.values()], inside=_PROGRAM),
)  # fmt: skip


def baseline_json(entry: BaselineEntry, session: Session) -> dict[str, Any]:
    """Return the programs of a baseline with their exact facts, and its decisions, as JSON-ready data."""
    return recorder(BASELINE)(_Baseline(entry, session))
