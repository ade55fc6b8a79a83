"""Records the sessions that the pictures show: `python screenshots/record.py [--widest SHARE] [NAME...]` (ten minutes).

They are kept in `sessions/` beside this script, so that pictures are drawn anew without measuring anew. It wants a
machine that does nothing else: a run whose median is not known within SHARE (0.1 unless told) is refused, and recorded
again a few times. A wider one is for a machine that is shared and never quiet: pictures of today's screens with wide
intervals say more than those of yesterday's.
The paths of the clone and of its environment are in the sessions, so it wants a clone below /home/me.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).resolve().parent
SESSIONS = HERE / "sessions"
HOME = Path("/home/me")
FOLDER = HOME / "transformer"
"""Where the programs of the pictures are: the name on them."""
MOST_TRIALS = 4
CEILINGS = ("gemm-peak", "triad")
"""What the roofline's roofs are made of: the fastest call of each counts there, so no width is asked of them."""
COMPARED = ("selu", "layernorm", "mlp-train-step", "train.py:train_step")


def jaxprof(*words: str) -> str:
    """Run a command in `FOLDER`, and return what it prints."""
    command = [str(Path(sys.executable).with_name("jaxprof")), *words]
    return subprocess.run(command, check=True, cwd=FOLDER, stdout=subprocess.PIPE, text=True).stdout


def noisy(path: Path, widest: float) -> list[str]:
    """Return the runs of a session whose medians have an interval wider than ± `widest`, a share of them."""
    found = []
    for run in json.loads(jaxprof("open", str(path), "--format", "json"))["data"]["runs"]:
        times = run["phases"].get("run", {})
        if run["workload"] in CEILINGS or times.get("ci95_low_seconds") is None:
            continue
        width = (times["ci95_high_seconds"] - times["ci95_low_seconds"]) / 2 / times["median_seconds"]
        if width > widest or any(warning["code"] == "busy_machine" for warning in run["warnings"]):
            found.append(f"{run['workload']} {run['variant']} ± {width:.0%}")
    return found


def record_runs(path: Path) -> None:
    """Record workloads and the example's step, with the ceilings of this machine for the roofline."""
    jaxprof("run", *CEILINGS, *COMPARED, "--launches", "6", "--budget", "4", "--out", str(path))


def record_sweep(path: Path) -> None:
    """Record selu over a range of sizes."""
    sizes = ("--sweep", "n=1e2..1e7:6", "--launches", "6")
    jaxprof("run", "selu", "--variant", "jit", *sizes, "--no-capture", "--out", str(path))


def record_program(path: Path) -> None:
    """Record the example as a program, with the kernels of some steps."""
    jaxprof("script", "--plain", "--capture-steps", "5", "--out", str(path), "train.py")


def record_job(path: Path) -> None:
    """Record a job of four processes, of which one makes its input more slowly."""
    jaxprof("script", "-n", "4", "--out", str(path), "data_parallel.py", "--slow", "2", "--steps", "500")


RECORDED: dict[str, Callable[[Path], None]] = {
    "transformer.jaxprof": record_runs,
    "sweep.jaxprof": record_sweep,
    "train.jaxprof": record_program,
    "data_parallel.jaxprof.d": record_job,
}


def keep(name: str, widest: float) -> None:
    """Record one session, until its medians are known. Exits if they are not after some trials."""
    for _ in range(MOST_TRIALS):
        path = FOLDER / name
        RECORDED[name](path)
        too_wide = noisy(path, widest) if path.is_file() else []
        if not too_wide:
            print(f"{name}: kept")
            kept = SESSIONS / name
            shutil.rmtree(kept, ignore_errors=True)
            SESSIONS.mkdir(exist_ok=True)
            shutil.move(path, kept)
            return
        print(f"{name}: again, for {', '.join(too_wide)}", flush=True)
        path.unlink()
    sys.exit(f"{name} is not kept: this machine is too busy")


def main() -> None:
    """Record all sessions, or those that are named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(RECORDED)}")
    parser.add_argument("--widest", type=float, default=0.1, metavar="SHARE", help="of a median, half its interval")
    words = parser.parse_args()
    if unknown := set(words.names) - set(RECORDED):
        parser.error(f"there is no {', '.join(sorted(unknown))}; there are {', '.join(RECORDED)}")
    if not HERE.is_relative_to(HOME) or not Path(sys.executable).is_relative_to(HOME):
        sys.exit(f"record from a clone below {HOME}, with its environment: the sessions have these paths in them")
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    os.environ["JAXPROF_HOME"] = str(FOLDER / ".jaxprof")
    shutil.copy(HERE.parent / "examples" / "transformer.py", FOLDER / "train.py")
    shutil.copy(HERE.parent / "examples" / "data_parallel.py", FOLDER)
    try:
        for name in words.names or RECORDED:
            keep(name, words.widest)
    finally:
        shutil.rmtree(FOLDER)


if __name__ == "__main__":
    main()
