"""What each command may import, seen from outside: in a process of its own, after it has done its work."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import program_events
from jaxprof.session.log import LogWriter
from report import sessions

pytestmark = pytest.mark.process

SOURCE = Path(__file__).parents[1] / "src"
WATCHED = ("jax", "jaxlib", "scipy", "textual", "numpy", "msgspec", "psutil", "pynvml")
HEAVY = {"jax", "jaxlib", "scipy", "textual"}

OTHERS = ("engine", "runner", "recorder", "devices", "tui", "trace.xspace", "trace.imported")
"""Packages and files of ours that looking at a file has no use for."""

PROBE = """
import json, os, sys
out, sys.stdout = sys.stdout, open(os.devnull, "w")
from jaxprof.cli.main import main
try:
    main(sys.argv[1:])
except SystemExit as ended:
    code = ended.code
own = sorted(name for name in sys.modules if name.startswith("jaxprof."))
packages = sorted({name.split(".")[0] for name in sys.modules})
print(json.dumps({"code": int(code), "modules": packages, "own": own}), file=out)
"""


def modules_after(script: str, *words: str) -> set[str]:
    """Which of the packages of others that are watched were imported."""
    return set(_said(script, *words)["modules"]) & set(WATCHED)


def own_modules_after(*words: str) -> list[str]:
    """Which of our modules a command has imported."""
    found: list[str] = _said(PROBE, *words)["own"]
    return found


def _said(script: str, *words: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", script, *words],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(SOURCE), "PATH": "/usr/bin:/bin", "HOME": "/nonexistent"},
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    said: dict[str, Any] = json.loads(done.stdout)
    assert said["code"] == 0, done.stderr
    return said


@pytest.fixture
def session_file(tmp_path: Path) -> Path:
    path = tmp_path / "x.jaxprof"
    writer = LogWriter(sessions.HEADER, path)
    for event in sessions.events():
        writer.append(event)
    writer.close()
    return path


def test_help_imports_nothing_but_click() -> None:
    assert modules_after(PROBE, "--help") == set()


@pytest.mark.parametrize(
    "words", [("sessions",), ("workloads",), ("workloads", "selu"), ("run",), ("completion", "bash"), ("run", "--help")]
)
def test_light_commands_import_no_jax_and_no_numpy(words: tuple[str, ...]) -> None:
    assert modules_after(PROBE, *words) <= {"msgspec"}


@pytest.fixture
def hlo_file(tmp_path: Path) -> Path:
    path = tmp_path / "m.hlo"
    path.write_text(sessions.HLO)
    return path


@pytest.fixture
def program_file(tmp_path: Path) -> Path:
    path = tmp_path / "program.jaxprof"
    writer = LogWriter(program_events.HEADER, path)
    for event in program_events.program():
        writer.append(event)
    writer.close()
    return path


@pytest.mark.parametrize(
    ("words", "most"),
    [
        (("sessions",), 36),
        (("show", "FILE"), 102),
        (("show", "FILE", "--format", "json"), 116),
        (("show", "FILE", "--kernels"), 50),
        (("show", "PROGRAM"), 66),
        (("show", "PROGRAM", "--compiles"), 55),
        (("hlo", "FILE"), 58),
        (("hlo", "FILE", "--kernels"), 82),
        (("hlo", "HLO"), 46),
        (("hlo", "HLO", "--kernels"), 69),
        (("hlo", "HLO", "--format", "json"), 84),
    ],
)
def test_looking_at_a_file_loads_what_it_needs(
    words: tuple[str, ...], most: int, session_file: Path, hlo_file: Path, program_file: Path
) -> None:
    """Neither what runs, measures, draws or compiles, nor the readers of other files. `most` is what is loaded today
    with some room: whoever needs more of it sees here what a command begins to load."""
    files = {"FILE": session_file, "HLO": hlo_file, "PROGRAM": program_file}
    found = own_modules_after(*(str(files.get(word, word)) for word in words))
    unwanted = [name for name in found for other in OTHERS if f"{name}.".startswith(f"jaxprof.{other}.")]
    assert unwanted == []
    assert len(found) <= most, found


def test_the_ledger_alone_runs_no_finder_and_judges_no_loop(program_file: Path) -> None:
    found = own_modules_after("show", str(program_file), "--compiles")
    others = ("jaxprof.analysis.programs.findings", "jaxprof.analysis.programs.verdict", "jaxprof.session.log.writer")
    assert not [name for name in found if name.startswith(others)]


def test_kernels_without_a_measurement_need_no_statistics(session_file: Path) -> None:
    found = own_modules_after("hlo", str(session_file), "--kernels")
    assert not [name for name in found if name.startswith(("jaxprof.stats", "jaxprof.analysis.run_result"))]


def test_a_session_without_hlo_needs_no_reader_of_it_and_one_without_samples_no_numpy(program_file: Path) -> None:
    assert not [name for name in own_modules_after("show", str(program_file)) if name.startswith("jaxprof.hlo.read.")]
    assert modules_after(PROBE, "show", str(program_file)) == {"msgspec"}


def test_a_list_of_sessions_folds_none_and_makes_only_the_events_that_it_shows(session_file: Path) -> None:
    found = own_modules_after("sessions")
    assert not {"jaxprof.session.fold", "jaxprof.events.captures", "jaxprof.events.programs"} & set(found)


def test_hlo_in_a_file_needs_neither_sessions_nor_numpy(hlo_file: Path) -> None:
    assert modules_after(PROBE, "hlo", str(hlo_file), "--kernels") == set()
    assert not [name for name in own_modules_after("hlo", str(hlo_file)) if name.startswith("jaxprof.session")]


IMPORTS = """
import json, sys
from importlib import import_module
for name in sys.argv[1:]:
    import_module(name)
own = sorted(name for name in sys.modules if name.startswith("jaxprof."))
print(json.dumps({"code": 0, "modules": sorted({name.split(".")[0] for name in sys.modules}), "own": own}))
"""


def test_the_package_itself_costs_nothing() -> None:
    assert modules_after(IMPORTS, "jaxprof") == set()


def test_the_process_that_draws_never_has_jax() -> None:
    assert not modules_after(IMPORTS, "jaxprof.tui.app", "jaxprof.runner") & {"jax", "jaxlib", "scipy"}


def test_the_first_frame_does_not_wait_for_numpy() -> None:
    assert not modules_after(IMPORTS, "jaxprof.tui.app") & {"numpy", "jax", "scipy"}


def test_the_engine_has_the_standard_library_numpy_and_jax_only() -> None:
    own = {"jaxprof.engine.main", "jaxprof.engine.measure"}
    assert not modules_after(IMPORTS, *sorted(own)) & {"msgspec", "textual", "scipy", "psutil", "pynvml"}


def test_the_client_does_not_load_jax() -> None:
    assert not modules_after(IMPORTS, "jaxprof.runner", "jaxprof.api", "jaxprof.analysis.measured") & HEAVY


def test_a_program_is_followed_without_what_finds_devices() -> None:
    own = _said(IMPORTS, "jaxprof.runner.program_run")["own"]
    assert "jaxprof.runner.session_recorder" in own
    assert not [name for name in own if name.startswith(("jaxprof.devices.inventory.", "jaxprof.devices.live.nvidia"))]


def test_recording_a_short_program_imports_no_numpy_and_no_textual(tmp_path: Path) -> None:
    program = tmp_path / "x.py"
    program.write_text("")
    found = modules_after(PROBE, "script", "--plain", "--out", str(tmp_path / "s.jaxprof"), str(program))
    assert found <= {"msgspec", "psutil", "pynvml"}
