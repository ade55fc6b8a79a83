"""Real jax programs under `jaxprof script`, from start to end; with further interpreters where they are named."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from jaxprof.events import EnvironmentRead
from pythons import EVERY, FURTHER
from recorder.running import CLIENT, environment, notes_of, program_in, run_alone, run_recorded, session_in

pytestmark = pytest.mark.process

TRAINS = """
import sys
import jax, jax.numpy as jnp, numpy as np

@jax.jit
def step(x):
    return jnp.sin(x) * 2

for size in (3, 4, 5):
    print(np.asarray(step(np.ones(size, np.float32))))
"""
RAISES = "jax.jit(lambda x: x.nothing)(1.0)"


def test_a_program_that_raises_inside_a_jit_is_the_same_and_its_ledger_is_whole(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text(f"{TRAINS}{RAISES}\n")
    alone, recorded = run_alone(tmp_path, "x.py"), run_recorded(tmp_path, "x.py")
    assert (recorded.out, recorded.err, recorded.code) == (alone.out, alone.err, alone.code)
    check_steps(tmp_path)
    run = program_in(tmp_path)
    assert notes_of(run) == []
    assert run.program is not None
    assert run.program.ended is not None
    assert run.program.ended.error.startswith("AttributeError: ")
    lines = (tmp_path / "x.py").read_text().splitlines()
    assert run.program.ended.error_at.line == lines.index(RAISES) + 1


def _monitors(python: str) -> bool:
    return tuple(map(int, python.split(".")[:2])) >= (3, 12)


def check_steps(folder: Path) -> None:
    program = program_in(folder).program
    assert program is not None
    rows = [row for row in program.compiled if row.function == "step"]
    assert [row.reason_code for row in rows] == ["first", "shape", "shape"]
    assert {row.called_from.line for row in rows} == {10}


def test_a_capture_window_brings_the_kernels_into_the_session(tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    (tmp_path / "x.py").write_text(
        TRAINS + "import time\nuntil = time.monotonic() + 1.2\nwhile time.monotonic() < until:\n    step(np.ones(5))\n"
    )
    recorded = run_recorded(tmp_path, "x.py", options=("--capture-seconds", "500ms"), TMPDIR=str(temporary))
    assert recorded.code == 0
    run = program_in(tmp_path)
    assert run.program is not None
    assert [window.state for window in run.program.windows] == ["began", "ended"]
    imported = [other for other in session_in(tmp_path).runs.values() if other.plan.how == "imported"]
    assert imported[0].plan.workload == "capture window"
    assert {other.status for other in imported} == {"ok"}
    assert "jit_step" in {other.plan.workload for other in imported}
    assert list(temporary.glob("jaxprof-window-*")) == []


def test_what_a_recorded_program_waits_for_is_little(tmp_path: Path) -> None:
    """Of the engine there is the reading of the environment alone; and the client imports nothing before the program
    has been started that it only needs to follow it."""
    (tmp_path / "x.py").write_text(
        "import atexit, sys, time, jax\njax.jit(lambda x: x + 1)(1).block_until_ready()\n"
        "while 'jaxprof.engine.measure.environment' not in sys.modules:\n    time.sleep(0.05)\n"
        "print(sorted(name for name in sys.modules if name.startswith('jaxprof.') and name.count('.') > 2))\n"
    )
    out = run_recorded(tmp_path, "x.py").out
    assert "jaxprof.engine.measure.environment" in out
    assert "jaxprof.engine.measure.run" not in out
    hook = (
        "import sys; sys.addaudithook(lambda event, _: event == 'subprocess.Popen'"
        " and print('\\n'.join([*sys.modules, 'STARTED']), file=sys.stderr)); "
    )
    arguments = "sys.argv[1:] = ['script', '--plain', 'x.py']; "
    command = [sys.executable, "-c", hook + arguments + CLIENT]
    imported = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=True)
    before = set(imported.stderr.partition("STARTED")[0].splitlines())  # more processes may be started later
    assert "jaxprof.early_start" in before
    assert not before & {"jax", "numpy", "textual", "psutil", "msgspec", "importlib.metadata", "jaxprof.analysis"}


LOOPS = """
import time
import jax, jax.numpy as jnp

@jax.jit
def step(x):
    return jnp.tanh(x @ x)

x = step(jnp.ones((32, 32)))
for number in range(400):
    x = step(x).block_until_ready()
    time.sleep(0.002)
time.sleep(0.3)
"""


@pytest.mark.skipif(not FURTHER and sys.version_info < (3, 12), reason="nothing tells passes before Python 3.12")
@pytest.mark.parametrize("python", FURTHER or EVERY)
def test_the_passes_of_a_loop_have_their_numbers(python: str, tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text(LOOPS)
    recorded = run_recorded(tmp_path, "x.py", options=("--python", python))
    assert (recorded.code, recorded.out, recorded.err) == (0, "", "")
    run = program_in(tmp_path)
    assert run.program is not None
    assert run.environment is not None
    passes = run.program.passes
    if not _monitors(run.environment.python):
        assert passes == []
        return
    assert {(event.numbered_by, event.where.line) for event in passes} == {("number", 10)}
    assert [event.first for event in passes[1:]] == [event.first + event.count for event in passes[:-1]]
    assert passes[0].first < 200
    assert passes[-1].first + passes[-1].count - 1 == 399


@pytest.mark.parametrize("python", FURTHER or EVERY)
def test_every_interpreter_is_recorded(python: str, tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text(TRAINS)
    recorded = run_recorded(tmp_path, "x.py", options=("--python", python))
    assert (recorded.code, recorded.err) == (0, "")
    assert "3 compilations" in recorded.notes
    check_steps(tmp_path)
    run = program_in(tmp_path)
    assert run.program is not None
    assert run.program.jax is not None
    assert run.program.jax.seconds is not None
    assert run.program.jax.seconds > 0
    assert isinstance(run.environment, EnvironmentRead)
    assert run.environment.jax == run.program.jax.version
    assert run.environment.devices
    assert run.program.sampled
    codes = [warning.code for warning in run.warnings]
    assert set(codes) <= (set() if _monitors(run.environment.python) else {"steps_not_counted"}), "if a loop was seen"
