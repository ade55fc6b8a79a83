"""Compile the program of a call for a device that is not here.

The program is exported from the process of the tests, where its function may be anything that can be called, and
compiled in a child that has the device's compiler.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from jaxprof.api.session import Session
from jaxprof.devices.targets import Target, parse_target, wheels
from jaxprof.engine.measure.portable import export_for
from jaxprof.errors import JaxprofError, UsageError
from jaxprof.events import RunSpec
from jaxprof.reaper import TemporaryFolder
from jaxprof.runner.interpreter import find_interpreter
from jaxprof.runner.planning import PlannedRun
from jaxprof.runner.scheduler import session_of
from jaxprof.session.log import LogWriter, new_header


def target_of(device: str) -> Target:
    """Return the one device that `device` names: `h100`. Skip the test if its compiler is not installed. Raises
    UsageError."""
    target = parse_target(device)
    if target.devices != 1:
        raise UsageError(
            f"{device} is {target.devices} devices", "Tests take one device; jaxprof hlo --for takes several."
        )
    try:
        wheels.environment(target.chip.vendor, find_interpreter().path)
    except JaxprofError as error:
        pytest.skip(f"jaxprof: {error.what}. {error.hint}")
    return target


def compile_for(target: Target, spec: RunSpec, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Session:
    """Compile the program, and return its session of one run. A compile that fails is a failed run. Raises what the
    function and its export raise."""
    platform = "tpu" if target.chip.vendor == "tpu" else "cuda"
    program = export_for(platform, function, arguments)
    session = Session(new_header(command=[]))
    with TemporaryFolder("program") as folder:
        path = folder / "program"
        path.write_bytes(program.data)
        planned = PlannedRun(
            spec=spec, compile_only=True, elsewhere=target, exported=str(path), donated=program.donated
        )
        session_of([planned], LogWriter(session.header, None), find_interpreter(), session.extend)
    return session
