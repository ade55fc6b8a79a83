"""`@jaxprof.workload`: how somebody declares a function of their own, beside the function.

The decorator gives the function back as it is; it only writes down what was said. Nothing is imported but the standard
library, so that a program that is decorated starts as fast as before, with or without jaxprof watching.

    @jaxprof.workload(inputs=["f32[n,n]", "f32[n]"], parameters={"n": 1024})
    def solve(a, b):
        \"\"\"One dense solve.\"\"\"
        return jnp.linalg.solve(a, b)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, overload

from jaxprof.errors import UsageError, unknown_name
from jaxprof.events import Scalar
from jaxprof.workloads.callables import layers
from jaxprof.workloads.model import Published
from jaxprof.workloads.specs import Spec, parse

VARIANTS = ("jax", "jit")
"""What can be made of a function: op by op, and compiled as one program."""

Default = int | float | tuple[str, ...]
"""A parameter's default: a number, or words to choose from, of which the first is the default."""
Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """What the decorator was told; `workload` says what each of them means."""

    name: str = ""
    title: str = ""
    description: str = ""
    specs: tuple[Spec, ...] | None = None
    inputs: Callable[..., Any] | None = None
    parameters: Mapping[str, Default] = field(default_factory=dict)
    presets: Mapping[str, Mapping[str, Scalar]] = field(default_factory=dict)
    numpy: Callable[..., Any] | None = None
    expected: Any = None
    tolerance: float | Mapping[str, float] | None = None
    variants: tuple[str, ...] = VARIANTS
    published: tuple[Published, ...] = ()
    matrix_products: bool = True


_DECLARED: dict[int, tuple[object, Declaration]] = {}
"""By identity, because a compiled function takes no attributes; the function is kept, so that its id stays its own."""


@overload
def workload(function: Function, /) -> Function: ...
@overload
def workload(
    *,
    name: str = ...,
    title: str = ...,
    description: str = ...,
    inputs: Sequence[str] | Callable[..., Any] | None = ...,
    parameters: Mapping[str, Default] | None = ...,
    presets: Mapping[str, Mapping[str, Scalar]] | None = ...,
    numpy: Callable[..., Any] | None = ...,
    expected: Any = ...,
    tolerance: float | Mapping[str, float] | None = ...,
    variants: Sequence[str] = ...,
    published: Sequence[Published] = ...,
    matrix_products: bool = ...,
) -> Callable[[Function], Function]: ...
def workload(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str = "",
    title: str = "",
    description: str = "",
    inputs: Sequence[str] | Callable[..., Any] | None = None,
    parameters: Mapping[str, Default] | None = None,
    presets: Mapping[str, Mapping[str, Scalar]] | None = None,
    numpy: Callable[..., Any] | None = None,
    expected: Any = None,
    tolerance: float | Mapping[str, float] | None = None,
    variants: Sequence[str] = VARIANTS,
    published: Sequence[Published] = (),
    matrix_products: bool = True,
) -> Any:
    """Declares a function as a workload, with or without options; the function itself is given back unchanged.

    `inputs`: one spec for each argument (`["f32[n,n]", "key"]`), or a function that makes the arguments. It is called
    with those of the parameters that it names, and `random`, a seeded NumPy generator, if it names that; a tuple that
    it returns is the arguments, anything else is the only one. Without `inputs`, `<function>_inputs` in the same file
    is that function. `parameters`: names and defaults of what can be set; an inputs function's own defaults are
    parameters too, and keyword-only arguments of the workload with a parameter's name are given its value. `presets`:
    further named sets of values. `numpy`: a NumPy twin, called with NumPy arrays; it becomes the baseline. `expected`:
    the right result, or a function of the arguments (NumPy arrays) that computes it. `tolerance`: the largest accepted
    error, relative to the largest expected magnitude, for all precisions or by precision. `variants`: of `jax` (op by
    op) and `jit`. `published`: figures to show beside the measured ones. `matrix_products=False` says that there are
    none, so that results are held to float32's tolerance also where products are done in TF32 or bfloat16. `title` and
    `description` default to the docstring. Raises UsageError for an option that cannot be read.
    """
    if not variants:
        raise UsageError("a workload needs a variant", f"variants= takes some of {', '.join(VARIANTS)}.")
    for variant in variants:
        if variant not in VARIANTS:
            raise unknown_name("variant", variant, VARIANTS)
    if isinstance(inputs, str):
        inputs = [inputs]
    declaration = Declaration(
        name=name,
        title=title,
        description=description,
        specs=None if inputs is None or callable(inputs) else tuple(parse(text) for text in inputs),
        inputs=inputs if callable(inputs) else None,
        parameters=dict(parameters or {}),
        presets={preset: dict(values) for preset, values in (presets or {}).items()},
        numpy=numpy,
        expected=expected,
        tolerance=tolerance,
        variants=tuple(variants),
        published=tuple(published),
        matrix_products=matrix_products,
    )

    def declare(function: Function) -> Function:
        _DECLARED[id(function)] = (function, declaration)
        return function

    return declare if function is None else declare(function)


def declaration_of(function: object) -> Declaration | None:
    """What was declared of `function`, or of what it wraps (a jit, a partial, another decorator)."""
    for layer in layers(function):
        if id(layer) in _DECLARED:
            return _DECLARED[id(layer)][1]
    return None
