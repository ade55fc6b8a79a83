"""Facts of an explanation, and of the catalogue of findings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jaxprof.base.values import frozen
from jaxprof.events.finding import CatalogueEntry, Finding
from jaxprof.facts import OF_FINDING, SENTENCE, Fact, Facts, optional, pick
from jaxprof.facts.units import BYTES, COUNT, FLOPS, INDEX, LIST, OBJECT, RATE, ROWS, SECONDS, SHARE, TEXT, TRUTH

if TYPE_CHECKING:
    from jaxprof.analysis.runs.ceilings import Utilisation
    from jaxprof.findings import Explanation

_CODE_LINE_CHARACTERS = 100
_KERNELS_NAMED = 3
UTILISATION: Facts[Utilisation] = (
    Fact("run", TEXT, "Id of the run"),
    Fact("of", TEXT, "What was timed: call or step"),
    Fact("seconds", SECONDS, "Time of the call or step"),
    Fact("mfu", SHARE, "Share of the peak that the FLOPs of the model reach"),
    Fact("hfu", SHARE, "Share of the peak that all FLOPs reach, recomputed ones included"),
    Fact("at_least", TRUTH, "Whether the shares are lower bounds"),
    Fact("roofline", SHARE, "Share of the roofline of the whole"),
    Fact("flops", FLOPS, "FLOPs of the matrix products"),
    Fact("recomputed_flops", FLOPS, "FLOPs that are computed again (rematerialisation)"),
    Fact("peak_flops_per_second", RATE, "The peak of the device for these dtypes"),
    Fact("dtypes", LIST, "The dtypes of the matrix products"),
    Fact("peak_flops_source", TEXT, "Where that peak comes from", "peak_source"),
    Fact("reason", TEXT, "Why mfu is unknown"),
)
_EVIDENCE: Facts[Finding] = (
    optional("run", TEXT, "Id of the run"),
    optional("also", LIST, "More runs that have it", lambda finding: finding.also[:5]),
    optional("place", TEXT, "file:line", "where.text"),
    optional("code_line", TEXT, "Text of that line", lambda finding: finding.code_line[:_CODE_LINE_CHARACTERS]),
    optional("kernels", LIST, "Kernels that it is about, those with the most weight first",
             lambda finding: finding.kernels[:_KERNELS_NAMED]),
    Fact("process", INDEX, "Which process of a job, from 0", "index", when=lambda row: row.index is not None),
    optional("host", TEXT, "Where that process ran"),
    optional("function", TEXT, "The compiled function"),
    optional("compilations", COUNT, "Compilations that it rests on"),
)  # fmt: skip
_COST: Facts[Finding] = (
    Fact("of", TEXT, "What share is a part of: program, call, compile, profile, steps or module", "scope"),
    Fact("seconds", SECONDS, "What it cost"),
    *pick(OF_FINDING, "low_seconds", "high_seconds"),
    Fact("saves_seconds", SECONDS, "What changing it would save: an estimate"),
    Fact("share", SHARE, "Share of the whole, in 0..1"),
    Fact("bytes", BYTES, "Traffic of one call, or memory that it holds"),
    Fact("held", TRUTH, "Whether bytes are memory"),
    Fact("estimate", TRUTH, "Whether seconds is an estimate", lambda finding: finding.estimate or finding.at_most),
)  # fmt: skip


_FROM_FILE: Fact[Any] = optional(
    "from_file", TRUTH, "True if that command has words of a file that this machine did not record: read it first"
)


@frozen
class ExplainedRow:
    """An explanation, with what is known of the whole in words."""

    explanation: Explanation
    answers: list[str]


def _utilisations(row: ExplainedRow) -> tuple[Utilisation, ...]:
    from jaxprof.analysis.runs.ceilings import utilisations

    session = row.explanation.session
    return utilisations(session)[:3] if session is not None else ()


EXPLANATION: Facts[ExplainedRow] = (
    Fact("name", TEXT, "What was explained, as commands take it", "explanation.name"),
    Fact("subject", TEXT, "program, job, runs, comparison, profile, nothing", "explanation.subject"),
    Fact("from_file", TRUTH, "Whether its words are those of a file that this machine did not record itself",
         "explanation.from_file"),
    Fact("answers", LIST, "What is known of the whole, a line each"),
    Fact("utilisations", ROWS, "What share of the device's peak the runs reach", _utilisations, inside=UTILISATION),
    Fact("findings", ROWS, "What is worth changing, the most expensive first", "explanation.findings", inside=(
        *SENTENCE,
        Fact("cost", OBJECT, "What it costs", lambda finding: finding, inside=_COST),
        Fact("evidence", OBJECT, "What it rests on, with names that other commands take", lambda finding: finding,
             inside=_EVIDENCE),
        Fact("verify", TEXT, "The command that shows whether a change helped; of a job, one that shows the process"),
        _FROM_FILE,
    )),
    Fact("left_out", COUNT, "How many more findings there are", "explanation.left_out"),
    Fact("unknown", ROWS, "What is unknown", "explanation.abstentions", inside=(
        Fact("code", TEXT, "What kind it is"),
        Fact("reason", TEXT, "Why it is unknown"),
        Fact("command", TEXT, "The command that would show it"),
        _FROM_FILE,
    )),
)  # fmt: skip
ENTRY: Facts[CatalogueEntry] = (
    Fact("code", TEXT, "What kind of finding it is"),
    Fact("source", TEXT, "Where it is found: program, hlo, ..."),
    Fact("title", TEXT, "What it says, in a line"),
    Fact("means", TEXT, "What it means"),
    Fact("fix", TEXT, "What to do about it"),
    Fact("page", TEXT, "The page of the documents"),
)
