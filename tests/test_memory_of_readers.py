"""What a hostile file makes of a reader's memory: it stays in proportion to the limits, whatever the file unpacks to.

The limits are lowered, so that a bomb of some megabytes is as far beyond them as one of some hundred is beyond the
defaults. Each is read in a fork of a process that has read a sound file of each kind, and its peak counts from there.
"""

import base64
import gzip
import hashlib
import json
import os
import subprocess
import sys
import zlib
from pathlib import Path
from subprocess import PIPE

import pytest

import mutated
from mutated import originals

sys.path.append(str(Path(__file__).parent / "trace"))
from xplane_wire import nested, number

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(sys.platform != "linux", reason="the peak of another system is in another unit"),
]

MIB = 1 << 20
LIMIT = 16 * MIB
"""Of what is unpacked; a line has an eighth of it, as by default."""
LIMITS = "unpacked=16MiB,line=2MiB,planes=1000,lines=1000,names=20000,events=100000,instructions=20000"
FACTOR = 4
"""How many times the limit a reader may hold: the bytes, the text that they are, and what is made of it."""
READ = """
import ctypes, os, re, sys
ctypes.CDLL(None).prctl(41, 1, 0, 0, 0)  # PR_SET_THP_DISABLE: a huge page counts whole, however little is written
from pathlib import Path
import mutated
from jaxprof.base.errors import JaxprofError
from jaxprof.session import Session
from jaxprof.session import load

def session(path):
    session = load(path, Session)
    for run in session.runs.values():
        for name in run.texts:
            session.text(run.id, name)
    print(*session.notices)

def peak():  # not ru_maxrss: that keeps the peak of whoever started the process
    return int(re.search(r"VmHWM:\\s*(\\d+) kB", Path("/proc/self/status").read_text())[1])

for kind in ("session", *mutated.READERS):
    Path("sound").write_bytes(mutated.originals(kind)[-1])
    readers = {**mutated.READERS, "session": session}
    readers[kind](Path("sound"))
sys.stdout.flush()  # or each fork prints it once more
for line in sys.stdin:
    if os.fork() == 0:
        kind, path = line.rstrip("\\n").split(" ", 1)
        before = peak()
        try:
            readers[kind](Path(path))
        except JaxprofError as error:
            print(error.what, error.hint)
        print((peak() - before) << 10, flush=True)
        os._exit(0)
    os.wait()
    print("READ", flush=True)
"""


def session(*lines):
    head, plan, *_ = originals("session")[0].splitlines(keepends=True)
    return head + plan + b"".join(lines)


def line(kind, **fields):
    return json.dumps({"type": kind, "run": "r1", **fields}, separators=(",", ":")).encode() + b"\n"


def text(raw):
    digest = hashlib.sha256(raw).hexdigest()
    data = base64.b64encode(zlib.compress(raw)).decode()
    chunk = line("text_chunk", digest=digest, index=0, count=1, data=data)
    return session(chunk, line("text_recorded", name="hlo", digest=digest, bytes=len(raw)))


def module(computation):
    return nested(1, b"m") + nested(2, b"e") + nested(3, nested(1, b"e") + computation)


def instruction(name, content=b""):
    return nested(2, nested(1, name) + nested(2, b"add") + number(35, 1) + content)


def plane(content):
    return nested(1, nested(2, b"/device:GPU:0") + content)


INSTRUCTION = b"  a = f32[] add(p, p)\n"
VALUES = b'{"type":"device_reading","device":"cpu:0","processes":[%s{}]}\n'
TOO_MANY = "JAXPROF_LIMITS=instructions="
BOMBS = {
    "a line": ("session", "JAXPROF_LIMITS=line=", lambda: session(line("log_line", text="x" * 5 * LIMIT))),
    "a text": ("session", "JAXPROF_LIMITS=unpacked=", lambda: text(bytes(6 * LIMIT))),
    "levels": ("session", "damaged", lambda: session(b'{"type":"log_line","text":' + b"[" * MIB + b"\n")),
    "tiny events": ("session", "", lambda: session(line("heartbeat") * 300_000)),
    "empty values": ("session", "", lambda: session(VALUES % (b"{}," * 600_000))),
    "gzip of HLO": ("hlo", "JAXPROF_LIMITS=unpacked=", lambda: gzip.compress(bytes(6 * LIMIT), 1)),
    "instructions": ("hlo", TOO_MANY, lambda: b"HloModule m\n\nENTRY e {\n" + INSTRUCTION * 500_000 + b"}\n"),
    "instructions of a proto": ("hlo", TOO_MANY, lambda: module(nested(2, b"") * 500_000)),
    "one name for many operands": (
        "hlo", "JAXPROF_LIMITS=unpacked=",
        lambda: module(number(5, 1) + instruction(b"n" * 100_000, nested(36, b"\1" * 100_000))),
    ),
    "names": ("profile", "JAXPROF_LIMITS=names=", lambda: plane(nested(4, b"") * 500_000)),
    "events": ("profile", "JAXPROF_LIMITS=events=", lambda: plane(nested(3, nested(4, b"") * 500_000))),
}  # fmt: skip


class Readers:
    """A process that has read a sound file of each kind, with these limits, and reads each further one in a fork."""

    def __init__(self, folder, limits):
        self._folder = folder
        variables = os.environ | {"JAXPROF_LIMITS": limits, "PYTHONPATH": str(Path(mutated.__file__).parent)}
        given = [sys.executable, "-c", READ]
        self._process = subprocess.Popen(given, cwd=folder, env=variables, stdin=PIPE, stdout=PIPE, text=True)

    def read(self, kind, bomb):
        """What the reader said, and the bytes by which its process grew."""
        (self._folder / "bomb").write_bytes(bomb)
        self._process.stdin.write(f"{kind} bomb\n")
        self._process.stdin.flush()
        lines = list(iter(self._process.stdout.readline, "READ\n"))
        return "".join(lines[:-1]), int(lines[-1])

    def close(self):
        self._process.communicate()


@pytest.fixture(scope="module")
def limited(tmp_path_factory):
    readers = Readers(tmp_path_factory.mktemp("limited"), LIMITS)
    yield readers
    readers.close()


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_takes_a_few_times_the_limit(name, limited):
    kind, words, bomb = BOMBS[name]
    said, grown = limited.read(kind, bomb())
    assert words in said
    assert grown < FACTOR * LIMIT, f"{grown / MIB:.0f} MiB: {said}"


def test_without_the_limit_it_takes_more(tmp_path):
    _, _, bomb = BOMBS["gzip of HLO"]
    readers = Readers(tmp_path, "unpacked=1GiB")
    assert readers.read("hlo", bomb())[1] > FACTOR * LIMIT
    readers.close()


def test_a_profile_takes_less_memory_than_its_file(tmp_path):
    """Where it has events that are not kept, here the marks of the profiler."""
    event = nested(4, number(1, 1) + number(2, 1 << 40) + number(3, 1000))
    names = nested(4, number(1, 1) + nested(2, nested(2, b"end: dot")))
    raw = nested(1, nested(2, b"/host:CPU") + nested(3, event * 5_000_000) + names)
    readers = Readers(tmp_path, "lines=1000")
    said, grown = readers.read("profile", raw)
    assert grown < len(raw), f"{grown / MIB:.0f} MiB: {said}"
    readers.close()
