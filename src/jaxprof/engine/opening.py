"""The request to open a profile, from its begin to the event that ends it. Nothing here needs jax."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from jaxprof.engine.request import OpenTraceRequest
from jaxprof.events import Event, RunFinished
from jaxprof.measure.control import Cancelled, RunControl
from jaxprof.measure.failure import explain


def open_trace(request: OpenTraceRequest, emit: Callable[[Event], None], control: RunControl) -> None:
    """Emits the runs of the profile and `RunFinished`. Raises nothing."""
    from jaxprof.trace.imported import import_profile

    try:
        import_profile(
            Path(request.path), request.run, emit, control.check, profile_run=request.profile_run, hosts=request.hosts
        )
        emit(RunFinished(status="ok"))
    except Cancelled:
        emit(RunFinished(status="cancelled", error="cancelled"))
    except MemoryError:
        emit(
            RunFinished(
                status="failed",
                error=f"{request.path} does not fit into this machine's memory",
                advice="Record fewer steps, or open the profile of one host (--host).",
            )
        )
    except Exception as error:  # noqa: BLE001 - a damaged file can break the reader anywhere: that is the result
        failure = explain(error)
        emit(RunFinished(status="failed", error=failure.error, advice=failure.advice, traceback=failure.traceback))
