"""Which Python runs the engine: the user's own, with the jax that their training uses.

jaxprof may live in a place of its own (pipx, uv tool). The default is the interpreter that it runs in when that has
jax, else the active virtual or conda environment; `--python PATH` names another.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from jaxprof.errors import UsageError

OLDEST_PYTHON = (3, 11)
OLDEST_JAX = (0, 7, 2)
_PROBE = """
import json, sys
from importlib import metadata
def version(name):
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
print(json.dumps({"python": list(sys.version_info[:3]), "jax": version("jax"), "numpy": version("numpy")}))
"""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python that can run the engine."""

    path: str
    jax: str | None
    """Version of its jax; None where it has none (NumPy variants run all the same)."""
    chosen: str
    """Why this one: `--python`, `the one jaxprof runs in`, `the active environment`."""


def find_interpreter(path: Path | None = None) -> Interpreter:
    """The interpreter for the engine. Raises UsageError when `path` is no Python that can run it."""
    if path is not None:
        return probe(_executable(path), "--python")
    if find_spec("jax") is not None:
        return Interpreter(sys.executable, _own_version("jax"), "the one jaxprof runs in")
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        prefix = os.environ.get(variable)
        if not prefix or Path(prefix) == Path(sys.prefix):
            continue
        candidate = Path(prefix) / "bin" / "python"
        if candidate.exists():
            found = probe(str(candidate), f"the active environment ({variable})")
            if found.jax is not None:
                return found
    return Interpreter(sys.executable, None, "the one jaxprof runs in")


def probe(executable: str, chosen: str) -> Interpreter:
    """Asks an interpreter for its versions, without importing jax in it. Raises UsageError."""
    try:
        done = subprocess.run(
            [executable, "-I", "-c", _PROBE], capture_output=True, text=True, timeout=30, stdin=subprocess.DEVNULL
        )
        facts = json.loads(done.stdout.strip().splitlines()[-1])
        version = tuple(int(part) for part in facts["python"])
    except (OSError, subprocess.SubprocessError, ValueError, LookupError, TypeError) as error:
        raise UsageError(f"{executable} is not a Python that can be run: {error}", "--python PATH names one.") from None
    if version < OLDEST_PYTHON:
        raise UsageError(
            f"{executable} is Python {'.'.join(map(str, version))}; the engine needs 3.11 or newer",
            "--python PATH names another one.",
        )
    return Interpreter(executable, facts["jax"], chosen)


def _executable(path: Path) -> str:
    given = str(path.expanduser())
    if path.expanduser().is_dir():  # an environment's folder
        for inside in ("bin/python", "python"):
            if (path.expanduser() / inside).exists():
                return str(path.expanduser() / inside)
        raise UsageError(f"there is no Python in {path}", "Give the interpreter itself, or an environment's folder.")
    found = shutil.which(given)
    if found is None:
        raise UsageError(f"there is no interpreter {path}", "--python wants a path such as ~/venv/bin/python.")
    return os.path.abspath(found)


def _own_version(name: str) -> str | None:
    from importlib import metadata

    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "unknown"
