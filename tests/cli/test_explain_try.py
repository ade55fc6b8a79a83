"""`jaxprof explain --try`: what is started, what is said of it, and what is not tried.

The programs here need no jax: they do what a compilation cache does to a program, and take the time that it takes.
"""

from __future__ import annotations

import hashlib
import os
import socket
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import program_events
from cli.calling import Caller
from folding import written
from jaxprof import events as e
from jaxprof.cli.output import ExitCode
from jaxprof.errors import UsageError
from jaxprof.files import is_as_recorded
from jaxprof.runner.fix_trials import unchanged
from jaxprof.session import Session
from jaxprof.session.log import LogWriter
from jaxprof.session.log.reader import load

HELPS = """
import os, time
folder = os.environ.get("JAX_COMPILATION_CACHE_DIR")
filled = folder is not None and os.path.exists(folder)
if folder is not None:
    os.makedirs(folder, exist_ok=True)
time.sleep(0.0 if filled else 0.25)
print("loss", 0.125)
"""
FAILS_WITH_IT = HELPS.replace("if folder is not None:", "if folder is not None:\n    raise SystemExit('no cache here')")


UNCACHED = (
    program_events.compiled(cache="off", compile_seconds=0.4, trace_seconds=0.0, lower_seconds=0.0),
    program_events.compiled("init", cache="off", compile_seconds=4.0, trace_seconds=0.0, lower_seconds=0.0),
)


def recorded(folder: Path, source: str, *inside: e.Event, **changes: Any) -> Path:
    """A session of a program that would gain from a cache, or has other findings `inside`; its file is `source`."""
    file = folder / "train.py"
    file.write_text(source)
    os.utime(file, (1, 1))
    environment = e.EnvironmentRead(
        run=program_events.RUN, python="3.11", numpy="2", jax="0.10", settings=changes.pop("settings", {})
    )
    events = program_events.program(environment, *(inside or UNCACHED), wall=changes.pop("wall", 0.5))
    started = {"directory": str(folder), "argv": ["train.py"], **changes.pop("started", {})}
    python = changes.pop("python", sys.executable)
    header = replace(program_events.HEADER, **{"host": socket.gethostname(), **changes})
    path = folder / "session.jaxprof"
    writer = LogWriter(header, path)
    for event in events:
        if isinstance(event, e.ProgramStarted):
            event = replace(event, **started)
        elif isinstance(event, e.WorkerStarted):
            event = replace(event, python=python)
        writer.append(event)
    writer.close()
    return path


@pytest.fixture(autouse=True)
def few_launches(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fewest that are judged, of a program; one, of a function."""
    monkeypatch.setattr("jaxprof.runner.fix_trials.MOST_LAUNCHES", 3)
    monkeypatch.setattr("jaxprof.runner.turns.LEAST_SECONDS", 0.0)


@pytest.mark.process
def test_a_cache_that_helps_is_measured_and_its_numbers_are_compared(call: Caller, tmp_path: Path) -> None:
    session = recorded(tmp_path, HELPS)
    before = (session.read_bytes(), sorted(path.name for path in tmp_path.iterdir()))
    said = call("explain", session, "--try", "--yes", "--budget", "8", "--format", "json")
    (finding,) = (each for each in said.data["findings"] if each["code"] == "cache_off")
    measured = finding["measured"]
    assert measured["outcome"] in (
        "faster",
        "inconclusive",
    )  # the latter where a launch waited for its turn on the cores
    assert measured["gains"] is (measured["outcome"] == "faster")
    assert measured["ratio"] > 1
    assert min(measured["before_seconds"]) > 0.25
    assert measured["numbers"] == {"of": "printed", "compared": 1, "agree": True, "relative": 0.0, "note": None}
    assert finding["cost"]["seconds"] == pytest.approx(4.4)  # the estimate stands beside it
    assert (session.read_bytes(), sorted(path.name for path in tmp_path.iterdir())) == before


@pytest.mark.process
def test_a_program_that_ends_badly_with_it(call: Caller, tmp_path: Path) -> None:
    session = recorded(tmp_path, FAILS_WITH_IT)
    said = call("explain", session, "--try", "--yes", "--code", "cache_off", "--format", "markdown")
    assert said.code == 0
    assert "failed: with it the program fails: exit code 1: no cache here" in said.out


@pytest.mark.process  # the folder that it would be tried in has a reaper
@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"host": "elsewhere"}, "the session is from another machine (elsewhere)"),
        ({"process_count": 2}, "one process of several"),
        ({"wall_seconds": 0.5}, "train.py was changed after the session was recorded"),
        ({"wall": 100.0}, "the fewest launches"),
        ({"python": "/nowhere/python"}, "it was recorded with /nowhere/python, and"),
        ({"started": {"how": "record"}}, "the program recorded itself"),
        ({"settings": {"JAX_DEBUG_INFS": "..."}}, "JAX_DEBUG_INFS was set when it was recorded"),
        ({"started": {"argv": ["train.py", "--api-key", "[redacted]"]}}, "a secret"),
        ({"started": {"argv": ["gone.py"]}}, "gone.py is not here"),
        ({"python": "/bin/sh"}, "it was recorded with /bin/sh, and"),
        ({"started": {"argv": ["-c", "print(2)"]}}, "names neither a file nor -m and a module"),
        ({"started": {"how": "module", "argv": ["-c", "print(1)"]}}, "names neither a file nor -m and a module"),
        ({"started": {"how": "module", "argv": ["-m", "-c"]}}, "names neither a file nor -m and a module"),
        ({"started": {"argv": []}}, "how to start it is not known"),
        ({"started": {"directory": "/nowhere"}}, "its folder /nowhere is not here"),
    ],
)
def test_what_is_not_tried_and_why(call: Caller, tmp_path: Path, changes: dict[str, Any], why: str) -> None:
    session = recorded(tmp_path, "raise SystemExit('it was started')", **changes)
    said = call("explain", session, "--try", "--yes", "--code", "cache_off")
    assert said.code == 0
    words = " ".join(said.out.split())
    assert "not tried: " in words
    assert why in words
    assert "it was started" not in words


def test_nothing_is_started_without_a_question_and_all_of_it_is_shown(call: Caller, tmp_path: Path) -> None:
    session = recorded(
        tmp_path,
        "open('started', 'w')",
        started={"argv": ["train.py", "--name", "a b"]},
        settings={"XLA_FLAGS": "--xla_gpu_cuda_data_dir=here"},
    )
    said = call("explain", session, "--try", "--code", "cache_off")
    assert said.code == ExitCode.USAGE
    shown = f"{sys.executable} train.py --name 'a b', in {tmp_path} with XLA_FLAGS=--xla_gpu_cuda_data_dir=here"
    assert shown in " ".join(said.err.split())
    assert "nothing was started" in said.err
    assert "--yes" in said.err
    assert not (tmp_path / "started").exists()


@pytest.mark.parametrize("words", [("explain", "--try", "--yes"), ("run", "--yes", "--from")])
def test_nothing_that_was_fetched_is_started(
    call: Caller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    from jaxprof.session.log.state import FETCHED_FROM, fetched_folder
    from jaxprof.session_names import FETCHED

    monkeypatch.setenv("JAXPROF_HOME", str(tmp_path))
    fetched_folder().mkdir(parents=True)
    session = recorded(fetched_folder(), "open('started', 'w')")
    said = call(*words, session)
    assert said.code == ExitCode.USAGE
    assert "nothing that was fetched from a URL is started" in said.err
    assert not (fetched_folder() / "started").exists()
    of_another = tmp_path / "other" / FETCHED / "0123456789abcdef"
    of_another.mkdir(parents=True)
    (of_another / FETCHED_FROM).write_text("https://host/s.jaxprof")
    said = call(*words, recorded(of_another, "open('started', 'w')"))
    assert "nothing that was fetched from a URL is started" in said.err, "another JAXPROF_HOME fetched it"


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--try", "--code", "host_sync"), "has no finding host_sync"),
        (("--try", "--code", "recompile_in_loop"), "the fix of recompile_in_loop is a change of the program"),
        (("--try", "--code", "nonsense"), "unknown finding"),
        (("--budget", "5"), "has no effect without --try"),
        (("--yes",), "has no effect without --try"),
    ],
)
def test_what_it_refuses(call: Caller, tmp_path: Path, words: tuple[str, ...], why: str) -> None:
    path = tmp_path / "program.jaxprof"
    writer = LogWriter(program_events.HEADER, path)
    again = [program_events.compiled("step", "new_function", compile_seconds=0.1) for _ in range(30)]
    for event in program_events.program(*again, wall=10.0):
        writer.append(event)
    writer.close()
    said = call("explain", path, *words)
    assert said.code == ExitCode.USAGE
    assert why in said.err


def test_an_explanation_names_the_command_only_where_something_can_be_tried(call: Caller, tmp_path: Path) -> None:
    remade = [program_events.compiled("step", "new_function", compile_seconds=0.1) for _ in range(30)]
    assert "--try" not in call("explain", recorded(tmp_path, HELPS, *remade, wall=10.0)).out
    (tmp_path / "session.jaxprof").unlink()
    shaped = recorded(tmp_path, HELPS, *program_events.shaped(33, compile_seconds=0.1), wall=10.0)
    assert f"measure these fixes: jaxprof explain {shaped} --try" in " ".join(call("explain", shaped).out.split())
    assert "--try --code cache_off" in " ".join(call("explain", "--code", "cache_off").out.split())
    assert "--try" not in call("explain", "--code", "host_sync").out


FAKE_JAX = """
import time, types

def leaves(x):
    return [leaf for each in x for leaf in leaves(each)] if isinstance(x, (tuple, list)) else [x]

tree = types.SimpleNamespace(leaves=leaves, structure=lambda x: "*", map=lambda function, x: x)
inside = []

def jit(function):
    def compiled(*arguments):
        inside.append(True)
        try:
            return function(*arguments)
        finally:
            inside.pop()
    return compiled

def operation():
    if not inside:
        time.sleep(0.01)
"""
LOOP = """import jax
import numpy as np
{}
def main():
    for _ in range(20):
        state = np.ones(2)
        {}
    print("done")


main()
"""
ADVANCE = """

def advance(state):
    jax.operation()
    return state * (2 if jax.inside else 2.0{})

"""


def op_by_op(folder: Path, source: str, line: int, function: str) -> Path:
    """A session of a program with operations outside any jit, at that line of that function."""
    (folder / "jax.py").write_text(FAKE_JAX)
    place = program_events.at(line, function)
    rows = [
        program_events.compiled(
            name, called_from=place, op_by_op=True, operations=1, library=True, defined_at=e.NOWHERE
        )
        for name in ("add", "mul", "sin")
    ]
    busy = program_events.line(line, 0.5, "host_busy", "jnp.sin()", function, kind="dispatch", under=89)
    step = program_events.line(88, 0.5, "device_busy", "step")
    return recorded(
        folder,
        source,
        *rows,
        *program_events.steady(1, {"device_busy": 0.5, "host_busy": 0.5}, [busy, step]),
        wall=1.0,
    )


@pytest.mark.process
@pytest.mark.parametrize(
    ("other", "says", "agree"),
    [
        ("", "the results of the first 20 calls are equal", True),
        (" + 1", "the first 20 calls differ by 3.3e-01", False),
    ],
)
def test_jit_around_a_function_of_the_loop(
    call: Caller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: str, says: str, agree: bool
) -> None:
    monkeypatch.setattr(program_events, "FOLDER", str(tmp_path))
    source = LOOP.format(ADVANCE.format(other), "advance(state)")
    session = op_by_op(tmp_path, source, source.splitlines().index("    jax.operation()") + 1, "advance")
    said = call("explain", session, "--try", "--yes", "--code", "op_by_op_loop", "--budget", "8", "--format", "json")
    (finding,) = said.data["findings"]
    assert says in finding["measured"]["sentence"]
    assert finding["measured"]["numbers"]["agree"] is agree
    assert finding["measured"]["gains"] is (agree and finding["measured"]["outcome"] == "faster")
    assert finding["measured"]["ratio"] > 1
    assert (tmp_path / "train.py").read_text() == source


def test_operations_in_the_loop_itself_are_not_put_under_jit(
    call: Caller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program_events, "FOLDER", str(tmp_path))
    source = LOOP.format("", "jax.operation()")
    said = call("explain", op_by_op(tmp_path, source, 89, "main"), "--try", "--yes", "--code", "op_by_op_loop")
    assert "not tried: the operations stand in the loop itself" in " ".join(said.out.split())


STEP = """
import jax

def step(state, update):
    return jax.tree.map(lambda old, more: old * 0.5 + more[0, 0], state, update)
"""
STEP_HLO = """HloModule jit_step, is_scheduled=true

%fused (a: f32[2048,1024]) -> f32[2048,1024] {
  %a = f32[2048,1024]{1,0} parameter(0)
  ROOT %sum = f32[2048,1024]{1,0} add(%a, %a)
}

%fused.1 (b: f32[2048,1024]) -> f32[2048,1024] {
  %b = f32[2048,1024]{1,0} parameter(0)
  ROOT %sum.1 = f32[2048,1024]{1,0} add(%b, %b)
}

ENTRY %main (state.0: f32[2048,1024], state.1: f32[2048,1024]) -> (f32[2048,1024], f32[2048,1024]) {
  %state.0 = f32[2048,1024]{1,0} parameter(0)
  %state.1 = f32[2048,1024]{1,0} parameter(1)
  %one = f32[2048,1024]{1,0} fusion(%state.0), kind=kLoop, calls=%fused
  %two = f32[2048,1024]{1,0} fusion(%state.1), kind=kLoop, calls=%fused.1
  ROOT %out = (f32[2048,1024]{1,0}, f32[2048,1024]{1,0}) tuple(%one, %two)
}
"""


def measured(folder: Path, source: str = STEP, **changes: Any) -> Path:
    """A session of a measured function whose program shows that it holds its old state beside the new one."""
    file = folder / "train.py"
    file.write_text(source)
    os.utime(file, (1, 1))
    array, small = "f32[2048,1024]", "f32[1,1]"
    spec = e.RunSpec(
        workload="train.py:step", variant="jit", how="jit", device="cpu:0", target=f"{file}:step",
        arguments=(f'{{"a":{array},"b":{array}}}', f'{{"a":{small},"b":{small}}}'),
    )  # fmt: skip
    header = replace(program_events.HEADER, **{"host": socket.gethostname(), **changes})
    path = folder / "runs.jaxprof"
    written(
        path,
        (
            e.RunPlanned(run="r1", spec=spec),
            e.WorkerStarted(run="r1", pid=100, python=sys.executable),
            e.TextRecorded(run="r1", name="hlo", text=STEP_HLO),
            e.RunFinished(run="r1", status="ok"),
        ),
        header,
    )
    return path


@pytest.mark.process
def test_a_donation_is_measured_in_bytes_beside_the_same_call(call: Caller, tmp_path: Path, state_home: Path) -> None:
    session = measured(tmp_path)
    said = call("explain", session, "--try", "--yes", "--code", "lost-donation", "--budget", "1", "--format", "json")
    (finding,) = said.data["findings"]
    tried = finding["measured"]
    assert tried["outcome"] in ("faster", "slower", "same", "inconclusive"), tried["sentence"]
    assert tried["before_bytes"] - tried["after_bytes"] == 2 * 4 * 2048 * 1024 == finding["cost"]["bytes"]
    assert tried["numbers"]["agree"] is True
    assert tried["gains"] is (tried["outcome"] != "slower")
    assert Path(tried["session"]).is_file()
    shown = call("show", tried["session"])
    assert "donated" in shown.out


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


@pytest.mark.parametrize("which", [recorded, measured])
def test_a_checkout_changes_no_file_and_an_edit_with_an_old_time_does(tmp_path: Path, which: Any) -> None:
    """By the contents that a session keeps; the time of the last change says both wrong."""
    session = load(which(tmp_path, "x = 1\n"), Session)
    (run,) = session.runs.values()
    file = tmp_path / "train.py"
    run.sources[str(file)] = _digest(file)
    os.utime(file)  # as a checkout leaves it
    assert file.stat().st_mtime > session.header.wall_seconds
    unchanged(file, session, run)
    assert is_as_recorded(str(file), run.sources, session.header.wall_seconds)
    file.write_text("x = 2\n")
    os.utime(file, (1, 1))
    with pytest.raises(UsageError, match="was changed"):
        unchanged(file, session, run)
    run.sources.clear()
    unchanged(file, session, run)  # an older session has only its time


def test_a_function_that_is_no_longer_the_measured_one_is_not_tried(call: Caller, tmp_path: Path) -> None:
    for changes, why in (
        ({"host": "elsewhere"}, "another machine (elsewhere)"),
        ({"wall_seconds": 0.5}, "train.py was changed"),
    ):
        said = call("explain", measured(tmp_path, "raise SystemExit('imported')", **changes), "--try")
        words = " ".join(said.out.split())
        assert "not tried: " in words
        assert why in words
        (tmp_path / "runs.jaxprof").unlink()
