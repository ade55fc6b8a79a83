"""The call that made JAX compile, read from JAX's own frames between the event and the user's line.

On the way up there is a function of JAX with `*args` and the user's callable in its closure or its parameters, whose
name is the one that JAX announced. It is found by these properties and never by JAX's names. The locals of frames
outside JAX are never looked at.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Any, Final

from jaxprof.program.compiles.functions import name_matches
from jaxprof.program.places import JAX, STDLIB, frame_kind

_VARARGS, _VARKEYWORDS = 0x04, 0x08
_OPTIONS: Final = ("static_argnums", "static_argnames", "donate_argnums", "donate_argnames", "inline", "keep_unused")
_FRAMES_LOOKED_AT = 200


@dataclass(slots=True)
class Call:
    """What was called; it holds the user's objects, and lives only as long as one event is looked at."""

    function: Any = None
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    """Those of `jax.jit`, by the names that it has for them."""
    inner_args: tuple[Any, ...] | None = None
    """The flat arguments that the compiled program itself is called with, where a frame nearer to it has them."""

    @property
    def found(self) -> bool:
        """Whether the callable was seen; else only `inner_args` may be known."""
        return self.function is not None


def read_call(frame: FrameType | None, name: str) -> Call:
    """The call of the function that JAX calls `name`, from the frames of JAX at and above `frame`."""
    call = Call()
    options: dict[str, Any] = {}
    looked_at = 0
    while frame is not None and looked_at < _FRAMES_LOOKED_AT:
        kind = frame_kind(frame)
        if kind not in (JAX, STDLIB):
            break
        if kind == JAX:
            code, values = frame.f_code, frame.f_locals
            options = options or _jit_options(values)
            if code.co_flags & _VARARGS:
                positional, keywords = _variable_arguments(code, values)
                function = _callable_of(code, values, name, jitted=bool(_jit_options(values)))
                if function is not None:
                    call.function, call.args, call.kwargs, call.options = function, positional, keywords, options
                    break
                if call.inner_args is None and positional and not keywords and all(map(_is_array, positional)):
                    call.inner_args = positional
        frame = frame.f_back
        looked_at += 1
    return call


def _is_array(value: Any) -> bool:
    return hasattr(type(value), "shape") and hasattr(type(value), "dtype")


def _variable_arguments(code: CodeType, values: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    index = code.co_argcount + code.co_kwonlyargcount
    positional = values.get(code.co_varnames[index], ())
    keywords = values.get(code.co_varnames[index + 1], {}) if code.co_flags & _VARKEYWORDS else {}
    return (
        positional if isinstance(positional, tuple) else (),
        keywords if isinstance(keywords, dict) else {},
    )


def _callable_of(code: CodeType, values: dict[str, Any], name: str, *, jitted: bool) -> Any:
    """The callable named `name` among the closure and the plain parameters of a frame.

    The frame must be that of a jit, or the callable itself be jitted: `grad` and `vmap` hold functions of that name,
    too, and call programs that are derived from them.
    """
    for variable in (*code.co_freevars, *code.co_varnames[: code.co_argcount]):
        candidate = values.get(variable)
        if candidate is None or isinstance(candidate, type) or not name_matches(candidate, name):
            continue
        if jitted or (variable not in code.co_freevars and _is_jitted(candidate)):
            return candidate
    return None


def _is_jitted(function: Any) -> bool:
    return type(function).__module__.startswith("jax") and hasattr(function, "lower") and hasattr(function, "trace")


def _jit_options(values: dict[str, Any]) -> dict[str, Any]:
    """The options of `jax.jit`, where one of a frame's values carries them."""
    for value in values.values():
        kind = type(value)
        if kind.__module__.startswith("jax.") and hasattr(kind, "static_argnums") and hasattr(kind, "donate_argnums"):
            return {option: getattr(value, option, None) for option in _OPTIONS}
    return {}
