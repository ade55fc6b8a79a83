"""Whether a program is the same under `jaxprof script`: its output, its exit code, and that it ends.

    python bench/guest.py [NAME...] [--seconds 6] [--pythons PYTHON:PYTHON] [--smoke]

Each program of `programs/guests.py` (signals each millisecond, handlers that raise, debuggers, profilers and tools that
monitor, forks, threads, deep recursion, native code that keeps the interpreter's lock, tiny switch intervals) runs
alone and recorded, in each interpreter. One that takes ten seconds longer than three times what it took alone, hangs.
`--smoke` runs the first one for a second only. Exits 1 where one of them differs.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
PROGRAM = Path(__file__).resolve().parent / "programs" / "guests.py"
SMOKE_SECONDS = 1.0
INTERRUPTED_COLLECTION = re.compile(
    r"Exception ignored in: <function _xla_gc_callback.*?\n(KeyboardInterrupt: ?|RecursionError: [^\n]*)\n", re.DOTALL
)
"""What Python prints where an interrupt comes while JAX's callback of the collector runs, or where a collection falls
at the limit of the recursion: that is chance."""


@dataclass(frozen=True, slots=True)
class Life:
    """How a program ran; `code` is None where it did not end."""

    code: int | None
    out: str
    err: str
    seconds: float

    def differs_from(self, alone: Life) -> list[str]:
        """What is not as it is without a recorder. A shell reports the end by a signal as 128 and its number."""
        expected = alone.code if alone.code is None or alone.code >= 0 else 128 - alone.code
        found = [] if self.code == expected else ["hangs" if self.code is None else f"code {self.code}, not {expected}"]
        if self.out != alone.out:
            found.append(f"prints {self.out!r}, not {alone.out!r}")
        if self.err != alone.err:
            found.append(f"stderr has {self.err!r}, not {alone.err!r}")
        return found


def life(command: list[str], folder: Path, limit_seconds: float) -> Life:
    """Runs a command with its children in a group of their own, which is killed past the limit."""
    began = time.monotonic()
    child = subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    code: int | None
    try:
        out, err = child.communicate(timeout=limit_seconds)
        code = child.returncode
    except subprocess.TimeoutExpired:
        for process in _below(child.pid):
            os.kill(process, signal.SIGKILL)
        out, err = child.communicate()
        code = None
    ours = [line for line in err.splitlines(keepends=True) if line.startswith("jaxprof: ")]
    kept = INTERRUPTED_COLLECTION.sub("", "".join(line for line in err.splitlines(keepends=True) if line not in ours))
    return Life(code, out, kept, time.monotonic() - began)


def _below(process: int) -> list[int]:
    """A process and all that it started: the program has a group of its own."""
    found, parents = [process], {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            words = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents.setdefault(int(words[1]), []).append(int(entry.parent.name))
    for each in found:
        found += parents.get(each, [])
    return found


def compare(name: str, python: str, seconds: float) -> tuple[Life, Life]:
    """The program alone, then recorded."""
    words = [str(PROGRAM), name, str(seconds)]
    with tempfile.TemporaryDirectory() as folder:
        alone = life([python, *words], Path(folder), 60 + 10 * seconds)
        recorder = [python, "-m", "jaxprof", "script", "--plain", "--out", "s.jaxprof", *words]
        recorded = life(recorder, Path(folder), 10 + 3 * alone.seconds)
    return alone, recorded


def main() -> int:
    from programs.guests import GUESTS

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", choices=[[], *GUESTS], help="programs; all without any")
    parser.add_argument("--seconds", type=float, default=6.0, help="how long each runs")
    parser.add_argument("--pythons", default=sys.executable, help="interpreters, separated by colons")
    parser.add_argument("--smoke", action="store_true", help="one program, for a second")
    args = parser.parse_args()
    seconds = SMOKE_SECONDS if args.smoke else args.seconds
    names = args.names or list(GUESTS)[: 1 if args.smoke else None]
    failed = 0
    for python in args.pythons.split(":"):
        version = subprocess.run([python, "-V"], capture_output=True, text=True, check=True).stdout.strip()
        for name in names:
            alone, recorded = compare(name, python, seconds)
            found = recorded.differs_from(alone)
            failed += bool(found)
            took = f"{alone.seconds:>6.1f} s{recorded.seconds:>6.1f} s"
            print(f"{version:<15}{name:<32}{took}  {'; '.join(found) or 'same'}", flush=True)
    print(f"{failed} differ")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
