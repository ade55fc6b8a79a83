"""What faults in files do to jaxprof: sessions, HLO and profiles with flipped bytes, lost lines and wrong values.

    python bench/faults.py [--inputs 500] [--profiles 60] [--from 0] [--keep FOLDER]

Each input goes through its reader and through every command that takes such a file; the same number is the same input
(`tests/mutated.py` makes them, and `tests/cli/test_mutated.py` takes a sample). A fault is a traceback, more than 20 s,
or a control character in the output; an error with words is none. Prints a row for each way with the inputs, how many
ended with another exit code than 0, the slowest and the faults, and exits 1 if there is a fault. `--keep` writes each
input with a fault to a file.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from mutated import COMMANDS, NAMES, READERS, Fault, fault_of_reader, mutated, originals, outcome  # noqa: E402

Way = Callable[[bytes], tuple[int, Fault | None]]


def ways(kind: str) -> dict[str, Way]:
    """How a file of this kind is read: each way's name, and what gives the exit code and the fault of an input."""
    found: dict[str, Way] = {"the reader": lambda raw: (0, fault_of_reader(kind, raw))}
    for words in COMMANDS[kind]:
        found[" ".join(words)] = lambda raw, words=words: outcome(kind, raw, words)  # type: ignore[misc]
    return found


def main() -> int:
    """Runs all ways, and returns 1 if one has a fault."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--inputs", type=int, default=500, help="for each way")
    parser.add_argument(
        "--profiles", type=int, default=60, help="for each command that reads profiles, in a process each"
    )
    parser.add_argument("--from", dest="first", type=int, default=0, help="the number of the first input")
    parser.add_argument("--keep", type=Path, help="a folder for the inputs with a fault")
    options = parser.parse_args()
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
