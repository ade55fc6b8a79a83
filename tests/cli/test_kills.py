"""The client or the engine is killed in a run, also while native code holds the interpreter's lock: the
log is whole up to there, says what happened, and nothing of us is left."""

import json
import os
import secrets
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL, PIPE

import pytest

from cli.calling import environment
from cli.compiled import compiled
from folding import written
from jaxprof import events as e
from jaxprof.cli.output import SIGNAL_BASE, ExitCode
from jaxprof.session import Session, load, new_header
from waiting import processes_with

pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="finds what is left in /proc")

KILL, TERM, INTERRUPT = signal.SIGKILL, signal.SIGTERM, signal.SIGINT
JIT_PHASES = (
    *("import", "backend_init", "warm_up", "inputs", "transfer_in", "trace", "lower", "compile", "first_run"),
    *("run", "pipelined", "dispatch", "transfer_out", "capture_run", "capture_compile"),
)
SECONDS = 60.0
WORDS = {"phase_started": "begins", "phase_ended": "ends"}
CLIENT = """
import sys
from pathlib import Path
from jaxprof.cli.main import main
from jaxprof.runner import engine_process
engine_process.ENGINE = Path(sys.argv.pop(1))
main()
"""


@dataclass(frozen=True, slots=True)
class Case:
    phase: str
    victim: str
    """`client` or `engine`."""
    number: signal.Signals
    how: str
    """`lock`: native code of the engine holds the interpreter's lock; `sleep`: it does not."""

    def __str__(self):
        return f"{self.phase}-{self.victim}-{self.number.name}-{self.how}"


CASES = [
    Case("import", "engine", TERM, "lock"),
    Case("compile", "client", TERM, "lock"),
    Case("run", "client", INTERRUPT, "sleep"),
    Case("capture_run", "client", KILL, "lock"),
]


def plan(folder, variant):
    """A session to repeat: one run, without a baseline."""
    spec = {"variant": variant, "how": variant, "workload": "selu", "target": "selu", "parameters": {"n": 1000}}
    ended = (e.RunFinished(run="r1", status="ok"), e.SessionClosed())
    events = compiled(None, *ended, **spec, budget_seconds=0.05, launches=1)
    return f"{written(folder / f'{variant}.jaxprof', events, new_header({}))}:r1"


class Measuring:
    def __init__(self, folder, variant, phase, how):
        self.out, self._notes, self.temporary = folder / "out.jaxprof", folder / "notes", folder / "temporary"
        self.temporary.mkdir()
        self._mark = secrets.token_hex(8)
        engine = Path(__file__).with_name("stopping_engine.py")
        words = ["run", "--from", plan(folder, variant), "--launches", "1", "--budget", "0.05", "--out", str(self.out)]
        stopped = {"STOP_AT": phase, "STOP_HOW": how, "STOP_NOTES": str(self._notes), "JAXPROF_MARK": self._mark}
        variables = environment() | {"JAX_PLATFORMS": "cpu", "TMPDIR": str(self.temporary)} | stopped
        given = [sys.executable, "-c", CLIENT, str(engine), *words]
        self.process = subprocess.Popen(
            given, cwd=folder, env=variables, stdin=DEVNULL, stdout=DEVNULL, stderr=PIPE, text=True
        )

    def notes(self):
        """The phases that the engine announced, in order, and whether each `begins` or `ends` there."""
        if not self._notes.exists():
            return []
        return [(words[1], words[2]) for line in self._notes.read_text().splitlines() if (words := line.split())]

    def engine_pid(self):
        return int(self._notes.read_text().split()[0])

    def logged(self):
        """The phases in the log, as `notes` has them."""
        whole = self.out.read_bytes().rpartition(b"\n")[0] if self.out.exists() else b""
        events = [json.loads(line) for line in whole.splitlines()]
        return [(event["phase"], WORDS[event["type"]]) for event in events if event.get("type") in WORDS]

    def left(self):
        """The processes that this client has started and that still run."""
        return processes_with(f"JAXPROF_MARK={self._mark}")

    def close(self):
        self.process.kill()
        return self.process.communicate()[1]


def wait(holds, what):
    deadline = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < deadline, what()
        time.sleep(0.05)


@pytest.fixture
def measuring(tmp_path):
    made = []

    def start(variant, phase, how):
        made.append(Measuring(tmp_path, variant, phase, how))
        return made[-1]

    yield start
    for each in made:
        each.close()


def every_case():
    """All of them, for `bench/faults.py`. An engine leaves an interrupt to its client."""
    for phase in JIT_PHASES:
        for victim, numbers in (("client", (KILL, TERM, INTERRUPT)), ("engine", (KILL, TERM))):
            for number in numbers:
                yield from (Case(phase, victim, number, how) for how in ("lock", "sleep"))


def check(case, work, call):
    announced = (case.phase, "begins")

    def stopped():
        return announced in work.logged() and announced in work.notes()  # which the engine writes after the event

    wait(lambda: stopped() or work.process.poll() is not None, lambda: (work.notes(), work.close()))
    os.kill(work.process.pid if case.victim == "client" else work.engine_pid(), case.number)
    code = work.process.wait(SECONDS)
    wait(lambda: not work.left(), work.left)
    wait(lambda: not list(work.temporary.iterdir()), lambda: list(work.temporary.iterdir()))

    assert work.notes()[-1] == announced
    logged = iter(work.logged())  # with the client's own words of when a run waited for its turn
    assert [note for note in work.notes() if note not in logged] == [], "all that was reported is in the log, in order"
    session = load(work.out, Session)
    (run,) = session.runs.values()
    assert session.notices == []
    assert call("open", work.out).code == ExitCode.OK
    if case.victim == "engine":
        assert (code, run.status) == (ExitCode.FAILED, "crashed")
        assert case.number.name in run.error
    elif case.number in (TERM, INTERRUPT):
        assert (code, run.status) == (SIGNAL_BASE + case.number, "cancelled")
        assert session.closed.reason == (case.number.name if case.number == TERM else "interrupted")
    else:
        assert code == -KILL
        assert session.closed is None
        assert run.closed is None


@pytest.mark.process
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_kill_at_a_phase(case, measuring, call):
    check(case, measuring("jit", case.phase, case.how), call)


@pytest.mark.process
def test_these_are_all_phases(measuring):
    work = measuring("jit", "none", "sleep")
    code = work.process.wait(SECONDS)
    assert code == ExitCode.OK, work.close()
    found = [phase for phase, what in work.notes() if what == "begins"]
    assert found == list(JIT_PHASES), found
