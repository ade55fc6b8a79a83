"""What the HLO screen can look at: the compiled runs of a session, the modules of a file, a folder of XLA's dumps.

A program is a name and a way to read each of its stages; nothing is read before it is looked at, and reading blocks:
it is done in threads.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from jaxprof.errors import FileRefusedError

if TYPE_CHECKING:
    from jaxprof.hlo.model import Module
    from jaxprof.session import Session


class StageName(NamedTuple):
    """A stage: its name among the texts of a run, and its title."""

    name: str
    title: str
    short: str


STAGES = (
    StageName("jaxpr", "jaxpr", "jaxpr"),
    StageName("stablehlo", "StableHLO", "SHLO"),
    StageName("hlo_before", "HLO before", "before"),
    StageName("hlo", "HLO", "HLO"),
)
"""In the order in which a program goes through them; `hlo_before` is the module before XLA's passes."""
HLO_STAGES = frozenset({"hlo", "hlo_before"})


class Content(NamedTuple):
    """A stage as it was read: its text, and for HLO that was read elsewhere already its modules."""

    text: str
    modules: Sequence[Module] = ()


@dataclass(frozen=True, slots=True)
class Program:
    """One program in its stages."""

    key: str
    """A run's id, or a file's path with a module's number."""
    label: str
    stages: Mapping[str, Callable[[], Content]]
    """How to read each stage that there is. Raises JaxprofError."""
    module: int = 0
    """Which of the modules in its HLO text it is."""
    device: str = ""
    """`cuda:0`; empty for a file."""
    recorded_seconds: float | None = None
    """Unix time at which it was recorded: source files that are newer may say something else by now."""


def programs_of(session: Session) -> list[Program]:
    """The runs that have a text of one of the stages, in their order."""
    found = []
    for run in session.runs.values():
        names = [stage.name for stage in STAGES if stage.name in run.texts]
        if names:
            found.append(
                Program(
                    key=run.id,
                    label=run.label,
                    stages={name: _reader(session, run.id, name) for name in names},
                    device=run.plan.device,
                    recorded_seconds=session.header.wall_seconds or None,
                )
            )
    return found


def _reader(session: Session, run: str, name: str) -> Callable[[], Content]:
    return lambda: Content(session.text(run, name) or "")


# -- files ------------------------------------------------------------------------------------------------------------

_DUMP = re.compile(
    r"(?P<module>module_\d+\.[^/]+?)\.(?:(?P<before>before_optimizations)|(?:[\w.\-]+\.)?(?P<after>\w*after_optimizations))"
    r"\.(?:txt|hlo|pb)$"
)


_ENDINGS = (".hlo", ".hlo.gz", ".hlo.txt", ".hlo.pb")
_HEAD_BYTES = 1 << 16


def holds_hlo(path: Path) -> bool:
    """Whether `path` is to be opened as HLO, and not as a session or a profile: a file by its ending or by a
    `HloModule` near its beginning, a folder by the names that XLA gives to what it dumps."""
    try:
        if path.is_dir():
            return any(_DUMP.match(inside.name) or inside.name.endswith(_ENDINGS) for inside in path.iterdir())
        if not path.is_file() or path.name.endswith(".xplane.pb"):
            return False
        if path.name.endswith((*_ENDINGS, ".pb")):
            return True
        with path.open("rb") as opened:
            head = opened.read(_HEAD_BYTES)
    except OSError:
        return False
    return not head.startswith(b"{") and b"HloModule " in head


def programs_in(path: Path) -> list[Program]:
    """The programs of an HLO file, or of a folder that XLA dumped into. Blocks. Raises JaxprofError."""
    if path.is_dir():
        return _dumped(path)
    modules = _load(path)
    text = modules[0].source.text
    recorded = path.stat().st_mtime
    same_text = all(module.source is modules[0].source for module in modules)
    found = []
    for number, module in enumerate(modules):
        content = Content(text, modules) if same_text else Content(module.source.text, [module])
        name = module.name or f"module {number + 1}"
        found.append(
            Program(
                key=f"{path}#{number}",
                label=f"{name} · {path.name}",
                stages={"hlo": lambda content=content: content},  # type: ignore[misc]
                module=number if same_text else 0,
                recorded_seconds=recorded,
            )
        )
    return found


def _dumped(folder: Path) -> list[Program]:
    """One program for each module of the dump: its last form, and its first where that was dumped too."""
    stages: dict[str, dict[str, Path]] = {}
    for path in sorted(folder.iterdir()):
        named = _DUMP.match(path.name)
        if named is not None:
            stages.setdefault(named["module"], {})["hlo_before" if named["before"] else "hlo"] = path
    if not stages:
        texts = [path for path in sorted(folder.iterdir()) if path.suffix in (".hlo", ".txt", ".pb")]
        stages = {path.stem: {"hlo": path} for path in texts}
    if not stages:
        raise FileRefusedError(
            f"{folder} holds no HLO", "XLA_FLAGS=--xla_dump_to=FOLDER makes such a folder, with .txt or .pb files."
        )
    return [
        Program(
            key=str(folder / name),
            label=name,
            stages={stage: _file_reader(path) for stage, path in paths.items()},
            recorded_seconds=next(iter(paths.values())).stat().st_mtime,
        )
        for name, paths in stages.items()
    ]


def _file_reader(path: Path) -> Callable[[], Content]:
    def read() -> Content:
        modules = _load(path)
        return Content(modules[0].source.text, modules)

    return read


def _load(path: Path) -> list[Module]:
    from jaxprof.hlo import files

    if not path.is_file():
        raise FileRefusedError(f"{path}: no such file", "Give HLO text, an HLO proto, or a folder of XLA's dumps.")
    return files.load(path)
