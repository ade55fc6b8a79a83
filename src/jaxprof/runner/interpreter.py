"""Choose the Python that runs the engine: the user's own, with the jax that their training uses.

jaxprof may live in an environment of its own (pipx, uv tool). The default is the interpreter that runs jaxprof if that
has jax, otherwise the active virtual or conda environment; `--python PATH` names another.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from jaxprof.base.errors import UsageError
from jaxprof.base.files import with_home
from jaxprof.base.values import frozen

OLDEST_PYTHON = (3, 11)
_PROBE = """
import json, sys
from importlib import metadata
def version(name):
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
print(json.dumps({"python": list(sys.version_info[:3]), "jax": version("jax")}))
"""


@frozen
class Interpreter:
    """A Python that can run the engine."""

    path: str
    jax: str | None
    """Version of its jax; None if it has none (NumPy variants still run)."""


def find_interpreter(path: Path | None = None) -> Interpreter:
    """Return the interpreter for the engine. Raises UsageError if `path` is not a Python that can run it."""
    if path is not None:
        given = with_home(path)
        if given.is_dir():  # an environment's folder
            inside = [given / name for name in ("bin/python", "python") if (given / name).exists()]
            if not inside:
                hint = "Give the interpreter itself, or an environment's folder."
                raise UsageError(f"there is no Python in {path}", hint)
            return probe(str(inside[0]))
        program = shutil.which(str(given))
        if program is None:
            raise UsageError(f"there is no interpreter {path}", "--python takes a path such as ~/venv/bin/python.")
        return probe(os.path.abspath(program))
    if find_spec("jax") is not None:
        return Interpreter(sys.executable, _own_jax())
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        prefix = os.environ.get(variable)
        if not prefix or Path(prefix) == Path(sys.prefix):
            continue
        candidate = Path(prefix) / "bin" / "python"
        if candidate.exists():
            active = probe(str(candidate))
            if active.jax is not None:
                return active
    return own_interpreter()


def own_interpreter() -> Interpreter:
    """Return the interpreter that runs jaxprof, which has numpy."""
    return Interpreter(sys.executable, None)


def probe(executable: str) -> Interpreter:
    """Ask an interpreter for its versions, without importing jax in it. Raises UsageError."""
    try:
        done = subprocess.run(
            [executable, "-I", "-c", _PROBE],
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=30,
            stdin=subprocess.DEVNULL,
        )
        facts = json.loads(done.stdout.strip().splitlines()[-1])
        version = tuple(int(part) for part in facts["python"])
    except (OSError, subprocess.SubprocessError, ValueError, LookupError, TypeError) as error:
        raise UsageError(f"{executable} is not a Python that runs: {error}", "--python PATH names one.") from None
    if version < OLDEST_PYTHON:
        raise UsageError(
            f"{executable} is Python {'.'.join(map(str, version))}; the engine needs 3.11 or newer",
            "--python PATH names another one.",
        )
    return Interpreter(executable, facts["jax"])


def _own_jax() -> str:
    """Return the version of the jax installed here. `importlib.metadata` takes 25 ms to import, for which a recorded
    program would have to wait; the name of the folder beside the package gives the same version, if there is only one
    such folder."""
    spec = find_spec("jax")
    folder = Path(spec.origin).parent.parent if spec is not None and spec.origin else None
    beside = [path.name for path in folder.glob("jax-*.dist-info")] if folder is not None else []
    if len(beside) == 1:
        return beside[0].removeprefix("jax-").removesuffix(".dist-info")
    from importlib import metadata

    try:
        return metadata.version("jax")
    except metadata.PackageNotFoundError:
        return "unknown"
