"""Try a fix that changes no code: measure a function as it is, beside itself with one setting changed.

Both sides are planned from their session's records alone, and compared like the sides of `compare`. A session can come
from anywhere: the user is asked first whether to run its function (`from_file`), which has to be unchanged and recorded
on the same machine.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from jaxprof.errors import UsageError
from jaxprof.events import SideSpec
from jaxprof.files import is_as_recorded
from jaxprof.private import FLAGS, HIDDEN, SETTINGS, kept_value
from jaxprof.redaction import REDACTED
from jaxprof.runner.from_file import (
    Ask,
    known_interpreter,
    with_variables,
)
from jaxprof.runner.interpreter import Interpreter
from jaxprof.runner.rerun import plan_again, recorded_starts
from jaxprof.runner.sides import compared, duration_fields, output_file
from jaxprof.stats.comparison import MARGIN

if TYPE_CHECKING:
    from jaxprof.analysis.explain.model import MechanicalFix
    from jaxprof.runner.planning import PlannedRun
    from jaxprof.session import Run, Session

_RECORD_AGAIN: Final = "Record it again here, then jaxprof explain --try."


def check_unchanged(file: Path, session: Session, run: Run) -> None:
    """Raise UsageError for a file that is not here, or that changed after the run was recorded: its findings may be
    about other lines by now."""
    if not file.is_file():
        raise UsageError(f"{file} is not here", _RECORD_AGAIN)
    if not is_as_recorded(str(file), run.sources, session.header.wall_seconds):
        raise UsageError(f"{file.name} was changed after the session was recorded", _RECORD_AGAIN)


_OF_THE_DEVICE: Final = frozenset(
    ("JAX_PLATFORMS", "JAX_PLATFORM_NAME", "CUDA_DEVICE_ORDER", "CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES",
     "TPU_VISIBLE_CHIPS", "XLA_CLIENT_MEM_FRACTION", "XLA_PYTHON_CLIENT_MEM_FRACTION", "XLA_PYTHON_CLIENT_PREALLOCATE")
)  # fmt: skip
"""Variables that choosing the device sets."""
_SPARE_SECONDS: Final = 60.0
"""How much longer than the budget a process may live, so that a call that never returns ends."""


def plan_fix(
    session: Session,
    run: Run,
    fix: MechanicalFix,
    budget_seconds: float,
    folder: Path,
    *,
    donated: tuple[int, ...],
    ask: Ask,
    python: Interpreter | None,
) -> tuple[list[PlannedRun], Interpreter]:
    """Plan the side A as it was and the side B with the fix, and return them with the interpreter of both.

    Their results are written to `folder`. `donated`: the arguments that B donates. `ask` is called with what would
    start, before anything is started. `python`: the interpreter that the user named; None if none. Raises UsageError if
    the run cannot be repeated as it was. Blocks while a child makes the inputs.
    """
    again = _again(session, run)
    interpreter = known_interpreter(run.python, python)
    before = _settings(run)
    new = {name: value for name, value in before.items() if os.environ.get(name) != value}
    ask([f"{line}{with_variables(new)}, by {interpreter.path}" for line in recorded_starts(session, run)])
    spec = replace(
        again.spec,
        **duration_fields(None, budget_seconds, budget_seconds + _SPARE_SECONDS),
        check=False,
        capture=False,
        fresh_arguments=bool(donated),
    )

    def side(label: str, **changes: Any) -> PlannedRun:
        return replace(
            again,
            spec=replace(spec, side=label, **changes),
            baseline=None,
            interpreter=interpreter,
            environment={**before, **(fix.environment if label == "B" else {})},
            keep_output=output_file(folder, label),
            group_seconds=budget_seconds,
        )

    titles = {"A": spec.workload, "B": f"{spec.workload}, {fix.title}"}
    planned = [side("A"), side("B", donated=donated)]
    specs = [
        SideSpec(
            label=plan.spec.side,
            title=titles[plan.spec.side],
            python=interpreter.path,
            environment={name: kept_value(name, value) for name, value in plan.environment.items()},
        )
        for plan in planned
    ]
    return compared(planned, specs, MARGIN, ()), interpreter


def _again(session: Session, run: Run) -> PlannedRun:
    """Plan the run again. Raises UsageError for one that cannot be what it was: of another machine, of another file, or
    started with words that its session did not keep."""
    if session.header.host != socket.gethostname():
        where = f" ({session.header.host})" if session.header.host else ""
        raise UsageError(f"the session is from another machine{where}", _RECORD_AGAIN)
    if run.plan.side:
        raise UsageError(f"{run.label} is a side of a comparison already", "jaxprof run measures the function alone.")
    if run.status != "ok":
        raise UsageError(f"{run.id} {run.label} {run.status}", "Measure it again.")
    planned = plan_again(session, run.id)[-1]
    if any(REDACTED in word for word in planned.spec.argv):
        raise UsageError(
            f"a possible secret in its command line was redacted ({REDACTED})", "Pass the secret in a variable."
        )
    place = planned.spec.target.rpartition(":")[0]
    if place.endswith(".py"):
        check_unchanged(Path(place), session, run)
    return planned


def _settings(run: Run) -> dict[str, str]:
    """Return the variables that the run had, without those of its device. Raises UsageError for one set here that
    was not set there: a variable laid over an environment cannot unset it."""
    recorded: Mapping[str, object] = run.environment.settings if run.environment is not None else {}
    laid: dict[str, str] = {}
    for name in (*SETTINGS, *FLAGS):
        value = recorded.get(name)
        if name in _OF_THE_DEVICE:
            continue
        if value is None and name in os.environ and recorded:
            raise UsageError(f"{name} is set here, but was not set when it was measured", f"unset {name}")
        if value is not None and HIDDEN not in str(value) and kept_value(name, str(value)) == value:
            laid[name] = str(value)
    return laid
