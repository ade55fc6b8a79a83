"""`jaxprof run --from SESSION[:RUN]`: what a session has is planned once more, with the options that were given now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from jaxprof.errors import JaxprofError

if TYPE_CHECKING:
    from jaxprof.session import Session
    from jaxprof.worker import Planned


def planned_from(source: str, changes: Mapping[str, Any], device: str = "") -> list[Planned]:
    """The runs that `source` names: a session's path or name, and after a colon a run's id, workload or function.

    `changes` are laid over what the session says of each run; with `device`, all that NumPy does not run is planned for
    it. Raises UsageError and FileRefusedError.
    """
    from jaxprof.worker.again import plan_all_again

    session, wanted = _session_of(source)
    made: dict[Planned, Planned] = {}
    for planned in plan_all_again(session, wanted):
        place = device if device and planned.how != "numpy" else planned.device
        baseline = made[planned.baseline] if planned.baseline is not None else None
        made[planned] = replace(planned, **changes, device=place, baseline=baseline)
    return list(made.values())


def _session_of(source: str) -> tuple[Session, str]:
    from jaxprof.session import Session
    from jaxprof.store import Library, load

    library = Library()
    try:
        return load(library.find(source), Session), ""
    except JaxprofError:
        name, colon, wanted = source.rpartition(":")
        if not colon or not name:
            raise
    return load(library.find(name), Session), wanted
