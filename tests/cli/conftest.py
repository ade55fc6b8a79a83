import pytest

from folding import written
from jaxprof.analysis.kernels import modules_of
from jaxprof.analysis.kernels.hlo_program import HloProgram
from jaxprof.cli import modules
from report import sessions


@pytest.fixture(autouse=True)
def brief_probes(monkeypatch):
    """How soon calls settle after another's turn is asked in a second, and not what is tested here."""
    monkeypatch.setattr("jaxprof.stats.turns.PROBE_SECONDS", 0.005)


@pytest.fixture
def kept(state_home):
    path = state_home / "sessions" / "2026-11-21T04-05-06-0123.jaxprof"
    written(path, sessions.events(), sessions.HEADER)
    return path


@pytest.fixture
def known(monkeypatch):
    """Programs by name, which are found as if they had been compiled."""
    found = {}

    def find(target, *_, **__):
        return [HloProgram(stages, found[target.word]) for stages in modules_of(found[target.word])]

    monkeypatch.setattr(modules, "find_modules", find)
    return found
