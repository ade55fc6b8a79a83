"""How fast a profile becomes a table of kernels, and how much memory that takes: against xprof's `hlo_stats`.

    python bench/xplane.py [--rounds 5] [--peer PYTHON] [--file PROFILE] [--only scan,train,made]
        [--events 500000] [--smoke]

Three profiles: two that JAX records here, with its own defaults, so with the Python tracer on (a scan, whose events are
mostly ops; a training loop in Python with its compile, whose events are mostly Python's calls), and one that is written
here: a CPU trace of a loop on two threads, half of its events the marks that the profiler writes for itself. Every
reading is a process of its own that has imported what it needs first; seconds are CPU seconds of that process from the
file to the table, bytes its peak beyond what the imports took; a figure is the median over the rounds, and the two take
turns. `--peer` names an interpreter that has xprof, by default this one. Exits 1 where a table is not 3 times as fast
as `hlo_stats`, or takes more than a quarter of its memory; without xprof where it takes more than 3 seconds.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FASTER_AT_LEAST, MEMORY_AT_MOST = 3.0, 0.25
SLOWEST_SECONDS = 3.0
US = 1_000_000
_OURS = """
import sys, time
sys.path.insert(0, {source!r})
import numpy
from pathlib import Path
from jaxprof.trace.summary import op_times
from jaxprof.trace.sources import read_file
def work(path):
    return len(op_times(read_file(Path(path))))
"""
_PEER = """
from xprof.convert import raw_to_tool_data
def work(path):
    data, _ = raw_to_tool_data.xspace_to_tool_data([path], "hlo_stats", {})
    return len(data)
"""
_RECORD = """
import sys
import jax, jax.numpy as jnp
kind, folder, calls = sys.argv[1], sys.argv[2], int(sys.argv[3])
def layer(carry, weights):
    carry = jnp.tanh(carry @ weights) + 0.1 * carry
    return carry / (1e-3 + jnp.linalg.norm(carry)), carry.sum()
def loss(weights, x):
    return jax.lax.scan(layer, x, weights)[0].mean()
class Loader:
    def __init__(self, rows):
        self.rows = rows
    def row(self, index):
        return [float(value % 7) for value in self.cells(index)]
    def cells(self, index):
        for column in range(self.rows):
            yield self.cell(index, column)
    def cell(self, index, column):
        return index * self.rows + column
if kind == "scan":
    step = jax.jit(lambda weights, x: jax.lax.scan(layer, x, weights))
    weights, x = jnp.ones((800, 32, 32)) * 0.01, jnp.ones((32, 32))
    jax.block_until_ready(step(weights, x))
else:
    step = jax.jit(lambda weights, x: weights - 1e-3 * jax.grad(loss)(weights, x))
    weights, x = jnp.ones((12, 64, 64)) * 0.01, jnp.ones((64, 64))
loader = Loader(64)
jax.profiler.start_trace(folder)
for number in range(calls):
    with jax.profiler.StepTraceAnnotation("train", step_num=number):
        if kind == "train":
            x = jnp.asarray([loader.row(index) for index in range(64)])
            weights = step(weights, x)
        jax.block_until_ready(weights if kind == "train" else step(weights, x))
jax.profiler.stop_trace()
"""
_MEASURE = """
import json, sys, time
def peak():
    line = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024
before, began = peak(), time.process_time()
found = work(sys.argv[1])
print(json.dumps({"seconds": time.process_time() - began, "bytes": peak() - before, "found": found}))
"""


def varint(number: int) -> bytes:
    """As protobuf writes it."""
    out = bytearray()
    number &= (1 << 64) - 1
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def nested(field: int, content: bytes) -> bytes:
    """A message or text in a field."""
    return varint(field << 3 | 2) + varint(len(content)) + content


def numbers(*pairs: tuple[int, int]) -> bytes:
    """Integer fields."""
    return b"".join(varint(field << 3) + varint(value) for field, value in pairs)


def write_profile(path: Path, events: int) -> None:
    """A CPU profile with about that many events: 40 ops in a loop's body, each with its mark."""
    ops = ["while.1", *(f"fusion.{number}" for number in range(40))]
    names = [*ops, *(f"end: {name}" for name in ops)]
    stats = ["hlo_op", "run_id", "program_id", "hlo_module", "device_ordinal", "_pt", "_p", "_ct", "_c"]
    references = [*stats, *ops, "jit_f"]
    id_of = {name: number for number, name in enumerate(references, 1)}
    lines = b""
    for thread in range(2):
        line = bytearray(numbers((1, thread + 1)) + nested(2, f"tf_XLAPjRtCpuClient/{thread}".encode()))
        moment = 0
        for execution in range(events // 2 // 820 + 1):
            line += _op(0, moment, 400 * 3 * US, ops, id_of, execution)
            for step in range(409):
                at = 1 + step % 40
                line += _op(at, moment, 2 * US, ops, id_of, execution)
                mark = numbers((1, len(ops) + at + 1), (2, moment + 2 * US), (3, 300_000))
                mark += nested(4, numbers((1, id_of["_ct"]), (3, 0))) + nested(
                    4, numbers((1, id_of["_c"]), (3, moment))
                )
                line += nested(4, mark)
                moment += 3 * US
        lines += nested(3, bytes(line))
    plane = nested(2, b"/host:CPU") + lines
    for key, name in enumerate(names, 1):
        plane += nested(4, numbers((1, key)) + nested(2, numbers((1, key)) + nested(2, name.encode())))
    for name, key in id_of.items():
        plane += nested(5, numbers((1, key)) + nested(2, numbers((1, key)) + nested(2, name.encode())))
    path.write_bytes(nested(1, plane))


def _op(at: int, start: int, duration: int, ops: list[str], id_of: dict[str, int], execution: int) -> bytes:
    content = numbers((1, at + 1), (2, start), (3, duration))
    for name, field, value in (
        ("hlo_op", 7, id_of[ops[at]]),
        ("run_id", 4, execution - 2_000_000_000),
        ("program_id", 3, 4),
        ("hlo_module", 7, id_of["jit_f"]),
        ("device_ordinal", 4, 0),
        ("_pt", 3, 0),
        ("_p", 3, start),
    ):
        content += nested(4, numbers((1, id_of[name]), (field, value)))
    return nested(4, content)


def record(kind: str, folder: Path) -> Path:
    """A profile that JAX records now with its defaults, of a `scan` or a `train`ing loop: some tens of megabytes."""
    calls = {"scan": 40, "train": 20}[kind]
    done = subprocess.run(
        [sys.executable, "-c", _RECORD, kind, str(folder), str(calls)], capture_output=True, text=True, check=False
    )
    found = sorted(folder.rglob("*.xplane.pb"))
    if done.returncode or not found:
        raise RuntimeError(f"no profile of {kind}: {done.stderr.strip().splitlines()[-1:]}")
    return found[0]


def reading(python: str, program: str, profile: Path) -> dict[str, float]:
    """One reading in a process of its own, of a copy in a folder of its own: xprof writes caches beside a profile."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "host.xplane.pb"
        shutil.copyfile(profile, copy)
        done = subprocess.run(
            [python, "-c", program + _MEASURE, str(copy)], capture_output=True, text=True, check=False
        )
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "it failed")
    found: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def has_xprof(python: str) -> bool:
    """Whether that interpreter can import xprof."""
    done = subprocess.run([python, "-c", "import xprof.convert"], capture_output=True, check=False)
    return done.returncode == 0


def main() -> int:
    """Prints the table; 1 past a limit."""
    parser = argparse.ArgumentParser(description="A profile to a table of kernels.")
    parser.add_argument("--events", type=int, default=500_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peer", default=sys.executable, help="an interpreter with xprof")
    parser.add_argument("--file", type=Path, help="a profile to read instead of those that are made here")
    parser.add_argument("--only", default="scan,train,made", help="which of them, with commas")
    parser.add_argument(
        "--smoke",
        action="store_true",
        help="one round of a small profile that is made here; the table has to come out, whatever its figures",
    )
    options = parser.parse_args()
    if options.smoke:
        options.only, options.events, options.rounds = "made", 20_000, 1
    peer = options.peer if has_xprof(options.peer) else None
    if peer is None:
        print(f"no xprof in {options.peer}: nothing to compare with (--peer PYTHON names one that has it)")
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        if options.file is not None:
            failed = compare("file", options.file, peer, options.rounds)
        for kind in options.only.split(",") if options.file is None else ():
            place = Path(folder) / kind
            place.mkdir()
            if kind == "made":
                profile = place / "made.xplane.pb"
                write_profile(profile, options.events)
            else:
                profile = record(kind, place)
            failed |= compare(kind, profile, peer, options.rounds)
    return int(failed and not options.smoke)


def compare(kind: str, profile: Path, peer: str | None, rounds: int) -> bool:
    """Prints the figures for one profile; whether it is past a limit."""
    programs = {"jaxprof": (sys.executable, _OURS.format(source=str(ROOT / "src")))}
    if peer is not None:
        programs["xprof hlo_stats"] = (peer, _PEER)
    figures: dict[str, list[dict[str, float]]] = {name: [] for name in programs}
    print(f"{kind}: {profile.stat().st_size / 1e6:.1f} MB, {rounds} rounds")
    for _ in range(rounds):
        for name, (python, program) in programs.items():
            figures[name].append(reading(python, program, profile))
    medians = {}
    for name, found in figures.items():
        seconds, size = ([one[key] for one in found] for key in ("seconds", "bytes"))
        medians[name] = (statistics.median(seconds), statistics.median(size))
        print(
            f"  {name:<16} {medians[name][0]:6.3f} s ({min(seconds):.3f}-{max(seconds):.3f})"
            f"  {medians[name][1] / 1e6:6.0f} MB beyond imports  {found[0]['found']:g}"
            f" {'ops' if name == 'jaxprof' else 'bytes of answer'}"
        )
    ours = medians["jaxprof"]
    if peer is None:
        return ours[0] > SLOWEST_SECONDS
    theirs = medians["xprof hlo_stats"]
    faster, memory = theirs[0] / ours[0], ours[1] / theirs[1]
    print(
        f"  {faster:.1f} times as fast (at least {FASTER_AT_LEAST:g}), "
        f"{memory:.2f} of its memory (at most {MEMORY_AT_MOST:g})"
    )
    return faster < FASTER_AT_LEAST or memory > MEMORY_AT_MOST


if __name__ == "__main__":
    sys.exit(main())
