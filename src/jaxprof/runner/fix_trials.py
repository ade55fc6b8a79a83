"""A fix that changes no code is tried: a measured function as it is, beside itself with one setting changed.

Both are planned from their session's records alone, and compared as the sides of `compare` are. A session can come from
anywhere: its function is asked for first (`from_file`), and has to be that of the same machine, unchanged.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from jaxprof.errors import UsageError
from jaxprof.events import ComparisonPlanned, SideSpec
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
from jaxprof.runner.sides import compared_as, how_long, output_file, same_inputs
from jaxprof.stats import MARGIN

if TYPE_CHECKING:
    from jaxprof.runner.planning import PlannedRun
    from jaxprof.session import Run, Session

_RECORD_AGAIN: Final = "Record it again here, then jaxprof explain --try."


def of_this_machine(session: Session) -> None:
    """Raises UsageError for a session that another machine wrote."""
    if session.header.host != socket.gethostname():
        where = f" ({session.header.host})" if session.header.host else ""
        raise UsageError(f"the session is from another machine{where}", _RECORD_AGAIN)


def nothing_redacted(argv: Sequence[str]) -> None:
    """Raises UsageError for a command line of which a session did not keep each word."""
    if any(REDACTED in word for word in argv):
        raise UsageError(f"its command line holds what looks like a secret ({REDACTED})", "Give that by a variable.")


def unchanged(file: Path, session: Session, run: Run) -> None:
    """Raises UsageError for a file that is not here, or is not what it was when the run was recorded: its findings may
    be about other lines by now."""
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
"""How much longer than the budget a process may live: its end is that of a call that never returns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedSide:
    """What B has that A has not."""

    title: str
    environment: Mapping[str, str]
    donated: tuple[int, ...] = ()
    ask: Ask
    """Is asked before anything is started."""
    python: Interpreter | None = None
    """The interpreter that the user named."""


def plan_fix(
    session: Session, run: Run, fixed: FixedSide, budget_seconds: float, folder: Path
) -> tuple[list[PlannedRun], Interpreter]:
    """The sides A and B, with the interpreter of all of them. Their results are written to `folder`. Raises
    UsageError where the run cannot be had again as it was. Blocks: a child makes the inputs."""
    again = _again(session, run)
    interpreter = known_interpreter(run.python, fixed.python)
    before = _settings(run)
    new = {name: value for name, value in before.items() if os.environ.get(name) != value}
    fixed.ask([f"{line}{with_variables(new)}, by {interpreter.path}" for line in recorded_starts(session, run)])
    spec = replace(
        again.spec,
        **how_long(None, budget_seconds, budget_seconds + _SPARE_SECONDS),
        check=False,
        capture=False,
        fresh_arguments=bool(fixed.donated),
    )

    def side(label: str, **changes: Any) -> PlannedRun:
        return replace(
            again,
            spec=replace(spec, side=label, **changes),
            baseline=None,
            interpreter=interpreter,
            environment={**before, **(fixed.environment if label == "B" else {})},
            keep_output=output_file(folder, label),
            group_seconds=budget_seconds,
        )

    planned = [side("A"), side("B", donated=fixed.donated)]
    inputs = same_inputs(planned)
    name = spec.workload
    laid = {"A": before, "B": {**before, **fixed.environment}}
    titles = {"A": name, "B": f"{name}, {fixed.title}"}
    comparison = ComparisonPlanned(
        sides=[
            SideSpec(
                label=label,
                title=titles[label],
                python=interpreter.path,
                environment={key: kept_value(key, value) for key, value in laid[label].items()},
            )
            for label in titles
        ],
        margin=MARGIN,
        group_seconds=budget_seconds,
        inputs=list(inputs.specs),
        same_inputs=inputs.same_numbers,
        notes=[],
    )
    return compared_as(comparison, planned), interpreter


def _again(session: Session, run: Run) -> PlannedRun:
    of_this_machine(session)
    if run.plan.side:
        raise UsageError(f"{run.label} is a side of a comparison already", "jaxprof run measures the function alone.")
    if run.status != "ok":
        raise UsageError(f"{run.id} {run.label} {run.status}", "Measure it again.")
    planned = plan_again(session, run.id)[-1]
    nothing_redacted(planned.spec.argv)
    place = planned.spec.target.rpartition(":")[0]
    if place.endswith(".py"):
        unchanged(Path(place), session, run)
    return planned


def _settings(run: Run) -> dict[str, str]:
    """The variables that the run had, those of its device left out. Raises UsageError for one that is set here and was
    not there: what is laid over an environment cannot unset it."""
    recorded: Mapping[str, object] = run.environment.settings if run.environment is not None else {}
    laid: dict[str, str] = {}
    for name in (*SETTINGS, *FLAGS):
        value = recorded.get(name)
        if name in _OF_THE_DEVICE:
            continue
        if value is None and name in os.environ and recorded:
            raise UsageError(f"{name} is set here, and was not when it was measured", f"unset {name}")
        if value is not None and HIDDEN not in str(value) and kept_value(name, str(value)) == value:
            laid[name] = str(value)
    return laid
