"""What each command may import, seen from outside: in a process of its own, after it has done its work."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from jaxprof.store import LogWriter
from report import sessions

SOURCE = Path(__file__).parents[1] / "src"
WATCHED = ("jax", "jaxlib", "scipy", "textual", "numpy", "msgspec", "psutil", "pynvml")
HEAVY = {"jax", "jaxlib", "scipy", "textual"}

PROBE = """
import json, os, sys
out, sys.stdout = sys.stdout, open(os.devnull, "w")
from jaxprof.cli.main import main
try:
    main(sys.argv[1:])
except SystemExit as ended:
    code = ended.code
print(json.dumps({"code": int(code), "modules": sorted({name.split(".")[0] for name in sys.modules})}), file=out)
"""


def modules_after(script: str, *words: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", script, *words],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(SOURCE), "PATH": "/usr/bin:/bin", "HOME": "/nonexistent"},
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["code"] == 0, done.stderr
    return set(said["modules"]) & set(WATCHED)


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


@pytest.mark.parametrize(
    "words",
    [
        ("show", "FILE"),
        ("show", "FILE", "--format", "json"),
        ("show", "FILE", "--format", "csv"),
        ("show", "FILE", "--format", "markdown"),
        ("hlo", "FILE"),
        ("hlo", "FILE", "--kernels"),
    ],
)
def test_looking_at_a_file_imports_no_jax_and_no_textual(words: tuple[str, ...], session_file: Path) -> None:
    found = modules_after(PROBE, *(str(session_file) if word == "FILE" else word for word in words))
    assert not found & HEAVY


IMPORTS = """
import json, sys
from importlib import import_module
for name in sys.argv[1:]:
    import_module(name)
print(json.dumps({"code": 0, "modules": sorted({name.split(".")[0] for name in sys.modules})}))
"""


def test_the_package_itself_costs_nothing() -> None:
    assert modules_after(IMPORTS, "jaxprof") == set()


def test_the_process_that_draws_never_has_jax() -> None:
    assert not modules_after(IMPORTS, "jaxprof.tui.app", "jaxprof.worker") & {"jax", "jaxlib", "scipy"}


def test_the_first_frame_does_not_wait_for_numpy() -> None:
    assert not modules_after(IMPORTS, "jaxprof.tui.app") & {"numpy", "jax", "scipy"}


def test_the_engine_has_the_standard_library_numpy_and_jax_only() -> None:
    own = {"jaxprof.engine.main", "jaxprof.measure"}
    assert not modules_after(IMPORTS, *sorted(own)) & {"msgspec", "textual", "scipy", "psutil", "pynvml"}


def test_the_client_does_not_load_jax() -> None:
    assert not modules_after(IMPORTS, "jaxprof.worker", "jaxprof.api", "jaxprof.results.kernels") & HEAVY


def test_recording_a_short_program_imports_no_numpy_and_no_textual(tmp_path: Path) -> None:
    program = tmp_path / "x.py"
    program.write_text("")
    found = modules_after(PROBE, "script", "--plain", "--out", str(tmp_path / "s.jaxprof"), str(program))
    assert found <= {"msgspec", "psutil", "pynvml"}
