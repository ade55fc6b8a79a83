"""What holds for every test: it ends, it says whether it starts a process, and slow files go first.

A pytest plugin, loaded by `conftest.py`.

Ends: pytest-timeout raises in a test that is past its limit, which fails that test and lets the rest go on. A main
thread that swallows signals, or holds the interpreter's lock in native code, is not reached by that. Therefore the C
thread of faulthandler prints all stacks and ends the process some seconds later; with pytest-xdist, the parent then
names the test in which its worker crashed, and starts another worker. That one goes on with the next test: xdist alone
would begin the same one in eight workers, one after the other, and then give up.

Kinds: a test marked `process` may start one. Any other that does fails, so that `-m "not process"` stays quick. One
that records programs is marked `process(programs=N)`, and fails if it starts more: whatever is made of what programs
send is tested on tapes, so that all tests together record few (`MOST_PROGRAMS`).

Memory: what the tests of a file have compiled is forgotten after it, where the process has grown large.

Collector: what was there before the tests is not looked through again, nor what a file has left where it left much, and
the rest seldom. A fifth of the time was the collector's.

Order: files in which most tests start a process, or drive the app, go first. pytest-xdist hands out whole files in
that order.
"""

import ctypes
import faulthandler
import gc
import os
import sys
from collections import Counter
from collections.abc import Generator
from contextlib import suppress
from inspect import iscoroutinefunction
from pathlib import Path
from typing import Any

import pytest

from pythons import STAND_IN
from waiting import SLOWER

LARGE_BYTES = 800 << 20
"""A process that holds more between two files forgets what can be made again; imports and the app are half of it."""
GROWN_BYTES = 150 << 20
"""Growth after which garbage is looked for between two files, which takes a quarter of a second."""
GRACE_SECONDS = 15.0
"""From the limit of pytest-timeout to the end of the process: time for the teardown of a test that was stopped."""

COLLECTOR_THRESHOLDS = 20_000, 20, 20
"""When garbage is looked for; Python's own are 700, 10 and 10."""

MOST_PROGRAMS = 16
"""How many programs all tests together run under the recorder."""

REAPER = "jaxprof-reaper"
"""What the process is called that ends our children if this one is killed."""

VARIABLE = "JAXPROF_PROGRAM"
"""What is in the environment of a program under the recorder."""

_stderr = None
"""A copy of the real stderr: while a test runs, pytest captures the other one."""
_started = []
"""What the running test has started."""
_recorded = []
"""For each command that it started, how many programs that runs under the recorder."""
_kept_bytes = 0
"""What the process held when garbage was last looked for."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini("timeout_grace", "seconds after a test's limit until its process ends", default=str(GRACE_SECONDS))


def pytest_configure(config: pytest.Config) -> None:
    global _stderr
    if SLOWER > 1 and not config.getoption("timeout", None):
        config.option.timeout = SLOWER * float(config.getini("timeout") or 0)
    config.addinivalue_line("markers", "process(programs=0): starts a process, or forks; programs: how many it records")
    if _stderr is None:
        _stderr = os.dup(sys.__stderr__.fileno() if sys.__stderr__ is not None else 2)
        sys.addaudithook(_notice_process)


def _notice_process(event, arguments):
    if event == "subprocess.Popen":
        if REAPER in map(str, arguments[1]):
            return  # one serves all tests of this process: which of them starts it depends on their order
        _started.append(f"{arguments[0]} {arguments[1]}"[:300])
        _recorded.append(_programs([str(word) for word in arguments[1]], arguments[3]))
    elif event in ("os.fork", "os.forkpty", "os.posix_spawn", "os.system"):
        _started.append(event)


def _programs(words, variables):
    """How many programs a command records; one that records itself cannot be told from any other."""
    if any(word.endswith(STAND_IN) for word in words):
        return 0
    if "script" in words:
        return int(words[words.index("-n") + 1]) if "-n" in words else 1
    return int(VARIABLE in (variables or ()))


def programs_of(item: pytest.Item) -> int:
    """How many programs a test says that it records."""
    marker = item.get_closest_marker("process")
    return marker.kwargs.get("programs", 0) if marker else 0


def _limit(item):
    """Seconds that pytest-timeout gives the test; 0: without end."""
    marker = item.get_closest_marker("timeout")
    given = (marker.args[0] if marker.args else marker.kwargs.get("timeout")) if marker else None
    if given is None:
        given = item.config.getoption("timeout", None)
    return float(given if given is not None else item.config.getini("timeout") or 0)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    if config.getoption("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class EachOnce(LoadFileScheduling):
        """A test in which a worker ended is over."""

        def remove_node(self, node):
            units = self.assigned_work[node].values()
            crashed = next((test for unit in units for test, over in unit.items() if not over), None)
            for unit in units:
                unit.update({crashed: True} if crashed in unit else {})
            super().remove_node(node)
            return crashed

    return EachOnce(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, Any, Any]:
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(*COLLECTOR_THRESHOLDS)
        gc.enable()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, Any, Any]:
    _started.clear()
    _recorded.clear()
    if limit := _limit(item):
        grace = float(item.config.getini("timeout_grace"))
        faulthandler.dump_traceback_later(limit + grace, exit=True, file=_stderr)
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()
        if nextitem is not None and nextitem.path != item.path:
            _tidy()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish() -> None:
    """At its end pytest looks for garbage five times, to report what its finalisers raise: once is enough for that."""
    gc.collect()
    gc.freeze()


def _resident_bytes():
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:  # not Linux
        return 0


def _tidy():
    """Drops garbage where a file has left much; in a large process also compiled programs, parsed modules and what the
    C library keeps."""
    global _kept_bytes
    held = _resident_bytes()
    if held < _kept_bytes + GROWN_BYTES:
        return
    if held > LARGE_BYTES:
        if (jax := sys.modules.get("jax")) is not None:
            jax.clear_caches()
        gc.unfreeze()
    gc.collect()
    gc.freeze()
    if held > LARGE_BYTES:
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).malloc_trim(0)
    _kept_bytes = _resident_bytes()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    result = yield
    if _started and item.get_closest_marker("process") is None:
        pytest.fail(f"starts a process, and is not marked `process`: {_started[0]}", pytrace=False)
    if sum(_recorded) > programs_of(item):
        pytest.fail(f"records {sum(_recorded)} programs, and is not marked `process(programs=N)`", pytrace=False)
    return result


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    slow = Counter(item.path for item in items if item.get_closest_marker("process") or iscoroutinefunction(item.obj))
    sizes = Counter(item.path for item in items)
    at = {path: index for index, path in enumerate(sizes)}
    items.sort(key=lambda item: (-slow[item.path], -sizes[item.path], at[item.path]))
