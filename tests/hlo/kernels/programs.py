"""Modules for the tests of the analysis: JAX programs compiled here, and HLO text written by hand."""

import functools
import re
from textwrap import dedent

import jax

from jaxprof.hlo.kernels.kernels import kernels
from jaxprof.hlo.text.parse import module
from jaxprof.workloads.specs import parse

_COMBINERS = {
    "add": "b = f32[] parameter(1)\n  ROOT r = f32[] add(a, b)",
    "max": "b = f32[] parameter(1)\n  ROOT r = f32[] maximum(a, b)",
    "less": "b = f32[] parameter(1)\n  ROOT r = pred[] compare(a, b), direction=LT",
    "last": "ROOT b = f32[] parameter(1)",
}


def shapes(text):
    """The arrays that a text names as HLO does: `bf16[8,4] s32[]`."""
    return [jax.ShapeDtypeStruct(spec.shape, spec.dtype) for spec in map(parse, text.split())]


IN_HASTE = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
"""The module is optimised as usual, and no time is spent on making its machine code quick."""


@functools.cache
def compiled(function, arguments):
    """The optimised module of `function`, as its text says; compiled once for all tests of a process."""
    return module(jax.jit(function).lower(*shapes(arguments)).compile(IN_HASTE).as_text())


def lowered(function, arguments):
    """The module before optimisation: the shapes and operations of the program, whatever the backend makes of them."""
    return module(jax.jit(function).lower(*shapes(arguments)).as_text("hlo"))


def written(text, header="is_scheduled=true"):
    """A module from its lines: those of its entry, or of all its computations but for the usual combiners."""
    lines = dedent(text).strip()
    if "ENTRY" not in lines:
        lines = f"ENTRY main {{\n{lines}\n}}"
    missing = [name for name in set(re.findall(r"to_apply=(\w+)", lines)) & set(_COMBINERS)
               if not re.search(rf"^\s*{name} {{", lines, re.MULTILINE)]  # fmt: skip
    combiners = "".join(f"{name} {{\n  a = f32[] parameter(0)\n  {_COMBINERS[name]}\n}}\n\n" for name in missing)
    return module(f"HloModule by_hand, {header}\n\n{combiners}{lines}\n")


def parameters(*shapes):
    """Lines with a parameter of each shape: p0, p1..."""
    return "".join(f"p{number} = {shape} parameter({number})\n" for number, shape in enumerate(shapes))


def result_of(inside):
    """The shape of the root of these lines."""
    return re.findall(r"ROOT \S+ = (\(.*?\)|\S+) ", inside)[-1]


def fused(inside, *shapes, kind="kLoop", more=""):
    """A fusion of these lines, whose parameters are p0, p1..., and nothing else."""
    given, names = parameters(*shapes), ", ".join(f"p{number}" for number in range(len(shapes)))
    root = f"ROOT f = {result_of(inside)} fusion({names}), kind={kind}, calls=fused{more}"
    return f"fused {{\n{given}{inside}\n}}\n\nENTRY main {{\n{given}{root}\n}}"


def looped(shape, body, result, turns=None):
    """A loop over an array `x`: the lines of its body, which of their values is the next `x`, and how often it runs."""
    state = f"(s32[], {shape})"
    known = f', backend_config={{"known_trip_count":{{"n":"{turns}"}}}}' if turns else ""
    return f"""body {{
s = {state} parameter(0)
i = s32[] get-tuple-element(s), index=0
x = {shape} get-tuple-element(s), index=1
{body}
ROOT t = {state} tuple(i, {result})
}}

condition {{
s = {state} parameter(0)
ROOT go = pred[] constant(true)
}}

ENTRY main {{
s = {state} parameter(0)
ROOT loop = {state} while(s), condition=condition, body=body{known}
}}
"""


def only_kernel(text):
    """The one kernel of a module from its lines."""
    (kernel,) = kernels(written(text))
    return kernel


SOFTMAX = """i = f32[] constant(-inf)
  m = ROWS reduce(p0, i), dimensions={1}, to_apply=max
  mb = SCORES broadcast(m), dimensions={0}
  d = SCORES subtract(p0, mb)
  e = SCORES exponential(d)
  z = f32[] constant(0)
  t = ROWS reduce(e, z), dimensions={1}, to_apply=add
  tb = SCORES broadcast(t), dimensions={0}
  ROOT p = SCORES divide(e, tb)"""


_THREE = f"""first {{
{parameters("NARROW", "NARROW")}ROOT d = SCORES dot(p0, p1), lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}}
}}

middle {{
{parameters("SCORES")}SOFTMAX
}}

last {{
{parameters("SCORES", "NARROW")}ROOT d = NARROW dot(p0, p1), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
}}

"""
_CALLS = """scores = SCORES fusion(x, x), kind=kCustom, calls=first
weights = SCORES fusion(scores), kind=kCustom, calls=middle
out = NARROW fusion(weights, x), kind=kCustom, calls=last
"""


def attention_text(softmax=SOFTMAX, width=64, length=2048, turns=0):
    """Attention in three kernels, as XLA for GPUs leaves it; within a loop of so many turns."""
    once = f"ENTRY main {{\nx = NARROW parameter(0)\n{_CALLS.replace('out =', 'ROOT out =')}}}\n"
    text = _THREE.replace("SOFTMAX", softmax) + (looped("NARROW", _CALLS, "out", turns) if turns else once)
    text = text.replace("SCORES", f"f32[{length},{length}]{{1,0}}").replace("ROWS", f"f32[{length}]{{0}}")
    return text.replace("NARROW", f"f32[{length},{width}]{{1,0}}")
