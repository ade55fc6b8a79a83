"""Commands that are typed in a folder of files named as modules that we import: none of them is imported."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from jaxprof import events as e
from jaxprof.devices.targets import wheels
from jaxprof.rollup.making import in_processes
from jaxprof.session.log import LogWriter, new_header
from jaxprof.session.log.job_folder import JobMember

pytestmark = pytest.mark.process

MODULES = (
    "click", "json", "pip", "jaxprof", "msgspec", "numpy", "jax", "textual", "psutil", "typing", "random", "duckdb",
    "sitecustomize",
)  # fmt: skip


@pytest.fixture
def baits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "baits"
    folder.mkdir()
    for name in MODULES:
        file = folder / f"{name}.py"
        if name in ("jaxprof", "pip"):
            (folder / name).mkdir()
            file = folder / name / "__init__.py"
        file.write_text(f"open({str(folder / 'imported')!r}, 'a').write({name!r} + chr(10))\n")
    (tmp_path / "program.py").write_text("print('ran')\n")
    spec = e.RunSpec(
        workload="selu", variant="numpy", how="numpy", device="cpu:0", parameters={"n": 1000}, target="selu"
    )
    writer = LogWriter(new_header({}), tmp_path / "base.jaxprof")
    writer.append(e.RunPlanned(run="r1", spec=spec))
    writer.close()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("JAXPROF_HOME", str(tmp_path / "home"))
    return folder


def imported(folder: Path) -> str:
    marker = folder / "imported"
    return marker.read_text() if marker.exists() else ""


@pytest.mark.parametrize(
    "words",
    [
        ("sessions",),
        ("mcp",),
        ("explain", "../base.jaxprof"),
        ("query", "../base.jaxprof", "SELECT 1"),
        ("run", "--from", "../base.jaxprof", "--budget", "0.01", "--launches", "1", "--yes"),
        ("run", "selu", "--variant", "numpy", "--budget", "0.01", "--launches", "1"),
        ("hlo", "selu", "--stage", "jaxpr"),
        ("script", "-n", "2", "--out", "out.jaxprof.d", "../program.py"),
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_no_command_imports_from_the_current_folder(baits: Path, words: tuple[str, ...]) -> None:
    command = [os.path.join(os.path.dirname(sys.executable), "jaxprof"), *words]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert imported(baits) == ""


def test_nor_does_a_tool_that_runs_a_function(baits: Path) -> None:
    def request(number: int, method: str, **parameters: object) -> str:
        return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": parameters}) + "\n"

    command = [os.path.join(os.path.dirname(sys.executable), "jaxprof"), "mcp", "--allow-run"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        client = {"name": "x", "version": "1"}
        server.stdin.write(request(1, "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=client))
        server.stdin.write('{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')
        call = {"target": "selu", "variant": "numpy", "budget_seconds": 0.01}
        server.stdin.write(request(2, "tools/call", name="run", arguments=call))
        server.stdin.flush()
        answer = next(line for line in server.stdout if '"id":2' in line)
        server.stdin.close()
    assert '"isError":false' in answer, answer
    assert imported(baits) == ""


def test_nor_do_children_of_a_command(baits: Path) -> None:
    assert wheels._facts(sys.executable, ["jax"])["jax"]  # what `hlo --for` and `target install` ask first
    assert wheels._installer(sys.executable)[:2] == [sys.executable, "-P"]
    assert list(in_processes(_pair, [JobMember, JobMember], workers=2)) == [1, 1]  # type: ignore[comparison-overlap]
    assert imported(baits) == ""


def _pair(member: object) -> object:
    return 1
