"""`jaxprof script --transfers`: copies are counted exactly, and the program's stderr stays what it was."""

import subprocess

import pytest

from jaxprof.analysis.programs.derive import program_result
from jaxprof.analysis.programs.findings.arrays import counted
from jaxprof.engine.protocol.recording import RecordingOptions
from jaxprof.events import LogLine
from jaxprof.runner.interpreter import own_interpreter
from jaxprof.runner.program import ProgramCommand
from jaxprof.runner.program_run import ProgramScheduler
from jaxprof.session.log import LogWriter, new_header
from pythons import EVERY
from recorder.running import client, environment, program_in, run_recorded, session_in

pytestmark = pytest.mark.process

CALLS = 300
COPIES = f"""
import os, sys
import jax, numpy as np

assert "JAX_TRANSFER_GUARD" not in os.environ, "children have no guard"

@jax.jit
def step(x, scale):
    return x * scale

x = np.ones((4, 8), np.float32)
for index in range({CALLS}):
    step(x, 2.0)
    if index % 100 == 0:
        sys.stderr.write(f"\\rat {{index}}")
        sys.stderr.flush()
sys.stderr.buffer.write(b"\\xff\\x00 no line break: W11")
"""
ERR = b"\rat 0\rat 100\rat 200\xff\x00 no line break: W11"


def counts(run):
    rows = [row for event in run.program.transfers for row in event.rows if row.source == "guard"]
    assert all(row.direction == "host_to_device" for row in rows)
    found = {}
    for row in rows:
        count, size = found.get(key := (row.direction, row.type), (0, None))
        known = [one for one in (size, row.bytes) if one is not None]
        found[key] = (count + row.count, sum(known) if known else None)
    return found


@pytest.mark.parametrize("python", EVERY)
def test_every_copy_is_counted_and_stderr_is_the_same_to_the_byte(python, tmp_path):
    (tmp_path / "x.py").write_text(COPIES)
    command = client("--transfers", "--python", python, "x.py")
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, env=environment(), timeout=60, check=True)
    said, notes = done.stderr.split(b"jaxprof: ", 1)
    assert said == ERR
    assert b"600 implicit copies from host to device" in notes.replace("\u202f".encode(), b" ")
    run = program_in(tmp_path)
    assert {warning.code for warning in run.warnings} <= {"steps_not_counted"}  # on Python 3.11
    found = counts(run)
    assert sum(count for count, _ in found.values()) == 2 * CALLS
    assert found["host_to_device", "f32[4,8]"] == (1, 128)
    assert found["host_to_device", "f32[]"] == (1, 4)
    assert found["host_to_device", ""] == (2 * CALLS - 2, None)
    assert counted(program_result(session_in(tmp_path), run.id).run)


def test_where_output_is_captured_no_line_of_the_guard_is_in_the_log(tmp_path):
    (tmp_path / "x.py").write_text(COPIES)
    program = ProgramCommand(path="x.py", directory=str(tmp_path), options=RecordingOptions(transfers=True))
    seen = []
    scheduler = ProgramScheduler(LogWriter(new_header(), None), own_interpreter(), seen.extend, program)
    run = scheduler.start()
    scheduler.run()
    scheduler.close()
    assert [line.text for line in seen if isinstance(line, LogLine)] == ["at 200\ufffd\x00 no line break: W11"]
    assert sum(count for count, _ in counts(scheduler.session.runs[run]).values()) == 2 * CALLS


def test_what_the_user_has_set_stays_and_what_it_hides_is_said(tmp_path):
    (tmp_path / "x.py").write_text("import jax, numpy as np\nprint(jax.config.jax_transfer_guard)\n")
    hides = {"JAX_TRANSFER_GUARD": "allow", "TF_CPP_MIN_LOG_LEVEL": "3"}
    recorded = run_recorded(tmp_path, "x.py", options=("--transfers",), **hides)
    assert (recorded.code, recorded.out, recorded.err) == (0, "allow\n", "")
    run = program_in(tmp_path)
    (warning,) = run.warnings
    assert warning.code == "transfers_not_counted"
    assert all(hidden in warning.message for hidden in ("jax_transfer_guard=allow", "TF_CPP_MIN_LOG_LEVEL=3"))
    assert not counted(run)
