"""How often jaxprof is right about programs whose difference is known, alone and beside a neighbour, on this machine.

    python bench/verdict.py [--ways run,ab,gate,peers] [--kinds again,slower-10,slower-30] [--sessions 20] [--together]
                            [--neighbour] [--workloads matmul,sines,sorting] [--smoke]

The programs of `bench/programs/verdict_pairs.py` are compared with themselves, and with ones that take 10 % and 30 %
more steps. With `--neighbour`, a process of its own burns one core, then two, in irregular bursts of 50 to 800 ms, all
the while. The ways are

- *run*: variants of a workload beside its baseline, as `jaxprof run` has them by default;
- *ab*: two files, as `jaxprof compare` compares them by default;
- *gate*: two files, `jaxprof gate --fail-on run:2%`; exceeded reads as slower, within as the same;
- *peers*: five processes for one file, then five for the other, each of one warm-up and three values of 0.1 s, and what
  three tools say of these times: an i.i.d. bootstrap of the calls' medians (*bootstrap*), Student's two-sample t test
  over the values at 95 % (*pyperf*'s `compare_to`), the ratio of the means ± its propagated standard deviation
  (*hyperfine*, read as a verdict where 1 lies outside).

Each comparison is a session of its own. With `--together`, a program is compared with itself three times in each
session, as three sides. The rule of the gate is applied to what `ab` measured, too; the way *gate* runs the command.

A row has, for each way and workload, how often the same program was called faster or slower, and the same; how often
10 % and 30 % more work was called slower; how often the interval held the truth; the median half width and seconds.
The truth is what a loop by hand takes, in three fresh processes before all sessions: entering and leaving a call costs
some steps, so that 30 % more steps of `sines` are 28 % more time.

Twenty sessions for each of three workloads are sixty comparisons of a program with itself; seven are `--together`.
Exits 1 where one of our ways calls more than 5 % of them faster or slower, finds fewer than 80 % of the planted 10 %
(beside the neighbour: 90 % of the 30 % and 60 % of the 10 %), or takes longer than a minute by more than its start. It
needs a machine that does nothing else, and up to an hour for each way. `--smoke`: one short session of `ab`, which
shows that it works, and has no limits.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import multiprocessing
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

import numpy as np  # noqa: E402

from jaxprof.analysis.runs.ab import ab_results  # noqa: E402
from jaxprof.facts.gate import read_limits  # noqa: E402
from jaxprof.findings.compare.gate import judge_times  # noqa: E402
from jaxprof.session import Session  # noqa: E402
from jaxprof.session.lines import load  # noqa: E402
from jaxprof.stats.blocks import t_quantile  # noqa: E402

PROGRAMS = ROOT / "bench" / "programs"
WORKLOADS = ("matmul", "sines", "sorting")
PLANTED = {"again": 0.0, "slower-10": 0.1, "slower-30": 0.3}
TOGETHER = ("again", "again-2", "again-3")
MOST_FALSE = 0.05
LEAST_POWER = {"slower-10": 0.8}
LEAST_POWER_BESIDE = {"slower-30": 0.9, "slower-10": 0.6}
MOST_SECONDS = 65.0
"""Of a session: a minute, and what it takes to start."""
SHORT = ("--budget", "0.5", "--launches", "1")
GATE = "run:2%"
GATE_VERDICTS = {"exceeded": "slower", "within": "same", "undecided": "inconclusive"}
BURST_SECONDS = (0.05, 0.8)
PEER_PROCESSES, PEER_SECONDS = 5, 0.1
RESAMPLES = 1000
TRUTH_PROCESSES, TRUTH_SECONDS = 3, 3.0
BYTECODE = tempfile.TemporaryDirectory(prefix="jaxprof-bytecode-")
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
ENVIRONMENT["PYTHONPYCACHEPREFIX"] = BYTECODE.name
"""All run from bytecode, as an installed package does: a process that compiles jax from its source starts 2.5 s later,
and of four launches there are three."""


@dataclass(frozen=True, slots=True)
class Compared:
    """What one way said of one program beside the baseline, in one session."""

    way: str
    workload: str
    variant: str
    verdict: str
    reason: str | None = None
    low: float | None = None
    high: float | None = None
    wall_seconds: float = 0.0
    truth: float | None = None
    """The baseline's time over the program's, by a loop by hand on the machine at rest."""

    @property
    def holds(self) -> bool | None:
        """Whether the 95 % interval holds the truth; None without an interval."""
        if self.low is None or self.high is None or self.truth is None:
            return None
        return self.low <= self.truth <= self.high


def burn(parent: int) -> None:
    """Works and rests in turn, as long as the bench lives; in half of the bursts on a second core, too."""
    chance = random.Random(1)
    while os.getppid() == parent:
        end = time.monotonic() + chance.uniform(*BURST_SECONDS)
        second = None
        if chance.random() < 0.5:
            second = multiprocessing.Process(target=spin, args=(end,), daemon=True)
            second.start()
        spin(end)
        if second is not None:
            second.join()
        time.sleep(chance.uniform(*BURST_SECONDS))


def spin(end: float) -> None:
    while time.monotonic() < end:
        pass


@contextlib.contextmanager
def neighbour(wanted: bool) -> Iterator[None]:
    if not wanted:
        yield
        return
    process = multiprocessing.Process(target=burn, args=(os.getpid(),))
    process.start()
    try:
        yield
    finally:
        process.terminate()
        process.join()


options: list[str] = []
"""Of each command, beyond its defaults."""


def output(command: Sequence[str | Path], folder: Path, codes: Sequence[int] = (0,)) -> Any:
    """What a command prints, read as JSON."""
    environment = {**ENVIRONMENT, "JAXPROF_HOME": str(folder), "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, cwd=ROOT, env=environment, check=False
    )
    if done.returncode not in codes:
        raise SystemExit(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stderr}")
    return json.loads(done.stdout)


def share_of(variant: str) -> float:
    """The share of steps that a variant takes beyond the baseline."""
    return PLANTED[kind_of(variant)]


def kind_of(variant: str) -> str:
    return "again" if variant.startswith("again") else variant


def files_of(workload: str, variants: Sequence[str], folder: Path) -> list[Path]:
    """The baseline and the variants, each as a file of a user's."""
    files = []
    for name, more in (("before", 0.0), *((variant, share_of(variant)) for variant in variants)):
        files.append(folder / f"{name.replace('-', '_')}.py")
        files[-1].write_text(
            f"import sys\nsys.path.insert(0, {str(PROGRAMS)!r})\nfrom verdict_pairs import program\n"
            f"step, step_inputs = program({workload!r}, {more})\n"
        )
    return files


def run(workload: str, variants: Sequence[str], folder: Path) -> list[Compared]:
    target = f"{PROGRAMS / 'verdict_pairs.py'}:{workload}"
    chosen = [word for variant in variants for word in ("--variant", variant)]
    said = output(["-m", "jaxprof", "run", target, *chosen, "--no-capture", *options, "--format", "json"], folder)[
        "data"
    ]
    versus = {one["variant"]: one["versus"] for one in said["runs"] if one["variant"] in variants}
    return [
        Compared("run", workload, variant, one["verdict"], one["reason"], one["speedup_low"], one["speedup_high"])
        for variant, one in ((variant, versus[variant]) for variant in variants)
    ]


def ab(workload: str, variants: Sequence[str], folder: Path) -> list[Compared]:
    targets = [f"{file}:step" for file in files_of(workload, variants, folder)]
    said = output(["-m", "jaxprof", "compare", *targets, *options, "--format", "json"], folder)["data"]
    compared = [
        Compared("ab", workload, variant, one["verdict"], one["reason"], one["speedup_low"], one["speedup_high"])
        for variant, one in zip(variants, said["versus"], strict=True)
    ]
    return compared + gate_of(Path(said["path"]), workload, variants)


def gate_of(path: Path, workload: str, variants: Sequence[str]) -> list[Compared]:
    """What the gate says of a session of `ab`: of each side as it does of its only one."""
    (compared,) = ab_results(load(path, Session))
    rows = [judge_times(GATE, replace(compared, versus=(one,)), read_limits([GATE]))[0] for one in compared.versus]
    return [
        Compared("ab's gate", workload, variant, GATE_VERDICTS[row.state], row.reason)
        for variant, row in zip(variants, rows, strict=True)
    ]


def gate(workload: str, variants: Sequence[str], folder: Path) -> list[Compared]:
    before, *files = files_of(workload, variants, folder)
    compared = []
    for variant, file in zip(variants, files, strict=True):
        options = ["--base", f"{before}:step", "--fail-on", GATE, "--format", "json"]
        said = output(["-m", "jaxprof", "gate", f"{file}:step", *options], folder, codes=(0, 3))["data"]
        (row,) = said["limits"]
        compared.append(Compared("gate", workload, variant, GATE_VERDICTS[row["state"]], row["reason"]))
    return compared


def peers(workload: str, variants: Sequence[str], folder: Path) -> list[Compared]:
    command = [PROGRAMS / "verdict_peer.py"]
    before, *after = [
        [
            np.array(block)
            for _ in range(PEER_PROCESSES)
            for block in output([*command, file, str(PEER_SECONDS)], folder)
        ]
        for file in files_of(workload, variants, folder)
    ]
    return [
        Compared(way, workload, variant, *judge((before, side)))
        for variant, side in zip(variants, after, strict=True)
        for way, judge in PEERS.items()
    ]


Sides = Sequence[Sequence[Any]]
"""Of both sides the blocks, in order, each an array of the seconds of its calls."""


def bootstrap(sides: Sides) -> tuple[str, str | None, float | None, float | None]:
    random = np.random.default_rng(3)
    calls = [np.concatenate(side) for side in sides]
    medians = [np.median(random.choice(some, (RESAMPLES, len(some))), axis=1) for some in calls]
    low, high = np.quantile(medians[0] / medians[1], [0.025, 0.975])
    return verdict_of(float(low), float(high)), None, float(low), float(high)


def pyperf(sides: Sides) -> tuple[str]:
    values = [[float(block.mean()) for block in side] for side in sides]
    first, second = map(statistics.fmean, values)
    pooled = statistics.fmean(map(statistics.variance, values))
    count = len(values[0])
    score = (first - second) / math.sqrt(2 * pooled / count)
    if abs(score) < t_quantile(0.975, 2 * count - 2):
        return ("inconclusive",)
    return ("faster" if score > 0 else "slower",)


def hyperfine(sides: Sides) -> tuple[str]:
    values = [[float(block.mean()) for block in side] for side in sides]
    first, second = map(statistics.fmean, values)
    off = math.hypot(*(statistics.stdev(side) / statistics.fmean(side) for side in values))
    return (verdict_of(first / second * (1 - off), first / second * (1 + off)),)


def verdict_of(low: float, high: float) -> str:
    return "faster" if low > 1 else "slower" if high < 1 else "inconclusive"


PEERS: dict[str, Callable[[Sides], tuple[Any, ...]]] = {
    "bootstrap": bootstrap,
    "pyperf": pyperf,
    "hyperfine": hyperfine,
}
WAYS: dict[str, Callable[[str, Sequence[str], Path], list[Compared]]] = {
    "run": run,
    "ab": ab,
    "gate": gate,
    "peers": peers,
}


def truths(workload: str) -> dict[str, float]:
    """How many times as fast as the baseline each kind is: the median over fresh processes, one after another."""
    command = [PROGRAMS / "verdict_truth.py", workload, str(TRUTH_SECONDS), *map(str, PLANTED.values())]
    took = [output(command, ROOT) for _ in range(TRUTH_PROCESSES)]
    return {kind: statistics.median(each[0] / each[number] for each in took) for number, kind in enumerate(PLANTED)}


def timed(way: str, workload: str, variants: Sequence[str], truth: dict[str, float]) -> list[Compared]:
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        compared = WAYS[way](workload, variants, Path(folder))
        wall = time.monotonic() - began
    return [replace(one, wall_seconds=wall, truth=truth.get(kind_of(one.variant))) for one in compared]


def sessions(kinds: Sequence[str], count: int, *, together: bool) -> list[Sequence[str]]:
    """The variants of each session of one workload: `count` with itself, and a quarter as many with others, if both."""
    quarter = -(-count // 4) if "again" in kinds else count
    planned: list[Sequence[str]] = []
    for kind in kinds:
        if kind == "again":
            planned += [TOGETHER if together else (kind,)] * count
        else:
            planned += [(kind,)] * quarter
    return planned


def share(compared: Sequence[Compared], *verdicts: str) -> float | None:
    return sum(one.verdict in verdicts for one in compared) / len(compared) if compared else None


def lines(workload: str, compared: Sequence[Compared]) -> Iterator[str]:
    for way in dict.fromkeys(one.way for one in compared):
        own = [one for one in compared if one.way == way]
        of = {kind: [one for one in own if kind_of(one.variant) == kind] for kind in PLANTED}
        held = [one.holds for one in own if one.holds is not None]
        halves = [(one.high / one.low) ** 0.5 - 1 for one in own if one.low and one.high]
        figures = [
            share(of["again"], "faster", "slower"),
            share(of["again"], "same"),
            share(of["slower-10"], "slower"),
            share(of["slower-30"], "slower"),
            statistics.fmean(held) if held else None,
            statistics.median(halves) if halves else None,
        ]
        shown = "".join(f"{'-' if value is None else f'{value:.1%}':>10}" for value in figures)
        seconds = statistics.median(one.wall_seconds for one in own)
        yield f"{way:10}{workload:10}{len(of['again']):>6}{shown}{seconds:>8.0f} s"


def faults(compared: Sequence[Compared], beside: bool) -> Iterator[str]:
    for way in dict.fromkeys(one.way for one in compared if one.way not in PEERS):
        own = [one for one in compared if one.way == way]
        again = [one for one in own if kind_of(one.variant) == "again"]
        if (wrong := share(again, "faster", "slower") or 0) > MOST_FALSE:
            yield f"{way}: {wrong:.0%} of {len(again)} programs beside themselves were called faster or slower"
        for planted, least in (LEAST_POWER_BESIDE if beside else LEAST_POWER).items():
            slower = [one for one in own if one.variant == planted]
            if slower and (right := share(slower, "slower") or 0) < least:
                yield f"{way}: {right:.0%} of {len(slower)} with {PLANTED[planted]:.0%} more work were called slower"
        if (took := statistics.median(one.wall_seconds for one in own)) > MOST_SECONDS:
            yield f"{way}: {took:.0f} s a session"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ways", type=lambda text: text.split(","), default=list(WAYS))
    parser.add_argument("--workloads", type=lambda text: text.split(","), default=list(WORKLOADS))
    parser.add_argument("--kinds", type=lambda text: text.split(","), default=list(PLANTED))
    parser.add_argument("--sessions", type=int, default=20, help="of each workload with itself; a quarter with others")
    parser.add_argument("--together", action="store_true", help="a program with itself three times a session")
    parser.add_argument("--neighbour", action="store_true", help="measure beside one that works in bursts")
    parser.add_argument("--json", type=Path, help="every comparison as data")
    parser.add_argument("--smoke", action="store_true")
    args = parser.parse_args()
    if args.smoke:
        args.ways, args.workloads, args.kinds, args.sessions = ["ab"], ["sines"], ["again"], 1
        options.extend(SHORT)
        del ENVIRONMENT["PYTHONPYCACHEPREFIX"]  # writing the bytecode of jax anew takes most of a small round
    for chosen, known in ((args.ways, WAYS), (args.workloads, WORKLOADS), (args.kinds, PLANTED)):
        if unknown := set(chosen) - set(known):
            parser.error(f"there is no {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    if args.sessions < 1:
        parser.error("--sessions takes a number from 1 on")
    plan = sessions(args.kinds, args.sessions, together=args.together)
    titles = "".join(f"{title:>10}" for title in ("false", "same", "10 %", "30 %", "covered", "± half"))
    print(f"{'way':10}{'workload':10}{'A/A':>6}{titles}{'median':>10}")
    compared: list[Compared] = []
    truth = {} if args.smoke else {workload: truths(workload) for workload in args.workloads}
    with neighbour(args.neighbour):
        for way in args.ways:
            ours: list[Compared] = []
            for workload in args.workloads:
                own: list[Compared] = []
                for variants in plan:
                    own += timed(way, workload, variants, truth.get(workload, {}))
                ours += own
                print(*lines(workload, own), sep="\n", flush=True)
                compared += own
                if args.json:
                    args.json.write_text(json.dumps([asdict(one) for one in compared], indent=1))
            print(*lines("all", ours), sep="\n", flush=True)
    said = [] if args.smoke else list(faults(compared, args.neighbour))
    for fault in said:
        print(fault)
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main())
