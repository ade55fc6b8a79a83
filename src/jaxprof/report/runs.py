"""Tables of the runs of a session. Text, Markdown and HTML show a selection of the facts of a run, CSV all of them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from jaxprof.analysis.run_result import RunResult, modes_text, results
from jaxprof.errors import UsageError
from jaxprof.events import Scalar
from jaxprof.facts import Fact, at, column, pick
from jaxprof.facts.runs import RUNS, RunRow, run_rows
from jaxprof.report.renderers import to_csv_text
from jaxprof.report.table import Table
from jaxprof.session import Run, Session
from jaxprof.units import UNKNOWN, integer, percent, ratio_interval, scaled, seconds, spread
from jaxprof.workloads import built_in
from jaxprof.workloads.model import Published


@dataclass(frozen=True, slots=True)
class RunGroup:
    """Runs that can be compared with each other: those of one workload with one set of parameters, or the sides of one
    measured comparison."""

    workload: str
    parameters: dict[str, Scalar]
    preset: str
    runs: tuple[RunResult, ...]

    @property
    def comparison(self) -> str:
        """Id of the first side's run if the runs are the sides of a measured comparison; otherwise empty."""
        run = self.runs[0].run
        return run.id if run.plan.side and not run.plan.baseline else ""

    @property
    def devices(self) -> list[str]:
        """Devices of the runs, without duplicates."""
        return list(dict.fromkeys(result.run.plan.device for result in self.runs))

    def label(self, run: Run) -> str:
        """Return the variant of a run, with its side in a comparison, and its device if the group has several."""
        return run.variant if len(self.devices) == 1 else f"{run.variant} {run.plan.device}"


def groups(session: Session) -> list[RunGroup]:
    """Return the measured runs of a session in groups, in the order of the plan, without programs and imported
    profiles."""
    return grouped(
        result for result in results(session) if not result.run.is_program and result.run.plan.how != "imported"
    )


def grouped(runs: Iterable[RunResult]) -> list[RunGroup]:
    """Group runs by workload and parameters, and the sides of a measured comparison whatever these are."""
    by_key: dict[Hashable, list[RunResult]] = {}
    for result in runs:
        plan = result.run.plan
        key: Hashable = plan.workload, tuple(sorted(plan.parameters.items()))
        by_key.setdefault((plan.baseline or result.run.id) if plan.side else key, []).append(result)
    return [
        RunGroup(
            " | ".join(dict.fromkeys(result.run.plan.workload for result in members)),
            dict(members[0].run.plan.parameters),
            members[0].run.plan.preset,
            tuple(members),
        )
        for members in by_key.values()
    ]


def published(workload: str, variants: Sequence[str] | None = None) -> list[Published]:
    """Return the published figures of a built-in workload, of all variants or of `variants`; none for a workload of the
    user's own."""
    try:
        figures = built_in(workload).published
    except UsageError:
        return []
    return [figure for figure in figures if variants is None or figure.variant in variants]


def parameters_text(parameters: dict[str, Scalar]) -> str:
    """Return parameters as people read them: `n = 1 000 000, k = 32`."""
    return ", ".join(f"{name} = {_value(value)}" for name, value in parameters.items())


def _value(value: Scalar) -> str:
    return integer(value) if isinstance(value, int) and not isinstance(value, bool) else str(value)


def rows_of_group(session: Session, group: RunGroup, *, live: bool = False) -> list[RunRow]:
    """Return a row for each run of a group. `live`: the session is being written now."""
    return [RunRow(group.label(result.run), result, result.run.end(deserted=not live)) for result in group.runs]


def to_csv(session: Session, *, live: bool = False) -> str:
    """Return the runs as CSV with a heading; an empty cell is unknown or does not apply. `live`: the session is being
    written now."""
    return to_csv_text(Table(RUNS.facts, run_rows(session, live=live)))


def versus_text(result: RunResult) -> str:
    """Return the speed-up of a run over its baseline, `6.9× (6.8-7.0)`; `1×` for a baseline, `0-copy` if nothing was
    moved, a dash if it is unknown."""
    if not result.run.plan.baseline:
        return "1×" if result.summary is not None else UNKNOWN
    if result.moved_nothing:
        return "0-copy"
    if result.versus is None:
        return UNKNOWN
    speedup = result.versus.speedup
    return ratio_interval(speedup.ratio, speedup.low, speedup.high)


def verdicts_text(rows: Sequence[RunRow]) -> str:
    """Return the verdict of each run against its baseline, after what it rests on: `3 launches: jit faster than numpy`;
    an empty text if nothing is compared."""
    names = {row.run.id: row.run.as_baseline for row in rows}
    by_basis: dict[str, list[str]] = {}
    for row in rows:
        versus = row.result.versus
        if versus is not None:
            words = versus.speedup.words(names.get(versus.baseline, "the baseline"))
            by_basis.setdefault(versus.speedup.basis, []).append(f"{row.label} {words}")
    return "  ·  ".join(f"{basis}: {'; '.join(verdicts)}" for basis, verdicts in by_basis.items())


def break_even_text(result: RunResult) -> str:
    """Return after how many calls a run has won back its one-time cost: `12 calls`, `never`; a dash for a baseline, and
    if it is unknown."""
    if result.versus is None:
        return UNKNOWN
    calls = result.versus.break_even_calls
    if calls is not None:
        number = integer(calls) if calls < 10_000 else scaled(calls, significant=2)
        return f"{number} call{'s' if calls != 1 else ''}"
    return "never" if result.once_seconds is not None and result.versus.speedup.ratio <= 1 else UNKNOWN


def one_time_text(result: RunResult) -> str:
    """Return the parts of the one-time cost of a run: `trace 2.1 ms, lower 3.4 ms, compile 61 ms, first run 0.7 ms`."""
    parts = [(name, spent) for name, spent in result.one_time_phases.items() if spent]
    return ", ".join(f"{name.replace('_', ' ')} {seconds(spent)}" for name, spent in parts)


def interval_text(result: RunResult) -> str:
    """Return the interval of the median relative to it, `± 0.9 %`; both ends if it is wider than the median."""
    summary = result.summary
    return UNKNOWN if summary is None else spread(summary.relative_halfwidth, summary.low, summary.high)


def interval_beside(result: RunResult) -> str:
    """Return `interval_text` as it follows the median: ` ± 0.9 %`, ` (12 ms to 96 ms)`; empty if it is unknown."""
    text = interval_text(result)
    return "" if text == UNKNOWN else f" {text}" if text.startswith("±") else f" ({text})"


def check_text(result: RunResult) -> str:
    """Return the outcome of the check: `ok, 1.2e-07`; `WRONG, 41 %` (of the numbers); `not checked`; a dash for a
    baseline without a check, and if there is no check."""
    check = result.run.check
    if check is None or (check.passed is None and not result.run.plan.baseline):
        return UNKNOWN
    if check.passed is None:
        return "not checked"
    word = "ok" if check.passed else "WRONG"
    if not check.passed and check.wrong_elements and check.elements:
        return f"{word}, {percent(check.wrong_elements / check.elements)}"
    return word if check.max_relative_error is None else f"{word}, {check.max_relative_error:.1e}"


def _check_or_failure(row: RunRow) -> str:
    if row.outcome.status != "ok" and row.result.summary is None:
        return f"{row.outcome.status}: {row.outcome.error}"
    return check_text(row.result)


def _transfer(name: str, title: str) -> Fact[RunRow]:
    def value(row: RunRow) -> str:
        recorded = row.run.phases.get(name)
        zero_copy = recorded is not None and recorded.zero_copy
        return "0-copy" if zero_copy else seconds(row.result.phase_seconds.get(name))

    return column(title, value, right=True)


def _modes(row: RunRow) -> str:
    modes = row.result.modes
    return UNKNOWN if modes is None else modes_text(modes)


_FACTS: Final = RUNS.facts
LABEL: Final[Fact[RunRow]] = column("", at("label"))
SIDE_AND_VARIANT: Final[Fact[RunRow]] = column("variant", at("run.variant"))
DEVICE, COMPILE, FIRST_RUN = pick(_FACTS, "device", "compile_seconds", "first_run_seconds")
MEDIAN: Final[Fact[RunRow]] = column("median", at("result.summary.median"), seconds)
INTERVAL: Final[Fact[RunRow]] = column("95 %", lambda row: interval_text(row.result), right=True)
SPEEDUP: Final[Fact[RunRow]] = column("speed-up", lambda row: versus_text(row.result), right=True)
BREAK_EVEN: Final[Fact[RunRow]] = column("break-even", lambda row: break_even_text(row.result), right=True)
CHECK: Final[Fact[RunRow]] = column("check", lambda row: check_text(row.result))
CHECK_OR_FAILURE: Final[Fact[RunRow]] = column("check", _check_or_failure)
SPREAD: Final = pick(_FACTS, "samples", "minimum_seconds", "mean_seconds", "p95_seconds", "maximum_seconds")
"""Columns with the distribution of the samples of a call."""
MODES: Final[Fact[RunRow]] = column("two modes", _modes)
BEFORE_STEADY: Final[tuple[Fact[RunRow], ...]] = (
    *pick(_FACTS, "trace_seconds", "lower_seconds", "compile_seconds"),
    _transfer("transfer_in", "to device"),
    FIRST_RUN,
    _transfer("transfer_out", "to host"),
)
"""Columns with the phases before and after the steady run."""
RATES: Final = pick(
    _FACTS, "dispatch_median_seconds", "pipelined_median_seconds", "first_after_pause_seconds", "flops_per_second",
    "bytes_per_second", "peak_bytes", "transfer_in_bytes_per_second",
)  # fmt: skip
"""Columns with the figures of one call."""
