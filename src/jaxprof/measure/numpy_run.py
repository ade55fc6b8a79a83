"""One NumPy variant: the same sampling, no jax in the process, and no phase but the run itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import repeat
from typing import TYPE_CHECKING, Any

from jaxprof.measure.recorder import Recorder
from jaxprof.measure.sampling import MOST_SAMPLES, Plan, Sampler, Trial
from jaxprof.workloads.model import Variant

if TYPE_CHECKING:
    from jaxprof.engine.request import RunRequest


def run_numpy(
    recorder: Recorder, sampler: Sampler, variant: Variant, request: RunRequest, inputs: tuple[Any, ...]
) -> Any:
    """Measures `variant` on `inputs`; gives the result of the warm-up call."""
    function = variant.build(request.parameters)
    kept: list[Any] = []
    with recorder.phase("run"):
        first = sampler.take(Trial(prepare=lambda calls: inputs, make=lambda given: kept.append(function(*given))))
        plan = Plan(
            series="run",
            budget_seconds=request.budget_seconds,
            most_samples=MOST_SAMPLES,
            show_progress=True,
        )
        sampler.sample(Trial(prepare=lambda calls: repeat(inputs, calls), make=_loop(function)), plan, first)
    return kept[0]


def _loop(function: Callable[..., Any]) -> Callable[[Iterable[tuple[Any, ...]]], None]:
    def loop(sets: Iterable[tuple[Any, ...]]) -> None:
        for arguments in sets:
            function(*arguments)

    return loop
