"""Make arguments from their specs: arrays of seeded random numbers, keys, numbers and words, in their containers.

Floats are normal random numbers, integers 0 to 9. A named tuple is the only class that is imported: specs may come from
someone else's session file, so no object of any other class is made from them. NumPy and jax are imported only where an
array is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from jaxprof.errors import UsageError
from jaxprof.workloads.specs import Spec

if TYPE_CHECKING:
    import numpy

    from jaxprof.workloads.model import Parameters

_INTEGERS_BELOW = 10


def make(specs: Sequence[Spec], parameters: Parameters, random: numpy.random.Generator) -> tuple[Any, ...]:
    """The arguments: NumPy arrays, numbers as they are, and for `key` a typed JAX key. Raises UsageError."""
    return tuple(_make(spec, parameters, random) for spec in specs)


def _make(spec: Spec, parameters: Parameters, random: numpy.random.Generator) -> Any:
    if spec.kind == "number":
        return spec.number
    if spec.kind == "word":
        return spec.word
    if spec.kind == "key":
        return _make_key(spec, parameters, random)
    if spec.kind == "nested":
        return put_together(spec, [(label, _make(part, parameters, random)) for label, part in spec.parts])
    shape, dtype = spec.sizes(parameters), spec.dtype
    if dtype == "bool":
        return random.random(shape) < 0.5
    if dtype.startswith(("int", "uint")):
        return random.integers(_INTEGERS_BELOW, size=shape, dtype="int64").astype(dtype)
    if dtype.startswith("complex"):
        part = "float32" if dtype == "complex64" else "float64"
        return random.standard_normal((*shape, 2), dtype=part).view(dtype)[..., 0]  # type: ignore[call-overload]
    if dtype in ("float32", "float64"):
        return random.standard_normal(shape, dtype=dtype)  # type: ignore[call-overload]
    return random.standard_normal(shape, dtype="float32").astype(_narrow(dtype))


def _make_key(spec: Spec, parameters: Parameters, random: numpy.random.Generator) -> Any:
    import jax

    try:
        key = jax.random.key(int(random.integers(2**31)), impl=spec.dtype or None)
    except ValueError as error:
        raise UsageError(f"{spec.text}: {error}", "Write key for a key of JAX's default kind.") from None
    return jax.random.split(key, spec.sizes(parameters)) if spec.shape else key


def _narrow(dtype: str) -> Any:
    if dtype == "float16":
        return dtype
    import ml_dtypes

    return getattr(ml_dtypes, dtype)


def put_together(spec: Spec, parts: Sequence[tuple[str | int, Any]]) -> Any:
    """The container of `spec`, with these values. Raises UsageError for a class that cannot be found."""
    values = [value for _, value in parts]
    if spec.container == "tuple":
        return tuple(values)
    if spec.container == "list":
        return values
    if spec.container == "dict":
        return dict(parts)
    made = named_tuple(spec.container)
    try:
        return made(**{str(label): value for label, value in parts})
    except TypeError as error:
        raise UsageError(f"{spec.container} cannot be made: {error}", "Its fields have changed since.") from None


def named_tuple(path: str) -> type[Any]:
    """The class at `module:Name`. Raises UsageError if there is none, or if it is not a named tuple."""
    from importlib import import_module

    module, _, name = path.partition(":")
    try:
        value: Any = import_module(module)
        for part in name.split("."):
            value = getattr(value, part)
    except (ImportError, AttributeError) as error:
        raise UsageError(f"there is no class {path}: {error}", "An inputs function can make any argument.") from None
    if not (isinstance(value, type) and issubclass(value, tuple) and hasattr(value, "_fields")):
        raise UsageError(f"{path} is not a named tuple", "An inputs function can make any argument.")
    return value
