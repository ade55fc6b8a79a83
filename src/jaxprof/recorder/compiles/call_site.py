"""The call that made JAX compile: found on the stack, and what its source shows of it.

Among the frames between the event and the user's line there is a function of JAX that takes `*args` and has the user's
callable in its closure or its parameters; the callable's name is the one that JAX announced. It is found by these
properties and never by the names of JAX's functions. If a library wraps JAX's `jit` in its own (flax, equinox), a
function of that library further out also takes `*args`, and has the arguments as the user wrote them. The locals of the
user's own frames are never read.

`def make_step(rate): @jax.jit def step(x): ...; return step` makes a new `step` at each call, and JAX compiles each
one. The line to change is the call of `make_step`, which has returned by the time `step` is called. So that line is
looked up in the source of the functions on the stack.

`params = step(params, batch)` passes NumPy arrays once if `params` came from NumPy, and JAX arrays from then on.
Nothing is compiled again, so no event shows it; the source line does.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice
from types import CodeType, FrameType, FunctionType
from typing import Any

from jaxprof.base.text import REDACTED
from jaxprof.base.values import dataclass, field, frozen
from jaxprof.events import NOWHERE, SourceLocation
from jaxprof.recorder.compiles.arguments import static_text
from jaxprof.recorder.compiles.functions import (
    closure_of,
    code_of,
    function_in_closure,
    name_matches,
    wrapper_chain,
    wraps,
)
from jaxprof.recorder.frame_owner import JAX, LIBRARY, STDLIB, USER, file_kind, frame_kind, outwards
from jaxprof.recorder.samples.call_text import position_of, source_lines, tree_of
from jaxprof.recorder.samples.flow import LOOPS, is_within, span_of, statements_around

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
        # Where JAX's frames end the call has been made; what is further out belongs to other calls.
        if kind not in (JAX, STDLIB):
            break
        if kind == JAX:
            code, values = caller.f_code, caller.f_locals
            options = options or _jit_options(values)
            # Only a wrapper that takes `*args, **kwargs` has the arguments as the user gave them.
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
    # `pmap` compiles a function of JAX's own, which holds the user's.
    own = inner is not None and file_kind(inner.co_filename) == JAX
    held = function_in_closure(call.function) if own else None
    call.written = _wrapper_call(caller, held.__name__ if held is not None else name, held)
    if call.written is not None and not call.found:
        call.function, call.args, call.kwargs = call.written.function, call.written.args, call.written.kwargs
    return call


def _wrapper_call(frame: FrameType | None, name: str, held: Any) -> ObservedCall | None:
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
            if any(function_in_closure(values.get(variable)) is held for variable in code.co_freevars):
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


_LOCALS = ".<locals>."


@frozen
class Made:
    """How a function was made. Holds text only, none of the user's objects."""

    factory: str
    location: SourceLocation
    """Call of the factory; `NOWHERE` if it was not found."""
    closure: tuple[tuple[str, str, int], ...]
    """The factory's variables that the function uses: name, value as text, and its hash if it holds a secret."""


def factory_of(function: Any, frame: FrameType | None, *, find_location: bool) -> Made | None:
    """Return the factory of `function`. None if the function is not defined inside another one, or if its factory is
    still running, because the function is then defined where it is used. `find_location`: whether to find the factory's
    call."""
    written = next((layer for layer in reversed(wrapper_chain(function)) if isinstance(layer, FunctionType)), None)
    if written is None or _LOCALS not in written.__qualname__:
        return None
    qualified = written.__qualname__.rpartition(_LOCALS)[0]
    frames = [caller for caller in _user_frames(frame) if caller.f_code.co_filename == written.__code__.co_filename]
    if any(caller.f_code.co_qualname == qualified for caller in frames):
        return None
    factory = qualified.rpartition(".")[2]
    location = NOWHERE
    # The call of the factory in the innermost function on the stack that has one: the last before its current line.
    for caller in _user_frames(frame) if find_location else ():
        lines = _calls(caller.f_code, factory)
        if lines:
            before = [line for line in lines if line <= caller.f_lineno]
            location = SourceLocation(caller.f_code.co_filename, (before or lines)[-1], caller.f_code.co_name)
            break
    closure = []
    for name, value in islice(closure_of(written), 16):
        text = static_text(value, name)
        is_hidden = REDACTED in text and type(value) in (str, bytes, int, float)  # only these surely have a hash
        closure.append((name, text, hash(value) if is_hidden else 0))
    return Made(factory, location, tuple(closure))


def _user_frames(frame: FrameType | None) -> Iterator[FrameType]:
    return (caller for caller in outwards(frame) if frame_kind(caller) == USER)


@lru_cache(maxsize=1024)
def _calls(code: CodeType, name: str) -> tuple[int, ...]:
    """Return the lines with instructions of a function, and of those inside it, on which the source calls `name`.

    The source is searched and not parsed: the tree of a file is thousands of objects, with which Python's collector
    comes to go through all objects of the program, in which it waits for 50 ms."""
    written = source_lines(code.co_filename)
    called = re.compile(rb"(?<!def )\b%s\s*\(" % re.escape(name.encode()))
    lines: set[int] = set()
    waiting = [code]
    while waiting:
        inner = waiting.pop()
        lines.update(line for *_, line in inner.co_lines() if line)
        waiting += [part for part in inner.co_consts if isinstance(part, CodeType)]
    return tuple(line for line in sorted(lines) if line <= len(written) and called.search(written[line - 1]))


@frozen
class _Site:
    call: ast.Call
    statement: ast.stmt
    loop: ast.stmt | None
    """Innermost loop around the call, in the same function."""
    scope: ast.stmt | None
    """Innermost loop or function around the call; None in a module."""


def in_later_calls(names: Sequence[str], keywords: Sequence[str], frame: FrameType | None) -> tuple[set[str], set[str]]:
    """Return which arguments, among `names` (positional) and `keywords`, the user's line replaces by the result, and
    which are one object in every call; none if the source does not show it."""
    site = _site(frame)
    if site is None or any(isinstance(argument, ast.Starred) for argument in site.call.args):
        return set(), set()
    before = len(names) - len(site.call.args)  # a method's own object is written before the parentheses of the call
    arguments = dict(zip(names[max(0, before) :], site.call.args, strict=False))
    arguments |= {item.arg: item.value for item in site.call.keywords if item.arg and item.arg in keywords}
    written = arguments.items()
    taken = {ast.unparse(target) for target in _targets(site.statement)}
    # Another statement of the loop may pass the results on: `params = new_params`.
    passed_on: set[str] = set()
    for node in ast.walk(site.loop) if site.loop is not None else ():
        if isinstance(node, ast.Assign):
            parts = node.value.elts if isinstance(node.value, ast.Tuple | ast.List) else [node.value]
            if taken & set(map(ast.unparse, parts)):
                passed_on |= set(map(ast.unparse, _targets(node)))
    taken |= passed_on
    replaced = {name for name, argument in written if _is_part_of(ast.unparse(argument), taken)}
    assigned: set[str] = set()  # in the loop or the function around the call, with its parameters
    for node in ast.walk(site.scope) if site.scope is not None else ():
        if isinstance(node, ast.arg):
            assigned.add(node.arg)
        elif isinstance(node, ast.Name | ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store):
            assigned.add(ast.unparse(node))
    return replaced, {name for name, argument in written if _is_constant(argument, assigned)}


def _is_constant(argument: ast.expr, assigned: set[str]) -> bool:
    """Whether an argument is a name, or a part of it, that is not assigned around the call."""
    parts = list(ast.walk(argument))
    return (
        not any(isinstance(part, ast.Call | ast.BinOp | ast.NamedExpr) for part in parts)
        and not _is_part_of(ast.unparse(argument), assigned)
        and assigned.isdisjoint(part.id for part in parts if isinstance(part, ast.Name))
    )


def _site(frame: FrameType | None) -> _Site | None:
    """Return the call that the innermost of the user's frames is in; None without its source."""
    caller = next(_user_frames(frame), None)
    at = position_of(caller.f_code, caller.f_lasti)[1] if caller is not None else None
    if caller is None or at is None:
        return None
    loop: ast.stmt | None = None
    scope: ast.stmt | None = None
    statement: ast.stmt | None = None
    for statement in statements_around(tree_of(caller.f_code.co_filename), lambda part: is_within(at, span_of(part))):
        if isinstance(statement, LOOPS):
            loop = scope = statement
        elif isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            loop, scope = None, statement
    if statement is None:
        return None
    calls = (node for node in ast.walk(statement) if isinstance(node, ast.Call) and span_of(node) == at)
    return next((_Site(call, statement, loop, scope) for call in calls), None)


def _targets(statement: ast.AST) -> Iterator[ast.expr]:
    waiting: list[Any] = list(getattr(statement, "targets", None) or [getattr(statement, "target", None)])
    if isinstance(statement, ast.For | ast.AsyncFor):
        return
    while waiting:
        target = waiting.pop()
        if isinstance(target, ast.Tuple | ast.List):
            waiting += target.elts
        elif isinstance(target, ast.Starred):
            waiting.append(target.value)
        elif isinstance(target, ast.expr):
            yield target


def _is_part_of(written: str, taken: set[str]) -> bool:
    """Whether one of `taken` is the argument itself or holds it: `state` holds `state.params`."""
    return any(written == name or written.startswith((f"{name}.", f"{name}[")) for name in taken)
