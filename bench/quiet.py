"""Whether `jaxprof run` says anything false of a machine that does nothing else, and whether a row agrees with itself.

    python bench/quiet.py [--only matmul,selu] [--rounds 3] [--smoke]

`jaxprof run WORKLOAD` by default, again and again. Two things are counted:

- runs that have the warning `busy_machine`. The peer is a count from outside: what all processes used of the usable
  processors meanwhile, without jaxprof and its children. A warning is false where that is less than half of what it
  takes;
- speed-ups whose interval does not hold the ratio of the two medians in the same table, and whose row does not say why.

Prints a row for each run; exits 1 where one warning is false, or one row contradicts itself. On a busy machine the rows
in which others were busy indeed do not count. `--smoke`: one short run of one workload, which has no limits.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

import psutil  # noqa: E402

from jaxprof.analysis.runs.run_result import RunResult, results  # noqa: E402
from jaxprof.analysis.runs.speedup import BUSY_SHARE  # noqa: E402
from jaxprof.base.units import seconds as shown  # noqa: E402
from jaxprof.session import Session  # noqa: E402
from jaxprof.session.lines import load  # noqa: E402

WORKLOADS = "matmul,selu,reduce,sort,fft,layernorm,attention,mlp-train-step"


def measured(workload: str, options: list[str]) -> tuple[list[RunResult], float]:
    """The runs of `jaxprof run WORKLOAD`, and how many cores others used meanwhile."""

    def used() -> tuple[float, float]:
        every, own = psutil.cpu_times(percpu=True), os.times()
        usable = [every[processor] for processor in os.sched_getaffinity(0)]
        busy = sum(each.user + each.nice + each.system + each.irq + each.softirq + each.steal for each in usable)
        return busy, own.user + own.system + own.children_user + own.children_system

    began, before = time.monotonic(), used()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "session.jaxprof")
        subprocess.run(
            [sys.executable, "-m", "jaxprof", "run", workload, *options, "--out", path],
            env={**os.environ, "JAXPROF_HOME": folder, "PYTHONPATH": str(ROOT / "src")},
            capture_output=True,
            check=True,
        )
        machine, own = (now - then for now, then in zip(used(), before, strict=True))
        others = max(0.0, machine - own) / (time.monotonic() - began)
        return results(load(path, Session)), others


def main() -> int:
    """Prints the table; gives the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=WORKLOADS, help="names of workloads")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--smoke", action="store_true")
    args = parser.parse_args()
    options = ["--no-capture"]
    if args.smoke:
        args.only, args.rounds, options = "selu", 1, [*options, "--budget", "0.3", "--launches", "1"]
    enough = BUSY_SHARE * len(os.sched_getaffinity(0))
    runs = warned = false = compared = outside = silent = 0
    print(f"{'workload':15}{'variant':10}{'others: said':>13}{'counted':>9}{'median':>10}   speed-up")
    for workload in args.only.split(",") * args.rounds:
        found, others = measured(workload, options)
        medians = {each.run.id: each.summary.median for each in found if each.summary is not None}
        for each in found:
            codes = {warning.code for warning in each.warnings}
            words = []
            runs += 1
            if "busy_machine" in codes:
                warned += 1
                false += others < enough / 2
                words.append("busy" if others >= enough / 2 else "called busy, and was not")
            speedup = each.versus.speedup if each.versus is not None else None
            if speedup is not None and speedup.low is not None and speedup.high is not None:
                compared += 1
                ratio = medians[each.run.plan.baseline] / medians[each.run.id]
                if not speedup.low <= ratio <= speedup.high:
                    outside += 1
                    silent += "not_of_medians" not in codes
                    why = "" if "not_of_medians" in codes else ", and the row does not say why"
                    words.append(f"medians say {ratio:.2f}{why}")
            settings = each.run.environment.settings if each.run.environment is not None else {}
            print(
                f"{workload:15}{each.run.plan.variant:10}{settings.get('other_busy_cores', '-'):>13}{others:>9.2f}"
                f"{shown(medians.get(each.run.id)):>10}   {speedup.ratio_text if speedup is not None else ''}  "
                f"{'; '.join(words)}",
                flush=True,
            )
    print(f"{runs} runs, {warned} called busy, of which {false} falsely")
    print(f"{compared} speed-ups, {outside} beside the ratio of their medians, of which {silent} without a word")
    return int(not args.smoke and bool(false or silent))


if __name__ == "__main__":
    sys.exit(main())
