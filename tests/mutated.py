"""Sessions, HLO and profiles with faults in them, by the thousand: the same ones for the same number, everywhere.

`tests/cli/test_mutated.py` takes a sample, `bench/faults.py` as many as wanted. Whatever is read must end as a result,
or as an error with words, in time, and nothing printed may steer a terminal.
"""

import contextlib
import json
import os
import random
import shlex
import signal
import sys
import tempfile
import traceback
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import program_events
from hlo_sources import BEFORE, PROTO, TEXT
from jaxprof.base.errors import JaxprofError
from jaxprof.cli.main import main
from jaxprof.events import encode
from jaxprof.hlo import files
from jaxprof.hlo.kernels.notices import problems
from jaxprof.hlo.text import parse
from jaxprof.session import Session, load
from jaxprof.session.files import HOME_VARIABLE
from jaxprof.session.lines import encode_header, encode_line
from jaxprof.trace.sources import read_profile
from jaxprof.trace.summary import events_of
from report import sessions

sys.path.append(str(Path(__file__).parent / "trace"))  # no package, because the standard library has one of its name
from made_traces import cpu_plane, gpu_planes, tpu_plane
from xplane_wire import space_bytes

LONGEST_SECONDS = 20.0
"""For one input: a hang, and not a busy machine."""
_DEEP = "deeply nested"
_DEPTH = 5000
_WRONG = (
    10**400, -(10**400), 2**63, 2**62, 10**12, -1, 0, 1e308, -1e308, 1e99, -1e99, 5e-324,
    "r" + "9" * 5000, float("nan"), float("inf"), True, None, "", [], {},
    [[]], {"a": {}}, "\x1b[31m\x07\x9b2J\u202e\r\n\x7f", "x" * 3000, _DEEP,
)  # fmt: skip
_ALLOWED = frozenset("\n\t")
_BIDI = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c")


@dataclass(frozen=True, slots=True)
class Fault:
    """What should not have happened."""

    kind: str
    """`traceback`, `hang` or `control character`."""
    what: str


@cache
def originals(kind: str) -> tuple[bytes, ...]:
    """The sound inputs of a kind: `session`, `hlo` or `profile`."""
    folder = Path(__file__).parent / "hlo"
    if kind == "session":
        header = encode_header(sessions.HEADER)
        run = sessions.jit_run("r2", "r1")
        captured = [*sessions.numpy_run("r1"), *run[:-2], *sessions.captures("r2"), *run[-2:]]
        kept = (sessions.events(), program_events.training_events(), captured)
        return tuple(header + b"".join(map(encode_line, events)) for events in kept)
    if kind == "hlo":
        texts = [(folder / name).read_bytes() for name in ("printed.hlo", "written.hlo")]
        return (PROTO, TEXT.encode(), BEFORE.encode(), *texts)
    planes = [[cpu_plane()], list(gpu_planes()), [tpu_plane()], [cpu_plane(), *gpu_planes(), tpu_plane()]]
    return tuple(space_bytes(group) for group in planes)


def mutated(kind: str, number: int) -> bytes:
    """Input `number` of `kind`: one to four faults in one of the originals."""
    chance = random.Random(f"{kind} {number}")
    return with_faults(chance.choice(originals(kind)), chance, is_json=kind == "session")


def with_faults(raw: bytes, chance: random.Random, *, is_json: bool = False) -> bytes:
    """The same with one to four faults; lines of JSON also with values that are wrong."""
    ways = [_flipped, _cut] if b"\0" in raw else [_flipped, _cut, _lines]
    if is_json:
        ways += [_value] * 4
    for _ in range(chance.randint(1, 4)):
        raw = chance.choice(ways)(raw, chance)
    return raw


def _flipped(raw, chance):
    changed = bytearray(raw)
    for _ in range(min(len(raw), chance.randint(1, 8))):
        changed[chance.randrange(len(raw))] = chance.choice([chance.randrange(256), *b'{}()[]"\n,=\x1b\x9b'])
    return bytes(changed)


def _cut(raw, chance):
    begin = chance.randrange(len(raw) + 1)
    return raw[:begin] + raw[begin + chance.randint(0, 200) :]


def _lines(raw, chance):
    lines = raw.splitlines(keepends=True) or [b""]
    one, other = chance.randrange(len(lines)), chance.randrange(len(lines))
    match chance.choice(["swap", "double", "drop"]):
        case "swap":
            lines[one], lines[other] = lines[other], lines[one]
        case "double":
            lines.insert(one, lines[other])
        case _:
            del lines[one]
    return b"".join(lines)


def _value(raw, chance):
    """One value in one line of JSON becomes a wrong one."""
    lines = raw.splitlines(keepends=True)
    if not lines:
        return raw
    at = chance.randrange(len(lines))
    try:
        data = json.loads(lines[at])
    except (ValueError, RecursionError):
        return raw
    places = list(_places(data))
    if not places:
        return raw
    holder, key = chance.choice(places)
    holder[key] = chance.choice(_WRONG)
    line = json.dumps(data).replace(f'"{_DEEP}"', "[" * _DEPTH + "]" * _DEPTH)
    lines[at] = line.encode() + b"\n"
    return b"".join(lines)


def _places(data):
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        if key != "type":
            yield data, key
        yield from _places(value)


NAMES = {"session": "s.jaxprof", "hlo": "m.hlo", "profile": "host.xplane.pb"}


def _read_hlo(path):
    for module in parse.modules(files.read_text(path)):
        problems(module)
        for computation in module.computations.values():
            for instruction in computation.instructions:
                _ = instruction.operands, instruction.shape.bytes, instruction.metadata, instruction.backend_config


def _read_profile(path):
    for event in events_of(read_profile(path), "imported"):
        encode(event)


READERS = {"session": lambda path: load(path, Session), "hlo": _read_hlo, "profile": _read_profile}
COMMANDS = {
    "session": """
        open {file}
        open {file} --format json
        open {file} --format csv
        open {file} --format markdown
        explain {file}
        explain {file} --format json
        sessions
        compare {file} {sound}
        compare {sound} {file}
        hlo {file}
        query {file} "FROM query_table('runs') SELECT *"
    """,  # which reads every table
    "hlo": """
        hlo {file}
        hlo {file} --format json
        hlo {file} --findings
    """,
    "profile": """
        open {file}
        open --keep {file} -o {out}
        export {file} -o {out}.json
    """,
}
COMMANDS = {kind: [tuple(shlex.split(line)) for line in text.strip().splitlines()] for kind, text in COMMANDS.items()}
"""The commands that read a kind of file."""


class _Hung(BaseException):
    """The input took too long. No handler for errors may take it."""


@contextlib.contextmanager
def _alarm(seconds):
    def ring(*_):
        raise _Hung

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def attempt(work: Callable[[], object]) -> Fault | None:
    """What is wrong with how `work` ends: an error with words is as good as a result."""
    try:
        with _alarm(LONGEST_SECONDS):
            work()
    except JaxprofError:
        return None
    except _Hung:
        return Fault("hang", f"more than {LONGEST_SECONDS:.0f} s")
    except Exception as error:  # noqa: BLE001 - any other is the fault looked for
        where = traceback.extract_tb(error.__traceback__)[-1]
        return Fault(
            "traceback", f"{type(error).__name__} at {Path(where.filename).name}:{where.lineno}: {error!s:.80}"
        )
    return None


def fault_of_reader(kind: str, raw: bytes) -> Fault | None:
    """What is wrong with how the reader of `kind` takes this input."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / NAMES[kind]
        path.write_bytes(raw)
        return attempt(lambda: READERS[kind](path))


def outcome(kind: str, raw: bytes, words: tuple[str, ...]) -> tuple[int, Fault | None]:
    """The exit code of a command with this input, the only session kept where it lists them, and what is wrong with how
    it ends."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        (home / "sessions").mkdir()
        path = home / "sessions" / NAMES[kind]
        path.write_bytes(raw)
        sound = home / "sound.jaxprof"
        sound.write_bytes(originals("session")[0])
        given = [word.format(file=path, sound=sound, out=home / "out.jaxprof") for word in words]
        ended = []
        fault = attempt(lambda: ended.append(called(given, home)))
        code, said = ended[0] if ended else (-1, "")
        return code, fault or spoken(said)


def spoken(text: str) -> Fault | None:
    """What must not be in an output."""
    if "Traceback (most recent call last)" in text:
        return Fault("traceback", text[-200:])
    for character in text:
        if character not in _ALLOWED and (unicodedata.category(character) == "Cc" or character in _BIDI):
            at = text.index(character)
            return Fault("control character", ascii(text[max(0, at - 40) : at + 20]))
    return None


def called(words: list[str], home: Path) -> tuple[int, str]:
    """The exit code and both outputs of `jaxprof WORDS` in this process; its sessions are below `home`."""
    before = sys.stdout, sys.stderr, os.environ.get(HOME_VARIABLE)
    os.environ[HOME_VARIABLE] = str(home)
    paths = home / "stdout", home / "stderr"
    code = 0
    try:
        with open(paths[0], "w", encoding="utf-8") as sys.stdout, open(paths[1], "w", encoding="utf-8") as sys.stderr:
            try:
                main(words)
            except SystemExit as ended:
                code = int(ended.code or 0)
    finally:
        sys.stdout, sys.stderr = before[:2]
        os.environ.pop(HOME_VARIABLE)
        if before[2] is not None:
            os.environ[HOME_VARIABLE] = before[2]
    return code, "".join(path.read_bytes().decode("utf-8", "replace") for path in paths)
