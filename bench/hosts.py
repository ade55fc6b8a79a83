"""Which process of a job jaxprof calls late, where one was made so, and where none was; and what recording costs.

    python bench/hosts.py [--kinds none,data,host,recompile,compute,stop,raise,kill] [--jobs 20] [--processes 2,4,8]
                          [--seconds 15] [--overhead 10] [--smoke]
    python bench/hosts.py --hang [--kinds sleep,stop,none] [--jobs 2] [--processes 4,1]

Each job is `bench/programs/job.py`, started by `jaxprof script -n`, with one process that is late (another one each
time). A row has how many jobs named that process and no other, how many of them with the right reason, and how many
named another one. `--seconds`: how long the loop of a job without a late process takes; own work is compared from 3 s
on. `compute` is told by captures; the jobs of that kind, and of `none`, have one.

`--overhead` jobs are run with and without recording, in turns: the median of the ratios of the loop's seconds, with the
quartiles. A job without recording is started with the same variables by the same launcher.

`--hang`: jobs of `bench/programs/hang.py` in which one process hangs, or which are healthy, and single programs. A row
has how many were said to stand still because of that process, at that line, and how long after the last step at most;
then how long they took to end after ctrl+c. It exits 1 where a healthy one is said to stand still, or a hang is said of
another process, or not within a minute.

Exits 1 where a process is named that is not late, or one that is late is not named with the right reason in nine of ten
jobs. It needs a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

from jaxprof.base.errors import FileRefusedError  # noqa: E402
from jaxprof.events.finding import Finding  # noqa: E402
from jaxprof.findings.program_result import program_result  # noqa: E402
from jaxprof.jobs.findings import JobFigures  # noqa: E402
from jaxprof.jobs.job import read_job_figures  # noqa: E402
from jaxprof.runner.job_launch import JobLaunch  # noqa: E402
from jaxprof.session import Session, load  # noqa: E402

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
HANGING = ROOT / "bench" / "programs" / "hang.py"
HANGS = [
    "sleep",
    "lock",
    "fifo",
    "queue",
    "skip",
    "order",
    "compile",
    "stop",
    "gc",
    "cond",
    "checkpoint",
    "gil",
    "endless",
    "exit",
]
HEALTHY = ["none", "evaluation", "first_compile", "pause"]
OF_A_JOB = ("skip", "order", "cond", "endless", "exit")
"""Hangs that need others."""
HANG_STEPS = 300
SAID_WITHIN_SECONDS = 60.0
LONGEST_SECONDS = 150.0
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


@dataclass
class Hang:
    """What was said of one job, and when."""

    right: bool = False
    at_line: bool = False
    wrong: str = ""
    seconds: float | None = None
    """How long after the last step it was said."""
    ended_seconds: float = 0.0
    """How long the job took to end after ctrl+c."""


def watched(kind: str, late: int, processes: int, folder: Path) -> Hang:
    """Start a job of that kind, look at its folder until it is said to stand still or has ended, and end it."""
    out = folder / f"{kind}-{late}-{time.monotonic_ns()}.jaxprof{'.d' if processes > 1 else ''}"
    count = ["-n", str(processes)] if processes > 1 else []
    job = subprocess.Popen(
        [sys.executable, "-m", "jaxprof", "script", "--plain", *count, "--out", str(out), str(HANGING), kind,
         str(late), str(HANG_STEPS if processes > 1 else 20 * HANG_STEPS)],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=_environment(), start_new_session=True,
    )  # fmt: skip
    seen, until = Hang(), time.monotonic() + LONGEST_SECONDS
    comment = f"hangs: {'skip' if kind in ('cond', 'exit') else kind}"  # at which the others wait
    lines = {number for number, text in enumerate(HANGING.read_text().splitlines(), 1) if comment in text}
    while job.poll() is None and time.monotonic() < until and seen.seconds is None and not seen.wrong:
        time.sleep(2)
        for index, line, seconds, message in _said(out, processes):
            named = index == late or (processes == 1 and kind in HANGS)
            if kind in HEALTHY or not named:
                seen.wrong = message
            else:
                seen.right, seen.at_line, seen.seconds = True, line in lines, seconds
                if not seen.at_line:
                    print(f"  {kind}: {message}", flush=True)
    began = time.monotonic()
    while job.poll() is None and time.monotonic() < began + 60:
        os.killpg(job.pid, signal.SIGINT)
        try:
            job.wait(15)
        except subprocess.TimeoutExpired:
            continue
    seen.ended_seconds = time.monotonic() - began
    if job.poll() is None:
        os.killpg(job.pid, signal.SIGKILL)
        seen.wrong = seen.wrong or "ctrl+c did not end it"
    return seen


def _said(out: Path, processes: int) -> list[tuple[int | None, int | None, float, str]]:
    """Process, line, seconds since the last step and message of each standstill that is said now."""
    try:
        if processes == 1:
            session = load(out, Session)
            result = program_result(session, next(iter(session.programs)).id)
            state = result.standstill
            return (
                [(0, state.at.line, state.seconds, state.text())] if state is not None and result.stands_still else []
            )
        job = read_job_figures(out)
    except (FileRefusedError, StopIteration):
        return []
    longest = max((each.standstill.seconds for each in job.processes if each.standstill is not None), default=0.0)
    return [
        (each.index, _line_of(job, each), longest, each.message)
        for each in job.findings
        if each.code in ("process_standstill", "process_awaited")
    ]


def _line_of(job: JobFigures, finding: Finding) -> int | None:
    """The line of the finding; of a process that has ended that at which the others wait."""
    if finding.where is not None:
        return finding.where.line
    lines = Counter(each.standstill.at.line for each in job.processes if each.standstill is not None)
    return lines.most_common(1)[0][0] if lines else None


def judge_hangs(kind: str, jobs: int, processes: int, folder: Path) -> bool:
    """Run the jobs of one kind, and print their row; whether it is as it has to be."""
    all_seen = [watched(kind, number % processes, processes, folder) for number in range(2, 2 + jobs)]
    for seen in all_seen:
        if seen.wrong:
            print(f"  {kind}: {seen.wrong}", flush=True)
    right, lines = sum(seen.right for seen in all_seen), sum(seen.at_line for seen in all_seen)
    latest = max((seen.seconds for seen in all_seen if seen.seconds is not None), default=None)
    wrong, ended = sum(bool(seen.wrong) for seen in all_seen), max(seen.ended_seconds for seen in all_seen)
    after = f"{latest:.0f}" if latest is not None else "-"
    print(f"{kind:14}{processes:10}{jobs:6}{right:8}{lines:6}{after:>8}{wrong:8}{ended:10.1f}", flush=True)
    return not wrong and (kind in HEALTHY or (right == jobs and latest is not None and latest <= SAID_WITHIN_SECONDS))


def run_hangs(given: argparse.Namespace) -> int:
    passed = True
    kinds = [*HANGS, *HEALTHY] if given.kinds == ",".join(EXPECTED) else given.kinds.split(",")
    print(f"{'kind':14}{'processes':>10}{'jobs':>6}{'right':>8}{'line':>6}{'after s':>8}{'wrong':>8}{'ended s':>10}")
    signal.signal(signal.SIGINT, signal.default_int_handler)  # not ignored, as of a process in the background
    with tempfile.TemporaryDirectory() as place:
        for processes in map(int, given.processes.split(",")):
            for kind in kinds:
                if processes > 1 or kind not in OF_A_JOB:
                    passed &= judge_hangs(kind, given.jobs, processes, Path(place))
    return int(not passed)


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
    parser.add_argument("--hang", action="store_true", help="jobs and programs that hang, and healthy ones")
    given = parser.parse_args()
    if given.hang:
        return run_hangs(given)
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
