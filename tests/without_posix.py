"""A process in which what Windows lacks is hidden: `python without_posix.py ARGUMENTS` is `jaxprof ARGUMENTS` in it.

With `--each`, it reads a list of such arguments from stdin, and prints what came of each: exit code, stdout, stderr.

Modules that only POSIX has cannot be imported, and their functions, signals and flags are gone from `os` and `signal`.
The standard library, and what else jaxprof is built on, does without them on Windows, and has what it imported here
before; jaxprof itself has to do without them as well.
"""

import asyncio  # noqa: F401
import contextlib
import importlib
import json
import os
import selectors  # noqa: F401
import shutil
import signal
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

MODULES = ("fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty")
FUNCTIONS = (
    "O_CLOEXEC", "O_DIRECTORY", "O_NOFOLLOW", "O_NONBLOCK", "O_SYNC", "chroot", "fchmod", "fchown", "fork", "forkpty",
    "getegid", "geteuid", "getgid", "getgroups", "getloadavg", "getpgid", "getpriority", "getuid", "killpg", "lchown",
    "mkfifo", "nice", "openpty", "pathconf", "pidfd_open", "pipe2", "posix_spawn", "pread", "preadv", "pwrite",
    "register_at_fork", "sched_getaffinity", "sched_setaffinity", "sched_yield", "sendfile", "set_blocking", "setpgid",
    "setsid", "statvfs", "sysconf", "tcgetpgrp", "ttyname", "uname", "wait", "wait3", "wait4",
)  # fmt: skip
SIGNALS = (
    "SIGABRT", "SIGCONT", "SIGFPE", "SIGILL", "SIGINT", "SIGSEGV", "SIGTERM", "SIGTSTP", "SIGTTIN", "SIGTTOU",
    "SIGWINCH",
)  # fmt: skip
"""Those that Windows has, and those for Textual's driver of this terminal, which is another one on Windows."""
SIGNAL_FUNCTIONS = (
    "ITIMER_REAL", "SIG_BLOCK", "SIG_SETMASK", "SIG_UNBLOCK", "alarm", "pause", "pthread_kill", "pthread_sigmask",
    "setitimer", "siginterrupt", "sigpending", "sigtimedwait", "sigwait", "sigwaitinfo",
)  # fmt: skip
BUILT_ON = (
    "click", "encodings.idna", "msgspec", "multiprocessing.connection", "numpy", "platformdirs.unix", "psutil",
    "pynvml", "textual.app", "textual.command", "textual.drivers.linux_driver", "textual.widgets", "uuid",
)  # fmt: skip


class Hidden(MetaPathFinder):
    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name in MODULES:
            raise ModuleNotFoundError(f"No module named {name!r} (on Windows)", name=name)
        return None


def hide() -> None:
    for name in BUILT_ON:
        importlib.import_module(name)
    for name in MODULES:
        sys.modules.pop(name, None)
    sys.meta_path.insert(0, Hidden())
    for name in FUNCTIONS:
        if hasattr(os, name):
            delattr(os, name)
    if hasattr(os, "process_cpu_count"):  # from Python 3.13 on; on Windows it is this
        os.process_cpu_count = os.cpu_count
    known = dict(signal.Signals.__members__)
    for name in [*known, *SIGNAL_FUNCTIONS]:
        if name not in SIGNALS and hasattr(signal, name):
            delattr(signal, name)
    there = {name: number for name, number in known.items() if name in SIGNALS}
    signal.Signals._member_map_ = there
    shutil._use_fd_functions = False
    plain = subprocess.Popen.__init__

    def popen(self, *arguments, **options):
        refused = {"pass_fds", "start_new_session", "preexec_fn", "process_group"} & {
            name for name, value in options.items() if value
        }
        if refused:
            raise ValueError(f"{', '.join(sorted(refused))} is not supported on Windows")
        plain(self, *arguments, **options)

    subprocess.Popen.__init__ = popen


def each(commands: list[list[str]]) -> list[tuple[object, ...]]:
    """What came of each command, one after the other in this process."""
    from jaxprof.cli.main import main

    found = []
    for words in commands:
        with (
            tempfile.TemporaryFile("w+", encoding="utf-8") as out,
            tempfile.TemporaryFile("w+", encoding="utf-8") as err,
        ):
            code = 0
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                try:
                    main(words)
                except SystemExit as ended:
                    code = ended.code or 0
            texts = []
            for stream in (out, err):
                stream.flush()
                stream.seek(0)
                texts.append(stream.read())
        found.append((code, *texts))
    return found


if __name__ == "__main__":
    hide()
    # With -X warn_default_encoding: text is read and written as UTF-8, whatever the code page of the console.
    warnings.filterwarnings("error", category=EncodingWarning, module="jaxprof")
    if sys.argv[1:] == ["--each"]:
        sys.stdout.write(json.dumps(each(json.load(sys.stdin))))
    else:
        from jaxprof.cli.main import main

        main(sys.argv[1:])
