"""Whether `jaxprof run` and `compare` say of NumPy and JAX what loops written by hand say, each in a fresh process.

    python bench/fidelity.py [--rounds 5] [--only matmul-512,selu] [--busy 0.1] [--json FILE] [--smoke]

In each round a loop by hand (`bench/programs/hand_loop.py`) measures each side alone, `jaxprof run WORKLOAD` the NumPy
twin and the compiled variant by default, `jaxprof compare` both where a case has `ab`, and then come the loops again:
whole processes in turns. The loops share the workload's functions and inputs with jaxprof, and nothing else.

What a process freed before decides how much of its memory the allocator keeps, and so how many page faults a call has.
So there are loops in three ways: with inputs drawn in float32 (`direct`), drawn in float64 and cast (`astype`), and
`direct` in a program that has freed 30 MB before (`settled`). jaxprof's figures are held against the loops of the ways
with as few page faults as its own; a line below the steady run has the faults and the time of all.

A row has a figure: its median over the rounds by hand and by jaxprof, the median of the ratios of the rounds, and
between what the loops by hand lay. The ratio may differ from 1 by 5 %; where it differs by more, jaxprof's median has
to lie between those of the loops: a product of 128×128 with both cores of a small virtual machine takes 44 µs for some
seconds and 77 for others, in a loop by hand as well. What happens once in a process (`trace` to `first_run`) and what
takes microseconds (`transfer_in`, `dispatch`, `transfer_out`) is printed, and has a limit of 25 %. Of the speed-ups,
nine intervals in ten have to hold the ratio by hand (known to what lies between those of its round and that of all),
and no verdict may contradict one that is further than 10 % from 1.

Prints the table; exits 1 past a limit. It needs a machine that does nothing else: a round in which other programs used
more than `--busy` of a core does not count, which the last line says. `--smoke`: one short round of one
case, which shows that all parts of this work, and has no limits.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

ROOT = Path(__file__).resolve().parent.parent
PLATFORMS = os.environ.get("JAX_PLATFORMS", "cpu")
sys.path.insert(0, str(ROOT / "src"))

import psutil  # noqa: E402

from jaxprof.base.units import seconds as shown  # noqa: E402

TOLERANCE, TOLERANCE_OF_OTHERS = 0.05, 0.25
CLEAR = 0.1
"""A ratio by hand that is further from 1 may not be contradicted."""
LEAST_HELD = 0.9
WAYS = ("direct", "astype", "settled")
FEW_FAULTS = 16
"""A loop by hand may have as many page faults a call more than jaxprof: they are memory that grows once."""
HAND_SECONDS = 1.0
"""For each figure of a loop by hand, before jaxprof and again after it."""
FIGURES = ("run", "transfer_in", "trace", "lower", "compile", "first_run", "dispatch", "pipelined", "transfer_out")


@dataclass(frozen=True, slots=True)
class Case:
    """A bundled workload at one size: its NumPy twin beside one compiled variant."""

    workload: str
    parameters: dict[str, int] = field(default_factory=dict)
    compiled: str = "jit"
    ab: bool = False
    """Whether `jaxprof compare` compares the two as well."""


CASES = {
    "matmul-128": Case("matmul", {"n": 128}),
    "matmul-512": Case("matmul", {"n": 512}, ab=True),
    "matmul-2000": Case("matmul", {"n": 2000}),
    "selu": Case("selu", ab=True),
    "reduce": Case("reduce"),
    "sort": Case("sort"),
    "fft": Case("fft"),
    "conv2d": Case("conv2d"),
    "scan-rnn": Case("scan-rnn", compiled="scan"),
    "attention": Case("attention"),
    "layernorm": Case("layernorm"),
    "layernorm-jax": Case("layernorm", compiled="jax"),
    "mlp-train-step": Case("mlp-train-step"),
}


Measured = TypeVar("Measured")
Figures = dict[tuple[str, str], float]
"""Seconds by (variant, figure), and page faults a call as figure `page_faults`; what is unknown has no entry."""
Loops = dict[str, Figures]
"""Figures by the way in which the inputs are drawn."""


@dataclass(frozen=True, slots=True)
class SpeedUp:
    """What one command says of the compiled variant beside NumPy."""

    way: str
    verdict: str
    low: float | None
    high: float | None
    note: str = ""

    def contradicts(self, ratio: float) -> bool:
        """Whether the verdict is another one than that of a ratio by hand which is clear."""
        if self.verdict == "inconclusive" or abs(ratio - 1) <= CLEAR:
            return False
        return self.verdict != ("faster" if ratio > 1 else "slower")


@dataclass(frozen=True, slots=True)
class Round:
    """jaxprof once, and each side by hand before and after it."""

    jaxprof: Figures
    hand: tuple[Loops, Loops]
    said: tuple[SpeedUp, ...]
    busy: float
    """Cores that other programs used meanwhile."""

    def by_hand(self, variant: str, figure: str) -> list[list[float]]:
        """The figure by the loops before and after, of the ways that have as few page faults as jaxprof, or the fewest
        of all."""

        def faults(way: str) -> float:
            return statistics.median(loops[way].get((variant, "page_faults"), 0.0) for loops in self.hand)

        few = max(self.jaxprof.get((variant, "page_faults"), 0.0), min(map(faults, WAYS))) + FEW_FAULTS
        ways = [way for way in WAYS if faults(way) <= few]
        key = variant, figure
        return [[loops[way][key] for way in ways if key in loops[way]] for loops in self.hand]


@dataclass(frozen=True, slots=True)
class Row:
    """One figure of one variant over the rounds."""

    variant: str
    figure: str
    hand: float
    jaxprof: float
    ratio: float
    low: float
    high: float
    """Between these lay the loops by hand."""

    @property
    def past(self) -> bool:
        tolerance = TOLERANCE if self.figure == "run" else TOLERANCE_OF_OTHERS
        return abs(self.ratio - 1) > tolerance and not self.low <= self.jaxprof <= self.high


def printed(command: Sequence[str | Path], folder: str) -> Any:
    """What a command of this interpreter prints, read as JSON."""
    environment = {**os.environ, "JAXPROF_HOME": folder, "PYTHONPATH": str(ROOT / "src"), "JAX_PLATFORMS": PLATFORMS}
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stderr}")
    return json.loads(done.stdout)


def cores_used(folder: str, work: Callable[[str], Measured]) -> tuple[Measured, float]:
    """What `work` returns, and how many cores other programs used meanwhile."""

    def used() -> tuple[float, float]:
        machine, own = psutil.cpu_times(), os.times()
        return sum(machine) - machine.idle - getattr(machine, "iowait", 0.0), sum(own[:4])

    began, before = time.monotonic(), used()
    result = work(folder)
    machine, own = (now - then for now, then in zip(used(), before, strict=True))
    return result, max(0.0, machine - own) / (time.monotonic() - began)


def one_round(case: Case, options: Sequence[str], hand_seconds: float) -> Round:
    """Whole processes in turns: NumPy by hand, JAX by hand, `jaxprof run`, `jaxprof compare` where the case has it,
    loops by hand again."""
    settings = [word for name, value in case.parameters.items() for word in ("--set", f"{name}={value}")]
    variants = ("numpy", case.compiled)

    def by_hand(folder: str) -> Loops:
        program = ROOT / "bench/programs/hand_loop.py"
        parameters = json.dumps({name: str(value) for name, value in case.parameters.items()})
        loops: Loops = {way: {} for way in WAYS}
        for way in WAYS:
            for variant in variants:
                loop = [program, case.workload, variant, parameters, str(hand_seconds), way]
                loops[way] |= {(variant, name): value for name, value in printed(loop, folder).items()}
        return loops

    def work(folder: str) -> tuple[Figures, tuple[Loops, Loops], tuple[SpeedUp, ...]]:
        before = by_hand(folder)
        command = ["-m", "jaxprof", "run", case.workload, "--variant", case.compiled, *settings, *options]
        runs = printed([*command, "--format", "json"], folder)["data"]["runs"]
        said = [said_by_run(run) for run in runs if run.get("versus")]
        if case.ab:
            command = ["-m", "jaxprof", "compare", *(f"{case.workload}:{variant}" for variant in variants), *settings]
            (versus,) = printed([*command, "--format", "json"], folder)["data"]["versus"]
            said.append(SpeedUp("ab", versus["verdict"], versus["speedup_low"], versus["speedup_high"]))
        ours = {key: value for run in runs for key, value in figures_of(run).items()}
        return ours, (before, by_hand(folder)), tuple(said)

    with tempfile.TemporaryDirectory() as folder:
        (ours, hand, said), busy = cores_used(folder, work)
    return Round(ours, hand, said, busy)


def said_by_run(run: dict[str, Any]) -> SpeedUp:
    versus = run["versus"]
    disturbed = any(warning["code"] == "disturbed" for warning in run["warnings"])
    low, high = versus["speedup_low"], versus["speedup_high"]
    return SpeedUp("run", versus["verdict"], low, high, "disturbed" if disturbed else "")


def figures_of(run: dict[str, Any]) -> Figures:
    """The figures of a run of the answer that the loops by hand have, too."""
    if run["status"] != "ok":
        raise SystemExit(f"{run['workload']} {run['variant']} {run['status']}: {run['error']}")
    phases = run["phases"]
    figures = {name: phases[name]["seconds"] for name in FIGURES if name in phases}
    figures |= {name: phases["run"].get(f"{name}_median_seconds") for name in ("dispatch", "pipelined")}
    figures |= {"page_faults": phases["run"]["page_faults"]}
    return {(run["variant"], name): value for name, value in figures.items() if value}


def rows(rounds: Sequence[Round]) -> Iterator[Row]:
    """The figures that both have, the steady runs first."""
    figures = [key for key in rounds[0].hand[0][WAYS[0]] if key[1] in FIGURES]
    for variant, name in sorted(figures, key=lambda key: FIGURES.index(key[1])):
        key = variant, name
        both = [
            (one.jaxprof[key], [value for half in one.by_hand(*key) for value in half])
            for one in rounds
            if key in one.jaxprof and all(one.by_hand(*key))
        ]
        if not both:
            continue
        by_hand = [value for _, hands in both for value in hands]
        yield Row(
            variant,
            name,
            hand=statistics.median(by_hand),
            jaxprof=statistics.median(ours for ours, _ in both),
            ratio=statistics.median(ours / statistics.median(hands) for ours, hands in both),
            low=min(by_hand),
            high=max(by_hand),
        )


def report(name: str, case: Case, rounds: Sequence[Round]) -> tuple[list[str], list[bool]]:
    """Prints the lines of a case; returns its faults, and of each interval whether it holds the ratio by hand."""
    faults, held = [], []
    table = list(rows(rounds))
    for row in table:
        print(
            f"{name:13}{row.variant:7}{row.figure:13}{shown(row.hand):>9}{shown(row.jaxprof):>9}{row.ratio:>8.3f}"
            f"   {shown(row.low)} to {shown(row.high)}{'  past its limit' if row.past else ''}"
        )
        if row.figure == "run":
            print(f"{'':20}page faults a call: {page_faults(rounds, row.variant)}")
        if row.past:
            faults.append(f"{name} {row.variant} {row.figure}: {row.ratio:.2f} of the loop by hand")
    numpy, compiled = (row.hand for row in table if row.figure == "run")
    ratio = numpy / compiled
    for one in rounds:
        sides = zip(one.by_hand("numpy", "run"), one.by_hand(case.compiled, "run"), strict=True)
        known = [ratio, *(statistics.median(numpy) / statistics.median(compiled) for numpy, compiled in sides)]
        for said in one.said:
            interval = "no interval"
            if said.low is not None and said.high is not None:
                interval = f"{said.low:.2f}-{said.high:.2f}"
                held.append(said.low <= max(known) and said.high >= min(known))
            if said.contradicts(ratio):
                faults.append(f"{name} {said.way}: {said.verdict}, by hand {ratio:.2f} times as fast")
            by_hand = f"{ratio:.2f}, in this round {known[1]:.2f} and {known[2]:.2f}"
            print(f"{name:13}{said.way:7}{said.verdict:13}{interval:>14}   by hand {by_hand}  {said.note}")
    return faults, held


def page_faults(rounds: Sequence[Round], variant: str) -> str:
    """Returns the page faults of jaxprof's calls, and of those by hand in each way, with their time."""

    def shown_way(way: str) -> str:
        faults, took = (
            statistics.median(loops[way][variant, figure] for one in rounds for loops in one.hand)
            for figure in ("page_faults", "run")
        )
        return f"{way} {faults:.0f} ({shown(took)})"

    ours = statistics.median(one.jaxprof.get((variant, "page_faults"), 0.0) for one in rounds)
    return f"jaxprof {ours:.0f}; by hand {', '.join(map(shown_way, WAYS))}"


def as_data(one: Round) -> dict[str, Any]:
    """A round as JSON has it, with its figures as VARIANT FIGURE."""

    def named(figures: Figures) -> dict[str, float]:
        return {" ".join(key): value for key, value in figures.items()}

    hand = [{way: named(figures) for way, figures in loops.items()} for loops in one.hand]
    return {"busy": one.busy, "said": [asdict(said) for said in one.said], "jaxprof": named(one.jaxprof), "hand": hand}


def main() -> int:
    """Prints the table; gives the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", type=lambda text: text.split(","), default=list(CASES), help="names of cases")
    parser.add_argument("--busy", type=float, default=0.1, help="cores that others may use in a round that counts")
    parser.add_argument("--no-ab", action="store_true", help="`jaxprof run` alone")
    parser.add_argument("--json", type=Path, help="every figure of every round as data")
    parser.add_argument("--smoke", action="store_true")
    args = parser.parse_args()
    if unknown := set(args.only) - set(CASES):
        parser.error(f"there is no {', '.join(sorted(unknown))}; there are {', '.join(CASES)}")
    options, hand_seconds = [], HAND_SECONDS
    if args.smoke:
        args.rounds, args.only, args.busy, hand_seconds = 1, ["matmul-128"], math.inf, 0.2
        options = ["--budget", "0.2", "--launches", "1", "--no-capture"]
    began = time.monotonic()
    print(f"{'case':13}{'variant':7}{'figure':13}{'by hand':>9}{'jaxprof':>9}{'ratio':>8}   by hand between")
    faults: list[str] = []
    held: list[bool] = []
    data = {}
    for name in args.only:
        case = replace(CASES[name], ab=CASES[name].ab and not args.no_ab)
        rounds = [one_round(case, options, hand_seconds) for _ in range(args.rounds)]
        quiet = [one for one in rounds if one.busy <= args.busy]
        others = ", ".join(f"{one.busy:.2f}" for one in rounds)
        print(f"{name:13}{len(quiet)} of {len(rounds)} rounds count; others used {others} cores")
        if quiet:
            found, holds = report(name, case, quiet)
            faults, held = faults + found, held + holds
        else:
            faults.append(f"{name}: nothing is known, the machine was busy in all rounds")
        sys.stdout.flush()
        data[name] = [as_data(one) for one in rounds]
        if args.json:
            args.json.write_text(json.dumps(data, indent=1))
    print(f"intervals that hold the ratio by hand: {sum(held)} of {len(held)}; {time.monotonic() - began:.0f} s")
    if sum(held) < LEAST_HELD * len(held):
        faults.append(f"{len(held) - sum(held)} of {len(held)} intervals do not hold the ratio by hand")
    if args.smoke:
        return 0
    print(*faults, sep="\n")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
