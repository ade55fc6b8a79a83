"""Trace, lower, compile: times each alone through JAX's public stages, with the program's texts and XLA's figures.

`compile_ledger` keeps the stages that JAX itself announces, also of functions that are compiled on the way. Its
listener is registered once for each process: older versions of JAX cannot remove one.
"""

from __future__ import annotations

import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import jax.monitoring
from jax.experimental.compilation_cache import compilation_cache

from jaxprof.engine.measure.executable import LARGEST_LITERAL, buffers_of, flops_of, memory_of, redact_literals
from jaxprof.engine.measure.reporter import Reporter
from jaxprof.events import BuffersReported, MemoryReported, TextRecorded
from jaxprof.hlo.fusion_reasons import DUMP_ENDING, DUMP_PASS, with_reasons

_STAGES = {
    "/jax/core/compile/jaxpr_trace_duration": "trace",
    "/jax/core/compile/jaxpr_to_mlir_module_duration": "lower",
    "/jax/core/compile/backend_compile_duration": "compile",
}
_CACHE_HIT = "/jax/compilation_cache/cache_hits"
_CACHE_MISS = "/jax/compilation_cache/cache_misses"


@dataclass(frozen=True, slots=True)
class StagedProgram:
    """A compiled program, and what its stages reported."""

    jitted: Callable[..., Any]
    """What users call: `jit(f)`. Calling the compiled stage itself is slower."""
    jaxpr: Any
    hlo: str
    donates: bool
    lowered_flops: float | None
    """As XLA's cost analysis counts them, loops once: only held against each other."""
    compiled_flops: float | None
    memory: MemoryReported | None
    buffers: BuffersReported | None
    compile_seconds: float


@contextmanager
def settings(device: Any, precision: str, *, compilation_cache_on: bool) -> Iterator[None]:
    """The configuration of a run, restored afterwards: its device, its matrix precision, and a cold compile."""
    with ExitStack() as stack:
        if device != jax.local_devices()[0]:
            stack.enter_context(updated("jax_default_device", device))
        if precision:
            stack.enter_context(updated("jax_default_matmul_precision", precision))
        if not compilation_cache_on:
            stack.enter_context(_persistent_cache_off())
        yield


def configured(name: str) -> Any:
    """A value of JAX's configuration; None where this version has no such setting."""
    return getattr(jax.config, name, None)


@contextmanager
def updated(name: str, value: Any) -> Iterator[None]:
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
    with updated("jax_enable_compilation_cache", False):
        compilation_cache.reset_cache()
        yield
    compilation_cache.reset_cache()


def as_jitted(function: Callable[..., Any]) -> Any:
    """`function` itself if it comes from `jax.jit` (with its static and donated arguments), otherwise its `jit`."""
    if isinstance(function, jax.stages.Wrapped):
        return function
    return jax.jit(function)


def compile_stages(
    recorder: Reporter,
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
    *,
    keep_constants: bool,
    ask_reasons: bool = False,
) -> StagedProgram:
    """The program of `function` for these arguments. Reports phases, texts, cost and memory."""
    jitted = as_jitted(function)
    with recorder.phase("trace"):
        traced = jitted.trace(*arguments)
    return compile_traced(recorder, jitted, traced, keep_constants=keep_constants, ask_reasons=ask_reasons)


def compile_traced(
    recorder: Reporter,
    jitted: Callable[..., Any],
    traced: Any,
    *,
    keep_constants: bool,
    lower: Callable[[], Any] | None = None,
    cleaned: Callable[[str], str] | None = None,
    ask_reasons: bool = False,
) -> StagedProgram:
    """Like `compile_stages`, for a program that is traced already. `lower` replaces its own way of lowering, and
    `cleaned` removes from the texts what that way added to them. `ask_reasons` has XLA's GPU compiler say why it did
    not fuse, which takes some more time: for a program that is not timed."""

    def record(name: str, text: str) -> None:
        _record(recorder, name, cleaned(text) if cleaned is not None else text, keep_constants=keep_constants)

    record("jaxpr", _jaxpr(traced))
    with recorder.phase("lower"):
        lowered = traced.lower() if lower is None else lower()
    record("stablehlo", _stablehlo(lowered, keep_constants))
    record("hlo_before", lowered.as_text(dialect="hlo", debug_info=True))
    with _asking(ask_reasons) as dump, compile_ledger() as ledger, recorder.phase("compile") as phase:
        began = time.perf_counter()
        compiled = _compiled(recorder, lowered, dump.options)
        compile_seconds = time.perf_counter() - began
        if ledger.cache_hits:
            phase.note = "from the persistent compilation cache"
        elif not ledger.count("compile"):
            phase.note = "from JAX's cache in memory"
    if phase.note:
        recorder.warn(
            "compile_cached",
            f"the program came {phase.note}: its time is not that of a compile",
            "Run it in a fresh process, without the compilation cache, for a cold compile.",
        )
    hlo = compiled.as_text() or ""
    record("hlo", with_reasons(hlo, dump.text))
    memory = memory_of(compiled)
    if memory is not None:
        recorder.emit(memory)
    buffers = buffers_of(compiled, hlo)
    if buffers is not None:
        recorder.emit(buffers)
    return StagedProgram(
        jitted=jitted,
        jaxpr=traced.jaxpr,
        hlo=hlo,
        donates=bool(lowered.donate_argnums),
        lowered_flops=flops_of(lowered),
        compiled_flops=flops_of(compiled),
        memory=memory,
        buffers=buffers,
        compile_seconds=compile_seconds,
    )


_GEMM_FAILED = ("gemm", "Triton", "autotun", "cublas")
"""What errors of XLA's GPU compiler say that come from how it emits matrix products."""


def _compiled(recorder: Reporter, lowered: Any, options: dict[str, Any]) -> Any:
    """The executable. Where XLA cannot emit its default matrix products for a GPU (without the device it cannot try
    others), once more with library calls in their place, which is said."""
    if not options:
        return lowered.compile()
    try:
        return lowered.compile(compiler_options=options)
    except Exception as error:
        if not any(word in str(error) for word in _GEMM_FAILED):
            raise
        first = str(error).partition("\n")[0][:200]
        try:
            compiled = lowered.compile(compiler_options={**options, "xla_gpu_enable_triton_gemm": False})
        except Exception:  # noqa: BLE001 - the first error says what is wrong with the program
            raise error from None
        recorder.warn(
            "library_gemms",
            f"XLA could not emit its own matrix products ({first}): they are library calls here",
            "On the device XLA may choose its own kernels for some of them.",
        )
        return compiled


@dataclass(slots=True)
class _Dump:
    """Compiler options that have XLA dump its fusion steps, and what it wrote."""

    options: dict[str, Any] = field(default_factory=dict)
    text: str = ""


@contextmanager
def _asking(asking: bool) -> Iterator[_Dump]:
    """A dump that has its text when the block ends; empty without a request, or where XLA wrote none."""
    if not asking:
        yield _Dump()
        return
    with tempfile.TemporaryDirectory(prefix="jaxprof-") as folder:
        dump = _Dump({"xla_dump_to": folder, "xla_dump_hlo_pass_re": DUMP_PASS})
        yield dump
        written = sorted(Path(folder).glob(f"*{DUMP_ENDING}"))
        dump.text = written[-1].read_text("utf-8", "replace") if written else ""


def _record(recorder: Reporter, name: str, text: str, *, keep_constants: bool) -> None:
    if text:
        shown = text if keep_constants else redact_literals(text)
        recorder.emit(TextRecorded(name=name, text=shown, bytes=len(shown.encode("utf-8", "backslashreplace"))))


def _jaxpr(traced: Any) -> str:
    """With the source line and the names of each equation as comments: these connect its lines to the other stages."""
    printed = getattr(traced.jaxpr, "pretty_print", None)
    return str(printed(source_info=True, name_stack=True)) if printed is not None else str(traced.jaxpr)


def _stablehlo(lowered: Any, keep_constants: bool) -> str:
    """With its locations. Printed with MLIR's own limit for literals: printing everything and cutting costs
    megabytes."""
    operation = lowered.compiler_ir("stablehlo").operation
    limit = None if keep_constants else LARGEST_LITERAL
    return str(operation.get_asm(enable_debug_info=True, large_elements_limit=limit))


@dataclass(frozen=True, slots=True)
class StageSpan:
    """One stage of one compilation, on the clock of `time.perf_counter`."""

    stage: str
    function: str
    began: float
    ended: float

    @property
    def seconds(self) -> float:
        """Its duration, including what was nested in it."""
        return self.ended - self.began


@dataclass(slots=True)
class CompileLedger:
    """What was announced while the ledger was open."""

    spans: list[StageSpan] = field(default_factory=list)
    cache_hits: int = 0
    cache_misses: int = 0

    def count(self, stage: str) -> int:
        """How many times a stage occurred."""
        return sum(span.stage == stage for span in self.spans)

    def seconds_by_stage(self) -> dict[str, float]:
        """Seconds of each stage that occurred, without the stages nested in it, so that the parts add up to a whole."""
        return exclusive_seconds(self.spans)


def exclusive_seconds(spans: list[StageSpan]) -> dict[str, float]:
    """Seconds of each stage without what is nested in it, so that the stages add up to the time that they cover.

    Tracing a function traces the functions that it calls, and may compile one whose value it needs.
    """
    seconds: dict[str, float] = defaultdict(float)
    enclosing: list[StageSpan] = []
    for span in sorted(spans, key=lambda item: (item.began, -item.ended)):
        while enclosing and enclosing[-1].ended <= span.began:
            enclosing.pop()
        if enclosing:
            seconds[enclosing[-1].stage] -= min(span.ended, enclosing[-1].ended) - span.began
        seconds[span.stage] += span.seconds
        enclosing.append(span)
    return {stage: max(0.0, total) for stage, total in seconds.items()}


_open: list[CompileLedger] = []


_registered: list[bool] = []


@contextmanager
def compile_ledger() -> Iterator[CompileLedger]:
    """Opens a ledger of the compilations inside the block."""
    if not _registered:
        jax.monitoring.register_event_duration_secs_listener(_on_duration)
        jax.monitoring.register_event_listener(_on_event)
        _registered.append(True)
    ledger = CompileLedger()
    _open.append(ledger)
    try:
        yield ledger
    finally:
        _open.remove(ledger)


@contextmanager
def only_ledgers(ledgers: Sequence[CompileLedger] = ()) -> Iterator[list[CompileLedger]]:
    """Inside, compilations are those of `ledgers`, and of what is opened there. Gives what is open outside."""
    outer = _open[:]
    _open[:] = ledgers
    try:
        yield outer
    finally:
        _open[:] = outer


def _on_duration(event: str, duration_secs: float, **details: Any) -> None:
    stage = _STAGES.get(event)
    if stage is None or not _open:
        return
    ended = time.perf_counter()
    span = StageSpan(stage, str(details.get("fun_name") or "unknown"), ended - duration_secs, ended)
    for ledger in _open:
        ledger.spans.append(span)


def _on_event(event: str, **details: Any) -> None:
    for ledger in _open:
        ledger.cache_hits += event == _CACHE_HIT
        ledger.cache_misses += event == _CACHE_MISS
