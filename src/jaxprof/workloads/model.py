"""A workload: a declaration of what can be run, with its NumPy twin.

Nothing here imports numpy or jax, because the process that draws the screen lists the workloads and must not load jax.
The engine runs them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, fields
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from jaxprof.base.errors import UsageError, unknown_name
from jaxprof.base.values import frozen
from jaxprof.events import Scalar
from jaxprof.workloads.callables import bind, call_by_name, function_as_written, op_by_op, source_of

if TYPE_CHECKING:
    import numpy

Parameters = Mapping[str, Scalar]
How = Literal["numpy", "eager", "jit"]
Placement = Literal["device", "host"]


class DeferredModule:
    """Stands for a module that the catalogue's files name at their top. The process that draws the screen reads those
    files, and must load neither numpy nor jax.

    Until a variant is built, using the stand-in imports the module. `load_modules` then replaces it by the module
    itself, so that a function that is timed or traced contains no stand-in.
    """

    def __init__(self, module_name: str) -> None:
        self.module_name = module_name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(import_module(self.module_name), attribute)


def load_modules(function: Callable[..., Any], *, with_jax: bool) -> None:
    """Replace the stand-ins in the file of `function` by their modules; without `with_jax` only numpy's, because a
    NumPy run does not import JAX."""
    names: dict[str, Any] = getattr(function, "__globals__", {})
    for name, value in list(names.items()):
        if type(value) is DeferredModule and (with_jax or value.module_name == "numpy"):
            names[name] = import_module(value.module_name)


@frozen(kw_only=True)
class Parameter:
    """One number (or word) that a user can set, within bounds that are checked before anything is run.

    In `@workload(parameters={...})` the key is the name, and the preset `quick` gives the value if none is set.
    """

    name: str = ""
    description: str = ""
    kind: Literal["int", "float", "choice"] = "int"
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()

    @property
    def bounds(self) -> str:
        """What can be set, `1..1e+06` or `a | b`; empty without bounds."""
        if self.kind == "choice":
            return " | ".join(self.choices)
        low, high = ("" if bound is None else f"{bound:g}" for bound in (self.minimum, self.maximum))
        return f"{low}..{high}" if low or high else ""

    def read(self, text: str) -> Scalar:
        """Return the value of `text`: `4000`, `1e6`, `4_000`. Raises UsageError with the bounds."""
        if self.kind == "choice":
            if text not in self.choices:
                raise unknown_name(f"value of {self.name}", text, self.choices)
            return text
        try:
            value = float(text.replace("_", ""))
        except ValueError:
            raise UsageError(f"{self.name} wants a number, not {text!r}", f"{self.name}: {self.description}") from None
        if self.kind == "int":
            if value != value or value in (float("inf"), float("-inf")) or value != int(value):
                raise UsageError(
                    f"{self.name} must be a whole number, not {text!r}", f"{self.name}: {self.description}"
                )
            value = int(value)
        above = self.minimum is None or value >= self.minimum  # False for NaN
        if not above or not (self.maximum is None or value <= self.maximum):
            low = "" if self.minimum is None else f" from {self.minimum:g}"
            high = "" if self.maximum is None else f" up to {self.maximum:g}"
            raise UsageError(f"{self.name}={text} is out of bounds", f"{self.name} takes values{low}{high}.")
        return value


@frozen(kw_only=True)
class Variant:
    """One way to compute the workload's result."""

    name: str
    how: How
    """`numpy`: called as it is; `eager`: called with JAX arrays, op by op; `jit`: compiled as one program."""
    function: Callable[..., Any] | None = None
    """What is called with the workload's inputs; in `@workload(variants=[...])` None is the decorated function. Its
    source is what the screens show."""
    factory: bool = False
    """Whether `function` makes the one that is called: once, before timing, with the parameters that it names."""
    description: str = ""
    inputs: Placement = "device"
    """`device`: inputs are put there once, before the calls; `host`: each call takes and transfers NumPy arrays."""
    precision: Literal["", "highest"] = ""
    """Matrix precision (`jax.default_matmul_precision`); empty for JAX's default on that device."""
    adapt: Callable[[tuple[Any, ...]], tuple[Any, ...]] | None = None
    """Converts the workload's inputs to the form that this variant takes, such as a narrower dtype or another
    alignment. Called once, on the host, before anything is timed. None if the inputs stay as they are."""

    settable: tuple[str, ...] = ()
    """Arguments with a default of the function's own that a parameter of their name replaces."""

    def arguments(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the arguments of this variant, given the workload's `inputs` on the host."""
        return self.adapt(inputs) if self.adapt else inputs

    def build(self, parameters: Parameters) -> Callable[..., Any]:
        """Return the function called with the workload's inputs. Raises UsageError if a factory needs others."""
        if self.function is None:
            raise UsageError(f"the variant {self.name} has no function", "Give it function=.")
        load_modules(function_as_written(self.function), with_jax=self.how != "numpy")
        if not self.factory:
            called = bind(self.function, parameters, self.settable)
        else:
            called = call_by_name(self.function, parameters, f"the factory of {self.name}")
        return op_by_op(called) if self.how == "eager" else called

    @property
    def source(self) -> str:
        """The source code of the computation, dedented; empty if it cannot be read."""
        return source_of(function_as_written(self.function)) if self.function is not None else ""


@frozen(kw_only=True)
class Estimate:
    """What one call needs, derived from the parameters alone, before anything runs. None if unknown."""

    memory_bytes: float | None = None
    """Inputs, outputs and the largest intermediates that are alive at once, for the variant that needs most memory."""
    flops: float | None = None
    """Floating-point operations of the mathematical definition (a multiply and an add are two)."""
    traffic_bytes: float | None = None
    """The least traffic: each input read once, each output written once."""


@frozen(kw_only=True)
class VariantInfo:
    """A variant as data: what a process that cannot import the user's code knows about it."""

    name: str
    how: str
    description: str = ""
    inputs: str = "device"
    precision: str = ""
    source: str = ""


V = TypeVar("V", Variant, VariantInfo)


@frozen(kw_only=True)
class DeclaredWorkload(Generic[V]):
    """What the engine and its clients know of a workload."""

    name: str
    title: str
    """One line: the formula, or what it is."""
    description: str
    """One paragraph: what it computes, why it is worth measuring, what to look at."""
    parameters: tuple[Parameter, ...]
    presets: Mapping[str, Parameters]
    """Preset → parameters; at least `quick` (about a second on two cores) and `published` (the source's sizes)."""
    variants: tuple[V, ...]
    baseline: str = "numpy"
    """The variant that the others are compared with. Its result counts as right if there is no `expected`."""
    has_dots: bool = False
    """Whether it has matrix products or convolutions, so that the matrix precision matters."""
    origin: str = "built in"
    """`built in`, or the target under which a user's workload was found: `path/to/file.py:function`."""
    inputs_from: str = ""
    """Target of the workload whose inputs it takes; empty if it has its own."""

    @property
    def target(self) -> str:
        """How the engine is asked for it: by the name of a built-in workload, or by the target of a user's own."""
        return self.name if self.origin == "built in" else self.origin

    def variant(self, name: str) -> V:
        """Return the variant of that name. Raises UsageError with similar names."""
        by_name = {variant.name: variant for variant in self.variants}
        if name not in by_name:
            raise unknown_name(f"variant of {self.name}", name, by_name)
        return by_name[name]

    def resolve(self, preset: str, settings: Mapping[str, str] | None = None) -> dict[str, Scalar]:
        """Return the parameters of a preset, some of them set by hand (name → text). Raises UsageError."""
        if preset not in self.presets:
            raise unknown_name(f"preset of {self.name}", preset, self.presets)
        values = dict(self.presets[preset])
        by_name = {parameter.name: parameter for parameter in self.parameters}
        for name, text in (settings or {}).items():
            if name not in by_name:
                raise unknown_name(f"parameter of {self.name}", name, by_name)
            values[name] = by_name[name].read(text)
        return values


@frozen(kw_only=True)
class Workload(DeclaredWorkload[Variant]):
    """A workload with its functions, which get the parameters as a mapping, and NumPy arrays as inputs."""

    inputs: Callable[[Parameters, numpy.random.Generator], tuple[Any, ...]]
    """The arguments of one call, as NumPy arrays (or Python scalars, or nested tuples, lists and dicts of them)."""
    expected: Callable[[Parameters, tuple[Any, ...]], Any] | None = None
    """A known answer, or an independent computation (finite differences); None: the baseline's result."""
    against: str = "numpy twin"
    """What a result is compared with, in words."""
    noisy_answer: bool = False
    """Whether `expected` is noisy where 0 is right (finite differences), so that no number of the result can be
    compared in proportion to its own magnitude alone."""
    tolerance: Mapping[str, float] = field(default_factory=lambda: {"float32": 1e-4, "tf32": 1e-2, "bfloat16": 5e-2})
    """Largest accepted error of a number, relative as `workloads.check` says, by effective precision."""
    estimate: Callable[[Parameters], Estimate] = lambda parameters: Estimate()
    shardings: Sequence[Any] | Callable[..., Any] | None = None
    """How arguments are split over a mesh: a spec for each, or a function that returns them and may take the mesh."""


@frozen(kw_only=True)
class WorkloadInfo(DeclaredWorkload[VariantInfo]):
    """A workload as data (JSON in, JSON out). Screens and the command line know workloads only in this form."""


def worth_running(variant: Variant | VariantInfo, platform: str) -> bool:
    """Return whether `variant` can differ from its default twin on `platform`: on a CPU, `highest` does not."""
    return not (variant.precision == "highest" and platform == "cpu")


def workload_info(workload: Workload, *, sources: bool = True) -> WorkloadInfo:
    """Return `workload` as data. `sources=False` leaves the source code out, which takes a file read."""
    field_names = [known.name for known in fields(VariantInfo) if sources or known.name != "source"]
    variants = tuple(
        VariantInfo(**{name: getattr(variant, name) for name in field_names}) for variant in workload.variants
    )
    shared = {known.name: getattr(workload, known.name) for known in fields(WorkloadInfo)}
    return WorkloadInfo(**{**shared, "variants": variants})
