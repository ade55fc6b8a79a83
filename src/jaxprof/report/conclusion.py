"""The three lines that every command which measures ends with: what costs most, how sure that is, what to do next.

The first line names the largest costs whether or not anything can be done about them, and its parts add up to the
whole. What is not known is said in the line where it is missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from jaxprof.report.renderers import wrap
from jaxprof.text import safe
from jaxprof.units import bytes_, counted, parts_of, percent, seconds, whole_percents

if TYPE_CHECKING:
    from collections.abc import Callable

    from jaxprof.analysis.ab import AbResult
    from jaxprof.analysis.explain.model import Explanation, RankedFinding
    from jaxprof.analysis.gate import GateResult, GateRow
    from jaxprof.analysis.jobs.job import JobFigures
    from jaxprof.analysis.programs.derive import ProgramResult
    from jaxprof.analysis.run_result import RunResult
    from jaxprof.analysis.session_difference import SessionDifference
    from jaxprof.session import Session

WIDTH: Final = 80
_LARGEST: Final = 3
_LEAST: Final = 0.005
"""Parts of a smaller share are not named: they would be 0 %."""
_LABEL: Final = 13
_NO_COST: Final = "unknown: nothing was measured"
_STATES: Final = {"compile": "compiling", "lower": "lowering", "trace": "tracing", "import": "imports"}
"""What states and phases are called in a sentence; the others by their own names."""


@dataclass(frozen=True, slots=True)
class Conclusion:
    """What costs most, how sure that is, and what to do."""

    cost: str
    certainty: str
    action: str
    command: str = ""
    """The next command; empty where there is none."""


def conclusion_lines(found: Conclusion, width: int = WIDTH) -> Iterator[str]:
    """The three lines, each with its label, in as many lines of text as they need, and the command under them."""
    indent = " " * _LABEL
    for label, text in (("costs most", found.cost), ("how sure", found.certainty), ("do next", found.action)):
        yield from wrap(text, width=width, indent=indent, first=f"{label:<{_LABEL}}")
    if found.command:
        yield f"{indent}{safe(found.command)}"


def conclusion(explanation: Explanation) -> Conclusion:
    """What an explanation comes to."""
    from jaxprof.analysis.explain.model import command

    cost, certainty = cost_and_certainty(explanation)
    unknown = next((each for each in explanation.abstentions if each.command), None)
    if explanation.findings:
        first, others = explanation.findings[0], len(explanation.findings) - 1 + explanation.left_out
        more = f" ({counted(others, 'more finding')})" if others else ""
        return Conclusion(
            cost,
            certainty,
            f"{_place(first)}{first.fix.split('. ')[0].rstrip('.')}{more}",
            command("explain", explanation.name),
        )
    if unknown is not None:
        return Conclusion(cost, certainty, f"{explanation.nothing_found}; {unknown.reason}", unknown.command)
    return Conclusion(cost, certainty, explanation.nothing_found)


def _place(finding: RankedFinding) -> str:
    at = finding.where.short(finding.directory) if finding.where is not None else "".join(finding.kernels[:1])
    return f"{finding.code} at {at}: " if at else f"{finding.code}: "


def cost_and_certainty(explanation: Explanation) -> tuple[str, str]:
    """The first two lines, without their labels."""
    session = explanation.session
    if explanation.job is not None:
        return job_cost(explanation.job)
    if session is None:
        largest = max((finding.cost.bytes or 0 for finding in explanation.findings), default=0)
        cost = f"{bytes_(largest)} of traffic, by the first finding" if largest else "unknown"
        return cost, "HLO alone has no times: costs are bytes"
    of_subject: Mapping[str, Callable[[Session], tuple[str, str]]] = {
        "program": _of_program,
        "comparison": _of_comparison,
        "runs": _of_runs,
        "profile": _of_profile,
    }
    derive = of_subject.get(explanation.subject)
    return derive(session) if derive is not None else (_NO_COST, "no run was recorded")


def largest(times: Mapping[str, float], whole: float) -> str:
    """`compiling 60.0 s (62 %), imports 20.1 s (21 %), ..., the rest 4.9 s (5 %) of 97.0 s`: the largest parts of
    `whole` seconds; what is printed adds up."""
    ordered = sorted(((took, name) for name, took in times.items() if took > 0), reverse=True)
    shown = [
        (_STATES.get(name, name.replace("_", " ")), took) for took, name in ordered[:_LARGEST] if took >= _LEAST * whole
    ]
    if not shown:
        return f"unknown: what {seconds(whole)} went to was not seen"
    rest = whole - sum(took for _, took in shown)
    if rest >= _LEAST * whole:
        shown.append(("the rest", rest))
    whole = sum(took for _, took in shown) if rest < _LEAST * whole else whole
    texts, total = parts_of([took for _, took in shown], whole)
    percents = whole_percents([took for _, took in shown])
    parts = [f"{name} {text} ({share} %)" for (name, _), text, share in zip(shown, texts, percents, strict=True)]
    return f"{', '.join(parts)} of {total}"


def _of_program(session: Session) -> tuple[str, str]:
    """Of several programs, that which took longest."""
    from jaxprof.analysis.programs.derive import program_result

    programs = [program_result(session, run.id) for run in session.programs]
    return program_cost(max(programs, key=lambda program: program.wall_seconds or 0.0))


def program_cost(program: ProgramResult) -> tuple[str, str]:
    """The first two lines of a program, without their labels, also while it runs."""
    from jaxprof.report.recording.words import verdict

    times = {share.state: share.seconds for share in program.timeline if share.state != "not_seen"}
    if not times or not program.wall_seconds:
        return "unknown: where its time went was not recorded", "nothing was sampled"
    words = filter(None, (verdict(program) if program.verdict.kind is not None else "", _basis(program)))
    return largest(times, program.wall_seconds), "; ".join(words)


def _basis(program: ProgramResult) -> str:
    """What the times of the states rest on."""
    exact = any(share.exact and share.seconds > 0 for share in program.timeline)
    announced = "compile times are exact" if exact else ""
    if not program.samples:
        return announced or "nothing was sampled"
    half = 0.98 / program.samples**0.5  # of a share of one half, the widest that there is
    error = f", each within {percent(half)} of the wall time" if half < 0.5 else ", too few to say how exact"
    return f"{announced}{'; the rest' if announced else 'all'} from {counted(program.samples, 'sample')}{error}"


def _of_runs(session: Session) -> tuple[str, str]:
    """The run that takes most time before its second call."""
    from jaxprof.analysis.run_result import results

    measured = [each for each in results(session) if each.summary is not None]
    compiled = [each for each in measured if any(each.one_time_phases.values())]
    if not measured:
        only_compiled = any(run.plan.how == "compile" for run in session.runs.values())
        return ("unknown: compiled, and not run" if only_compiled else _NO_COST), "no time was measured"
    run = max(compiled or measured, key=_seconds_of_first)
    return _first_call(run), _certainty(session, run)


def _seconds_of_first(run: RunResult) -> float:
    return sum(filter(None, run.one_time_phases.values())) or (run.summary.median if run.summary is not None else 0.0)


def _first_call(run: RunResult) -> str:
    once = {name: spent for name, spent in run.one_time_phases.items() if spent}
    call = f"{seconds(run.summary.median)} a call" if run.summary is not None else ""
    name = safe(f"{run.run.id} {run.run.label}")
    if not once.keys() - {"first_run"}:
        return f"{name}: {call}"
    return f"{name}: {largest(once, sum(once.values()))} up to the end of the first call; then {call}"


def _certainty(session: Session, run: RunResult) -> str:
    from jaxprof.report.runs import check_text, interval_text, versus_text
    from jaxprof.units import UNKNOWN

    launches = max(1, len(run.run.launches))
    interval = interval_text(run)
    known = "the error of a call is unknown" if interval == UNKNOWN else f"a call {interval}"
    parts = [f"{known}, in {counted(launches, 'launch')}"]
    baseline = session.runs.get(run.run.plan.baseline)
    if baseline is not None and run.versus is not None:
        speedup = run.versus.speedup
        decided = speedup.verdict != "inconclusive"
        parts.append(
            f"{versus_text(run)} as fast as {baseline.as_baseline}"
            if decided
            else f"beside {baseline.as_baseline} {speedup.words(baseline.as_baseline)}"
        )
    if (check := check_text(run)) not in (UNKNOWN, "not checked"):
        parts.append(f"result {check}")
    doubts = [warning for warning in run.warnings if warning.code != "zero_copy"]
    if doubts:
        parts.append(counted(len(doubts), "warning"))
    return "; ".join(parts)


def _of_comparison(session: Session) -> tuple[str, str]:
    from jaxprof.analysis.ab import ab_results

    return comparison_cost(ab_results(session))


def comparison_cost(compared: Sequence[AbResult]) -> tuple[str, str]:
    """What each side takes, and what that stands on."""
    from jaxprof.report.sides import basis_lines, verdict_line

    costs = [verdict_line(versus) for result in compared for versus in result.versus]
    medians = [
        f"{side.run.plan.side} {seconds(side.summary.median)} a call"
        for result in compared
        for side in result.sides
        if side.summary is not None
    ]
    basis = [text if label == "call" else f"{label}: {text}" for each in compared for label, text in basis_lines(each)
             if label != "call"]  # fmt: skip
    return "; ".join(filter(None, (", ".join(medians), *costs))) or _NO_COST, "; ".join(basis) or "not measured"


def _of_profile(session: Session) -> tuple[str, str]:
    from jaxprof.analysis.measured import whole_profile

    kernels = whole_profile(session)
    whole = sum(kernel.self_seconds for kernel in kernels)
    if not whole:
        return "unknown: no kernel was recorded", "nothing was captured"
    times: dict[str, float] = {}
    for kernel in kernels:
        times[kernel.name] = times.get(kernel.name, 0.0) + kernel.self_seconds
    doubted = sorted(
        {row.code for run in session.runs.values() for trust in run.trust.values() for row in trust.rows
         if row.verdict != "good"}
    )  # fmt: skip
    certain = f"doubtful: {', '.join(doubted)}" if doubted else "captured by the profiler, which also takes time"
    return largest(times, whole), certain


def job_cost(job: JobFigures) -> tuple[str, str]:
    """The first two lines of a job, without their labels: of all its processes together."""
    if job.goodput is None:
        return "unknown: no process was seen in a loop", f"{len(job.processes)} of {job.count} processes could be read"
    used = job.goodput
    seen = f"{used.processes} of {counted(job.count, 'process', 'processes')}"
    return (
        f"{largest(used.causes, used.seconds)} ({seen} together)",
        "from samples; the useful part is an upper bound, because time that all wait together counts as useful",
    )


def gate_conclusion(result: GateResult, target: str) -> Conclusion:
    """What a gate comes to: the limit that was passed by most, what the figures stand on, how to see why."""
    from jaxprof.analysis.explain.model import command
    from jaxprof.report.gate import row_text

    worst = min(result.rows, key=_order, default=None)
    cost = row_text(worst) if worst is not None else "unknown: nothing was compared"
    timed = any(row.limit.is_time for row in result.rows)
    certainty = "facts are exact, for this compiler" if not timed else ""
    if timed:
        certainty = comparison_cost([result.measured])[1] if result.measured is not None else "times of other days"
    base = result.base
    looking = {
        "revision": command("compare", "--git", base.name, target),
        "target": command("compare", base.name, target),
    }.get(base.reading, command("hlo", target, "--kernels"))
    if result.outcome == "within":
        return Conclusion(cost, certainty, "nothing: no limit was passed")
    action = {
        "passed": "find what grew, or allow it: --accept WHY keeps the decision beside a named baseline",
        "undecided": "find out what is unknown: the reason stands beside each limit",
    }[result.outcome]
    return Conclusion(cost, certainty, action, looking)


def _order(row: GateRow) -> tuple[int, float]:
    return ("passed", "undecided", "within").index(row.state), -abs(row.growth or row.figure.growth or 0.0)


def difference_conclusion(difference: SessionDifference, name: str) -> Conclusion:
    """What two recorded sessions come to: what differs, that they were not measured together, what to look at."""
    from jaxprof.analysis.explain.model import command
    from jaxprof.report.comparison import answer

    if not difference.runs:
        return Conclusion("unknown: the sessions have no run in common", "nothing was compared", "name a run of each")
    said = dict.fromkeys(answer(pair) for pair in difference.runs)
    known = [words for words in said if not words.startswith("no exact fact")] or list(said)
    cost = "; ".join(known[:_LARGEST])
    certainty = "exact facts do not vary; the verdict of each time stands in its row"
    if difference.before is not difference.after:
        certainty = "exact facts do not vary; times were not measured together, so the machine may explain them"
    return Conclusion(cost, certainty, "see what is left to change in the second", command("explain", name))
