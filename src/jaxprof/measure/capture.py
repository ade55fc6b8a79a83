"""A pass of its own under JAX's profiler, after the timing: what each kernel took, and where a compile spent its time.

The profiler disturbs (+46 % was seen on a call of 0.8 ms), so none of its times is a headline: the calls are timed
here as well, and stand beside the undisturbed ones. The Python tracer is off. The profile is written to a temporary
folder, read, and removed, unless it is to be kept.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import jax

from jaxprof.errors import JaxprofError
from jaxprof.events import CaptureTaken, TrustReported
from jaxprof.measure.recorder import Recorder
from jaxprof.measure.tensorflow_absent import stand_in_for_tensorflow
from jaxprof.trace.summary import summarise

CAPTURE_SECONDS = 0.3
"""About how long the captured calls take together: enough for a median, short enough for a small file."""
FEWEST_CALLS, MOST_CALLS = 2, 20
LONGEST_CALL_SECONDS = 20.0
"""A longer call is not made again for its kernels."""
LONGEST_COMPILE_SECONDS = 30.0
"""A longer compile is not made again for its passes."""


class NotCaptured(Exception):
    """The profiler could not be used; the text says why."""


def capture_run(
    recorder: Recorder, call: Callable[[], Any], call_seconds: float, *, kind: str = "run", keep: str = ""
) -> None:
    """Captures some steady calls (`call` waits for its result) and emits what the profile says of them."""
    if call_seconds > LONGEST_CALL_SECONDS:
        _untaken(recorder, kind, f"a call takes {call_seconds:.0f} s, and is not made again for its kernels")
        return
    calls = max(FEWEST_CALLS, min(MOST_CALLS, int(CAPTURE_SECONDS / max(call_seconds, 1e-9))))
    seconds: list[float] = []

    def work() -> None:
        for number in range(calls):
            recorder.control.check()
            with jax.profiler.StepTraceAnnotation("call", step_num=number):
                began = time.perf_counter()
                call()
                seconds.append(time.perf_counter() - began)

    _capture(recorder, kind, work, calls=calls, seconds=seconds, keep=keep)


def capture_compile(recorder: Recorder, compile_again: Callable[[], Any], compile_seconds: float) -> None:
    """Compiles once more under the profiler, from cold, and emits the tree of XLA's passes."""
    if compile_seconds > LONGEST_COMPILE_SECONDS:
        _untaken(
            recorder, "compile", f"the compile takes {compile_seconds:.0f} s, and is not made again for its passes"
        )
        return
    jax.clear_caches()
    _capture(recorder, "compile", compile_again, calls=1, seconds=[], keep="")


def _capture(
    recorder: Recorder, kind: str, work: Callable[[], None], *, calls: int, seconds: list[float], keep: str
) -> None:
    with recorder.phase(f"capture_{kind}"), TemporaryDirectory(prefix="jaxprof-profile-") as folder:
        try:
            with _profiler(folder):
                work()
            path = _profile_in(Path(folder))
        except NotCaptured as error:
            _untaken(recorder, kind, str(error))
            return
        kept = _keep(path, keep) if keep else ""
        try:
            for event in summarise(path, kind, calls=calls):
                if isinstance(event, CaptureTaken):
                    event = _described(event, seconds, kept)
                recorder.emit(event)
        except JaxprofError as error:
            _untaken(recorder, kind, error.what)


def _described(event: CaptureTaken, seconds: list[float], kept: str) -> CaptureTaken:
    from dataclasses import replace

    return replace(event, seconds_with=median(seconds) if seconds else None, path=kept)


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


def _profile_in(folder: Path) -> Path:
    found = sorted(folder.rglob("*.xplane.pb"))
    if not found:
        raise NotCaptured("the profiler wrote no file")
    return found[0]


def _keep(path: Path, target: str) -> str:
    try:
        shutil.copyfile(path, target)
    except OSError:
        return ""
    return target


def _untaken(recorder: Recorder, kind: str, why: str) -> None:
    """No capture is told as what it is: no data, and never a zero."""
    row = {"code": "not_captured", "verdict": "unknown", "message": f"not captured: {why}", "advice": ""}
    recorder.emit(TrustReported(kind=kind, rows=[row]))
