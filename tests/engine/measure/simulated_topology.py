"""Compiles for the CPU devices of this process as if they were those of a topology that is not here.

Requests come in on stdin, one a line; the events of each go to stdout, in JSON, and then a `session_closed`. The
topology has the devices in the opposite order, so that a device which stands for another one is not that one.
"""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import jax
from jax.experimental import topologies

from jaxprof.engine.measure.ahead_of_time import compile_request
from jaxprof.engine.measure.control import RunControl
from jaxprof.engine.protocol.request import CompileRequest, decode_request
from jaxprof.events import Event, SessionClosed
from jaxprof.session.log.codec import encode_line


def topology(*_: Any, **__: Any) -> Any:
    """The devices of this process."""
    return SimpleNamespace(devices=jax.devices()[::-1])


def emit(event: Event) -> None:
    sys.stdout.buffer.write(encode_line(event))
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    topologies.get_topology_desc = topology
    for line in sys.stdin.buffer:
        request = decode_request(line)
        assert isinstance(request, CompileRequest)
        compile_request(request, emit, RunControl())
        emit(SessionClosed())
