"""Findings about what a program does before its work: the modules that it imports."""

from __future__ import annotations

from collections.abc import Iterator

from jaxprof.analysis.programs.result import ProgramResult
from jaxprof.base.grouping import totals
from jaxprof.base.text import safe
from jaxprof.base.units import percent, seconds
from jaxprof.events.finding import Finding
from jaxprof.events.programs import IMPORTS
from jaxprof.findings.programs.claims import Claims, check

IMPORT_SHARE = 0.25
"""Share of the program's time since JAX was imported from which an import is reported: a long run has none."""
_JAX_SHARE = 0.05
"""Share of the time below an import in which JAX works from which the import is the program itself."""


@check(
    "an import takes much of the program's time",
    "The imported module computes, reads files or imports others when it is imported, at every start.",
    "Import it where it is needed, if a run may not need it, or import the part of it that is needed; what the module "
    "computes or reads at its top level belongs into a function, or into a file that is loaded.",
)
def slow_import(result: ProgramResult, _claims: Claims) -> Iterator[Finding]:
    """Yield each import that takes a large share. Modules that were imported before JAX were not sampled."""
    sampled = [window for window in result.sample_windows if window.samples]
    whole = sum(took for window in sampled for took in window.states.values())
    imports = [each for each in result.statements if each.kind == IMPORTS]
    took = totals((each.where, each.seconds) for each in imports)
    jax_took = totals((each.where, each.jax_seconds) for each in imports)
    for where, spent in took.items():
        if spent < IMPORT_SHARE * whole or jax_took[where] > _JAX_SHARE * spent:
            continue
        module = next((each.name for each in imports if each.where == where and each.name), "")
        yield Finding(
            "slow_import",
            f"{f'importing {safe(module)}' if module else 'an import'} took about {seconds(spent, 2)}, "
            f"{percent(spent / whole)} of the program's time since JAX was imported",
            (where,),
            seconds=spent,
            estimate=True,
        )
