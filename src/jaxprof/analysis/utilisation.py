"""What a call or a step reaches of its device: model FLOPs utilisation, and the share of its roofline.

MFU is that of Chowdhery et al., "PaLM: Scaling Language Modeling with Pathways" (arXiv:2204.02311, section 4.1 and
appendix B): the FLOPs that the model needs in a second over those that the device could do. Needed are the matrix
products of the compiled program without those that checkpointing does a second time; with them it is the hardware
FLOPs utilisation (HFU). FLOPs are counted from the HLO of one device (`docs/hlo.md`, FLOPs), and each product has the
peak of its own dtype and precision, so that

    MFU = sum(FLOPs of a product / its peak) / seconds.

The peak is the vendor's dense rate, or what `gemm-peak` reached on this machine: then it is an estimate of the peak.
Without either, and where a product's FLOPs are not known, nothing is guessed: the figure is unknown, or a lower bound.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Literal

from jaxprof.analysis.ceilings import ceilings_for, device_kind, machine_of_run
from jaxprof.analysis.profile import IMPORTED
from jaxprof.analysis.ranking import ranking_on
from jaxprof.analysis.run_result import result
from jaxprof.errors import JaxprofError
from jaxprof.hlo.analysis.findings.compute import recomputed
from jaxprof.hlo.analysis.findings.finding import Scene
from jaxprof.hlo.analysis.kernels import kernels
from jaxprof.hlo.analysis.platform import platform_of
from jaxprof.hlo.open.parsed import modules

if TYPE_CHECKING:
    from jaxprof.hlo.analysis.cost.peaks import DevicePeaks
    from jaxprof.hlo.model import Module
    from jaxprof.session import Run, Session


@dataclass(frozen=True, slots=True, kw_only=True)
class Utilisation:
    """What one call, or one step, reaches of one device."""

    run: str
    of: Literal["call", "step"]
    seconds: float
    """Median of the calls, or of the whole steps from one's begin to the next one's."""
    flops: float | None = None
    """Of the matrix products that the model needs, on one device."""
    recomputed_flops: float = 0.0
    """Of those that are done a second time to save memory; not in `flops`."""
    mfu: float | None = None
    """Model FLOPs utilisation, in 0..1; None if unknown."""
    hfu: float | None = None
    """Hardware FLOPs utilisation: with `recomputed_flops`."""
    peak_flops_per_second: float | None = None
    """The rate that they would have at their peaks; None where there is no product, or a peak is not known."""
    dtypes: tuple[str, ...] = ()
    """Of the products."""
    peak_source: str = ""
    """Where the peaks are from: a vendor's document, or this machine."""
    at_least: bool = False
    """Whether some FLOPs are unknown (opaque kernels, loops of unknown length, branches), so that more is reached."""
    roofline: float | None = None
    """The least time under the device's ceilings over `seconds`, in 0..1."""
    reason: str = ""
    """Why `mfu` is unknown."""

    @property
    def peak_is_measured(self) -> bool:
        """Whether the peak is what this machine has reached, and not what its vendor states."""
        return "measured on this machine" in self.peak_source


@dataclass(frozen=True, slots=True)
class _Products:
    """The matrix products of one run of a module, on one device."""

    flops: float
    recomputed_flops: float
    peak_seconds: float | None
    """Time of all of them at their peaks; None where a peak is not known."""
    recomputed_peak_seconds: float
    dtypes: tuple[str, ...]
    at_least: bool


def utilisations(session: Session) -> tuple[Utilisation, ...]:
    """Of each measured run that was compiled, and of the steps of a profile. Reads their HLO."""
    runs = list(session.runs.values())
    of_calls = (of_call(session, run) for run in runs if run.plan.how != IMPORTED)
    return (*(each for each in of_calls if each is not None), *_of_steps(session, runs))


def of_call(session: Session, run: Run) -> Utilisation | None:
    """What one call reaches; None for a run without times or without HLO."""
    summary, module = result(session, run.id).summary, module_of(session, run)
    if summary is None or module is None or summary.median <= 0:
        return None
    return _of(session, run, "call", summary.median, [(module, 1)])


def module_of(session: Session, run: Run) -> Module | None:
    """The optimised HLO of a run; None if it has none, or it cannot be read."""
    try:
        text = session.text(run.id, "hlo") if "hlo" in run.texts else None
        return modules(text)[0] if text else None
    except (JaxprofError, IndexError):
        return None


def _of_steps(session: Session, runs: Sequence[Run]) -> Iterator[Utilisation]:
    """Of the steps of a profile on the first device that has them.

    Where the executions of one program mark the steps, its own FLOPs count and no others; where annotations do, those
    of each program as often as every step can have had it: some of its executions may lie outside.
    """
    imported = [run for run in runs if run.plan.how == IMPORTED]
    with_steps = [run for run in imported if run.steps is not None]
    if len(with_steps) != 1 or with_steps[0].steps is None:
        return
    steps = with_steps[0].steps
    for device in steps.devices:
        whole = [row.seconds for row in steps.steps if row.device == device.device and row.complete and row.to_next]
        if (device.found_by or steps.found_by) not in ("annotation", "modules") or not whole or not device.steps:
            continue
        by_annotation = (device.found_by or steps.found_by) == "annotation"
        programs: list[tuple[Module, int]] = []
        for run in imported:  # those that took the longest first
            event = run.measured.get("imported")
            if event is None or not event.calls:
                continue
            module = module_of(session, run)
            if module is not None:
                programs.append((module, event.calls // device.steps if by_annotation else 1))
            if not by_annotation:
                break
        if any(times for _, times in programs) and median(whole) > 0:
            yield _of(session, with_steps[0], "step", median(whole), programs)
        return


def _of(
    session: Session,
    run: Run,
    of: Literal["call", "step"],
    seconds: float,
    programs: Sequence[tuple[Module, int]],
) -> Utilisation:
    """`programs` are those that ran in that time, and how often each."""
    device = ceilings_for(session, run)
    every = [(_products(module, device), times) for module, times in programs]
    flops = sum(products.flops * times for products, times in every)
    again = sum(products.recomputed_flops * times for products, times in every)
    known = [products.peak_seconds * times for products, times in every if products.peak_seconds is not None]
    at_peak = sum(known) if device is not None and len(known) == len(every) else None
    again_at_peak = sum(products.recomputed_peak_seconds * times for products, times in every)
    at_least = any(products.at_least or (not times and products.flops) for products, times in every)
    dtypes = tuple(dict.fromkeys(dtype for products, _ in every for dtype in products.dtypes))
    reason = ""
    if device is None:
        reason = _without_peak(run)
    elif at_peak is None:
        reason = f"{device.title} has no known peak for products of {', '.join(dtypes)}"
    elif not flops and not again:
        reason = "its products' FLOPs are unknown" if at_least else "it has no matrix products"
    mfu = None if reason or at_peak is None else at_peak / seconds
    return Utilisation(
        run=run.id,
        of=of,
        seconds=seconds,
        flops=flops if flops or not at_least else None,
        recomputed_flops=again,
        mfu=mfu,
        hfu=None if mfu is None else mfu + again_at_peak / seconds,
        peak_flops_per_second=flops / at_peak if at_peak else None,
        dtypes=dtypes,
        peak_source=device.source if device is not None else "",
        at_least=at_least,
        roofline=_roofline(run, device, seconds, programs),
        reason=reason,
    )


def _without_peak(run: Run) -> str:
    kind = device_kind(run)
    if not kind:
        return f"the model of {run.plan.device} was not recorded, so no peak is known"
    measure = "; jaxprof run gemm-peak and triad measure what it reaches" if run.plan.device.startswith("cpu") else ""
    return f"no peak is known of {kind}{measure}"


def _products(module: Module, device: DevicePeaks | None) -> _Products:
    again = {id(kernel) for kernel in recomputed(Scene(module, platform_of(module)))}
    sums = [0.0, 0.0]
    peaks = [0.0, 0.0]
    known, at_least = True, False
    dtypes: dict[str, None] = {}
    for kernel in kernels(module):
        if kernel.flops is None:
            at_least = True
        if not kernel.uses_matrix_units:
            continue
        flops = kernel.total_flops
        if flops is None or kernel.conditional:
            at_least = True
            continue
        dtypes[kernel.dtype] = None
        second = id(kernel) in again
        sums[second] += flops
        peak = device.peak(kernel.dtype, matrix=True, precision=kernel.precision or "default") if device else None
        known = known and peak is not None
        peaks[second] += flops / peak if peak else 0.0
    return _Products(sums[0], sums[1], peaks[0] if known else None, peaks[1], tuple(dtypes), at_least)


def _roofline(
    run: Run, device: DevicePeaks | None, seconds: float, programs: Sequence[tuple[Module, int]]
) -> float | None:
    machine = machine_of_run(run, device)
    if machine is None:
        return None
    least = 0.0
    for module, times in programs:
        step = ranking_on(machine, module, kernels(module), None).step
        if step is None or step.bound_seconds is None:
            return None
        least += step.bound_seconds * times
    return least / seconds
