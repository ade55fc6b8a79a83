"""Facts of a gate and of each of its limits, with the sentences that say what they rest on."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from jaxprof.base.errors import UsageError, unknown_name
from jaxprof.base.units import UNKNOWN, percent
from jaxprof.facts import Fact, Facts, column, pick, within
from jaxprof.facts.comparisons import EXACT, FIGURES, TIMES, figure_text, growth_text, with_sign
from jaxprof.facts.sides import VERSUS, basis_lines, results_text
from jaxprof.facts.units import COUNT, LIST, NUMBER, OBJECT, ROWS, TEXT, TRUTH
from jaxprof.findings.compare.gate import GateBase, GateLimit, GateResult, GateRow
from jaxprof.stats.comparison import more_launches

_LIMIT = re.compile(r"\s*(?P<fact>[a-z_]+)\s*(?::\s*(?P<growth>\d+(?:\.\d+)?)\s*%\s*)?")
LIMITED = {fact.key: fact for fact in (*EXACT, *TIMES)}
"""Facts and times that may have a limit, by key."""


def read_limits(texts: Iterable[str]) -> tuple[GateLimit, ...]:
    """Return the limits in order. Raises UsageError for an unreadable limit, and for two on the same fact."""
    limits: dict[str, GateLimit] = {}
    for text in texts:
        limit = read_limit(text)
        before = limits.setdefault(limit.fact, limit)
        if before != limit:
            raise UsageError(
                f"--fail-on {limit.fact} is given twice, as {before.text} and {limit.text}", "Keep one of them."
            )
    return tuple(limits.values())


def read_limit(text: str) -> GateLimit:
    """Return the limit in text such as `flops:1%` or `kernels`. Raises UsageError."""
    match = _LIMIT.fullmatch(text)
    if match is None:
        raise UsageError(
            f"cannot read --fail-on {text!r}",
            "It looks like --fail-on kernels, --fail-on flops:1% or --fail-on run:5%.",
        )
    fact, growth = match["fact"], float(match["growth"] or 0) / 100
    if fact not in LIMITED:
        raise unknown_name("fact", fact, LIMITED)
    unit = LIMITED[fact].unit
    if unit.is_measured and not growth:
        raise UsageError(f"--fail-on {fact} is a time, and two times are never equal", f"Say by how much: {fact}:5%.")
    return GateLimit(fact, growth, unit.is_measured, unit.less_is_worse)


def _growth(row: GateRow) -> str:
    """Return the growth of a figure, `+52 % (+48 % to +56 %)`; a dash for times that were not measured together."""
    if not row.limit.is_time:
        return growth_text(row.figure)
    if row.times is None or row.growth is None:
        return UNKNOWN
    grown, *bounds = (with_sign(share, percent(share)) for share in (row.growth, *(row.times.growth_interval or ())))
    return f"{grown} ({' to '.join(bounds)})" if bounds else grown


def _interval_end(end: int) -> Callable[[GateRow], float | None]:
    """Return a function that reads the lower (0) or the upper (1) end of the interval of a time's growth."""
    return lambda row: row.times.growth_interval[end] if row.times and row.times.growth_interval else None


def reason_text(row: GateRow) -> str | None:
    """Return why a limit is undecided or exceeded, with how many more launches would decide it."""
    return ", ".join(filter(None, (row.reason, more_launches(row.launches_to_decide)))) or None


LIMITS: Facts[GateRow] = (
    Fact("state", TEXT, "within, exceeded or undecided", title=""),
    Fact("label", TEXT, "The program and its device", title="program"),
    Fact("limit", TEXT, "The limit, as it was given", "limit.text", "limit"),
    Fact("fact", TEXT, "The figure that it is about, by its key", "limit.fact"),
    column("fact", lambda row: LIMITED[row.limit.fact].title),
    column("baseline", lambda row: figure_text(row.figure, "before"), right=True),
    column("now", lambda row: figure_text(row.figure, "after"), right=True),
    column("difference", _growth, right=True),
    *within("figure", pick(FIGURES, "before", "after", "unit")),
    Fact("growth", NUMBER, "The second over the first, less 1"),
    Fact("growth_low", NUMBER, "Lower bound of the 95 % interval of the growth", _interval_end(0)),
    Fact("growth_high", NUMBER, "Upper bound of the 95 % interval", _interval_end(1)),
    Fact("launches_to_decide", COUNT, "How many more launches would give a verdict"),
    Fact("reason", TEXT, "Why it is undecided"),
)


def row_text(row: GateRow) -> str:
    """Return a limit and its outcome in one line: `kernels 3 → 5 (+67 %), limit kernels: exceeded`."""
    before, after = figure_text(row.figure, "before"), figure_text(row.figure, "after")
    title = LIMITED[row.limit.fact].title
    return f"{title} {before} → {after} ({_growth(row)}), limit {row.limit.text}: {row.state}"


def notes(result: GateResult) -> Iterator[str]:
    """Yield what a reader needs to know before the rows: what the base is, and what the times rest on."""
    yield base_sentence(result.base)
    yield from result.notes
    if result.measured is not None:
        (versus,) = result.measured.versus
        agreement = results_text(versus.run.results)
        if agreement.startswith("differs"):
            agreement = f"the results differ{agreement.removeprefix('differs')}"
        yield f"A: the base; B: the current version; {agreement}"
        yield from (f"{label}: {text}" for label, text in basis_lines(result.measured))
        for side in result.measured.failed:
            yield f"{side.run.plan.side} {side.run.end(deserted=False).text}"


def base_sentence(base: GateBase) -> str:
    """Return how the word after `--base` was read, in a sentence."""
    if base.reading == "revision":
        hash_ = f" ({base.commit})" if base.commit != base.name else ""
        state = "with changes that are not committed" if base.dirty else "which has no uncommitted changes"
        return f"base: the revision {base.name}{hash_} of {base.location}; now: the present tree, {state}"
    if base.reading == "target":
        return f"base: {base.name}, compiled now"
    where = f" ({base.location})" if base.location != base.name else ""
    kind = "the session " if base.reading == "session" else ""
    return f"base: {kind}{base.name}{where}"


GATE: Facts[GateResult] = (
    Fact("outcome", TEXT, "within, exceeded (a limit is) or undecided"),
    Fact("base", OBJECT, "What it was compared with", inside=(
        Fact("name", TEXT, "The word after --base"),
        Fact("reading", TEXT, "How it was read: path, target, session, revision"),
        Fact("path", TEXT, "Where it is", "location"),
        Fact("commit", TEXT, "Git commit of a revision, abbreviated"),
        Fact("dirty", TRUTH, "Whether the tree beside the revision has changes that are not committed",
             lambda base: base.dirty if base.reading == "revision" else None),
    )),
    Fact("notes", LIST, "What to know about the whole", lambda result: list(notes(result))),
    Fact("versus", OBJECT, "The times that were measured in turns",
         lambda result: result.measured and result.measured.versus[0], inside=VERSUS),
    Fact("limits", ROWS, "Each limit with what was found", "rows", inside=LIMITS),
)  # fmt: skip
