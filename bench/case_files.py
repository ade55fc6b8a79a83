"""Small programs with one thing planted in each, or nothing: how a case is written down and judged.

A case is a file of `bench/cases/`, written as its author would have written it. Its first lines are comments that only
the harness reads, one `key: value` each:

    about        what is planted, for the table; no name in the program says it
    verdict      the steady-state verdict that it must get: alternatives with `|`; `-` where none may be given
    expect       codes that must be among the findings, the first one in the first place; alternatives with `|`
    forbid       codes that must not be among them; `*`: no code besides those expected and allowed
    allow        codes that may be there although `*` forbids the rest
    lines        `code@marker`: the finding's line is one that carries the comment `# <- marker`
    advice-not   a regular expression that no finding's message or fix may match; may be given several times
    mended       the twin that has not the first expected finding; its own header forbids it
    needs        packages without which it cannot run
    path         a folder beside the case that stands on its PYTHONPATH

Its one argument is a factor on the number of steps; `bench/findings.py` runs them.
"""

import json
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import jaxprof
from jaxprof.events import STAGES

CASES: Final = Path(__file__).parent / "cases"
_PARTS: Final = ("host", "wait", "dispatch", "data", "copy", "device", "compile")
VERDICTS: Final = (*(f"{part}-bound" for part in _PARTS), "idle")
NONE: Final = "-"
_ONE: Final = ("about", "verdict", "expect", "forbid", "allow", "lines", "mended", "needs", "path")
_SEVERAL: Final = ("advice-not",)
_OF_TIMED_LINES: Final = frozenset({"dispatch_bound"})
"""Findings that Python 3.11, which times no lines, cannot have."""
_NO_WORK: Final = frozenset({*STAGES, "import", "paused", "not_seen"})


@dataclass(frozen=True, slots=True)
class Case:
    """One program, and what must and must not be said of it."""

    name: str
    path: Path
    about: str
    verdicts: tuple[str, ...]
    """Empty: any."""
    expected: tuple[tuple[str, ...], ...]
    """Each the alternatives of one; the first must be the first finding."""
    forbidden: frozenset[str]
    allowed: frozenset[str]
    """Neither expected nor forbidden by `*`."""
    lines: tuple[tuple[str, frozenset[int]], ...]
    """The code of a finding, and the numbers of the lines that may be its line."""
    advice_not: tuple[re.Pattern[str], ...] = ()
    mended: str = ""
    needs: tuple[str, ...] = ()
    python_path: str = ""


@dataclass(frozen=True, slots=True)
class Found:
    """One finding, as the JSON form of a session has it."""

    code: str
    message: str
    fix: str
    line: int | None
    file: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What jaxprof reported about a program."""

    findings: tuple[Found, ...]
    """Most important first."""
    verdict: str
    """`NONE` where none was given."""
    exit_code: int
    stderr: str
    wall_seconds: float
    session: dict[str, Any] = field(default_factory=dict)
    """All that the session says (docs/json.md)."""

    @property
    def timed(self) -> bool:
        """Whether the lines of loops were timed: from Python 3.12 on."""
        return "steps_not_counted" not in json.dumps(self.session)

    @property
    def busy(self) -> bool:
        """Whether the loop waited for a processor for most of its time: what else it seems to do is chance then."""
        verdict = self.session["program"]["verdict"] if self.session else None
        return verdict is not None and "waited too long for a processor" in (verdict["reason"] or "")

    @property
    def work_seconds(self) -> float:
        """Seconds in which the program did its work: without imports, compiling and pauses."""
        shares = self.session["program"]["timeline"] if self.session else []
        return sum(share["seconds"] for share in shares if share["state"] not in _NO_WORK)


@dataclass(frozen=True, slots=True)
class Fault:
    """One way in which the report is wrong."""

    kind: str
    """`run`, `verdict`, `missing` (an expected one is not there), `first` (there, and not in the first place),
    `forbidden`, `line` or `advice`."""
    text: str


def cases() -> list[Case]:
    """Every case, by name. Raises ValueError for a header that is not right."""
    return [read_case(path) for path in sorted(CASES.glob("*.py"))]


def read_case(path: Path) -> Case:
    """The case in a file. Raises ValueError for a header that is not right."""
    text = path.read_text()
    one, several = read_header(path.name, text, _ONE, _SEVERAL)
    for key in ("about", "verdict"):
        if not one.get(key):
            raise ValueError(f"{path.name}: it has no `{key}`")
    verdicts = split_words(one["verdict"], "|")
    if unknown := [word for word in verdicts if word not in (*VERDICTS, NONE)]:
        raise ValueError(f"{path.name}: no verdict is called {unknown[0]}")
    return Case(
        name=path.stem,
        path=path,
        about=one["about"],
        verdicts=verdicts,
        expected=tuple(split_words(word, "|") for word in split_words(one.get("expect", ""))),
        forbidden=frozenset(split_words(one.get("forbid", ""))),
        allowed=frozenset(split_words(one.get("allow", ""))),
        lines=tuple(_lines(path.name, text, word) for word in split_words(one.get("lines", ""))),
        advice_not=tuple(re.compile(pattern) for pattern in several.get("advice-not", [])),
        mended=one.get("mended", ""),
        needs=split_words(one.get("needs", "")),
        python_path=one.get("path", ""),
    )


def read_header(
    name: str, text: str, once: Collection[str], repeated: Collection[str] = ()
) -> tuple[dict[str, str], dict[str, list[str]]]:
    """The values of the keys that a program's header gives `once`, and of those that it may give several times. Raises
    ValueError for a line with another key."""
    one: dict[str, str] = {}
    several: dict[str, list[str]] = {}
    for line in text.splitlines():
        if not line.startswith("# "):
            break
        key, colon, value = line[2:].partition(":")
        if colon and key in once and key not in one:
            one[key] = value.strip()
        elif colon and key in repeated:
            several.setdefault(key, []).append(value.strip())
        else:
            raise ValueError(f"{name}: its header has a line that nobody reads: {line}")
    return one, several


def split_words(text: str, by: str = ",") -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(by) if word.strip())


def _lines(name: str, text: str, word: str) -> tuple[str, frozenset[int]]:
    code, at, marker = word.partition("@")
    numbers = marked_lines(text, marker)
    if not at or not numbers:
        raise ValueError(f"{name}: no line carries the marker of {word}")
    return code, numbers


def marked_lines(text: str, marker: str) -> frozenset[int]:
    """The numbers of the lines that carry the comment `# <- marker`."""
    return frozenset(
        number for number, line in enumerate(text.splitlines(), 1) if line.rstrip().endswith(f"# <- {marker}")
    )


def outcome_of(session: Path, exit_code: int = 0, stderr: str = "", seconds: float = 0.0) -> Outcome:
    """What a session file says of the program in it."""
    said = jaxprof.load(session).to_dict()
    found = tuple(_found(one) for one in said["findings"])
    verdict = (said["program"].get("verdict") or {}).get("kind") or NONE
    return Outcome(found, verdict, exit_code, stderr, seconds, said)


def _found(data: dict[str, Any]) -> Found:
    file, _, line = (data["place"] or "").rpartition(":")
    return Found(data["code"], data["message"], data["fix"], int(line) if line.isdigit() else None, file)


def judge(case: Case, outcome: Outcome) -> list[Fault]:
    """What is wrong with what was said; empty where all is as it must be."""
    if outcome.exit_code != 0:
        return [Fault("run", f"it ended with {outcome.exit_code}: {outcome.stderr[-2000:]}")]
    return [*_verdict_faults(case, outcome), *_finding_faults(case, outcome), *_place_faults(case, outcome)]


def _verdict_faults(case: Case, outcome: Outcome) -> Iterator[Fault]:
    known = (outcome.timed and not outcome.busy) or outcome.verdict != NONE
    if case.verdicts and known and outcome.verdict not in case.verdicts:
        yield Fault("verdict", f"{outcome.verdict}, not {' or '.join(case.verdicts)}")


def _finding_faults(case: Case, outcome: Outcome) -> Iterator[Fault]:
    codes = [one.code for one in outcome.findings]
    for place, alternatives in enumerate(case.expected):
        ranks = [codes.index(code) for code in alternatives if code in codes]
        if not ranks and (outcome.busy or (not outcome.timed and set(alternatives) <= _OF_TIMED_LINES)):
            continue
        if not ranks:
            yield Fault("missing", f"no {' or '.join(alternatives)} among {', '.join(codes) or 'nothing'}")
        elif place == 0 and min(ranks) != 0:
            yield Fault(
                "first", f"{codes[min(ranks)]} is number {min(ranks) + 1}, after {', '.join(codes[: min(ranks)])}"
            )
    allowed = case.allowed.union(*case.expected)
    for one in outcome.findings:
        if one.code in case.forbidden or ("*" in case.forbidden and one.code not in allowed):
            yield Fault("forbidden", f"{one.code} at line {one.line}: {one.message}")


def _place_faults(case: Case, outcome: Outcome) -> Iterator[Fault]:
    for code, allowed in case.lines:
        found = [one for one in outcome.findings if one.code == code]
        if found and not any(one.line in allowed and one.file.endswith(case.path.name) for one in found):
            lines = ", ".join(str(one.line) for one in found)
            yield Fault("line", f"{code} is at line {lines}, not {' or '.join(map(str, sorted(allowed)))}")
    for pattern in case.advice_not:
        for one in outcome.findings:
            if pattern.search(f"{one.message}\n{one.fix}"):
                yield Fault("advice", f"{one.code} says `{pattern.pattern}`: {one.message} {one.fix}")
