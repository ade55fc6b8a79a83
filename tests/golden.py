"""Texts that are frozen in `tests/net`: all that is said of a case, for a reader to look at."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jaxprof.events import SourceLocation
from jaxprof.events.finding import Finding
from jaxprof.findings import Explanation

NET = Path(__file__).parent / "net"
_ROUNDING = 1e-15
"""Less than that is what rounding leaves of nothing."""


def kept(path: Path, text: str) -> None:
    """Fails if the file has another text."""
    if os.environ.get("UPDATE_NET"):
        path.write_text(text)
    test = os.environ["PYTEST_CURRENT_TEST"].partition("::")[0]
    assert text == path.read_text(), f"UPDATE_NET=1 pytest {test} writes {path.name} again: look at the difference"


def held(name: str, text: str) -> None:
    """Fails if the file of this name in the net has another text."""
    kept(NET / name, text)


def held_cases(name: str, told: Mapping[str, str]) -> None:
    """Fails if one of these cases has another text in the file; the texts are indented."""
    held(name, "\n".join(f"{case}\n{text}" for case, text in told.items()))


def cases(name: str) -> list[str]:
    """The cases of such a file, which are its lines at the margin: a further one is such a line, and `UPDATE_NET=1`
    writes what is said of it below."""
    return [line for line in (NET / name).read_text().splitlines() if line and not line.startswith(" ")]


def commands() -> dict[str, list[str]]:
    """By file, the commands whose answers it has: lines `$ jaxprof WORDS`. A further one is such a line."""
    found = {path.name: re.findall(r"^\$ jaxprof (.+)$", path.read_text(), re.MULTILINE) for path in NET.glob("*.txt")}
    return {name: lines for name, lines in sorted(found.items()) if lines}


def finding_text(finding: Finding) -> str:
    """All that a finding says: its sentence, its advice, and each figure and place that it has."""
    figures = _known(finding, "code", "message", "fix", "own_fix")
    return f"  {finding.code}: {finding.message}\n  {finding.fix}\n  {figures}\n"


def explanation_text(explained: Explanation) -> str:
    """All that an explanation says of a session: its findings with what they cost, and what it does not say."""
    lines = [explained.subject]
    for found in explained.findings:
        lines += [f"{found.code}: {found.message}", _known(found, "code", "message", "own_fix")]
    lines += [f"? {each.code}: {each.reason}  {each.command}" for each in explained.abstentions]
    return "".join(f"  {line}\n" for line in lines)


def figures_text(*values: Any, without: Sequence[str] = ()) -> str:
    """Every field of these values that says something, a line each."""
    return "".join(f"  {_known(value, *without) if is_dataclass(value) else _figure(value)}\n" for value in values)


def _known(value: Any, *without: str) -> str:
    """The fields of `value` that say something."""
    given = {each.name: getattr(value, each.name) for each in fields(value) if each.name not in without}
    usual = {each.name: each.default for each in fields(value)}
    return " ".join(f"{name}={_figure(one)}" for name, one in given.items() if _figure(one) != _figure(usual[name]))


def _figure(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return _figure(value.tolist())
    if isinstance(value, tuple | list):
        rows = any(isinstance(one, tuple | list) for one in value)
        return ("; " if rows else ",").join(map(_figure, value))
    if isinstance(value, dict):
        return " ".join(f"{name}:{_figure(one)}" for name, one in value.items())
    if isinstance(value, SourceLocation):
        return f"{Path(value.file).name}:{value.line}"
    if is_dataclass(value):
        return f"({_known(value)})"
    if isinstance(value, float):
        return "0" if abs(value) < _ROUNDING else f"{value:.6g}"
    return str(value)
