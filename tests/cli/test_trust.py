"""What somebody sends is looked at, and not started: a folder full of baits, whatever else lies in it.

`SECURITY.md` lists the ways from a word or a path to a process.
"""

import os
import subprocess
import sys

import pytest

from baits import Baits
from jaxprof.cli.main import COMMANDS
from jaxprof.cli.output import ExitCode
from jaxprof.cli.target import command_for, is_compiled_now
from jaxprof.errors import FileRefusedError
from job_folders import job, loop
from mutated import originals
from report import sessions


@pytest.fixture
def baits(tmp_path):
    return Baits(tmp_path / "marks")


def job_folder(path):
    return job(path / "run.jaxprof.d", loop(), loop())


def dump(path):
    path.mkdir()
    (path / "module_0001.jit_f.cpu_after_optimizations.txt").write_text(sessions.HLO)
    return path


def profile(path):
    inside = path / "plugins" / "profile" / "2026_11_28"
    inside.mkdir(parents=True)
    (inside / "host.xplane.pb").write_bytes(originals("profile")[0])
    return path


def program(path):
    path.mkdir()
    return path


FOLDERS = {"job": job_folder, "dump": dump, "profile": profile, "program": program}


@pytest.mark.parametrize("kind", FOLDERS)
def test_a_folder_alone_is_never_run(tmp_path, baits, kind, monkeypatch):
    """Neither under its own name, nor under one that ends as that of a program does; `script` alone runs it."""
    folder = baits.put(FOLDERS[kind](tmp_path / "sent"))
    monkeypatch.chdir(folder)
    named = folder.rename(folder.with_name("sent.py"))
    for word in (str(named), f"{named}/", "."):
        for in_terminal in (True, False):
            if kind == "program":
                with pytest.raises(FileRefusedError) as refused:
                    command_for([word], COMMANDS, in_terminal=in_terminal)
                assert refused.value.hint == f"jaxprof script {word} runs the folder as a program."
            else:
                assert command_for([word], COMMANDS, in_terminal=in_terminal) in ("open", "hlo")
    assert not is_compiled_now(str(named))


LOOKED_AT = (
    ".", "open . --format text", "open . --format json", "explain .", "hlo . --kernels", "hlo . --diff last:r1",
    "hlo last:r1 --kernels", "hlo last:jit", "hlo a.jaxprof:r1 --kernels", "compare last:r1 last:r2", "compare . last",
    "gate last:r1 --base last:r2", "export . --out ../page.html", "query . FROM%runs", "sessions", "sessions rollup .",
    "run", "run --from .", "run --from process-00000.jaxprof", "config", "agent --help",
)  # fmt: skip


@pytest.fixture
def sent(tmp_path, baits, monkeypatch):
    """Fills the folder that was sent, and goes into it, as somebody would who has unpacked it."""

    def enter(kind):
        monkeypatch.chdir(baits.put(FOLDERS[kind](tmp_path / "sent")))

    return enter


@pytest.mark.process
@pytest.mark.parametrize("kind", FOLDERS)
def test_looking_at_a_folder_starts_and_imports_nothing_of_it(baits, sent, kind, call, kept):
    sent(kind)
    for line in LOOKED_AT:
        said = call(*(word.replace("%", " ") for word in line.split()))
        assert baits.taken == [], (line, said)


@pytest.mark.process
@pytest.mark.parametrize("kind", FOLDERS)
def test_a_process_in_a_folder_imports_nothing_of_it(baits, sent, kind):
    sent(kind)
    command = [os.path.join(os.path.dirname(sys.executable), "jaxprof"), "."]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
    assert baits.taken == [], done
    assert done.returncode in ((2,) if kind == "program" else (0, ExitCode.NOT_WHOLE)), done


@pytest.mark.process(programs=1)
def test_script_runs_a_folder(baits, sent, call):
    """The near case: the baits work."""
    sent("program")
    call("script", "--plain", ".")
    assert baits.taken == ["__main__"]


@pytest.mark.process
async def test_tools_without_leave_run_no_code_whatever_a_target_looks_like(baits, sent, kept, monkeypatch, tmp_path):
    """`selu:` is a folder, and a target that begins like a workload."""
    pytest.importorskip("mcp")
    from jaxprof.cli import agent_server
    from jaxprof.operating_system import OWN_CODE

    sent("program")
    for name in (agent_server.URLS, OWN_CODE):
        monkeypatch.setenv(name, "")  # which the server sets
    server = agent_server.make_server("", allow_run=False, allow_urls=False)
    for target in ("selu:/x.py:r1", "x:r1", "run.py:r1", "./run.py", "last:jit", "json:dumps", "train:jit"):
        (content,) = (await server.call_tool("hlo", {"target": target})).content
        assert '"error"' in content.text, target
        assert baits.taken == [], target
