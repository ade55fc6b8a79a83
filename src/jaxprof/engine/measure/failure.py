"""The end of a run, and what a user can do about an exception: what failed, how to fix it, where in their own code."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from itertools import groupby
from pathlib import Path

from jaxprof.base.errors import DoesNotFitError, JaxprofError
from jaxprof.base.units import seconds
from jaxprof.engine.measure.control import Cancelled, CapReached, Reporter
from jaxprof.events import RunFinished

_LONGEST = 2000  # characters; the traceback has the whole text
_PACKAGE = Path(__file__).resolve().parents[2]
_OUR_PACKAGES = tuple(str(_PACKAGE / name) for name in ("engine", "workloads/find"))

_HINTS: tuple[tuple[tuple[str, ...], str], ...] = (
    (
        ("RESOURCE_EXHAUSTED", "MemoryError", "Out of memory", "out of memory", "Unable to allocate"),
        "Out of memory: choose a smaller size, free what else holds memory on the device, or (on a GPU) look at "
        "XLA_PYTHON_CLIENT_PREALLOCATE and XLA_PYTHON_CLIENT_MEM_FRACTION.",
    ),
    (
        ("ConcretizationTypeError", "TracerBoolConversionError", "TracerIntegerConversionError"),
        "The function asks for the value of a traced array. Use jnp.where or jax.lax.cond, or mark the argument with "
        "jax.jit(..., static_argnames=...); the op-by-op variant runs as it is.",
    ),
    (
        ("TracerArrayConversionError",),
        "NumPy was called on a traced array: use jax.numpy inside the function.",
    ),
    (
        ("UnexpectedTracerError",),
        "A traced value left its function (kept in a global, an attribute or a list): return it instead.",
    ),
    (
        ("NonConcreteBooleanIndexError",),
        "A boolean mask makes a shape that depends on values: use jnp.where with three arguments.",
    ),
    (
        ("Unknown backend: 'gpu' requested",),
        "A program that calls back to Python (io_callback, pure_callback) is compiled for a GPU only where there is "
        "one: leave the call out, for example with a static argument.",
    ),
    (
        ("Array has been deleted", "buffer has been deleted or donated"),
        "An input was donated and used again: jaxprof sees only donate_argnums of the outermost jit, so set it there.",
    ),
    (
        ("x64", "jax_enable_x64"),
        "64-bit types are off by default: set JAX_ENABLE_X64=1, or use float32.",
    ),
    (
        ("No GPU/TPU found", "Unable to initialize backend", "Unknown backend"),
        "`jaxprof devices` says which devices there are and what is missing.",
    ),
    (
        ("Expect autotune result cache hit for deviceless",),
        "This jaxlib cannot compile for GPUs that are not here; jax 0.10 can: --python names another interpreter.",
    ),
    (
        ("is different from the lowering platform",),
        "A callback to the host (jax.debug.print, io_callback, pure_callback) can only be compiled for a device that "
        "is here: leave it out of this compile.",
    ),
    (
        ("should match the mesh passed to shard_map",),
        "The program has a mesh of its own: leave --mesh out, or give it the same axes.",
    ),
    (
        ("requires a non-empty mesh", "context mesh cannot be empty", "mesh cannot be empty"),
        "The program shards by the names of axes, and nothing says which mesh has them: with --for, --mesh "
        "data=4,model=2 sets one; jax.set_mesh in the file does as well.",
    ),
    (
        ("ModuleNotFoundError",),
        "Install it in the environment of this interpreter, or choose the interpreter with --python PATH.",
    ),
    (
        ("RecursionError",),
        "The function calls itself too deeply to be traced: use jax.lax.scan, fori_loop or while_loop.",
    ),
)


def conclude(
    reporter: Reporter,
    work: Callable[[], object],
    results: type[BaseException] | tuple[type[BaseException], ...] = (Exception, SystemExit),
    max_seconds: float | None = None,
) -> None:
    """Call `work`, and emit the last event of its run. Exceptions of the types `results` are the run's result; others
    are raised, as by default an interrupt, which in the user's process is the user's. `max_seconds`: its hard cap."""
    try:
        work()
        reporter.emit(RunFinished(status="ok"))
    except Cancelled:
        reporter.emit(RunFinished(status="cancelled", error=_where("cancelled", reporter)))
    except CapReached:
        if reporter.samples:  # any samples are a result, only an incomplete one
            phase = reporter.current_phase
            reporter.warn("max_seconds_reached", limit_seconds=max_seconds or 0.0, phase=phase)
            reporter.emit(RunFinished(status="ok"))
        else:
            text = _where(f"stopped at the hard cap of {seconds(max_seconds)}", reporter)
            hint = "Give a larger --max-seconds, or choose a smaller size."
            reporter.emit(RunFinished(status="timed out", error=text, advice=hint))
    except results as error:  # whatever the user's function, the compiler or a damaged file raises is the run's result
        reporter.emit(failure_of(error))


def _where(text: str, reporter: Reporter) -> str:
    return f"{text} in phase {reporter.current_phase}" if reporter.current_phase else text


def failure_of(error: BaseException) -> RunFinished:
    if isinstance(error, JaxprofError):
        memory = is_out_of_memory(error)
        return RunFinished(status="failed", error=error.what, advice=error.hint, out_of_memory=memory)
    text = _text(error)
    names = {cls.__name__ for cls in type(error).__mro__}
    hint = next((says for signs, says in _HINTS if any(sign in names or sign in text for sign in signs)), "")
    # The traceback goes without the frames of the measuring code, also in the exceptions that led to it.
    whole = traceback.TracebackException.from_exception(error)
    seen: list[traceback.TracebackException] = []
    pending: list[traceback.TracebackException | None] = [whole]
    while pending:
        part = pending.pop()
        if part is None or part in seen:
            continue
        seen.append(part)
        kept = [frame for frame in part.stack if not frame.filename.startswith(_OUR_PACKAGES)]
        part.stack = traceback.StackSummary.from_list(kept)
        pending += [part.__cause__, part.__context__]
    return RunFinished(
        status="failed",
        error=text if len(text) <= _LONGEST else text[:_LONGEST] + " …",
        advice=hint,
        traceback="".join(whole.format()),
        out_of_memory=is_out_of_memory(error),
    )


def is_out_of_memory(error: BaseException) -> bool:
    if isinstance(error, DoesNotFitError):
        return True
    return any(sign in _text(error) for sign in _HINTS[0][0])


def _text(error: BaseException) -> str:
    """Return the error's type and text, also if a user's class of errors fails to give its text."""
    try:
        words = str(error)
    except Exception as another:  # noqa: BLE001 - the error is the run's result, whatever its text raises
        words = f"(reading its message raised {type(another).__name__})"
    # XLA's autotuner has the same line for each configuration: a line that follows itself is given once.
    runs = [(line, len(list(same))) for line, same in groupby(words.splitlines())]
    words = "\n".join(f"{line} ({count} times)" if line and count > 1 else line for line, count in runs)
    return f"{type(error).__name__}: {words}".strip()
