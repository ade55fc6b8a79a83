"""Commands that are typed in a folder of files named as modules that we import: none of them is imported."""

import os
import subprocess
import sys

import pytest

from cli.compiled import compiled
from folding import written
from jaxprof.devices.targets import wheels
from jaxprof.operating_system import python_words
from jaxprof.rollup.making import in_processes
from jaxprof.session.log import new_header
from jaxprof.session.log.job_folder import JobMember

pytestmark = pytest.mark.process

MODULES = (
    "click", "json", "pip", "jaxprof", "msgspec", "numpy", "jax", "textual", "psutil", "typing", "random", "duckdb",
    "sitecustomize",
)  # fmt: skip


@pytest.fixture
def baits(tmp_path, monkeypatch):
    folder = tmp_path / "baits"
    for name in MODULES:
        file = folder / name / "__init__.py" if name in ("jaxprof", "pip") else folder / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"open({str(folder / 'imported')!r}, 'a').write({name!r} + chr(10))\n")
    (tmp_path / "program.py").write_text("print('ran')\n")
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
        ("mcp",),
        ("query", "../base.jaxprof", "SELECT 1"),
        ("run", "--from", "../base.jaxprof", "--budget", "0.01", "--launches", "1", "--yes"),
        ("script", "-n", "2", "--out", "out.jaxprof.d", "../program.py"),
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_no_command_imports_from_the_current_folder(baits, words):
    command = [os.path.join(os.path.dirname(sys.executable), "jaxprof"), *words]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert imported(baits) == ""


def test_nor_do_children_of_a_command(baits):
    assert wheels._facts(sys.executable, ["jax"])["jax"]  # what `hlo --for` and `target install` ask first
    assert wheels._installer(sys.executable)[:2] == [sys.executable, "-P"]
    assert python_words(sys.executable, "x") == [sys.executable, "-P", "x"]  # with which the tools of `mcp` run theirs
    assert list(in_processes(_pair, [JobMember, JobMember], workers=2)) == [1, 1]
    assert imported(baits) == ""


def _pair(member):
    return 1
