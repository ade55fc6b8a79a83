"""Whether the times of a loop's ops in CPU profiles are those of their own intervals, and as many as the loop has.

    python bench/loops.py [--only fori,sort] [--busy N] [--smoke]

XLA:CPU goes on with a loop in another thread, in the middle of an iteration, so an op of the body may have no `while`
around it. Each program is recorded in a process of its own, beside `--busy` others that keep the cores busy, so that
loops move. `jax.profiler.ProfileData` then gives the intervals of each op: how many there are, their sum and their
median are held against jaxprof's (5 %), and their number against how often the program runs the op, which each case
states. Prints a row for each program; exits 1 past a limit. `--smoke`: one program.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

from jaxprof.base.units import percent, seconds  # noqa: E402
from jaxprof.trace.sources import read_file  # noqa: E402
from jaxprof.trace.summary import op_times  # noqa: E402

TOLERANCE, CALLS = 0.05, 4
CASES = {
    # the program, and how often one call runs the op with this name
    "fori": ("lax.fori_loop(0, 30, lambda i, x: jnp.tanh(x @ w), x)", {"tanh": 30}),
    "while": (
        "lax.while_loop(lambda s: (s[0] < 25) & (s[1].sum() > -1e9), lambda s: (s[0] + 1, jnp.sin(s[1] @ w)), (0, x))",
        {"sin": 25},
    ),
    "nested": (
        "lax.fori_loop(0, 6, lambda i, x: lax.fori_loop(0, 5, lambda j, y: jnp.tanh(y @ w), x) + 1, x)",
        {"tanh": 30},
    ),
    "two": (
        "lax.fori_loop(0, 13, lambda i, y: jnp.exp(-jnp.abs(y @ w)), "
        "lax.fori_loop(0, 11, lambda i, y: jnp.tanh(y @ w), x))",
        {"tanh": 11, "exp": 13},
    ),
    "scan": ("lax.scan(lambda c, r: (jnp.tanh(c @ w + r), c.sum()), x, x[:20])", {"tanh": 20}),
    "gradient": (
        "jax.grad(lambda x: lax.scan(lambda c, _: (jnp.tanh(c @ w), c.sum()), x, None, length=20)[1].sum())(x)",
        {"tanh": 20},
    ),
    "sort": ("lax.fori_loop(0, 7, lambda i, y: jnp.sort(jnp.sin(y * 1.3), axis=-1), jnp.sort(x, axis=0))", {"sin": 7}),
    "branches": (
        "lax.fori_loop(0, 24, lambda i, x: lax.cond("
        "i % 3 == 0, lambda x: jnp.tanh(x @ w), lambda x: jnp.sort(x, axis=1), x), x)",
        {"tanh": 8, "sort": 16},
    ),
    "convolution": (
        "lax.fori_loop(0, 9, lambda i, y: lax.conv_general_dilated("
        "y, jnp.ones((8, 8, 3, 3)) * 1e-2, (1, 1), 'SAME'), x[:256].reshape(4, 8, 64, 64))",
        {"conv": 9},
    ),
    "library": (
        "lax.fori_loop(0, 5, lambda i, y: jnp.linalg.cholesky(y @ y.T * 1e-4 + 10 * jnp.eye(512)), x)",
        {"cholesky": 5},
    ),
    "fft": ("lax.fori_loop(0, 8, lambda i, y: jnp.abs(jnp.fft.fft2(y)).astype(jnp.float32) * 1e-3, x)", {"fft": 8}),
}
PROGRAM = """
import sys, jax, jax.numpy as jnp
from jax import lax
w, x = jnp.ones((512, 512)) * 1e-3, jnp.ones((512, 512)) * 0.5
f = jax.jit(lambda x: {code})
jax.block_until_ready(f(x))
options = jax.profiler.ProfileOptions()
options.python_tracer_level = 0
jax.profiler.start_trace(sys.argv[1], profiler_options=options)
jax.block_until_ready([f(x) for _ in range({calls})])
jax.profiler.stop_trace()
"""
BUSY = "while True: pass"


def intervals(path: Path) -> tuple[dict[str, list[float]], dict[str, set[str]]]:
    """Return the seconds of the intervals of each op, and the threads that it ran on."""
    from jax.profiler import ProfileData

    took: dict[str, list[float]] = defaultdict(list)
    threads: dict[str, set[str]] = defaultdict(set)
    for plane in ProfileData.from_file(str(path)).planes:
        for line in plane.lines:
            for event in line.events:
                if not event.name.startswith("end: ") and (op := dict(event.stats).get("hlo_op")):
                    took[str(op)].append(event.duration_ns / 1e9)
                    threads[str(op)].add(line.name)
    return took, threads


def check(name: str, busy: int) -> list[str]:
    """Record a program, print its row, and return what is wrong."""
    code, expected = CASES[name]
    wrong: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        others = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(busy)]
        try:
            command = [sys.executable, "-c", PROGRAM.format(code=code, calls=CALLS), folder]
            subprocess.run(command, check=True, capture_output=True)
        finally:
            for other in others:
                other.kill()
                other.wait()
        (path,) = Path(folder).glob("plugins/profile/*/*.xplane.pb")
        took, threads = intervals(path)
        rows = {row.name: row for row in op_times(read_file(path))}
    worst = 0.0
    for op, each in took.items():
        row = rows[op]
        for part, times in expected.items():
            if (op.startswith(part) or f"_{part}" in op) and row.count != times * CALLS:
                wrong.append(f"{name}: {op} ran {times * CALLS} times, and {row.count} are counted")
        pairs = [(row.total_seconds, sum(each))]
        if row.count == len(each):
            pairs.append((row.median_seconds, statistics.median(each)))
        elif not op.startswith("sort"):  # which copies its operands first, an interval of its own
            wrong.append(f"{name}: {op} has {len(each)} intervals, and {row.count} are counted")
        for ours, theirs in pairs:
            off = abs(ours - theirs) / theirs if theirs else 0.0
            worst = max(worst, off)
            if off > TOLERANCE and theirs > 1e-6:
                wrong.append(f"{name}: {op} took {seconds(theirs)}, and {seconds(ours)} is said")
    moved = sum(len(lines) > 1 for lines in threads.values())
    longest = max(rows.values(), key=lambda row: row.self_seconds)
    print(f"{name:<12} {len(took):>4} ops, {moved:>3} on several threads, {percent(worst):>8} off at most; "
          f"longest {longest.name}: {longest.count} times {seconds(longest.median_seconds)}", flush=True)  # fmt: skip
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="programs, separated by commas")
    parser.add_argument("--busy", type=int, default=2, help="processes that keep the cores busy")
    parser.add_argument("--smoke", action="store_true")
    options = parser.parse_args()
    names = options.only.split(",") if options.only else list(CASES)[: 1 if options.smoke else None]
    wrong = [problem for name in names for problem in check(name, options.busy)]
    print("\n".join(wrong) or f"{len(names)} programs: every op as its intervals say")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
