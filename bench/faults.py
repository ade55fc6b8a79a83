"""What faults do to jaxprof: files with flipped bytes, lost lines and wrong values; and processes that are killed.

    python bench/faults.py [--inputs 500] [--profiles 60] [--from 0] [--keep FOLDER]
    python bench/faults.py --kills [--phase compile]...

Each input goes through its reader and through every command that takes such a file; the same number is the same input
(`tests/mutated.py` makes them, and `tests/cli/test_mutated.py` takes a sample). A fault is a traceback, more than 20 s,
or a control character in the output; an error with words is none. Prints a row for each way with the inputs, how many
ended with another exit code than 0, the slowest and the faults, and exits 1 if there is a fault. `--keep` writes each
input with a fault to a file.

With `--kills`, no files: the client or the engine of a compiled run is killed at the begin of every phase, by SIGKILL
and SIGTERM, the client also by SIGINT, while native code of the engine sleeps with the interpreter's lock or without
it. As in `tests/cli/test_kills.py`, all that was reported has to be in the log, the session has to say what happened,
and no process and no folder may be left. Prints a row for each kind of kill, with the slowest: from the start of
jaxprof to when nothing is left.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from cli.test_kills import JIT_PHASES, Measuring, check, every_case  # noqa: E402
from mutated import COMMANDS, NAMES, READERS, Fault, called, fault_of_reader, mutated, originals, outcome  # noqa: E402

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


def main() -> int:
    """Runs all ways, and returns 1 if one has a fault."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--inputs", type=int, default=500, help="for each way")
    parser.add_argument(
        "--profiles", type=int, default=60, help="for each command that reads profiles, in a process each"
    )
    parser.add_argument("--from", dest="first", type=int, default=0, help="the number of the first input")
    parser.add_argument("--keep", type=Path, help="a folder for the inputs with a fault")
    parser.add_argument("--kills", action="store_true", help="kill processes instead")
    parser.add_argument("--phase", action="append", choices=JIT_PHASES, help="of --kills: only at this one")
    options = parser.parse_args()
    if options.kills:
        return kills(options.phase or JIT_PHASES)
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
