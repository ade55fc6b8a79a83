"""Serves the request to open a profile, up to its final event. Needs no jax."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from jaxprof.base.errors import DoesNotFitError
from jaxprof.engine.measure.control import Reporter, RunControl
from jaxprof.engine.measure.failure import conclude
from jaxprof.engine.protocol.request import OpenTraceRequest
from jaxprof.events import Event


def open_trace(request: OpenTraceRequest, emit: Callable[[Event], None], control: RunControl) -> None:
    """Emit the runs of the profile and `RunFinished`. Raises nothing."""
    from jaxprof.trace.imported import import_profile

    def work() -> None:
        try:
            import_profile(
                Path(request.path),
                request.run,
                emit,
                control.check,
                profile_run=request.profile_run,
                host=request.host,
                views=request.views,
            )
        except MemoryError:
            what = f"{request.path} does not fit into this machine's memory"
            raise DoesNotFitError(what, "Record fewer steps.") from None

    conclude(Reporter(emit, control), work)
