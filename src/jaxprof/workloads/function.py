"""Make a workload from a user's function: op by op and compiled, with the arguments that are declared for it.

Without a declaration little is assumed: no estimate beyond the size of the arguments, and the
compiled result is compared with the op-by-op result.

Arguments are made from their specs: arrays of seeded random numbers, keys, numbers and words, in their containers.
Floats are normal random numbers, integers 0 to 9. A named tuple is the only class that is imported: specs may come from
someone else's session file, so no object of any other class is made from them. NumPy and jax are imported only where an
array is made.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from jaxprof.base.errors import UsageError, unknown_name
from jaxprof.workloads.callables import (
    arguments_by_name,
    bind,
    call_by_name,
    callable_for_jit,
    function_as_written,
    in_order,
    is_key,
    keyword_only,
    last_by_name,
    signature_of,
)
from jaxprof.workloads.decorator import Declaration, declaration_of, parameters_of
from jaxprof.workloads.model import Estimate, Parameter, Parameters, Variant, Workload
from jaxprof.workloads.specs import Spec, parse

if TYPE_CHECKING:
    import numpy


def make(specs: Sequence[Spec], parameters: Parameters, random: numpy.random.Generator) -> tuple[Any, ...]:
    """Return the arguments: NumPy arrays, numbers as they are, and a typed JAX key for `key`. Raises UsageError."""
    return tuple(_make(spec, parameters, random) for spec in specs)


def _make(spec: Spec, parameters: Parameters, random: numpy.random.Generator) -> Any:
    if spec.kind == "value":
        return spec.value
    if spec.kind == "key":
        import jax

        try:
            key = jax.random.key(int(random.integers(2**31)), impl=spec.dtype or None)
        except ValueError as error:
            raise UsageError(f"{spec.text}: {error}", "Write key for a key of JAX's default kind.") from None
        return jax.random.split(key, spec.sizes(parameters)) if spec.shape else key
    if spec.kind == "nested":
        parts = [(label, _make(part, parameters, random)) for label, part in spec.parts]
        if spec.container in ("tuple", "list"):
            values = [value for _, value in parts]
            return tuple(values) if spec.container == "tuple" else values
        if spec.container == "dict":
            return dict(parts)
        made = find_named_tuple(spec.container)
        try:
            return made(**{str(label): value for label, value in parts})
        except TypeError as error:
            what = f"{spec.container} cannot be made: {error}"
            raise UsageError(what, "Its fields have changed since it was recorded.") from None
    shape, dtype = spec.sizes(parameters), spec.dtype
    if dtype == "bool":
        return random.random(shape) < 0.5
    if dtype.startswith(("int", "uint")):
        # A narrow type holds less: `int4` up to 7.
        below = min(10, 1 << int(dtype.strip("uint")) - 1)
        return random.integers(below, size=shape, dtype="int64").astype(dtype)
    if dtype.startswith("complex"):
        part = "float32" if dtype == "complex64" else "float64"
        return random.standard_normal((*shape, 2), dtype=part).view(dtype)[..., 0]  # type: ignore[call-overload]
    if dtype in ("float32", "float64"):
        return random.standard_normal(shape, dtype=dtype)  # type: ignore[call-overload]
    if dtype != "float16":
        import ml_dtypes  # noqa: F401 - tells NumPy the names of its dtypes
    return random.standard_normal(shape, dtype="float32").astype(dtype)


def find_named_tuple(path: str) -> type[Any]:
    """Return the named tuple at `module:Name`. Raises UsageError if there is no such class, or it is another class."""
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


_TOLERANCE = {"float64": 1e-9, "float32": 1e-4, "tf32": 1e-2, "bfloat16": 5e-2}
_TWIN = Variant(name="numpy", how="numpy", description="NumPy on the host")
INPUTS, SHARDINGS = "_inputs", "_shardings"
"""Suffixes: `step_inputs`, in the same file, makes the arguments of `step`; `step_shardings` is their list for those
arguments, or returns it."""


def beside(target: str, suffix: str) -> str:
    """Return the name in the same file that belongs to a function: `step_inputs` for `file.py:step` and for
    `file.py:model.step`."""
    return target.rpartition(":")[2].rpartition(".")[2] + suffix


def workload_of(
    function: Callable[..., Any],
    *,
    origin: str,
    name: str,
    companion: Callable[..., Any] | None = None,
    shardings: Sequence[Any] | Callable[..., Any] | None = None,
    arguments: Sequence[str] = (),
    declared: Declaration | None = None,
    lend: Callable[[], Workload] | None = None,
) -> Workload:
    """Return `function` as a workload.

    `origin` is the target under which it was found, and `name` its name if none was declared. Its arguments come from
    `arguments` (specs), else from the declaration, else from `companion`; how they are split over a mesh, from the
    declaration, else from `shardings`. `declared` replaces the function's own declaration. If nothing says what its
    arguments are, `lend` makes the workload whose inputs and sizes it takes; without it, raises UsageError.
    """
    declared = declared or declaration_of(function) or Declaration()
    function = callable_for_jit(function)
    if arguments:
        declared = replace(declared, specs=tuple(parse(text) for text in arguments), inputs=None)
    elif declared.specs is None and declared.inputs is None and companion is not None:
        declared = replace(declared, inputs=companion)
    lender: Workload | None = None
    if declared.specs is None and declared.inputs is None:
        try:
            declared = replace(declared, specs=_no_arguments(function, origin, factory=declared.factory))
        except UsageError:
            if lend is None:
                raise
            lender = lend()
    parameters, presets = parameters_of(declared, origin)
    if lender is not None:
        lent_names = {parameter.name for parameter in lender.parameters}
        parameters = (*lender.parameters, *(parameter for parameter in parameters if parameter.name not in lent_names))
        presets = {name: {**presets["quick"], **sizes} for name, sizes in lender.presets.items()}
    declared, given_by_name = _with_checked_specs(declared, function, presets["quick"], origin)
    title, description = _title_and_description(declared, function, origin)
    own = _own_defaults(declared, function, {parameter.name for parameter in parameters})
    variants = _variants(declared, function, given_by_name, tuple(own), origin)
    expected, against = _answer(declared, variants, tuple(own))
    return Workload(
        name=declared.name or name,
        title=title,
        description=description,
        parameters=(*parameters, *own.values()),
        presets=presets,
        variants=variants,
        inputs=lender.inputs if lender is not None else _inputs(declared, origin),
        inputs_from=lender.target if lender is not None else "",
        baseline=declared.baseline or variants[0].name,
        expected=expected,
        against=declared.against or against,
        noisy_answer=declared.noisy_answer,
        tolerance=_tolerance(declared.tolerance),
        estimate=_estimate(declared, origin),
        has_dots=declared.matrix_products,
        shardings=declared.shardings if declared.shardings is not None else shardings,
        origin=origin,
    )


def _own_defaults(declared: Declaration, function: Callable[..., Any], known: set[str]) -> dict[str, Parameter]:
    """Return the arguments whose defaults are numbers as parameters, by name, unless the parameters are declared: those
    that no spec gives, that are not `known` yet, and that all variants, the twin and the known answer take, too. They
    have no value unless they are set, because an inputs function may give one by position."""
    answer = () if declared.expected is None else (declared.expected,)
    twin = () if declared.numpy is None else (declared.numpy,)
    every = (function, *(each.function for each in declared.variants if each.function is not None), *twin, *answer)
    signature = signature_of(function)
    made = declared.factory or any(variant.factory for variant in declared.variants)
    if signature is None or declared.parameters or made or not all(map(callable, every)):
        return {}
    specs = declared.specs or ()
    positional = [spec for spec in specs if not spec.keyword]
    known |= signature.bind_partial(
        *positional, **{spec.keyword: spec for spec in specs if spec.keyword}
    ).arguments.keys()
    return {
        name: Parameter(name=name, description=f"{default} unless set", kind="int" if type(default) is int else "float")
        for name, default in arguments_by_name(function).items()
        if type(default) in (int, float)
        and name not in known
        and all(name in arguments_by_name(each) for each in every)
    }


def _variants(
    declared: Declaration,
    function: Callable[..., Any],
    given_by_name: tuple[str, ...],
    settable: tuple[str, ...],
    origin: str,
) -> tuple[Variant, ...]:
    """Return the declared variants, the NumPy twin first, each with its function. Raises UsageError if the baseline is
    none of them."""
    variants = [*declared.variants]
    if declared.numpy is not None:
        variants.insert(0, replace(_TWIN, function=declared.numpy))
    complete = []
    for variant in variants:
        if variant.function is None:
            variant = replace(variant, function=function, factory=declared.factory)
        if variant.how == "numpy" and variant.adapt is None:
            variant = replace(variant, adapt=_to_numpy)
        if not variant.factory and variant.function is not None:
            variant = replace(variant, function=last_by_name(variant.function, given_by_name))
        complete.append(replace(variant, settable=settable))
    names = [variant.name for variant in complete]
    if declared.baseline and declared.baseline not in names:
        raise unknown_name(f"variant of {origin}", declared.baseline, names)
    return tuple(complete)


def _to_numpy(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Convert JAX arrays, which an inputs function may have made, to NumPy arrays. Keys stay unchanged."""
    if "jax" not in sys.modules:
        return inputs  # a NumPy run does not import it

    import jax
    import numpy as np

    def convert(leaf: Any) -> Any:
        return np.asarray(leaf) if isinstance(leaf, jax.Array) and not is_key(leaf) else leaf

    converted: tuple[Any, ...] = jax.tree.map(convert, inputs)
    return converted


def _title_and_description(declared: Declaration, function: Callable[..., Any], origin: str) -> tuple[str, str]:
    """Return the declared words, else those of the docstring, else the call as it is written, and its file."""
    written = function_as_written(function)
    text = (inspect.getdoc(written) or "").strip()
    name = getattr(written, "__name__", type(function).__name__)
    return (
        # The text of a signature has that of its defaults, which may be arrays: only where nothing else is there.
        declared.title or text.partition("\n")[0].strip() or f"{name}{signature_of(function) or '(...)'}",
        declared.description or " ".join(text.split()) or f"A function of {origin.rpartition(':')[0]}.",
    )


def _inputs(declared: Declaration, origin: str) -> Callable[[Parameters, numpy.random.Generator], tuple[Any, ...]]:
    specs, maker = declared.specs, declared.inputs
    if specs is not None:
        return lambda parameters, random: make(specs, parameters, random)
    assert maker is not None

    def inputs(parameters: Parameters, random: numpy.random.Generator) -> tuple[Any, ...]:
        made = call_by_name(maker, {**parameters, "random": random}, f"{origin}: the inputs function")
        return made if type(made) is tuple else (made,)

    return inputs


def _answer(
    declared: Declaration, variants: Sequence[Variant], settable: Sequence[str]
) -> tuple[Callable[[Parameters, tuple[Any, ...]], Any] | None, str]:
    """Return the function that gives the right result, and what that is, in words: the declared one; else, without a
    NumPy twin, the function op by op. None: the baseline's result is right."""
    expected = declared.expected
    if callable(expected):
        return lambda parameters, inputs: bind(expected, parameters, settable)(*_to_numpy(inputs)), "known answer"
    if expected is not None:
        return lambda parameters, inputs: expected, "known answer"
    if any(variant.how == "numpy" for variant in variants):
        return None, "numpy twin"
    words = "the function op by op"
    eager = next((variant for variant in variants if variant.how == "eager"), None)
    if eager is None:
        return None, words

    def answer(parameters: Parameters, inputs: tuple[Any, ...]) -> Any:
        import jax
        import numpy as np

        def convert(leaf: Any) -> Any:  # op by op, the operators of a NumPy array would be NumPy's own
            return jax.device_put(leaf) if isinstance(leaf, np.ndarray) else leaf

        return eager.build(parameters)(*jax.tree.map(convert, eager.arguments(inputs)))

    return answer, words


def refuse_borrowed_misfit(workload: Workload, variant: Variant, parameters: Parameters, inputs: Sequence[Any]) -> None:
    """Raises UsageError if the variant cannot be called with the `inputs` that another workload lends it."""
    signature = signature_of(variant.build(parameters))
    if not workload.inputs_from or signature is None:
        return
    try:
        signature.bind(*inputs)
    except TypeError as error:
        raise UsageError(
            f"{workload.origin} takes {signature}, and cannot be called with the inputs of {workload.inputs_from} "
            f"({len(inputs)}): {error}",
            f"Write {beside(workload.origin, INPUTS)}() beside it, or give all sides the same with --arg.",
        ) from None


def _tolerance(tolerance: float | Mapping[str, float] | None) -> Mapping[str, float]:
    if tolerance is None:
        return _TOLERANCE
    return tolerance if isinstance(tolerance, Mapping) else dict.fromkeys(_TOLERANCE, float(tolerance))


def _estimate(declared: Declaration, origin: str) -> Callable[[Parameters], Estimate]:
    """Return the declared estimate; else the bytes of the arguments, if known, because a call takes at least these."""
    estimate, specs = declared.estimate, declared.specs
    if estimate is not None:
        return lambda parameters: call_by_name(estimate, parameters, f"{origin}: the estimate")
    if not specs:
        return lambda parameters: Estimate()
    return lambda parameters: Estimate(memory_bytes=float(sum(spec.bytes(parameters) for spec in specs)))


def _no_arguments(function: Callable[..., Any], origin: str, *, factory: bool) -> tuple[Spec, ...]:
    """Return no specs for a function without arguments; else raises UsageError with the ways to give them."""
    signature = signature_of(function)
    if signature is not None and not factory:
        try:
            signature.bind()
        except TypeError:
            pass
        else:
            return ()
    takes = str(signature) if signature is not None else "arguments"
    says = "makes a function" if factory else f"takes {takes}"
    raise UsageError(
        f"{origin} {says}, and nothing says what {'its arguments' if factory else 'they'} are",
        f'Give one spec for each: --arg "f32[1024,1024]". Or write {beside(origin, INPUTS)}() in the same file, or '
        "decorate the function with @jaxprof.workload(inputs=[...]).",
    )


def _with_checked_specs(
    declared: Declaration, function: Callable[..., Any], parameters: Parameters, origin: str
) -> tuple[Declaration, tuple[str, ...]]:
    """Return the declaration with its specs in the order of the call, and the names under which the last of them must
    be given. Raises UsageError for a shape that names an unknown parameter, and for specs that the function does not
    take."""
    if declared.specs is None:
        return declared, ()
    for spec in declared.specs:
        spec.check(dict.fromkeys(parameters, 1))
    if declared.factory:
        for spec in declared.specs:
            if spec.keyword:  # the function that a factory makes may not have an argument of that name
                raise UsageError(
                    f"{origin}: {spec.text} gives an argument of a factory's function by name", "Give it by position."
                )
        return declared, ()
    by_name = {spec.keyword: spec for spec in declared.specs if spec.keyword}
    positional = tuple(spec for spec in declared.specs if not spec.keyword)
    signature = signature_of(function)
    if signature is not None:
        try:
            filled = {key: None for key in keyword_only(function) if key in parameters}
            signature.bind(*positional, **{**filled, **by_name})
        except TypeError as error:
            given = ", ".join(spec.text for spec in declared.specs) or "nothing"
            raise UsageError(
                f"{origin} takes {signature}, and was given {given}: {error}", "Give one spec for each argument."
            ) from None
    placed, named = in_order(function, positional, by_name)
    return replace(declared, specs=(*placed, *named.values())), tuple(named)
