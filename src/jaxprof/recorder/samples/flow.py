"""What a statement of the user's produces, and whether that goes into the work of its loop, from the source.

A host function counts as a loader if its result is passed to the step, whatever its name. The names that each statement
binds, in a loop or in a function without one, are followed to the calls under which JAX was seen at work.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Final

from jaxprof.light_dataclass import dataclass
from jaxprof.recorder.samples.call_text import describe, parsed

_COMPOUND: Final = (ast.For, ast.AsyncFor, ast.While, ast.If, ast.With, ast.AsyncWith, ast.Try, ast.TryStar, ast.Match)
_SCOPES: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)

Span = tuple[int, int, int, int]
"""First line, last line, first column and last column (bytes of UTF-8), as in the bytecode."""


@dataclass(frozen=True, slots=True)
class _Statement:
    """One statement; for a compound statement, its head."""

    span: Span
    node: ast.AST
    gives: frozenset[str]
    takes: frozenset[str]


def feeds(file: str, at: Span, work: Iterable[Span]) -> bool | None:
    """Return whether the value computed at `at` becomes an argument of one of the calls `work`, in the same loop or
    function. None if there is no source, or if it does not show this.
    """
    tree = parsed(file)
    if tree is None:
        return None
    at = _iterated(tree, at)
    calls = [span for span in work if span != at]
    if any(_inside(at, span) for span in calls):
        return True
    region = _region(tree, at, calls)
    statements = list(_statements(region))
    here = _around(statements, at)
    if here is None:
        return None
    working = {id(statement): statement for span in calls if (statement := _around(statements, span)) is not None}
    if id(here) in working:  # next to the call, in the same statement: processing of its result
        return False
    # `trainer.book()` next to `trainer.step()` changes the trainer, and does not feed the step
    receivers = not isinstance(here.node, ast.Expr)
    wanted = frozenset[str]().union(
        *(_taken_by(statement, calls, receivers=receivers) for statement in working.values())
    )
    reached = set(here.gives)
    growing = True
    while growing:
        if wanted & reached:
            return True
        before = len(reached)
        for statement in statements:
            if id(statement) not in working and statement.takes & reached:
                reached |= statement.gives
        growing = len(reached) > before
    return False


def statement_at(file: str, line: int) -> tuple[Span | None, str]:
    """Return the innermost statement at a line (for a compound statement, its head), and its call; None and "" if there
    is no source."""
    tree = parsed(file)
    if tree is None:
        return None, ""
    innermost: ast.AST = tree
    while (inner := next((part for part in _children(innermost) if _has_line(part, line)), None)) is not None:
        innermost = inner
    if innermost is tree:
        return None, ""
    heads = list(_head(innermost)) if isinstance(innermost, _COMPOUND) else []
    node = heads[0].node if heads else innermost
    call = next((part for part in ast.walk(node) if isinstance(part, ast.Call)), None)
    return _span(node), describe(ast.unparse(call))[0] if call is not None else ""


def under_a_condition(file: str, loop_line: int, line: int) -> bool:
    """Whether a line of a loop is inside an `if` (or a `match`, or an `except`) of that loop, so that not every
    iteration reaches it."""
    tree = parsed(file)
    node: ast.AST | None = tree
    inside, conditional = False, False
    while node is not None:
        inner = next((child for child in _children(node) if _has_line(child, line)), None)
        if isinstance(node, ast.If | ast.Match) and inner is not None:
            conditional = conditional or inside
        if isinstance(node, ast.For | ast.AsyncFor | ast.While) and node.lineno <= loop_line <= node.body[0].lineno:
            inside, conditional = True, False
        node = inner
    return conditional


def _has_line(node: ast.AST, line: int) -> bool:
    first, last, *_ = _span(node)
    return first <= line <= last


def _region(tree: ast.Module, at: Span, work: list[Span]) -> list[ast.stmt]:
    """Return the innermost loop around `at` that contains a call of `work`; otherwise the innermost function, or the
    module."""
    body: list[ast.stmt] = tree.body
    node: ast.AST | None = tree
    while node is not None:
        inner = next((child for child in _children(node) if _inside(at, _span(child))), None)
        if isinstance(inner, _SCOPES):
            body = inner.body
        elif isinstance(inner, ast.For | ast.AsyncFor | ast.While):
            whole = _span(inner)
            if any(_inside(span, whole) for span in work):
                body = [inner]
        node = inner
    return body


def _iterated(tree: ast.Module, at: Span) -> Span:
    """Return the span of the iterated expression if `at` is a whole `for` loop, else `at`: up to Python 3.11, the
    instruction that takes the next item spans the whole loop."""
    node: ast.AST | None = tree
    while node is not None:
        if isinstance(node, ast.For | ast.AsyncFor) and _span(node) == at:
            return _span(node.iter)
        node = next((child for child in _children(node) if at == _span(child) or _inside(at, _span(child))), None)
    return at


def _children(node: ast.AST) -> Iterator[ast.stmt]:
    """Return the statements directly below, including those of `except` and `case`, which are not statements."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            yield child
        elif isinstance(child, ast.ExceptHandler | ast.match_case):
            yield from child.body


def _statements(body: Iterable[ast.stmt]) -> Iterator[_Statement]:
    for node in body:
        if isinstance(node, _SCOPES):
            continue
        if isinstance(node, _COMPOUND):
            yield from _head(node)
            yield from _statements(_children(node))
        else:
            yield _Statement(_span(node), node, frozenset(_given(node)), frozenset(_names(node)))


def _head(node: ast.AST) -> Iterator[_Statement]:
    if isinstance(node, ast.For | ast.AsyncFor):
        yield _Statement(_span(node.iter), node.iter, frozenset(_bound(node.target)), frozenset(_names(node.iter)))
    elif isinstance(node, ast.With | ast.AsyncWith):
        for item in node.items:
            bound = frozenset(_bound(item.optional_vars)) if item.optional_vars is not None else frozenset[str]()
            yield _Statement(_span(item.context_expr), item.context_expr, bound, frozenset(_names(item.context_expr)))
    elif isinstance(node, ast.While | ast.If):
        given = frozenset(_given(node.test))
        yield _Statement(_span(node.test), node.test, given, frozenset(_names(node.test)))


def _given(node: ast.AST) -> Iterator[str]:
    """Return the names that a statement binds or changes: its targets, `buffer` in `buffer[i] = x`, `rows` in
    `rows.append(x)`."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield from _bound(target)
    elif isinstance(node, ast.AugAssign | ast.AnnAssign):
        yield from _bound(node.target)
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Attribute):
        yield from (name for name in _dotted(node.value.func.value) if name not in ("self", "cls"))
    for inner in ast.walk(node):
        if isinstance(inner, ast.NamedExpr):
            yield from _bound(inner.target)


def _bound(target: ast.expr) -> Iterator[str]:
    if isinstance(target, ast.Tuple | ast.List):
        for element in target.elts:
            yield from _bound(element)
    elif isinstance(target, ast.Starred | ast.Subscript):
        yield from _bound(target.value)
    else:
        yield from _dotted(target)


def _dotted(node: ast.expr) -> Iterator[str]:
    """Return a name, or `self.rows` for an attribute of a name; nothing for anything deeper."""
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        yield f"{node.value.id}.{node.attr}"


def _names(node: ast.AST) -> Iterator[str]:
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name | ast.Attribute) and isinstance(inner.ctx, ast.Load):
            yield from _dotted(inner)


def _taken_by(statement: _Statement, work: list[Span], *, receivers: bool) -> frozenset[str]:
    """Return the names in the arguments of a statement's calls of `work`; with `receivers`, also the objects whose
    methods are called."""
    taken: set[str] = set()
    called = False
    for inner in ast.walk(statement.node):
        if isinstance(inner, ast.Call) and _span(inner) in work:
            for argument in (*inner.args, *(keyword.value for keyword in inner.keywords)):
                taken.update(_names(argument))
            called = True
            if isinstance(inner.func, ast.Attribute) and receivers:
                taken.update(_dotted(inner.func.value))
    return frozenset(taken) if taken or (called and not receivers) else statement.takes


def _around(statements: list[_Statement], span: Span) -> _Statement | None:
    return next(
        (statement for statement in statements if span == statement.span or _inside(span, statement.span)), None
    )


def _span(node: ast.AST) -> Span:
    return (
        getattr(node, "lineno", 0),
        getattr(node, "end_lineno", 0) or 0,
        getattr(node, "col_offset", 0),
        getattr(node, "end_col_offset", 0) or 0,
    )


def _inside(inner: Span, outer: Span) -> bool:
    """Whether one span lies inside the other and is not equal to it."""
    begins, ends = (inner[0], inner[2]) >= (outer[0], outer[2]), (inner[1], inner[3]) <= (outer[1], outer[3])
    return inner != outer and begins and ends
