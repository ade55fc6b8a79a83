"""Start a program for `jaxprof script` before the rest of jaxprof is imported: both begin at the same time.

Only for command lines that leave nothing to decide; all others are read by `cli.commands.script`, which starts the
program later. Imports next to nothing, because the program waits for it.
"""

from __future__ import annotations

import _thread
import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Mapping, Sequence
else:
    import _signal as signal  # `signal` makes enums of the numbers, and the program would wait 5 ms for that

INJECT = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "recorder", "inject")
VARIABLE = "JAXPROF_PROGRAM"
PIPE_BYTES = 1 << 20
"""Requested size of the event pipe: it must hold the program's events while we are busy or paused."""
_JOB_PREFIXES = (
    "JAXPROF_JOB",
    "JAXPROF_LIMITS",
    "SLURM_",
    "OMPI_",
    "PMI",
    "RANK",
    "WORLD_SIZE",
    "TPU_",
    "MEGASCALE_",
    "JOB_COMPLETION_INDEX",
)
"""Prefixes of variables that may make this a process of a job (`job_process`), or change what the words mean."""
_BLOCKED_SIGNALS = ("SIGINT", "SIGQUIT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2")


class Words:
    """What the words after `jaxprof` request, if they request no more than that."""

    def __init__(self, out: str | None, path: str, arguments: tuple[str, ...], *, plain: bool) -> None:
        self.out, self.path, self.arguments, self.plain = out, path, arguments, plain


class Spawned:
    """A process that shares our streams, with the part of `subprocess.Popen` that its follower uses. The program would
    wait 8 ms for the import of that."""

    stdout = stderr = None

    def __init__(self, command: list[str], variables: Mapping[str, str], descriptors: Sequence[int]) -> None:
        """Start `command`, which inherits `descriptors` too. Raises OSError if it cannot be started."""
        for descriptor in descriptors:
            os.set_inheritable(descriptor, True)
        ignored_by_python = (signal.SIGPIPE, signal.SIGXFSZ)
        try:
            self.pid = os.posix_spawn(command[0], command, variables, setsigdef=ignored_by_python)
        finally:
            for descriptor in descriptors:
                os.set_inheritable(descriptor, False)
        self.returncode: int | None = None
        self._reaping = _thread.allocate_lock()

    def poll(self) -> int | None:
        """Return the exit code, minus the signal's number after a signal; None while the process runs."""
        if self.returncode is None and self._reaping.acquire(blocking=False):
            try:
                self._reap(os.WNOHANG)
            finally:
                self._reaping.release()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int | None:
        """Wait for the end, `timeout` seconds at most. Raises subprocess.TimeoutExpired."""
        if timeout is None:
            with self._reaping:
                self._reap(0)
            return self.returncode
        until = time.monotonic() + timeout
        while self.poll() is None:
            if time.monotonic() >= until:
                from subprocess import TimeoutExpired

                raise TimeoutExpired("the program", timeout)
            time.sleep(0.005)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the process has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def _reap(self, options: int) -> None:
        if self.returncode is None:
            try:
                pid, status = os.waitpid(self.pid, options)
            except ChildProcessError:  # whoever started us ignores SIGCHLD, so that the exit status is lost
                pid, status = self.pid, 0
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)


class Started:
    """A program that has been started, with its pipes."""

    def __init__(self, words: Words) -> None:
        self.words = words
        self.pipes = (*os.pipe(), *os.pipe())
        """The reading and the writing end of the pipe for events, then of the pipe for requests."""
        events_read, events_write, control_read, _ = self.pipes
        enlarge(events_write)
        self.began_seconds = time.monotonic()
        facts = f'{{"began_seconds": {self.began_seconds!r}, "options": {{}}}}'
        plan = f"{events_write} {events_read} {control_read} {facts}"
        self.process = Spawned(
            [sys.executable, words.path, *words.arguments],
            environment(plan, unbuffered=False),
            (events_write, events_read, control_read),
        )
        # Signals wait until somebody passes them on. The program started earlier, and does not inherit this mask.
        self._blocked = {number for name in _BLOCKED_SIGNALS if (number := getattr(signal, name, None)) is not None}
        signal.pthread_sigmask(signal.SIG_BLOCK, self._blocked)

    def take_signals(self) -> None:
        """Receive signals from now on; those that have waited come first. The terminal's signals wait on if a thread
        takes them, which learns who sent them (`passing_signals`)."""
        of_the_terminal = {signal.SIGINT, signal.SIGQUIT} if hasattr(signal, "sigtimedwait") else set()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, self._blocked - of_the_terminal)


def start_early(words: Sequence[str]) -> Started | None:
    """Start the program of a command line. Return None if it is another command, or the program cannot be started."""
    parsed = read_words(words, os.environ) if hasattr(os, "fork") else None
    if parsed is None or not any(os.path.isdir(os.path.join(at, "jax")) for at in sys.path):
        return None
    try:
        for number in range(3):
            os.fstat(number)  # a standard stream that is closed is an OSError
        opens_app = not parsed.plain and all(map(os.isatty, range(3)))
        if opens_app or not os.path.isfile(parsed.path):
            return None
        for stream in (sys.stdout, sys.stderr):
            stream.flush()  # what the user's sitecustomize has written here comes before what the program writes
        return Started(parsed)
    except (OSError, ValueError):
        return None


def read_words(words: Sequence[str], variables: Mapping[str, str]) -> Words | None:
    """Read `script [--plain] [--out FILE [--force]] FILE.py [ARGS]`, recorded alone; None for everything else."""
    if words[:1] != ["script"] or "_JAXPROF_COMPLETE" in variables:
        return None
    if any(name.startswith(_JOB_PREFIXES) for name in variables):
        return None
    out, plain, force, at = None, False, False, 1
    while at < len(words) and words[at].startswith("-"):
        if words[at] == "--plain":
            plain = True
        elif words[at] == "--force":
            force = True
        elif words[at].startswith("--out=") and out is None:
            out = words[at].removeprefix("--out=")
        elif words[at] == "--out" and out is None and at + 1 < len(words):
            at += 1
            out = words[at]
        else:
            return None
        at += 1
    # Only what is a program by its name: a session or HLO, which Python would read as one, has no such ending.
    if at >= len(words) or not words[at].endswith(".py") or (force and out is None):
        return None
    # Only into a new file: not at a URL, not in the folder of a job, and not in place of another one.
    if out is not None and (out == "" or "://" in out or out.rstrip("/").endswith(".d") or os.path.lexists(out)):
        return None
    return Words(out, words[at], tuple(words[at + 1 :]), plain=plain)


def environment(plan: str, *, unbuffered: bool) -> dict[str, str]:
    """Return our environment with what `recorder.inject.sitecustomize` needs and removes before the program begins."""
    variables = dict(os.environ)
    former = variables.get("PYTHONPATH")
    variables["PYTHONPATH"] = f"{INJECT}{os.pathsep}{former}" if former else INJECT
    if former is not None:
        variables["JAXPROF_FORMER_PYTHONPATH"] = former
    if "PYTHONUNBUFFERED" in variables:
        variables["JAXPROF_FORMER_PYTHONUNBUFFERED"] = variables["PYTHONUNBUFFERED"]
    elif unbuffered:
        variables["PYTHONUNBUFFERED"] = "1"
    variables[VARIABLE] = plan
    return variables


def enlarge(pipe: int) -> None:
    import fcntl

    command = getattr(fcntl, "F_SETPIPE_SZ", None)
    if command is not None:
        try:  # noqa: SIM105 - contextlib would be another import
            fcntl.fcntl(pipe, command, PIPE_BYTES)
        except OSError:  # more than this user may have: the default size is enough
            pass
