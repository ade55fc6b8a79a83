"""What can be asked of the recording of a program: the client writes it, the recorder in the program reads it.

Standard library only, and apart from the requests of the engine: it is read while the user's program starts.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingOptions:
    """What is wanted besides the ledger and the time line."""

    capture_after_seconds: float | None = None
    """From the program's start to the window in which JAX's profiler is on. A window without this begins at once."""
    capture_steps: int | None = None
    capture_seconds: float | None = None
    """How long the window is; no window where all three are None."""
    function: str = ""
    """Name of a function of which one call is kept, to be measured at the end."""
    values: bool = False
    """Whether the arguments of that call are kept with their values, and not only their shapes."""
    keep_constants: bool = False
    transfers: bool = False
    """Whether implicit copies are counted, by JAX's transfer guard: only where somebody reads the program's stderr."""

    @property
    def wants_window(self) -> bool:
        """Whether a capture window was asked for before the start."""
        return any(
            value is not None for value in (self.capture_after_seconds, self.capture_steps, self.capture_seconds)
        )
