"""What `explain --try` can change to try the fix of a finding.

A mechanical fix is only what can be changed from outside, so that nobody's files are edited to try it. Everything else
is a change of the program, which its author makes and `compare` measures.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from jaxprof.analysis.explain.model import RankedFinding, Subject


@dataclass(frozen=True, slots=True, kw_only=True)
class MechanicalFix:
    """What is changed to try the fix of a finding."""

    title: str
    """What the changed side has, for people."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables of its processes."""
    donates: bool = False
    """Whether its call donates the arguments that the finding names."""
    other_numbers: str = ""
    """Why its numbers are others, where that is the price of the fix; empty: they have to be the same."""


TRIED: Final[Mapping[str, MechanicalFix]] = {
    "lost-donation": MechanicalFix(title="the arguments that results update donated", donates=True),
    "precise-product": MechanicalFix(
        title="matrix products at the default precision",
        environment={"JAX_DEFAULT_MATMUL_PRECISION": "default"},
        other_numbers="another precision of products gives other numbers",
    ),
}
"""By the code of a finding about a measured function: what its process or its call can be given."""


def fix_of(finding: RankedFinding, subject: Subject) -> MechanicalFix | None:
    """What can be tried of a finding; None where its fix is a change of the program."""
    return TRIED.get(finding.code) if subject == "runs" else None


def mechanical_of(code: str) -> str:
    """What can be tried of the findings of a code; empty where nothing can."""
    fix = TRIED.get(code)
    return fix.title if fix is not None else ""
