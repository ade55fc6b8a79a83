"""What of a batch of events must be told wherever one is: a run that failed, a worker that died or hangs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from jaxprof.errors import JaxprofError

if TYPE_CHECKING:
    from jaxprof.events import Event


def troubles(events: Iterable[Event], *, programs: bool) -> Iterator[tuple[JaxprofError, str]]:
    """Each with a title. `programs`: also how the user's own program ended."""
    from jaxprof.events import RunClosed, WarningRaised

    for event in events:
        if isinstance(event, RunClosed) and event.status in ("failed", "crashed"):
            if programs or event.variant != "program":
                what = event.error or f"the run has {event.status}"
                yield JaxprofError(what, event.advice), f"{event.workload} {event.variant}: {event.status}"
        elif isinstance(event, WarningRaised) and event.code == "worker_silent":
            yield JaxprofError(event.message, event.advice), f"run {event.run}"
