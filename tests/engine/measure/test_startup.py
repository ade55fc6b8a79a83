"""What is said of an import: how long it took, that it took place before, or what mends it. And the smallest call."""

import sys
from types import SimpleNamespace
from unittest.mock import Mock

import jax
import numpy as np
import pytest

from engine.measure.heard import only, reporter
from jaxprof.base.errors import JaxprofError
from jaxprof.engine.measure import startup
from jaxprof.engine.protocol.request import EmptyCallRequest
from jaxprof.events import PhaseEnded
from jaxprof.runner.engine_questions import empty_call_seconds
from jaxprof.runner.interpreter import find_interpreter


@pytest.mark.parametrize("library", [Mock(side_effect=OSError), Mock(return_value=Mock(spec=["malloc", "free"]))])
def test_another_allocator_than_that_of_glibc_is_left_alone(monkeypatch, library):
    """macOS has no such file; musl answers to its name, and has other functions."""
    monkeypatch.setattr(startup.ctypes, "CDLL", library)
    startup.settle_allocator()
    library.assert_called_once_with("libc.so.6")
    assert not library.return_value.malloc.called


def imported(module):
    recorder, events = reporter()
    startup._time_import(recorder, module)
    return only(events, PhaseEnded)


def test_an_import_is_timed_where_it_takes_place(monkeypatch):
    assert (imported("json").seconds, imported("json").note) == (None, "already imported")
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    fresh = imported("colorsys")
    assert fresh.seconds > 0
    assert fresh.note == ""


def test_a_jax_that_is_missing_is_named_with_what_installs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(JaxprofError, match="jax is not installed for") as caught:
        startup._import("jax")
    assert caught.value.hint.endswith('-m pip install --upgrade "jax>=0.7.2"')


@pytest.mark.parametrize(
    ("version", "old"), [("0.7.1", True), ("0.6.9", True), ("0.7.2", False), ("0.10.0", False), ("0.7.2.dev1", False)]
)
def test_a_jax_that_is_too_old_is_refused(monkeypatch, version, old):
    monkeypatch.setattr(startup, "import_module", lambda name: SimpleNamespace(__version__=version))
    if not old:
        startup._import("jax")
        return
    with pytest.raises(JaxprofError, match=f"jax {version} is too old: jaxprof needs 0.7.2 or newer"):
        startup._import("jax")


@pytest.mark.parametrize("error", [ModuleNotFoundError("No module named 'ml_dtypes'", name="ml_dtypes"), OSError("x")])
def test_another_import_error_keeps_its_text(monkeypatch, error):
    monkeypatch.setattr(startup, "import_module", Mock(side_effect=error))
    with pytest.raises(JaxprofError, match=f"numpy cannot be imported: {error}") as caught:
        startup._import("numpy")
    assert caught.value.hint.endswith("-m pip install --upgrade numpy")


def test_the_warm_up_waits_for_its_result(monkeypatch):
    """Otherwise the run's own first transfer would wait for it."""
    steps = []

    class Result:
        def __array__(self, *_, **__):
            steps.append("fetched")
            return np.zeros(16, np.float32)

    class Warm:
        def __getattr__(self, name):
            return lambda *_: (steps.append(name), self)[1]

        def __call__(self, argument):
            steps.append("called" if isinstance(argument, jax.Array) else "called with something else")
            return Result()

    monkeypatch.setattr(jax, "jit", lambda _: Warm())
    startup.start_jax(reporter()[0], "cpu:0")
    assert steps == ["trace", "lower", "compile", "called", "fetched"]


def test_it_is_the_time_of_one_call_in_the_quietest_batch(monkeypatch):
    clock = iter([0.0, 9.0, 10.0, 12.0, 20.0, 21.0, 30.0, 33.0])
    monkeypatch.setattr(startup.time, "thread_time", lambda: next(clock))
    monkeypatch.setattr(startup, "_BATCHES", 3)
    assert startup.empty_call_seconds(0, 0) == pytest.approx(1.0 / startup._CALLS)


@pytest.mark.process
def test_an_engine_answers_it_and_leaves_nothing_behind(monkeypatch, tmp_path):
    monkeypatch.setenv("XLA_FLAGS", f"--xla_dump_to={tmp_path}")
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
    assert empty_call_seconds(find_interpreter(), EmptyCallRequest(arrays=3, numbers=2)) > 0
    assert list(tmp_path.iterdir()) == []
