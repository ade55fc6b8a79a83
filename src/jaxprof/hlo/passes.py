"""Show what each XLA pass changed, from a folder that XLA dumped into with `--xla_dump_hlo_pass_re=.*`.

XLA writes a module's text after a pass (and at the start of a pipeline), under a name that says which:
`module_0006.jit_f.0006.simplification.after_algsimp.before_simplify-sorts.txt`. Passes that changed nothing leave no
file, so the list shows what happened, in order. Two states are compared by the fingerprints of their computations,
which do not depend on names, and by the number of instructions of each opcode.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jaxprof.errors import HloError, system_words
from jaxprof.hlo.analysis.fingerprint import diff
from jaxprof.hlo.model import Module
from jaxprof.hlo.read.files import load
from jaxprof.pairs import Pair

_EXTENSION: Final = r"\.(?:txt|hlo|hlo\.pb|pb)(?:\.gz)?$"
_PASS: Final = re.compile(
    r"(?P<module>(?:\d+\.)?module_\d+)\.(?P<name>.+?)\.(?P<number>\d{4,})\.(?P<pipeline>.+?)\.after_(?P<done>.+?)"
    r"(?:\.before_(?P<next>.+?))?" + _EXTENSION
)
_STATE: Final = re.compile(
    r"(?P<module>(?:\d+\.)?module_\d+)\.(?P<name>.+?)\.(?P<state>before_optimizations|[\w\-.]*?after_optimizations)"
    + _EXTENSION
)
BEFORE: Final = "before optimization"
AFTER: Final = "after optimization"


@dataclass(frozen=True, slots=True)
class PassChange:
    """One state of a module that XLA dumped, and how it differs from the previous one."""

    number: int | None
    """XLA's own number in the file's name; None for the states before and after all passes."""
    pipeline: str
    name: str
    """Name of the pass; `pipeline-start` if XLA dumped the state before the first pass of a pipeline."""
    file: str
    opcodes_before: Mapping[str, int]
    """Number of instructions of each opcode, in all computations; empty for the first state."""
    opcodes_after: Mapping[str, int]
    same: int
    """Number of unchanged computations."""
    differences: tuple[Pair[str], ...]
    """Names of the computations that changed, are new, or are gone; empty for the first state."""
    problem: str = ""
    """Why this file could not be read; the next state is then compared with the one before it."""

    @property
    def changed(self) -> bool:
        """Whether anything but names differs."""
        return bool(self.differences) or (bool(self.opcodes_before) and self.opcodes_before != self.opcodes_after)

    @property
    def opcode_changes(self) -> dict[str, int]:
        """Number of instructions of each opcode that were added (or, if negative, removed), largest change first."""
        if not self.opcodes_before:
            return {}
        every = self.opcodes_before.keys() | self.opcodes_after.keys()
        changes = {name: self.opcodes_after.get(name, 0) - self.opcodes_before.get(name, 0) for name in every}
        order = sorted((name for name, by in changes.items() if by), key=lambda name: (-abs(changes[name]), name))
        return {name: changes[name] for name in order}


@dataclass(frozen=True, slots=True)
class ModulePasses:
    """Changes that XLA made to one module."""

    module: str
    """Name in the dump's file names: `module_0006`."""
    name: str
    passes: tuple[PassChange, ...]
    """States in the order of the passes; the state before all passes comes first, if the dump has it."""


@dataclass(frozen=True, slots=True)
class _File:
    path: Path
    number: int | None
    pipeline: str
    name: str


def modules_with_passes(folder: Path) -> list[tuple[str, str, int]]:
    """Return the modules of the dump as `(module, name, states)`, without reading them. Raises HloError if there are
    none."""
    return [(module, name, len(files)) for (module, name), files in _files(folder).items()]


def passes(folder: Path, module: str = "") -> tuple[ModulePasses, ...]:
    """Return the passes of every module in the dump, or of the one with this name (`module_0006`, `jit_f`).

    Cost: every state is read and fingerprinted. Raises HloError if the folder has no such module.
    """
    by_module = {key: files for key, files in _files(folder).items() if not module or module in key}
    if not by_module:
        raise HloError(f"no module {module} with passes in {folder}")
    return tuple(ModulePasses(key[0], key[1], tuple(_changes(files))) for key, files in by_module.items())


def _files(folder: Path) -> dict[tuple[str, str], list[_File]]:
    """Return the states by module, each in order; only modules with at least one recorded pass."""
    states: dict[tuple[str, str], list[_File]] = {}
    ends: dict[tuple[str, str], list[_File]] = {}
    try:
        paths = sorted(folder.iterdir())
    except OSError as error:
        raise HloError(f"{folder}: {system_words(error)}") from None
    for path in paths:
        if match := _PASS.fullmatch(path.name):
            state = _File(path, int(match["number"]), match["pipeline"], match["done"])
            states.setdefault((match["module"], match["name"]), []).append(state)
        elif match := _STATE.fullmatch(path.name):
            name = BEFORE if match["state"] == "before_optimizations" else AFTER
            ends.setdefault((match["module"], match["name"]), []).append(_File(path, None, "", name))
    if not states:
        raise HloError(
            f"no passes in {folder}",
            "XLA_FLAGS='--xla_dump_to=FOLDER --xla_dump_hlo_pass_re=.* --xla_dump_hlo_as_text' writes some.",
        )
    return {key: _in_order(files, ends.get(key, [])) for key, files in sorted(states.items())}


def _in_order(files: Iterable[_File], ends: Iterable[_File]) -> list[_File]:
    first = next((state for state in ends if state.name == BEFORE), None)
    last = next((state for state in ends if state.name == AFTER), None)
    ordered = sorted(files, key=lambda state: state.number or 0)
    return [*([first] if first else []), *ordered, *([last] if last else [])]


def _changes(files: Iterable[_File]) -> Iterator[PassChange]:
    before: Module | None = None
    counted: Mapping[str, int] = {}
    for file in files:
        try:
            after = load(file.path)[0]
        except HloError as error:
            yield PassChange(file.number, file.pipeline, file.name, file.path.name, counted, counted, 0, (), error.what)
            continue
        opcodes = _opcodes(after)
        differences = diff(before, after) if before is not None else []
        yield PassChange(
            number=file.number,
            pipeline=file.pipeline,
            name=file.name,
            file=file.path.name,
            opcodes_before=counted,
            opcodes_after=opcodes,
            same=sum(difference.status == "same" for difference in differences)
            if before is not None
            else len(after.computations),
            differences=tuple(
                Pair(each.status, each.before.name if each.before else None, each.after.name if each.after else None)
                for each in differences
                if each.status != "same"
            ),
        )
        before, counted = after, opcodes


def _opcodes(module: Module) -> dict[str, int]:
    computations = module.computations.values()
    return dict(Counter(instruction.opcode for computation in computations for instruction in computation.instructions))
