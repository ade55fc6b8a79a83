"""The interpreters that tests are run with: the running one, and those in the environment variable that CI sets."""

import os
import sys
from pathlib import Path

FURTHER = [python for python in os.environ.get("JAXPROF_TEST_PYTHONS", "").split(os.pathsep) if python]
"""Interpreters with jax, of other versions of Python or jax; some of them have jaxprof installed."""
EVERY = [sys.executable, *FURTHER]


def command_beside(python: str) -> Path:
    """The `jaxprof` command that is installed with an interpreter, if it is."""
    return Path(python).with_name("jaxprof")
