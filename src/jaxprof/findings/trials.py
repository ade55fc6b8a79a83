"""What can be tried of what a finding advises: a setting of JAX or XLA, or another call of a public function of JAX at
one line. The engine makes the change in a process of its own (`engine.measure.trials`), and changes no file.

A trial stands in `PROPOSED` only where its change is what the finding's fix says, or shows what that fix would gain.
Those that shorten a compile that does not end follow from what XLA is busy with, as far as its own log says so: XLA
warns by itself where it folds one constant for more than a second, and with `PASS_LOG` it announces each pass. Without
these lines the pass is unknown.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from jaxprof.analysis.target import command
from jaxprof.base.text import safe
from jaxprof.base.values import dataclass, field, frozen
from jaxprof.events import NOWHERE, SourceLocation
from jaxprof.events.finding import Finding
from jaxprof.session import Run

if TYPE_CHECKING:
    from jaxprof.analysis.runs.speedup import AbVersus
    from jaxprof.stats.comparison import TimeComparison


@frozen
class TriedChange:
    """A change that can be tried on any program."""

    title: str
    means: str
    """What is changed."""
    fix: str
    """What to do if the change is faster."""
    other_numbers: bool = False
    """Whether the results have other numbers by intention."""
    changes_inputs: bool = False
    """Whether the inputs have other numbers, too, so that comparing the results would mean nothing."""
    xla_flag: str = ""
    """Flag that makes the change; empty for one that the engine makes."""
    compiles: bool = False
    """Whether it is tried for the sake of the compile, not of the call."""


TRIALS: Mapping[str, TriedChange] = {
    "map": TriedChange("vmap → lax.map",
        "The outermost jax.vmap that the finding's line calls, or that leads to it, maps one element after the other. "
        "One with a named axis stays.",
        "use jax.lax.map in place of jax.vmap there"),
    "unroll": TriedChange("unroll=4",
        "jax.lax.scan and jax.lax.fori_loop that the finding's line calls make four iterations in one.",
        "give the loop unroll=4"),
    "donate": TriedChange("donate_argnums",
        "Every argument is donated whose arrays all find a result of their shape and dtype.",
        "donate the arguments that the results replace: jax.jit(..., donate_argnums=...)"),
    "rbg": TriedChange("prng rbg",
        "Keys are those of the generator rbg. Random inputs differ then, and results are not compared.",
        'make keys of the generator rbg: jax.config.update("jax_default_prng_impl", "rbg")',
        other_numbers=True, changes_inputs=True),
    "unpartitioned": TriedChange("threefry not partitionable",
        "jax_threefry_partitionable is off. Random inputs differ then, and results are not compared.",
        'draw in the former order: jax.config.update("jax_threefry_partitionable", False)',
        other_numbers=True, changes_inputs=True),
    "float32": TriedChange("x64 off",
        "jax_enable_x64 is off, whatever the program sets. Results are compared as numbers, whatever their width.",
        'compute in float32: jax.config.update("jax_enable_x64", False)', other_numbers=True),
    "default_precision": TriedChange("default precision",
        "jax_default_matmul_precision and the precision of single products are the default, whatever the program sets.",
        "compute products at the default precision", other_numbers=True),
    "no_folding": TriedChange("constant folding off",
        "XLA_FLAGS has --xla_disable_hlo_passes=constant_folding. The compiles are compared, not the calls.",
        "pass the arrays as arguments; without a change, XLA_FLAGS=--xla_disable_hlo_passes=constant_folding",
        xla_flag="--xla_disable_hlo_passes=constant_folding", compiles=True),
    "less_llvm": TriedChange("LLVM at level 0",
        "XLA_FLAGS has --xla_backend_optimization_level=0. The compiles are compared, not the calls.",
        "where it compiles longer than it runs, XLA_FLAGS=--xla_backend_optimization_level=0: calls may be slower",
        xla_flag="--xla_backend_optimization_level=0", compiles=True),
    "no_autotuning": TriedChange("autotuning off",
        "XLA_FLAGS has --xla_gpu_autotune_level=0. The compiles are compared, not the calls.",
        "keep its results in the persistent compilation cache; or XLA_FLAGS=--xla_gpu_autotune_level=0, with slower "
        "kernels",
        xla_flag="--xla_gpu_autotune_level=0", compiles=True),
}  # fmt: skip
PROPOSED: Mapping[str, Sequence[str]] = {
    "small_loop_body": ("unroll",),
    "whole_carry": ("map",),
    "both_branches": ("map",),
    "longest_lane": ("map",),
    "grouped_convolution": ("map",),
    "random_bits": ("rbg", "unpartitioned"),
    "lost_donation": ("donate",),
    "float64": ("float32",),
    "precise_product": ("default_precision",),
    "slow_constant_folding": ("no_folding",),
    "slow_llvm": ("less_llvm",),
    "slow_autotuning": ("no_autotuning",),
}
"""Names of the trials of each finding that has some."""
MOST_TRIALS = 5
"""Largest number of trials in one comparison: each takes its share of the time."""
AT_A_LINE = ("map", "unroll")
"""Trials that change calls at the line of their finding."""


def trial_of(name: str) -> TriedChange:
    """Return the trial of that name; one that this version does not know is called by it."""
    return TRIALS.get(name) or TriedChange(name, "", "")


@frozen
class ProposedChange:
    """A trial of one finding."""

    name: str
    code: str
    line: SourceLocation = NOWHERE
    """Line of the finding, for a trial that changes calls; false if unknown, or if it changes the whole program."""

    @property
    def title(self) -> str:
        """What is tried and why, for readers."""
        return f"{trial_of(self.name).title}, because of {self.code}" + (
            f" at {self.line.short()}" if self.line else ""
        )

    def environment(self, variables: Mapping[str, str]) -> dict[str, str]:
        """Return the variables that make the change, besides those that the process has anyway."""
        flag = trial_of(self.name).xla_flag
        flags = variables.get("XLA_FLAGS", os.environ.get("XLA_FLAGS", ""))
        return {"XLA_FLAGS": f"{flags} {flag}".strip()} if flag else {}


def changeable_runs(runs: Iterable[Run]) -> list[Run]:
    """Return the runs on which changes can be tried: compiled as a whole, no sides, with a function that can be found
    again."""
    from jaxprof.workloads import CATALOGUE

    return [
        run
        for run in runs
        if run.plan.how == "jit" and not run.plan.side and (run.plan.target or run.plan.workload in CATALOGUE)
    ]


def times_tried(versus: AbVersus) -> TimeComparison:
    """Return the times that the change of a side is to shorten: of the call, or of the compile."""
    return versus.compiling if trial_of(versus.run.plan.trial).compiles and versus.compiling else versus.times


def compile_seconds_beside_none(versus: AbVersus) -> tuple[float, float] | None:
    """Return how long the compile of a change took, and how long A had been compiling without an end, where the change
    is tried for that and made it shorter; else None."""
    if not trial_of(versus.run.plan.trial).compiles or versus.uncompiled_seconds is None:
        return None
    phase, uncompiled = versus.run.phases.get("compile"), versus.uncompiled_seconds
    if phase is None or phase.seconds is None or phase.seconds >= uncompiled:
        return None
    return phase.seconds, uncompiled


def propose_trials(findings: Iterable[Finding], code: str = "") -> list[ProposedChange]:
    """Return the trials of these findings, each once; with `code`, one of `PROPOSED`, those of that finding, for every
    call if it was not found."""
    found = [finding for finding in findings if finding.code in PROPOSED and code in ("", finding.code)]
    lines = [(finding.code, finding.where or NOWHERE) for finding in found] or [(code, NOWHERE)] * bool(code)
    trials: dict[tuple[str, SourceLocation], str] = {}
    for why, line in lines:
        for name in PROPOSED[why]:
            trials.setdefault((name, line if name in AT_A_LINE else NOWHERE), why)
    return [ProposedChange(name, why, line) for (name, line), why in trials.items()]


PASS_LOG = "TF_CPP_MIN_LOG_LEVEL=0 TF_CPP_VMODULE=hlo_pass_pipeline=1"
"""Variables with which XLA announces each pass on stderr, as in jax 0.7 to 0.12."""
FOLDING, CODE = "constant_folding", "code generation"
_QUIET_SECONDS = 2.0
"""Between two passes XLA announces nothing for milliseconds; after the last one, until the machine code is there."""
_SINCE_SECONDS = 0.5
"""Lines of the log from this long before the compilation began count, too."""
_FROM_PASSES = re.compile(r"[IWEF]\d{4} [\d:.]+ +(\d+) hlo_pass_pipeline\.cc:\d+\]\s+(.*)")
_PIPELINE = re.compile(r"Running HLO pass pipeline on module ([^ :]+)")
_FOLDED = re.compile(r'\s*%.*\bop_name="jit\(([^"()]+)\)/[^"]*?([^"/]+)"')


@frozen
class XlaWork:
    """What XLA is busy with."""

    part: str
    """Name of a pass, as XLA writes it, or `CODE`."""
    operation: str = ""
    """JAX's name of the operation whose value is computed, in the pass `FOLDING`."""


@dataclass(slots=True)
class _Passes:
    module: str = ""
    open: list[str] = field(default_factory=list)
    seconds: float = 0.0
    """Monotonic time of the last line."""


def xla_work(run: Run, function: str, began_seconds: float, now: float) -> XlaWork | None:
    """Return what XLA does at `now`, in a compile of `function` that goes on since `began_seconds`; None if its log
    does not say so, or was cut. Both are monotonic times."""
    if any(warning.code == "output_cut" for warning in run.warnings):
        return None
    threads: dict[str, _Passes] = {}
    """By the system's id of the thread that compiles."""
    folded, warned = "", False
    for line in run.log:
        if line.monotonic_seconds < began_seconds - _SINCE_SECONDS:
            continue
        if warned and (found := _FOLDED.match(line.text)):
            folded = found[2] if found[1] == function else folded
            warned = False
        elif "slow_operation_alarm.cc" in line.text:
            warned = "Constant folding an instruction is taking" in line.text
            folded = "" if "The operation took" in line.text else folded
        elif (said := _FROM_PASSES.match(line.text)) is not None:
            passes = threads.setdefault(said[1], _Passes())
            passes.seconds = line.monotonic_seconds
            if (pipeline := _PIPELINE.match(said[2])) is not None:
                if pipeline[1] != passes.module:
                    passes.module, passes.open = pipeline[1], []
            elif said[2].startswith("HLO pass: "):
                # Not by its name: one such as float-normalization-f8e8m0fnu is redacted after `pass:`.
                del passes.open[-1:]
            elif said[2].startswith("HLO pass "):
                passes.open.append(said[2].removeprefix("HLO pass ").strip())
    if folded:
        return XlaWork(FOLDING, folded)
    module = "jit_" + re.sub(r"[^\w.-]", "_", function)
    own = [passes for passes in threads.values() if passes.module == module]
    if not own:
        return None
    last = max(own, key=lambda passes: passes.seconds)
    if last.open:
        return XlaWork(last.open[-1])
    return XlaWork(CODE) if now - last.seconds > _QUIET_SECONDS else None


_CODES = ((FOLDING, "slow_constant_folding"), (CODE, "slow_llvm"), ("autotun", "slow_autotuning"))
"""What XLA is busy with, or a part of its name, and the code whose trials shorten that."""


def work_text(work: XlaWork | None, location: str = "") -> str:
    """Return text such as `by its log, XLA is in the pass constant_folding, which computes the sin at f.py:5`.
    `location`: the line of the operation, if it is known."""
    if work is None:
        return "the pass is unknown"
    part = f"past its passes, in {CODE}" if work.part == CODE else f"in the pass {safe(work.part)}"
    at = f" at {location}" if location else ""
    operation = f", which computes the {safe(work.operation)}{at}" if work.operation else ""
    return f"by its log, XLA is {part}{operation}"


def shortening(work: XlaWork | None, function: str) -> list[str]:
    """Return sentences about what shortens that, and the command that tries it on `function`, such as `f.py:step`; or
    about how to see the pass."""
    if work is None:
        return [f"To see the pass, put {PASS_LOG} before the command: XLA then names each on stderr."]
    code = next((code for part, code in _CODES if part in work.part), "")
    tried = command("compare", "--try", code, function)
    return [f"{TRIALS[name].title}: {TRIALS[name].fix}. {tried} tries it." for name in PROPOSED.get(code, ())]
