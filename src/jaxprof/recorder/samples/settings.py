"""The settings of JAX that a finding is about, and the lines of the program that set them: options for finding faults,
and a compilation cache whose folder is another one at each start. Reads names and sources, and runs no user's code."""

from __future__ import annotations

import os
import re
import sys
import tempfile
import time
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from types import ModuleType

from jaxprof.events import SourceLocation
from jaxprof.recorder.frame_owner import LIBRARY, USER, file_kind
from jaxprof.recorder.samples.call_text import is_a, names_in, source_lines

_DEBUG_SETTINGS = (
    "jax_debug_nans",
    "jax_debug_infs",
    "jax_disable_jit",
    "jax_disable_most_optimizations",
    "jax_check_tracer_leaks",
)
"""Options of `jax.config` for finding faults, which cost time at each call or compilation."""


def debug_settings() -> list[str]:
    """Return the debug settings that are on, as this thread sees them: without those that a context manager in another
    thread switches on for a while."""
    config = getattr(sys.modules.get("jax"), "config", None)
    return [name for name in _DEBUG_SETTINGS if getattr(config, name, False) is True]


def settings_lines(names: Iterable[str]) -> dict[str, SourceLocation]:
    """Return, by setting, the one line of the user's modules that names it. Leaves out a setting that no line or
    several lines name, or that an environment variable switches on."""
    files = [names_in(module).get("__file__") for module in list(sys.modules.values()) if is_a(module, ModuleType)]
    users = sorted({file for file in files if isinstance(file, str) and file_kind(file) == USER})
    named_at: dict[str, SourceLocation] = {}
    for name in names:
        if name.upper() in os.environ:
            continue
        needle = name.encode()
        lines = [
            SourceLocation(file, number, "")
            for file in users
            for number, line in enumerate(source_lines(file), 1)
            if needle in line and not line.lstrip().startswith(b"#")
        ]
        if len(lines) == 1:
            named_at[name] = lines[0]
    return named_at


CACHE_FOLDER = "jax_compilation_cache_dir"
_JOB_IDS = ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "FLUX_JOB_ID", "JOB_ID")
_RANDOM = re.compile(r"[0-9a-f]{32}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TEMPORARY = re.compile(r"tmp[a-z0-9_]{8}|tmp\.[A-Za-z0-9]{10}|[a-z0-9_]{8}$")
_LEAST_PID = 100
"""Process ids below this one are those of a container, which has the same one at each start."""
_DAY_SECONDS = 86_400


def builds_on_jax(package: str) -> bool:
    """Return whether a library's package uses JAX itself, so that a program that uses it has to import it."""
    root = package.partition(".")[0]
    for name, module in list(sys.modules.items()):
        if (name == root or name.startswith(f"{root}.")) and is_a(module, ModuleType):
            names = names_in(module)
            file = names.get("__file__")
            if isinstance(file, str) and file_kind(file) == LIBRARY and not {"jax", "jnp"}.isdisjoint(names):
                return True
    return False


def new_cache() -> str:
    """Return what in the name of the compilation cache's folder is another at each start: `temporary`, `process`,
    `job`, `random` or `time`; empty if there is no such folder, or nothing in it shows that."""
    folder = getattr(getattr(sys.modules.get("jax"), "config", None), CACHE_FOLDER, None)
    return changes_at_start(folder) if isinstance(folder, str) else ""


@lru_cache(maxsize=4)
def changes_at_start(folder: str) -> str:
    """Return the code of `new_cache` for a folder."""
    numbers = re.findall(r"\d+", folder)
    jobs = {value for name in _JOB_IDS if (value := os.environ.get(name))}
    if any(map(_is_temporary, (Path(folder), *Path(folder).parents))):
        return "temporary"
    if os.getpid() >= _LEAST_PID and str(os.getpid()) in numbers:
        return "process"
    if jobs & {*numbers, *Path(folder).parts}:
        return "job"
    if _RANDOM.search(folder):
        return "random"
    now = time.time()
    seconds = (int(number[:10]) for number in numbers if len(number) in (10, 13, 16, 19))
    minute = time.strftime(r"%Y\D?%m\D?%d\D?%H", time.localtime(now))
    return "time" if any(abs(now - each) < _DAY_SECONDS for each in seconds) or re.search(minute, folder) else ""


def _is_temporary(folder: Path) -> bool:
    """Return whether `tempfile` or `mktemp` has made the folder. A name of the program's own ends with eight random
    characters, nearly always with a digit, and only the user may open that folder."""
    parents = {tempfile.tempdir, os.environ.get("TMPDIR"), "/tmp"}  # `gettempdir` would write a file
    if str(folder.parent) not in parents or _TEMPORARY.search(folder.name) is None:
        return False
    if _TEMPORARY.fullmatch(folder.name):
        return True
    try:
        return folder.stat().st_mode & 0o777 == 0o700 and any(map(str.isdigit, folder.name[-8:]))
    except OSError:  # the program has removed it
        return False
