"""What `explain --try` can change to try the fix of a finding.

A mechanical fix is only what can be changed from outside, so that nobody's files are edited to try it. Everything else
is a change of the program, which its author makes and `compare` measures.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from jaxprof.analysis.explain.model import RankedFinding, Subject


@dataclass(frozen=True, slots=True, kw_only=True)
class MechanicalFix:
    """What is changed to try the fix of a finding."""

    title: str
    """What the changed side has, for people."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables of its processes."""
    cache: bool = False
    """Whether it has a compilation cache of its own, which a launch before the timed ones has filled."""
    function: Literal["", "jit", "pad", "bind"] = ""
    """What is done to the functions that the finding is about: `jax.jit` around them, arrays padded to buckets, no more
    passed in each call than is needed."""
    donates: bool = False
    """Whether its call donates the arguments that the finding names."""
    other_numbers: str = ""
    """Why its numbers are others, where that is the price of the fix; empty: they have to be the same."""


_CACHE: Final = MechanicalFix(
    title="the persistent compilation cache on, and filled by a launch before",
    environment={"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0", "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1"},
    cache=True,
)
_PRECISION: Final = MechanicalFix(
    title="matrix products at the default precision",
    environment={"JAX_DEFAULT_MATMUL_PRECISION": "default"},
    other_numbers="another precision of products gives other numbers",
)

TRIED_OF_PROGRAMS: Final[Mapping[str, MechanicalFix]] = {
    "cache_off": _CACHE,
    "debug_settings": MechanicalFix(
        title="the settings for finding faults off",
        environment=dict.fromkeys(
            (
                "JAX_DEBUG_NANS",
                "JAX_DEBUG_INFS",
                "JAX_DISABLE_JIT",
                "JAX_DISABLE_MOST_OPTIMIZATIONS",
                "JAX_CHECK_TRACER_LEAKS",
            ),
            "0",
        ),
    ),
    "op_by_op_loop": MechanicalFix(title="jax.jit around the functions that hold the operations", function="jit"),
    "varying_shapes": MechanicalFix(
        title="its arrays padded with zeros to the next power of two, and its results cut", function="pad"
    ),
    "dispatch_bound": MechanicalFix(
        title="its modules bound with nnx.cached_partial, or leaves that it does not use left out", function="bind"
    ),
    "precise-product": _PRECISION,
}
"""By the code of a finding about a recorded program: what its process can be given."""
TRIED_OF_CALLS: Final[Mapping[str, MechanicalFix]] = {
    "lost-donation": MechanicalFix(title="the arguments that results update donated", donates=True),
    "precise-product": _PRECISION,
}
"""By the code of a finding about a measured function: what its process or its call can be given."""


def fix_of(finding: RankedFinding, subject: Subject) -> MechanicalFix | None:
    """What can be tried of a finding; None where its fix is a change of the program."""
    if subject == "program" and finding.cost.scope == "program":
        fix = TRIED_OF_PROGRAMS.get(finding.code)
        return fix if fix is None or fix.function != "bind" or finding.function else None
    if subject == "runs":
        return TRIED_OF_CALLS.get(finding.code)
    return None


def mechanical_of(code: str) -> str:
    """What can be tried of the findings of a code; empty where nothing can."""
    fix = TRIED_OF_PROGRAMS.get(code) or TRIED_OF_CALLS.get(code)
    return fix.title if fix is not None else ""
