"""Trace, lower, compile: each timed alone through JAX's public stages, with the program's texts and XLA's figures."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import jax
from jax.experimental.compilation_cache import compilation_cache

from jaxprof.events import BuffersReported, CostReported, MemoryReported, TextRecorded, finite
from jaxprof.measure.buffers import report_buffers
from jaxprof.measure.compile_ledger import compile_ledger
from jaxprof.measure.elide import LARGEST_LITERAL, elide_literals
from jaxprof.measure.recorder import Recorder


@dataclass(frozen=True, slots=True)
class Program:
    """A compiled program, and what its stages said."""

    jitted: Callable[..., Any]
    """What users call: `jit(f)`. The compiled stage itself is slower to call."""
    jaxpr: Any
    hlo: str
    donates: bool
    lowered_flops: float | None
    cost: CostReported
    memory: MemoryReported | None
    buffers: BuffersReported | None
    compile_seconds: float


@contextmanager
def settings(device: Any, precision: str, *, compilation_cache_on: bool) -> Iterator[None]:
    """The configuration of a run, put back afterwards: its device, its matrix precision, and a cold compile."""
    with ExitStack() as stack:
        if device != jax.local_devices()[0]:
            stack.enter_context(_updated("jax_default_device", device))
        if precision:
            stack.enter_context(_updated("jax_default_matmul_precision", precision))
        if not compilation_cache_on:
            stack.enter_context(_persistent_cache_off())
        yield


def configured(name: str) -> Any:
    """A value of JAX's configuration; None where this version has no such setting."""
    return getattr(jax.config, name, None)


@contextmanager
def _updated(name: str, value: Any) -> Iterator[None]:
    """A setting for all threads: the calls are not made in the thread that compiles."""
    before = configured(name)
    jax.config.update(name, value)
    try:
        yield
    finally:
        jax.config.update(name, before)


@contextmanager
def _persistent_cache_off() -> Iterator[None]:
    """JAX decides once whether it uses the cache; resetting makes it decide again, and touches no file."""
    if not configured("jax_enable_compilation_cache") or not configured("jax_compilation_cache_dir"):
        yield
        return
    with _updated("jax_enable_compilation_cache", False):
        compilation_cache.reset_cache()
        yield
    compilation_cache.reset_cache()


def as_jitted(function: Callable[..., Any]) -> Any:
    """`function` itself where it is one of `jax.jit`'s (with its static and donated arguments), else its `jit`."""
    if isinstance(function, jax.stages.Wrapped):
        return function
    return jax.jit(function)


def compile_stages(
    recorder: Recorder, function: Callable[..., Any], arguments: tuple[Any, ...], *, keep_constants: bool
) -> Program:
    """The program of `function` for these arguments. Reports phases, texts, cost and memory."""
    jitted = as_jitted(function)
    with recorder.phase("trace"):
        traced = jitted.trace(*arguments)
    _record(recorder, "jaxpr", _jaxpr(traced), keep_constants=keep_constants)
    with recorder.phase("lower"):
        lowered = traced.lower()
    _record(recorder, "stablehlo", _stablehlo(lowered, keep_constants), keep_constants=keep_constants)
    _record(recorder, "hlo_before", lowered.as_text(dialect="hlo", debug_info=True), keep_constants=keep_constants)
    with compile_ledger() as ledger, recorder.phase("compile") as phase:
        began = time.perf_counter()
        compiled = lowered.compile()
        compile_seconds = time.perf_counter() - began
        if ledger.cache_hits:
            phase.note = "from the persistent compilation cache"
        elif not ledger.count("compile"):
            phase.note = "from JAX's cache in memory"
    if phase.note:
        recorder.warn(
            "compile_cached",
            f"the program came {phase.note}: this is not the time of a compile",
            "Run it in a fresh process, without the compilation cache, for a cold compile.",
        )
    hlo = compiled.as_text() or ""
    _record(recorder, "hlo", hlo, keep_constants=keep_constants)
    cost = _cost(compiled)
    recorder.emit(cost)
    memory = _memory(compiled)
    if memory is not None:
        recorder.emit(memory)
    buffers = report_buffers(compiled, hlo)
    if buffers is not None:
        recorder.emit(buffers)
    return Program(
        jitted=jitted,
        jaxpr=traced.jaxpr,
        hlo=hlo,
        donates=bool(lowered.donate_argnums),
        lowered_flops=_figure(_analysis(lowered), "flops"),
        cost=cost,
        memory=memory,
        buffers=buffers,
        compile_seconds=compile_seconds,
    )


def _record(recorder: Recorder, name: str, text: str, *, keep_constants: bool) -> None:
    if text:
        shown = text if keep_constants else elide_literals(text)
        recorder.emit(TextRecorded(name=name, text=shown, bytes=len(shown.encode("utf-8", "backslashreplace"))))


def _jaxpr(traced: Any) -> str:
    """With the source line and the names of each equation as comments: they tie its lines to the other stages."""
    printed = getattr(traced.jaxpr, "pretty_print", None)
    return str(printed(source_info=True, name_stack=True)) if printed is not None else str(traced.jaxpr)


def _stablehlo(lowered: Any, keep_constants: bool) -> str:
    """With its locations. Printed with MLIR's own limit for literals: printing and then cutting costs megabytes."""
    operation = lowered.compiler_ir("stablehlo").operation
    limit = None if keep_constants else LARGEST_LITERAL
    return str(operation.get_asm(enable_debug_info=True, large_elements_limit=limit))


def _cost(compiled: Any) -> CostReported:
    analysis = _analysis(compiled)
    return CostReported(
        flops=_figure(analysis, "flops"),
        bytes_accessed=_figure(analysis, "bytes accessed"),
        transcendentals=_figure(analysis, "transcendentals"),
    )


def _analysis(stage: Any) -> dict[str, Any]:
    """What `cost_analysis` says: nothing, a dictionary, or (of several partitions) a list of them."""
    try:
        found = stage.cost_analysis()
    except (NotImplementedError, RuntimeError):  # a backend that cannot tell
        return {}
    if isinstance(found, list):
        found = found[0] if found else {}
    return found or {}


def _figure(analysis: dict[str, Any], key: str) -> float | None:
    """A figure of XLA's; it writes negative ones where it does not know."""
    value = analysis.get(key)
    known = finite(float(value)) if value is not None else None
    return known if known is not None and known >= 0 else None


def _memory(compiled: Any) -> MemoryReported | None:
    try:
        found = compiled.memory_analysis()
    except (NotImplementedError, RuntimeError):
        return None
    if found is None:
        return None

    def size(name: str) -> int | None:
        value = getattr(found, name, None)
        return None if value is None else int(value)

    return MemoryReported(
        argument_bytes=size("argument_size_in_bytes"),
        output_bytes=size("output_size_in_bytes"),
        temporary_bytes=size("temp_size_in_bytes"),
        alias_bytes=size("alias_size_in_bytes"),
        generated_code_bytes=size("generated_code_size_in_bytes"),
        peak_bytes=size("peak_memory_in_bytes"),
    )
