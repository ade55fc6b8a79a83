"""The other Python threads of a program: what they ran, and where they were when one held the lock."""

import gc
import sys
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest

from jaxprof.recorder.samples.other_threads import LEAST_SECONDS, OtherThreads

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a clock of each thread there")


def burn(done):
    while not done.is_set():
        sum(range(1000))


@pytest.fixture
def running():
    """A function that starts a thread, which ends with the test."""
    done, threads = threading.Event(), []

    def start(target, name):
        threads.append(threading.Thread(target=target, args=(done,), name=name))
        threads[-1].start()

    yield start
    done.set()
    for thread in threads:
        thread.join()


def collected(watch, until):
    """What the threads have run until one has run for so long, with a sample every few milliseconds."""
    spent = {}
    while max((each.cpu_seconds for each in spent.values()), default=0.0) < until:
        for _ in range(20):
            time.sleep(0.005)
            watch.sample()
        for each in watch.collect():
            before = spent[each.name].cpu_seconds if each.name in spent else 0.0
            spent[each.name] = type(each)(name=each.name, at=each.at, cpu_seconds=before + each.cpu_seconds,
                                          samples=each.samples)  # fmt: skip
    return spent


def test_thread_that_computes_has_its_line_and_its_time(running):
    running(burn, "busy")
    running(lambda done: done.wait(), "idle")
    spent = collected(OtherThreads(threading.get_ident()), 0.5)
    assert set(spent) == {"busy"}
    busy = spent["busy"]
    assert (busy.at.file, busy.at.function) == (__file__, "burn")
    assert busy.samples > 0


def test_thread_of_a_pool_is_not_reported_where_it_waits():
    def load(_):
        until = time.thread_time() + 0.002
        while time.thread_time() < until:
            sum(range(1000))

    watch = OtherThreads(threading.get_ident())
    with ThreadPoolExecutor(1) as pool:
        for i in range(60):
            pool.submit(load, i).result()
            watch.sample()  # the pool's thread waits for the next batch
            if i % 5 == 0:
                running = pool.submit(load, i)
                watch.sample()
                running.result()
        (thread,) = watch.collect()
    assert thread.at.file in ("", __file__)


def test_time_of_a_window_is_that_since_the_last_one(running):
    running(burn, "busy")
    watch = OtherThreads(threading.get_ident())
    collected(watch, 0.5)
    again = {each.name: each.cpu_seconds for each in watch.collect()}
    assert again.get("busy", 0.0) < 0.5
    assert all(seconds >= LEAST_SECONDS for seconds in again.values())


def test_time_before_the_first_window_is_not_of_it(running):
    running(burn, "busy")
    time.sleep(0.3)
    watch, began = OtherThreads(threading.get_ident()), time.monotonic()
    time.sleep(0.1)
    took = {each.name: each.cpu_seconds for each in watch.collect()}
    assert took.get("busy", 0.0) < time.monotonic() - began + 0.02


def test_sample_keeps_nothing_of_the_program_alive(running):
    class Array:
        pass

    seen, ready, over = [], threading.Event(), threading.Event()

    def hold(done):
        array = Array()
        seen.append(weakref.ref(array))
        ready.set()
        over.wait()

    running(hold, "holds an array")
    ready.wait()
    gc.disable()
    try:
        sampler = threading.Thread(target=OtherThreads(threading.get_ident()).sample)
        sampler.start()
        sampler.join()
        over.set()
        deadline = time.monotonic() + 10
        while seen[0]() is not None and time.monotonic() < deadline:
            time.sleep(0.01)
        assert seen[0]() is None
    finally:
        gc.enable()
