"""An exception, as what a user can act on: what failed, what mends it, and where in their own code."""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from pathlib import Path

from jaxprof.errors import JaxprofError

_LONGEST = 2000
_PACKAGE = Path(__file__).resolve().parents[1]
_OUR_ROOMS = tuple(str(_PACKAGE / room) for room in ("measure", "engine", "workloads/find"))


@dataclass(frozen=True, slots=True)
class Failure:
    """The three texts of a run that failed."""

    error: str
    advice: str = ""
    traceback: str = ""


_ADVICE: tuple[tuple[tuple[str, ...], str], ...] = (
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
        ("Array has been deleted", "buffer has been deleted or donated"),
        "An input was donated and used again: leave donate_argnums to the outermost jit, which jaxprof sees.",
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
        ("ModuleNotFoundError",),
        "Install it in the environment of this interpreter, or choose the interpreter with --python PATH.",
    ),
    (
        ("RecursionError",),
        "The function calls itself too deeply to be traced: use jax.lax.scan, fori_loop or while_loop.",
    ),
)


def explain(error: BaseException) -> Failure:
    """What to say of `error`."""
    if isinstance(error, JaxprofError):
        return Failure(error.what, error.mend)
    text = f"{type(error).__name__}: {error}".strip()
    names = {cls.__name__ for cls in type(error).__mro__}
    advice = next((says for signs, says in _ADVICE if any(sign in names or sign in text for sign in signs)), "")
    return Failure(_shorten(text), advice, _own_frames(error))


def is_out_of_memory(error: BaseException) -> bool:
    """Whether the host or the device had no room."""
    return any(sign in f"{type(error).__name__}: {error}" for sign in _ADVICE[0][0])


def _shorten(text: str) -> str:
    return text if len(text) <= _LONGEST else text[:_LONGEST] + " …"


def _own_frames(error: BaseException) -> str:
    """The traceback without the frames of the measuring code, and of the exceptions that led to it likewise."""
    whole = traceback.TracebackException.from_exception(error)
    seen: list[traceback.TracebackException] = []
    pending: list[traceback.TracebackException | None] = [whole]
    while pending:
        part = pending.pop()
        if part is None or part in seen:
            continue
        seen.append(part)
        kept = [frame for frame in part.stack if not frame.filename.startswith(_OUR_ROOMS)]
        part.stack = traceback.StackSummary.from_list(kept)
        pending += [part.__cause__, part.__context__]
    return "".join(whole.format())
