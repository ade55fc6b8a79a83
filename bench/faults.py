"""What faults do to jaxprof: files with flipped bytes, lost lines and wrong values; and processes that are killed.

    python bench/faults.py [--inputs 500] [--profiles 60] [--from 0] [--keep FOLDER] [--smoke]
    python bench/faults.py --surfaces [--inputs 500] [--smoke]
    python bench/faults.py --kills [--phase compile]...
    python bench/faults.py --hangs [--kind stop]... [--signal SIGTERM]... [--smoke]
    python bench/faults.py --harms [--smoke]

Each input goes through its reader and through every command that takes such a file; the same number is the same input
(`tests/mutated.py` makes them, and `tests/cli/test_mutated.py` takes a sample). A fault is a traceback, more than 20 s,
or a control character in the output; an error with words is none. Prints a row for each way with the inputs, how many
ended with another exit code than 0, the slowest and the faults, and exits 1 if there is a fault. `--keep` writes each
input with a fault to a file.

With `--surfaces`, what else comes from outside: settings and limits, SQL, folders of jobs with pipes and endless links,
folders full of programs and modules that leave a mark, sessions and HLO that name files of this machine, sessions that
name commands to be started, web servers that lie, calls of tools of `mcp`, projects whose settings take long to read,
values with secrets, files that are none of jaxprof's, and names that begin like an option. There a process that is not
jaxprof's own is a fault, too, and so are a mark, a line of a file that the session does not know, and a command of a
file without `from_file`. `--smoke` takes one input.

With `--kills`, no files: the client or the engine of a compiled run is killed at the begin of every phase, by SIGKILL
and SIGTERM, the client also by SIGINT, while native code of the engine sleeps with the interpreter's lock or without
it. As in `tests/cli/test_kills.py`, all that was reported has to be in the log, the session has to say what happened,
and no process and no folder may be left. Prints a row for each kind of kill, with the slowest: from the start of
jaxprof to when nothing is left.

With `--hangs`, `jaxprof script` of `programs/hanging.py` gets a signal while that stands still, alone and as a job of
three: within 20 s nothing may be left, neither a process nor a folder, all sessions have to be closed, and nobody may
have failed who had not failed before. With `--harms`, what records has its session truncated, overwritten, replaced or
deleted meanwhile: it has to be whole at the end. Both print a row for each kind, with the slowest.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gzip
import hashlib
import json
import os
import random
import secrets
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

import program_events  # noqa: E402
from baits import Baits  # noqa: E402
from cli.calling import environment  # noqa: E402
from cli.test_kills import JIT_PHASES, Measuring, check, every_case  # noqa: E402
from folding import changed  # noqa: E402
from jaxprof.base import reaper  # noqa: E402
from jaxprof.base.operating_system import OWN_CODE  # noqa: E402
from jaxprof.cli.agent_server import make_server  # noqa: E402
from jaxprof.events import (  # noqa: E402
    Compiled,
    ProgramStarted,
    RunPlanned,
    RunSpec,
    SignatureLeaf,
    SourcesRead,
    WorkerStarted,
)
from jaxprof.recorder.compiles.arguments import static_text  # noqa: E402
from jaxprof.remote import URLS  # noqa: E402
from jaxprof.session import LogWriter, Session, load, new_header  # noqa: E402
from job_folders import job, loop  # noqa: E402
from mutated import (  # noqa: E402
    COMMANDS,
    NAMES,
    READERS,
    Fault,
    attempt,
    called,
    fault_of_reader,
    mutated,
    originals,
    outcome,
    spoken,
)  # fmt: skip
from report import sessions  # noqa: E402
from waiting import processes_with  # noqa: E402

Way = Callable[[bytes], tuple[int, Fault | None]]


def ways(kind: str) -> dict[str, Way]:
    """How a file of this kind is read: each way's name, and what gives the exit code and the fault of an input."""
    found: dict[str, Way] = {"the reader": lambda raw: (0, fault_of_reader(kind, raw))}
    for words in COMMANDS[kind]:
        found[" ".join(words)] = lambda raw, words=words: outcome(kind, raw, words)  # type: ignore[misc]
    return found


@dataclass
class Kills:
    """What came of the kills of one kind."""

    count: int = 0
    slowest: float = 0.0
    faults: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int


def command(home: Path, *words: object) -> Ended:
    """`jaxprof WORDS` in this process."""
    return Ended(called([str(word) for word in words], home)[0])


def kills(phases: Sequence[str]) -> int:
    """Kills at these phases, prints the table, and returns 1 if there was a fault."""
    table: dict[str, Kills] = {}
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # in the background of a script; children would inherit it
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for case in every_case():
        if case.phase not in phases:
            continue
        kind = f"{case.victim}, {case.number.name}, {'lock held' if case.how == 'lock' else 'lock free'}"
        row = table.setdefault(kind, Kills())
        with tempfile.TemporaryDirectory() as folder:
            home = Path(folder)
            began = time.perf_counter()
            work = Measuring(home, "jit", case.phase, case.how)
            try:
                check(case, work, partial(command, home))
            except Exception as error:  # noqa: BLE001 - a failed claim, or whatever else, is the fault looked for
                where = traceback.extract_tb(error.__traceback__)[-1]
                row.faults.append(f"{case}: {type(error).__name__}: {str(error)[:200]} at {where.lineno}: {where.line}")
            finally:
                work.close()
            row.count += 1
            row.slowest = max(row.slowest, time.perf_counter() - began)
        print(f"{case}: {'a fault' if row.faults and row.faults[-1].startswith(f'{case}:') else 'ok'}", file=sys.stderr)
    print(f"{'killed':32} {'kills':>5} {'slowest':>8}  faults")
    for kind, row in table.items():
        print(f"{kind:32} {row.count:5} {row.slowest:6.1f} s  {len(row.faults)}")
        for fault in row.faults:
            print(f"  {fault}")
    return int(any(row.faults for row in table.values()))


HANGING = ROOT / "bench" / "programs" / "hanging.py"
HANGS = (
    "stop",
    "sleep",
    "lock",
    "fifo",
    "queue",
    "skip",
    "order",
    "compile",
    "collect",
    "locked",
    "ignore",
    "swallow",
    "fail",
    "clean_up",
)
ALONE = tuple(kind for kind in HANGS if kind not in ("skip", "order"))
MOST_SECONDS = 20.0
SELF_RECORDED = """
import sys, time
from pathlib import Path
import jaxprof
with jaxprof.record("s.jaxprof"):
    Path("ready-0").touch()
    while not Path("harmed").exists():
        time.sleep(0.05)
    time.sleep(2)
"""
RECORDED = """
import os, time
from pathlib import Path
import jax, jax.numpy as jnp
jax.jit(jnp.sin)(1.0).block_until_ready()
Path(f"ready-{os.environ.get('RANK', 0)}").touch()
while not Path("harmed").exists():
    time.sleep(0.05)
time.sleep(2)
"""


def rotate(path: Path) -> None:
    """As `logrotate` with copytruncate."""
    path.with_suffix(".1").write_bytes(path.read_bytes())
    os.truncate(path, 0)


def restore(path: Path) -> None:
    """As a tool that syncs an older state into the file."""
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def overwrite(path: Path) -> None:
    """Writes into the middle; the size stays."""
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2)
        file.write(b"not ours")


def replace_file(path: Path) -> None:
    """As an editor that saves what it has read before."""
    other = path.with_suffix(".new")
    other.write_bytes(path.read_bytes())
    other.replace(path)


HARMS: dict[str, Callable[[Path], object]] = {
    "truncated": lambda path: os.truncate(path, 0), "rotated": rotate, "an older state": restore,
    "overwritten": overwrite, "replaced": replace_file, "deleted": Path.unlink,
    "cut short": lambda path: os.truncate(path, path.stat().st_size - 5),
}  # fmt: skip
WRITERS = {
    "script": (["-m", "jaxprof", "script", "--out", "s.jaxprof", "p.py"], RECORDED, 1),
    "script -n 2": (["-m", "jaxprof", "script", "-n", "2", "--out", "run", "p.py"], RECORDED, 2),
    "record()": (["p.py"], SELF_RECORDED, 1),
    "run": (["-m", "jaxprof", "run", "selu", "--budget", "3", "--out", "s.jaxprof"], "", 0),
}  # fmt: skip


class Beside:
    """A process of ours in a group of its own, with a mark in its environment."""

    def __init__(self, home: Path, words: Sequence[str]) -> None:
        self.home, self.mark = home, secrets.token_hex(8)
        (home / "temporary").mkdir()
        variables = {"JAX_PLATFORMS": "cpu", "JAXPROF_MARK": self.mark, "TMPDIR": str(home / "temporary")}
        with (home / "output").open("wb") as out:
            self.process = subprocess.Popen(
                [sys.executable, *words], cwd=home, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                env=environment() | variables, start_new_session=True,
            )  # fmt: skip

    def until_there(self, count: int, name: str = "ready-*") -> None:
        """Wait for so many of these files, or fail once the process has ended."""
        due = time.monotonic() + 120
        while len(list(self.home.glob(name))) < count:
            assert self.process.poll() is None, self.output()
            assert time.monotonic() < due, self.output()
            time.sleep(0.05)

    def output(self) -> str:
        """What it last said."""
        return (self.home / "output").read_text(errors="replace")[-300:]

    def close(self) -> None:
        """End it, with all of its group."""
        if self.process.poll() is None:
            with contextlib.suppress(OSError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def sessions(self) -> list[Session]:
        """Those that it has written."""
        return [load(path, Session) for path in sorted(self.home.rglob("*.jaxprof")) if path.is_file()]


def hang(home: Path, kind: str, processes: int, number: signal.Signals) -> float:
    """One that hangs in this way gets that signal. Return the seconds to its end; raises AssertionError."""
    job = ["-n", str(processes)] if processes else ["--out", "s.jaxprof"]
    beside = Beside(home, ["-m", "jaxprof", "script", *job, str(HANGING), kind])
    try:
        beside.until_there(processes or 1)
        time.sleep(2)  # until it stands still
        began = time.monotonic()
        os.kill(beside.process.pid, number)
        code = beside.process.wait(60)
        seconds = time.monotonic() - began
        assert seconds <= MOST_SECONDS, f"{seconds:.1f} s"
        assert code != 0, "exit code 0"
        assert not (left := processes_with(f"JAXPROF_MARK={beside.mark}")), left
        assert not (left := [each.name for each in (home / "temporary").iterdir()]), left
        sessions = beside.sessions()
        assert len(sessions) == max(processes, 1), f"{len(sessions)} sessions"
        assert all(session.complete for session in sessions), "a session has no end"
        failed = [session for session in sessions for run in session.programs if run.status not in ("ok", "cancelled")]
        assert not failed or kind in ("fail", "order"), f"{len(failed)} failed"
        assert kind != "clean_up" or number != signal.SIGINT or (home / "cleaned").exists(), "no time to clean up"
        return seconds
    finally:
        beside.close()


def harm(home: Path, writer: str, kind: str) -> float:
    """The session of this writer is harmed in this way. Return the seconds of all; raises AssertionError."""
    began = time.monotonic()
    words, program, processes = WRITERS[writer]
    (home / "p.py").write_text(program)
    beside = Beside(home, words)
    try:
        beside.until_there(processes)
        beside.until_there(max(processes, 1), "**/*.jaxprof")
        paths = sorted(home.rglob("*.jaxprof"))
        time.sleep(1)
        for path in paths:
            HARMS[kind](path)
        (home / "harmed").touch()
        code = beside.process.wait(60)
        whole = [session for session in beside.sessions() if session.complete and not session.notices]
        assert len(whole) >= len(paths), f"{len(whole)} of {len(paths)} sessions are whole, exit code {code}"
        assert all(run.status == "ok" for session in whole for run in session.runs.values()), "a run is not whole"
        assert code == 0 or kind == "replaced", f"exit code {code}: {beside.output()}"
        return time.monotonic() - began
    finally:
        beside.close()


def tried(title: str, cases: Sequence[tuple[str, Callable[[Path], float]]]) -> int:
    """Try these, each in a folder of its own; print the table, and return 1 if there was a fault."""
    table: dict[str, Kills] = {}
    for name, attempt_in in cases:
        row = table.setdefault(name, Kills())
        row.count += 1
        with tempfile.TemporaryDirectory() as folder:
            try:
                row.slowest = max(row.slowest, attempt_in(Path(folder)))
            except Exception as error:  # noqa: BLE001 - a failed claim, or whatever else, is the fault looked for
                row.faults.append(f"{type(error).__name__}: {str(error)[:300]}")
        print(f"{name}: {row.faults[-1] if row.faults else 'ok'}", file=sys.stderr)
    print(f"{title:32} {'tries':>5} {'slowest':>8}  faults")
    for name, row in table.items():
        print(f"{name:32} {row.count:5} {row.slowest:6.1f} s  {len(row.faults)}")
        for fault in row.faults:
            print(f"  {fault}")
    return int(any(row.faults for row in table.values()))


STARTED: list[str] = []
"""Commands that this process started and that are not jaxprof's own."""


def watch(event: str, arguments: tuple[object, ...]) -> None:
    """As an audit hook: note what is started."""
    if event in ("os.system", "os.exec", "os.posix_spawn", "os.startfile"):
        STARTED.append(repr(arguments)[:200])
    elif event == "subprocess.Popen":
        words = [os.fsdecode(word) for word in arguments[1]]  # type: ignore[attr-defined]
        own = words[:2] == [sys.executable, "-P"] and "jaxprof" in words[3]
        if not own and words[:3] != ["/bin/sh", "-c", reaper._SCRIPT]:
            STARTED.append(" ".join(words)[:200])


WORDS = (
    "[",
    "]",
    "{",
    "}",
    "=",
    ".",
    '"',
    "'",
    "\n",
    ",",
    "\0",
    "\x1b[2J",
    "9" * 20,
    "1e999",
    "-1",
    "null",
    "\udcff",
    "∞",
)
SQL = (
    "SELECT * FROM runs", "SELECT lpad('x', 2000000000, 'y')", "SELECT hex(repeat('x', 999999999))",
    "FROM kernels, runs", "COPY runs TO '/tmp/x'", "FROM read_csv('/etc/passwd')", "INSTALL httpfs",
    "SELECT sum(a.range * b.range) FROM range(9000000000) a, range(9000) b", "SELECT getenv('HOME')",
    "WITH RECURSIVE t AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM t) FROM t",
    "SELECT regexp_matches(repeat('a', 9999), '(a*)*b')", "FROM query('SELECT 1')", "PRAGMA database_list",
    "FROM test_all_types()", "SELECT [COLUMNS(*)] FROM test_all_types()", "SELECT repeat('x', 30000000)",
    "SELECT {'a': ['nan'::float]}, [date '5000000-01-01']", "SELECT interval 1 month",
)  # fmt: skip
WEB = ("endless", "huge", "short", "redirect", "nonsense", "gzip", "drip-header", "drip-body")


def shuffled(text: str, chance: random.Random) -> str:
    """The text with some pieces taken out, doubled, or of another kind."""
    for _ in range(chance.randrange(5)):
        at, size = chance.randrange(len(text) + 1), chance.randrange(1, 8)
        text = (
            text[:at]
            + chance.choice(WORDS) * chance.choice((0, 1, 1, 3, 5000))
            + text[at + size * chance.randrange(2) :]
        )
    return text


def in_environment(words: Sequence[str], home: Path, **variables: str) -> tuple[int, str]:
    """`jaxprof WORDS` with variables of the environment that cannot hold a null byte."""
    given = {name: value.replace("\0", "") for name, value in variables.items()}
    before = {name: os.environ.get(name) for name in given}
    os.environ.update(given)
    try:
        return called(list(words), home)
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def try_settings(home: Path, chance: random.Random) -> tuple[int, str]:
    """A file of settings, limits, and variables."""
    text = 'theme = "dark"\nbudget = 2\nmargin = "2%"\ndevices = ["cpu:0"]\n[keys]\n"results.compare" = "ctrl+k"\n'
    path = home / "config.toml"
    path.write_bytes(shuffled(text, chance).encode("utf-8", "surrogateescape"))
    limits = shuffled("file=1GiB,depth=100,query_time=3,planes=7", chance) if chance.random() < 0.5 else ""
    return in_environment(["config"], home, JAXPROF_CONFIG=str(path), JAXPROF_LIMITS=limits)


def try_sql(home: Path, chance: random.Random) -> tuple[int, str]:
    """A query."""
    path = home / "a.jaxprof"
    path.write_bytes(originals("session")[0])
    sql = chance.choice(SQL) if chance.random() < 0.5 else shuffled(chance.choice(SQL), chance)
    return in_environment(
        ["query", "--format", chance.choice(("text", "json", "csv")), str(path), sql.replace("\0", "")],
        home,
        JAXPROF_LIMITS="query_time=3,query_memory=64MiB",
    )


def try_job(home: Path, chance: random.Random) -> tuple[int, str]:
    """The folder of a job, in which some files are others."""
    folder = job(home / "run.jaxprof.d", loop(), loop())
    called(["sessions", "rollup", "--workers", "1", str(folder)], home)
    for path in [
        *folder.rglob("*"),
        folder / "process-00007.jaxprof",
        folder / "rollup" / "processes" / "\udcff.parquet",
    ]:
        what = chance.randrange(12)
        if what < 6 and path.is_dir():
            continue
        if what < 6:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)
        if what == 0:
            os.mkfifo(path)
        elif what == 1:
            path.symlink_to(path.name)
        elif what == 2:
            path.mkdir()
        elif what == 3:
            path.symlink_to("/dev/zero")
        elif what == 4:
            path.write_bytes(chance.randbytes(300))
        elif what == 5:
            path.write_bytes(mutated("session", chance.randrange(10_000)))
    command = chance.choice(
        (
            ["explain"],
            ["open", "--format", "text"],
            ["sessions", "rollup", "--workers", "1"],
            ["open", "--timeline"],
            ["sessions", "list"],
            ["compare", str(folder)],
        )
    )
    return called([*command, *([] if command[-1] == "list" else [str(folder)])], home)


def try_folder(home: Path, chance: random.Random) -> tuple[int, str]:
    """A folder in which whatever could be started or imported leaves a mark; somebody looks at it, or works in it."""
    baits = Baits(home / "marks")
    name = chance.choice(("sent", "sent.py", "run.jaxprof.d", "a.jaxprof", "selu", "last", "x y;z"))
    folder = home / name
    kind = chance.choice(("job", "dump", "profile", "session", "nothing"))
    if kind == "job":
        job(folder, loop(), loop())
    folder.mkdir(exist_ok=True)
    if kind == "dump":
        (folder / "module_0001.jit_f.cpu_after_optimizations.txt").write_bytes(originals("hlo")[1])
    elif kind == "profile":
        (folder / "host.xplane.pb").write_bytes(originals("profile")[0])
    elif kind == "session":
        (folder / chance.choice(("a.jaxprof", "last", "process-00000.jaxprof"))).write_bytes(originals("session")[0])
    baits.put(folder)
    inside = chance.random() < 0.5
    words = (
        chance.choice((".", str(folder), "./", "last", "last:r1", "a.jaxprof:r1", "selu:jit", f"{folder}:r1", "*"))
        if inside
        else chance.choice((str(folder), f"{folder}/", f"{folder}:r1", f"./{name}", name))
    )
    command = chance.choice(
        ([], ["open"], ["explain"], ["hlo"], ["hlo", "--diff", words], ["export"], ["gate"], ["run", "--from"],
         ["compare", "--no-run", words], ["query", "--schema"], ["sessions", "rollup"], ["sessions", "rename", words])
    )  # fmt: skip
    former = Path.cwd()
    os.chdir(folder if inside else home)
    try:
        code, said = called([*command, words], home)
    finally:
        os.chdir(former)
    return code, said + "".join(f"Traceback (most recent call last): {mark} ran" for mark in baits.taken)


SECRET = 'token = "hunter2-hunter2"; line = 4711\n'


def try_source(home: Path, chance: random.Random) -> tuple[int, str]:
    """A session, or HLO, that names a file of this machine, with its digest or without."""
    file = home / chance.choice(("settings.py", "settings", ".netrc", "a b.py"))
    file.write_text(SECRET * 40)
    os.utime(file, (1, 1))
    content = chance.choice((file.read_bytes(), b"x"))
    digest = chance.choice((None, "", hashlib.sha256(content).hexdigest(), "x" * 9999))
    named = chance.choice((str(file), f"{home}/./{file.name}", f"/proc/self/cwd/{file.name}", f"//x{file}"))
    text = sessions.TRANSPOSES.replace("/home/me/turn.py", named)
    place = program_events.at(3)
    row = program_events.compiled("step", "new_function", compile_seconds=9.0, count=20)
    named_at = replace(place, file=named)
    events = program_events.program(replace(row, called_from=named_at, defined_at=named_at), wall=20.0)
    if digest is not None:
        events.insert(-2, SourcesRead.of({named: digest}, run=program_events.RUN))
    path = home / "a.jaxprof"
    writer = LogWriter(replace(program_events.HEADER, host=socket.gethostname()), path)
    for event in events:
        writer.append(event)
    writer.close()
    (home / "m.hlo").write_text(text)
    words = chance.choice(
        (["explain", str(path)], ["explain", str(path), "--format", "json"], ["export", "--format", "html", str(path)],
         ["open", str(path), "--findings"], ["open", str(path), "--format", "json"],
         ["hlo", str(home / "m.hlo"), "--findings"], ["hlo", str(home / "m.hlo"), "--kernels"])
    )  # fmt: skip
    code, said = called(words, home)
    known = file.suffix == ".py" and digest == hashlib.sha256(file.read_bytes()).hexdigest()
    wrong = "hunter2" in said or ("4711" in said and not known)
    return code, said + ("Traceback (most recent call last): a line of a file was read" if wrong else "")


def try_words(home: Path, chance: random.Random) -> tuple[int, str]:
    """A session whose words are commands, as one of this machine; they are marked, and never what to do next."""
    evil = chance.choice((("-m", "pip", "install", "evil"), ("evil.py", "; evil"), ("$(evil)",), ("evil\n.py", "&&")))
    row = program_events.compiled("step", "new_function", compile_seconds=9.0, count=20)
    events = changed(program_events.program(row, wall=20.0), ProgramStarted, argv=list(evil))
    folder = chance.choice((home, home / "sessions", home / "sessions" / "run.jaxprof.d"))
    path = folder / "process-00000.jaxprof"
    header = replace(program_events.HEADER, host=socket.gethostname(), command=["jaxprof", *evil])
    writer = LogWriter(header, path)
    for event in events:
        writer.append(event)
    writer.close()
    if chance.random() < 0.5:
        (home / "recorded").write_text(f"{header.session}\n{'0' * 64}\n")
    words = chance.choice((["explain"], ["open"], ["open", "--findings"], ["compare", str(path)]))
    code, said = called([*words, chance.choice((str(path), str(folder))), "--format", "json"], home)
    with contextlib.suppress(ValueError):
        answer = json.loads(said.splitlines()[0])
        rows = [*answer.get("data", {}).get("findings", ()), *answer.get("data", {}).get("unknown", ())]
        bare = [row for row in rows if "evil" in str(row.get("verify") or row.get("command")) and not row["from_file"]]
        if bare or "evil" in str(answer.get("next")):
            said += "Traceback (most recent call last): a command of the file is not marked"
    return code, said


def try_command(home: Path, chance: random.Random) -> tuple[int, str]:
    """A session that names what is to be started, without anybody who says yes."""
    bait = ["-c", f"open({str(home / 'bait')!r}, 'w')"]
    spec = RunSpec(
        workload="x", variant="program", how="program", device="cpu:0",
        target=chance.choice(("/bin/sh", "-m", "-c", str(home / "p.py"))),
        argv=chance.choice((bait, ["/bin/sh", *bait], ["-m", "pip", "install", "evil"], [str(home / "p.py")])),
    )  # fmt: skip
    (home / "p.py").write_text(f"open({str(home / 'bait')!r}, 'w')")
    path = home / "a.jaxprof"
    writer = LogWriter(replace(new_header({}), host=chance.choice(("evil", socket.gethostname()))), path)
    for event in (
        RunPlanned(run="r1", spec=spec),
        WorkerStarted(run="r1", pid=1, python=chance.choice(("/bin/sh", sys.executable))),
    ):
        writer.append(event)
    writer.close()
    words = chance.choice((["run", "--from"], ["script", "--from"], ["open", "--format", "text"], ["explain"]))
    code, said = called([*words, str(path)], home)
    return code, said + ("Traceback (most recent call last): the bait ran" if (home / "bait").exists() else "")


def try_web(home: Path, chance: random.Random) -> tuple[int, str]:
    """A web server that lies."""

    class Liar(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            kind = self.path.split("/")[1]
            with contextlib.suppress(OSError):
                if kind == "nonsense":
                    self.wfile.write(chance.randbytes(500))
                    return
                if kind == "drip-header" or (kind == "drip-body" and self.command == "GET"):
                    self.wfile.write(b"HTTP/1.1 200 OK\r\n" if kind == "drip-header" else b"HTTP/1.1 200 OK\r\n\r\n")
                    for _ in range(1000):
                        self.wfile.write(b"X: y\r\n")
                        time.sleep(0.05)
                self.send_response(302 if kind == "redirect" else 200)
                length = {"huge": 10**15, "short": 10**6}.get(kind)
                for name, value in (
                    ("Location", "/redirect/x"),
                    ("Content-Length", length),
                    ("Content-Encoding", "gzip"),
                ):
                    if value and (name, kind) not in (("Content-Encoding", "endless"), ("Location", "endless")):
                        self.send_header(name, str(value))
                self.end_headers()
                for _ in range(0 if self.command == "HEAD" or kind == "redirect" else 1 if kind == "short" else 1000):
                    self.wfile.write(b"<a href='process-00000.jaxprof'>" * 10_000)

        do_HEAD = do_GET  # noqa: N815

        def log_message(self, *words: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Liar) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        name = chance.choice(("a.jaxprof", "run.jaxprof.d", "x.hlo"))
        url = f"http://127.0.0.1:{server.server_address[1]}/{chance.choice(WEB)}/{name}"
        ended = in_environment(["open", "--format", "text", url], home, JAXPROF_LIMITS="fetched=2MiB,fetch_time=4")
        server.shutdown()
    return ended[0], ended[1] + "".join(
        f"Traceback (most recent call last): {path}" for path in home.rglob("*.partial")
    )


def try_mcp(home: Path, chance: random.Random) -> tuple[int, str]:
    """A call of a tool."""
    (home / "p.py").write_text(f"open({str(home / 'bait')!r}, 'w')")
    former = {name: os.environ.get(name, "") for name in (URLS, OWN_CODE)}  # which the server sets
    server = make_server("", allow_run=False, allow_urls=False)
    values = (
        "selu:/x.py:f",
        "last",
        f"{home}/p.py:f",
        "os:system",
        "http://127.0.0.1:9/x",
        "--help",
        "-c",
        "",
        "\0",
        "x" * 9999,
        7,
        None,
        [],
        ["a"],
        {"a": 1},
    )
    tools = {tool.name: list(tool.input_schema["properties"]) for tool in asyncio.run(server.list_tools())}
    name = chance.choice([*tools, "run", "nothing"])
    arguments = {key: chance.choice(values) for key in (*tools.get(name, ()), "file") if chance.random() < 0.5}
    before = os.environ.get("JAXPROF_HOME")
    os.environ["JAXPROF_HOME"] = str(home)
    try:
        answer = asyncio.run(server.call_tool(name, arguments))
    finally:
        os.environ.pop("JAXPROF_HOME") if before is None else os.environ.update(JAXPROF_HOME=before)
        os.environ.update(former)
    bait = "Traceback (most recent call last): the bait ran" if (home / "bait").exists() else ""
    return int(answer.is_error), "".join(content.text for content in answer.content) + bait


FAULT = "Traceback (most recent call last): "
"""What `spoken` takes for a fault."""


def try_project(home: Path, chance: random.Random) -> tuple[int, str]:
    """A project's settings, whose keys are long, deep, or many."""
    parts = ("a.", "'a'.", '"a" . ', "[a.", "{a = ", "[[a]]\n", "[", "'", '"', "\\", "#", "a = 1\n", "aaaa")
    head = chance.choice(("", "# jaxprof\n", "[tool.jaxprof]\n", "tool.jaxprof."))
    text = head + chance.choice(parts) * chance.choice((10, 15_000, 60_000))
    (home / "pyproject.toml").write_text(text + chance.choice(("", "a = 1\n", "a]\n", "a]]\n")))
    began = time.perf_counter()
    with contextlib.chdir(home):
        code, words = called(["config"], home)
    return code, f"{words}{FAULT}it took too long" if time.perf_counter() - began > 5.0 else words


SECRET = "hunter2secret"
NAMED = ("password", "api_key", "client_secret", "pin", "passwd", "HF_TOKEN", "authorization")
FORMS: tuple[Callable[[str], object], ...] = (
    str, str.encode, lambda text: [text], lambda text: (text, 1), lambda text: {"inner": text},
    lambda text: {1: (text,)},
)  # fmt: skip
SHAPED = (
    "https://bob:{}@host/x", "postgres://bob:{}@host/" + "d" * 200, "A=1 PGPASSWORD={}", "--password {}", "hf_{}",
    "Authorization: Bearer {}", '{{"token": "{}"}}', "mysql -u root -p{}", "curl -u bob:{} https://host",
)  # fmt: skip


def try_secrets(home: Path, chance: random.Random) -> tuple[int, str]:
    """Values that a program is compiled for, and arguments of a run, with a secret in them."""
    name, value = "x", chance.choice(FORMS)(chance.choice(SHAPED).format(SECRET))
    if chance.random() < 0.5:
        name, value = chance.choice(NAMED), chance.choice(FORMS)(SECRET)
        if chance.random() < 0.5:
            name, value = "x", chance.choice(({name: value}, ("x", (name, value)), [{"a": {name: value}}]))
    path = home / "a.jaxprof"
    writer = LogWriter(new_header(), path)
    leaf = SignatureLeaf(name=name, type=static_text(value, name), static=True)
    writer.append(Compiled(run="r1", function="f", signature=[leaf], reason=f"static argument {name}: {leaf.type}"))
    if not isinstance(value, bytes | list | tuple | dict):
        arguments = (f"{name}={value!r}", f"{{'a': {{{name!r}: {value!r}}}}}")
        spec = RunSpec(workload="f", variant="jit", how="jit", device="cpu:0", arguments=arguments)
        writer.append(RunPlanned(run="r2", spec=spec))
    writer.close()
    code, words = called(["open", "--format", "json", str(path)], home)
    return code, f"{words}{FAULT}{name} = {value!r}" if SECRET in path.read_text() else words


FOREIGN = (
    "{0}={0}\n", "[{0}]\n{0} = 1\n", "fn {0}(x: i32) -> i32 {{\n {0}\n}}\n", "ENTRY {0} {{\n {0} = {0}\n}}\n",
    "{0} (a: {0}) -> {0} {{\n ROOT {0} = {0}\n}}\n", "-----BEGIN {0}\n{0}\n", "<html>{0}", "{0}: {0}\n- {0}\n",
    '{{"format":"jaxprof",{0}\n', "{0} = f32[2] add({0})\n", "\x01\x02{0}\x03{0}\n", "def {0}(x):\n  return {0}\n",
)  # fmt: skip


def try_foreign(home: Path, chance: random.Random) -> tuple[int, str]:
    """A file that is nothing that jaxprof reads: no word of it is in an error."""
    path = home / f"f{chance.choice(('', '.txt', '.jaxprof', '.xplane.pb', '.hlo', '.pb', '.gz'))}"
    raw = chance.choice(FOREIGN).format(SECRET).encode()
    path.write_bytes(gzip.compress(raw) if path.suffix == ".gz" else raw)
    if chance.random() < 0.5:
        server = make_server("", allow_run=False, allow_urls=False)
        name, argument = chance.choice((("hlo", "target"), ("explain", "session"), ("open_session", "session")))
        answer = asyncio.run(server.call_tool(name, {argument: str(path)}))
        code, words = int(answer.is_error), "".join(content.text for content in answer.content)
    else:
        code, words = called([*chance.choice((("hlo",), ("open", "--format", "text"), ("explain",))), str(path)], home)
    return code, f"{words}{FAULT}{raw!r} is quoted" if SECRET in words else words


def try_names(home: Path, chance: random.Random) -> tuple[int, str]:
    """A session whose name begins like an option: the commands to run next do not take it for one."""
    name = f"-{chance.choice(('rf', '-help', 'x y', '$(id)', ';id', '-'))}.jaxprof"
    (home / name).write_bytes(originals("session")[0])
    with contextlib.chdir(home):
        code, words = called([chance.choice(("open", "explain")), "--format", "json", f"./{name}"], home)
    following = json.loads(words)["next"] if not code else []
    lost = [line for line in following if name in shlex.split(line)]
    return code, f"{words}{FAULT}{lost}" if lost else words


SURFACES = {
    "settings": try_settings, "SQL": try_sql, "jobs": try_job, "folders": try_folder, "sources": try_source,
    "words": try_words, "commands": try_command, "URLs": try_web, "mcp": try_mcp, "projects": try_project,
    "secrets": try_secrets, "foreign": try_foreign, "names": try_names,
}  # fmt: skip


def surfaces(first: int, inputs: int) -> int:
    """Tries all surfaces, prints the table, and returns 1 if there was a fault."""
    sys.addaudithook(watch)
    sys.stdin = open(os.devnull)  # noqa: SIM115 - nobody says yes
    faults = 0
    print(f"{'surface':12} {'inputs':>6} {'not 0':>6} {'slowest':>8}  started  faults")
    for name, surface in SURFACES.items():
        refused, slowest, found = 0, 0.0, list[str]()
        STARTED.clear()
        for number in range(first, first + inputs):
            with tempfile.TemporaryDirectory() as folder:
                ended: list[tuple[int, str]] = []
                began = time.perf_counter()
                chance = random.Random(f"{name} {number}")
                fault = attempt(lambda: ended.append(surface(Path(folder), chance)))  # noqa: B023
                slowest = max(slowest, time.perf_counter() - began)
                fault = fault or (spoken(ended[0][1]) if ended else None)
                refused += not ended or ended[0][0] != 0
            found += [f"input {number}: {fault.kind}: {fault.what}"] if fault else []
        found += [f"started: {words}" for words in STARTED]
        print(f"{name:12} {inputs:6} {refused:6} {slowest:6.2f} s  {len(STARTED):7}  {len(found)}", flush=True)
        print("".join(f"  {line}\n" for line in found[:20]), end="", flush=True)
        faults += len(found)
    return int(faults > 0)


def main() -> int:
    """Runs all ways, and returns 1 if one has a fault."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--inputs", type=int, default=500, help="for each way")
    parser.add_argument(
        "--profiles", type=int, default=60, help="for each command that reads profiles, in a process each"
    )
    parser.add_argument("--from", dest="first", type=int, default=0, help="the number of the first input")
    parser.add_argument("--keep", type=Path, help="a folder for the inputs with a fault")
    parser.add_argument("--surfaces", action="store_true", help="try what else comes from outside")
    parser.add_argument("--smoke", action="store_true", help="one input for each way")
    parser.add_argument("--kills", action="store_true", help="kill processes instead")
    parser.add_argument("--phase", action="append", choices=JIT_PHASES, help="of --kills: only at this one")
    parser.add_argument("--hangs", action="store_true", help="send a signal to programs that hang, instead")
    parser.add_argument("--kind", action="append", choices=HANGS, help="of --hangs: only this one")
    parser.add_argument("--signal", action="append", choices=("SIGINT", "SIGTERM", "SIGHUP"), help="of --hangs")
    parser.add_argument("--harms", action="store_true", help="harm sessions while they are written, instead")
    options = parser.parse_args()
    if options.smoke:
        options.inputs, options.profiles = 1, 1
    if options.hangs:
        kinds = options.kind or (HANGS[:1] if options.smoke else HANGS)
        signals = [signal.Signals[name] for name in options.signal or ("SIGINT", "SIGTERM", "SIGHUP")]
        cases = [
            (
                f"{kind}, {f'job of {count}' if count else 'alone'}",
                partial(hang, kind=kind, processes=count, number=number),
            )
            for kind in kinds
            for count in (3, 0)
            if count or kind in ALONE
            for number in (signals[:1] if options.smoke else signals)
        ]
        return tried("hangs", cases)
    if options.harms:
        names = [(writer, kind) for writer in WRITERS for kind in HARMS]
        return tried(
            "harmed",
            [
                (f"{writer}, {kind}", partial(harm, writer=writer, kind=kind))
                for writer, kind in names[: 1 if options.smoke else None]
            ],
        )
    if options.kills:
        return kills(options.phase or JIT_PHASES)
    if options.surfaces:
        return surfaces(options.first, options.inputs)
    faults = 0
    print(f"{'way':52} {'inputs':>6} {'not 0':>7} {'slowest':>8}  faults")
    for kind in READERS:
        for name, way in ways(kind).items():
            code, fault = way(originals(kind)[-1])
            if code or fault:
                print(f"{kind}: {name}: exit code {code} for the sound file, so this way says nothing: {fault}")
                return 1
            count = options.profiles if kind == "profile" and name != "the reader" else options.inputs
            refused, slowest, found = 0, 0.0, dict[int, Fault]()
            for number in range(options.first, options.first + count):
                raw = mutated(kind, number)
                began = time.perf_counter()
                code, fault = way(raw)
                slowest = max(slowest, time.perf_counter() - began)
                refused += code != 0
                if fault:
                    found[number] = fault
                    if options.keep:
                        options.keep.mkdir(parents=True, exist_ok=True)
                        (options.keep / f"{number}-{NAMES[kind]}").write_bytes(raw)
            said = "-" if name == "the reader" else str(refused)
            print(f"{f'{kind}: {name}':52} {count:6} {said:>7} {slowest:6.2f} s  {len(found)}", flush=True)
            for number, fault in found.items():
                print(f"  input {number}: {fault.kind}: {fault.what}")
            faults += len(found)
    return int(faults > 0)


if __name__ == "__main__":
    sys.exit(main())
