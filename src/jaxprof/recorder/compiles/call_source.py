"""What the source shows of a call that JAX compiled: where its function was made, and what becomes of its arguments.

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
from jaxprof.base.values import frozen
from jaxprof.events import NOWHERE, SourceLocation
from jaxprof.recorder.compiles.arguments import static_text
from jaxprof.recorder.compiles.functions import closure_of, unwrapped
from jaxprof.recorder.frame_owner import USER, frame_kind, outwards
from jaxprof.recorder.samples.call_text import parsed, position_of, source_lines
from jaxprof.recorder.samples.flow import LOOPS, is_within, span_of, statements_around

_LOCALS = ".<locals>."
_VALUES_KEPT = 16


@frozen
class Made:
    """How a function was made. Holds text only, none of the user's objects."""

    factory: str
    place: SourceLocation
    """Call of the factory; `NOWHERE` if it was not found."""
    closure: tuple[tuple[str, str, int], ...]
    """The factory's variables that the function uses: name, value as text, and its hash if it holds a secret."""


def made_by(function: Any, frame: FrameType | None, *, find_place: bool) -> Made | None:
    """Return the factory of `function`. None if the function is not defined inside another one, or if its factory is
    still running, because the function is then defined where it is used. `find_place`: whether to find the factory's
    call."""
    written = next((layer for layer in reversed(unwrapped(function)) if isinstance(layer, FunctionType)), None)
    if written is None or _LOCALS not in written.__qualname__:
        return None
    qualified = written.__qualname__.rpartition(_LOCALS)[0]
    frames = [caller for caller in _user_frames(frame) if caller.f_code.co_filename == written.__code__.co_filename]
    if any(caller.f_code.co_qualname == qualified for caller in frames):
        return None
    factory = qualified.rpartition(".")[2]
    place = NOWHERE
    # The call of the factory in the innermost function on the stack that has one: the last before its current line.
    for caller in _user_frames(frame) if find_place else ():
        lines = _calls(caller.f_code, factory)
        if lines:
            before = [line for line in lines if line <= caller.f_lineno]
            place = SourceLocation(caller.f_code.co_filename, (before or lines)[-1], caller.f_code.co_name)
            break
    closure = []
    for name, value in islice(closure_of(written), _VALUES_KEPT):
        text = static_text(value, name)
        is_hidden = REDACTED in text and type(value) in (str, bytes, int, float)  # only these surely have a hash
        closure.append((name, text, hash(value) if is_hidden else 0))
    return Made(factory, place, tuple(closure))


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
    taken |= set(_passed_on(site.loop, taken)) if site.loop is not None else set()
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
    for statement in statements_around(parsed(caller.f_code.co_filename), lambda part: is_within(at, span_of(part))):
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


def _passed_on(loop: ast.stmt, taken: set[str]) -> Iterator[str]:
    """Return the names to which another statement of the loop assigns the results: `params = new_params`."""
    for node in ast.walk(loop):
        if isinstance(node, ast.Assign):
            parts = node.value.elts if isinstance(node.value, ast.Tuple | ast.List) else [node.value]
            if taken & set(map(ast.unparse, parts)):
                yield from map(ast.unparse, _targets(node))


def _is_part_of(written: str, taken: set[str]) -> bool:
    """Whether one of `taken` is the argument itself or holds it: `state` holds `state.params`."""
    return any(written == name or written.startswith((f"{name}.", f"{name}[")) for name in taken)
