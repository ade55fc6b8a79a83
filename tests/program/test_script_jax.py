"""Real jax programs under `jaxprof script`, from start to end; with further interpreters where they are named."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from jaxprof.events import EnvironmentRead
from program.running import notes_of, program_in, run_alone, run_recorded, session_in

PYTHONS = [sys.executable, *filter(None, os.environ.get("JAXPROF_TEST_PYTHONS", "").split(os.pathsep))]
TRAINS = """
import sys
import jax, jax.numpy as jnp, numpy as np

@jax.jit
def step(x):
    return jnp.sin(x) * 2

for size in (3, 4, 5):
    print(np.asarray(step(np.ones(size, np.float32))))
"""
AFTER = {
    "ends": "",
    "raises": "def loss(x):\n    raise ValueError('nan')\njax.grad(loss)(1.0)\n",
    "raises inside a jit": "jax.jit(lambda x: x.nothing)(1.0)\n",
    "is killed": "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n",
    "leaves at once": "import os\nsys.stdout.flush()\nos._exit(4)\n",
    "is interrupted": "import os, signal\nsignal.raise_signal(signal.SIGINT)\n",
}


@pytest.mark.parametrize("ending", AFTER)
def test_the_ledger_of_a_program_however_it_ends(ending: str, tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text(TRAINS + AFTER[ending])
    alone, recorded = run_alone(tmp_path, "x.py"), run_recorded(tmp_path, "x.py")
    assert recorded.out == alone.out
    assert recorded.err == alone.err
    assert recorded.code == (alone.code if alone.code >= 0 else 128 - alone.code)
    check_steps(tmp_path)
    expected = ["not_unwound"] if ending in ("is killed", "leaves at once") else []
    assert notes_of(program_in(tmp_path)) == expected


@pytest.mark.parametrize("python", PYTHONS)
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
    assert run.warnings == []


def check_steps(folder: Path) -> None:
    program = program_in(folder).program
    assert program is not None
    rows = [row for row in program.compiled if row.function == "step"]
    assert [row.reason_code for row in rows] == ["first", "shape", "shape"]
    assert {row.called_from["line"] for row in rows} == {10}


def test_a_capture_window_brings_the_kernels_into_the_session(tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    (tmp_path / "x.py").write_text(
        TRAINS + "import time\nuntil = time.monotonic() + 2\nwhile time.monotonic() < until:\n    step(np.ones(5))\n"
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
