"""Which process of a job jaxprof calls late, where one was made so, and where none was; and what recording costs.

    python bench/hosts.py [--kinds none,data,host,recompile,compute,stop,raise,kill] [--jobs 20] [--processes 2,4,8]
                          [--seconds 15] [--overhead 10] [--smoke]

Each job is `bench/programs/job.py`, started by `jaxprof script -n`, with one process that is late (another one each
time). A row has how many jobs named that process and no other, how many of them with the right reason, and how many
named another one. `--seconds`: how long the loop of a job without a late process takes; own work is compared from 3 s
on. `compute` is told by captures; the jobs of that kind, and of `none`, have one.

`--overhead` jobs are run with and without recording, in turns: the median of the ratios of the loop's seconds, with the
quartiles. A job without recording is started with the same variables by the same launcher.

Exits 1 where a process is named that is not late, or one that is late is not named with the right reason in nine of ten
jobs. It needs a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

from jaxprof.runner.job_launch import JobLaunch  # noqa: E402

PROGRAM = ROOT / "bench" / "programs" / "job.py"
EXPECTED = {
    "none": set(),
    "data": {("straggler", "data")},
    "host": {("straggler", "host")},
    "recompile": {("recompiles_alone", "compile")},
    "compute": {("slow_device", "device")},
    "stop": {("process_paused", "")},
    "raise": {("process_failed", "")},
    "kill": {("process_failed", "")},
}
"""What is a right answer."""
CALIBRATED_WITH = 200
"""Steps of the job that says how long a step takes."""


def recorded(kind: str, late: int, processes: int, steps: int, folder: Path) -> tuple[dict[str, Any], float | None]:
    """The answer of `jaxprof open`, and the seconds of the loop; None without them."""
    out = folder / f"{kind}-{late}-{time.monotonic_ns()}.jaxprof.d"
    options = ["--capture-after", "5s", "--capture-steps", "100"] if kind in ("none", "compute") else []
    command = [sys.executable, "-m", "jaxprof", "script", "-n", str(processes), "--out", str(out), *options]
    done = subprocess.run(
        [*command, str(PROGRAM), kind, str(late), str(steps)],
        capture_output=True, text=True, check=False, env=_environment(),
    )  # fmt: skip
    shown = subprocess.run(
        [sys.executable, "-m", "jaxprof", "open", str(out), "--format", "json", "--full"],
        capture_output=True, text=True, check=False, env=_environment(),
    )  # fmt: skip
    if shown.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stderr}\n{shown.stderr}")
    return json.loads(shown.stdout)["data"], _loop(done.stdout)


def plain(processes: int, steps: int) -> float | None:
    """The seconds of the loop without recording."""
    with tempfile.TemporaryFile() as output:
        launch = JobLaunch(
            [sys.executable, str(PROGRAM), "none", "0", str(steps)], processes, "bench", output=output.fileno()
        )
        launch.wait(lambda index, code: None, lambda line: None)
        output.seek(0)
        return _loop(output.read().decode())


def _loop(text: str) -> float | None:
    found = [line.split()[-1] for line in text.splitlines() if "loop " in line]
    return float(found[-1]) if found else None


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT / "src")}


def judged(kind: str, jobs: int, processes: int, steps: int, folder: Path) -> bool:
    """Runs the jobs of one kind, and prints their row; whether it is as it has to be."""
    right = reasons = wrong = 0
    began = time.monotonic()
    for number in range(jobs):
        late = number % processes
        data, _ = recorded(kind, late, processes, steps, folder)
        named = {(each["code"], each["part"] or "", each["process"]) for each in data["findings"]}
        named = {each for each in named if each[0] != "failed_after" and each[2] is not None}
        others = {each for each in named if kind == "none" or each[2] != late}
        right += not others and bool(named) == (kind != "none")
        reasons += not others and any((code, part) in EXPECTED[kind] for code, part, _ in named)
        wrong += bool(others)
        for code, part, index in sorted(others):
            print(f"  {kind}, {late} of {processes} is late: {code} {part} of {index}", flush=True)
        if not others and kind != "none" and not any((code, part) in EXPECTED[kind] for code, part, _ in named):
            print(f"  {kind}, {late} of {processes} is late: {sorted(named) or 'nobody is named'}", flush=True)
    took = (time.monotonic() - began) / jobs
    reason = "" if kind == "none" else reasons
    print(f"{kind:12}{processes:10}{jobs:6}{right:8}{reason:>8}{wrong:8}{took:10.1f}", flush=True)
    return wrong == 0 and (right if kind == "none" else reasons) >= 0.9 * jobs


def overhead(pairs: int, processes: int, steps: int, folder: Path) -> None:
    """Prints the ratio of the loop's seconds with and without recording."""
    ratios = []
    for _ in range(pairs):
        without = plain(processes, steps)
        _, beside = recorded("data", -1, processes, steps, folder)
        if without and beside:
            ratios.append(beside / without)
    if len(ratios) > 1:
        low, middle, high = statistics.quantiles(ratios, n=4)
        print(f"recording: {middle:.3f} times the loop ({low:.3f} to {high:.3f}) of {len(ratios)} pairs of {processes}")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kinds", default=",".join(EXPECTED))
    parser.add_argument("--jobs", type=int, default=20)
    parser.add_argument("--processes", default="2,4,8")
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--overhead", type=int, default=10)
    parser.add_argument(
        "--smoke", action="store_true", help="one job of two processes; the table has to come out, whatever its figures"
    )
    given = parser.parse_args()
    if given.smoke:
        given.kinds, given.jobs, given.processes, given.seconds, given.overhead = "none", 1, "2", 0.5, 0
    passed = True
    with tempfile.TemporaryDirectory() as place:
        print(f"{'kind':12}{'processes':>10}{'jobs':>6}{'right':>8}{'reason':>8}{'wrong':>8}{'seconds':>10}")
        for processes in map(int, given.processes.split(",")):
            each = (plain(processes, CALIBRATED_WITH) or 1.0) / CALIBRATED_WITH
            steps = max(CALIBRATED_WITH, round(given.seconds / each))
            for kind in filter(None, given.kinds.split(",")):
                passed &= judged(kind, given.jobs, processes, steps, Path(place))
            overhead(given.overhead, processes, steps, Path(place))
    return int(not passed and not given.smoke)


if __name__ == "__main__":
    raise SystemExit(main())
