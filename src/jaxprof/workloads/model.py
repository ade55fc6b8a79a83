"""What a workload is: a declaration of what can be run, with its NumPy twin and its published figures.

Importing a declaration costs nothing: numpy and jax are imported inside the functions that use them, because the
process that draws the screen lists the workloads and must not hold jax. Running one is the engine's business.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from jaxprof.errors import UsageError, unknown_name
from jaxprof.events import Scalar

if TYPE_CHECKING:
    import numpy

Parameters = Mapping[str, Scalar]
How = Literal["numpy", "eager", "jit"]
Placement = Literal["device", "host"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One number (or word) that a user can set, within bounds that are checked before anything is run."""

    name: str
    description: str
    kind: Literal["int", "float", "choice"] = "int"
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()

    def read(self, text: str) -> Scalar:
        """The value that `text` says: `4000`, `1e6`, `4_000`. Raises UsageError with the bounds."""
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
                raise UsageError(f"{self.name} wants a whole number, not {text!r}", f"{self.name}: {self.description}")
            value = int(value)
        if not self._within(value):
            low = "" if self.minimum is None else f" from {self.minimum:g}"
            high = "" if self.maximum is None else f" up to {self.maximum:g}"
            raise UsageError(f"{self.name}={text} is out of bounds", f"{self.name} takes values{low}{high}.")
        return value

    def _within(self, value: float) -> bool:
        above = self.minimum is None or value >= self.minimum
        return above and (self.maximum is None or value <= self.maximum)


@cache
def _source(build: Callable[..., Any]) -> str:
    """Reading it costs a millisecond, and variants share their functions."""
    try:
        return textwrap.dedent(inspect.getsource(build))
    except (OSError, TypeError):
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One way to compute the workload's result."""

    name: str
    how: How
    """`numpy`: called as it is; `eager`: called with JAX arrays, op by op; `jit`: compiled as one program."""
    build: Callable[[Parameters], Callable[..., Any]]
    """Gives the function that is called with the workload's inputs. Its source is what the screens show."""
    description: str = ""
    inputs: Placement = "device"
    """`device`: the inputs are put there once, before the calls; `host`: NumPy arrays at each call, transfer inside."""
    precision: Literal["", "highest"] = ""
    """Matrix precision (`jax.default_matmul_precision`); empty for JAX's default on that device."""
    adapt: Callable[[tuple[Any, ...]], tuple[Any, ...]] | None = None
    """The form in which this variant wants the workload's inputs, where it is another one: a narrower dtype, another
    alignment. Applied once, on the host, before anything is timed."""

    def arguments(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """What this variant is called with, given the workload's `inputs` on the host."""
        return self.adapt(inputs) if self.adapt else inputs

    @property
    def source(self) -> str:
        """The source code of the computation, dedented; empty when it cannot be read."""
        return _source(self.build)


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """A figure that somebody printed, with everything needed to know whether it can be compared."""

    variant: str
    phase: str
    """Which of our phases it comes nearest to: `run`, `first_run`, `transfer_in`, ..."""
    seconds: float | None
    hardware: str
    source: str
    parameters: dict[str, Scalar] = field(default_factory=dict)
    statistic: str = "not said"
    """As the source says: `mean ± sd of 7 runs`, `best of 3`, `one run`."""
    caveat: str = ""
    """Why it is not like for like; empty where it is."""
    text: str = ""
    """Where the source gives no seconds, its own words: `about 2× the time of NumPy`."""


def published_value(source: str, parameters: dict[str, Scalar], text: str) -> Published:
    """Where a source prints what comes out, and not how long it takes: the same on any hardware."""
    return Published(
        variant="jax",
        phase="run",
        seconds=None,
        hardware="any",
        source=source,
        parameters=parameters,
        statistic="a value, not a time",
        text=text,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What one call needs, from the parameters alone: said before anything is run. None is unknown."""

    memory_bytes: float | None = None
    """Inputs, outputs and the largest intermediates that are alive at once, for the hungriest variant."""
    flops: float | None = None
    """Floating-point operations of the mathematical definition (a multiply and an add are two)."""
    traffic_bytes: float | None = None
    """The least traffic: each input read once, each output written once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """One declaration. Functions get the parameters as a mapping, and NumPy arrays as inputs."""

    name: str
    title: str
    """One line: the formula, or what it is."""
    description: str
    """One paragraph: what it computes, why it is worth measuring, what to look at."""
    parameters: tuple[Parameter, ...]
    presets: Mapping[str, Parameters]
    """At least `quick` (about a second on two CPU cores) and `published` (the source's exact sizes)."""
    variants: tuple[Variant, ...]
    inputs: Callable[[Parameters, numpy.random.Generator], tuple[Any, ...]]
    """The arguments of one call, as NumPy arrays (or Python scalars, or nested tuples, lists and dicts of them)."""
    baseline: str = "numpy"
    """The variant that the others are compared with, and whose result is right where there is no `expected`."""
    expected: Callable[[Parameters, tuple[Any, ...]], Any] | None = None
    """A known answer, or an independent computation (finite differences); None: the baseline's result."""
    against: str = "numpy twin"
    """What a result is held against, in words."""
    tolerance: Mapping[str, float] = field(default_factory=lambda: {"float32": 1e-4, "tf32": 1e-2, "bfloat16": 5e-2})
    """Largest accepted error, relative to the largest magnitude of the expected result, by effective precision."""
    estimate: Callable[[Parameters], Estimate] = lambda parameters: Estimate()
    published: tuple[Published, ...] = ()
    has_dots: bool = False
    """Whether matrix products or convolutions are inside, so that the matrix precision matters."""
    origin: str = "built in"
    """`built in`, or the target under which a user's workload was found: `path/to/file.py:function`."""

    def variant(self, name: str) -> Variant:
        """The variant of that name. Raises UsageError naming the near ones."""
        for variant in self.variants:
            if variant.name == name:
                return variant
        raise unknown_name(f"variant of {self.name}", name, [variant.name for variant in self.variants])

    def resolve(self, preset: str, settings: Mapping[str, str] | None = None) -> dict[str, Scalar]:
        """The parameters of a preset with some of them set by hand (as text). Raises UsageError."""
        return resolve(self.name, self.parameters, self.presets, preset, settings or {})


def resolve(
    workload: str,
    parameters: tuple[Parameter, ...],
    presets: Mapping[str, Parameters],
    preset: str,
    settings: Mapping[str, str],
) -> dict[str, Scalar]:
    """The parameters of `preset` with `settings` (name → text) laid over them. Raises UsageError."""
    if preset not in presets:
        raise unknown_name(f"preset of {workload}", preset, presets)
    values = dict(presets[preset])
    known = {parameter.name: parameter for parameter in parameters}
    for name, text in settings.items():
        if name not in known:
            raise unknown_name(f"parameter of {workload}", name, known)
        values[name] = known[name].read(text)
    return values


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantCard:
    """A variant as data: what a process that cannot import the user's code knows of it."""

    name: str
    how: str
    description: str = ""
    inputs: str = "device"
    precision: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadCard:
    """A workload as data (JSON in, JSON out). Screens and the command line work with cards only, for all workloads."""

    name: str
    title: str
    description: str
    parameters: tuple[Parameter, ...]
    presets: dict[str, dict[str, Scalar]]
    variants: tuple[VariantCard, ...]
    baseline: str
    published: tuple[Published, ...] = ()
    has_dots: bool = False
    origin: str = "built in"

    def variant(self, name: str) -> VariantCard:
        """The variant of that name. Raises UsageError naming the near ones."""
        for variant in self.variants:
            if variant.name == name:
                return variant
        raise unknown_name(f"variant of {self.name}", name, [variant.name for variant in self.variants])

    def resolve(self, preset: str, settings: Mapping[str, str] | None = None) -> dict[str, Scalar]:
        """As `Workload.resolve`."""
        return resolve(self.name, self.parameters, self.presets, preset, settings or {})

    @property
    def target(self) -> str:
        """What the engine is asked for: the name of a built-in workload, or where the user's own was found."""
        return self.name if self.origin == "built in" else self.origin


def worth_running(variant: Variant | VariantCard, platform: str) -> bool:
    """Whether `variant` can differ from its default twin on `platform`: on a CPU, `highest` is the same program."""
    return not (variant.precision == "highest" and platform == "cpu")


def card(workload: Workload, *, sources: bool = True) -> WorkloadCard:
    """`workload` as data. `sources=False` leaves the source code out (it costs a file read)."""
    return WorkloadCard(
        name=workload.name,
        title=workload.title,
        description=workload.description,
        parameters=workload.parameters,
        presets={name: dict(values) for name, values in workload.presets.items()},
        variants=tuple(
            VariantCard(
                name=variant.name,
                how=variant.how,
                description=variant.description,
                inputs=variant.inputs,
                precision=variant.precision,
                source=variant.source if sources else "",
            )
            for variant in workload.variants
        ),
        baseline=workload.baseline,
        published=workload.published,
        has_dots=workload.has_dots,
        origin=workload.origin,
    )
