"""The options of a program's recording, and the request while it runs: the client writes them, the recorder in the
program reads them.

Separate from the engine's requests, because it is imported while the user's program starts.
"""

from __future__ import annotations

from jaxprof.base.values import frozen


@frozen(kw_only=True)
class RecordingOptions:
    """What is recorded in addition to the ledger and the timeline."""

    capture_after_seconds: float | None = None
    """Time from the program's start to the capture window, in which JAX's profiler is on; None to begin at once."""
    capture_steps: int | None = None
    capture_seconds: float | None = None
    """Length of the window; there is no window if all three are None."""
    function: str = ""
    """Name of a function of which one call is kept, and measured at the end; empty for none."""
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
    """Switch JAX's profiler on for so many seconds."""

    seconds: float
