"""The one error of this room."""

from __future__ import annotations

from jaxprof.errors import FileRefusedError


class HloError(FileRefusedError):
    """What was given is not HLO, or nothing of it can be read. It names what the thing seems to be."""
