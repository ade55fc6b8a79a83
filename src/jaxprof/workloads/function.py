"""A user's function as a workload: op by op and compiled, with whatever was said about its arguments.

Where nothing is declared, little is assumed: no published figures, no estimate beyond the arguments' own size, and the
compiled result is held against the one that is computed op by op.
"""

from __future__ import annotations

import functools
import inspect
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from jaxprof.errors import UsageError
from jaxprof.events import Scalar
from jaxprof.workloads.callables import (
    arguments_by_name,
    bound,
    in_order,
    keyword_only,
    last_by_name,
    op_by_op,
    signature_of,
    written_function,
)
from jaxprof.workloads.check import is_key
from jaxprof.workloads.model import Estimate, How, Parameter, Parameters, Variant, Workload
from jaxprof.workloads.specs import Spec, make, parse
from jaxprof.workloads.user import Declaration, Default, declaration_of

if TYPE_CHECKING:
    import numpy

_TOLERANCE = {"float32": 1e-4, "tf32": 1e-2, "bfloat16": 5e-2}
_HOW: dict[str, How] = {"jax": "eager", "jit": "jit"}
_VARIANT_WORDS = {"jax": "op by op, device-resident", "jit": "one compiled program", "numpy": "the NumPy twin"}


def workload_of(
    function: Callable[..., Any],
    *,
    origin: str,
    name: str,
    companion: Callable[..., Any] | None = None,
    arguments: Sequence[str] = (),
) -> Workload:
    """`function` as a workload.

    `origin` is the target under which it was found, and `name` its name where none was declared. Its arguments
    come from `arguments` (specs), else from what was declared, else from `companion`. Raises UsageError where
    nothing says what they are.
    """
    declared = declaration_of(function) or Declaration()
    if arguments:
        declared = replace(declared, specs=tuple(parse(text) for text in arguments), inputs=None)
    elif declared.specs is None and declared.inputs is None and companion is not None:
        declared = replace(declared, inputs=companion)
    if declared.specs is None and declared.inputs is None:
        declared = replace(declared, specs=_no_arguments(function, origin))
    defaults = {**_defaults(declared.inputs), **_checked(declared.parameters, origin)}
    given_by_name: tuple[str, ...] = ()
    if declared.specs is not None:
        _refuse_misfit(function, declared.specs, defaults, origin)
        ordered, given_by_name = _ordered(function, declared.specs)
        declared = replace(declared, specs=ordered)
    written = written_function(function)
    function = last_by_name(function, given_by_name)
    variants = tuple(_variant(kind, function) for kind in declared.variants)
    if declared.numpy is not None:
        variants = (_numpy_variant(last_by_name(declared.numpy, given_by_name)), *variants)
    return Workload(
        name=declared.name or name,
        title=declared.title or _title(function, written),
        description=declared.description or _description(written, origin),
        parameters=tuple(_parameter(key, default) for key, default in defaults.items()),
        presets=_presets(defaults, declared.presets, origin),
        variants=variants,
        inputs=_inputs(declared, origin),
        baseline=variants[0].name,
        expected=_expected(declared, function),
        against=_against(declared),
        tolerance=_tolerance(declared.tolerance),
        estimate=_estimate(declared.specs),
        published=declared.published,
        has_dots=declared.matrix_products,
        origin=origin,
    )


def _variant(kind: str, function: Callable[..., Any]) -> Variant:
    called = op_by_op(function) if kind == "jax" else function
    return Variant(name=kind, how=_HOW[kind], build=_build(called), description=_VARIANT_WORDS[kind])


def _numpy_variant(twin: Callable[..., Any]) -> Variant:
    return Variant(name="numpy", how="numpy", build=_build(twin), adapt=_to_numpy, description=_VARIANT_WORDS["numpy"])


def _to_numpy(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """JAX arrays, which an inputs function may have made, as NumPy arrays; keys stay keys."""
    import jax
    import numpy as np

    def convert(leaf: Any) -> Any:
        return np.asarray(leaf) if isinstance(leaf, jax.Array) and not is_key(leaf) else leaf

    converted: tuple[Any, ...] = jax.tree.map(convert, inputs)
    return converted


def _to_jax(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """NumPy arrays as JAX arrays, because op by op the operators of a NumPy array are NumPy's."""
    import jax
    import numpy as np

    converted: tuple[Any, ...] = jax.tree.map(
        lambda leaf: jax.device_put(leaf) if isinstance(leaf, np.ndarray) else leaf, inputs
    )
    return converted


def _build(function: Callable[..., Any]) -> Callable[[Parameters], Callable[..., Any]]:
    """What gives `function` to the engine; its source, to whoever asks for it, is the function's own."""

    def build(parameters: Parameters) -> Callable[..., Any]:
        return bound(function, parameters)

    return functools.update_wrapper(build, written_function(function), updated=())


def _title(function: Callable[..., Any], written: Callable[..., Any]) -> str:
    """The docstring's first line, or the call as it is written."""
    lines = (inspect.getdoc(written) or "").strip().splitlines()
    if lines:
        return lines[0].strip()
    signature = signature_of(function)
    return f"{getattr(written, '__name__', type(function).__name__)}{signature or '(...)'}"


def _description(written: Callable[..., Any], origin: str) -> str:
    """The docstring's text as one paragraph."""
    text = inspect.getdoc(written) or ""
    return " ".join(textwrap.dedent(text).split()) or f"A function of {origin.rpartition(':')[0]}."


def _parameter(name: str, default: Default) -> Parameter:
    if isinstance(default, tuple):
        return Parameter(name=name, description="one of the words", kind="choice", choices=default)
    kind = "int" if isinstance(default, int) else "float"
    return Parameter(name=name, description=f"{default} unless set", kind=kind)  # type: ignore[arg-type]


def _presets(
    defaults: Mapping[str, Default], presets: Mapping[str, Mapping[str, Scalar]], origin: str
) -> dict[str, dict[str, Scalar]]:
    """The defaults as `quick` and `published`, with the declared presets laid over them. Raises UsageError."""
    base: dict[str, Scalar] = {
        key: default[0] if isinstance(default, tuple) else default for key, default in defaults.items()
    }
    for preset, values in presets.items():
        for key in values:
            if key not in base:
                raise UsageError(
                    f"{origin}: preset {preset!r} sets {key!r}, which is no parameter", "Name it in parameters=."
                )
    return {preset: {**base, **presets.get(preset, {})} for preset in dict.fromkeys(("quick", "published", *presets))}


def _inputs(declared: Declaration, origin: str) -> Callable[[Parameters, numpy.random.Generator], tuple[Any, ...]]:
    specs, maker = declared.specs, declared.inputs
    if specs is not None:
        return lambda parameters, random: make(specs, parameters, random)
    assert maker is not None
    wanted = arguments_by_name(maker)

    def inputs(parameters: Parameters, random: numpy.random.Generator) -> tuple[Any, ...]:
        known = {**parameters, "random": random}
        missing = [key for key, default in wanted.items() if key not in known and default is inspect.Parameter.empty]
        if missing:
            raise UsageError(
                f"{origin}: the inputs function wants {', '.join(missing)}",
                "It may name parameters, and `random` for a seeded NumPy generator; give anything else a default.",
            )
        made = maker(**{key: known[key] for key in wanted if key in known})
        return made if type(made) is tuple else (made,)

    return inputs


def _defaults(inputs: Callable[..., Any] | None) -> dict[str, Default]:
    """The parameters that an inputs function declares by its own defaults: numbers, and words."""
    wanted = arguments_by_name(inputs) if inputs is not None else {}
    return {
        key: (default,) if isinstance(default, str) else default
        for key, default in wanted.items()
        if isinstance(default, (int, float, str)) and not isinstance(default, bool)
    }


def _checked(parameters: Mapping[str, Any], origin: str) -> dict[str, Default]:
    """The declared parameters. Raises UsageError for a default that is neither a number nor words to choose from."""
    checked: dict[str, Default] = {}
    for key, default in parameters.items():
        words = (default,) if isinstance(default, str) else default
        is_words = isinstance(words, tuple) and words and all(isinstance(word, str) for word in words)
        if not is_words and (isinstance(default, bool) or not isinstance(default, (int, float))):
            raise UsageError(
                f"{origin}: parameter {key!r} cannot be {default!r}",
                "A parameter's default is a number, or a tuple of words to choose from.",
            )
        checked[key] = words
    return checked


def _expected(
    declared: Declaration, function: Callable[..., Any]
) -> Callable[[Parameters, tuple[Any, ...]], Any] | None:
    """The declared answer; else, without a NumPy twin, the function op by op. None: the twin's result."""
    right = declared.expected
    if callable(right):
        return lambda parameters, inputs: bound(right, parameters)(*_to_numpy(inputs))
    if right is not None:
        return lambda parameters, inputs: right
    if declared.numpy is not None or "jax" not in declared.variants:
        return None
    return lambda parameters, inputs: bound(op_by_op(function), parameters)(*_to_jax(inputs))


def _against(declared: Declaration) -> str:
    if declared.expected is not None:
        return "known answer"
    return "numpy twin" if declared.numpy is not None else "the function op by op"


def _tolerance(tolerance: float | Mapping[str, float] | None) -> Mapping[str, float]:
    if tolerance is None:
        return _TOLERANCE
    return tolerance if isinstance(tolerance, Mapping) else dict.fromkeys(_TOLERANCE, float(tolerance))


def _estimate(specs: Sequence[Spec] | None) -> Callable[[Parameters], Estimate]:
    """The arguments' own bytes, which are the least that a call takes, where they are known beforehand."""
    if not specs:
        return lambda parameters: Estimate()
    return lambda parameters: Estimate(memory_bytes=float(sum(spec.bytes(parameters) for spec in specs)))


def _no_arguments(function: Callable[..., Any], origin: str) -> tuple[Spec, ...]:
    """Nothing, for a function that takes nothing. Raises UsageError, with the three ways to say it, for any other."""
    signature = signature_of(function)
    if signature is not None:
        try:
            signature.bind()
        except TypeError:
            pass
        else:
            return ()
    takes = str(signature) if signature is not None else "arguments"
    called = getattr(written_function(function), "__name__", "function")
    raise UsageError(
        f"{origin} takes {takes}, and nothing says what they are",
        f'Give one spec for each: --arg "f32[1024,1024]". Or write {called}_inputs() in the same file, or decorate the '
        "function with @jaxprof.workload(inputs=[...]).",
    )


def _refuse_misfit(
    function: Callable[..., Any], specs: Sequence[Spec], parameters: Mapping[str, Default], origin: str
) -> None:
    """Raises UsageError where the function cannot be called with that many arguments, or a shape names no parameter."""
    for spec in specs:
        if spec.names:
            spec.check(dict.fromkeys(parameters, 1))
    signature = signature_of(function)
    if signature is None:
        return
    try:
        by_name = {spec.keyword: spec for spec in specs if spec.keyword}
        filled = {key: None for key in keyword_only(function) if key in parameters}
        signature.bind(*(spec for spec in specs if not spec.keyword), **{**filled, **by_name})
    except TypeError as error:
        given = ", ".join(spec.text for spec in specs) or "nothing"
        raise UsageError(
            f"{origin} takes {signature}, and was given {given}: {error}", "Give one spec for each argument."
        ) from None


def _ordered(function: Callable[..., Any], specs: Sequence[Spec]) -> tuple[tuple[Spec, ...], tuple[str, ...]]:
    """The specs in the order of the call, those that only a name can give last, and these names."""
    by_name = {spec.keyword: spec for spec in specs if spec.keyword}
    placed, named = in_order(function, tuple(spec for spec in specs if not spec.keyword), by_name)
    return (*placed, *named.values()), tuple(named)
