"""What a compile that goes on is busy with, as far as XLA's own log says so.

XLA warns by itself where it folds one constant for more than a second. With `PASS_LOG` it announces each pass. Nothing
is inferred from anything else: without these lines the pass is unknown.
"""

from __future__ import annotations

import re

from jaxprof.base.values import dataclass, field, frozen
from jaxprof.session import Run

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
