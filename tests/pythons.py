"""The interpreters that tests are run with: the running one, those in the environment variable that CI sets, and one
that only seems to be one."""

import os
import sys
from pathlib import Path

FURTHER = [python for python in os.environ.get("JAXPROF_TEST_PYTHONS", "").split(os.pathsep) if python]
"""Interpreters with jax, of other versions of Python or jax; some of them have jaxprof installed."""
EVERY = [sys.executable, *FURTHER]


def command_beside(python: str) -> Path:
    """The `jaxprof` command that is installed with an interpreter, if it is."""
    return Path(python).with_name("jaxprof")


STAND_IN = "stand-in"


def stand_in(folder: Path, lines: str) -> Path:
    """What `--python` takes for an interpreter: a shell that runs `lines` instead of the program, unrecorded."""
    path = folder / STAND_IN
    facts = '{"python": [3, 13, 0], "jax": null}'
    path.write_text(f"#!/bin/sh\n[ \"$1\" != -I ] || exec echo '{facts}'\n{lines}\n")
    path.chmod(0o755)
    return path
