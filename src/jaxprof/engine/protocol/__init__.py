"""The messages on the control pipes of our child processes, as frozen values that both sides share.

A request is one JSON object a line: `{"request": CLASS, FIELD: VALUE, ...}`. Module `request` has those to the engine,
`recording` the one to a recorded program. The children answer with events. Standard library only.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any


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
