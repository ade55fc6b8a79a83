"""Programs that a recorder must not get in the way of: what each prints is the same however long it runs.

    python guests.py NAME SECONDS

Each is a function named in `GUESTS`. Most run a loop of compiled steps meanwhile, so that the recorder has something to
watch. A line that they print says what happened, never how often, unless they do it a fixed number of times.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import cProfile
import ctypes
import faulthandler
import gc
import multiprocessing
import os
import pstats
import random
import resource
import signal
import subprocess
import sys
import threading
import time
import traceback
import tracemalloc
import warnings
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

CALLS = 2000
"""Of what is counted."""


@jax.jit
def step(x: jax.Array) -> jax.Array:
    return jnp.sin(x) * 0.5 + 1.0


def start() -> jax.Array:
    return jnp.ones((64, 64))


def train(seconds: float, beside: Callable[[], object] | None = None) -> int:
    """Passes of a loop of compiled steps for so long; `beside` is called in each."""
    x, passes, until = start(), 0, time.monotonic() + seconds
    while time.monotonic() < until:
        x = step(x)
        if beside is not None:
            beside()
        passes += 1
        if passes % 20 == 0:
            x.block_until_ready()
    return passes


def compile_again(seconds: float) -> int:
    """Compiles a new function in each pass."""
    count, until = 0, time.monotonic() + seconds
    while time.monotonic() < until:
        count += 1
        jax.jit(lambda x, count=count: x * count + 1)(1.0)
    return count


def plain(seconds: float) -> None:
    print(train(seconds) > 0)


def written_by_exec(seconds: float) -> None:
    text = "while time.monotonic() < until:\n    x = step(x)\nprint(x.shape)"
    exec(text, {"time": time, "until": time.monotonic() + seconds, "step": step, "x": start()})


def waits_each_pass(seconds: float) -> None:
    values: list[float] = []
    train(seconds, lambda: values.append(float(step(start())[0, 0])))
    print(len(set(values)))


class Counted:
    """A handler of signals that counts, and raises if it is to."""

    def __init__(self, error: type[Exception] | None = None) -> None:
        self.raised = 0
        self.error = error

    def __call__(self, number: int, frame: Any) -> None:
        self.raised += 1
        if self.error is not None:
            raise self.error(number)


def signals_each_ms(seconds: float) -> None:
    handler = Counted()
    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    train(seconds)
    compile_again(seconds / 4)
    signal.setitimer(signal.ITIMER_REAL, 0)
    print(handler.raised > 100 * seconds)


def signals_of_cpu_time(seconds: float) -> None:
    handler = Counted()
    signal.signal(signal.SIGPROF, handler)
    signal.setitimer(signal.ITIMER_PROF, 0.002, 0.002)
    train(seconds)
    signal.setitimer(signal.ITIMER_PROF, 0)
    print(handler.raised > 10 * seconds)


class OnTime(Exception):
    """What a handler raises."""


def handler_raises(seconds: float) -> None:
    """Whatever its handler raises, and wherever it does, reaches this program."""
    train(0.2)
    gc.disable()  # JAX's own callback there would take what is raised
    handler, caught, until = Counted(OnTime), 0, time.monotonic() + seconds
    signal.signal(signal.SIGALRM, handler)
    while time.monotonic() < until:
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.003)
            train(1.0)
        except OnTime:
            caught += 1
    print(caught == handler.raised, caught > 0)


def handler_raises_in_a_listener(seconds: float) -> None:
    """Alone, no signal comes while JAX calls a recorder: then nothing is raised."""
    raised, lost = False, 0

    def handler(number: int, frame: Any) -> None:
        nonlocal raised
        if not raised and frame is not None and "jaxprof" in frame.f_code.co_filename:
            raised = True
            raise OnTime(number)

    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            compile_again(0.02)
            lost += raised
        except Exception as error:  # JAX's filter of tracebacks can fail on the way
            if not isinstance(error, OnTime) and not isinstance(error.__context__, OnTime):
                raise
        raised = False
    signal.setitimer(signal.ITIMER_REAL, 0)
    print(lost)


def interrupts(seconds: float) -> None:
    train(0.2)  # an interrupt in an import of JAX's own would leave half a module
    caught, until = 0, time.monotonic() + seconds
    while time.monotonic() < until:
        timer = threading.Timer(0.005, os.kill, (os.getpid(), signal.SIGINT))
        try:
            timer.start()
            train(1.0)
        except KeyboardInterrupt:
            caught += 1
            timer.join()
    print(caught > 0)


def uncaught(seconds: float) -> None:
    signal.signal(signal.SIGALRM, Counted(OnTime))
    signal.setitimer(signal.ITIMER_REAL, seconds)
    train(seconds / 2)
    time.sleep(seconds + 60)


def waits_for_signals(seconds: float) -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    train(seconds / 2)
    until, got = time.monotonic() + seconds / 2, 0
    while time.monotonic() < until:
        subprocess.run(["/bin/kill", "-USR1", str(os.getpid())], check=True)
        got += signal.sigtimedwait({signal.SIGUSR1}, 5.0) is not None
    print(got > 0)


def sleeps_until_a_signal(seconds: float) -> None:
    """A signal ends the system call of the main thread, as its handler's exception says."""
    signal.signal(signal.SIGUSR2, Counted(OnTime))
    train(seconds / 2)
    late, until = 0, time.monotonic() + seconds / 2
    while time.monotonic() < until:
        began = time.monotonic()
        with contextlib.suppress(OnTime):
            threading.Timer(0.01, os.kill, (os.getpid(), signal.SIGUSR2)).start()
            time.sleep(5.0)
        late += time.monotonic() - began > 4.0
    print(late)


def traced(seconds: float) -> None:
    lines: list[int] = []

    def local(frame: Any, event: str, argument: Any) -> Any:
        lines.append(frame.f_lineno)
        return local

    def called(frame: Any, event: str, argument: Any) -> Any:
        return local if frame.f_code is train.__code__ else None

    sys.settrace(called)
    train(seconds)
    print(sys.gettrace() is called)
    sys.settrace(None)
    print(sorted({line - train.__code__.co_firstlineno for line in lines}))


def traced_everywhere(seconds: float) -> None:
    files: set[str] = set()

    def called(frame: Any, event: str, argument: Any) -> None:
        files.add(frame.f_code.co_filename)

    threading.settrace(called)
    sys.settrace(called)
    train(seconds)
    threading.settrace(None)  # type: ignore[arg-type]
    sys.settrace(None)
    print(met(files))


def met(files: set[str]) -> list[str]:
    """The recorder's files, without that of the listeners that JAX calls in this thread."""
    return sorted(os.path.basename(file) for file in files if "jaxprof" in file and not file.endswith("guest.py"))


def set_profile(_seconds: float) -> None:
    calls: list[str] = []
    x = start()
    own(x, CALLS)
    sys.setprofile(lambda frame, event, argument: calls.append(f"{event} {frame.f_code.co_name}"))
    own(x, CALLS)
    sys.setprofile(None)
    print({name: calls.count(name) for name in sorted(set(calls))})


def inner(x: jax.Array) -> jax.Array:
    return step(x)


def own(x: jax.Array, calls: int) -> None:
    for number in range(calls):
        inner(x)
        if number % 10 == 0:
            time.sleep(0.001)


def profiled(seconds: float) -> None:
    """`cProfile` counts the calls of this program alone, in the loop that the recorder watches, too. JAX's callback of
    the collector would be two more, wherever a collection falls."""
    x, until, totals = start(), time.monotonic() + seconds, set[int]()
    own(x, CALLS)
    gc.disable()
    while time.monotonic() < until:
        profile = cProfile.Profile()
        profile.enable()
        own(x, CALLS)
        profile.disable()
        totals.add(pstats.Stats(profile).total_calls)  # type: ignore[attr-defined]
    print(sorted(totals))


def profiled_whole(seconds: float) -> None:
    """With compilations: in the thread that compiles, only the listeners that JAX calls are there."""
    profile = cProfile.Profile()
    profile.enable()
    train(seconds / 2)
    compile_again(seconds / 2)
    profile.disable()
    stats = pstats.Stats(profile).stats  # type: ignore[attr-defined]
    print(sorted(name for file, _, name in stats if "jaxprof" in file and name != "listener"))


def _monitoring() -> Any:
    return getattr(sys, "monitoring", None)


def covered(seconds: float) -> None:
    """As coverage tools do: each line once."""
    if (monitoring := _monitoring()) is None:
        traced_everywhere(seconds)
        return
    seen: set[tuple[str, int]] = set()

    def line(code: Any, number: int) -> Any:
        seen.add((code.co_filename, number))
        return monitoring.DISABLE

    monitoring.use_tool_id(monitoring.COVERAGE_ID, "covered")
    monitoring.register_callback(monitoring.COVERAGE_ID, monitoring.events.LINE, line)
    monitoring.set_events(monitoring.COVERAGE_ID, monitoring.events.LINE)
    train(seconds)
    monitoring.set_events(monitoring.COVERAGE_ID, 0)
    monitoring.free_tool_id(monitoring.COVERAGE_ID)
    first = train.__code__.co_firstlineno
    print(sorted(number - first for file, number in seen if file == __file__ and first <= number < first + 11))
    print(met({file for file, _ in seen}))


def all_monitoring_taken(seconds: float) -> None:
    if (monitoring := _monitoring()) is None:
        plain(seconds)
        return
    for number in range(6):
        monitoring.use_tool_id(number, f"mine {number}")
    train(seconds)
    print([monitoring.get_tool(number) for number in range(6)])


def monitoring_taken_late(seconds: float) -> None:
    """A tool number that is free is there for the program, whenever it comes."""
    train(seconds / 2)
    if (monitoring := _monitoring()) is None:
        return
    for number in range(6):
        monitoring.use_tool_id(number, f"mine {number}")
    train(seconds / 2)
    print([monitoring.get_tool(number) for number in range(6)])


def monitors_itself(seconds: float) -> None:
    if (monitoring := _monitoring()) is None:
        plain(seconds)
        return
    train(seconds / 2)
    jumps: list[int] = []
    monitoring.use_tool_id(monitoring.DEBUGGER_ID, "mine")
    monitoring.register_callback(
        monitoring.DEBUGGER_ID, monitoring.events.JUMP, lambda code, at, to: jumps.append(to) if to < at else None
    )
    monitoring.set_local_events(monitoring.DEBUGGER_ID, train.__code__, monitoring.events.JUMP)
    passes = train(seconds / 2)
    monitoring.set_local_events(monitoring.DEBUGGER_ID, train.__code__, 0)
    print(len(jumps) == passes)


def restarts_events(seconds: float) -> None:
    monitoring = _monitoring()
    print(train(seconds, None if monitoring is None else monitoring.restart_events) > 0)


def forks(seconds: float) -> None:
    codes: set[int] = set()

    def child() -> None:
        if (process := os.fork()) == 0:
            os._exit(sum(range(1000)) % 7)
        codes.add(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        train(seconds, child)
    print(codes)


def forks_that_end_in_order(seconds: float) -> None:
    train(seconds)
    sys.stdout.flush()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        process = os.fork()
    if process == 0:
        for _ in range(100_000):
            own_passes()
        print("child")
        sys.stdout.flush()
        os._exit(5)
    print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]))


def own_passes() -> int:
    return sum(number for number in range(10))


def spawns(seconds: float) -> None:
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        ready = pool.map_async(abs, range(-20, 0))
        train(seconds)
        print(ready.get())


def starts_programs(seconds: float) -> None:
    said: set[str] = set()
    command = [
        sys.executable,
        "-c",
        "import os, sys; print(sorted(k for k in os.environ if 'JAXPROF_' in k), sys.path)",
    ]
    train(seconds, lambda: said.add(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
    print([line.replace("JAXPROF_HOME", "") for line in said])


def busy_threads(seconds: float) -> None:
    over, sums = threading.Event(), list[int]()

    def work() -> None:
        while not over.is_set():
            own_passes()
        sums.append(own_passes())

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    train(seconds)
    over.set()
    for thread in threads:
        thread.join()
    print(sums, threading.active_count())


def threads_that_compile(seconds: float) -> None:
    threads = [threading.Thread(target=compile_again, args=(seconds,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    train(seconds)
    for thread in threads:
        thread.join()
    print([thread.name for thread in threading.enumerate()])


def many_threads(seconds: float) -> None:
    def one() -> None:
        thread = threading.Thread(target=own_passes)
        thread.start()
        thread.join()

    print(train(seconds, one) > 0, threading.active_count())


async def _tasks(seconds: float) -> int:
    async def one(number: int) -> int:
        await asyncio.sleep(0)
        step(start())
        return number

    total, until = 0, time.monotonic() + seconds
    while time.monotonic() < until:
        total = sum(await asyncio.gather(*(one(number) for number in range(20))))
    return total


def async_tasks(seconds: float) -> None:
    print(asyncio.run(_tasks(seconds)))


def async_signals(seconds: float) -> None:
    async def main() -> bool:
        got: list[int] = []
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, got.append, 1)
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            os.kill(os.getpid(), signal.SIGUSR1)
            await _tasks(0.02)
        return len(got) > 3

    print(asyncio.run(main()))


def deep(depth: int, x: jax.Array | None = None) -> int:
    try:
        if x is not None and depth % 50 == 0:
            for _ in range(3):
                step(x)
        return deep(depth + 1, x)
    except RecursionError:
        return depth


def deep_recursion(seconds: float) -> None:
    x, until, depths = start(), time.monotonic() + seconds, set[int]()
    while time.monotonic() < until:
        depths.add(deep(0))
        step(x)
    print(sorted(depths))


def deep_steps(seconds: float) -> None:
    x, until, depths = step(start()), time.monotonic() + seconds, set[int]()
    while time.monotonic() < until:
        depths.add(deep(0, x) > 500)
    print(depths)


def deep_compilation(seconds: float) -> None:
    def down(depth: int) -> int:
        return down(depth - 1) if depth else compile_again(0.05)

    until, found = time.monotonic() + seconds, set[bool]()
    while time.monotonic() < until:
        found.add(down(600) > 0)
    print(found)


def native_code_holds_the_lock(seconds: float) -> None:
    usleep = ctypes.PyDLL(None).usleep
    train(seconds, lambda: usleep(30_000))
    print("over")


def native_threads_hold_the_lock(seconds: float) -> None:
    usleep, over = ctypes.PyDLL(None).usleep, threading.Event()

    def hold() -> None:
        while not over.is_set():
            usleep(3_000)

    thread = threading.Thread(target=hold)
    thread.start()
    train(seconds)
    over.set()
    thread.join()
    print("over")


def tiny_switch_interval(seconds: float) -> None:
    sys.setswitchinterval(1e-6)
    busy_threads(seconds)
    print(sys.getswitchinterval())


def tiny_switch_interval_traced(seconds: float) -> None:
    sys.setswitchinterval(1e-6)
    traced(seconds)


def huge_switch_interval(seconds: float) -> None:
    sys.setswitchinterval(5.0)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        own_passes()
    print(train(seconds / 4) > 0)


def generators(seconds: float) -> None:
    closed: set[str] = set()

    def numbers() -> Iterator[int]:
        try:
            yield from range(1 << 60)
        except GeneratorExit:
            closed.add("closed")
            raise
        except OnTime:
            closed.add("thrown")

    def one() -> None:
        first, second = numbers(), numbers()
        next(first), next(second)
        first.close()
        with contextlib.suppress(StopIteration):
            second.throw(OnTime())

    train(seconds, one)
    print(sorted(closed))


def exceptions(seconds: float) -> None:
    depths: set[int] = set()

    def one() -> None:
        try:
            {}["no"]  # type: ignore[index]
        except KeyError as error:
            depths.add(len(traceback.extract_tb(error.__traceback__)))

    train(seconds, one)
    print(sorted(depths), sys.exc_info())


def garbage(seconds: float) -> None:
    class Kept:
        """Can be referred to weakly."""

    dead: list[int] = []
    train(seconds, lambda: weakref.finalize(Kept(), dead.append, 1))
    gc.disable()
    x = start()
    alive = weakref.ref(x)
    for _ in range(50):
        step(x)
        time.sleep(0.01)
    del x
    print(len(dead) > 0, alive() is None, gc.isenabled(), [each.__name__ for each in gc.callbacks])


def frames(seconds: float) -> None:
    names: set[tuple[str, ...]] = set()

    def one() -> None:
        frame, found = sys._getframe(), []
        while frame is not None:
            found.append(frame.f_code.co_name)
            frame = frame.f_back  # type: ignore[assignment]
        names.add(tuple(found))

    train(seconds, one)
    print(sorted(names))


def traces_memory(seconds: float) -> None:
    tracemalloc.start()
    train(seconds)
    print(tracemalloc.is_tracing(), tracemalloc.get_traceback_limit())


def dumps_tracebacks(seconds: float) -> None:
    with open(os.devnull, "w") as out:
        faulthandler.dump_traceback_later(0.05, repeat=True, file=out)
        train(seconds)
        faulthandler.cancel_dump_traceback_later()
    print(faulthandler.is_enabled())


def warnings_are_errors(seconds: float) -> None:
    warnings.simplefilter("error")
    train(seconds)
    compile_again(seconds / 4)
    print(warnings.filters[0][0])


def calls_back(seconds: float) -> None:
    seen: set[str] = set()

    def host(x: Any) -> Any:
        seen.add(threading.current_thread().name[:6])
        return np.asarray(x)

    called = jax.jit(lambda x: jax.pure_callback(host, jax.ShapeDtypeStruct((), jnp.float32), x) + 1)
    train(seconds, lambda: called(1.0).block_until_ready())
    print(len(seen) > 0)


def random_numbers(seconds: float) -> None:
    random.seed(3)
    np.random.seed(3)
    train(seconds)
    print(random.random(), np.random.random())


def few_descriptors(seconds: float) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
    train(seconds)
    opened = []
    with contextlib.suppress(OSError):
        while True:
            opened.append(os.open(os.devnull, os.O_RDONLY))
    print(opened[0] < 40)


def daemon_at_the_end(seconds: float) -> None:
    def forever() -> None:  # in Python: JAX itself aborts where a daemon is in XLA at the end
        while True:
            own_passes()

    threading.Thread(target=forever, daemon=True).start()
    train(seconds)
    atexit.register(print, "bye")
    print("end")


def ends_at_once(seconds: float) -> None:
    train(seconds)
    print("now", flush=True)
    os._exit(3)


def ends_by_a_signal(seconds: float) -> None:
    train(seconds)
    print("now", flush=True)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(10)


def ends_by_a_word(seconds: float) -> None:
    train(seconds)
    sys.exit("no such luck")


def deletes_arrays(seconds: float) -> None:
    def one() -> None:
        x = start()
        step(x)
        x.delete()

    print(train(seconds, one) > 0)


GUESTS: dict[str, Callable[[float], None]] = {
    guest.__name__: guest
    for guest in (
        plain,
        written_by_exec,
        waits_each_pass,
        signals_each_ms,
        signals_of_cpu_time,
        handler_raises,
        handler_raises_in_a_listener,
        interrupts,
        uncaught,
        waits_for_signals,
        sleeps_until_a_signal,
        traced,
        traced_everywhere,
        set_profile,
        profiled,
        profiled_whole,
        covered,
        all_monitoring_taken,
        monitoring_taken_late,
        monitors_itself,
        restarts_events,
        forks,
        forks_that_end_in_order,
        spawns,
        starts_programs,
        busy_threads,
        threads_that_compile,
        many_threads,
        async_tasks,
        async_signals,
        deep_recursion,
        deep_steps,
        deep_compilation,
        native_code_holds_the_lock,
        native_threads_hold_the_lock,
        tiny_switch_interval,
        tiny_switch_interval_traced,
        huge_switch_interval,
        generators,
        exceptions,
        garbage,
        frames,
        traces_memory,
        dumps_tracebacks,
        warnings_are_errors,
        calls_back,
        random_numbers,
        few_descriptors,
        daemon_at_the_end,
        ends_at_once,
        ends_by_a_signal,
        ends_by_a_word,
        deletes_arrays,
    )
}

if __name__ == "__main__":
    GUESTS[sys.argv[1]](float(sys.argv[2]))
