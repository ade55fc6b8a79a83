"""Run the engine in one child process: start, request, read, cancel, end.

This module also answers the questions that only a process with the user's jax can answer: the devices, and the user's
workloads.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from jaxprof.base.errors import UsageError, WorkerError
from jaxprof.base.operating_system import python_words, refuse_own_code, refuse_to_run
from jaxprof.base.reaper import REAPER
from jaxprof.base.values import frozen
from jaxprof.devices.live.process_state import is_stopped
from jaxprof.engine.protocol import encode_request
from jaxprof.engine.protocol.request import (
    SCRATCH,
    CancelRequest,
    DescribeRequest,
    DevicesRequest,
    EmptyCallRequest,
    EngineAnswer,
    InputsRequest,
    KeptLeaf,
    Request,
)
from jaxprof.runner.child import ChildProcess, Pipes
from jaxprof.runner.interpreter import Interpreter
from jaxprof.session.log.codec import are_bounded
from jaxprof.workloads import names
from jaxprof.workloads.model import WorkloadInfo

if TYPE_CHECKING:
    from jaxprof.events import Event, Heartbeat, RunSpec

ENGINE = Path(__file__).resolve().parent.parent / "engine" / "__main__.py"
ASK_SECONDS = 1.0
"""How long a cancelled run may take to end by itself; a compile cannot be interrupted."""
DESCRIBE_SECONDS = 120.0
"""How long a child may take to import the user's code and describe it."""
TERMINATE_SECONDS = 2.0
"""How long the engine may take to end after SIGTERM."""
_END_SECONDS = 0.2
"""How long an idle engine may take to end by itself."""
FREEZE_SECONDS = 0.1
"""Longest time that `freeze` waits for a child to stop."""
_FREEZE_POLL_SECONDS = 2e-4
_ANSWER = msgspec.json.Decoder(EngineAnswer)


class EngineProcess(ChildProcess):
    """A running engine, in a process group of its own. One thread owns it; only `cancel` and `kill` may be called from
    others."""

    def __init__(self, interpreter: Interpreter, environment: Mapping[str, str] | None = None) -> None:
        """Start the engine; `environment` is laid over ours. Raises WorkerError if it cannot be started, UsageError on
        Windows."""
        refuse_to_run("measuring")
        self.python = interpreter.path
        self.answer: EngineAnswer | None = None
        """The latest reply to a request for data."""
        self._cancelled_seconds: float | None = None
        self._signals_sent = 0
        self._frozen = False
        self._scratch = _scratch()
        pipes = Pipes.open()
        command = python_words(interpreter.path, "-u", str(ENGINE))
        command += ["--events-fd", str(pipes.events_write), "--control-fd", str(pipes.control_read)]
        try:
            super().__init__(
                command,
                pipes,
                {**os.environ, **(environment or {}), SCRATCH: self._scratch, "PYTHONUNBUFFERED": "1"},
                name="the worker",
                descriptors=(pipes.events_write, pipes.control_read),
            )
        except BaseException:
            self._remove_scratch()
            raise
        REAPER.add(self.pid, self._scratch)

    def send(self, request: Request) -> None:
        """Send a request. Raises WorkerError if the child has ended, NotAllowedError if it would run code of the user's
        and may not."""
        spec: RunSpec | None = getattr(request, "spec", None)
        targets = (spec.target, spec.inputs_from) if spec is not None else getattr(request, "targets", ())
        for target in targets:
            if target and target not in names():
                refuse_own_code(target)
        try:
            os.write(self._control, encode_request(request))
        except OSError as error:
            raise WorkerError("the worker is gone", self.explain().what) from error

    def cancel(self) -> None:
        """Ask the run to end; if the child does not, `read` terminates it and finally kills it. A second call skips
        the wait."""
        if self._cancelled_seconds is None:
            self._cancelled_seconds = time.monotonic()
            with contextlib.suppress(OSError):
                os.write(self._control, encode_request(CancelRequest()))
        else:
            self._cancelled_seconds -= ASK_SECONDS

    def freeze(self) -> None:
        """Stop the engine, with every thread and process of its group, until `thaw`. Return once it has stopped: on a
        busy machine a thread takes the signal only when it gets a processor. A frozen engine sends no heartbeats, and
        only `kill` and `close` end it. Only the thread that reads it may freeze and thaw it."""
        if not self._frozen and self.alive:
            self._frozen = True
            self._signal_all(signal.SIGSTOP)
            deadline = time.monotonic() + FREEZE_SECONDS
            while not self._has_stopped() and time.monotonic() < deadline:
                time.sleep(_FREEZE_POLL_SECONDS)

    def _has_stopped(self) -> bool:
        """Return whether a signal has stopped all its threads (`is_stopped` looks only at the first), or it has
        ended."""
        if sys.platform != "linux":
            return is_stopped(self.pid)
        try:
            return os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:
            return True

    def thaw(self) -> None:
        """Let a frozen engine go on."""
        if self._frozen:
            self._frozen = False
            self._signal_all(signal.SIGCONT)

    @property
    def cancelled(self) -> bool:
        """Whether `cancel` was called."""
        return self._cancelled_seconds is not None

    def close(self) -> None:
        """End the child if it still runs, and free everything. May be called twice."""
        if self._control < 0:
            return
        self.thaw()
        os.close(self._control)  # which makes the engine end
        self._control = -1
        if not self._ended_within(_END_SECONDS):
            self._signal_all(signal.SIGTERM)
            self._ended_within(TERMINATE_SECONDS)
        self.kill()  # with the processes of its group that it may have left behind
        super().close()
        self._remove_scratch()
        REAPER.drop(self.pid)

    def _remove_scratch(self) -> None:
        if self._scratch:
            shutil.rmtree(self._scratch, ignore_errors=True)

    def _ended_within(self, patience_seconds: float) -> bool:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(patience_seconds)
        return not self.alive

    def _after_read(self) -> None:
        """End a cancelled child that does not end by itself."""
        if self.over or self._cancelled_seconds is None:
            return
        waited = time.monotonic() - self._cancelled_seconds
        if waited > ASK_SECONDS + TERMINATE_SECONDS and self._signals_sent == 1:
            self._signals_sent = 2
            self.kill()
        elif waited > ASK_SECONDS and self._signals_sent == 0:
            self._signals_sent = 1
            self._signal_all(signal.SIGTERM)

    def _events_in(self, line: bytes) -> list[Event]:
        if line.startswith((b'{"type": "answer"', b'{"type":"answer"')):
            self.answer = _answer(line)
            return []
        return super()._events_in(line)

    def _heartbeat(self, heartbeat: Heartbeat) -> None:
        if heartbeat.run:  # one that waits for a request gives no sign of the run
            super()._heartbeat(heartbeat)


def _answer(line: bytes) -> EngineAnswer:
    """Return the engine's answer on `line`; one with an error if it cannot be read."""
    try:
        answer = _ANSWER.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        return EngineAnswer(error=f"the worker's answer cannot be read: {error}")
    return answer if are_bounded(answer) else EngineAnswer(error="the worker's answer holds an impossible number")


T = TypeVar("T")


@frozen
class _Devices:
    """The data of the answer to a `DevicesRequest`."""

    devices: list[dict[str, Any]] = field(default_factory=list)
    errors: dict[str, str] = field(default_factory=dict)
    process_index: int | None = None
    default: str = ""


def _scratch() -> str:
    """Make a folder for temporary files of an engine; empty if none can be made, the engine then finds one itself."""
    try:
        return tempfile.mkdtemp(prefix="jaxprof-engine-")
    except OSError:
        return ""


def ask(
    interpreter: Interpreter, request: Request, environment: Mapping[str, str], timeout_seconds: float, kind: type[T]
) -> T:
    """Send one request for data to a new engine and return the answer's data, as `kind`.

    Raises WorkerError, with the engine's message if it fails, ends, or does not answer in time, and if the answer
    cannot be read as `kind`.
    """
    process = EngineProcess(interpreter, environment)
    try:
        process.send(request)
        deadline = time.monotonic() + timeout_seconds
        while (left := deadline - time.monotonic()) > 0:
            process.read(min(left, 0.2))
            if process.answer is not None:
                if process.answer.error:
                    raise WorkerError(process.answer.error, process.answer.hint)
                return msgspec.convert(process.answer.data, kind, strict=False)
            if process.over:
                raise process.explain()
        hint = "Try again."
        if isinstance(request, DescribeRequest):
            hint = "A file is imported to find its functions: code at its top level must finish."
        raise WorkerError(f"no answer from {interpreter.path} within {timeout_seconds:g} s", hint)
    except msgspec.ValidationError as error:
        raise WorkerError(f"the answer of {interpreter.path} cannot be used: {error}") from error
    finally:
        process.close()


def host_devices(count: int) -> dict[str, str]:
    """Return variables that make JAX create `count` CPU devices, which stand for devices that are not here."""
    return {"JAX_NUM_CPU_DEVICES": str(count)} if count > 1 else {}


def jax_devices(interpreter: Interpreter, timeout_seconds: float = 60.0) -> dict[str, Any]:
    """Return what JAX sees there, as the engine answers it. Blocks while a child does the work, which takes no GPU
    memory, and numbers GPUs as `local_devices` does. Raises WorkerError."""
    from jaxprof.devices.inventory.placement import settled_order

    environment = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", "TF_CPP_MIN_LOG_LEVEL": "3", **settled_order(os.environ)}
    answer = ask(interpreter, DevicesRequest(), environment, timeout_seconds, _Devices)
    if not all(device.get("id") for device in answer.devices):
        raise WorkerError(f"the answer of {interpreter.path} cannot be used: a device has no id")
    return asdict(answer)


def empty_call_seconds(interpreter: Interpreter, request: EmptyCallRequest) -> float:
    """Return the CPU seconds of an empty call of a compiled function on a CPU, as the engine measures it. Blocks while
    a child does the work, which leaves nothing in the user's dump folder or compilation cache. Raises WorkerError."""
    environment = {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": "", "JAX_ENABLE_COMPILATION_CACHE": "false"}
    return ask(interpreter, request, environment, 20.0, float)


def describe_inputs(interpreter: Interpreter, spec: RunSpec, variables: Mapping[str, str]) -> list[KeptLeaf]:
    """Return the inputs with which a run of `spec` would be called. A child makes them, with `variables` in its
    environment. Raises WorkerError."""
    environment = {"JAX_PLATFORMS": "cpu", **variables}
    return ask(interpreter, InputsRequest(spec=spec), environment, DESCRIBE_SECONDS, list[KeptLeaf])


def describe(
    interpreter: Interpreter,
    targets: Sequence[str],
    arguments: Sequence[str] = (),
    devices: int = 1,
    timeout_seconds: float = DESCRIBE_SECONDS,
    variables: Mapping[str, str] | None = None,
    inputs_from: str = "",
) -> list[WorkloadInfo]:
    """Return the workloads at `targets`. The user's code is imported in a child, never here; the child has `devices`
    CPU devices, and `variables` in its environment. Workloads that do not describe their inputs take those of
    `inputs_from`. Raises UsageError for a target that cannot be described."""
    request = DescribeRequest(targets=list(targets), arguments=list(arguments), inputs_from=inputs_from)
    environment = {"JAX_PLATFORMS": "cpu", **host_devices(devices), **(variables or {})}
    try:
        return ask(interpreter, request, environment, timeout_seconds, list[WorkloadInfo])
    except WorkerError as error:
        raise UsageError(error.what, error.hint) from error
