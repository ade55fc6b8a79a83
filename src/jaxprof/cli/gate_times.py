"""The times of a gate: the base and the program beside it as the two sides of a comparison, measured in turns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jaxprof.cli.device_selection import choose
from jaxprof.cli.sides import AllWords, MeasuredSides, SideWords, measure, sides_of
from jaxprof.cli.target import is_compiled_now, split_variant
from jaxprof.errors import UsageError
from jaxprof.reaper import TemporaryFolder
from jaxprof.runner.sides import HALF_WIDTH, SideOptions

if TYPE_CHECKING:
    from jaxprof.analysis.gate import GateLimit
    from jaxprof.cli.gate_base import FoundBase
    from jaxprof.cli.hlo_target import CompileOptions
    from jaxprof.session.log import LogWriter


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeOptions:
    """How the times are measured, as given on the command line."""

    device: str
    launches: int | None
    budget_seconds: float
    max_seconds: float | None
    max_silence_seconds: float
    no_check: bool
    seed: int


def can_be_measured(target: str, base: FoundBase) -> bool:
    """Whether both sides are programs that can be run now, and not sessions of another time."""
    return is_compiled_now(target) and base.about.reading in ("target", "revision")


def measure_times(
    target: str,
    base: FoundBase,
    compiling: CompileOptions,
    options: TimeOptions,
    limits: Sequence[GateLimit],
    make_writer: Callable[[], LogWriter],
) -> MeasuredSides:
    """Measure both, A the base and B the target. Raises UsageError for sides that do not fit."""
    revision = base.revision
    sides = (target if revision else base.target, target)
    targets, variants = zip(*map(split_variant, sides), strict=True)
    if len(chosen := {each for each in (*variants, compiling.variant) if each}) > 1:
        raise UsageError(f"both sides are measured as one variant, not as {' and '.join(sorted(chosen))}", "Name one.")
    words = AllWords(
        targets=targets,
        revision=base.about.name if revision is not None else None,
        arguments=tuple(compiling.arguments),
        all=SideWords(settings=tuple(compiling.settings), python=str(compiling.python) if compiling.python else None),
    )
    read = sides_of(words, targets, revision)
    (device,) = choose([options.device], read.sides[0].interpreter)
    with TemporaryFolder("gate") as folder:
        options_of_sides = SideOptions(
            variant=next(iter(chosen), "jit"),
            device=device,
            preset=compiling.preset,
            launches=options.launches,
            half_width=HALF_WIDTH if all(limit.fact == "run" for limit in limits if limit.is_time) else None,
            budget_seconds=options.budget_seconds,
            max_seconds=options.max_seconds,
            max_silence_seconds=options.max_silence_seconds,
            arguments=compiling.arguments,
            check=not options.no_check,
            seed=options.seed,
            folder=folder,
        )
        return measure(read, options_of_sides, make_writer)
