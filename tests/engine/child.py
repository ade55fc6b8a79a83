"""A real engine process on real pipes, without the client: what it says, line by line."""

import json
import os
import select
import subprocess
import sys
import time
from pathlib import Path

from jaxprof.engine.protocol import encode_request
from jaxprof.engine.protocol.request import RunRequest
from jaxprof.events import RunSpec
from waiting import SLOWER

ENGINE = Path(__file__).resolve().parents[2] / "src" / "jaxprof" / "engine" / "__main__.py"
PATIENCE_SECONDS = 90.0 * SLOWER


class Child:
    """Started with its two pipes; `until` reads on to the line that is waited for."""

    def __init__(self, *arguments, python=sys.executable, environment=None):
        self._events, events = os.pipe()
        control, self._control = os.pipe()
        self.process = subprocess.Popen(
            [python, "-u", str(ENGINE), "--events-fd", str(events), "--control-fd", str(control), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            pass_fds=(events, control),
            start_new_session=True,
            env={**os.environ, "JAX_PLATFORMS": "cpu", **(environment or {})},
        )
        os.close(events)
        os.close(control)
        self._rest = b""
        self.lines = []

    def send(self, request):
        os.write(self._control, encode_request(request))

    def until(self, wanted):
        """The next line that is `wanted`. Fails the test where the pipe ends, or patience does, before it comes."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (line := self._next(deadline)) is not None:
            if wanted(line):
                return line
        raise AssertionError(f"it never came; the last lines were {self.lines[-5:]}")

    def run(self, request):
        """All lines of one run, the last of them its `run_finished`."""
        before = len(self.lines)
        self.send(request)
        self.finished()
        return self.lines[before:]

    def rest(self):
        """What still comes until the pipe ends."""
        before = len(self.lines)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self._next(deadline) is not None:
            pass
        return self.lines[before:]

    def finished(self):
        return self.until(lambda line: line["type"] == "run_finished")

    def answer(self):
        return self.until(lambda line: line["type"] == "answer")

    def hang_up(self):
        """Closes the control pipe: the order to end."""
        if self._control >= 0:
            os.close(self._control)
            self._control = -1

    def close(self):
        self.hang_up()
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        os.close(self._events)

    def _next(self, deadline):
        while b"\n" not in self._rest:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._events], [], [], left)[0]:
                return None
            data = os.read(self._events, 1 << 16)
            if not data:
                return None
            self._rest += data
        text, _, self._rest = self._rest.partition(b"\n")
        self.lines.append(json.loads(text))
        return self.lines[-1]


def wanted(target, variant="jit", **options):
    """A brief run without a capture."""
    values = {"workload": target, "target": target, "variant": variant, "how": "jit", "device": "cpu:0"}
    return RunRequest(run="r1", spec=RunSpec(**{**values, "budget_seconds": 0.1, "capture": False, **options}))


def of_type(lines, kind):
    return [line for line in lines if line["type"] == kind]


def phases(lines):
    """The end of each phase, in the order in which they ended."""
    return {line["phase"]: line for line in of_type(lines, "phase_ended")}


def is_phase(name):
    return lambda line: line["type"] == "phase_started" and line["phase"] == name
