"""Turn the words on the command line into runs. All names, devices, variants and parameters are checked before any run.

A name is a built-in workload or a user's own function. A child process describes the function, so that the user's code
never runs in this process.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from jaxprof.cli.output import note
from jaxprof.cli.target import split_run
from jaxprof.config import read_config
from jaxprof.errors import UsageError
from jaxprof.runner.device_choice import default_for, find_devices
from jaxprof.runner.interpreter import Interpreter
from jaxprof.runner.planning import PlannedRun

if TYPE_CHECKING:
    from jaxprof.runner.rerun import Ask


def planned_from(source: str, changes: Mapping[str, Any], device: str, ask: Ask) -> list[PlannedRun]:
    """Return the runs of the session that `source` names by its path or name: all, or those that are named after a
    colon (an id, workload or function).

    `changes` replace the recorded options of each run. With `device`, all runs except NumPy's are planned for that
    device. `ask` is called with what would start. Raises FileRefusedError, and UsageError, also if the session came
    from a URL: nothing of it may be started.
    """
    from jaxprof.runner.rerun import NOT_AGAIN, chosen_runs, plan_again, recorded_starts, refuse_fetched
    from jaxprof.session import Session
    from jaxprof.session.log import Library, load

    def load_local(name: str) -> Session:
        path = Library().find(name)
        refuse_fetched(path)
        return load(path, Session)

    session, wanted = split_run(source, load_local)
    made: dict[PlannedRun, PlannedRun] = {}
    planned_again = plan_again(session, wanted)
    repeated = [run for run in chosen_runs(session, wanted) if run.plan.how not in NOT_AGAIN]
    ask([line for run in repeated for line in recorded_starts(session, run)])
    for planned in planned_again:
        place = device if device and planned.spec.how != "numpy" else planned.spec.device
        baseline = made[planned.baseline] if planned.baseline is not None else None
        spec = replace(planned.spec, **changes, device=place)
        made[planned] = replace(planned, spec=spec, baseline=baseline)
    return list(made.values())


def choose(given: Sequence[str], interpreter: Interpreter, variables: Mapping[str, str] | None = None) -> list[str]:
    """Return the ids of the devices to run on, without repeats: those that were `given`; else those of the user's
    setting that are there, with a note on the others; else the one that JAX uses by default, with `variables` laid over
    the environment. Raises UsageError for a device that does not exist or that JAX does not use, with the source of a
    setting."""
    config = read_config()
    wanted = given or config.get("devices", tuple) or ()
    if not wanted:
        device, why = default_for(interpreter, {**os.environ, **(variables or {})}.get("JAX_PLATFORMS", ""))
        if why:
            note(f"note: this runs on {device}, because {why}")
        return [device]
    chosen, errors = find_devices(wanted, interpreter)
    if errors and (given or not chosen):
        source = "" if given else f"{config.sources['devices']}: "
        raise UsageError(f"{source}{errors[0].what}", errors[0].hint) from errors[0]
    for error in errors:
        note(f"note: this runs on {', '.join(chosen)}. {config.sources['devices']}: {error.what}")
    return chosen
