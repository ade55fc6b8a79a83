"""How often the verdict about a loop is right, and holds the truth, for loops whose parts are timed by the program.

    python bench/bound.py [NAME...] [--python PYTHON] [--seconds 6] [--runs 1] [--burners 0] [--smoke] [--json FILE]

Each loop of `bench/programs/bound_loops.py` is recorded by `jaxprof script` in a process of its own, which writes
what its own clocks say: device (blocked, or computing), dispatch, host, data. A kind is right if it is the largest
part, or within 10 points of it, or if none is said and the two largest parts are so close. An interval holds the
truth if that is in it, or within 2 points of it, or of as much as the thread waited for a processor: whether it did
so after it had waited for the device no clock of a program tells. `--burners 2`: beside so many processes that burn a
core. Exits 1 where a kind is wrong in more than one of thirty, where fewer than 90 % of the intervals hold, and on
Python 3.11, where nothing may be said, only where a kind is wrong.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PLATFORMS = os.environ.get("JAX_PLATFORMS", "cpu")
LOOPS = ROOT / "bench" / "programs" / "bound_loops.py"
CLOSE, SPREAD = 0.10, 0.02
MOST_WRONG, LEAST_HELD = 1 / 30, 0.90
SMOKE = ("device_10ms", "book_in_method")


@dataclass(frozen=True, slots=True)
class Judged:
    """One run of one loop."""

    name: str
    parts: dict[str, float]
    kind: str | None
    low: float | None
    high: float | None
    reason: str
    codes: list[str]
    delayed: float
    """The share of the time in which the loop's thread was ready to run, and others had the processors."""
    rate: float | None
    """Steps a second that were said, over the true ones."""

    @property
    def right(self) -> str:
        """`right`, `wrong`, or `unknown`."""
        ranked = sorted(self.parts.values())
        if self.kind is None:
            return "right" if ranked[-1] - ranked[-2] < 2 * CLOSE else "unknown"
        return "right" if self.true_share > ranked[-1] - CLOSE else "wrong"

    @property
    def true_share(self) -> float:
        """Share of the part that was said to bound the loop; a wait is a piece of the host's."""
        part = (self.kind or "").removesuffix("-bound")
        return self.parts.get("host" if part == "wait" else part, 0.0)

    @property
    def holds(self) -> bool | None:
        if self.kind is None or self.low is None or self.high is None:
            return None
        spread = SPREAD + self.delayed
        return self.low - spread <= self.true_share <= self.high + spread


def burn(parent: int) -> None:
    while os.getppid() == parent:
        pass


def record(name: str, python: str, seconds: float, folder: Path) -> Judged:
    session, file = folder / "session.jsonl", folder / "truth.json"
    environment = {**os.environ, "JAXPROF_HOME": str(folder), "PYTHONPATH": str(ROOT / "src")}
    environment["JAX_PLATFORMS"] = PLATFORMS
    if name.startswith("sharded"):
        environment["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
    words = [str(LOOPS), name, str(seconds), str(file)]
    command = [sys.executable, "-m", "jaxprof", "script", "--plain", "--format", "json", "--python", python]
    command += ["--out", str(session), *words]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300, check=False)
    if not file.exists():
        raise SystemExit(f"{name} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    true = json.loads(file.read_text())
    answer = json.loads(done.stdout)["data"]
    said = answer["program"]["verdict"]
    codes = [finding["code"] for finding in answer["findings"]]
    first, last = true["lines"]
    steps = [step for step in answer["program"]["loops"] if step["per_second"] and first <= line(step) <= last]
    rate = max(steps, key=lambda step: step["timed_seconds"])["per_second"] / true["rate"] if steps else None
    return Judged(
        name,
        true["parts"],
        said["kind"],
        said["share_low"],
        said["share_high"],
        said["reason"] or "",
        codes,
        true["delayed"],
        rate,
    )


def line(step: dict[str, Any]) -> int:
    """The line of the program at which a loop stands; 0 if it is elsewhere."""
    file, _, number = str(step["place"]).rpartition(":")
    return int(number) if file.endswith(LOOPS.name) and number.isdigit() else 0


def row(one: Judged) -> str:
    parts = " ".join(f"{name} {share:.0%}" for name, share in one.parts.items() if share >= 0.005)
    between = f"{one.low:.0%}-{one.high:.0%}" if one.low is not None and one.high is not None else one.reason[:60]
    held = {None: "-", True: "holds", False: "MISSES"}[one.holds]
    rate = f"{one.rate:.2f}" if one.rate else "-"
    said = f"{one.delayed:>5.0%}  {one.kind or 'unknown':<16}{between:<12} {one.right:<8}{held:<7}{rate:>5}"
    return f"{one.name:<22}{parts:<52}{said}  {', '.join(one.codes)}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--burners", type=int, default=0)
    parser.add_argument(
        "--smoke", action="store_true", help="two loops, for two seconds each; the table has to come out"
    )
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    code = f"import sys, json; sys.path.insert(0, {str(LOOPS.parent)!r}); import bound_loops as made; "
    code += "print(json.dumps(list(made.LOOPS)))"
    known = json.loads(subprocess.run([args.python, "-c", code], capture_output=True, text=True, check=True).stdout)
    names = args.names or (SMOKE if args.smoke else known)
    code = "import sys; print(sys.version_info >= (3, 12))"
    timed = subprocess.run([args.python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    burners = [multiprocessing.Process(target=burn, args=(os.getpid(),), daemon=True) for _ in range(args.burners)]
    for burner in burners:
        burner.start()
    judged = []
    for name in names * args.runs:
        with tempfile.TemporaryDirectory() as folder:
            judged.append(record(name, args.python, 2.0 if args.smoke else args.seconds, Path(folder)))
        print(row(judged[-1]), flush=True)
    for burner in burners:
        burner.terminate()
    if args.json:
        args.json.write_text(json.dumps([asdict(one) for one in judged], indent=1))
    counts = {word: sum(one.right == word for one in judged) for word in ("right", "unknown", "wrong")}
    held = [one.holds for one in judged if one.holds is not None]
    print(f"{counts}; {sum(held)} of {len(held)} intervals hold the truth")
    if args.smoke:
        return 0
    if timed == "False":
        return int(counts["wrong"] > 0)
    missed = counts["wrong"] + counts["unknown"]
    return int(missed > max(1, MOST_WRONG * len(judged)) or sum(held) < LEAST_HELD * len(held))


if __name__ == "__main__":
    sys.exit(main())
