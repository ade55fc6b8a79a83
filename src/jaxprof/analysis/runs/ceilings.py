"""The ceilings that kernels are compared with, and how much of them calls and steps reach.

Ceilings are the vendor's figures, or rates that this machine has reached: `triad` and `gemm-peak` measure a device's
bandwidth and peak. The measured rates are kept for the machine, so that later sessions have a roofline; a CPU, which is
in no table, has no other.

A call or a step has a model FLOPs utilisation (MFU), and a share of the roofline. MFU is defined as in Chowdhery et
al., "PaLM: Scaling Language Modeling with Pathways" (arXiv:2204.02311, section 4.1 and appendix B): the FLOPs per
second that the model needs over those that the device can do. The needed FLOPs are those of the compiled program's
matrix products, without the products that checkpointing computes a second time; with these it is the hardware FLOPs
utilisation (HFU). FLOPs are counted from the HLO of one device (`docs/hlo.md`, FLOPs), and each product has the peak of
its own dtype and precision:

    MFU = sum(FLOPs of a product / its peak) / seconds.

The peak is the vendor's dense rate, or the rate that `gemm-peak` reached on this machine, which is an estimate of the
peak. Without either, or if a product's FLOPs are unknown, nothing is guessed: the figure is unknown, or a lower bound.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from jaxprof.base.errors import JaxprofError
from jaxprof.base.files import PRIVATE, private_folder, replace_file
from jaxprof.base.units import bytes_
from jaxprof.base.values import field, frozen
from jaxprof.session import Run, Session
from jaxprof.session.files import state_folder
from jaxprof.session.run import IMPORTED

if TYPE_CHECKING:
    from jaxprof.devices.absent import Machine
    from jaxprof.hlo.kernels.cost.peaks import DevicePeaks
    from jaxprof.hlo.text.model import Module

BANDWIDTH_WORKLOAD, PEAK_WORKLOAD = "triad", "gemm-peak"
_DTYPES = {"float32": "f32", "tf32": "tf32", "bfloat16 passes": "bf16", "bfloat16": "bf16"}
"""Names of device rates, by the effective precision of products that a check reports."""
LEAST_BYTES = float(256 << 20)
"""Fewest bytes of a call for its rate to be that of memory; fewer may fit into a last-level cache."""
_DISTURBED = frozenset({"busy_machine", "disturbed"})
"""Warnings of runs that reached less than the device can."""


@frozen
class MeasuredRate:
    """A rate that a device reached, and the conditions of the measurement."""

    per_second: float
    """Bytes or FLOPs of matrix products, per second."""
    call_bytes: float | None
    """Bytes moved by a call, for a memory rate."""
    measured: float | None
    """Unix time of the measurement."""

    def __str__(self) -> str:
        """Return the conditions of the measurement, such as `256 MiB a call on 2026-11-25`."""
        size = f"{bytes_(self.call_bytes)} a call" if self.call_bytes else ""
        day = f"on {datetime.fromtimestamp(self.measured, UTC):%Y-%m-%d}" if self.measured else ""
        return " ".join(part for part in (size, day) if part)


Rates: TypeAlias = dict[str, MeasuredRate]
"""Largest measured rates of a device: of its memory (`MEMORY`), and of matrix products by dtype."""
MEMORY = "memory"


def _best(one: Rates, other: Rates) -> Rates:
    """Return the larger of both rates for each kind, with the conditions of its measurement."""
    rates = dict(one)
    for kind, rate in other.items():
        rates[kind] = max(rates.get(kind, rate), rate, key=lambda each: each.per_second)
    return rates


def _source(rates: Rates) -> str:
    """Return text such as `measured on this machine, otherwise idle: memory 256 MiB a call on 2026-11-25`."""
    memory = [f"memory {rates[MEMORY]}"] if MEMORY in rates else []
    days = sorted({str(rate) for kind, rate in rates.items() if kind != MEMORY} - {""})
    return f"measured on this machine, otherwise idle: {', '.join([*memory, *(f'products {day}' for day in days)])}"


def ceilings_for(session: Session, run: Run) -> DevicePeaks | None:
    """Return the device of a run with its ceilings; None if nothing is known of it. Ceilings measured in the session
    are compared with those kept for this machine, if the session was recorded on it; the larger rate counts."""
    elsewhere = device_elsewhere(run)
    if elsewhere is not None:
        return elsewhere
    from jaxprof.hlo.kernels.cost.peaks import device_from_ceilings, device_of_kind, with_measured

    kind = device_kind(session, run)
    measured = session_rates(session, run.plan.device)
    if session.header.host == socket.gethostname():
        measured = _best(measured, _load_ceilings().rates.get(kind, {}))
    datasheet = device_of_kind(kind) if kind else None
    peaks = {dtype: rate.per_second for dtype, rate in measured.items()}
    bandwidth = peaks.pop(MEMORY, None)
    if datasheet is not None:
        return with_measured(datasheet, _source(measured), bandwidth, peaks) if measured else datasheet
    if bandwidth and peaks:
        return device_from_ceilings(run.plan.device, _source(measured), 0, bandwidth, peaks)
    return None


def device_elsewhere(run: Run) -> DevicePeaks | None:
    """Return the absent device that a run was only compiled for; None for any other run."""
    if run.plan.how != "compile":
        return None
    from jaxprof.devices.absent import parse_target
    from jaxprof.hlo.kernels.cost.peaks import device

    try:
        return device(parse_target(run.plan.device).chip.name)
    except JaxprofError:  # the run was compiled for a device of this machine, such as `cpu:0`
        return None


def machine_of_run(run: Run | None, device: DevicePeaks | None) -> Machine | None:
    """Return how the devices of a run are connected; None if `device` is None. The answer comes from the target that
    the run was compiled for, else from the one known link of `device`."""
    if device is None:
        return None
    from jaxprof.devices.absent import machine_for, machine_of, parse_target

    if run is not None and device_elsewhere(run) == device:
        return machine_for(parse_target(run.plan.device))
    return machine_of(device)


def why_unmeasured(session: Session, run: Run) -> str:
    """Return why nothing is known of what the CPU of a run reaches, and when to measure it (`jaxprof run gemm-peak
    triad`); empty if it is known, or if it is another device."""
    if not run.plan.device.startswith("cpu") or session.is_profile or ceilings_for(session, run) is not None:
        return ""
    refused = _load_ceilings().refused.get(device_kind(session, run), "")
    if refused:
        return (
            f"what this machine reaches is unknown, because its measurement was disturbed ({refused}): repeat it idle"
        )
    return (
        "what this machine reaches was not measured, so that a slow kernel does not show: measure it once, "
        "on an idle machine"
    )


def processor_share(session: Session, run: Run) -> float:
    """Return the least share of a processor that a thread of a run had beside other programs, from 0 to 1; 1 if the
    device is no CPU, or the load is unknown."""
    seen = (run.environment, session.environment) if run.plan.device.startswith("cpu") else ()
    for settings in (each.settings for each in seen if each is not None):
        load, cores = settings.get("load_average_before"), settings.get("cores")
        if isinstance(load, float) and isinstance(cores, float) and load >= 0 and cores > 0:
            # The load is of the others alone, because it was read before the run began.
            return min(1.0, cores / (load + 1))
    return 1.0


def device_kind(session: Session, run: Run) -> str:
    """Return JAX's name for the device of a run; for a CPU, the processor model. Empty if unknown."""
    if run.environment is None:
        return ""
    platform = run.plan.device.partition(":")[0]
    if platform == "cpu":
        # A capture window has an environment of its own, without the model; a profile may be of another machine.
        known = [run.environment] if session.is_profile else [run.environment, session.environment]
        return next(
            (str(each.settings["cpu_model"]) for each in known if each and each.settings.get("cpu_model")), "cpu"
        )
    for seen in run.environment.devices:
        if seen.get("platform") == platform:
            return str(seen.get("kind") or "")
    return ""


def session_rates(session: Session, device_id: str) -> Rates:
    """Return the rates that `triad` and `gemm-peak` reached on a device in this session, without disturbed runs. A
    ceiling is what was reached at all, so the fastest call counts: the slower ones had new pages zeroed beside them."""
    rates: Rates = {}
    moment = session.header.wall_seconds or None
    for run in _rate_runs(session):
        if run.plan.device != device_id or _disturbance(session, run):
            continue
        from jaxprof.analysis.runs.run_result import result  # imports all of the statistics, rarely needed

        figures = result(session, run.id)
        moved, flops = figures.bytes_accessed or 0.0, figures.flops or 0.0
        fastest = figures.summary.minimum if figures.summary is not None and not figures.moved_nothing else 0.0
        if not fastest:
            continue
        if run.plan.workload == BANDWIDTH_WORKLOAD and moved >= LEAST_BYTES:
            rates = _best(rates, {MEMORY: MeasuredRate(moved / fastest, moved, moment)})
        elif run.plan.workload == PEAK_WORKLOAD and run.plan.how == "jit" and flops:
            precision = run.check.precision if run.check is not None else ""
            dtype = "bf16" if run.plan.variant == "jit-bfloat16" else _DTYPES.get(precision, "f32")
            rates = _best(rates, {dtype: MeasuredRate(flops / fastest, None, moment)})
    return rates


def _disturbance(session: Session, run: Run) -> str:
    """Return what kept a run from reaching what its device can; empty if nothing did."""
    from jaxprof.analysis.runs.run_result import result

    warnings = result(session, run.id).warnings
    return next((warning.message for warning in warnings if warning.code in _DISTURBED), "")


def remember(session: Session) -> None:
    """Keep the rates that the session measured on this machine, and why some were refused. A folder that cannot be
    written is not an error."""
    runs = [(run, kind) for run in _rate_runs(session) if (kind := device_kind(session, run))]
    if not runs:
        return
    kept = _load_ceilings()
    for run, kind in runs:
        kept.rates[kind] = _best(kept.rates.get(kind, {}), session_rates(session, run.plan.device))
        if disturbance := _disturbance(session, run):
            kept.refused[kind] = disturbance
        else:
            kept.refused.pop(kind, None)
    import msgspec

    path = _path()
    with suppress(OSError):
        private_folder(path.parent)
        with replace_file(path, PRIVATE) as file:
            file.write_bytes(msgspec.json.format(msgspec.json.encode(kept), indent=1))


def _rate_runs(session: Session) -> Iterable[Run]:
    """Return the runs that show what a device reaches; NumPy's show the memory of the CPU."""
    return [
        run
        for run in list(session.runs.values())
        if run.plan.workload in (BANDWIDTH_WORKLOAD, PEAK_WORKLOAD)
        and run.status == "ok"
        and run.plan.how in ("jit", "numpy")
    ]


def _path() -> Path:
    return state_folder() / "ceilings.json"


@frozen
class _Kept:
    """What is kept for the machine, by device kind."""

    rates: dict[str, Rates] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    """What disturbed the last measurement."""


def _load_ceilings() -> _Kept:
    """Return the kept ceilings; empty if there is no readable file."""
    import msgspec

    try:
        return msgspec.json.decode(_path().read_bytes(), type=_Kept)
    except (OSError, msgspec.MsgspecError):
        return _Kept()


@frozen(kw_only=True)
class Utilisation:
    """What one call or step reaches of one device."""

    run: str
    of: Literal["call", "step"]
    seconds: float
    """Median seconds of the calls, or of the whole steps from one begin to the next."""
    flops: float | None = None
    """FLOPs of the matrix products that the model needs, on one device."""
    recomputed_flops: float = 0.0
    """FLOPs of products computed a second time to save memory; not part of `flops`."""
    mfu: float | None = None
    """Model FLOPs utilisation, from 0 to 1; None if unknown."""
    hfu: float | None = None
    """Hardware FLOPs utilisation, which includes `recomputed_flops`."""
    peak_flops_per_second: float | None = None
    """Rate of the products at their peaks; None if there is no product or a peak is unknown."""
    dtypes: tuple[str, ...] = ()
    rates: tuple[str, ...] = ()
    """Names of the peaks that they are compared with: `tf32` for float32 of default precision on NVIDIA GPUs."""
    peak_source: str = ""
    """Origin of the peaks: a vendor's document, or this machine."""
    at_least: bool = False
    """Whether some FLOPs are unknown (opaque kernels, loops, branches), so that figures are lower bounds."""
    roofline: float | None = None
    """Least time under the device's ceilings over `seconds`, from 0 to 1."""
    reason: str = ""
    """Text that says why `mfu` is unknown."""

    @property
    def peak_is_measured(self) -> bool:
        """Whether this machine measured the peak; otherwise it is the vendor's figure."""
        return "measured on this machine" in self.peak_source


class _Product(NamedTuple):
    """A kernel whose FLOPs count, or cannot be counted, in some executions of its module."""

    dtype: str
    """Dtype of a matrix product whose FLOPs are known; empty otherwise."""
    rate: str
    """Name of its peak."""
    flops: float | None
    """FLOPs on one device; None if unknown."""
    peak_seconds: float | None
    """Seconds at the device's peak; None if the FLOPs or the peak are unknown."""
    recomputed: bool
    """Whether it computes a second time what another kernel has computed."""


def utilisations(session: Session) -> tuple[Utilisation, ...]:
    """Return the utilisation of each measured run that was compiled, and of the steps of a profile on the first device
    that has steps. Reads their HLO."""
    from jaxprof.analysis.kernels import module_of

    runs = list(session.runs.values())
    of_calls = (of_call(session, run) for run in runs if run.plan.how != IMPORTED)
    found = [each for each in of_calls if each is not None]
    imported = [run for run in runs if run.plan.how == IMPORTED]
    with_steps = [run for run in imported if run.steps is not None]
    if len(with_steps) != 1 or with_steps[0].steps is None:
        return tuple(found)
    # If the executions of one program mark the steps, only its FLOPs count. If annotations do, the FLOPs of each
    # program count as often as every step can contain it, because some of its executions may lie outside.
    steps = with_steps[0].steps
    for device in steps.devices:
        whole = [row.seconds for row in steps.steps if row.device == device.device and row.complete and row.to_next]
        if (device.found_by or steps.found_by) not in ("annotation", "modules") or not whole or not device.steps:
            continue
        by_annotation = (device.found_by or steps.found_by) == "annotation"
        programs: list[tuple[Module, int]] = []
        for run in imported:  # longest time first
            event = run.measured.get("imported")
            if event is None or not event.calls:
                continue
            module = module_of(session, run)
            if module is not None:
                programs.append((module, event.calls // device.steps if by_annotation else 1))
            if not by_annotation:
                break
        if any(times for _, times in programs) and median(whole) > 0:
            found.append(_utilisation(session, with_steps[0], "step", median(whole), programs))
        break
    return tuple(found)


def of_call(session: Session, run: Run) -> Utilisation | None:
    """Return what one call reaches; None for a run without times or without HLO."""
    from jaxprof.analysis.kernels import module_of
    from jaxprof.analysis.runs.run_result import result

    summary, module = result(session, run.id).summary, module_of(session, run)
    if summary is None or module is None or summary.median <= 0:
        return None
    return _utilisation(session, run, "call", summary.median, [(module, 1)])


def _utilisation(
    session: Session,
    run: Run,
    of: Literal["call", "step"],
    seconds: float,
    programs: Sequence[tuple[Module, int]],
) -> Utilisation:
    """Compute the utilisation of the `programs` that ran in that time, each with its number of executions."""
    device = ceilings_for(session, run)
    products = [product for module, times in programs for product in _products(module, device, times)]
    counted = [product for product in products if product.flops is not None]
    at_least = any(product.flops is None for product in products)
    flops = sum(product.flops or 0.0 for product in counted if not product.recomputed)
    recomputed_flops = sum(product.flops or 0.0 for product in counted if product.recomputed)
    has_peaks = device is not None and all(product.peak_seconds is not None for product in counted)
    peak_seconds = sum(product.peak_seconds or 0.0 for product in counted if not product.recomputed)
    recomputed_seconds = sum(product.peak_seconds or 0.0 for product in counted if product.recomputed)
    dtypes = tuple(dict.fromkeys(product.dtype for product in counted))
    reason = ""
    kind = device_kind(session, run)
    if device is None and not kind:
        reason = f"the model of {run.plan.device} was not recorded, so no peak is known"
    elif device is None:
        reason = f"no peak is known for {kind}"
        if run.plan.device.startswith("cpu"):
            reason += "; jaxprof run gemm-peak triad measures what it reaches"
    elif not has_peaks:
        reason = f"{device.title} has no known peak for products of {', '.join(dtypes)}"
    elif not flops and not recomputed_flops:
        reason = "its products' FLOPs are unknown" if at_least else "it has no matrix products"
    mfu = None if reason else peak_seconds / seconds
    return Utilisation(
        run=run.id,
        of=of,
        seconds=seconds,
        flops=flops if flops or not at_least else None,
        recomputed_flops=recomputed_flops,
        mfu=mfu,
        hfu=None if mfu is None else mfu + recomputed_seconds / seconds,
        peak_flops_per_second=flops / peak_seconds if has_peaks and peak_seconds else None,
        dtypes=dtypes,
        rates=tuple(dict.fromkeys(product.rate for product in counted)),
        peak_source=device.source if device is not None else "",
        at_least=at_least,
        roofline=_roofline(run, device, seconds, programs),
        reason=reason,
    )


def _products(module: Module, device: DevicePeaks | None, times: int) -> Iterator[_Product]:
    """Yield the matrix products of so many executions of a module, and other kernels whose FLOPs are unknown."""
    from jaxprof.hlo.kernels.kernels import kernels, kernels_run_again

    again = {id(kernel) for kernel in kernels_run_again(module)}
    for kernel in kernels(module):
        flops = None if kernel.conditional or not times else kernel.total_flops
        if kernel.uses_matrix_units and flops is not None:
            precision = kernel.precision or "default"
            peak = device.peak(kernel.dtype, matrix=True, precision=precision) if device else None
            rate = device.rate(kernel.dtype, precision) if device else kernel.dtype
            took = flops / peak * times if peak else None
            yield _Product(kernel.dtype, rate, flops * times, took, id(kernel) in again)
        elif kernel.uses_matrix_units or kernel.flops is None:
            yield _Product("", "", None, None, recomputed=False)


def _roofline(
    run: Run, device: DevicePeaks | None, seconds: float, programs: Sequence[tuple[Module, int]]
) -> float | None:
    machine = machine_of_run(run, device)
    if machine is None:
        return None
    from jaxprof.analysis.kernels.ranking import ranking_on
    from jaxprof.hlo.kernels.kernels import kernels

    least = 0.0
    for module, times in programs:
        step = ranking_on(machine, module, kernels(module), None).step
        if step is None or step.bound_seconds is None:
            return None
        least += step.bound_seconds * times
    return least / seconds
