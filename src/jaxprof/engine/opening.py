"""Serves the request to open a profile, up to its final event. Needs no jax."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from jaxprof.engine.measure.control import Cancelled, RunControl
from jaxprof.engine.measure.failure import failed
from jaxprof.engine.protocol.request import OpenTraceRequest
from jaxprof.events import Event, RunFinished


def open_trace(request: OpenTraceRequest, emit: Callable[[Event], None], control: RunControl) -> None:
    """Emit the runs of the profile and `RunFinished`. Raises nothing."""
    from jaxprof.trace.imported import import_profile

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
        emit(RunFinished(status="ok"))
    except Cancelled:
        emit(RunFinished(status="cancelled", error="cancelled"))
    except MemoryError:
        emit(
            RunFinished(
                status="failed",
                error=f"{request.path} does not fit into this machine's memory",
                advice="Record fewer steps.",
            )
        )
    except Exception as error:  # noqa: BLE001 - a damaged file can break the reader anywhere: that is the result
        emit(failed(error))
