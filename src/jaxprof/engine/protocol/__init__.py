"""The messages on the control pipes of our child processes, as frozen values that both sides share.

A request is one JSON object a line: `{"request": CLASS, FIELD: VALUE, ...}`. Here is the one to a recorded program,
with the options of its recording; module `request`, which the program never imports, has those to the engine. The
children answer with events. Standard library only.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from jaxprof.base.values import frozen


def encode_request(request: Any) -> bytes:
    """Return the line of a request, with its line break."""
    return json.dumps({"request": type(request).__name__, **asdict(request)}).encode() + b"\n"


def read_request(line: bytes, kinds: Iterable[type[Any]]) -> Any:
    """Return the request on `line`, an object of one of `kinds`. Raises ValueError for anything else."""
    payload = json.loads(line)
    by_name = {kind.__name__: kind for kind in kinds}
    if not isinstance(payload, dict) or payload.get("request") not in by_name:
        raise ValueError(f"not a request: {line[:80]!r}")
    try:
        return by_name[payload.pop("request")](**payload)
    except TypeError as error:
        raise ValueError(f"not a request: {error}") from error


@frozen(kw_only=True)
class RecordingOptions:
    """What is recorded in addition to the ledger and the timeline."""

    capture_after_seconds: float | None = None
    """Time from the program's start to the capture window, in which JAX's profiler is on; None to begin at once."""
    capture_steps: int | None = None
    capture_seconds: float | None = None
    """Length of the window; there is no window if all three are None."""
    function: str = ""
    """Name of a function, one call of which is measured at the end; empty for none."""
    values: bool = False
    """Whether that call's arguments are kept with their values, not only their shapes."""
    keep_constants: bool = False

    @property
    def wants_window(self) -> bool:
        """Whether a capture window was requested before the start."""
        return any(
            value is not None for value in (self.capture_after_seconds, self.capture_steps, self.capture_seconds)
        )


@frozen
class CaptureRequest:
    """Switch JAX's profiler on for this many seconds."""

    seconds: float
