"""The answers of a web server, no longer than the reader expects: a server sends as much as it likes, whatever it told.

Imports aiohttp, and is imported where fsspec needs it anyway.
"""

from __future__ import annotations

from aiohttp import EMPTY_PAYLOAD, ClientPayloadError, ClientResponse

from jaxprof.limits import HELD_OF_FETCHED


class _Held(type(EMPTY_PAYLOAD)):  # type: ignore[misc]
    """A stream that has been read."""

    def __init__(self, data: bytes) -> None:
        super().__init__()
        self._data = data

    async def read(self, n: int = -1) -> bytes:
        return self._data


class BoundedResponse(ClientResponse):
    """Ends an answer that grows beyond the bound while it is read as a whole."""

    async def read(self) -> bytes:
        """The whole answer. Raises ClientPayloadError where it is too long."""
        if not isinstance(self.content, _Held):
            held = bytearray()
            async for piece in self.content.iter_any():
                held += piece
                if len(held) > HELD_OF_FETCHED:
                    self.close()
                    raise ClientPayloadError(f"more than {HELD_OF_FETCHED >> 20} MiB of a listing")
            self.content = _Held(bytes(held))
        return await super().read()
