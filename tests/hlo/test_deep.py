"""A module may nest deeper than Python's stack: every analysis ends, and says where it did not look."""

from __future__ import annotations

import pytest

from jaxprof.hlo.analysis.barriers import barriers
from jaxprof.hlo.analysis.cost.flops import DEEPEST, CostModel
from jaxprof.hlo.analysis.findings.catalogue import findings
from jaxprof.hlo.analysis.kernels import kernels, totals
from jaxprof.hlo.read import parse

LEVELS = 3000
_FUSION, _CALL = "fusion(%p), kind=kLoop, calls=", "call(%p), to_apply="


def nested(levels: int, calling: str) -> str:
    """A negation in a computation that a computation calls, and so on."""
    computations = ["%c0 (p: f32[8]) -> f32[8] {\n  %p = f32[8] parameter(0)\n  ROOT %r = f32[8] negate(%p)\n}\n"]
    for level in range(1, levels + 1):
        head = "ENTRY %main" if level == levels else f"%c{level}"
        root = f"  ROOT %r = f32[8] {calling}%c{level - 1}"
        computations.append(f"{head} (p: f32[8]) -> f32[8] {{\n  %p = f32[8] parameter(0)\n{root}\n}}\n")
    return "HloModule m, is_scheduled=true\n\n" + "\n".join(computations)


@pytest.mark.parametrize("calling", [_FUSION, _CALL], ids=["fusions", "calls"])
def test_every_analysis_ends(calling):
    (module,) = parse.modules(nested(LEVELS, calling))
    assert len(kernels(module)) <= LEVELS
    barriers(module), findings(module), totals(module)


@pytest.mark.parametrize(("levels", "opaque"), [(DEEPEST // 2, 0), (LEVELS, 1)])
def test_what_is_too_deep_makes_the_cost_a_lower_bound(levels, opaque):
    (module,) = parse.modules(nested(levels, _FUSION))
    cost = CostModel().computation(module.entry)
    assert (cost.opaque, cost.flops) == (opaque, 0.0 if opaque else 8.0)
