"""A separate pass under JAX's profiler, after the timing: the time of each kernel, and where a compile spends its time.

The profiler disturbs (+46 % was measured on a call of 0.8 ms), so none of its times is a headline: the calls are timed
here as well, and shown with the undisturbed ones. The Python tracer is off. The profile is written to a temporary
folder, read, and removed.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

import jax

from jaxprof.base.errors import JaxprofError
from jaxprof.engine.measure.control import Reporter
from jaxprof.engine.protocol.request import SCRATCH
from jaxprof.events import TrustCheck, TrustReported
from jaxprof.trace.sources import read_profile
from jaxprof.trace.summary import events_of

CAPTURE_SECONDS = 0.3
"""Approximate total time of the captured calls: enough for a median, short enough for a small file."""
FEWEST_CALLS, MOST_CALLS = 2, 20
LONGEST_CALL_SECONDS = 20.0
"""A longer call is not repeated for its kernels."""
LONGEST_COMPILE_SECONDS = 30.0
"""A longer compile is not repeated for its passes."""
HOOK = "tensorflow.python.profiler.trace"
"""Module that jaxlib's Python hooks (`python_hooks.cc`, seen in 0.7.2) look for whenever a trace starts or stops, to
set its `enabled`. They write `Can't import tensorflow.python.profiler.trace` to stderr if they do not find it."""


class NotCaptured(Exception):
    """The profiler could not be used; the message says why."""


def capture_run(reporter: Reporter, call: Callable[[], Any], call_seconds: float, *, kind: str = "run") -> None:
    """Capture some steady calls (`call` waits for its result) and emit the contents of their profile."""
    if call_seconds > LONGEST_CALL_SECONDS:
        _report_missing(reporter, kind, f"a call takes {call_seconds:.0f} s, too long to repeat under the profiler")
        return
    calls = max(FEWEST_CALLS, min(MOST_CALLS, int(CAPTURE_SECONDS / max(call_seconds, 1e-9))))
    seconds: list[float] = []

    def work() -> None:
        for number in range(calls):
            reporter.control.check()
            with jax.profiler.StepTraceAnnotation("call", step_num=number):
                began = time.perf_counter()
                call()
                seconds.append(time.perf_counter() - began)

    _capture(reporter, kind, work, calls=calls, seconds=seconds, timed_seconds=call_seconds)


def capture_compile(reporter: Reporter, compile_again: Callable[[], Any], compile_seconds: float) -> None:
    """Compile once more under the profiler, from cold, and emit the tree of XLA's passes."""
    if compile_seconds > LONGEST_COMPILE_SECONDS:
        _report_missing(
            reporter, "compile", f"the compile takes {compile_seconds:.0f} s, too long to repeat under the profiler"
        )
        return
    jax.clear_caches()
    _capture(reporter, "compile", compile_again, calls=1, seconds=[], timed_seconds=None)


def _capture(
    reporter: Reporter,
    kind: str,
    work: Callable[[], None],
    *,
    calls: int,
    seconds: list[float],
    timed_seconds: float | None,
) -> None:
    """Run `work` under the profiler and emit its profile. Afterwards `seconds` holds the times of its calls."""
    scratch = os.environ.get(SCRATCH) or None
    with reporter.phase(f"capture_{kind}"), TemporaryDirectory(prefix="jaxprof-profile-", dir=scratch) as folder:
        try:
            with _profiler(folder):
                work()
            path = next(iter(sorted(Path(folder).rglob("*.xplane.pb"))), None)
            if path is None:
                raise NotCaptured("the profiler wrote no file")
        except NotCaptured as error:
            _report_missing(reporter, kind, str(error))
            return
        try:
            trace = read_profile(path)
            for event in events_of(trace, kind, calls=calls, seconds_of_calls=seconds, timed_seconds=timed_seconds):
                reporter.emit(event)
        except JaxprofError as error:
            _report_missing(reporter, kind, error.what)


@contextmanager
def _profiler(folder: str) -> Iterator[None]:
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0
    options.host_tracer_level = 2
    try:
        with stand_in_for_tensorflow():
            jax.profiler.start_trace(folder, profiler_options=options)
    except RuntimeError as error:
        raise NotCaptured(f"the profiler is in use already: {error}") from error
    try:
        yield
    finally:
        try:
            with stand_in_for_tensorflow():
                jax.profiler.stop_trace()
        except RuntimeError as error:
            raise NotCaptured(f"the profiler failed: {error}") from error


def _report_missing(reporter: Reporter, kind: str, why: str) -> None:
    """Report a missing capture as no data, never as zero."""
    row = TrustCheck(code="not_captured", message=f"not captured: {why}")
    reporter.emit(TrustReported(kind=kind, rows=[row]))


@contextmanager
def stand_in_for_tensorflow() -> Iterator[None]:
    """Keep jaxlib's profiler from complaining that TensorFlow is missing, which in a run's log looks like an error.

    Inside the block, empty modules have the names that are looked up. They did not exist before and are removed
    afterwards. An installed TensorFlow is left alone."""
    if "tensorflow" in sys.modules or find_spec("tensorflow") is not None:
        yield
        return
    parts = HOOK.split(".")
    names = [".".join(parts[:end]) for end in range(1, len(parts) + 1)]
    made = {name: ModuleType(name) for name in names}
    for outer, inner, attribute in zip(names, names[1:], parts[1:], strict=False):
        setattr(made[outer], attribute, made[inner])
    sys.modules.update(made)
    try:
        yield
    finally:
        for name in names:
            if sys.modules.get(name) is made[name]:
                del sys.modules[name]
