"""Texts that are frozen in `tests/net`: all that is said of a case, for a reader to look at."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from jaxprof.analysis.explain.model import Explanation
from jaxprof.analysis.finding import Finding
from jaxprof.events import SourceLocation

NET = Path(__file__).parent / "net"


def held(name: str, text: str) -> None:
    """Fails if the file of this name in the net has another text."""
    if os.environ.get("UPDATE_NET"):
        (NET / name).write_text(text)
    assert text == (NET / name).read_text(), "UPDATE_NET=1 writes the file again: look at the difference"


def held_cases(name: str, told: Mapping[str, str]) -> None:
    """Fails if one of these cases has another text in the file."""
    held(name, "\n".join(f"{case}\n{text}" for case, text in told.items()))


def finding_text(finding: Finding) -> str:
    """All that a finding says: its sentence, its advice, and each figure and place that it has."""
    figures = _known(finding, "code", "message", "advice", "own_fix")
    return f"  {finding.code}: {finding.message}\n  {finding.advice}\n  {figures}\n"


def explanation_text(explained: Explanation) -> str:
    """All that an explanation says of a session: its findings with what they cost, and what it does not say."""
    lines = [explained.subject]
    for found in explained.findings:
        lines += [f"{found.code}: {found.message}", _known(found, "sentence", "cost"), _known(found.cost)]
    lines += [f"? {each.code}: {each.reason}  {each.command}" for each in explained.abstentions]
    return "".join(f"  {line}\n" for line in lines)


def _known(value: Any, *without: str) -> str:
    """The fields of `value` that say something."""
    given = {each.name: getattr(value, each.name) for each in fields(value) if each.name not in without}
    usual = {each.name: each.default for each in fields(value)}
    return " ".join(f"{name}={_figure(one)}" for name, one in given.items() if one != usual[name])


def _figure(value: object) -> str:
    if isinstance(value, tuple):
        return ",".join(map(_figure, value))
    if isinstance(value, SourceLocation):
        return f"{Path(value.file).name}:{value.line}"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
