"""What somebody sends is looked at, and not started: a folder full of baits, whatever else lies in it.

`SECURITY.md` lists the ways from a word or a path to a process.
"""

import hashlib
import json
import os
import re
import socket
import subprocess
import sys
from dataclasses import replace

import pytest

import program_events
from baits import Baits
from folding import changed, written
from jaxprof import events as e
from jaxprof.analysis.target import resolve
from jaxprof.base.errors import FileRefusedError
from jaxprof.cli.main import command_for
from jaxprof.cli.output import ExitCode
from jaxprof.session import LogWriter
from job_folders import job, loop
from mutated import originals
from report import sessions
from waiting import SLOWER


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
                    command_for([word], in_terminal=in_terminal)
                assert refused.value.hint == f"jaxprof script {word} runs the folder as a program."
            else:
                assert command_for([word], in_terminal=in_terminal) in ("open", "hlo")
    assert not resolve(str(named), code=True).is_code


LOOKED_AT = (
    ".", "open . --format text", "open . --format json", "explain .", "hlo . --kernels", "hlo . --diff last:r1",
    "hlo last:r1 --kernels", "hlo last:jit", "hlo a.jaxprof:r1 --kernels", "compare last:r1 last:r2", "compare . last",
    "gate last:r1 --base last:r2", "export . --format html --out ../page.html", "query . FROM%runs", "sessions",
    "sessions rollup .", "run", "run last:r1",
    "run --describe last:r1", "run .", "run --from .", "run --from process-00000.jaxprof", "config", "agent --help",
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
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60 * SLOWER, check=False
    )
    assert baits.taken == [], done
    assert done.returncode in ((2,) if kind == "program" else (0, ExitCode.NOT_WHOLE)), done


@pytest.mark.process(programs=1)
def test_script_runs_a_folder(baits, sent, call):
    sent("program")
    call("script", "--plain", ".")
    assert baits.taken == ["__main__"]


@pytest.mark.process
async def test_tools_without_permission_run_no_code(baits, sent, kept, monkeypatch, tmp_path):
    """`selu:` is a folder, and a target that begins like a workload."""
    pytest.importorskip("mcp")
    from jaxprof.base.operating_system import OWN_CODE
    from jaxprof.cli import agent_server

    sent("program")
    for name in (agent_server.URLS, OWN_CODE):
        monkeypatch.setenv(name, "")  # which the server sets
    server = agent_server.make_server("", allow_run=False, allow_urls=False)
    for target in ("selu:/x.py:r1", "x:r1", "run.py:r1", "./run.py", "last:jit", "json:dumps", "train:jit"):
        (content,) = (await server.call_tool("hlo", {"target": target})).content
        assert '"error"' in content.text, target
        assert baits.taken == [], target


EVIL = ("-m", "pip", "install", "evil; touch x")


def foreign(path, host="box"):
    """A session whose words are commands, as somebody might send it."""
    slow = program_events.compiled("step", "new_function", compile_seconds=9.0, count=20)
    events = changed(program_events.program(slow, wall=20.0), e.ProgramStarted, argv=list(EVIL))
    return written(path, events, replace(program_events.HEADER, host=host, command=["jaxprof", *EVIL]))


def answers_of(call, path):
    page = path.with_suffix(".html")
    call("export", path, "--format", "html", "--out", page, "--force")
    explained = json.loads(call("explain", path, "--format", "json").out)
    opened = json.loads(call("open", path, "--format", "json").out)
    rows = call("query", path, "SELECT verify, from_file FROM findings", "--format", "json").data["rows"]
    return explained, opened, rows, call("explain", path).out, page.read_text()


@pytest.mark.process
@pytest.mark.parametrize("where", ["sent", "kept", "as one of ours"])
def test_what_a_file_says_is_marked_in_every_form(call, tmp_path, state_home, where):
    """Wherever it lies, and whatever host it states. A session of ours that was changed is a file like any other."""
    path = (state_home / "sessions" if where != "sent" else tmp_path) / "x.jaxprof"
    if where == "as one of ours":
        writer = LogWriter(program_events.HEADER, path, own=True)
        writer.close()
        path.unlink()
    foreign(path, socket.gethostname())
    explained, opened, rows, text, page = answers_of(call, path)
    findings, unknown = explained["data"]["findings"], explained["data"]["unknown"]
    commands = [row for row in (*findings, *unknown) if row.get("verify") or row.get("command")]
    assert any("evil" in (row.get("verify") or row["command"]) for row in commands)
    assert all(row["from_file"] is True for row in commands)
    assert all("from_file" not in row for row in (*findings, *unknown) if row not in commands)
    assert explained["data"]["from_file"] is opened["data"]["session"]["from_file"] is True
    assert not [line for answer in (explained, opened) for line in answer["next"] if "evil" in line]
    assert rows
    assert all(row["from_file"] is True for row in rows)
    of_file = re.findall(r"(.{0,40})jaxprof script", text)
    assert of_file
    assert all("from the file: " in before for before in of_file)
    assert all(
        before.endswith("from the file: <code>") for before in re.findall(r"(.{0,40})jaxprof script --plain", page)
    )
    assert "a file that this machine did not record" in page


@pytest.mark.process
def test_what_this_machine_recorded_is_its_own_wherever_it_lies(call, tmp_path, state_home):
    """The near case: by its whole content, not by its name or its folder."""
    writer = LogWriter(program_events.HEADER, state_home / "sessions" / "mine.jaxprof", own=True)
    slow = program_events.compiled("step", "new_function", compile_seconds=9.0, count=20)
    for event in program_events.program(slow, wall=20.0):
        writer.append(event)
    writer.close()
    path = writer.path.rename(tmp_path / "moved.jaxprof")
    assert (state_home / "recorded").stat().st_mode & 0o777 == 0o600
    explained, opened, rows, text, page = answers_of(call, path)
    assert explained["data"]["from_file"] is opened["data"]["session"]["from_file"] is False
    assert not [row for row in explained["data"]["findings"] if "from_file" in row]
    assert all(row["from_file"] is False for row in rows)
    assert not [line for line in explained["next"] if "train.py" in line], "even so: what is next only looks"
    assert "from the file" not in text + page
    path.write_text(path.read_text().replace("--epochs", "--steps"))
    assert json.loads(call("explain", path, "--format", "json").out)["data"]["from_file"] is True


@pytest.mark.process
def test_a_file_has_no_place_of_ours_read(call, tmp_path):
    """No line of a file that a session, HLO or a page names, without its digest; and none of what was redacted."""
    secret = tmp_path / "settings.py"
    secret.write_text('\n\nSECRET_KEY = "hunter2-hunter2"\n' * 40)
    os.utime(secret, (1, 1))
    place = program_events.at(3)
    named = replace(place, file=str(secret))
    row = program_events.compiled("step", "new_function", compile_seconds=9.0, count=20)
    events = [*program_events.program(replace(row, called_from=named, defined_at=named), wall=20.0)]
    for digest in (None, "0" * 64, hashlib.sha256(secret.read_bytes()).hexdigest()):
        read = [] if digest is None else [e.SourcesRead.of({str(secret): digest}, run=program_events.RUN)]
        path = tmp_path / "s.jaxprof"
        path.unlink(missing_ok=True)
        written(path, [*events[:-2], *read, *events[-2:]], program_events.HEADER)
        said = "".join(map(str, answers_of(call, path)))
        assert str(secret) in said, "the place is named"
        assert "hunter2" not in said
        assert ("SECRET_KEY" in said) is (digest is not None and digest[:8] != "0" * 8)
