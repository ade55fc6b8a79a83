"""Finds the call that made JAX compile, from the frames between the event and the user's line.

Among the outer frames there is a function of JAX that takes `*args` and has the user's callable in its closure or its
parameters; the callable's name is the one that JAX announced. It is found by these properties and never by the names of
JAX's functions. If a library wraps JAX's `jit` in its own (flax, equinox), a function of that library further out also
takes `*args`, and has the arguments as the user wrote them. The locals of the user's own frames are never read.
"""

from __future__ import annotations

from types import CodeType, FrameType
from typing import Any

from jaxprof.base.values import dataclass, field
from jaxprof.recorder.compiles.functions import code_of, held_function, name_matches, wraps
from jaxprof.recorder.frame_owner import JAX, LIBRARY, STDLIB, file_kind, frame_kind, outwards

_VARARGS, _VARKEYWORDS = 0x04, 0x08
_OPTIONS = ("static_argnums", "static_argnames", "donate_argnums", "donate_argnames", "inline", "keep_unused")


@dataclass(slots=True)
class ObservedCall:
    """The call that made JAX compile. It holds the user's objects, so it lives only while one event is handled."""

    function: Any = None
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    """Options of `jax.jit`, by its own names for them."""
    inner_args: tuple[Any, ...] | None = None
    """Flat arguments of the compiled program itself, if a frame nearer to it has them."""
    written: ObservedCall | None = None
    """The call as the user wrote it, if a library's wrapper took it apart before it reached JAX."""

    @property
    def found(self) -> bool:
        """Whether the callable was seen; otherwise only `inner_args` may be known."""
        return self.function is not None


def read_call(frame: FrameType | None, name: str) -> ObservedCall:
    """Return the call of the function that JAX calls `name`, from JAX's frames at and above `frame`."""
    call = ObservedCall()
    options: dict[str, Any] = {}
    for caller in outwards(frame):
        kind = frame_kind(caller)
        if kind not in (JAX, STDLIB):
            break
        if kind == JAX:
            code, values = caller.f_code, caller.f_locals
            options = options or _jit_options(values)
            if code.co_flags & _VARARGS:
                positional, keywords = _variable_arguments(code, values)
                function = _callable_of(code, values, name, jitted=bool(_jit_options(values)))
                if function is not None:
                    call.function, call.args, call.kwargs, call.options = function, positional, keywords, options
                    break
                arrays = all(hasattr(type(each), "shape") and hasattr(type(each), "dtype") for each in positional)
                if call.inner_args is None and positional and not keywords and arrays:
                    call.inner_args = positional
    else:
        return call
    inner = code_of(call.function) if call.found else None
    own = inner is not None and file_kind(inner.co_filename) == JAX
    held = held_function(call.function) if own else None
    call.written = _written_call(caller, held.__name__ if held is not None else name, held)
    if call.written is not None and not call.found:
        call.function, call.args, call.kwargs = call.written.function, call.written.args, call.written.kwargs
    return call


def _written_call(frame: FrameType | None, name: str, held: Any) -> ObservedCall | None:
    """Return the call of a library's wrapper around the function called `name`, or of JAX's own wrapper around `held`,
    which is in the closure of the compiled function (`pmap`). If libraries' wrappers are nested, it is the innermost
    one: the outer ones may add arguments."""
    own: ObservedCall | None = None
    for caller in outwards(frame):
        kind, code = frame_kind(caller), caller.f_code
        if kind not in (JAX, STDLIB, LIBRARY):
            break
        if kind == LIBRARY and code.co_flags & _VARARGS:
            values = caller.f_locals
            for variable in (*code.co_freevars, *code.co_varnames[: code.co_argcount]):
                if wraps(values.get(variable), name):
                    return ObservedCall(values[variable], *_variable_arguments(code, values))
        elif kind == JAX and code.co_flags & _VARARGS and held is not None:
            values = caller.f_locals
            if any(held_function(values.get(variable)) is held for variable in code.co_freevars):
                own = ObservedCall(held, *_variable_arguments(code, values))
    return own


def _variable_arguments(code: CodeType, values: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    index = code.co_argcount + code.co_kwonlyargcount
    positional = values.get(code.co_varnames[index], ())
    keywords = values.get(code.co_varnames[index + 1], {}) if code.co_flags & _VARKEYWORDS else {}
    return (
        positional if isinstance(positional, tuple) else (),
        keywords if isinstance(keywords, dict) else {},
    )


def _callable_of(code: CodeType, values: dict[str, Any], name: str, *, jitted: bool) -> Any:
    """Return the callable named `name` in the closure or the plain parameters of a frame, or None.

    The frame must belong to a jit, or the callable must itself be jitted: `grad` and `vmap` also hold functions of that
    name, and they call programs derived from them.
    """
    for variable in (*code.co_freevars, *code.co_varnames[: code.co_argcount]):
        candidate = values.get(variable)
        if candidate is None or isinstance(candidate, type) or not name_matches(candidate, name):
            continue
        is_jitted = hasattr(candidate, "lower") and hasattr(candidate, "trace")
        of_jax = type(candidate).__module__.startswith("jax")
        if jitted or (variable not in code.co_freevars and of_jax and is_jitted):
            return candidate
    return None


def _jit_options(values: dict[str, Any]) -> dict[str, Any]:
    """Return the options of `jax.jit`, if one of a frame's values carries them."""
    for value in values.values():
        kind = type(value)
        if kind.__module__.startswith("jax.") and hasattr(kind, "static_argnums") and hasattr(kind, "donate_argnums"):
            return {option: getattr(value, option, None) for option in _OPTIONS}
    return {}
