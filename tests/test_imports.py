"""What each command may import, seen from outside: in a process of its own, after it has done its work. In a folder of
files named as modules that we import, none of them is imported."""

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

import pytest

import program_events
from cli.calling import SOURCE
from cli.compiled import compiled
from folding import written
from jaxprof.base.operating_system import python_words
from jaxprof.devices.absent import wheels
from jaxprof.rollup.making import roll_ups
from jaxprof.session import new_header
from report import sessions
from tables import rows
from waiting import SLOWER

pytestmark = pytest.mark.process

WATCHED = ("jax", "jaxlib", "scipy", "textual", "numpy", "msgspec", "psutil", "pynvml")

OTHERS = ("engine", "runner", "recorder", "devices", "tui", "trace.xspace", "trace.imported")
"""Packages and files of ours that looking at a file has no use for."""

PROBE = """
import json, os, sys
out, sys.stdout = sys.stdout, open(os.devnull, "w")
from jaxprof.cli.main import main
code = 0
for line in sys.argv[1:]:
    try:
        main(line.split())
    except SystemExit as ended:
        code = code or ended.code
own = sorted(name for name in sys.modules if name.startswith("jaxprof."))
packages = sorted({name.split(".")[0] for name in sys.modules})
print(json.dumps({"code": int(code), "modules": packages, "own": own}), file=out)
"""


@cache
def after(script, *words):
    """What was imported by command lines or by modules, in a process of its own."""
    given = [sys.executable, "-c", script, *words]
    with tempfile.TemporaryDirectory() as home:
        variables = {"PYTHONPATH": str(SOURCE), "PATH": os.environ["PATH"], "HOME": home}
        done = subprocess.run(given, env=variables, capture_output=True, text=True, timeout=60 * SLOWER)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["code"] == 0, done.stderr
    return said


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    written(folder / "x.jaxprof", sessions.events(), sessions.HEADER)
    written(folder / "program.jaxprof", program_events.program(), program_events.HEADER)
    (folder / "m.hlo").write_text(sessions.HLO)
    names = {"FILE": "x.jaxprof", "PROGRAM": "program.jaxprof", "HLO": "m.hlo"}
    return {word: f"{folder}/{name}" for word, name in names.items()}


@pytest.mark.parametrize(
    ("lines", "most"),
    [
        (("--help",), set()),
        (("sessions", "run", "run --describe selu", "config completion bash", "run --help"), {"msgspec"}),
        (("open PROGRAM --format text",), {"msgspec"}),
        (("hlo HLO --kernels",), set()),
    ],
)
def test_light_commands_import_no_jax_and_no_numpy(lines, most, files):
    given = (" ".join(files.get(word, word) for word in line.split()) for line in lines)
    assert set(after(PROBE, *given)["modules"]) & set(WATCHED) <= most


@pytest.mark.parametrize(
    ("modules", "without"),
    [
        ("jaxprof", WATCHED),
        ("jaxprof.cli.main", (*WATCHED, "difflib", "pathlib")),  # `--help` is as fast as click alone
        ("jaxprof.tui.shell.profiler", ("jax", "scipy", "numpy")),  # no frame waits for them
        ("jaxprof.tui.shell.profiler jaxprof.runner", ("jax", "jaxlib", "scipy")),
        ("jaxprof.engine.main jaxprof.engine.measure", ("msgspec", "textual", "scipy", "psutil", "pynvml")),
        ("jaxprof.runner jaxprof.api jaxprof.analysis.kernels.measured", ("jax", "jaxlib", "scipy", "textual")),
    ],
)
def test_our_modules_do_without(modules, without):
    assert set(after(IMPORTS, *modules.split())["modules"]) & set(without) == set()


LOADED = rows("""
    sessions                 30   session.fold events.captures events.programs
    open FILE --format text  70   analysis.kernels.ranking devices
    open FILE --format json  90   -
    open FILE --kernels      38   hlo
    open PROGRAM --format text  62  hlo stats
    open PROGRAM --compiles  48   findings.programs analysis.programs.verdict session.writer
    explain FILE             90   findings.programs findings.trials
    explain PROGRAM          64   hlo stats findings.runs
    hlo FILE                 44   -
    hlo FILE --kernels       62   stats analysis.runs.run_result
    hlo HLO                  40   session.fold session.lines session.writer
    hlo HLO --kernels        55   -
    hlo HLO --format json    73   -
""")


@pytest.mark.parametrize(("line", "most", "without"), LOADED)
def test_looking_at_a_file_loads_what_it_needs(line, most, without, files):
    """Neither what runs, measures, draws or compiles, nor the readers of other files. `most` is what is loaded today
    with some room: whoever needs more of it sees here what a command begins to load."""
    found = after(PROBE, " ".join(files.get(word, word) for word in line.split()))["own"]
    unwanted = [f"jaxprof.{other}." for other in (*OTHERS, *without.split())]
    assert [name for name in found if f"{name}.".startswith(tuple(unwanted))] == []
    assert len(found) <= int(most), found


IMPORTS = """
import json, sys
from importlib import import_module
for name in sys.argv[1:]:
    import_module(name)
own = sorted(name for name in sys.modules if name.startswith("jaxprof."))
print(json.dumps({"code": 0, "modules": sorted({name.split(".")[0] for name in sys.modules}), "own": own}))
"""


def test_a_program_is_followed_without_what_finds_devices():
    own = after(IMPORTS, "jaxprof.runner.program_run")["own"]
    assert "jaxprof.runner.session_recorder" in own
    assert not [name for name in own if name.startswith(("jaxprof.devices.inventory.", "jaxprof.devices.live.nvidia"))]


RECORDER = "launch recorder compiles.ledger profiler_use capture_window samples.sampler"
"""What begins in a program when it imports jax."""


@pytest.mark.parametrize(
    ("modules", "most"),
    [
        ("jaxprof.base.early_start", 4),
        ("jaxprof.recorder.launch", 6),
        (" ".join(f"jaxprof.recorder.{name}" for name in RECORDER.split()), 46),
    ],
)
def test_a_program_waits_for_few_of_our_modules(modules, most):
    own = after(IMPORTS, *modules.split())["own"]
    assert len(own) <= most, own


SUMMARY = """
import json, sys
from pathlib import Path
from types import SimpleNamespace
from jaxprof.cli import main, plain_script
from jaxprof.runner import program_run
from jaxprof.session import Session
from jaxprof.session import load
plain_script.import_summary()
path = Path(sys.argv[1])
session = load(path, Session)
before = set(sys.modules)
writer = SimpleNamespace(failure=None, path=path, kept_path=path, changed="", is_displaced=False, lost=0)
plain_script.print_summary(SimpleNamespace(session=session, writer=writer), "r1")
print(json.dumps({"code": 0, "modules": [], "own": sorted(set(sys.modules) - before)}))
"""


def test_summary_after_a_program_imports_nothing(tmp_path):
    """The user waits for it, and the time counts as the cost of recording."""
    slow = program_events.compiled("step", "new_function", compile_seconds=0.5, count=20)
    waits = program_events.loop(program_events.line(95, 0.4, "host_busy", "log()"))
    path = written(tmp_path / "p.jaxprof", program_events.program(slow, *waits), program_events.HEADER)
    assert after(SUMMARY, str(path))["own"] == []


BAITS = (
    "click", "json", "pip", "jaxprof", "msgspec", "numpy", "jax", "textual", "psutil", "typing", "random", "duckdb",
    "sitecustomize",
)  # fmt: skip


@pytest.fixture
def baits(tmp_path, monkeypatch):
    folder = tmp_path / "baits"
    for name in BAITS:
        file = folder / name / "__init__.py" if name in ("jaxprof", "pip") else folder / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"open({str(folder / 'imported')!r}, 'a').write({name!r} + chr(10))\n")
    base = compiled(None, workload="selu", target="selu", variant="numpy", how="numpy", parameters={"n": 1000})
    written(tmp_path / "base.jaxprof", base, new_header({}))
    monkeypatch.chdir(folder)
    return folder


def imported(folder):
    marker = folder / "imported"
    return marker.read_text() if marker.exists() else ""


@pytest.mark.parametrize(
    "words",
    [
        ("sessions",),
        ("agent", "mcp"),
        ("query", "../base.jaxprof", "SELECT 1"),
        ("run", "--from", "../base.jaxprof", "--budget", "0.01", "--launches", "1", "--yes"),
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_no_command_imports_from_the_current_folder(baits, words):
    command = [os.path.join(os.path.dirname(sys.executable), "jaxprof"), *words]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120 * SLOWER, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert imported(baits) == ""


@pytest.mark.skipif(importlib.util.find_spec("pip") is None, reason="this environment has no pip")
def test_nor_does_pip(baits):
    assert wheels._installer(sys.executable)[:2] == [sys.executable, "-P"]
    assert imported(baits) == ""


def test_nor_do_children_of_a_command(baits):
    assert wheels._facts(sys.executable, ["jax"])["jax"]  # what `hlo --for` and `target install` ask first
    assert python_words(sys.executable, "x") == [sys.executable, "-P", "x"]  # with which the tools of `mcp` run theirs
    assert [report.session for report in roll_ups([Path("a"), Path("b")], workers=2)] == ["a", "b"]
    assert imported(baits) == ""
