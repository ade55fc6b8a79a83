"""What a statement of the user's produces, and whether that goes into the work of its loop, from the source.

A host function counts as a loader if its result is passed to the step, whatever its name. The names that each statement
binds, in a loop or in a function without one, are followed to the calls under which JAX was seen at work.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise

from jaxprof.base.values import frozen
from jaxprof.recorder.samples.call_text import Span, describe, tree_of

_COMPOUND = (ast.For, ast.AsyncFor, ast.While, ast.If, ast.With, ast.AsyncWith, ast.Try, ast.TryStar, ast.Match)
_FETCHES = frozenset({"float", "int", "bool", "item", "tolist", "array", "asarray", "device_get", "print", "format"})
_READS = frozenset({"len", "range", "print", "enumerate", "zip", "float", "int", "sum", "min", "max"})
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
LOOPS = (ast.For, ast.AsyncFor, ast.While)
_COMPUTING = (ast.Call, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_NAMING = (ast.Name, ast.Constant, ast.Tuple, ast.keyword, ast.expr_context)


@frozen
class _Statement:
    """One statement; for a compound statement, its head.

    `gives` holds the names that it binds or changes, `takes` those that it reads. An attribute of a name is `a.b`, and
    any attribute of it is `a.*`."""

    span: Span
    node: ast.AST
    gives: frozenset[str]
    takes: frozenset[str]


@frozen
class _Region:
    """The statements of the innermost loop with a call of JAX's work, else of the function or module."""

    here: _Statement
    """The statement at the position."""
    statements: list[_Statement]
    working: dict[int, _Statement]
    """Those with calls of the work, by id."""
    calls: list[Span]

    @property
    def results(self) -> frozenset[str]:
        return frozenset[str]().union(*(statement.gives for statement in self.working.values()))

    def reach(self, names: Iterable[str], *, but: _Statement | None = None) -> set[str]:
        """Return the names of values computed from those of `names`, outside the work and the statement `but`."""
        reached, growing = set(names), True
        while growing:
            before = len(reached)
            for statement in self.statements:
                if id(statement) not in self.working and statement is not but and statement.takes & reached:
                    reached |= statement.gives
            growing = len(reached) > before
        return reached

    @property
    def is_fed(self) -> bool:
        """Whether what is computed there becomes an argument of the work."""
        # `trainer.book()` next to `trainer.step()` changes the trainer, and does not feed the step
        receivers = not isinstance(self.here.node, ast.Expr)
        taken = (_takes(statement, self.calls, receivers=receivers) for statement in self.working.values())
        return not self.reach(self.here.gives).isdisjoint(frozenset[str]().union(*taken))

    @property
    def needs_results(self) -> bool:
        """Whether what is computed there uses the work's results, so that it cannot run ahead of them."""
        if id(self.here) in self.working:
            return True
        given = {name for node in ast.walk(self.here.node) if isinstance(node, ast.Call) for name in _arguments(node)}
        if self.results & given:  # an environment that gets the step's action
            return True
        bound = {name for statement in self.working.values() for name in _binds(statement.node)}
        return not self.reach(bound, but=self.here).isdisjoint(given)


def feeds(file: str, at: Span, work: Iterable[Span]) -> bool | None:
    """Return whether the value computed at `at` becomes an argument of one of the calls `work`, in the same loop or
    function, and does not need their results. None if there is no source, or if it does not show this.
    """
    region = _region(file, at, work)
    if region is None or isinstance(region, bool):
        return region
    # next to the call, in the same statement: processing of its result
    return id(region.here) not in region.working and not region.needs_results and region.is_fed


def is_between(file: str, at: Span, work: Iterable[Span]) -> bool:
    """Return whether the value computed at `at` is made of results of the calls `work`, and becomes an argument of one:
    the next one waits for it."""
    region = _region(file, at, work)
    return isinstance(region, _Region) and region.needs_results and region.is_fed


def _region(file: str, at: Span, work: Iterable[Span]) -> _Region | bool | None:
    """Return the statements around `at`; True within a call of the work, None if the source does not show it."""
    tree = tree_of(file)
    if tree is None:
        return None
    # Up to Python 3.11, the instruction that takes the next item of a `for` loop spans the whole loop.
    around = statements_around(tree, lambda part: is_within(at, span_of(part)))
    loops = (node for node in around if isinstance(node, ast.For | ast.AsyncFor) and span_of(node) == at)
    at = next((span_of(loop.iter) for loop in loops), at)
    calls = [span for span in work if span != at]
    if any(_inside(at, span) for span in calls):
        return True
    # The innermost loop around `at` with a call of `work`; else the innermost function, or the module.
    scope: ast.AST = tree
    for node in statements_around(tree, lambda part: _inside(at, span_of(part))):
        if isinstance(node, _SCOPES) or (
            isinstance(node, LOOPS) and any(_inside(span, span_of(node)) for span in calls)
        ):
            scope = node
    statements = _statements_of(scope, tree)
    here = _around(statements, at)
    if here is None:
        return None
    working = {id(statement): statement for span in calls if (statement := _around(statements, span)) is not None}
    return _Region(here, statements, working, calls)


def statement_at(file: str, line: int) -> tuple[Span | None, str, bool]:
    """Return the innermost statement at a line (for a compound statement, its head), its call, and whether it may
    fetch an array; None, "" and False if there is no source."""
    node, calls = _calls_at(file, line)
    if node is None:
        return None, "", False
    return span_of(node), describe(ast.unparse(calls[0]))[0] if calls else "", any(map(_may_fetch, calls))


def callees_at(file: str, line: int) -> list[tuple[str, ...]]:
    """Return the dotted names that this statement calls; a call of anything else is left out."""
    names = (describe(ast.unparse(call))[1] for call in _calls_at(file, line)[1])
    return [name for name in names if name]


def _calls_at(file: str, line: int) -> tuple[ast.AST | None, list[ast.Call]]:
    around = list(statements_around(tree_of(file), lambda part: _has_line(part, line)))
    if not around:
        return None, []
    innermost = around[-1]
    heads = list(_head(innermost)) if isinstance(innermost, _COMPOUND) else []
    node = heads[0].node if heads else innermost
    return node, [part for part in ast.walk(node) if isinstance(part, ast.Call)]


def has_other_work(file: str, line: int, work: Iterable[Span]) -> bool:
    """Return whether a line computes something besides JAX's `work` and the fetching of arrays: a call or comprehension
    that neither holds nor is such work, as the second statement of `w = f(w); books = count(words); log(float(w))`."""
    around = list(statements_around(tree_of(file), lambda part: _has_line(part, line)))
    if not around:
        return False
    beside = _children(around[-2]) if len(around) > 1 else iter((tree_of(file) or ast.Module([], [])).body)
    nodes = [part for each in beside if _has_line(each, line) for part in ast.walk(each)]
    calls = [part for part in nodes if isinstance(part, _COMPUTING) and part.lineno == line]
    known = [*work, *(span_of(call) for call in calls if isinstance(call, ast.Call) and _waits_for_array(call))]
    return any(
        not any(is_within(span, span_of(call)) or is_within(span_of(call), span) for span in known) for call in calls
    )


def is_all_work(file: str, at: Span, work: Sequence[Span]) -> bool:
    """Return whether the loop around a position only counts, and does nothing but calls of JAX's `work` and waits for
    results: `for _ in range(n): y = step(x); y.block_until_ready()`. Attributes and indices may run Python."""
    around = list(statements_around(tree_of(file), lambda part: is_within(at, span_of(part))))
    loop = around[-2] if len(around) > 1 else None
    if not isinstance(loop, ast.For) or not isinstance(loop.iter, ast.Call) or ast.unparse(loop.iter.func) != "range":
        return False
    for statement in loop.body:
        call = statement.value if isinstance(statement, ast.Assign | ast.Expr) else None
        waits = isinstance(call, ast.Call) and getattr(call.func, "attr", "") == "block_until_ready"
        if not isinstance(call, ast.Call) or not (waits or span_of(call) in work):
            return False
        known = [statement, call, *([call.func] if waits else [])]
        if not all(part in known or isinstance(part, _NAMING) for part in ast.walk(statement)):
            return False
    return True


def _waits_for_array(call: ast.Call) -> bool:
    return _may_fetch(call) or (isinstance(call.func, ast.Attribute) and call.func.attr == "block_until_ready")


def _may_fetch(call: ast.Call) -> bool:
    """Return whether the call may wait for an array of JAX's and read it: `float(loss)`, `loss.item()`."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    return name in _FETCHES and not all(isinstance(value, ast.Constant) for value in call.args or [call.func])


def under_a_condition(file: str, loop_line: int, line: int) -> bool:
    """Whether a line of a loop is under an `if`, `match` or `except` in it, so that not every iteration reaches it."""
    inside, conditional = False, False
    for node, _ in pairwise(statements_around(tree_of(file), lambda part: _has_line(part, line))):
        if isinstance(node, ast.If | ast.Match):
            conditional = conditional or inside
        if isinstance(node, LOOPS) and _begins_at(node, loop_line):
            inside, conditional = True, False
    return conditional


@functools.lru_cache(maxsize=256)
def is_unchanging(file: str, loop_line: int, at: Span) -> bool:
    """Whether nothing in a loop changes what the call `at` in it takes, as far as the source shows: its arguments call
    nothing, and what they name is neither bound there nor given to another call, which may change it."""
    tree = tree_of(file)
    around = statements_around(tree, lambda part: is_within(at, span_of(part)))
    loop = next((node for node in around if isinstance(node, LOOPS) and _begins_at(node, loop_line)), None)
    inside = list(ast.walk(loop)) if loop is not None else []
    call = next((node for node in inside if isinstance(node, ast.Call) and span_of(node) == at), None)
    if tree is None or call is None:
        return False
    values = [*call.args, *(keyword.value for keyword in call.keywords)]
    if any(isinstance(part, ast.Call | ast.Await | ast.NamedExpr) for value in values for part in ast.walk(value)):
        return False
    imported = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    modules = {alias.asname or alias.name.partition(".")[0] for node in imported for alias in node.names}
    taken = {path for value in values for path in _paths(value) if path.partition(".")[0] not in modules}
    reads = _READS | {name for name in modules if name.startswith(("jax", "jnp"))}  # their functions change nothing
    others = (
        node
        for node in inside
        if not isinstance(node, ast.Call) or ast.unparse(node.func).partition(".")[0] not in reads
    )
    changed = {path for node in others for path in _may_change(node, tree)}
    return not any(
        f"{one}.".startswith(f"{other}.") for a, b in ((taken, changed), (changed, taken)) for one in a for other in b
    )


def _may_change(node: ast.AST, tree: ast.Module) -> Iterator[str]:
    """Return what a node binds, or changes if it is a call: its object and its arguments, but not those of a call among
    them."""
    if isinstance(node, ast.Name | ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
        yield from _paths(node)
    if not isinstance(node, ast.Call):
        return
    for value in (*node.args, *(keyword.value for keyword in node.keywords)):
        yield from _paths(value)
    if isinstance(node.func, ast.Attribute):
        set_by_it = _attributes_set(tree, node.func.attr)
        for path in _paths(node.func.value):
            yield from [path] if set_by_it is None else (f"{path}.{name}" for name in set_by_it)


def _paths(node: ast.AST) -> Iterator[str]:
    """Return the names in a node outside calls, each with the attributes behind it: `self.table`."""
    of_name = isinstance(node, ast.Name | ast.Attribute)
    if of_name and not any(isinstance(part, ast.Call | ast.Subscript) for part in ast.walk(node)):
        yield ast.unparse(node)
    elif not isinstance(node, ast.Call):
        for part in ast.iter_child_nodes(node):
            yield from _paths(part)


def _begins_at(loop: ast.For | ast.AsyncFor | ast.While, line: int) -> bool:
    return loop.lineno <= line <= loop.body[0].lineno


def statements_around(tree: ast.Module | None, holds: Callable[[ast.stmt], bool]) -> Iterator[ast.stmt]:
    """Yield the statements around a position, outermost first."""
    node: ast.AST | None = tree
    while node is not None and (inner := next(filter(holds, _children(node)), None)) is not None:
        yield inner
        node = inner


def _has_line(node: ast.AST, line: int) -> bool:
    first, last, *_ = span_of(node)
    return first <= line <= last


def _children(node: ast.AST) -> Iterator[ast.stmt]:
    """Return the statements directly below, including those of `except` and `case`, which are not statements."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            yield child
        elif isinstance(child, ast.ExceptHandler | ast.match_case):
            yield from child.body


@functools.lru_cache(maxsize=16)
def _statements_of(scope: ast.AST, tree: ast.Module) -> list[_Statement]:
    """Return the statements of a loop with its head, or of the body of a function or a module. Each new stack asks for
    them, and those of a loop of 300 lines take 12 ms."""
    return list(_statements([scope] if isinstance(scope, LOOPS) else _children(scope), tree))


def _statements(body: Iterable[ast.stmt], tree: ast.Module) -> Iterator[_Statement]:
    for node in body:
        if isinstance(node, _SCOPES):
            continue
        if isinstance(node, _COMPOUND):
            yield from _head(node)
            yield from _statements(_children(node), tree)
        else:
            given = frozenset((*_binds(node), *_changes(node, tree)))
            yield _Statement(span_of(node), node, given, frozenset(_names(node)))


def _head(node: ast.AST) -> Iterator[_Statement]:
    if isinstance(node, ast.For | ast.AsyncFor):
        yield _Statement(
            span_of(node.iter), node.iter, frozenset(_target_names(node.target)), frozenset(_names(node.iter))
        )
    elif isinstance(node, ast.With | ast.AsyncWith):
        for item in node.items:
            bound = frozenset(_target_names(item.optional_vars)) if item.optional_vars is not None else frozenset[str]()
            yield _Statement(span_of(item.context_expr), item.context_expr, bound, frozenset(_names(item.context_expr)))
    elif isinstance(node, ast.While | ast.If):
        given = frozenset(_binds(node.test))
        yield _Statement(span_of(node.test), node.test, given, frozenset(_names(node.test)))


def _binds(node: ast.AST) -> Iterator[str]:
    """Return the names that a statement binds: its targets, and `buffer` in `buffer[i] = x`."""
    yield from _targets(node)
    for inner in ast.walk(node):
        if isinstance(inner, ast.NamedExpr):
            yield from _target_names(inner.target)


def _targets(node: ast.AST) -> Iterator[str]:
    """Return the names that a node binds itself, without those within it."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield from _target_names(target)
    elif isinstance(node, ast.AugAssign | ast.AnnAssign | ast.For | ast.AsyncFor):
        yield from _target_names(node.target)


def _changes(node: ast.AST, tree: ast.Module) -> Iterator[str]:
    """Return the names that a call of a method changes, if it is a statement of its own: `rows` in `rows.append(x)`.

    An attribute of the object may be changed, too: one that the method sets, if this file has a method of that name,
    and otherwise any of them. Of `self`, only those that such a method sets are known. A module is not changed.
    """
    call = node.value if isinstance(node, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return
    owner = call.func.value
    if isinstance(owner, ast.Name) and owner.id in _modules(tree):
        return
    is_own = isinstance(owner, ast.Name) and owner.id in ("self", "cls")
    if not is_own:
        yield from _dotted_name(owner)
    if isinstance(owner, ast.Name):
        attributes = _attributes_set(tree, call.func.attr)
        if attributes is not None:
            yield from (f"{owner.id}.{attribute}" for attribute in attributes)
        elif not is_own:
            yield f"{owner.id}.*"


@functools.lru_cache(maxsize=16)
def _modules(tree: ast.Module) -> frozenset[str]:
    """Return the names of the modules that a file imports at its top."""
    names = (alias for node in tree.body if isinstance(node, ast.Import) for alias in node.names)
    return frozenset(alias.asname or alias.name.partition(".")[0] for alias in names)


@functools.lru_cache(maxsize=256)
def _attributes_set(tree: ast.Module, method: str) -> frozenset[str] | None:
    """Return the attributes of its object that a method sets or changes, itself or by other methods of this file; None
    if the file has no method of that name."""
    methods = _methods(tree)
    if method not in methods:
        return None
    attributes: set[str] = set()
    waiting, looked_at = [method], set[str]()
    while waiting:
        name = waiting.pop()
        if name in looked_at:
            continue
        looked_at.add(name)
        for function in methods.get(name, ()):
            itself = function.args.args[0].arg
            for inner in ast.walk(function):
                given = list(_targets(inner))
                if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute):
                    owner = inner.func.value
                    given += _dotted_name(owner)  # `self.rows.append(x)`
                    if isinstance(owner, ast.Name) and owner.id == itself:
                        waiting.append(inner.func.attr)
                attributes.update(one[len(itself) + 1 :] for one in given if one.startswith(f"{itself}."))
    return frozenset(attributes - {"*"})


@functools.lru_cache(maxsize=16)
def _methods(tree: ast.Module) -> dict[str, list[ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Return the methods of the classes of a file by name, those that take their object."""
    methods: dict[str, list[ast.FunctionDef | ast.AsyncFunctionDef]] = {}
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        waiting += _children(node)
        if isinstance(node, ast.ClassDef):
            for part in node.body:
                if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef) and part.args.args:
                    methods.setdefault(part.name, []).append(part)
    return methods


def _target_names(target: ast.expr) -> Iterator[str]:
    if isinstance(target, ast.Tuple | ast.List):
        for element in target.elts:
            yield from _target_names(element)
    elif isinstance(target, ast.Starred | ast.Subscript):
        yield from _target_names(target.value)
    elif isinstance(target, ast.Name):
        yield from (target.id, f"{target.id}.*")
    else:
        yield from _dotted_name(target)


def _dotted_name(node: ast.expr) -> Iterator[str]:
    """Return a name, or `self.rows` for an attribute of a name; nothing for anything deeper."""
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        yield f"{node.value.id}.{node.attr}"


def _names(node: ast.AST) -> Iterator[str]:
    """Return the names and attributes of names that are read. `a` counts only alone, or if its method is called."""
    owners: set[int] = set()
    for inner in ast.walk(node):  # an attribute comes before its name
        if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute):
            yield from _dotted_name(inner.func.value)
        elif isinstance(inner, ast.Attribute) and isinstance(inner.value, ast.Name):
            owners.add(id(inner.value))
            if isinstance(inner.ctx, ast.Load):
                yield from (f"{inner.value.id}.{inner.attr}", f"{inner.value.id}.*")
        elif isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Load) and id(inner) not in owners:
            yield inner.id


def _arguments(call: ast.Call) -> Iterator[str]:
    for argument in (*call.args, *(keyword.value for keyword in call.keywords)):
        yield from _names(argument)


def _takes(statement: _Statement, work: list[Span], *, receivers: bool) -> frozenset[str]:
    """Return the names in the arguments of a statement's calls of `work`; with `receivers`, also their objects."""
    taken: set[str] = set()
    called = False
    for inner in ast.walk(statement.node):
        if isinstance(inner, ast.Call) and span_of(inner) in work:
            taken.update(_arguments(inner))
            called = True
            if isinstance(inner.func, ast.Attribute) and receivers:
                taken.update(_dotted_name(inner.func.value))
    return frozenset(taken) if taken or (called and not receivers) else statement.takes


def _around(statements: list[_Statement], span: Span) -> _Statement | None:
    return next((statement for statement in statements if is_within(span, statement.span)), None)


def span_of(node: ast.AST) -> Span:
    return (
        getattr(node, "lineno", 0),
        getattr(node, "end_lineno", 0) or 0,
        getattr(node, "col_offset", 0),
        getattr(node, "end_col_offset", 0) or 0,
    )


def is_within(inner: Span, outer: Span) -> bool:
    """Whether one span lies inside the other, or is equal to it."""
    return (inner[0], inner[2]) >= (outer[0], outer[2]) and (inner[1], inner[3]) <= (outer[1], outer[3])


def _inside(inner: Span, outer: Span) -> bool:
    return inner != outer and is_within(inner, outer)
