"""What a program that ran out of memory would need with a change: each one is compiled on shapes, and nothing is run.

It happens in our own process, because functions of the user's modules are replaced meanwhile. A change that the program
does not take (its shapes or dtypes no longer fit together) is left out: nothing is known of it.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import wraps
from itertools import islice, takewhile
from types import FunctionType
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp

from jaxprof.base.files import is_own
from jaxprof.base.grouping import grouped
from jaxprof.engine.measure.control import Cancelled, CapReached, Reporter
from jaxprof.engine.measure.stages import StagedProgram
from jaxprof.engine.measure.static_leaves import as_jitted
from jaxprof.engine.measure.trials import ProgramChange, donatable
from jaxprof.events import NOWHERE, MemoryReported, RemedyTried, SourceLocation
from jaxprof.hlo.text.parse import module as read_module
from jaxprof.workloads.callables import arguments_by_name, function_as_written

_MOST_SECONDS = 60.0
"""After this long no other change is tried."""
_MOST_FUNCTIONS = 3
"""Most functions on which `jax.checkpoint` is tried, those with most bytes in the forward pass first."""
_Key: TypeAlias = "tuple[str, str]"
"""File and name of a function of the user's."""
_Change: TypeAlias = "tuple[RemedyTried, Any, tuple[Any, ...], _Key | None]"
"""What is tried, the function, its arguments, and a function that `jax.checkpoint` goes around meanwhile."""


def try_remedies(
    reporter: Reporter, function: Any, arguments: tuple[Any, ...], compile_changed: Callable[..., StagedProgram]
) -> None:
    """Emit a `RemedyTried` for each change with which the program compiles. Raises Cancelled and CapReached.

    `arguments`: shapes in place of arrays. `compile_changed`: compiles a function for such arguments, and reports to
    what it is given first.
    """
    try:
        _try_each(reporter, function, arguments, compile_changed)
    finally:
        jax.clear_caches()  # nothing that was traced with a change is for the next run


def _try_each(
    reporter: Reporter, function: Any, arguments: tuple[Any, ...], compile_changed: Callable[..., StagedProgram]
) -> None:
    due, silent = time.monotonic() + _MOST_SECONDS, Reporter(lambda event: None, reporter.control)
    for changes in (_donation, _scan_checkpoint, _function_checkpoints, _halves, _bfloat16):
        with _ignore_failures():
            for tried, changed, shapes, key in changes(function, arguments):
                reporter.control.check()
                if time.monotonic() > due:
                    return
                with _ignore_failures(), ExitStack() as stack:
                    for owner, name, value in [*_owners(key)] if key is not None else ():
                        stack.callback(setattr, owner, name, vars(owner)[name])
                        setattr(owner, name, _checkpoint(value))
                    jax.clear_caches()  # what was traced before has the functions as they were
                    memory = compile_changed(silent, changed, shapes).memory or MemoryReported()
                    parts = (memory.argument_bytes, memory.output_bytes, memory.temporary_bytes)
                    peak = sum(part or 0 for part in parts) - (memory.alias_bytes or 0)
                    if None not in parts:
                        reporter.emit(replace(tried, peak_bytes=peak, temporary_bytes=memory.temporary_bytes))


@contextmanager
def _ignore_failures() -> Iterator[None]:
    """Leave out a change that cannot be traced or compiled: the user's function raises then whatever it wants."""
    try:
        yield
    except (Cancelled, CapReached):
        raise
    except Exception:  # noqa: BLE001 - as above
        pass


def _argument_names(function: Any, numbers: list[int]) -> str:
    names = list(arguments_by_name(function))
    return ", ".join(names[number] if number < len(names) else f"argument {number}" for number in numbers)


def _donation(function: Any, arguments: tuple[Any, ...]) -> Iterator[_Change]:
    if numbers := donatable(function, arguments):
        tried = RemedyTried(remedy="donate", subject=_argument_names(function, numbers))
        yield tried, jax.jit(function, donate_argnums=numbers), arguments, None


def _scan_checkpoint(function: Any, arguments: tuple[Any, ...]) -> Iterator[_Change]:
    """Yield the program with `jax.checkpoint` around the body of its scan, or of one of them."""
    jax.clear_caches()
    change = ProgramChange("checkpoint", NOWHERE)
    try:
        as_jitted(lambda *given: function(*given), arguments).eval_shape(*arguments)
        lines = change.report_reach().lines
        if len(lines) == 1:
            yield RemedyTried(remedy="checkpoint_scan", location=lines[0]), function, arguments, None
    finally:
        change.undo()


def _function_checkpoints(function: Any, arguments: tuple[Any, ...]) -> Iterator[_Change]:
    """Yield the program with `jax.checkpoint` around a function of the user's modules, one after the other."""
    code = function_as_written(function).__code__
    own, held = (code.co_filename, code.co_qualname), Counter[_Key]()
    jax.clear_caches()
    lowered: Any = as_jitted(function, arguments).lower(*arguments)
    for computation in read_module(lowered.as_text(dialect="hlo", debug_info=True)).computations.values():
        for instruction in computation:
            name = instruction.metadata.op_name
            if "jvp(" in name and "transpose(" not in name:
                frames = ((frame.file, frame.function) for frame in instruction.stack)  # from the innermost outwards
                inside = {key for key in takewhile(lambda key: key != own, frames) if is_own(key[0])}
                held.update(dict.fromkeys(inside, instruction.shape.bytes))
    written = ((key, [function_as_written(each) for *_, each in _owners(key)]) for key, _ in held.most_common())
    for key, functions in islice((item for item in written if item[1]), _MOST_FUNCTIONS):
        location = SourceLocation(key[0], functions[0].__code__.co_firstlineno, key[1])
        yield RemedyTried(remedy="checkpoint", subject=key[1], location=location), function, arguments, key


def _owners(key: _Key) -> Iterator[tuple[Any, str, Any]]:
    """Yield the user's modules, and the classes in them, with each name and value there that stands for the function of
    that file and name."""
    for module in list(sys.modules.values()):
        if not is_own(getattr(module, "__file__", None) or "<frozen "):
            continue
        classes = (each for each in list(vars(module).values()) if isinstance(each, type))
        for owner in (module, *(each for each in classes if each.__module__ == module.__name__)):
            for name, held in list(vars(owner).items()):
                # libraries of models keep a method in an object of theirs, and give the function
                value = held if owner is module or isinstance(held, staticmethod) else getattr(owner, name, None)
                if isinstance(value, FunctionType | jax.stages.Wrapped):
                    code = getattr(function_as_written(value), "__code__", None)  # none under a jit of a built-in
                    if code is not None and (code.co_filename, code.co_qualname) == key:
                        yield owner, name, value


def _checkpoint(function: Any) -> Any:
    """Return `function` under `jax.checkpoint`, which takes nothing but arrays: all else is closed over. The object of
    a method is one of its arguments if it is a pytree; a Flax module has variables elsewhere, and its own `remat`."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        libraries = (sys.modules.get(name) for name in ("flax.linen", "flax.nnx"))
        of = next(iter(args), None)
        flax = next((each for each in libraries if each is not None and isinstance(of, each.Module)), None)
        module, rest = (args[:1], args[1:]) if flax is not None else ((), args)
        leaves, tree = jax.tree.flatten((rest, kwargs))

        def of_arrays(*given: Any) -> Any:
            *own, arrays = given
            own_args, own_kwargs = jax.tree.unflatten(tree, [arrays.get(at, leaf) for at, leaf in enumerate(leaves)])
            return function(*own, *own_args, **own_kwargs)

        around = flax.remat if flax is not None else jax.checkpoint
        return around(of_arrays)(*module, {at: leaf for at, leaf in enumerate(leaves) if isinstance(leaf, jax.Array)})

    return call


def _halves(function: Any, arguments: tuple[Any, ...]) -> Iterator[_Change]:
    """Yield the program with half the rows of an argument that no result replaces: the largest first, then of all that
    have as many rows."""
    replaced = donatable(function, arguments)
    rows: dict[int, int] = {}
    for number, argument in enumerate(arguments):
        sizes = {leaf.shape[0] for leaf in _arrays(argument) if leaf.shape}
        if number not in replaced and len(sizes) == 1:
            rows[number] = sizes.pop()
    single = sorted(rows, key=lambda number: -sum(leaf.size for leaf in _arrays(arguments[number])))
    together = grouped((rows[number], number) for number in single).values()
    for numbers in [*([number] for number in single), *(list(group) for group in together if len(group) > 1)]:
        half, odd = divmod(rows[numbers[0]], 2)
        if half > 1 and not odd:
            changed = list(arguments)
            for number in numbers:
                changed[number] = _with(arguments[number], lambda leaf, rows=half: {"shape": (rows, *leaf.shape[1:])})
            tried = RemedyTried(remedy="half", subject=_argument_names(function, numbers), size=half)
            yield tried, function, tuple(changed), None


def _bfloat16(function: Any, arguments: tuple[Any, ...]) -> Iterator[_Change]:
    """Yield the program with arguments in bfloat16 in place of float32."""
    wide = [number for number, each in enumerate(arguments) if any(leaf.dtype == jnp.float32 for leaf in _arrays(each))]
    if wide:
        tried = RemedyTried(remedy="bfloat16", subject=_argument_names(function, wide))
        narrow = _with(arguments, lambda leaf: {"dtype": jnp.bfloat16} if leaf.dtype == jnp.float32 else {})
        yield tried, function, narrow, None


def _arrays(tree: Any) -> list[Any]:
    return [leaf for leaf in jax.tree.leaves(tree) if isinstance(leaf, jax.ShapeDtypeStruct)]


def _with(tree: Any, changed: Callable[..., dict[str, Any]]) -> Any:
    """Return the tree with shapes whose fields `changed` replaces."""

    def leaf(value: Any) -> Any:
        if not isinstance(value, jax.ShapeDtypeStruct) or not value.shape:
            return value
        given = {"shape": value.shape, "dtype": value.dtype, "sharding": value.sharding, **changed(value)}
        return jax.ShapeDtypeStruct(**given)

    return jax.tree.map(leaf, tree)
