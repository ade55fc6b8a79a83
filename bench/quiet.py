"""Whether `jaxprof run` says anything false of a machine that does nothing else, and whether a row agrees with itself.

    python bench/quiet.py [--only matmul,selu] [--rounds 3] [--json FILE] [--smoke]

`jaxprof run WORKLOAD` by default, again and again. Two things are counted:

- runs that have the warning `busy_machine`. The peer is a count from outside: what all processes of the machine used
  meanwhile, without jaxprof and its children. A warning is false where others used less than half of what it takes;
- speed-ups whose interval does not hold the ratio of the two medians in the same table, and whose row does not say why.

Prints a row for each run; exits 1 where one warning is false, or one row contradicts itself. On a busy machine the rows
in which others were busy indeed do not count. `--smoke`: one short run of one workload, which has no limits.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

import psutil  # noqa: E402

from jaxprof.analysis.speedup import BUSY_SHARE  # noqa: E402
from jaxprof.units import seconds as shown  # noqa: E402

WORKLOADS = "matmul,selu,reduce,sort,fft,layernorm,attention,mlp-train-step"
SAID = {"busy_machine", "disturbed", "speedup_differs"}
"""Warnings that say of a row what the machine did, or why its speed-up is not the ratio of its medians."""


def measured(workload: str, options: list[str]) -> tuple[list[dict[str, Any]], float]:
    """The runs of `jaxprof run WORKLOAD`, and how many cores others used meanwhile."""

    def used() -> tuple[float, float]:
        machine, own = psutil.cpu_times(), os.times()
        busy = machine.user + machine.nice + machine.system + machine.irq + machine.softirq + machine.steal
        return busy, own.user + own.system + own.children_user + own.children_system

    began, before = time.monotonic(), used()
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-m", "jaxprof", "run", workload, *options, "--format", "json"],
            env={**os.environ, "JAXPROF_HOME": folder, "PYTHONPATH": str(ROOT / "src")},
            stdout=subprocess.PIPE,
            check=True,
        )
    machine, own = (now - then for now, then in zip(used(), before, strict=True))
    return json.loads(done.stdout)["data"]["runs"], max(0.0, machine - own) / (time.monotonic() - began)


def main() -> int:
    """Prints the table; gives the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=WORKLOADS, help="names of workloads")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, help="every run as data")
    parser.add_argument("--smoke", action="store_true")
    args = parser.parse_args()
    options = ["--no-capture"]
    if args.smoke:
        args.only, args.rounds, options = "selu", 1, [*options, "--budget", "0.3", "--launches", "1"]
    enough = BUSY_SHARE * (os.cpu_count() or 1)
    runs = warned = false = compared = outside = silent = 0
    kept = []
    print(f"{'workload':15}{'variant':10}{'others, said':>13}{'counted':>9}   median, speed-up")
    for workload in args.only.split(",") * args.rounds:
        found, others = measured(workload, options)
        kept += found
        medians = {run["run"]: run["phases"]["run"]["seconds"] for run in found}
        for run in found:
            codes = {warning["code"] for warning in run["warnings"]}
            words = []
            runs += 1
            if "busy_machine" in codes:
                warned += 1
                false += others < enough / 2
                words.append("busy" if others >= enough / 2 else "called busy, and was not")
            versus = run.get("versus")
            speedup = ""
            if versus and versus["speedup_low"] is not None:
                ratio = medians[versus["baseline_run"]] / medians[run["run"]]
                speedup = f"{versus['speedup']:.2f} ({versus['speedup_low']:.2f}-{versus['speedup_high']:.2f})"
                compared += 1
                if not versus["speedup_low"] <= ratio <= versus["speedup_high"]:
                    outside += 1
                    silent += not codes & SAID
                    words.append(f"medians say {ratio:.2f}{'' if codes & SAID else ', and the row does not say why'}")
            said = run["environment"]["settings"].get("other_busy_cores")
            print(
                f"{workload:15}{run['variant']:10}{'-' if said is None else f'{said:.2f}':>13}{others:>9.2f}   "
                f"{shown(medians[run['run']])}  {speedup}  {'; '.join(words)}",
                flush=True,
            )
        if args.json:
            args.json.write_text(json.dumps(kept))
    print(f"{runs} runs, {warned} called busy, of which {false} falsely")
    print(f"{compared} speed-ups, {outside} beside the ratio of their medians, of which {silent} without a word")
    return int(not args.smoke and bool(false or silent))


if __name__ == "__main__":
    sys.exit(main())
