"""The messages on the control pipes of our child processes, as frozen values that both sides share.

A request is one JSON object a line: `{"request": KIND, FIELD: VALUE, ...}`. Module `request` has those to the engine,
`recording` those to a recorded program. The children answer with events. Standard library only.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any


def write_request(request: Any, kinds: Mapping[str, type[Any]]) -> bytes:
    """Return the line of a request, with its line break; `kinds` names the dataclasses of this pipe's requests."""
    kind = next(name for name, cls in kinds.items() if isinstance(request, cls))
    return json.dumps({"request": kind, **asdict(request)}).encode() + b"\n"


def read_request(line: bytes, kinds: Mapping[str, type[Any]]) -> tuple[type[Any], dict[str, Any]]:
    """Return the type of the request on `line`, and its fields. Raises ValueError if it is none of `kinds`."""
    payload = json.loads(line)
    if not isinstance(payload, dict) or payload.get("request") not in kinds:
        raise ValueError(f"not a request: {line[:80]!r}")
    return kinds[payload.pop("request")], payload
