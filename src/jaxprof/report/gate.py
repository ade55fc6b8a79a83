"""The outcome of a gate: a line for each limit, as text, Markdown, JSON and JUnit XML."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from jaxprof.analysis.gate import GateRow, worst
from jaxprof.analysis.run_difference import FACTS, FactDifference, Unit
from jaxprof.report.comparison import figure, growth_text
from jaxprof.report.renderers import markdown, markdown_lines, records, text_lines
from jaxprof.report.table import Column, Table
from jaxprof.text import safe

ANSWERS: Final = {
    "within": "within the limits",
    "passed": "a limit was passed",
    "undecided": "undecided: a fact is not known",
}


def _growth(row: GateRow) -> str:
    unit: Unit = "byte" if row.unit == "byte" else "flop" if row.unit == "flop" else ""
    return growth_text(FactDifference(row.limit.fact, row.before, row.after, unit))


LIMITS: Final[tuple[Column[GateRow], ...]] = (
    Column("state", "", lambda row: row.state),
    Column("label", "program"),
    Column("limit", "limit", lambda row: row.limit.text),
    Column("fact", "fact", lambda row: FACTS[row.limit.fact]),
    Column("", "baseline", lambda row: figure(row.before, row.unit), right=True),
    Column("", "now", lambda row: figure(row.after, row.unit), right=True),
    Column("", "difference", _growth, right=True),
    Column("before"),
    Column("after"),
    Column("unit", value=lambda row: row.unit or None),
    Column("reason", "reason", lambda row: row.reason or None),
)


def gate_text(rows: Sequence[GateRow]) -> str:
    """The outcome, then a line for each limit."""
    return "\n".join([ANSWERS[worst(rows)], *text_lines(Table(LIMITS, rows))])


def gate_markdown(rows: Sequence[GateRow]) -> str:
    """The same for a pull request."""
    return "\n".join([f"**jaxprof gate: {markdown(ANSWERS[worst(rows)])}**", "", *markdown_lines(Table(LIMITS, rows))])


def gate_json(rows: Sequence[GateRow]) -> dict[str, Any]:
    """The same as data."""
    return {"outcome": worst(rows), "limits": list(records(Table(LIMITS, rows)))}


def gate_junit(rows: Sequence[GateRow], *, strict: bool) -> str:
    """JUnit XML, a test case for each limit: one that is undecided is skipped, or with `strict` a failure."""
    from xml.etree.ElementTree import Element, SubElement, indent, tostring

    failed = [row for row in rows if row.state == "passed" or (strict and row.state == "undecided")]
    skipped = sum(row.state == "undecided" and not strict for row in rows)
    counts = {"tests": str(len(rows)), "failures": str(len(failed)), "skipped": str(skipped), "errors": "0"}
    suites = Element("testsuites", counts)
    suite = SubElement(suites, "testsuite", {"name": "jaxprof gate", **counts})
    for row in rows:
        case = SubElement(suite, "testcase", {"classname": safe(row.label), "name": row.limit.text, "time": "0"})
        message = safe(
            f"{figure(row.before, row.unit)} → {figure(row.after, row.unit)} ({_growth(row)}) {row.reason}".strip()
        )
        if row in failed:
            SubElement(case, "failure", {"message": message, "type": row.state})
        elif row.state == "undecided":
            SubElement(case, "skipped", {"message": message})
    indent(suites)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(suites, encoding="unicode") + "\n"
