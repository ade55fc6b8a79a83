"""The source of a frame's current instruction and its call, without running anything.

Names are looked up only in the module's globals, in builtins and in modules: never through an object's attributes,
which may run the user's code, and never in a frame's locals, which would keep their arrays alive.
"""

from __future__ import annotations

import ast
import builtins
import linecache
import os
import sys
import threading
import time
import tokenize
from functools import lru_cache
from itertools import islice
from types import BuiltinFunctionType, CodeType, ModuleType
from typing import Any

from jaxprof.base.values import frozen
from jaxprof.recorder.cpython import operation_at

LONGEST_TEXT = 48
_FILES_KEPT = 64
_TREES_KEPT = 16
_LARGEST_PARSED_BYTES = 400_000
"""Parsing a larger file would hold the interpreter's lock for more than about 100 ms."""
Span = tuple[int, int, int, int]
"""First line, last line, first column and last column (bytes of UTF-8), as in the bytecode."""
_process_began = time.time()
_parsing = threading.RLock()


@frozen
class CallSpot:
    """One instruction of a code object."""

    line: int
    operation: str
    """The opcode: `CALL`, `FOR_ITER`, `BINARY_OP`; empty if the inside of this Python is unknown."""
    text: str
    """The call of the instruction: `float()`, `.item()`, `train_step`, `np.asarray()`, `x + y`; empty if unknown."""
    callee: tuple[str, ...] = ()
    """The dotted name that is called; empty if the callee is not a plain name."""
    span: Span | None = None
    """Where the instruction's source is; None if unknown."""

    @property
    def method(self) -> str:
        """Last part of the called name: `item` of `x.item()`."""
        return self.callee[-1] if self.callee else self.text.strip(".()")

    @property
    def is_call(self) -> bool:
        """Whether the instruction is a call and not an operator."""
        if not self.operation:
            return bool(self.callee) or (self.text.startswith(".") and self.text.endswith("()"))
        return self.operation.startswith(("CALL", "PRECALL", "INSTRUMENTED_CALL", "KW_NAMES"))


@lru_cache(maxsize=4096)
def spot_of(code: CodeType, offset: int) -> CallSpot:
    """Return the instruction at `offset` (`frame.f_lasti`) of a code object."""
    at, operation = operation_at(code, offset)
    line, span = position_of(code, at)
    if span is None:
        return CallSpot(line, operation, "")
    lines, segment = source_lines(code.co_filename), ""
    first, last, began, ended = span  # columns count bytes of UTF-8
    if 1 <= first <= last <= len(lines) and last - first <= 40:
        picked = list(lines[first - 1 : last])
        picked[-1] = picked[-1][:ended]
        picked[0] = picked[0][began:]
        segment = b"\n".join(picked).decode("utf-8", "replace")
    text, callee = describe(segment)
    return CallSpot(line, operation, text, callee, span)


def position_of(code: CodeType, offset: int) -> tuple[int, Span | None]:
    """Return the line of the instruction at `offset`, and its span; None if that is unknown."""
    positions = islice(code.co_positions(), operation_at(code, offset)[0] // 2, None)
    first, last, began, ended = next(positions, (None, None, None, None))
    line = first or code.co_firstlineno
    if first is None or last is None or began is None or ended is None:
        return line, None
    return line, (first, last, began, ended)


def describe(segment: str) -> tuple[str, tuple[str, ...]]:
    """Return a shortened piece of source, and the dotted name that it calls."""
    tree = _tree(f"({segment.strip()}\n)", "eval")
    if not isinstance(tree, ast.Expression):
        return "", ()
    node: ast.expr = tree.body
    if isinstance(node, ast.Await):
        node = node.value
    if isinstance(node, ast.JoinedStr | ast.FormattedValue):
        return "f-string", ()
    if not isinstance(node, ast.Call):
        shown = " ".join(segment.split())
        is_operator = isinstance(node, ast.BinOp | ast.Compare | ast.UnaryOp | ast.Subscript)
        return (_shorten(shown) if is_operator else ""), ()
    parts: list[str] = []
    target: ast.expr = node.func
    while isinstance(target, ast.Attribute):
        parts.append(target.attr)
        target = target.value
    if isinstance(target, ast.Name):
        callee = (target.id, *reversed(parts))
        if not parts:
            return (f"{target.id}()" if hasattr(builtins, target.id) else target.id), callee
        return _shorten(".".join(callee)) + "()", callee
    return (f".{parts[0]}()" if parts else ""), ()


def _shorten(text: str) -> str:
    return text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + "…"


@lru_cache(maxsize=_FILES_KEPT)
def source_lines(file: str) -> tuple[bytes, ...]:
    """Return the lines of a source file as UTF-8; empty if there is none, or if it has changed since the start."""
    try:
        status = os.stat(file)
        if status.st_size > 4_000_000 or status.st_mtime > _process_began:
            return ()
        with tokenize.open(file) as stream:
            return tuple(line.encode() for line in stream.read().split("\n"))
    except (OSError, SyntaxError, ValueError):
        kept: Any = linecache.cache.get(file)  # cells of a notebook are only in this cache
        return tuple(line.rstrip("\n").encode() for line in kept[2]) if kept and len(kept) == 4 else ()


@lru_cache(maxsize=_TREES_KEPT)
def tree_of(file: str) -> ast.Module | None:
    """Return the syntax tree of a source file; None if there is none, or if it is too large or damaged."""
    source = b"\n".join(source_lines(file))
    if not source or len(source) > _LARGEST_PARSED_BYTES:
        return None
    tree = _tree(source, "exec")
    return tree if isinstance(tree, ast.Module) else None


def _tree(source: str | bytes, mode: str) -> ast.AST | None:
    """Return the syntax tree of a source; None if it has none.

    Python 3.11 counts the depth of a tree for all threads together, and raises SystemError if two threads parse at the
    same time: the sampler's, and one that compiles.
    """
    try:
        with _parsing:
            return ast.parse(source, mode=mode)
    except (SyntaxError, ValueError, RecursionError, MemoryError, SystemError):
        return None


def look_up(callee: tuple[str, ...], code: CodeType, names: dict[str, Any]) -> Any:
    """Return the value of a dotted name in the globals `names`; None if it is unknown without running code."""
    if not callee or callee[0] in code.co_varnames or callee[0] in code.co_cellvars + code.co_freevars:
        return None
    value = names.get(callee[0], getattr(builtins, callee[0], None))
    for part in callee[1:]:
        if not is_a(value, ModuleType):
            return None
        module: Any = value
        value = names_in(module).get(part)
    return value


def is_a(value: object, *kinds: type) -> bool:
    """Whether a value is of one of these classes. `isinstance` would ask the object, and a proxy runs code then."""
    return issubclass(type(value), kinds)


def names_in(module: ModuleType) -> dict[str, Any]:
    """Return the names of a module. `vars` would import a lazy one (`importlib.util.LazyLoader`)."""
    names: dict[str, Any] = object.__getattribute__(module, "__dict__")
    return names


def is_foreign(callee: tuple[str, ...], code: CodeType, names: dict[str, Any]) -> bool:
    """Whether the called object is known not to be JAX's: a function in C such as `time.sleep`, or a method of an
    object of NumPy's or of the standard library, such as a queue. False if that is unknown without running code."""
    value = look_up(callee, code, names)
    if value is not None:
        return is_a(value, BuiltinFunctionType, type) or _belongs_to_library(value)
    owner = look_up(callee[:1], code, names) if len(callee) > 1 else None
    return owner is not None and not is_a(owner, ModuleType, type) and _belongs_to_library(owner)


def _belongs_to_library(value: Any) -> bool:
    """Whether a value is NumPy's or the standard library's; `functools.partial` may hold a compiled function."""
    root = type(value).__module__.partition(".")[0]
    return root == "numpy" or (root in sys.stdlib_module_names and root not in ("builtins", "functools", "types"))


def maker_of(value: Any) -> str:
    """Return who made a jitted function: `user`, or `jax` (jax.numpy's own functions); empty for anything else."""
    jax = sys.modules.get("jax")
    if jax is None or type(value).__module__.partition(".")[0] not in ("jax", "jaxlib"):
        return ""
    stages = jax.stages
    if not isinstance(value, stages.Wrapped | stages.Compiled):
        return ""
    module = getattr(value, "__module__", None)
    return "jax" if isinstance(module, str) and module.partition(".")[0] == "jax" else "user"
