"""The programs of a run of pytest as one session: kept in `.jaxprof` beside the tests, found again, compared.

A program is found again by the id of its test, the name of its function, and its number among the programs of that
function in the test.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from jaxprof.analysis.gate import GateLimit, GateRow, judged
from jaxprof.analysis.run_difference import RunDifference, run_difference
from jaxprof.api.session import Session, load
from jaxprof.errors import StorageError, UsageError, not_found
from jaxprof.events import SessionClosed
from jaxprof.session import Run
from jaxprof.session.log import Library, new_header
from jaxprof.session.log.baselines import Baselines
from jaxprof.session.log.codec import decode_line
from jaxprof.session_names import EXTENSION

FOLDER: Final = ".jaxprof"
_NAME: Final = re.compile(r"[\w.+-]+")
_NUMBERED: Final = re.compile(r"(?P<number>\d{4,})(?:_(?P<name>.*))?")
_ATTEMPTS: Final = 100


def refuse_wrong_name(name: str) -> None:
    """Raises UsageError for a name that no file can have, and for a path: pytest takes the word after
    `--jaxprof-save` as its value."""
    if name and (not _NAME.fullmatch(name) or Path(name).exists()):
        raise UsageError(
            f"--jaxprof-save {name} is a path, or no name", "Write --jaxprof-save, or --jaxprof-save=NAME."
        )


def session_of(lines: Mapping[str, Iterable[str]]) -> Session:
    """One session of the programs of all tests, with their runs numbered. `lines`: by the test's id."""
    from jaxprof.api.profiling import header_environment

    session = Session(new_header(header_environment()))
    count = 0
    for of_test in lines.values():
        numbers: dict[str, str] = {}
        for line in of_test:
            event = decode_line(line.encode())
            if event.run not in numbers:
                count += 1
                numbers[event.run] = f"r{count}"
            session.apply(replace(event, run=numbers[event.run]))
    session.apply(SessionClosed())
    return session


def save(session: Session, root: Path, name: str) -> Path:
    """Writes `.jaxprof/0001_NAME.jaxprof` below `root`, with the next number. Raises StorageError."""
    folder = root / FOLDER
    for _ in range(_ATTEMPTS):
        numbers = [int(match["number"]) for path in _kept(folder) if (match := _NUMBERED.fullmatch(path.stem))]
        stem = f"{max(numbers, default=0) + 1:04d}"
        path = folder / f"{stem}_{name}{EXTENSION}" if name else folder / f"{stem}{EXTENSION}"
        if not path.exists():
            return session.save(path)
    raise StorageError(f"no free number in {folder}", "Other runs are saving there.")


def find(name: str, root: Path) -> Path:
    """The session that `--jaxprof-compare` names: a path, one of `.jaxprof` by its number, its name (the newest) or
    both, a baseline (`jaxprof baseline save`), or a session that `jaxprof sessions` lists. Raises UsageError."""
    kept = _kept(root / FOLDER)
    for path in reversed(kept):
        match = _NUMBERED.fullmatch(path.stem)
        names = {path.name, path.stem, *(match.groups() if match is not None else ())}
        if name in names:
            return path
    found = Baselines().search(name) or Library().search(name)
    if found is None:
        raise not_found(f"session in {FOLDER}", name, [path.stem for path in kept])
    return found


def _kept(folder: Path) -> list[Path]:
    """By number, the newest last."""
    return sorted(folder.glob(f"*{EXTENSION}"), key=lambda path: (len(path.stem.partition("_")[0]), path.stem))


@dataclass(frozen=True, slots=True)
class ComparedPrograms:
    """The programs of the tests beside those of a base."""

    base: Path
    pairs: Mapping[str, RunDifference]
    """By the id of the run in the present session."""
    new: tuple[Run, ...]
    """Those that the base does not have."""
    gone: tuple[Run, ...]
    """Those of the base that were not called this time."""
    limits: tuple[GateRow, ...]

    @property
    def passed(self) -> tuple[GateRow, ...]:
        """The limits that were passed."""
        return tuple(row for row in self.limits if row.state == "passed")


def compared(base: Path, session: Session, limits: tuple[GateLimit, ...]) -> ComparedPrograms:
    """Each program beside the one of the same test and name. Raises FileRefusedError if `base` is no session."""
    before = load(base)
    earlier = {_name(run): run for run in before.runs.values()}
    pairs: dict[str, RunDifference] = {}
    new: list[Run] = []
    for run in session.runs.values():
        partner = earlier.pop(_name(run), None)
        if partner is None:
            new.append(run)
        else:
            pairs[run.id] = run_difference(before, partner, session, run)
    rows = tuple(row for run_id, pair in pairs.items() for row in judged(session.runs[run_id].label, pair, limits))
    return ComparedPrograms(base, pairs, tuple(new), tuple(earlier.values()), rows)


def _name(run: Run) -> tuple[str, str]:
    return run.plan.workload, run.plan.variant
