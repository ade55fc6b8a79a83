"""Open files that hold HLO, and the folders that XLA dumps into, as modules in their stages.

A folder that XLA wrote has a module in several files: before its passes and after them, as text and as proto. Here they
are one module with its stages. Any other HLO file is one module by itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from weakref import ref

from jaxprof.base.errors import FileRefusedError, HloError, missing_file, system_words
from jaxprof.base.files import open_regular
from jaxprof.hlo import files
from jaxprof.hlo.files import reasons_beside
from jaxprof.hlo.stages import ModuleStages, modules
from jaxprof.hlo.text.model import Module

_FORMS = (".hlo.txt", ".txt", ".hlo", ".hlo.pb", ".pb")
"""Endings of files that may be HLO, each also with `.gz`. If a module has several files the first ending is used: text
before proto, because only a text has the layout of its author.
"""
_SURE = frozenset({".hlo.txt", ".hlo", ".hlo.pb"})
"""Endings that only HLO has."""
_NEVER_DUMPED = frozenset({".hlo.txt", ".hlo"})
"""Endings that XLA itself never writes."""
_PROFILES = (".xplane.pb", ".xplane.pb.gz")
_DUMP = re.compile(r"(?P<module>[^/]+?)\.(?:(?P<before>before_optimizations)|(?:sm_\d+\.)?\w*after_optimizations)")
"""XLA's file names without the ending: `module_0003.jit_f.sm_9.0_gpu_after_optimizations`. Names of other files about
the module go on after that (`-buffer-assignment`, `_memory-usage-report`).
"""
_DEVICE = re.compile(r'^device_description_str: "([^"\\]{1,100})"', re.MULTILINE)
HOW_TO_DUMP = (
    "XLA_FLAGS=--xla_dump_to=FOLDER makes a folder of HLO; jax.jit(f).lower(...).compile().as_text() gives text."
)


def holds_hlo(path: Path) -> bool:
    """Return whether `path` should be opened as HLO: a file by its ending or its first bytes, a folder by the files in
    it."""
    try:
        if path.is_dir():
            return bool(_candidates(path))
        return (
            path.is_file()
            and not path.name.endswith(_PROFILES)
            and (_form(path.name) in (*_SURE, ".pb") or files.holds_hlo(path))
        )
    except OSError:
        return False


def modules_at(path: Path) -> list[ModuleStages]:
    """Return the modules of an HLO file, or of a folder that XLA dumped into. Blocks: reads a file, lists a folder.

    Raises FileRefusedError if there are none.
    """
    if path.is_dir():
        by_module: dict[str, dict[str, Path]] = {}
        try:
            for module, stage, file in _candidates(path):
                by_module.setdefault(module, {})[stage] = file
        except OSError as error:
            raise HloError(f"{path}: {system_words(error)}") from None
        if not by_module:
            raise FileRefusedError(f"no HLO in the folder {path}", HOW_TO_DUMP)
        return [
            ModuleStages(
                key=str(path / module),
                label=module,
                # A module that was dumped only before the passes is shown as it is; its notice says so.
                stages={
                    stage: _reader(file) for stage, file in ({"hlo": next(iter(stages.values()))} | stages).items()
                },
                device=_device_kind(path / f"{module}.gpu_target_config.pbtxt"),
                assignment=_assignment(stages.get("hlo")),
            )
            for module, stages in by_module.items()
        ]
    if not path.exists():
        raise missing_file(path)
    modules = _parse(path, _with_comments(path, files.read_text(path)))
    read = _reader(path, modules[0])
    return [
        ModuleStages(
            key=f"{path}#{number}",
            label=module.name or f"module {number + 1}",
            stages={"hlo": read},
            number=number,
            is_part=len(modules) > 1,
            file=path.name,
            assignment=_assignment(path),
        )
        for number, module in enumerate(modules)
    ]


def _assignment(path: Path | None) -> Callable[[], str] | None:
    """Return a function that reads the assignment of buffers that XLA dumped beside a module; None without one."""
    if path is None or not _DUMP.fullmatch(stem := _stem(path.name)):
        return None
    dumped = path.with_name(f"{stem}-buffer-assignment.txt")
    return partial(files.read_text, dumped) if dumped.is_file() else None


def _device_kind(config: Path) -> str:
    """Return the device in the target configuration (`GpuTargetConfigProto`) that XLA:GPU dumps; empty without one."""
    try:
        with open_regular(config) as file:
            match = _DEVICE.search(file.read(64 << 10).decode("utf-8", "replace"))
    except OSError:
        return ""
    return match[1] if match else ""


def _candidates(folder: Path) -> list[tuple[str, str, Path]]:
    """Return module, stage and file of everything in `folder` that may be HLO, by module; if a stage has several
    formats, the best one is last.

    Beside modules that XLA named, other files count only by an ending that XLA does not write, because a dump has
    hundreds of further texts and protos. Raises OSError.
    """
    paths = [path for path in folder.iterdir() if _form(path.name) and not path.name.endswith(_PROFILES)]
    dumped = {path: match for path in paths if (match := _DUMP.fullmatch(_stem(path.name)))}
    candidates = [(match["module"], "hlo_before" if match["before"] else "hlo", path) for path, match in dumped.items()]
    for path in paths:
        if path in dumped or not path.is_file():
            continue
        form = _form(path.name)
        if form in _NEVER_DUMPED or (not dumped and (form in _SURE or files.holds_hlo(path))):
            candidates.append((_stem(path.name), "hlo", path))

    def order(candidate: tuple[str, str, Path]) -> tuple[str, int, bool]:
        module, _, path = candidate
        return module, -_FORMS.index(_form(path.name)), not path.name.endswith(".gz")

    return sorted(candidates, key=order)


def _form(name: str) -> str:
    """Return the known ending of `name`; empty if it has none."""
    plain = name.removesuffix(".gz")
    return next((form for form in _FORMS if plain.endswith(form) and plain != form), "")


def _stem(name: str) -> str:
    return name.removesuffix(".gz").removesuffix(_form(name))


def _parse(path: Path, text: str) -> Sequence[Module]:
    try:
        return modules(text)
    except HloError as error:
        raise HloError(f"{path}: {error.what}", error.hint) from None


def _with_comments(path: Path, text: str) -> str:
    """Return the text with XLA's own reasons for not fusing, if the dump has them for this module."""
    match = _DUMP.fullmatch(_stem(path.name))
    if match is None or match["before"]:
        return text
    return reasons_beside(path.parent, text, match["module"])


def _reader(path: Path, module: Module | None = None) -> Callable[[], str]:
    """Return a function that reads the text of a file. A known module that is still referenced provides its own text,
    because writing out a proto takes long."""
    reference = ref(module) if module is not None else None

    def read() -> str:
        alive = reference() if reference is not None else None
        if alive is not None:
            return alive.source.text
        text = _with_comments(path, files.read_text(path))
        _parse(path, text)  # parsed here, where an error can name the file
        return text

    return read
