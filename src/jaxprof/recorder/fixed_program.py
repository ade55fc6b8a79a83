"""Starts a program with one of its functions changed in memory: under `jax.jit`, with its arrays padded to buckets, or
given no more in each call than it needs.

`python fixed_program.py PLAN FILE ARGS` is `python FILE ARGS`, whose source is changed as it is compiled; no file is
written but the report of a checking launch. In that one, the first calls are made both ways, the program gets the
unchanged result, and the report says how far the two are apart. Standard library and the program's own jax only.

PLAN is JSON: `how` (`jit`, `pad`, `bind`; empty: nothing is changed), `functions` ([[file, name, line]...]), `report`
(a file; empty: no check).
"""

from __future__ import annotations

import ast
import atexit
import functools
import importlib.machinery
import json
import operator
import os
import sys
import types
from collections.abc import Callable
from itertools import takewhile, zip_longest
from typing import Any, cast

_MADE = "__jaxprof_fixed__"
"""What the changed source calls the changing function."""
_CHECKED_CALLS = 20
_SMALLEST_BUCKET = 8


class Fix:
    """What is changed, and what the check has seen."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self.how = str(plan.get("how", ""))
        self.places = [(os.path.realpath(file), name, line) for file, name, line in plan.get("functions", [])]
        self.found = 0
        self.calls = 0
        self.apart: dict[str, float] = {}
        self.note = ""
        self._report = str(plan.get("report", ""))
        self.checks = bool(self._report)
        if self.checks:
            atexit.register(self._write)

    def code(self, source: bytes, file: str) -> types.CodeType:
        """The program text of a file, with the functions in it changed."""
        tree = ast.parse(source, file)
        here = [(name, line) for where, name, line in self.places if where == os.path.realpath(file)]
        if here:
            tree = ast.fix_missing_locations(_Changer(self, here).visit(tree))
        return compile(tree, file, "exec", dont_inherit=True)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function with the change; in a checking launch it makes the first calls both ways."""
        self.found += 1
        makers: dict[str, Callable[..., Callable[..., Any]]] = {"jit": _jitted, "pad": _Padded, "bind": _Bound}
        changed = makers[self.how](function)
        if not self.checks:
            return changed

        return _Both(function, changed, self)

    def compare(self, right: Any, got: Any) -> None:
        import jax
        import numpy as np

        ours, theirs = jax.tree.leaves(right), jax.tree.leaves(got)
        if repr(jax.tree.structure(right)) != repr(jax.tree.structure(got)):
            self.note = self.note or "the result has another structure"
            return
        for one, other in zip(ours, theirs, strict=True):
            before, after = (np.asarray(jax.random.key_data(each) if _is_key(each) else each) for each in (one, other))
            if before.shape != after.shape or before.dtype != after.dtype:
                self.note = self.note or f"{before.dtype}{list(before.shape)} and {after.dtype}{list(after.shape)}"
                continue
            name = str(before.dtype)
            self.apart[name] = max(self.apart.get(name, 0.0), _relative(before, after))

    def _write(self) -> None:
        report = {"found": self.found, "calls": self.calls, "apart": self.apart, "note": self.note}
        with open(self._report, "w", encoding="utf-8") as file:
            json.dump(report, file)


class _InPlaceOf:
    """Stands where a function stood: is called, bound as a method, and asked for its attributes like it."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        functools.update_wrapper(self, function)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._function, name)

    def __get__(self, instance: object, owner: object = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)


class _Both(_InPlaceOf):
    """The unchanged function; its first calls are made with the changed one, too, and compared."""

    def __init__(self, function: Callable[..., Any], changed: Callable[..., Any], fix: Fix) -> None:
        super().__init__(function)
        self._changed, self._fix = changed, fix

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._fix.calls >= _CHECKED_CALLS:
            return self._function(*args, **kwargs)
        self._fix.calls += 1
        again = _copied(args), _copied(kwargs)  # before the call, which may donate them or write into them
        right = self._function(*args, **kwargs)
        got = self._changed(*again[0], **again[1])
        self._fix.compare((right, _states(args)), (got, _states(again[0])))
        return right


def _is_key(leaf: Any) -> bool:
    """Whether it is an array of typed random keys, which NumPy cannot hold."""
    return str(getattr(leaf, "dtype", "")).startswith("key<")


def _modules(args: Any) -> tuple[Any, ...]:
    """The first arguments that are modules of flax.nnx, its optimizers, metrics or generators: calls change them."""
    nnx: Any = sys.modules.get("flax.nnx")
    if nnx is None or type(args) is not tuple:
        return ()
    kinds = nnx.Module, nnx.Optimizer, nnx.Metric, nnx.Rngs
    return tuple(takewhile(lambda each: isinstance(each, kinds), args))


def _states(args: tuple[Any, ...]) -> list[Any]:
    """The arrays of the modules among the arguments."""
    import jax

    nnx: Any = sys.modules.get("flax.nnx")
    return [jax.tree.leaves(nnx.state(module)) for module in _modules(args)]


def _copied(tree: Any) -> Any:
    import jax
    import numpy as np

    def copy(leaf: Any) -> Any:
        if isinstance(leaf, np.ndarray):
            return leaf.copy()
        return jax.numpy.copy(leaf) if isinstance(leaf, jax.Array) and not _is_key(leaf) else leaf

    modules = _modules(tree)
    if not modules:
        return jax.tree.map(copy, tree)
    nnx: Any = sys.modules["flax.nnx"]
    structure, state = nnx.split(modules)
    return *nnx.merge(structure, jax.tree.map(copy, state)), *jax.tree.map(copy, tree[len(modules) :])


class _Changer(ast.NodeTransformer):
    """Puts the changing function around the functions that the plan names."""

    def __init__(self, fix: Fix, here: list[tuple[str, int]]) -> None:
        self._of_compiled = fix.how in ("pad", "bind")
        self._here = here

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        inner = self.generic_visit(node)
        assert isinstance(inner, ast.FunctionDef)
        first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
        named = any(name == node.name and first <= line <= (node.end_lineno or line) for name, line in self._here)
        if named and (not self._of_compiled or any(map(_is_jit, node.decorator_list))):
            inner.decorator_list.insert(0, ast.Name(_MADE, ast.Load()))
        return inner

    def visit_Call(self, node: ast.Call) -> ast.AST:
        inner = self.generic_visit(node)
        first = node.args[0] if node.args else None
        named = isinstance(first, ast.Name) and any(name == first.id for name, _ in self._here)
        if self._of_compiled and named and _is_jit(node.func):
            return ast.Call(ast.Name(_MADE, ast.Load()), [cast("ast.expr", inner)], [])
        return inner


def _is_jit(node: ast.expr) -> bool:
    """`jax.jit`, `jit`, `partial(jax.jit, ...)`, `jax.jit(donate_argnums=0)`."""
    if isinstance(node, ast.Call):
        return _is_jit(node.func) or any(map(_is_jit, node.args))
    return (isinstance(node, ast.Attribute) and node.attr == "jit") or (isinstance(node, ast.Name) and node.id == "jit")


def _jitted(function: Callable[..., Any]) -> Callable[..., Any]:
    import jax

    compiled: Callable[..., Any] = jax.jit(function)
    return compiled


class _Padded(_InPlaceOf):
    """A compiled function whose arrays are padded with zeros to the next power of two, along the axes whose sizes were
    seen to change, and whose results are cut to what they would have been."""

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        self._first: list[tuple[int, ...]] | None = None
        self._axes: set[tuple[int, int]] = set()
        self._cut: dict[frozenset[tuple[int, int]], list[tuple[int, int]] | None] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        import jax
        import numpy as np

        leaves, structure = jax.tree.flatten((args, kwargs))
        shapes = [tuple(getattr(leaf, "shape", ())) for leaf in leaves]
        if any(isinstance(leaf, jax.core.Tracer) for leaf in leaves):
            return self._function(*args, **kwargs)
        self._learn(shapes)
        if not self._axes:
            return self._function(*args, **kwargs)
        size = {shapes[leaf][axis] for leaf, axis in self._axes}
        if len(size) != 1:  # sizes that change apart from each other: which result has which is not known
            return self._function(*args, **kwargs)
        (wanted,) = size
        bucket = max(_SMALLEST_BUCKET, 1 << max(0, wanted - 1).bit_length())
        for number in {leaf for leaf, _ in self._axes}:
            widths = [
                (0, bucket - wanted if (number, axis) in self._axes else 0) for axis in range(len(shapes[number]))
            ]
            leaves[number] = np.pad(np.asarray(leaves[number]), widths)
        padded = jax.tree.unflatten(structure, leaves)
        cut = self._cuts(padded)
        if cut is None:
            return self._function(*args, **kwargs)
        result = self._function(*padded[0], **padded[1])
        out, shape = jax.tree.flatten(result)
        for number, axis in cut:
            out[number] = np.take(np.asarray(out[number]), range(wanted), axis)
        return jax.tree.unflatten(
            shape, [jax.numpy.asarray(each) if isinstance(each, np.ndarray) else each for each in out]
        )

    def _learn(self, shapes: list[tuple[int, ...]]) -> None:
        if self._first is None:
            self._first = shapes
        for number, (before, now) in enumerate(zip(self._first, shapes, strict=False)):
            if len(before) == len(now):
                self._axes |= {
                    (number, axis) for axis, sizes in enumerate(zip(before, now, strict=True)) if len(set(sizes)) > 1
                }

    def _cuts(self, padded: Any) -> list[tuple[int, int]] | None:
        """The axes of the results that are as long as the padded ones: those that change with them. None where the
        results of two sizes are not even alike."""
        key = frozenset(self._axes)
        if key not in self._cut:
            import jax

            def shapes(more: int) -> list[tuple[int, ...]]:
                leaves, structure = jax.tree.flatten(padded)
                for number in {leaf for leaf, _ in self._axes}:
                    longer = tuple(
                        size + more if (number, axis) in self._axes else size
                        for axis, size in enumerate(leaves[number].shape)
                    )
                    leaves[number] = jax.ShapeDtypeStruct(longer, leaves[number].dtype)
                args, kwargs = jax.tree.unflatten(structure, leaves)
                return [each.shape for each in jax.tree.leaves(jax.eval_shape(self._function, *args, **kwargs))]

            pairs = list(zip_longest(shapes(0), shapes(1), fillvalue=()))
            alike = all(len(one) == len(other) for one, other in pairs)
            self._cut[key] = None if not alike else [
                (number, axis)
                for number, (one, other) in enumerate(pairs)
                for axis, (ours, theirs) in enumerate(zip(one, other, strict=True))
                if ours != theirs
            ]  # fmt: skip
        return self._cut[key]


class _Bound(_InPlaceOf):
    """A compiled function that is given no more in each call than it needs: modules of flax.nnx are bound to it once,
    and leaves that its program does not use are left out."""

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        self._modules: tuple[Any, ...] = ()
        self._bound: Callable[..., Any] = function
        self._few: dict[Any, tuple[list[int], dict[int, Any], Callable[..., Any]] | None] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        modules = _modules(args)
        if not modules:
            return self._with_few(args, kwargs)
        if len(modules) != len(self._modules) or any(map(operator.is_not, modules, self._modules)):
            self._modules, self._bound = modules, sys.modules["flax.nnx"].cached_partial(self._function, *modules)
        return self._bound(*args[len(modules) :], **kwargs)

    def _with_few(self, args: Any, kwargs: Any) -> Any:
        import jax

        leaves, structure = jax.tree.flatten((args, kwargs))
        if structure not in self._few:
            self._few[structure] = self._of_used(leaves, structure)
        known = self._few[structure]
        if known is None:
            return self._function(*args, **kwargs)
        used, unused, few = known
        if any(isinstance(leaves[at], jax.core.Tracer) for at in used):
            return self._function(*args, **kwargs)
        if any(_shape(leaves[at]) != shape for at, shape in unused.items()):  # the result may depend on that
            return self._function(*args, **kwargs)
        return few([leaves[at] for at in used])

    def _of_used(
        self, leaves: list[Any], structure: Any
    ) -> tuple[list[int], dict[int, Any], Callable[..., Any]] | None:
        """Which leaves the program uses, the shapes of the others, and a function of the used ones alone; None where it
        uses most, or that is not known."""
        import jax

        def whole(*each: Any) -> Any:
            args, kwargs = jax.tree.unflatten(structure, each)
            return self._function(*args, **kwargs)

        try:
            used = sorted(_used(jax.make_jaxpr(whole)(*leaves).jaxpr))
        except (TypeError, ValueError):  # a static argument: text, or what JAX does not hash as a tracer
            return None
        if 2 * len(used) > len(leaves):
            return None
        unused = {at: jax.typeof(leaf) for at, leaf in enumerate(leaves) if at not in set(used)}

        def few(given: list[Any]) -> Any:
            each = dict(zip(used, given, strict=True))
            return whole(
                *(
                    each[at] if at in each else jax.numpy.zeros(unused[at].shape, unused[at].dtype)
                    for at in range(len(leaves))
                )
            )

        return used, {at: _shape(leaves[at]) for at in unused}, jax.jit(few)


def _shape(leaf: Any) -> Any:
    return getattr(leaf, "shape", None), getattr(leaf, "dtype", None)


def _used(program: Any) -> set[int]:
    """The inputs of a jaxpr that its results or effects depend on, by their number."""
    needed = set(map(id, program.outvars))
    for step in reversed(program.eqns):
        if not step.effects and needed.isdisjoint(map(id, step.outvars)):
            continue
        inner = getattr(step.params.get("jaxpr"), "jaxpr", None)
        within = inner is not None and len(inner.invars) == len(step.invars) and step.primitive.name in ("jit", "pjit")
        needed |= {id(step.invars[at]) for at in (_used(inner) if within else range(len(step.invars)))}
    return {at for at, variable in enumerate(program.invars) if id(variable) in needed}


def _relative(right: Any, got: Any) -> float:
    """The largest error over the largest magnitude; infinite where one is not finite and the other is."""
    import numpy as np

    if right.size == 0 or np.array_equal(right, got):
        return 0.0
    wide, other = (each.astype(np.complex128 if each.dtype.kind == "c" else np.float64) for each in (right, got))
    same = (wide == other) | (np.isnan(wide) & np.isnan(other))
    if not (same | (np.isfinite(wide) & np.isfinite(other))).all():
        return 1e300
    with np.errstate(all="ignore"):
        largest = float(np.max(np.abs(wide), where=np.isfinite(wide), initial=0.0))
        return float(np.where(same, 0.0, np.abs(wide - other)).max()) / (largest or 1.0)


def _change_imports(fix: Fix) -> None:
    """Modules that the program imports are changed, too, where the plan names one."""
    files = {file for file, _, _ in fix.places}
    usual = importlib.machinery.SourceFileLoader.get_code

    def get_code(self: importlib.machinery.SourceFileLoader, fullname: str) -> types.CodeType | None:
        path = self.get_filename(fullname)
        if os.path.realpath(path) not in files:
            return usual(self, fullname)
        import builtins

        setattr(builtins, _MADE, fix)
        return fix.code(self.get_data(path), path)

    importlib.machinery.SourceFileLoader.get_code = get_code  # type: ignore[method-assign, assignment]


def main() -> None:
    """Runs the program as `__main__`."""
    plan, file = json.loads(sys.argv[1]), sys.argv[2]
    sys.argv = sys.argv[2:]
    sys.path[0] = os.path.dirname(os.path.abspath(file))
    fix = Fix(plan)
    if fix.how:
        _change_imports(fix)
    program = types.ModuleType("__main__")
    program.__dict__.update({"__file__": os.path.abspath(file), "__builtins__": __builtins__, _MADE: fix})
    sys.modules["__main__"] = program
    with open(file, "rb") as source:
        code = fix.code(source.read(), file)
    exec(code, program.__dict__)


if __name__ == "__main__":
    main()
