"""The fixture `jaxprof`: it calls a function as the test asks, and keeps what the call compiled.

The program is read right after the call, from the caches that the call has filled: later the settings under which it
was compiled (a mesh, a precision) may be gone, and donated arguments are. Only times are measured on demand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from jaxprof.api.session import Session
from jaxprof.errors import UsageError
from jaxprof.events import Compiled, RunSpec
from jaxprof.session.log import new_header
from jaxprof.testing.compilations import CompileWatch
from jaxprof.testing.program_facts import ProgramFacts

if TYPE_CHECKING:
    from jaxprof.recorder.calls.kept_call import KeptArguments
    from jaxprof.recorder.compiles.signature import FunctionKey

_LEAVES_NAMED = 16


class CallResult(ProgramFacts):
    """One call of a function, and its program."""

    def __init__(self, value: Any, program: CalledProgram, call: _Call) -> None:
        super().__init__(program.session)
        self.value = value
        """What the function returned."""
        self._program = program
        self._call = call

    @property
    def compiles(self) -> int:
        """How often the function has been compiled in this test so far, by this and any other call."""
        return len(self.compilations)

    @property
    def compilations(self) -> tuple[Compiled, ...]:
        """These compilations, with their reasons."""
        return self._call.function.compilations()

    @cached_property
    def facts(self) -> dict[str, float | None]:
        """Those of the program, which several calls may share."""
        return self._program.facts


class CalledProgram(ProgramFacts):
    """A program that the fixture has called."""

    def __init__(self, session: Session, name: str, signature: str) -> None:
        super().__init__(session)
        self.name = name
        """The function's name."""
        self.signature = signature
        """The types of its arguments, for people."""


class CalledFunction:
    """A function that the fixture has called: its programs, and how it is compiled."""

    def __init__(self, function: Callable[..., Any], watch: CompileWatch) -> None:
        import jax

        self.name = str(getattr(function, "__name__", type(function).__name__))
        self.is_plain = not hasattr(function, "lower")
        self.compiled: Any = jax.jit(_plain(function)) if self.is_plain else function
        self.programs: list[tuple[_Call, CalledProgram]] = []
        self._watch = watch
        self._keys: set[FunctionKey] = set()

    def compilations(self) -> tuple[Compiled, ...]:
        """Its compilations in this test so far."""
        return tuple(seen.event for seen in self._watch.seen if seen.key in self._keys)

    def by_key(self) -> dict[FunctionKey, list[Compiled]]:
        """The same, by what tells a function from another of the same name."""
        return {key: [seen.event for seen in self._watch.seen if seen.key == key] for key in self._keys}

    def took(self, before: int) -> bool:
        """Whether a call that began after `before` compilations compiled the function."""
        during = self._watch.seen[before:]
        named = [seen for seen in during if seen.event.function == self.name]
        own = named or [seen for seen in during if not seen.event.op_by_op]
        self._keys |= {seen.key for seen in own}
        return bool(own)


@dataclass(frozen=True, slots=True, eq=False)
class _Call:
    """One call as it was made."""

    function: CalledFunction
    leaves: tuple[Any, ...]
    kept: KeptArguments
    types: tuple[Any, ...]
    """What tells its program from others: structure, shapes and dtypes of its arguments."""
    values: tuple[Any, ...]
    """The leaves that are no arrays: a static one tells programs apart, too."""


class Caller:
    """What the fixture `jaxprof` is: `result = jaxprof(fn, *args, **kwargs)`."""

    def __init__(self, test: str, watch: CompileWatch) -> None:
        self.test = test
        self.functions: list[CalledFunction] = []
        self._watch = watch
        self._known: dict[Any, CalledFunction] = {}

    @property
    def programs(self) -> list[CalledProgram]:
        """The programs of all calls so far."""
        return [program for function in self.functions for _, program in function.programs]

    def __call__(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> CallResult:
        """Calls `fn(*args, **kwargs)` and returns the result with its program. A function that is not compiled already
        (`jax.jit`, `nnx.jit`, `eqx.filter_jit`) is compiled by `jax.jit`.

        Raises UsageError for something that is not callable, and what the function raises.
        """
        if not callable(fn):
            raise UsageError(f"jaxprof needs a function, not {type(fn).__name__}", "jaxprof(fn, *args, **kwargs)")
        from jaxprof.engine.measure.ahead_of_time import abstract

        function = self._function(fn)
        shapes, named = abstract((args, kwargs))
        call = _call(function, args, kwargs)
        before = len(self._watch.seen)
        try:
            value = function.compiled(*args, **kwargs)
        except Exception as error:
            if function.is_plain:
                error.add_note("The fixture jaxprof compiles a plain function with jax.jit; give it a compiled one.")
            raise
        compiled = function.took(before)
        program = None if compiled else _same(call, function.programs)
        if program is None:
            program = self._read(call, shapes, named)
            function.programs.append((call, program))
        return CallResult(value, program, call)

    def _function(self, fn: Callable[..., Any]) -> CalledFunction:
        try:
            hash(fn)
            key: Any = fn
        except TypeError:
            key = id(fn)  # it is kept alive below
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = CalledFunction(fn, self._watch)
            self.functions.append(known)
        return known

    def _read(self, call: _Call, shapes: tuple[Any, ...], named: Mapping[str, Any]) -> CalledProgram:
        """The program of a call that was just made, as a session."""
        from jaxprof.engine.measure.inprocess import compile_call, device_of

        name, types = call.function.name, _types(call.kept)
        count = len(call.function.programs)
        spec = RunSpec(
            workload=self.test,
            variant=name if not count else f"{name} {count + 1}",
            how="compile",
            device=device_of((shapes, named)),
            arguments=types,
            compilation_cache=True,
            check=False,
            capture=False,
        )
        session = Session(new_header(command=[]))
        with self._watch.paused():
            compile_call("r1", spec, call.function.compiled, shapes, named, session.apply)
        return CalledProgram(session, name, f"({', '.join(types)})")


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function as one that `jax.jit` can hash, under its own name."""
    try:
        hash(function)
    except TypeError:

        def call(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        call.__name__ = type(function).__name__
        return call
    return function


def _call(function: CalledFunction, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Call:
    import jax

    from jaxprof.recorder.calls.kept_call import KeptArguments, KeptArray

    kept = KeptArguments.of(args, kwargs, values=False)
    types = [
        (leaf.shape, str(leaf.dtype), leaf.weak, leaf.sharding) if isinstance(leaf, KeptArray) else type(leaf)
        for leaf in kept.leaves
    ]
    values = tuple(leaf for leaf in kept.leaves if not isinstance(leaf, KeptArray))
    return _Call(function, tuple(jax.tree.leaves((args, kwargs))), kept, (kept.structure, *types), values)


def _same(call: _Call, programs: list[tuple[_Call, CalledProgram]]) -> CalledProgram | None:
    """The program that such a call has made before: with the same values of what is not an array, else with others,
    which are then no static arguments."""
    alike = [(earlier, program) for earlier, program in reversed(programs) if earlier.types == call.types]
    for earlier, program in alike:
        if _equal(earlier.values, call.values):
            return program
    return alike[0][1] if alike else None


def _equal(ours: tuple[Any, ...], theirs: tuple[Any, ...]) -> bool:
    try:
        return bool(ours == theirs)
    except Exception:  # noqa: BLE001 - a value's own comparison
        return False


def _types(kept: KeptArguments) -> tuple[str, ...]:
    """The arguments in words: `f32[64,256]`; of many only the first, and the number and size of the others."""
    from jaxprof.recorder.calls.kept_call import KeptArray
    from jaxprof.text import shorten
    from jaxprof.units import bytes_
    from jaxprof.workloads.specs import array_text

    def words(leaf: Any) -> str:
        if not isinstance(leaf, KeptArray):
            return shorten(repr(leaf) if isinstance(leaf, bool | int | float | str) else type(leaf).__name__, 40)
        return array_text(str(leaf.dtype), leaf.shape) or f"{leaf.dtype}[{','.join(map(str, leaf.shape))}]"

    listed = [words(leaf) for leaf in kept.leaves[:_LEAVES_NAMED]]
    rest = kept.leaves[_LEAVES_NAMED:]
    if rest:
        arrays = [leaf for leaf in rest if isinstance(leaf, KeptArray)]
        sizes = [leaf.dtype.itemsize * _product(leaf.shape) for leaf in arrays]
        listed.append(f"and {len(rest)} more, {bytes_(sum(sizes))}")
    return tuple(listed)


def _product(shape: tuple[int, ...]) -> int:
    product = 1
    for size in shape:
        product *= size
    return product
