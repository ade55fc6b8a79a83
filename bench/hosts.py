"""Which process of a job jaxprof calls late, where one was made so, and where none was; and what recording costs.

    python bench/hosts.py [--kinds none,data,host,recompile,compute,stop,kill] [--jobs 20] [--processes 4] [--steps 600]
                          [--overhead 10]

Each job is `bench/programs/job.py`, started by `jaxprof script -n`, with one process that is late (another one each
time). A row has how many jobs named that process, with the right reason, and how many named another one. `compute` is
told by captures; the jobs of that kind, and of `none`, have one.

`--overhead` jobs are run with and without recording, in turns: the median of the ratios of the loop's seconds, with the
quartiles. A job without recording is started with the same variables by the same launcher.

Exits 1 where a process is named that is not late, or one that is late is not named in nine of ten jobs. It needs a
machine that does nothing else; a job takes some 15 s.
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
    "data": {("straggler", "data"), ("straggler", "host")},
    "host": {("straggler", "host")},
    "recompile": {("recompiles-alone", "compile"), ("straggler", "compile")},
    "compute": {("slow-device", "device")},
    "stop": {("straggler", "host"), ("stopped", "")},
    "raise": {("process-failed", "")},
    "kill": {("process-failed", "")},
}
"""What is a right answer. Work on the host that feeds the step is `data`, where samples see that it does."""


def recorded(kind: str, late: int, processes: int, steps: int, folder: Path) -> tuple[dict[str, Any], float | None]:
    """The answer of `jaxprof show`, and the seconds of the loop; None without them."""
    out = folder / f"{kind}-{late}-{time.monotonic_ns()}.jaxprof.d"
    options = ["--capture-after", "6s", "--capture-steps", "200"] if kind in ("none", "compute") else []
    command = [sys.executable, "-m", "jaxprof", "script", "-n", str(processes), "--out", str(out), *options]
    done = subprocess.run(
        [*command, str(PROGRAM), kind, str(late), str(steps)],
        capture_output=True, text=True, check=False, env=_environment(),
    )  # fmt: skip
    shown = subprocess.run(
        [sys.executable, "-m", "jaxprof", "show", str(out), "--format", "json", "--full"],
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
        launch.wait(lambda index, code: None)
        output.seek(0)
        return _loop(output.read().decode())


def _loop(text: str) -> float | None:
    found = [line.split()[-1] for line in text.splitlines() if "loop " in line]
    return float(found[-1]) if found else None


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT / "src")}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kinds", default="none,data,host,recompile,compute,stop,kill")
    parser.add_argument("--jobs", type=int, default=20)
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--overhead", type=int, default=10)
    given = parser.parse_args()
    failed = False
    with tempfile.TemporaryDirectory() as place:
        print(f"{'kind':12}{'jobs':>6}{'right':>8}{'reason':>8}{'wrong':>8}{'seconds':>10}")
        for kind in filter(None, given.kinds.split(",")):
            right = reasons = wrong = 0
            began = time.monotonic()
            for number in range(given.jobs):
                late = number % given.processes
                data, _ = recorded(kind, late, given.processes, given.steps, Path(place))
                named = {(each["code"], each["part"], each["process"]) for each in data["findings"]}
                named = {each for each in named if each[0] != "failed-after"}
                others = {each for each in named if kind == "none" or each[2] != late}
                right += bool(named - others) or (kind == "none" and not named)
                reasons += any((code, part) in EXPECTED[kind] for code, part, _ in named - others)
                wrong += bool(others)
                for each in others:
                    print(f"  {kind}, process {late} is late: {each}", flush=True)
            each_took = (time.monotonic() - began) / given.jobs
            reason = "" if kind == "none" else reasons
            print(f"{kind:12}{given.jobs:6}{right:8}{reason:>8}{wrong:8}{each_took:10.1f}", flush=True)
            failed |= wrong > 0 or right < 0.9 * given.jobs
        ratios = []
        for _ in range(given.overhead):
            without = plain(given.processes, given.steps)
            _, beside = recorded("data", -1, given.processes, given.steps, Path(place))
            if without and beside:
                ratios.append(beside / without)
        if len(ratios) > 1:
            low, middle, high = statistics.quantiles(ratios, n=4)
            print(f"recording: {middle:.3f} times the loop ({low:.3f} to {high:.3f}) of {len(ratios)} pairs")
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
