"""`@jaxprof.workload`: declare a function of your own as a workload, next to the function.

The decorator only notes the options and returns the function unchanged. It imports nothing except the standard library,
so that a decorated program starts as fast as before.

    @jaxprof.workload(inputs=["f32[n,n]", "f32[n]"], parameters={"n": 1024})
    def solve(a, b):
        \"\"\"One dense solve.\"\"\"
        return jnp.linalg.solve(a, b)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from inspect import signature
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_overloads, overload

from jaxprof.base.errors import UsageError, unknown_name
from jaxprof.base.values import frozen
from jaxprof.events import Scalar
from jaxprof.workloads.callables import arguments_by_name, layers
from jaxprof.workloads.model import Estimate, Parameter, Variant
from jaxprof.workloads.specs import Spec, parse

FULL_PRECISION = "compiled, with full float32 products (no TF32, no bfloat16 passes)"
VARIANTS = {
    variant.name: variant
    for variant in (
        Variant(name="jax", how="eager", description="op by op, device-resident"),
        Variant(name="jit", how="jit", description="one compiled program"),
        Variant(name="jit-highest", how="jit", precision="highest", description=FULL_PRECISION),
    )
}
"""The variants that `variants=` takes by name."""
_DEFAULT = ("jax", "jit")

Default = int | float | tuple[str, ...] | Parameter
"""Default of a parameter: a number; words, the default first; or a `Parameter` with a value in `quick`."""
Function = TypeVar("Function", bound=Callable[..., Any])


@frozen(kw_only=True)
class Declaration:
    """The options of `workload`, which documents each."""

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
    variants: tuple[Variant, ...] = tuple(VARIANTS[name] for name in _DEFAULT)
    baseline: str = ""
    factory: bool = False
    against: str = ""
    noisy_answer: bool = False
    estimate: Callable[..., Estimate] | None = None
    matrix_products: bool = True
    shardings: tuple[str | None, ...] | Callable[..., Any] | None = None


_DECLARED: dict[int, tuple[object, Declaration]] = {}
"""Declarations by `id` of the function, because a compiled function takes no attributes. The function is kept so that
its id is not reused."""


@overload
def workload(function: Function, /) -> Function: ...
@overload
def workload(
    function: None = None,
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
    variants: Sequence[str | Variant] = _DEFAULT,
    baseline: str = "",
    factory: bool = False,
    against: str = "",
    noisy_answer: bool = False,
    estimate: Callable[..., Estimate] | None = None,
    matrix_products: bool = True,
    shardings: Sequence[str | None] | Callable[..., Any] | None = None,
) -> Callable[[Function], Function]: ...
def workload(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Declare a function as a workload, with or without options. The function itself is returned unchanged.

    An option that is a function is called with the parameters that it names.

    title, description: default to the docstring.
    inputs: a spec for each argument (`["f32[n,n]", "key"]`), or a function that makes the arguments; it may also name
        `random`, a seeded NumPy generator, and a tuple that it returns is all arguments. Default: `<function>_inputs`
        in the same file.
    parameters: name and default of each parameter, or a `Parameter` with bounds, whose value is that of the preset
        `quick`. Defaults of an inputs function are parameters too. Keyword-only arguments of the workload receive the
        parameter of their name.
    presets: further named sets of values.
    numpy: a NumPy twin, called with NumPy arrays; it becomes the baseline.
    expected: the right result, or a function of the arguments (NumPy arrays) that computes it. `against` describes it
        in words; `noisy_answer`: it is not quite 0 where 0 is right, as with finite differences.
    tolerance: the largest accepted relative error, for all precisions or by precision (docs/workloads.md).
    variants: names among `jax` (op by op), `jit` and `jit-highest` (full float32 products), or a `Variant` of your own.
    baseline: the variant that the others are compared with. Default: the first.
    factory: the function makes the function to be timed. It is called once.
    estimate: a function that returns an `Estimate` of what one call needs.
    matrix_products: False if there are none: results are then held to float32's tolerance even where products are
        computed in TF32 or bfloat16.
    shardings: for `jaxprof hlo --for`, how the arguments are split over a mesh: a spec for each (`[None, "data"]`), or
        a function that returns them. Default: `<function>_shardings` in the same file.

    Raises UsageError for an option that cannot be read.
    """
    bound = _SIGNATURE.bind(None, **options)
    bound.apply_defaults()
    given = {name: value for name, value in bound.arguments.items() if name != "function"}
    inputs, shardings, variants = given["inputs"], given["shardings"], given["variants"]
    if not variants:
        raise UsageError("a workload needs a variant", f"variants= takes some of {', '.join(VARIANTS)}.")
    for variant in variants:
        if isinstance(variant, str) and variant not in VARIANTS:
            raise unknown_name("variant", variant, VARIANTS)
    specs = [inputs] if isinstance(inputs, str) else inputs
    declaration = Declaration(
        **given
        | {
            "specs": None if specs is None or callable(specs) else tuple(map(parse, specs)),
            "inputs": inputs if callable(inputs) else None,
            "parameters": dict(given["parameters"] or {}),
            "presets": {preset: dict(values) for preset, values in (given["presets"] or {}).items()},
            "variants": tuple(VARIANTS[each] if isinstance(each, str) else each for each in variants),
            "shardings": shardings if shardings is None or callable(shardings) else tuple(shardings),
        }
    )

    def declare(function: Function) -> Function:
        _DECLARED[id(function)] = (function, declaration)
        return function

    return declare if function is None else declare(function)


def parameters_of(declared: Declaration, origin: str) -> tuple[tuple[Parameter, ...], dict[str, dict[str, Scalar]]]:
    """Return the parameters, and their values by preset: at least `quick` and `published`. Raises UsageError.

    The numbers and words that an inputs function has as its own defaults are parameters, too.
    """
    arguments = arguments_by_name(declared.inputs) if declared.inputs is not None else {}
    own = {
        key: value
        for key, value in arguments.items()
        if isinstance(value, (int, float, str)) and not isinstance(value, bool)
    }
    presets = declared.presets
    quick = presets.get("quick", {})
    known = {key: _parameter(key, default, quick, origin) for key, default in {**own, **declared.parameters}.items()}
    base = {key: value for key, (_, value) in known.items()}
    for preset, values in presets.items():
        for key, value in values.items():
            if key not in known:
                raise UsageError(
                    f"{origin}: preset {preset!r} sets {key!r}, which is not a parameter", "Name it in parameters=."
                )
            if isinstance(declared.parameters.get(key), Parameter):
                known[key][0].read(str(value))
    return tuple(parameter for parameter, _ in known.values()), {
        preset: {**base, **presets.get(preset, {})} for preset in dict.fromkeys(("quick", "published", *presets))
    }


def _parameter(name: str, default: Any, quick: Mapping[str, Scalar], origin: str) -> tuple[Parameter, Scalar]:
    """Return a parameter, and its value unless a preset gives another. Raises UsageError for a default that is neither
    a number, words to choose from, nor a `Parameter` with a value in the preset `quick`."""
    if isinstance(default, Parameter):
        if name not in quick:
            raise UsageError(
                f"{origin}: parameter {name!r} has no value", f"Give it one: presets={{'quick': {{{name!r}: ...}}}}."
            )
        return replace(default, name=name), quick[name]
    words = (default,) if isinstance(default, str) else default
    if isinstance(words, tuple) and words and all(isinstance(word, str) for word in words):
        return Parameter(name=name, description="one of the words", kind="choice", choices=words), words[0]
    if isinstance(default, bool) or not isinstance(default, (int, float)):
        raise UsageError(
            f"{origin}: parameter {name!r} cannot be {default!r}",
            "A parameter's default is a number, a tuple of words to choose from, or a Parameter.",
        )
    kind: Literal["int", "float"] = "int" if isinstance(default, int) else "float"
    return Parameter(name=name, description=f"{default} unless set", kind=kind), default


def declaration_of(function: object) -> Declaration | None:
    """Return the declaration of `function`, or of a function that it wraps (a jit, a partial, another decorator)."""
    for layer in layers(function):
        if id(layer) in _DECLARED:
            return _DECLARED[id(layer)][1]
    return None


_SIGNATURE = signature(get_overloads(workload)[1])
if not TYPE_CHECKING:  # a type checker has the overloads
    workload.__signature__ = _SIGNATURE  # for `help`, which shows no overloads
