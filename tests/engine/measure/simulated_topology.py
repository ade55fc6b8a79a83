"""Compiles for the CPU devices of this process as if they were those of a topology that is not here.

Requests come in on stdin, one a line; the events of each go to stdout, in JSON, and then a `session_closed`. The
topology has the devices in the opposite order, so that a device which stands for another one is not that one.
"""

import sys
from types import SimpleNamespace

import jax
from jax.experimental import topologies

from jaxprof.engine.measure.ahead_of_time import compile_request
from jaxprof.engine.measure.control import RunControl
from jaxprof.engine.protocol.request import decode_request
from jaxprof.events import SessionClosed
from jaxprof.session.lines import encode_line


def emit(event):
    sys.stdout.buffer.write(encode_line(event))
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    topologies.get_topology_desc = lambda *_, **__: SimpleNamespace(devices=jax.devices()[::-1])
    for line in sys.stdin.buffer:
        compile_request(decode_request(line), emit, RunControl())
        emit(SessionClosed())
