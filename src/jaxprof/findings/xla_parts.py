"""What XLA is busy with in a compile that does not end, in words, and what shortens that."""

from __future__ import annotations

from jaxprof.analysis.programs.xla_log import CODE, FOLDING, PASS_LOG, XlaWork
from jaxprof.analysis.target import command
from jaxprof.base.text import safe
from jaxprof.findings.trials import PROPOSED, TRIALS

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
