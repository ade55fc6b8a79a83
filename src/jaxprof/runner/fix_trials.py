"""A fix that changes no code is tried: a program, or a measured function, as it is and with one setting changed.

A program runs in fresh processes, one after the other. Nothing is recorded inside it: what is timed is what its user
waits for, from the start of the process to its end. As sides of such a comparison cannot take turns within a process,
the launch is the unit. The changed side is started once before the timed launches, which fills its caches and shows
whether it runs at all.

Both are planned from their session's records alone. A session can come from anywhere: its program is asked for first
(`from_file`), and has to be that of the same machine, unchanged. A measured function is compared with itself as the
sides of `ab` are.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shlex
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from jaxprof.errors import UsageError, WorkerError, system_words
from jaxprof.events import ComparisonPlanned, SideSpec
from jaxprof.files import is_as_recorded
from jaxprof.last_words import last_words
from jaxprof.operating_system import refuse_to_run
from jaxprof.private import FLAGS, HIDDEN, SETTINGS, kept_value
from jaxprof.reaper import REAPER
from jaxprof.redaction import REDACTED
from jaxprof.runner.from_file import (
    Ask,
    changed_variables,
    known_interpreter,
    program_words,
    recorded_on,
    with_variables,
)
from jaxprof.runner.interpreter import Interpreter
from jaxprof.runner.rerun import plan_again, recorded_starts
from jaxprof.runner.sides import HALF_WIDTH, MOST_LAUNCHES, compared_as, how_long, output_file, same_inputs
from jaxprof.runner.turns import LEAST_LAUNCHES, LONGER
from jaxprof.stats import MARGIN, Block, LaunchBlocks, TimeComparison, compare, narrow_enough, with_control

if TYPE_CHECKING:
    from jaxprof.analysis.finding import Finding
    from jaxprof.analysis.programs.derive import ProgramResult
    from jaxprof.events import SourceLocation
    from jaxprof.runner.planning import PlannedRun
    from jaxprof.session import Run, Session

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


_FIXED_PROGRAM = Path(__file__).resolve().parent.parent / "recorder" / "fixed_program.py"
RECORD_AGAIN = "Record it again here, then jaxprof explain --try."


def command_again(
    session: Session, program: ProgramResult, folder: Path, ask: Ask, python: Interpreter | None = None
) -> LaunchCommand:
    """How the program of a session is started, once `ask` allowed it. `folder` takes its output while it runs;
    `python`: the interpreter that the user named. Raises UsageError where it is not the program of this machine as it
    was recorded."""
    of_this_machine(session)
    if program.how not in ("script", "module") or not program.argv:
        raise UsageError("the program recorded itself, so how to start it is not known", RECORD_AGAIN)
    if session.header.process_count != 1:
        raise UsageError("it is one process of several, which cannot be started alone", "Try it in a single process.")
    nothing_redacted(program.argv)
    if not program.ended or program.exit_code != 0:
        how = "has not ended" if not program.ended else f"ended with exit code {program.exit_code}"
        raise UsageError(f"the recorded program {how}", "Record a run that does not fail.")
    if not Path(program.directory or ".").is_dir():
        raise UsageError(f"its folder {program.directory} is not here", RECORD_AGAIN)
    words = program_words(program.how, program.argv, program.directory)
    if program.how == "script":
        unchanged(Path(program.directory, words[0]), session, program.run)
    argv = (known_interpreter(program.run.python, python).path, *words)
    environment = environment_again(program.run)
    variables = with_variables(changed_variables(environment))
    ask([f"{shlex.join(argv)}, in {program.directory}{variables}{recorded_on(session)}"])
    return LaunchCommand(
        argv=argv,
        environment=environment,
        directory=program.directory,
        expected_seconds=program.wall_seconds,
        folder=folder,
    )


def of_this_machine(session: Session) -> None:
    """Raises UsageError for a session that another machine wrote."""
    if session.header.host != socket.gethostname():
        where = f" ({session.header.host})" if session.header.host else ""
        raise UsageError(f"the session is from another machine{where}", RECORD_AGAIN)


def nothing_redacted(argv: Sequence[str]) -> None:
    """Raises UsageError for a command line of which a session did not keep each word."""
    if any(REDACTED in word for word in argv):
        raise UsageError(f"its command line holds what looks like a secret ({REDACTED})", "Give that by a variable.")


def unchanged(file: Path, session: Session, run: Run) -> None:
    """Raises UsageError for a file that is not here, or is not what it was when the run was recorded: its findings may
    be about other lines by now."""
    if not file.is_file():
        raise UsageError(f"{file} is not here", RECORD_AGAIN)
    if not is_as_recorded(str(file), run.sources, session.header.wall_seconds):
        raise UsageError(f"{file.name} was changed after the session was recorded", RECORD_AGAIN)


def with_functions(
    command: LaunchCommand, how: str, functions: Sequence[SourceLocation] = (), report: str = ""
) -> LaunchCommand:
    """The same, started by what changes these functions in memory; `how` empty: by the same, with nothing changed."""
    plan = {"how": how, "functions": [[at.file, _name(at), at.line] for at in functions], "report": report}
    python, *words = command.argv
    return replace(command, argv=(python, str(_FIXED_PROGRAM), json.dumps(plan), *words))


def functions_to_jit(session: Session, program: ProgramResult, finding: Finding) -> list[SourceLocation]:
    """The functions that hold the operations of a finding, without the one that the loop stands in. Raises UsageError
    where there is none, or where they are not what was recorded."""
    key = program.hot.key
    in_loop = key[:2] if key is not None else None
    places = [at for at in (finding.where, *finding.others) if at is not None and (at.file, at.function) != in_loop]
    places = [at for at in places if _name(at).isidentifier()]
    if not places:
        raise UsageError(
            "the operations stand in the loop itself, not in a function of their own",
            "Put them into one, and record the program again.",
        )
    return _checked(session, program, places)


def compiled_functions(session: Session, program: ProgramResult, function: str) -> list[SourceLocation]:
    """Where the compiled function of a finding is defined. Raises UsageError where that is not known."""
    defined = [each.defined_at for each in program.functions if each.function == function]
    places = [replace(at, function=function) for at in defined if at is not None and at.line is not None]
    if not places or not function.isidentifier():
        raise UsageError(f"where {function} is defined is not known", "Make the change where it is called.")
    return _checked(session, program, places)


def _checked(session: Session, program: ProgramResult, places: Sequence[SourceLocation]) -> list[SourceLocation]:
    if program.how != "script":
        raise UsageError("the program is started as a module (-m), whose source cannot be changed in memory", "")
    for at in places:
        unchanged(Path(at.file), session, program.run)
    return list(places)


def _name(at: SourceLocation) -> str:
    """The function's own name: `step` of `Model.step`."""
    return (at.function or "").rpartition(".")[2]


def environment_again(run: Run) -> dict[str, str]:
    """Our environment with the settings that the program had. What a session does not keep (paths, what is no setting)
    stays as it is now. Raises UsageError for such a variable that is not set now."""
    recorded: Mapping[str, object] = run.environment.settings if run.environment is not None else {}
    variables = dict(os.environ)
    for name, value in recorded.items():
        if name.isupper() and HIDDEN in str(value) and name not in variables:
            raise UsageError(
                f"{name} was set when it was recorded, to a value that is not kept, and is not set here",
                f"export {name}=... as it was.",
            )
    for name in (*SETTINGS, *FLAGS) if recorded else ():
        value = recorded.get(name)
        if value is None:
            variables.pop(name, None)
        elif HIDDEN not in str(value) and kept_value(name, str(value)) == value:
            variables[name] = str(value)
    return variables


_OF_THE_DEVICE: Final = frozenset(
    ("JAX_PLATFORMS", "JAX_PLATFORM_NAME", "CUDA_DEVICE_ORDER", "CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES",
     "TPU_VISIBLE_CHIPS", "XLA_CLIENT_MEM_FRACTION", "XLA_PYTHON_CLIENT_MEM_FRACTION", "XLA_PYTHON_CLIENT_PREALLOCATE")
)  # fmt: skip
"""Variables that choosing the device sets."""
_SPARE_SECONDS: Final = 60.0
"""How much longer than the budget a process may live: its end is that of a call that never returns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedSide:
    """What B has that A has not."""

    title: str
    environment: Mapping[str, str]
    donated: tuple[int, ...] = ()
    ask: Ask
    """Is asked before anything is started."""
    python: Interpreter | None = None
    """The interpreter that the user named."""


def plan_fix(
    session: Session, run: Run, fixed: FixedSide, budget_seconds: float, folder: Path
) -> tuple[list[PlannedRun], Interpreter]:
    """The sides A, A' and B, with the interpreter of all of them. Their results are written to `folder`. Raises
    UsageError where the run cannot be had again as it was. Blocks: a child makes the inputs."""
    again = _again(session, run)
    interpreter = known_interpreter(run.python, fixed.python)
    before = _settings(run)
    new = {name: value for name, value in before.items() if os.environ.get(name) != value}
    fixed.ask([f"{line}{with_variables(new)}, by {interpreter.path}" for line in recorded_starts(session, run)])
    spec = replace(
        again.spec,
        **how_long(None, budget_seconds, budget_seconds + _SPARE_SECONDS),
        check=False,
        capture=False,
        fresh_arguments=bool(fixed.donated),
    )

    def side(label: str, **changes: Any) -> PlannedRun:
        return replace(
            again,
            spec=replace(spec, side=label, **changes),
            baseline=None,
            interpreter=interpreter,
            environment={**before, **(fixed.environment if label == "B" else {})},
            keep_output=output_file(folder, label),
            group_seconds=budget_seconds,
        )

    planned = [side("A"), side("A'"), side("B", donated=fixed.donated)]
    inputs = same_inputs(planned)
    name = spec.workload
    laid = {"A": before, "B": {**before, **fixed.environment}}
    titles = {"A": name, "B": f"{name}, {fixed.title}"}
    comparison = ComparisonPlanned(
        sides=[
            SideSpec(
                label=label,
                title=titles[label],
                python=interpreter.path,
                environment={key: kept_value(key, value) for key, value in laid[label].items()},
            )
            for label in titles
        ],
        margin=MARGIN,
        group_seconds=budget_seconds,
        inputs=list(inputs.specs),
        same_inputs=inputs.same_numbers,
        notes=[],
    )
    return compared_as(comparison, planned), interpreter


def _again(session: Session, run: Run) -> PlannedRun:
    of_this_machine(session)
    if run.plan.side:
        raise UsageError(f"{run.label} is a side of a comparison already", "jaxprof run measures the function alone.")
    if run.status != "ok":
        raise UsageError(f"{run.id} {run.label} {run.status}", "Measure it again.")
    planned = plan_again(session, run.id)[-1]
    nothing_redacted(planned.spec.argv)
    place = planned.spec.target.rpartition(":")[0]
    if place.endswith(".py"):
        unchanged(Path(place), session, run)
    return planned


def _settings(run: Run) -> dict[str, str]:
    """The variables that the run had, those of its device left out. Raises UsageError for one that is set here and was
    not there: what is laid over an environment cannot unset it."""
    recorded: Mapping[str, object] = run.environment.settings if run.environment is not None else {}
    laid: dict[str, str] = {}
    for name in (*SETTINGS, *FLAGS):
        value = recorded.get(name)
        if name in _OF_THE_DEVICE:
            continue
        if value is None and name in os.environ and recorded:
            raise UsageError(f"{name} is set here, and was not when it was measured", f"unset {name}")
        if value is not None and HIDDEN not in str(value) and kept_value(name, str(value)) == value:
            laid[name] = str(value)
    return laid
