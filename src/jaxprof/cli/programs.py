"""From what was given to `jaxprof hlo` to programs: a session's runs, a dump, or something that is compiled now.

A TARGET is, in this order: an existing path (a session, HLO text or proto, the folder of an XLA dump, a profile that
holds HLO, a Python file's function), `module:function`, a workload (`name` or `name:variant`), and the name of a kept
session.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from jaxprof.errors import FileRefusedError, JaxprofError, UsageError, unknown_name

if TYPE_CHECKING:
    from jaxprof.hlo.analysis import Device
    from jaxprof.hlo.model import Module
    from jaxprof.session import Run, Session

DUMPED = ("*after_optimizations*.txt", "*after_optimizations*.hlo", "*.hlo", "*.hlo.pb", "*.txt", "*.pb")
"""What an XLA dump folder is looked through for, the first kind that there is."""
STAGES = frozenset({"jaxpr", "stablehlo", "hlo_before", "hlo"})
"""Texts of a run that are of its program; others are its source, or a timeline."""
PROFILES = (".xplane.pb", ".xplane.pb.gz", ".trace.json", ".trace.json.gz")


@dataclass(eq=False)
class Program:
    """One program with its texts; its HLO is parsed when it is first looked at."""

    label: str
    texts: Mapping[str, str]
    """By stage; `hlo` may be missing where `modules` were given."""
    modules: Sequence[Module] = ()
    device: Device | None = None
    """With the ceilings for the roofline; None where nothing is known of it."""
    run: Run | None = None
    elsewhere: bool = False
    notes: list[str] = field(default_factory=list)

    @cached_property
    def module(self) -> Module:
        """The optimised HLO. Raises UsageError where there is none, HloError where it cannot be read."""
        if self.modules:
            return self.modules[0]
        text = self.texts.get("hlo")
        if text is None:
            raise UsageError(f"{self.label} has no HLO", "Compiled variants have it: jaxprof run NAME --variant jit.")
        from jaxprof.hlo.parse import module

        return module(text)


@dataclass(frozen=True, slots=True)
class Wanted:
    """How a program that is compiled now is to be compiled."""

    variant: str = ""
    preset: str = "quick"
    settings: Mapping[str, str] = field(default_factory=dict)
    arguments: Sequence[str] = ()
    targets: str = ""
    """As `--for` was given."""
    shard: Sequence[str] = ()
    python: Path | None = None
    keep_constants: bool = False
    out: Path | None = None
    force: bool = False


def find_programs(target: str, run: str | None, number: int | None, wanted: Wanted) -> list[Program]:
    """The programs that `target` means. Raises JaxprofError naming what is near, or what to do."""
    path = Path(target).expanduser()
    if path.exists() and not target.endswith(".py"):
        _no_compile(target, wanted)
        return _of_path(path, run, number)
    workload, _, variant = target.partition(":")
    from jaxprof.workloads import names

    if workload in names():
        return _compiled(workload, variant, wanted)
    if ":" in target or target.endswith(".py"):
        return _compiled(target, "", wanted)
    from jaxprof.store import Library

    try:
        kept = Library().find(target)
    except UsageError as error:
        if "in the name of" in error.what:
            raise
        raise unknown_name("path, workload or session", target, names()) from None
    _no_compile(target, wanted)
    return _of_path(kept, run, number)


def _no_compile(target: str, wanted: Wanted) -> None:
    if wanted.targets:
        raise UsageError(
            f"{target} holds programs that are compiled already", "--for wants a workload or a function to compile."
        )


def _of_path(path: Path, run: str | None, number: int | None) -> list[Program]:
    from jaxprof.store.codec import EXTENSION

    if path.is_dir():
        return _of_folder(path, run, number)
    if path.suffix == EXTENSION or _begins_with_brace(path):
        from jaxprof.session import Session
        from jaxprof.store import load

        return _of_session(load(path, Session), str(path), run)
    if path.name.endswith(PROFILES):
        return _of_profile(path, run, number)
    if run is not None:
        raise UsageError(f"{path} is no session", "--run chooses among the runs of a session.")
    from jaxprof.hlo import files

    return _of_modules(files.load(path), str(path), number)


def _begins_with_brace(path: Path) -> bool:
    try:
        with path.open("rb") as opened:
            return opened.read(1) == b"{"
    except OSError:
        return False


def _of_folder(path: Path, run: str | None, number: int | None) -> list[Program]:
    """The modules of an XLA dump (`--xla_dump_to`): those after optimisation, where the names tell. Else of a profile
    that jax.profiler wrote there."""
    from jaxprof.hlo import files
    from jaxprof.hlo.errors import HloError

    for pattern in DUMPED:
        programs: list[Program] = []
        for file in sorted(path.glob(pattern)):
            if file.name.endswith(PROFILES):
                continue
            try:
                programs += [Program(file.name, {"hlo": module.text}, [module]) for module in files.load(file)]
            except HloError:
                continue  # a dump folder also holds LLVM IR, protos of other things and logs
        if programs:
            return _numbered(programs, number, str(path))
    try:
        return _of_profile(path, run, number)
    except FileRefusedError:
        raise UsageError(f"no HLO in the folder {path}", "XLA_FLAGS=--xla_dump_to=FOLDER writes some.") from None


def _of_profile(path: Path, run: str | None, number: int | None) -> list[Program]:
    """The programs of a profile, which has their HLO unless it is a Chrome trace. Raises FileRefusedError."""
    from jaxprof.cli.profiles import imported

    with imported(path) as (_, session):
        try:
            return _numbered(_of_session(session, str(path), run), number, str(path))
        except UsageError as error:
            if run is not None or number is not None:
                raise
            mend = "An .xplane.pb has it where enable_hlo_proto was on (the default); a .trace.json never has."
            raise UsageError(f"{path} holds no HLO", mend) from error


def _of_modules(modules: Sequence[Module], label: str, number: int | None) -> list[Program]:
    programs = [Program(module.name or label, {"hlo": module.text}, [module]) for module in modules]
    return _numbered(programs, number, label)


def _numbered(programs: list[Program], number: int | None, label: str) -> list[Program]:
    if number is None:
        return programs
    if number > len(programs):
        raise UsageError(f"{label} has {len(programs)} modules", f"--module takes 1 to {len(programs)}.")
    return [programs[number - 1]]


def _of_session(session: Session, label: str, run: str | None) -> list[Program]:
    from jaxprof.results.ceilings import ceilings_for, device_elsewhere

    if run is not None and run not in session.runs:
        raise unknown_name("run", run, session.runs)
    chosen = [found for found in session.runs.values() if found.texts and (run is None or found.id == run)]
    programs = [
        Program(
            f"{found.id} {found.label}",
            _Texts(session, found),
            device=ceilings_for(session, found),
            run=found,
            elsewhere=device_elsewhere(found) is not None,
        )
        for found in chosen
        if not STAGES.isdisjoint(found.texts)
    ]
    if not programs:
        which = f"run {run} ({session.runs[run].label})" if run is not None else f"no run of {label}"
        verb = "has no compiled program" if run is not None else "has a compiled program"
        raise UsageError(f"{which} {verb}", "Compiled variants have one: jaxprof run NAME --variant jit.")
    return programs


class _Texts(Mapping[str, str]):
    """The texts of a run, each decoded when it is asked for."""

    def __init__(self, session: Session, run: Run) -> None:
        self._session, self._run = session, run

    def __getitem__(self, name: str) -> str:
        if name not in self._run.texts:
            raise KeyError(name)
        return self._session.text(self._run.id, name) or ""

    def __iter__(self):  # type: ignore[no-untyped-def]
        return iter(self._run.texts)

    def __len__(self) -> int:
        return len(self._run.texts)


def _compiled(target: str, variant: str, wanted: Wanted) -> list[Program]:
    """Lowers and compiles now, in a child: nothing is run. Raises JaxprofError where that fails."""
    from jaxprof.cli.choosing import find_cards
    from jaxprof.store import LogWriter, new_header
    from jaxprof.targets import parse_targets
    from jaxprof.telemetry.environment import environment_facts
    from jaxprof.worker import Choice, Conductor, find_interpreter, plan_compiles

    interpreter = find_interpreter(wanted.python)
    targets = parse_targets(wanted.targets) if wanted.targets else []
    (card,) = find_cards([target], interpreter, wanted.arguments)
    choice = Choice(
        preset=wanted.preset,
        settings=wanted.settings,
        arguments=wanted.arguments,
        keep_constants=wanted.keep_constants,
    )
    planned = plan_compiles(card, variant or wanted.variant, choice, targets, wanted.shard)
    writer = LogWriter(new_header(environment_facts()), wanted.out, replace_existing=wanted.force)
    conductor = Conductor(writer, interpreter, lambda batch: None)
    try:
        conductor.add(planned)
        conductor.run()
    finally:
        conductor.close()
    session = conductor.session
    for run in session.runs.values():
        if run.status != "ok":
            raise JaxprofError(f"{run.label}: {run.error}", run.advice)
    programs = _of_session(session, target, None)
    for program in programs:
        if program.run is not None:
            program.notes += [warning.message for warning in program.run.warnings if warning.code == "sharding"]
    return programs
