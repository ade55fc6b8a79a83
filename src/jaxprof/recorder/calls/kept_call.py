"""One real call of a function, kept so that it can be repeated: its arguments, and the call as text.

An array is kept as its shape, dtype and sharding, and with its values if they are requested, but not by reference: it
may be large, and it may be donated a moment later. Everything else (numbers, strings, static objects, containers) is
kept as it is.

As text, a call is the target that leads to its function, and its arguments as specs. Not every call can be written
down: no name leads to a function inside another function, and a session holds no pickled objects. For such a call the
reason is reported.
"""

from __future__ import annotations

import gc
import sys
from pathlib import Path
from typing import Any, Literal

from jaxprof.base.redaction import without_secret
from jaxprof.base.values import frozen
from jaxprof.workloads.callables import arguments_by_name, function_as_written, in_order, is_key, layers
from jaxprof.workloads.find import module_name_of
from jaxprof.workloads.function import make
from jaxprof.workloads.specs import Spec, array_text

_LONGEST = 1 << 18
"""Limit for the characters of a call's specs; a longer call is not written down."""


@frozen(eq=False)
class KeptArray:
    """What it takes to make an array again: shape, dtype, placement and, if requested, its values."""

    shape: tuple[int, ...]
    dtype: Any
    sharding: Any = None
    """Sharding; None for a NumPy array, and for an array that had no placement of its own while it was traced."""
    key: str = ""
    """Implementation of an array of typed random keys; empty for any other array."""
    weak: bool = False
    value: Any = None
    """NumPy array with the values, if they were requested and could be copied; else None."""

    @property
    def devices(self) -> int:
        return len(self.sharding.device_set) if self.sharding is not None else 1


@frozen(eq=False)
class KeptArguments:
    """The arguments of one call. Each leaf is a `KeptArray` or something that is not an array."""

    leaves: tuple[Any, ...]
    structure: Any

    @classmethod
    def of(cls, args: tuple[Any, ...], kwargs: dict[str, Any], *, values: bool) -> KeptArguments:
        """Keep the arguments of a call `(*args, **kwargs)`; with `values`, wait for the arrays and copy them."""
        import jax
        import numpy as np

        leaves, structure = jax.tree.flatten((args, kwargs))
        kept = list(leaves)
        for at, leaf in enumerate(leaves):
            if isinstance(leaf, np.ndarray):
                kept[at] = KeptArray(leaf.shape, leaf.dtype, value=leaf.copy() if values else None)
            elif isinstance(leaf, jax.Array):
                key, weak = key_kind(leaf), bool(getattr(leaf, "weak_type", False))
                traced = isinstance(leaf, jax.core.Tracer)
                value = None
                if values and not traced and leaf.is_fully_addressable:
                    value = np.array(jax.device_get(jax.random.key_data(leaf) if key else leaf))
                kept[at] = KeptArray(leaf.shape, leaf.dtype, None if traced else leaf.sharding, key, weak, value)
        return cls(tuple(kept), structure)

    @property
    def arrays(self) -> list[KeptArray]:
        return [leaf for leaf in self.leaves if isinstance(leaf, KeptArray)]

    @property
    def devices(self) -> int:
        """The largest number of devices that hold any one array."""
        return max((array.devices for array in self.arrays), default=1)

    @property
    def device(self) -> Any:
        """The first device of the first array that has a placement; None if no array has one."""
        for array in self.arrays:
            if array.sharding is not None:
                return min(array.sharding.device_set, key=lambda device: device.id)
        return None

    @property
    def made_up(self) -> bool:
        """Whether some array will get values other than its own."""
        return any(array.value is None for array in self.arrays)

    def arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Make the arguments again: those by position, those by name. Arrays on one device become NumPy arrays, so that
        their transfer can be measured as well; an array over several devices gets its sharding back."""
        import jax
        import numpy as np

        random, spread = np.random.default_rng(0), self.devices > 1
        leaves = list(self.leaves)
        for at, array in enumerate(leaves):
            if not isinstance(array, KeptArray):
                continue
            value = array.value
            if value is None:
                kind: Literal["key", "array"] = "key" if array.key else "array"
                (value,) = make(
                    (Spec(text="", kind=kind, dtype=array.key or array.dtype.name, shape=array.shape),), {}, random
                )
            elif array.key:
                value = jax.random.wrap_key_data(value, impl=array.key)
            if not array.key and array.weak and array.shape == ():
                value = jax.numpy.asarray(value.item())
            elif not array.key and spread:
                value = jax.device_put(value, array.sharding) if array.devices > 1 else jax.numpy.asarray(value)
            leaves[at] = value
        args, kwargs = jax.tree.unflatten(self.structure, leaves)
        return args, kwargs


def key_kind(leaf: Any) -> str:
    """Return the implementation of typed random keys: `threefry2x32`, `rbg`; empty for anything else."""
    import jax

    return str(jax.random.key_impl(leaf)) if is_key(leaf) else ""


@frozen(kw_only=True)
class WrittenCall:
    """The fields of `RunPlanned` that describe a call."""

    name: str
    """Name such as `train.py:step`, as for a workload found in a file."""
    target: str = ""
    specs: tuple[str, ...] = ()
    problem: str = ""
    """Why the call cannot be repeated, with target and specs empty; empty if it can."""


class Unwritable(Exception):
    """Something cannot be written as text; the message says what, and why."""


def write_call(function: Any, jitted: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> WrittenCall:
    """Return the call `function(*args, **kwargs)` as text; `jitted`: what `jax.jit` made of the function, if known."""
    called = name
    try:
        written = function_as_written(function)
        code = getattr(written, "__code__", None)
        path = Path(code.co_filename) if code is not None else None
        if path is None or path.suffix != ".py" or not path.is_file():
            raise Unwritable("its function is not defined in a file")
        file, known = str(path.resolve()), getattr(written, "__globals__", {})
        # A name leads to the function, or preferably to its jitted object.
        objects = [function] if jitted is None else [function, jitted]
        found = next((key for key, value in list(known.items()) if any(value is each for each in objects)), "")
        if not found:
            found = str(getattr(written, "__qualname__", ""))
            value = known.get(found.partition(".")[0])
            for part in found.split(".")[1:]:
                value = getattr(value, part, None)
            if value is None or all(layer is not function for layer in layers(value)):
                raise Unwritable(f"its function, {found}, is defined inside another function, so no name leads to it")
        called = f"{Path(file).name}:{found}"
        placed, named = in_order(function, args, kwargs)
        names = [*arguments_by_name(function), *[""] * len(placed)]
        specs = [
            _text(value, f"argument {number}", name)
            for number, (value, name) in enumerate(zip(placed, names, strict=False), start=1)
        ]
        specs += [f"{key}={_text(value, key, key)}" for key, value in named.items()]
        if sum(map(len, specs)) > _LONGEST:
            raise Unwritable("its arguments have too many parts to write down")
    except Unwritable as error:
        return WrittenCall(name=called, problem=str(error))
    return WrittenCall(name=called, target=f"{file}:{found}", specs=tuple(specs))


def find_jitted(function: Any) -> Any:
    """Return the object that `jax.jit` made of `function`, with its static and donated arguments; None if nothing
    refers to one.

    The garbage collector is searched for it: the object may be a global, an attribute, or held by a closure. The search
    takes about 50 ms with a million objects. A global is also found if the program has frozen its objects, of which the
    collector then knows nothing.
    """
    import jax

    kind: Any = type(jax.jit(function_as_written))
    named = list(getattr(function_as_written(function), "__globals__", {}).values())
    wrappers = [
        referrer
        for referrer in (*named, *gc.get_referrers(function))
        if type(referrer) is kind and referrer.__wrapped__ is function
    ]
    return wrappers[-1] if wrappers else None


def _text(value: Any, path: str, name: str) -> str:
    """Return the spec of a value, which has this name in the program. Raises Unwritable with the path of the part that
    has no spec, or that looks like a secret."""
    import jax
    import numpy as np

    if isinstance(value, jax.Array) and (kind := key_kind(value)):
        kind = "" if kind == getattr(jax.config, "jax_default_prng_impl", "") else f"<{kind}>"
        return f"key{kind}" + (f"[{','.join(map(str, value.shape))}]" if value.shape else "")
    if isinstance(value, jax.Array | np.ndarray | np.generic):
        text = array_text(value.dtype.name, value.shape)
        if text is None:
            raise Unwritable(f"{path} is an array of {value.dtype.name}")
        return text
    if value is None or type(value) in (bool, int, float, str):
        text = repr(value)
        if without_secret(name, text) != text:
            raise Unwritable(f"{path} looks like a secret, which a session does not hold")
        return text
    if type(value) is tuple:
        items = [_text(item, f"{path}[{index}]", name) for index, item in enumerate(value)]
        return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"
    if type(value) is list:
        return f"[{', '.join(_text(item, f'{path}[{index}]', name) for index, item in enumerate(value))}]"
    if type(value) is dict and all(type(key) in (str, int) for key in value):
        named = ((key, _text(item, f"{path}[{key!r}]", f"{name}.{key}")) for key, item in value.items())
        return "{" + ", ".join(f"{key!r}: {text}" for key, text in named) + "}"
    container = type(value)
    module = container.__module__
    if module == "__main__":  # the program's own module has a name under which a rerun imports it, too
        main = sys.modules.get("__main__")
        spec, file = getattr(main, "__spec__", None), getattr(main, "__file__", None)
        module = module_name_of(Path(file).resolve())[0] if file else ""
        if spec is not None:
            module = str(spec.name)
    if (
        isinstance(value, tuple)
        and hasattr(container, "_fields")
        and module
        and "<locals>" not in container.__qualname__
    ):
        fields = [
            f"{part}={_text(getattr(value, part), f'{path}.{part}', f'{name}.{part}')}" for part in container._fields
        ]
        return f"{module}:{container.__qualname__}({', '.join(fields)})"
    raise Unwritable(f"{path} is a {container.__module__}.{container.__qualname__}, which a session cannot hold")
