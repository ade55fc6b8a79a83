"""Runs a program as it is and with one setting changed, in fresh processes one after the other: which ends sooner?

Nothing is recorded inside it: what is timed is what its user waits for, from the start of the process to its end. As
sides of such a comparison cannot take turns within a process, the launch is the unit. The changed side is started once
before the timed launches, which fills its caches and shows whether it runs at all.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from jaxprof.errors import WorkerError, system_words
from jaxprof.last_words import last_words
from jaxprof.operating_system import refuse_to_run
from jaxprof.reaper import REAPER
from jaxprof.runner.launch_rule import LEAST_LAUNCHES, LONGER
from jaxprof.runner.sides import HALF_WIDTH, MOST_LAUNCHES
from jaxprof.stats import Block, LaunchBlocks, TimeComparison, compare, narrow_enough, with_control

SideName = Literal["A", "A'", "B"]
_ORDERS: Final[tuple[tuple[SideName, ...], ...]] = (
    ("A", "B", "A'"),
    ("A'", "A", "B"),
    ("B", "A'", "A"),
    ("A'", "B", "A"),
    ("A", "A'", "B"),
    ("B", "A", "A'"),
)
"""Of the rounds in turn: no side is always the first one."""
_LONGEST_FACTOR: Final = 10
_LONGEST_SECONDS: Final = 30.0
"""A launch that takes longer than the recorded one so many times, and so many seconds more, is ended."""
_WORDS: Final = 1 << 20
"""Bytes of a launch's output that are read back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchCommand:
    """How a program is started, and how long that may take."""

    argv: Sequence[str]
    """With its interpreter in front."""
    environment: Mapping[str, str]
    """All of it."""
    directory: str
    expected_seconds: float
    folder: Path
    """Where its output is written while it runs."""


@dataclass(frozen=True, slots=True)
class ProgramLaunch:
    """One launch, from the start of the process to its end."""

    seconds: float
    exit_code: int
    """Below 0: the signal that ended it."""
    output: str
    """What it printed on stdout."""
    last_words: str
    """What went wrong, of its stderr: the line that names the exception, or the last one."""
    too_long: bool

    @property
    def problem(self) -> str:
        """Why it failed; empty if it did not."""
        if self.too_long:
            return "it was ended, because it took far longer than the recorded run"
        if self.exit_code == 0:
            return ""
        how = f"exit code {self.exit_code}" if self.exit_code > 0 else f"signal {-self.exit_code}"
        return f"{how}: {self.last_words}" if self.last_words else how


@dataclass(frozen=True, slots=True)
class ProgramLaunches:
    """All launches of the two sides and of the control."""

    filling: ProgramLaunch
    """Of the changed side, before the timed ones."""
    by_side: Mapping[SideName, Sequence[ProgramLaunch]]

    @property
    def problem(self) -> tuple[str, str]:
        """The side that failed, with why; empty if all did."""
        if self.filling.problem:
            return "B", self.filling.problem
        for side, launches in self.by_side.items():
            for each in launches:
                if each.problem:
                    return side, each.problem
        return "", ""

    def seconds(self, side: SideName) -> tuple[float, ...]:
        """How long each launch of a side took."""
        return tuple(each.seconds for each in self.by_side[side])

    def compared(self) -> TimeComparison:
        """B beside A, judged by A' beside A; launches follow each other, so there have to be several."""
        return with_control(self._beside("B"), self._beside("A'"))

    def _beside(self, other: SideName) -> TimeComparison:
        pairs = zip(self.seconds("A"), self.seconds(other), strict=False)
        rounds = [LaunchBlocks((Block(0, (ours,)), Block(1, (theirs,))), in_turns=False) for ours, theirs in pairs]
        return compare(rounds, by_width=True)


def launch_sides(
    unchanged: LaunchCommand,
    changed: LaunchCommand,
    filling: ProgramLaunch,
    budget_seconds: float,
    told: Callable[[str], None],
) -> ProgramLaunches:
    """Launches both sides in turn until the ratio is known to ± 2 %, the time is up, or there were ten rounds.

    `filling`: a launch of the changed side before. `told` is given a line before each round. Ends at the first launch
    that fails. Raises WorkerError if the program cannot be started.
    """
    by_side: dict[SideName, list[ProgramLaunch]] = {"A": [], "A'": [], "B": []}
    done = ProgramLaunches(filling, by_side)
    began = time.monotonic()
    for number, order in zip(range(1, MOST_LAUNCHES + 1), itertools.cycle(_ORDERS), strict=False):
        if done.problem[0]:
            break
        told(f"launch {number} of at most {MOST_LAUNCHES}")
        for side in order:
            last = launch(changed if side == "B" else unchanged)
            by_side[side].append(last)
            if last.problem:
                break
        allowed = budget_seconds if number >= LEAST_LAUNCHES else LONGER * budget_seconds
        over = (time.monotonic() - began) * (1 + 1 / number) > allowed
        if over or narrow_enough(done.compared(), HALF_WIDTH):
            break
    return done


def least_seconds(expected_seconds: float) -> float:
    """How long the fewest launches take that can say anything, where one takes `expected_seconds`."""
    return (1 + LEAST_LAUNCHES * len(_ORDERS[0])) * expected_seconds


def launch(command: LaunchCommand) -> ProgramLaunch:
    """Starts the program and waits for its end. Raises WorkerError if it cannot be started, UsageError on Windows."""
    refuse_to_run("trying a fix")
    output, errors = command.folder / "stdout", command.folder / "stderr"
    with output.open("wb") as out, errors.open("wb") as err:
        began = time.monotonic()
        try:
            process = subprocess.Popen(
                list(command.argv),
                cwd=command.directory or None,
                env=dict(command.environment),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
        except OSError as error:
            raise WorkerError(f"the program cannot be started: {system_words(error)}", "Record it again.") from error
        too_long = threading.Event()

        def end() -> None:
            too_long.set()
            _kill(process.pid)

        REAPER.add(process.pid, "")
        timer = threading.Timer(_LONGEST_FACTOR * command.expected_seconds + _LONGEST_SECONDS, end)
        timer.daemon = True
        timer.start()
        try:
            process.wait()  # with a timeout it would look every 50 ms
            seconds = time.monotonic() - began
        finally:
            timer.cancel()
            _kill(process.pid)
            process.wait()
            REAPER.drop(process.pid)
    return ProgramLaunch(
        seconds, process.returncode, _text(output), last_words(_text(errors).splitlines()), too_long.is_set()
    )


def _kill(group: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def _text(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(_WORDS).decode("utf-8", "replace")
