"""Take a profile of a program that runs `jax.profiler.start_server`, over the network.

JAX's own `jax.collect_profile` does the work, in a child of the chosen interpreter: it needs the package xprof, which
is large and not installed with jaxprof. Once the profile is written the child is ended, because it would go on to
convert the profile for another viewer.
"""

from __future__ import annotations

import os
import re
import select
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from jaxprof.base.errors import UsageError, WorkerError, system_words
from jaxprof.base.operating_system import python_words
from jaxprof.base.values import frozen
from jaxprof.runner.interpreter import Interpreter

PATIENCE_SECONDS = 60.0
"""Time allowed in addition to the requested seconds: to start the child, and to send and write a large profile."""
_WRITTEN = b"Dumped profiling information"
_EXAMPLE = "jaxprof open --seconds 2 localhost:9999, if it called jax.profiler.start_server(9999)."
_LISTENS_ELSEWHERE = "Is the program still running, and did it call jax.profiler.start_server with this port?"


@frozen
class Address:
    """Address of a profiler server."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def read_address(text: str) -> Address:
    """Parse `host:port`, `[::1]:port`, or the port alone for this machine. Raises UsageError."""
    match = re.fullmatch(r"(?:(?:\[([^\[\]]+)\]|([^:\[\]/\s]+)):)?(\d{1,5})", text.strip())
    if match is None or not 0 < int(match[3]) < 65536:
        raise UsageError(f"{text!r} is not HOST:PORT", _EXAMPLE)
    return Address(match[1] or match[2] or "localhost", int(match[3]))


def collect(address: Address, seconds: float, folder: Path, interpreter: Interpreter) -> None:
    """Make the program at `address` profile itself for `seconds`, and write the profile into `folder`. Raises
    UsageError if nothing listens there or xprof is missing, WorkerError if no profile came."""
    if interpreter.jax is None:
        raise UsageError(f"{interpreter.path} has no jax", "--python PATH names one that has jax and xprof.")
    try:
        with socket.create_connection((address.host, address.port), 5.0) as connection:
            host = str(connection.getpeername()[0])
    except socket.gaierror:
        raise UsageError(f"there is no host {address.host!r}", _EXAMPLE) from None
    except TimeoutError:
        raise UsageError(f"{address} does not answer", "Behind a firewall, an SSH tunnel helps.") from None
    except OSError as error:
        raise UsageError(f"nothing listens at {address}: {system_words(error)}", _LISTENS_ELSEWHERE) from None
    command = [
        *python_words(interpreter.path, "-u", "-m", "jax.collect_profile"),
        *(str(address.port), str(round(seconds * 1000))),
        *("--host", f"[{host}]" if ":" in host else host, "--log_dir", str(folder)),
        *("--no_perfetto_link", "--python_tracer_level=0"),
    ]
    with _child(command) as process:
        written = _output_until_written(process, time.monotonic() + seconds + PATIENCE_SECONDS)
    if written is None:
        raise WorkerError(
            f"{address} accepted the request but sent no profile within {seconds + PATIENCE_SECONDS:.0f} s",
            "Is it a profiler's port? The server of jax 0.7.2 does not answer xprof; those of 0.10 and 0.12 do.",
        )
    if _WRITTEN in written:
        return
    output = written.decode(errors="replace")
    if "xprof" in output and ("ImportError" in output or "ModuleNotFoundError" in output):
        raise UsageError(
            f"taking a profile over the network needs xprof, which {interpreter.path} does not have",
            f"{interpreter.path} -m pip install xprof; --python PATH names another interpreter.",
        )
    if "failed to connect" in output:
        raise UsageError(f"nothing answers at {address}", _LISTENS_ELSEWHERE)
    if "No trace event" in output:
        raise WorkerError(
            f"nothing was captured: the program at {address} ran nothing in these {seconds:g} s",
            "Capture while it works, or for longer: --seconds 10.",
        )
    last = next((line for line in reversed(output.splitlines()) if line.strip()), "it reported no reason")
    raise WorkerError(f"jax.collect_profile failed: {last.strip()}", "xprof and jax may be of versions too far apart.")


@contextmanager
def _child(command: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """Run the child during the block, and end it afterwards whatever happens in it."""
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}  # the child computes nothing, and must not take a device
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment,
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def _output_until_written(process: subprocess.Popen[bytes], until: float) -> bytes | None:
    """Return what the child wrote until it reported the profile as written, or until its end; None if time ran out."""
    assert process.stdout is not None
    output = b""
    while _WRITTEN not in output:
        left = until - time.monotonic()
        if left <= 0 or not select.select([process.stdout], [], [], left)[0]:
            return None
        data = os.read(process.stdout.fileno(), 65536)
        if not data:
            break
        # It may quote what a server sends without end.
        output = (output + data)[-(1 << 16) :]
    return output
