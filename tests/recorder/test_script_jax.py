"""A real jax program under `jaxprof script`, from start to end; with further interpreters where they are named."""

import json
import subprocess
import sys

import pytest

from pythons import EVERY, FURTHER
from recorder.running import CLIENT, OUT, environment, notes_of, program_in, run_alone, run_recorded, session_in

TRAINS = """
import os, sys, time
import jax, jax.numpy as jnp, numpy as np

print(__name__, __file__, sys.argv, sys.path, sys.flags, sys.orig_argv[1:], "sitecustomize" in sys.modules)
print([name for name in os.environ if name.startswith(("PYTHON", "JAXPROF_P", "JAXPROF_F"))])

@jax.jit
def step(x):
    return jnp.sin(x) * 2

print(step(np.ones(3, "f")), step(np.ones(4, "f")), step(np.ones(5, "f")))
until = time.monotonic() + 1.2 * ("PASSES" not in os.environ)
while time.monotonic() < until:
    step(np.ones(5, "f"))
    time.sleep(0.002)
with open("imported", "w") as file:
    file.write(" ".join(sys.modules))
x = jnp.ones((50, 50))
for number in range(int(os.environ.get("PASSES", 1500))):
    x = step(x).block_until_ready()
    time.sleep(0.002)
time.sleep(0.3)
jax.jit(lambda x: x.nothing)(1.0)
"""


def line_of(text):
    return TRAINS[: TRAINS.index(text)].count("\n") + 1


@pytest.mark.process(programs=1)
@pytest.mark.parametrize("python", FURTHER or EVERY)
def test_training_that_raises_is_recorded_whole(python, tmp_path):
    """As a module, with a capture window, and with the answer in JSON, to which stdout is left."""
    (tmp_path / "x.py").write_text(TRAINS)
    words = ("-m", "x", "--format", "json")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    options = ("--python", python, "--format", "json", "--capture-seconds", "500ms")
    recorded = run_recorded(tmp_path, *words, options=options, TMPDIR=str(temporary))
    assert recorded.code == 1
    answer = json.loads(recorded.out)
    assert (answer["kind"], answer["data"]["program"]["argv"]) == ("session", list(words))
    assert answer["data"]["session"]["path"] == str(tmp_path / OUT)
    imported = (tmp_path / "imported").read_text().split()
    if python == sys.executable:
        alone = run_alone(tmp_path, *words, PASSES="3")
        assert alone.code == 1
        assert sorted(recorded.err.splitlines()) == sorted(f"{alone.out}{alone.err}".splitlines())
    run = program_in(tmp_path)
    assert notes_of(run) == []
    assert run.program.started.argv == list(words)
    assert run.program.started.how == "module"
    assert run.program.ended.error.startswith("AttributeError: ")
    assert run.program.ended.error_at.line == line_of("jax.jit(lambda")
    rows = [row for row in run.program.compiled if row.function == "step"]
    called = [row.reason_code for row in rows if row.called_from.line == line_of("print(step")]
    assert called == ["first", "shape", "shape"]
    assert run.program.jax.seconds > 0
    assert run.environment.jax == run.program.jax.version
    assert run.environment.devices
    assert run.program.sampled
    check_iterations(run)
    assert "jaxprof.engine.measure.environment" in imported
    assert "jaxprof.engine.measure.run" not in imported, "of the engine there is the reading of the environment alone"
    assert [window.state for window in run.program.windows] == ["began", "ended"]
    captured = [other for other in session_in(tmp_path).runs.values() if other.plan.how == "imported"]
    assert captured[0].plan.workload == "capture window"
    assert {other.status for other in captured} == {"ok"}
    assert "jit_step" in {other.plan.workload for other in captured}
    assert list(temporary.glob("jaxprof-window-*")) == []


def check_iterations(run):
    """Each iteration of the loop has its number, where Python tells of iterations: from 3.12 on."""
    iterations = run.program.iterations
    if tuple(map(int, run.environment.python.split(".")[:2])) < (3, 12):
        assert iterations == []
        assert {warning.code for warning in run.warnings} <= {"steps_not_counted"}, "if the loop was seen"
        return
    assert run.warnings == []
    iterations = [event for event in iterations if event.where.line == line_of("for number")]
    assert {event.numbered_by for event in iterations} == {"number"}
    assert [event.first for event in iterations[1:]] == [event.first + event.count for event in iterations[:-1]]
    assert iterations[-1].first + iterations[-1].count - 1 == 1499


@pytest.mark.process
def test_client_imports_little_before_the_program_starts(tmp_path):
    (tmp_path / "x.py").write_text("")
    hook = (
        "import os, sys; sys.addaudithook(lambda event, _: event == 'os.posix_spawn'"
        " and (print('\\n'.join(sys.modules), flush=True), os._exit(0))); "
    )
    arguments = "sys.argv[1:] = ['script', '--plain', 'x.py']; "
    command = [sys.executable, "-c", hook + arguments + CLIENT]
    done = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=True)
    imported = set(done.stdout.splitlines())
    assert "jaxprof.base.early_start" in imported
    assert not imported & {
        "subprocess",
        "jax",
        "numpy",
        "textual",
        "psutil",
        "msgspec",
        "importlib.metadata",
        "jaxprof.analysis",
    }


@pytest.mark.process(programs=1)
def test_program_ends_as_its_own_where_arrays_cannot_be_read(tmp_path):
    text = """
import sys
import jax

jax.numpy.ones(3).block_until_ready()
sys.modules["jaxprof.recorder.live_arrays"] = None  # as where no memory is left for an import
raise RuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 8 bytes.")
"""
    (tmp_path / "x.py").write_text(text)
    recorded = run_recorded(tmp_path, "x.py")
    assert recorded.code == 1
    assert recorded.err.count("Traceback") == 1, recorded.err
    ended = program_in(tmp_path).program.ended
    assert ended is not None
    assert ended.error.startswith("RuntimeError: RESOURCE_EXHAUSTED")
