"""A call in words: where its function can be found again, and its arguments as specs. For a run that can be repeated.

Not every call can be written down. A function inside another function has no name that leads to it, and a session holds
no pickled objects: what cannot be said is told with its reason.
"""

from __future__ import annotations

import gc
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from jaxprof.program.calls.kept_arguments import key_kind
from jaxprof.workloads.callables import in_order, layers, written_function
from jaxprof.workloads.check import is_key
from jaxprof.workloads.find import dotted_name
from jaxprof.workloads.specs import array_text

_LONGEST: Final = 1 << 18
"""More characters of specs are not written down."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenCall:
    """What `RunPlanned` says of a call."""

    name: str
    """`train.py:step`, as a workload is called that was found there."""
    target: str = ""
    specs: tuple[str, ...] = ()
    problem: str = ""
    """Why it cannot be run again; target and specs are then empty."""


class Unwritable(Exception):
    """Something has no words; the text says what, and why."""


def write_call(function: Any, jitted: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> WrittenCall:
    """The call `function(*args, **kwargs)` in words; `jitted` is what was compiled of it, where that is known."""
    called = name
    try:
        place, found = _place(function, jitted)
        called = f"{Path(place).name}:{found}"
        placed, named = in_order(function, args, kwargs)
        specs = [_text(value, f"argument {number}") for number, value in enumerate(placed, start=1)]
        specs += [f"{key}={_text(value, key)}" for key, value in named.items()]
        if sum(map(len, specs)) > _LONGEST:
            raise Unwritable("its arguments have too many parts to be written down")
    except Unwritable as error:
        return WrittenCall(name=called, problem=str(error))
    return WrittenCall(name=called, target=f"{place}:{found}", specs=tuple(specs))


def jitted_of(function: object) -> Any:
    """What `jax.jit` made of `function`, with its static and donated arguments; None where nothing refers to one.

    Asked of the garbage collector: the compiled object may be a global, an attribute, or live in a closure. Takes about
    50 ms with a million objects.
    """
    import jax

    kind: Any = type(jax.jit(written_function))
    found = [one for one in gc.get_referrers(function) if type(one) is kind and one.__wrapped__ is function]
    return found[-1] if found else None


def _place(function: Any, jitted: Any) -> tuple[str, str]:
    """File and name under which the function, or better what was compiled of it, is found. Raises Unwritable."""
    written = written_function(function)
    code = getattr(written, "__code__", None)
    path = Path(code.co_filename) if code is not None else None
    if path is None or path.suffix != ".py" or not path.is_file():
        raise Unwritable("its function was not written in a file")
    names = getattr(written, "__globals__", {})
    for name, value in list(names.items()):
        if value is function or (jitted is not None and value is jitted):
            return str(path.resolve()), name
    name = str(getattr(written, "__qualname__", ""))
    if _leads_to(names, name, function):
        return str(path.resolve()), name
    raise Unwritable(f"its function, {name}, is inside another function, where no name leads to it")


def _leads_to(names: dict[str, Any], dotted: str, function: object) -> bool:
    first, *rest = dotted.split(".")
    value = names.get(first)
    for part in rest:
        value = getattr(value, part, None)
    return value is not None and any(layer is function for layer in layers(value))


def _text(value: Any, path: str) -> str:
    """The spec of a value. Raises Unwritable naming what at `path` has none."""
    import jax
    import numpy as np

    if isinstance(value, jax.Array) and is_key(value):
        kind = key_kind(value)
        kind = "" if kind == getattr(jax.config, "jax_default_prng_impl", "") else f"<{kind}>"
        return f"key{kind}" + (f"[{','.join(map(str, value.shape))}]" if value.shape else "")
    if isinstance(value, jax.Array | np.ndarray | np.generic):
        text = array_text(value.dtype.name, value.shape)
        if text is None:
            raise Unwritable(f"{path} is an array of {value.dtype.name}")
        return text
    if value is None or type(value) in (bool, int, float, str):
        return repr(value)
    return _container_text(value, path)


def _container_text(value: Any, path: str) -> str:
    if type(value) is tuple:
        items = [_text(item, f"{path}[{index}]") for index, item in enumerate(value)]
        return f"({', '.join(items)}{',' * (len(items) == 1)})"
    if type(value) is list:
        return f"[{', '.join(_text(item, f'{path}[{index}]') for index, item in enumerate(value))}]"
    if type(value) is dict and all(type(key) in (str, int) for key in value):
        return "{" + ", ".join(f"{key!r}: {_text(item, f'{path}[{key!r}]')}" for key, item in value.items()) + "}"
    kind = type(value)
    module = _importable_name(kind.__module__)
    if isinstance(value, tuple) and hasattr(kind, "_fields") and module and "<locals>" not in kind.__qualname__:
        fields = [f"{name}={_text(getattr(value, name), f'{path}.{name}')}" for name in kind._fields]
        return f"{module}:{kind.__qualname__}({', '.join(fields)})"
    raise Unwritable(f"{path} is a {kind.__module__}.{kind.__qualname__}, which a session cannot hold")


def _importable_name(module: str) -> str:
    """The name under which `module` is imported where the function is run again; the program itself has one, too."""
    if module != "__main__":
        return module
    main = sys.modules.get("__main__")
    spec, file = getattr(main, "__spec__", None), getattr(main, "__file__", None)
    if spec is not None:
        return str(spec.name)
    return dotted_name(Path(file).resolve())[0] if file else ""
