"""The time of the smallest call of a compiled function."""

from __future__ import annotations

import pytest

from jaxprof.engine.measure import empty_call
from jaxprof.engine.measure.empty_call import empty_call_seconds
from jaxprof.runner.engine_process import empty_call_seconds as asked
from jaxprof.runner.interpreter import find_interpreter


def test_it_is_the_time_of_one_call_in_the_quietest_batch(monkeypatch):
    clock = iter([0.0, 9.0, 10.0, 12.0, 20.0, 21.0, 30.0, 33.0])
    monkeypatch.setattr(empty_call.time, "thread_time", lambda: next(clock))
    monkeypatch.setattr(empty_call, "_BATCHES", 3)
    assert empty_call_seconds() == pytest.approx(1.0 / empty_call._CALLS)


@pytest.mark.process
def test_an_engine_answers_it_and_leaves_nothing_behind(monkeypatch, tmp_path):
    monkeypatch.setenv("XLA_FLAGS", f"--xla_dump_to={tmp_path}")
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
    assert asked(find_interpreter()) > 0
    assert list(tmp_path.iterdir()) == []
