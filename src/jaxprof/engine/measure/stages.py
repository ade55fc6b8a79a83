"""Trace, lower, compile: times each stage through JAX's public stages, with the program's texts and XLA's figures.

`compile_ledger` keeps the stages that JAX itself announces, including those of functions that are compiled on the way.
Its listener is registered once for each process, because older versions of JAX cannot remove one.

A compiled program reports XLA's FLOPs, its memory buffer by buffer, and its text without weights: `memory_analysis()`
carries the buffer assignment as a proto, and `runtime_executable()` the module to which the proto refers. If a version
or a backend has neither, nothing is reported here, and the client derives an estimate from the schedule.

Literals of more than a few elements are removed from texts: weights that a function closes over must not end up in a
file that is kept and shared. That is one linear pass over jaxprs, StableHLO and HLO, which leaves quoted strings alone.
"""

from __future__ import annotations

import gc
import re
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import jax
import jax.monitoring
from jax.experimental.compilation_cache import compilation_cache

from jaxprof.base.files import digests_of_sources
from jaxprof.base.values import frozen
from jaxprof.engine.measure.control import Reporter
from jaxprof.engine.measure.jax_settings import config_value, override
from jaxprof.engine.measure.static_leaves import as_jitted
from jaxprof.events import BuffersReported, MemoryReported, SourcesRead, TextRecorded, finite
from jaxprof.hlo.files import DUMP_PASS, reasons_beside
from jaxprof.hlo.source import own_files
from jaxprof.trace.buffers import LARGEST_MODULE_BYTES
from jaxprof.trace.buffers import buffers_of as read_buffers

_BEGAN_SECONDS = time.time()
"""Unix time of this import, before which the user's files were read: one that was changed later is not what runs."""
LARGEST_LITERAL = 16
"""Largest number of elements of a literal that is shown."""
_OPENING = re.compile(
    r"""dense<(?=["\[])                                          # StableHLO
      | constant\((?=\{)                                         # HLO
      | (?<=[\s=(,])\[(?=[-+]?(?:[\d.\[]|nan|inf|[Tt]rue|[Ff]alse))  # a NumPy array in a jaxpr
      | "(?:[^"\\]|\\.)*"
    """,
    re.VERBOSE,
)
_HEXADECIMAL = re.compile(r'"0x[0-9A-Fa-f]*"')
_BRACKETS = {"[": re.compile(r"[\[\]]"), "{": re.compile(r"[{}]")}
_ELEMENT = re.compile(r"[^\s,\[\]{}()]+")
_SHORT = {"[": "[...]", "{": "{...}", '"': "..."}


def buffers_of(compiled: Any, hlo: str) -> BuffersReported | None:
    """Return the buffers of `compiled`, whose text is `hlo`; None if the executable does not report them."""
    try:
        assignment = getattr(compiled.memory_analysis(), "serialized_buffer_assignment_proto", b"")
    except (NotImplementedError, RuntimeError):
        assignment = b""
    if not isinstance(assignment, bytes):
        assignment = b""
    proto = b""
    if assignment and len(hlo) <= LARGEST_MODULE_BYTES:
        with suppress(AttributeError, NotImplementedError, RuntimeError):  # the module cannot be reached
            modules = compiled.runtime_executable().hlo_modules()
            proto = modules[0].as_serialized_hlo_module_proto() if len(modules) == 1 else b""
    if not isinstance(proto, bytes) or len(proto) > LARGEST_MODULE_BYTES:
        proto = b""
    return read_buffers(assignment, proto, hlo)


def flops_of(stage: Any) -> float | None:
    """Return the FLOPs of a lowered or a compiled program by XLA's cost analysis, which counts the body of a loop once;
    None if XLA does not know them, which it reports as a negative number."""
    try:
        analysis = stage.cost_analysis()
    except (NotImplementedError, RuntimeError):  # a backend that has no cost analysis
        return None
    if isinstance(analysis, list):  # one for each partition
        analysis = analysis[0] if analysis else {}
    value = (analysis or {}).get("flops")
    number = finite(float(value)) if value is not None else None
    return number if number is not None and number >= 0 else None


def memory_of(compiled: Any) -> MemoryReported | None:
    """Return the bytes of arguments, outputs and temporaries; None if the executable does not report them."""
    try:
        analysis = compiled.memory_analysis()
    except (NotImplementedError, RuntimeError):
        return None
    if analysis is None:
        return None

    def size(name: str) -> int | None:
        value = getattr(analysis, name, None)
        return None if value is None else int(value)

    return MemoryReported(
        argument_bytes=size("argument_size_in_bytes"),
        output_bytes=size("output_size_in_bytes"),
        temporary_bytes=size("temp_size_in_bytes"),
        alias_bytes=size("alias_size_in_bytes"),
        generated_code_bytes=size("generated_code_size_in_bytes"),
        peak_bytes=size("peak_memory_in_bytes"),
    )


def redact_literals(text: str) -> str:
    """Return `text` with array literals of more than `LARGEST_LITERAL` elements as `[...]`, `{...}` or `dense<...>`."""
    parts: list[str] = []
    kept = position = 0
    while match := _OPENING.search(text, position):
        position = match.end()
        if match.group().startswith('"'):
            continue
        begin = match.start() if match.group() == "[" else match.end()
        end = _end_of_literal(text, begin)
        if end is None:  # truncated: anything after the bracket may be the literal's elements
            parts += [text[kept:begin], _SHORT[text[begin]]]
            kept = len(text)
            break
        elements = islice(_ELEMENT.finditer(text, begin, end), LARGEST_LITERAL + 1)
        if text[begin] == '"' or len(list(elements)) > LARGEST_LITERAL:
            parts += [text[kept:begin], _SHORT[text[begin]]]
            kept = end
        position = end
    parts.append(text[kept:])
    return "".join(parts)


def _end_of_literal(text: str, begin: int) -> int | None:
    """Return the position after the bracket that closes the one at `begin`, or a hexadecimal string; else None."""
    opener = text[begin]
    if opener == '"':
        match = _HEXADECIMAL.match(text, begin)
        return match.end() if match else None
    depth = 0
    for bracket in _BRACKETS[opener].finditer(text, begin):
        depth += 1 if bracket.group() == opener else -1
        if depth == 0:
            return bracket.end()
    return None


_STAGES = {
    "/jax/core/compile/jaxpr_trace_duration": "trace",
    "/jax/core/compile/jaxpr_to_mlir_module_duration": "lower",
    "/jax/core/compile/backend_compile_duration": "compile",
}


@frozen
class StagedProgram:
    """A compiled program, and what its stages reported."""

    jitted: Callable[..., Any]
    """What users call: `jit(f)`. Calling the compiled stage itself is slower."""
    jaxpr: Any
    hlo: str
    donates: bool
    lowered_flops: float | None
    """FLOPs by XLA's cost analysis, which counts loops once; only compared with `compiled_flops`."""
    compiled_flops: float | None
    memory: MemoryReported | None
    buffers: BuffersReported | None
    compile_seconds: float


@contextmanager
def settings(device: Any, precision: str, *, compilation_cache_on: bool) -> Iterator[None]:
    """Set the configuration of a run inside the block: its device, its matrix precision, and a cold compile."""
    with ExitStack() as stack:
        if device != jax.local_devices()[0]:
            stack.enter_context(override("jax_default_device", device))
        if precision:
            stack.enter_context(override("jax_default_matmul_precision", precision))
        if not compilation_cache_on:
            stack.enter_context(_persistent_cache_off())
        yield


@contextmanager
def _persistent_cache_off() -> Iterator[None]:
    """Turn the persistent cache off inside the block. JAX decides once whether it uses the cache; resetting makes it
    decide again, and touches no file."""
    if not config_value("jax_enable_compilation_cache") or not config_value("jax_compilation_cache_dir"):
        yield
        return
    with override("jax_enable_compilation_cache", False):
        compilation_cache.reset_cache()
        yield
    compilation_cache.reset_cache()


def _trace(jitted: Any, arguments: tuple[Any, ...]) -> tuple[Any, Callable[[], Any]]:
    """Return what was traced, with its `jaxpr`, and what lowers it to JAX's own stage."""
    if not hasattr(jitted, "trace"):  # equinox's filter_jit can only be lowered, which traces it, and keeps the trace
        from jaxprof.engine.measure.portable import trace

        return trace(jitted, arguments), lambda: jitted.lower(*arguments).lowered
    traced = jitted.trace(*arguments)
    if not hasattr(traced, "jaxpr"):  # flax's nnx.jit wraps each of JAX's stages in one of its own
        traced = traced.traced
    return traced, traced.lower


def compile_stages(
    reporter: Reporter,
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
    *,
    keep_constants: bool,
    ask_reasons: bool = False,
) -> StagedProgram:
    """Compile `function` for these arguments, and return its program. Reports phases, texts, cost and memory."""
    jitted = as_jitted(function, arguments)
    # Python collects the garbage among all objects of JAX when enough new ones were made, which takes longer than
    # lowering a small network (50 ms for 16). After this collection it happens in no stage.
    gc.collect()
    with reporter.phase("trace"):
        traced, lower = _trace(jitted, arguments)
    return compile_traced(reporter, jitted, traced, keep_constants=keep_constants, lower=lower, ask_reasons=ask_reasons)


def compile_traced(
    reporter: Reporter,
    jitted: Callable[..., Any],
    traced: Any,
    *,
    keep_constants: bool,
    lower: Callable[[], Any] | None = None,
    cleaned: Callable[[str], str] | None = None,
    ask_reasons: bool = False,
) -> StagedProgram:
    """Compile a program that is traced already, and return it with the reports of `compile_stages`.

    `lower` replaces the program's own lowering, and `cleaned` removes from the texts what that lowering added.
    `ask_reasons` makes XLA's GPU compiler report why it did not fuse, which takes some more time, so it is only for a
    program that is not timed."""

    def record(name: str, text: str) -> None:
        text = cleaned(text) if cleaned is not None else text
        if not text:
            return
        if name == "hlo" and (digests := digests_of_sources(own_files(text), _BEGAN_SECONDS)):
            reporter.emit(SourcesRead.of(digests))
        shown = text if keep_constants else redact_literals(text)
        reporter.emit(TextRecorded(name=name, text=shown, bytes=len(shown.encode("utf-8", "backslashreplace"))))

    # With the source line and the names of each equation as comments, which connect its lines to the other stages.
    record("jaxpr", traced.jaxpr.pretty_print(source_info=True, name_stack=True))
    with reporter.phase("lower"):
        lowered = traced.lower() if lower is None else lower()
    record("stablehlo", _stablehlo(lowered, keep_constants))
    record("hlo_before", lowered.as_text(dialect="hlo", debug_info=True))
    with tempfile.TemporaryDirectory(prefix="jaxprof-") if ask_reasons else nullcontext("") as dump:
        options = {"xla_dump_to": dump, "xla_dump_hlo_pass_re": DUMP_PASS} if dump else {}
        with compile_ledger() as ledger, reporter.phase("compile") as phase:
            began = time.perf_counter()
            compiled = _compile(reporter, lowered, options)
            compile_seconds = time.perf_counter() - began
            if ledger.cache_hits:
                phase.note = "from the persistent compilation cache"
            elif not ledger.count("compile"):
                phase.note = "from JAX's cache in memory"
        hlo = compiled.as_text() or ""
        shown = reasons_beside(Path(dump), hlo) if dump else hlo  # the module dumped last is this program
    if phase.note:
        reporter.warn("compile_cached", cause="persistent_cache" if ledger.cache_hits else "memory_cache")
    record("hlo", shown)
    memory = memory_of(compiled)
    if memory is not None:
        reporter.emit(memory)
    buffers = buffers_of(compiled, hlo)
    if buffers is not None:
        reporter.emit(buffers)
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
"""Words in errors of XLA's GPU compiler that come from its code for matrix products."""
_RESULTS_REFUSED = "autotune results"
"""In its errors about unreadable files of autotuner results, without which another program would result."""


def _compile(reporter: Reporter, lowered: Any, options: dict[str, Any]) -> Any:
    """Return the executable. If XLA cannot emit its default matrix products for a GPU (without the device it cannot try
    others), compile once more with library calls in their place, and warn."""
    if not options:
        return lowered.compile()
    try:
        return lowered.compile(compiler_options=options)
    except Exception as error:
        words = str(error)
        if _RESULTS_REFUSED in words.casefold() or not any(word in words for word in _GEMM_FAILED):
            raise
        first = words.partition("\n")[0][:200]
        try:
            compiled = lowered.compile(compiler_options={**options, "xla_gpu_enable_triton_gemm": False})
        except Exception:  # noqa: BLE001 - the first error says what is wrong with the program
            raise error from None
        reporter.warn("library_gemms", error=first)
        return compiled


def _stablehlo(lowered: Any, keep_constants: bool) -> str:
    """Return the program's StableHLO with its locations. MLIR's own limit for literals applies, because printing
    everything and cutting it costs megabytes."""
    operation = lowered.compiler_ir("stablehlo").operation
    limit = None if keep_constants else LARGEST_LITERAL
    return str(operation.get_asm(enable_debug_info=True, large_elements_limit=limit))


@frozen
class StageSpan:
    """One stage of one compilation, on the clock of `time.perf_counter`."""

    stage: str
    function: str
    began: float
    ended: float

    @property
    def seconds(self) -> float:
        """Duration, including nested stages."""
        return self.ended - self.began


@dataclass(slots=True)
class CompileLedger:
    """The compilations that JAX announced while the ledger was open."""

    spans: list[StageSpan] = field(default_factory=list)
    cache_hits: int = 0

    def count(self, stage: str) -> int:
        return sum(span.stage == stage for span in self.spans)

    def seconds_by_stage(self) -> dict[str, float]:
        """Return the seconds of each stage that occurred, without the stages nested in it, so that they add up to the
        time that they cover.

        Tracing a function traces the functions that it calls, and may compile one whose value it needs.
        """
        seconds: dict[str, float] = defaultdict(float)
        enclosing: list[StageSpan] = []
        for span in sorted(self.spans, key=lambda item: (item.began, -item.ended)):
            while enclosing and enclosing[-1].ended <= span.began:
                enclosing.pop()
            if enclosing:
                seconds[enclosing[-1].stage] -= min(span.ended, enclosing[-1].ended) - span.began
            seconds[span.stage] += span.seconds
            enclosing.append(span)
        return {stage: max(0.0, total) for stage, total in seconds.items()}


_open: list[CompileLedger] = []


@cache
def _listen() -> None:
    jax.monitoring.register_event_duration_secs_listener(_on_duration)
    jax.monitoring.register_event_listener(_on_event)


@contextmanager
def compile_ledger() -> Iterator[CompileLedger]:
    """Open a ledger of the compilations inside the block."""
    _listen()
    ledger = CompileLedger()
    _open.append(ledger)
    try:
        yield ledger
    finally:
        _open.remove(ledger)


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
        ledger.cache_hits += event == "/jax/compilation_cache/cache_hits"
