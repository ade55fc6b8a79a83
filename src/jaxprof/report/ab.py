"""What `jaxprof compare` prints: the verdicts, what they stand on, exact facts, then times; and the same as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from jaxprof.analysis.ab import AbResult, AbVersus
from jaxprof.analysis.session_difference import RunComparison, SessionDifference
from jaxprof.facts import SENTENCE, Fact, at, pick, recorder, within
from jaxprof.facts.runs import RUNS
from jaxprof.facts.units import NUMBERS, OBJECT, ROWS, SECONDS, TEXT
from jaxprof.report.comparison import ENVIRONMENT, PHASES, WIDTH, answer, environment_table, named, tables
from jaxprof.report.comparison_report import PAIR
from jaxprof.report.renderers import text_lines, wrap
from jaxprof.report.sides import PLAN, SPEC, VERSUS, SideRow, ab_head, side_rows


def ab_lines(result: AbResult) -> Iterator[str]:
    """The report."""
    yield from ab_head(result, WIDTH)
    for versus in result.versus:
        yield from _exact(result, versus)
    yield ""
    for side in result.failed:
        run = side.run
        yield from wrap(f"{run.plan.side} {run.status}: {run.error}", width=WIDTH, indent="    ", first="  ✗ ")
        yield from wrap(run.advice, width=WIDTH, indent="    ")
    yield from _warnings(result)


def _exact(result: AbResult, versus: AbVersus) -> Iterator[str]:
    """What differs beside the time of a call: the environments, exact facts, kernels."""
    difference = result.difference(versus)
    (pair,) = difference.runs
    yield ""
    yield from wrap(f"A → {versus.label}: {answer(pair)}", width=WIDTH, indent="    ", first="  ")
    listed = list(tables(pair))
    times = [table for table in listed if table.columns is PHASES]
    exact = [table for table in listed if table.columns is not PHASES]
    for table in (environment_table(difference), *exact, *times):
        lines = list(text_lines(named(table, "A", versus.label), width=WIDTH))
        if lines:
            yield ""
            yield from lines


def _warnings(result: AbResult) -> Iterator[str]:
    labels_by_message: dict[str, list[str]] = {}
    for side in result.sides:
        for warning in side.warnings:
            labels_by_message.setdefault(warning.message, []).append(side.run.plan.side)
    for message, labels in labels_by_message.items():
        yield from wrap(f"{', '.join(labels)}: {message}", width=WIDTH, indent="    ", first="  ! ")


@dataclass(frozen=True, slots=True)
class _Compared:
    """A side beside A, with all that differs between the two."""

    versus: AbVersus
    difference: SessionDifference

    @property
    def pair(self) -> RunComparison:
        return self.difference.runs[0]


_VERSUS: Final[tuple[Fact[_Compared], ...]] = (
    *within(at("versus"), VERSUS),
    *within(at("pair"), (fact for fact in PAIR if fact.key != "side")),
    Fact("environment", ROWS, "What differs between the environments",
         lambda row: environment_table(row.difference).rows, inside=ENVIRONMENT),
)  # fmt: skip
_SIDE: Final[tuple[Fact[SideRow], ...]] = (
    *SPEC,
    *within(
        at("result"),
        (
            *pick(RUNS.facts, "workload", "variant", "device"),
            Fact("python", TEXT, "Version of Python", at("run.python")),
            Fact("jax", TEXT, "Version of jax", at("run.environment.jax")),
            Fact("status", TEXT, "How it ended", at("run.status")),
            Fact("error", TEXT, "Why it failed", at("run.error")),
            Fact("median_seconds", SECONDS, "Median time of a call", at("summary.median")),
            Fact("ci95_seconds", NUMBERS, "Its 95 % interval, [low, high]", at("summary.ci95")),
            Fact("warnings", ROWS, "Why the figures mean less than they seem to", inside=SENTENCE[:2]),
        ),
    ),
)  # fmt: skip
AB: Final[tuple[Fact[AbResult], ...]] = (
    *PLAN,
    Fact("versus", ROWS, "Each side beside A",
         lambda result: [_Compared(versus, result.difference(versus)) for versus in result.versus], inside=_VERSUS),
    Fact("control", OBJECT, "A beside itself: what this machine cannot tell apart",
         lambda result: result.control and _Compared(result.control, result.difference(result.control)),
         inside=_VERSUS),
    Fact("sides", ROWS, "What was compared", side_rows, inside=_SIDE),
)  # fmt: skip
ab_json: Final = recorder(AB)
"""The report for programs; times in seconds, shares from 0 to 1, null for unknown."""
