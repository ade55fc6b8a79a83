"""What every test has: a home and a state folder of its own, so that no test touches the user's, and one time zone.

And how many processes share the tests.
"""

import os
import signal
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = ["pytester", "suite"]
_MOST_PROCESSES = 4
"""Each imports the app, and some import jax; and tests of measuring want a core that is not taken by other tests."""


def pytest_configure(config: pytest.Config) -> None:
    """Lets children keep compiled bytecode: there are hundreds, and jax from its source takes each two seconds."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ.pop("NO_COLOR", None)  # pictures have colours
    # On a GPU each process takes three quarters of its memory, so that the second one has none.
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    # One zone and one language, here and in what the tests start, whatever those of the machine are.
    for name in [name for name in os.environ if name.startswith("LC_") or name in ("LANG", "LANGUAGE")]:
        del os.environ[name]
    os.environ.update(TZ="UTC", LC_ALL="C.UTF-8")
    if hasattr(time, "tzset"):
        time.tzset()
    # Under nohup, or in the background of a script, signals are ignored, and what the tests start would inherit it.
    for name in ("SIGINT", "SIGHUP", "SIGQUIT"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if name == "SIGINT" else signal.SIG_DFL)
    # The same few examples in each run, which no load makes fail; JAXPROF_LONG=1 tries many, other ones each time.
    checks = [HealthCheck.too_slow]
    settings.register_profile("short", deadline=None, max_examples=20, derandomize=True, suppress_health_check=checks)
    settings.register_profile("long", deadline=None, max_examples=1_000, suppress_health_check=checks)
    settings.load_profile("long" if os.environ.get("JAXPROF_LONG") else "short")


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """How many processes `-n auto` starts: one more than there are cores, because a quarter of their time is waiting
    for processes and threads; none for tests that were named, which start sooner without."""
    named = any("::" in word or word.endswith(".py") for word in config.args)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return 0 if named else min(cores + 1, _MOST_PROCESSES)


@pytest.fixture(autouse=True)
def state_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    # Not mktemp: that reads the whole folder for the next number, and there are thousands of tests.
    homes = tmp_path_factory.getbasetemp() / "homes"
    homes.mkdir(exist_ok=True)
    home = Path(tempfile.mkdtemp(dir=homes))
    (home / "user").mkdir()
    monkeypatch.setenv("HOME", str(home / "user"))
    monkeypatch.setenv("JAXPROF_HOME", str(home))
    monkeypatch.setenv("JAXPROF_CONFIG", str(home / "config.toml"))
    return home


@pytest.fixture
def call(capsys):
    """Calls `jaxprof` in this process."""
    from cli.calling import Caller

    return Caller(capsys)
