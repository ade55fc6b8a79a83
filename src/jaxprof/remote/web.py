"""Limit the size of the answers of a web server, which may send more than it announces.

This module imports aiohttp, and is imported only where fsspec needs that anyway.
"""

from __future__ import annotations

from aiohttp import EMPTY_PAYLOAD, ClientPayloadError, ClientResponse

from jaxprof.limits import HELD_OF_FETCHED


class _Held(type(EMPTY_PAYLOAD)):  # type: ignore[misc]
    """A stream whose content has been read."""

    def __init__(self, data: bytes) -> None:
        super().__init__()
        self._data = data

    async def read(self, n: int = -1) -> bytes:
        return self._data


class BoundedResponse(ClientResponse):
    """Response that stops reading an answer beyond the limit."""

    async def read(self) -> bytes:
        """Return the whole answer. Raises ClientPayloadError if it is too long."""
        if not isinstance(self.content, _Held):
            held = bytearray()
            async for piece in self.content.iter_any():
                held += piece
                if len(held) > HELD_OF_FETCHED:
                    self.close()
                    raise ClientPayloadError(f"more than {HELD_OF_FETCHED >> 20} MiB of a listing")
            self.content = _Held(bytes(held))
        return await super().read()
