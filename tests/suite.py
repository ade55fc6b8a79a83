"""What holds for every test: it ends, it says whether it starts a process, and slow files go first.

A pytest plugin, loaded by `conftest.py`.

Ends: pytest-timeout raises in a test that is past its limit, which fails that test and lets the rest go on. A main
thread that swallows signals, or holds the interpreter's lock in native code, is not reached by that. Therefore the C
thread of faulthandler prints all stacks and ends the process some seconds later; with pytest-xdist, the parent then
names the test in which its worker crashed, and starts another worker. That one goes on with the next test: xdist alone
would begin the same one in eight workers, one after the other, and then give up.

Kinds: a test marked `process` may start one. Any other that does fails, so that `-m "not process"` stays quick.

Memory: what the tests of a file have compiled is forgotten after it, where the process has grown large.

Collector: what was there before a file is not looked through again, and the rest seldom. A fifth of the time was the
collector's.

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

LARGE_BYTES = 600 << 20
"""A process that holds more between two files forgets what can be made again; imports and the app are half of it."""
GROWN_BYTES = 100 << 20
"""And forgets again once it has grown by so much: looking through all that it holds takes a large part of a second."""
GRACE_SECONDS = 15.0
"""From the limit of pytest-timeout to the end of the process: time for the teardown of a test that was stopped."""

COLLECTOR_THRESHOLDS = 20_000, 20, 20
"""When garbage is looked for; Python's own are 700, 10 and 10."""

REAPER = "jaxprof-reaper"
"""What the process is called that ends our children if this one is killed."""

_stderr = None
"""A copy of the real stderr: while a test runs, pytest captures the other one."""
_started = []
"""What the running test has started."""
_kept_bytes = 0
"""What the process held when it had last forgotten."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini("timeout_grace", "seconds after a test's limit until its process ends", default=str(GRACE_SECONDS))


def pytest_configure(config: pytest.Config) -> None:
    global _stderr
    config.addinivalue_line("markers", "process: starts a process, or forks")
    if _stderr is None:
        _stderr = os.dup(sys.__stderr__.fileno() if sys.__stderr__ is not None else 2)
        sys.addaudithook(_notice_process)


def _notice_process(event, arguments):
    if event == "subprocess.Popen":
        if REAPER in map(str, arguments[1]):
            return  # one serves all tests of this process: which of them starts it depends on their order
        _started.append(f"{arguments[0]} {arguments[1]}"[:300])
    elif event in ("os.fork", "os.forkpty", "os.posix_spawn", "os.system"):
        _started.append(event)


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
    if limit := _limit(item):
        grace = float(item.config.getini("timeout_grace"))
        faulthandler.dump_traceback_later(limit + grace, exit=True, file=_stderr)
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()
        if nextitem is not None and nextitem.path != item.path:
            _forget_if_large()
            gc.collect()
            gc.freeze()


def _resident_bytes():
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:  # not Linux
        return 0


def _forget_if_large():
    """Drops compiled programs, parsed modules and cycles, and gives what the C library keeps back to the system."""
    global _kept_bytes
    if _resident_bytes() < max(LARGE_BYTES, _kept_bytes + GROWN_BYTES):
        return
    if (jax := sys.modules.get("jax")) is not None:
        jax.clear_caches()
    gc.unfreeze()
    gc.collect()
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
    _kept_bytes = _resident_bytes()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    result = yield
    if _started and item.get_closest_marker("process") is None:
        pytest.fail(f"starts a process, and is not marked `process`: {_started[0]}", pytrace=False)
    return result


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    slow = Counter(item.path for item in items if item.get_closest_marker("process") or iscoroutinefunction(item.obj))
    sizes = Counter(item.path for item in items)
    at = {path: index for index, path in enumerate(sizes)}
    items.sort(key=lambda item: (-slow[item.path], -sizes[item.path], at[item.path]))
