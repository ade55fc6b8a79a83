"""Starts the processes of a job on this machine, and waits for them as a launcher does.

Each is `jaxprof script` itself, told by variables which process it is, as `srun` would tell it: there is one way of
recording a process of a job. They share our terminal and our process group. Once a process has failed, the others are
given a moment to fail by themselves (most wait in a collective for the one that has gone), and are ended then.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from typing import Final

from jaxprof.errors import WorkerError, system_words
from jaxprof.job_process import variables_for

GRACE_SECONDS: Final = 5.0
"""After the first failure, until the others are asked to end, and from there until they are killed."""
_LOOK_SECONDS: Final = 0.05
_GLOO: Final = {"JAX_CPU_COLLECTIVES_IMPLEMENTATION": "gloo"}
"""So that processes on CPUs can compute together; a program's own setting, or that of its user, comes first."""


class JobLaunch:
    """The processes of one job. `signal` may be called from any thread and from a signal handler."""

    def __init__(self, command: Sequence[str], count: int, job: str, *, output: int | None = None) -> None:
        """Starts `command` `count` times. `output`: a descriptor that takes the place of their stdout. The first one
        has our stdin, the others have none. Raises WorkerError if one cannot be started; none is left then."""
        self._processes: list[subprocess.Popen[bytes]] = []
        port = _free_port()
        for index in range(count):
            environment = _GLOO | dict(os.environ) | variables_for(index, count, job, port)
            try:
                self._processes.append(_start(command, environment, output, first=index == 0))
            except OSError as error:
                self._kill_all()
                raise WorkerError(
                    f"process {index} of {count} could not be started: {system_words(error)}", "Ask for fewer."
                ) from error

    def signal(self, number: int) -> None:
        """Passes a signal on to the processes that run; each passes it on to its program."""
        for process in self._processes:
            with suppress(ProcessLookupError, PermissionError):
                process.send_signal(number)

    def wait(self, failed: Callable[[int, int], None]) -> int:
        """Waits for all of them. Returns 0, or the exit code of the process that failed first.

        `failed` is called with index and exit code of each failure, in their order, until the others are ended by us.
        """
        first_failure, ended_by_us = 0, False
        running = dict(enumerate(self._processes))
        due = float("inf")
        try:
            while running:
                for index, process in list(running.items()):
                    if process.poll() is None:
                        continue
                    del running[index]
                    code = _as_in_a_shell(process.returncode)
                    if code and not ended_by_us:
                        failed(index, code)
                    if code and not first_failure:
                        first_failure, due = code, time.monotonic() + GRACE_SECONDS
                if running and time.monotonic() >= due:
                    due = time.monotonic() + GRACE_SECONDS
                    _kill_programs(running.values()) if ended_by_us else self.signal(signal.SIGTERM)
                    ended_by_us = True
                if running:
                    time.sleep(_LOOK_SECONDS)
        except BaseException:
            self._kill_all()
            raise
        return first_failure

    def _kill_all(self) -> None:
        _kill_programs(self._processes)
        for process in self._processes:
            process.kill()
            process.wait()


def _start(
    command: Sequence[str], environment: Mapping[str, str], output: int | None, *, first: bool
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command, env=environment, stdin=None if first else subprocess.DEVNULL, stdout=output)


def _kill_programs(processes: Iterable[subprocess.Popen[bytes]]) -> None:
    """Kills the programs; the processes that record them note that, and end their sessions."""
    import psutil

    for process in processes:
        with suppress(psutil.Error):
            for child in psutil.Process(process.pid).children():
                with suppress(psutil.Error):
                    child.kill()


def _as_in_a_shell(code: int) -> int:
    return code if code >= 0 else 128 - code


def _free_port() -> int:
    """Of the loopback interface, for the coordinator: nobody has it now."""
    with closing(socket.socket(socket.AF_INET, socket.SOCK_STREAM)) as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
