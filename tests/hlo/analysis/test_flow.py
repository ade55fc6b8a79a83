# ruff: noqa: E501 - an instruction of HLO is one line
"""What is told from the flow of data: ten modules in which each claim is true, and ten in which it is not made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from hlo.analysis.attention_text import COMBINERS, LENGTH, MIDDLE, WIDTH, apart
from hlo.analysis.programs import f32, written
from jaxprof.hlo.analysis.barriers import barriers
from jaxprof.hlo.analysis.findings.catalogue import findings
from jaxprof.hlo.analysis.kernels import kernels
from jaxprof.hlo.read.parse import module

_ARGMAX = """
argmax {
  v0 = f32[] parameter(0)
  i0 = s32[] parameter(1)
  v1 = f32[] parameter(2)
  i1 = s32[] parameter(3)
  g = pred[] compare(v0, v1), direction=GT
  v = f32[] select(g, v0, v1)
  i = s32[] select(g, i0, i1)
  ROOT t = (f32[], s32[]) tuple(v, i)
}

"""
_BIG = "f32[64,256]"
_ROW = "f32[64]"

# -- barriers: the reduction ---------------------------------------------------------------------------------------

_SPREAD_BY_CONSUMER = f"x = {_BIG} parameter(0)\n m = {_ROW} parameter(1)\n b = {_BIG} broadcast(m), dimensions={{0}}\n ROOT s = {_BIG} subtract(x, b)"
_IN = f"x = {_BIG} parameter(0)\n z = f32[] constant(0)\n"


def _two(
    made: str, result: str, used: str = _SPREAD_BY_CONSUMER, way: str = "made", final: str = _BIG, more: str = ""
) -> str:
    """A fusion whose result another fusion takes, beside the array that both read."""
    return f"""{COMBINERS}{_ARGMAX}{more}
producer {{
 {made}
}}

consumer {{
 {used}
}}

ENTRY main {{
  x = {_BIG} parameter(0)
  made = {result} fusion(x), kind=kLoop, calls=producer
  {f"way = {way}" if way != "made" else ""}
  ROOT used = {final} fusion(x, {"way" if way != "made" else "made"}), kind=kLoop, calls=consumer
}}
"""


_REDUCE = f"r = {_ROW} reduce(x, z), dimensions={{1}}, to_apply=sum"
_FULL = f"x = {_BIG} parameter(0)\n y = {_BIG} parameter(1)\n ROOT s = {_BIG} multiply(x, y)"
_NESTED = f"inner {{\n x = {_BIG} parameter(0)\n z = f32[] constant(0)\n ROOT {_REDUCE}\n}}\n"
_PAIR = f"({_ROW}, {_BIG})"
_SEES_ALL = "window={size=1x511 pad=0_0x255_255}, to_apply=max"
_SUBTRACTED = f"b = {_BIG} broadcast(r), dimensions={{0}}\n d = {_BIG} subtract(x, b)\n"

_REDUCED = {
    "the result itself": _two(f"{_IN} ROOT {_REDUCE}", _ROW),
    "the greatest": _two(f"{_IN} ROOT {_REDUCE.replace('sum', 'max')}", _ROW),
    "scaled and its root taken": _two(f"{_IN} {_REDUCE}\n m = {_ROW} multiply(r, r)\n ROOT q = {_ROW} rsqrt(m)", _ROW),
    "under another shape of as many": _two(f"{_IN} {_REDUCE}\n ROOT q = f32[8,8] reshape(r)", "f32[8,8]", way=f"{_ROW} bitcast(made)"),
    "cast": _two(
        f"{_IN} {_REDUCE}\n ROOT q = bf16[64] convert(r)", "bf16[64]",
        f"x = {_BIG} parameter(0)\n m = bf16[64] parameter(1)\n c = {_ROW} convert(m)\n b = {_BIG} broadcast(c), dimensions={{0}}\n ROOT s = {_BIG} subtract(x, b)",
    ),
    "the first of two results": _two(f"{_IN} {_REDUCE}\n e = {_BIG} exponential(x)\n ROOT t = {_PAIR} tuple(r, e)", _PAIR, way=f"{_ROW} get-tuple-element(made), index=0"),
    "of a nested fusion": _two(f"x = {_BIG} parameter(0)\n ROOT f = {_ROW} fusion(x), kind=kLoop, calls=inner", _ROW, more=_NESTED),
    "in two steps": _two(f"{_IN} p = f32[64,16] reduce(h, z), dimensions={{2}}, to_apply=sum\n ROOT r = {_ROW} reduce(p, z), dimensions={{1}}, to_apply=sum".replace("p =", "h = f32[64,16,16] bitcast(x)\n p ="), _ROW),
    "the place of the greatest": _two(
        f"{_IN} k = s32[] constant(0)\n i = s32[64,256] iota(), iota_dimension=1\n r = ({_ROW}, s32[64]) reduce(x, i, z, k), dimensions={{1}}, to_apply=argmax\n ROOT g = {_ROW} get-tuple-element(r), index=0", _ROW
    ),
    "used by another reduction": _two(
        f"{_IN} ROOT {_REDUCE}", _ROW,
        f"x = {_BIG} parameter(0)\n m = {_ROW} parameter(1)\n z = f32[] constant(0)\n ROOT q = f32[] reduce(m, z), dimensions={{0}}, to_apply=sum", final="f32[]",
    ),
    "spread as TPUs have it": _two(f"{_IN} ROOT w = {_BIG} reduce-window(x, z), {_SEES_ALL}", _BIG, _FULL),
}  # fmt: skip
_NOT_REDUCED = {
    "no reduction at all": _two(f"x = {_BIG} parameter(0)\n ROOT e = {_BIG} exponential(x)", _BIG, _FULL),
    "a softmax's numerator": _two(f"{_IN} {_REDUCE}\n {_SUBTRACTED} ROOT e = {_BIG} exponential(d)", _BIG, _FULL),
    "the reduction is spread inside": _two(f"{_IN} {_REDUCE}\n ROOT b = {_BIG} broadcast(r), dimensions={{0}}", _BIG, _FULL),
    "the other of two results": _two(f"{_IN} {_REDUCE}\n e = {_BIG} exponential(x)\n ROOT t = {_PAIR} tuple(r, e)", _PAIR, _FULL, way=f"{_BIG} get-tuple-element(made), index=1"),
    "nothing but the same shape follows": _two(
        f"{_IN} ROOT {_REDUCE}", _ROW, f"x = {_BIG} parameter(0)\n m = {_ROW} parameter(1)\n n = {_ROW} negate(m)\n ROOT q = {_ROW} exponential(n)", final=_ROW
    ),
    "pooling": _two(f"{_IN} ROOT w = f32[64,128] reduce-window(x, z), window={{size=1x2 stride=1x2}}, to_apply=max", "f32[64,128]",
                    f"x = {_BIG} parameter(0)\n m = f32[64,128] parameter(1)\n ROOT q = f32[64,128] exponential(m)", final="f32[64,128]"),
    "a running sum": _two(f"{_IN} ROOT w = {_BIG} reduce-window(x, z), window={{size=1x256 pad=0_0x255_0}}, to_apply=sum", _BIG, _FULL),
    "the consumer reduces": _two(f"x = {_BIG} parameter(0)\n ROOT e = {_BIG} exponential(x)", _BIG,
                                 f"x = {_BIG} parameter(0)\n y = {_BIG} parameter(1)\n z = f32[] constant(0)\n ROOT r = {_ROW} reduce(y, z), dimensions={{1}}, to_apply=sum", final=_ROW),
    "a scalar of a reduction scales": _two(f"{_IN} r = f32[] reduce(x, z), dimensions={{0,1}}, to_apply=sum\n b = {_BIG} broadcast(r), dimensions={{}}\n ROOT m = {_BIG} multiply(x, b)", _BIG, _FULL),
    "a spread reduction is taken off": _two(f"{_IN} w = {_BIG} reduce-window(x, z), {_SEES_ALL}\n ROOT d = {_BIG} subtract(x, w)", _BIG, _FULL),
    "a reduction whose result nobody takes": _two(f"{_IN} {_REDUCE}\n ROOT n = {_BIG} negate(x)", _BIG, _FULL),
}  # fmt: skip


def _between(text: str) -> set[str]:
    return {barrier.reason for barrier in barriers(written(text)) if barrier.producer == "made"}


@pytest.mark.parametrize("name", _REDUCED)
def test_the_array_is_the_result_of_a_reduction(name: str) -> None:
    assert _between(_REDUCED[name]) == {"reduction"}


@pytest.mark.parametrize("name", _NOT_REDUCED)
def test_a_reduction_in_the_producer_alone_is_no_reason(name: str) -> None:
    found = _between(_NOT_REDUCED[name])
    assert found
    assert "reduction" not in found


# -- barriers: the library -----------------------------------------------------------------------------------------

_SQUARE = "f32[64,64]{1,0}"
_DOT = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"


def _beside(second: str, computation: str = "") -> str:
    """An elementwise kernel, and another one that takes its result."""
    return f"{COMBINERS}{computation}\nENTRY main {{\n x = {_SQUARE} parameter(0)\n made = {_SQUARE} exponential(x)\n ROOT used = {_SQUARE} {second}\n}}\n"


def _generated(kind: str, inside: str = f"ROOT d = {_SQUARE} dot(p, p), {_DOT}", name: str = "kCustom") -> str:
    config = f', backend_config={{"fusion_backend_config":{{"kind":"{kind}"}}}}' if kind else ""
    return _beside(
        f"fusion(made), kind={name}, calls=held{config}", f"held {{\n p = {_SQUARE} parameter(0)\n {inside}\n}}\n"
    )


_LIBRARY = {
    **{
        target: _beside(f'custom-call(made), custom_call_target="{target}"')
        for target in (
            "__cublas$gemm", "__cublas$lt$matmul", "__cudnn$convForward", "lapack_spotrf_ffi", "cusolver_getrf_ffi",
            "__cub$DeviceRadixSort", "tpu_custom_call",
        )
    },
    **{kind: _generated(kind) for kind in ("__ynn_fusion", "__onednn_fusion", "__cudnn$fusion")},
    "an elementwise graph for a library": _generated("__ynn_fusion", f"ROOT n = {_SQUARE} negate(p)"),
}  # fmt: skip
_NO_LIBRARY = {
    "a Triton product": _generated("__triton_gemm"),
    "a nested Triton product": _generated("__triton_nested_gemm_fusion"),
    "a Triton softmax": _generated("__triton", f"ROOT n = {_SQUARE} negate(p)"),
    "XLA's own copy": _generated("dynamic_memcpy", f"ROOT n = {_SQUARE} copy(p)"),
    "a product of a TPU": _generated("", name="kOutput"),
    "a product": _beside(f"dot(made, made), {_DOT}"),
    "a convolution": _beside("convolution(made, made), dim_labels=bf_io->bf"),
    "a sort": _beside("sort(made), dimensions={1}, to_apply=max"),
    "a factorisation that XLA writes out": _beside("cholesky(made), lower=true"),
    "elementwise": _beside("negate(made)"),
    "a copy in another order": _beside("copy(made)").replace(
        "ROOT used = f32[64,64]{1,0}", "ROOT used = f32[64,64]{0,1}"
    ),
}


@pytest.mark.parametrize("name", _LIBRARY)
def test_a_library_computes_it(name: str) -> None:
    assert _between(_LIBRARY[name]) == {"library-call"}


@pytest.mark.parametrize("name", _NO_LIBRARY)
def test_what_xla_makes_itself_is_no_library(name: str) -> None:
    found = _between(_NO_LIBRARY[name])
    assert found
    assert "library-call" not in found


# -- the kind: attention -------------------------------------------------------------------------------------------

_S = "f32[64,64]{1,0}"
_V = "f32[64]{0}"
_FIRST = f"s = {_S} dot(q, k), lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}}"
_MAX = f"i = f32[] constant(-inf)\n m = {_V} reduce(LOGITS, i), dimensions={{1}}, to_apply=max\n mb = {_S} broadcast(m), dimensions={{0}}\n d = {_S} subtract(LOGITS, mb)"
_EXP = f"e = {_S} exponential(d)"
_SUM = f"z = f32[] constant(0)\n t = {_V} reduce(e, z), dimensions={{1}}, to_apply=sum\n tb = {_S} broadcast(t), dimensions={{0}}"
_DIVIDE = f"p = {_S} divide(e, tb)"
_SECOND = f"ROOT o = {_S} dot(WEIGHTS, v), {_DOT}"


def _fusion(*lines: str, logits: str = "s", weights: str = "p", more: str = "") -> str:
    body = "\n ".join(lines).replace("LOGITS", logits).replace("WEIGHTS", weights)
    parameters = "\n ".join(f"{name} = {_S} parameter({number})" for number, name in enumerate("qkv"))
    given = "\n ".join(f"{name} = {_S} parameter({number})" for number, name in enumerate("qkv"))
    return f"{COMBINERS}{more}held {{\n {parameters}\n {body}\n}}\n\nENTRY main {{\n {given}\n ROOT f = {_S} fusion(q, k, v), kind=kCustom, calls=held\n}}\n"


_SOFTMAX = (_MAX, _EXP, _SUM, _DIVIDE)
_SPREAD_MAX = f"i = f32[] constant(-inf)\n w = {_S} reduce-window(LOGITS, i), window={{size=1x127 pad=0_0x63_63}}, to_apply=max\n d = {_S} subtract(LOGITS, w)"
_MASKED = f"c = {_S} iota(), iota_dimension=0\n a = {_S} iota(), iota_dimension=1\n l = pred[64,64]{{1,0}} compare(c, a), direction=GE\n n = {_S} select(l, s, a)"
_TURNED = f"pt = {_S} transpose(p), dimensions={{1,0}}"
_INNER = f"inner {{\n s = {_S} parameter(0)\n i = f32[] constant(-inf)\n m = {_V} reduce(s, i), dimensions={{1}}, to_apply=max\n mb = {_S} broadcast(m), dimensions={{0}}\n d = {_S} subtract(s, mb)\n ROOT e = {_S} exponential(d)\n}}\n\n"
_ATTENTION = {
    "plain": _fusion(_FIRST, *_SOFTMAX, _SECOND),
    "scaled": _fusion(
        _FIRST,
        f"h = f32[] constant(0.125)\n hb = {_S} broadcast(h), dimensions={{}}\n n = {_S} multiply(s, hb)",
        *_SOFTMAX,
        _SECOND,
        logits="n",
    ),
    "masked": _fusion(_FIRST, _MASKED, *_SOFTMAX, _SECOND, logits="n"),
    "with a bias": _fusion(_FIRST, f"n = {_S} add(s, q)", *_SOFTMAX, _SECOND, logits="n"),
    "probabilities cast": _fusion(
        _FIRST, *_SOFTMAX, f"pc = bf16[64,64]{{1,0}} convert(p)\n pf = {_S} convert(pc)", _SECOND, weights="pf"
    ),
    "by the reciprocal": _fusion(
        _FIRST,
        _MAX,
        _EXP,
        f"z = f32[] constant(0)\n t = {_V} reduce(e, z), dimensions={{1}}, to_apply=sum\n one = f32[] constant(1)\n ones = {_V} broadcast(one), dimensions={{}}\n tr = {_V} divide(ones, t)\n tb = {_S} broadcast(tr), dimensions={{0}}\n p = {_S} multiply(e, tb)",
        _SECOND,
    ),
    "divided at the end": _fusion(
        _FIRST, _MAX, _EXP, _SUM, f"u = {_S} dot(e, v), {_DOT}\n ROOT o = {_S} divide(u, tb)"
    ),
    "turned before the second product": _fusion(_FIRST, *_SOFTMAX, _TURNED, f"ROOT o = {_S} dot(v, pt), {_DOT}"),
    "with dropout": _fusion(_FIRST, *_SOFTMAX, f"g = {_S} multiply(p, q)", _SECOND, weights="g"),
    "a part in a nested fusion": _fusion(
        _FIRST, f"e = {_S} fusion(s), kind=kLoop, calls=inner", _SUM, _DIVIDE, _SECOND, more=_INNER
    ),
    "as TPUs write it": _fusion(
        f"s = {_S} convolution(q, k), dim_labels=bf_oi->bf",
        _SPREAD_MAX,
        _EXP,
        _SUM,
        _DIVIDE,
        f"ROOT o = {_S} convolution(p, v), dim_labels=bf_io->bf",
    ),
}
_CENTRED = f"z = f32[] constant(0)\n t = {_V} reduce(g, z), dimensions={{1}}, to_apply=sum\n tb = {_S} broadcast(t), dimensions={{0}}\n p = {_S} subtract(g, tb)"
_NO_ATTENTION = {
    "one product": _fusion(_FIRST, f"ROOT o = {_S} exponential(s)"),
    "two products and nothing else": _fusion(_FIRST, _SECOND, weights="s"),
    "an MLP with tanh and a sum": _fusion(_FIRST, f"g = {_S} tanh(s)", _CENTRED, _SECOND),
    "a dense layer, gelu and a norm": _fusion(_FIRST, f"e = {_S} exponential(s)\n g = {_S} multiply(s, e)", _CENTRED, _SECOND),
    "a sigmoid written out": _fusion(_FIRST, f"n = {_S} negate(s)\n e = {_S} exponential(n)\n one = f32[] constant(1)\n ob = {_S} broadcast(one), dimensions={{}}\n a = {_S} add(e, ob)\n p = {_S} divide(ob, a)", _SECOND),
    "no greatest is taken off": _fusion(_FIRST, f"e = {_S} exponential(s)", _SUM, _DIVIDE, _SECOND),
    "nothing is divided": _fusion(_FIRST, _MAX, _EXP, _SECOND, weights="e"),
    "a softmax of the input before two products": _fusion(*_SOFTMAX, f"a = {_S} dot(p, k), {_DOT}\n ROOT o = {_S} dot(a, v), {_DOT}", logits="q"),
    "a softmax behind two products": _fusion(_FIRST, f"a = {_S} dot(s, v), {_DOT}", *_SOFTMAX[:-1], f"ROOT p = {_S} divide(e, tb)", logits="a"),
    "two products side by side": _fusion(_FIRST, *_SOFTMAX, f"a = {_S} dot(q, v), {_DOT}\n ROOT o = {_S} add(a, p)"),
    "the gradient of a classifier": _fusion(_FIRST, *_SOFTMAX, f"g = {_S} subtract(p, q)", _SECOND, weights="g"),
    "divided by the sum of something else": _fusion(_FIRST, _MAX, _EXP, _SUM.replace("reduce(e, z)", "reduce(q, z)"), _DIVIDE, _SECOND),
}  # fmt: skip


@pytest.mark.parametrize("name", _ATTENTION)
def test_two_products_around_a_softmax_are_attention(name: str) -> None:
    assert [kernel.kind for kernel in kernels(written(_ATTENTION[name]))] == ["attention"]


@pytest.mark.parametrize("name", _NO_ATTENTION)
def test_anything_else_with_products_is_a_product(name: str) -> None:
    assert [kernel.kind for kernel in kernels(written(_NO_ATTENTION[name]))] == ["GEMM"]


# -- the finding: scores that are stored ---------------------------------------------------------------------------


def _codes(text: str) -> dict[str, int | None]:
    return {finding.code: finding.bytes for finding in findings(written(text))}


def test_scores_that_go_through_memory_are_counted_written_and_read() -> None:
    assert _codes(apart(MIDDLE))["attention-scores"] == 2 * 2 * LENGTH * LENGTH * 4


def test_scores_in_a_loop_count_in_each_turn() -> None:
    narrow = f"f32[{LENGTH},{WIDTH}]{{1,0}}"
    state = f"(s32[], {narrow})"
    once = apart(MIDDLE)
    start = once.index("ENTRY main")
    body = once[start:].replace(
        "ENTRY main {", f"body {{\n  t = {state} parameter(0)\n  n = s32[] get-tuple-element(t), index=0"
    )
    for name in "qkv":
        body = body.replace(
            f"{name} = {narrow} parameter({'qkv'.index(name)})", f"{name} = {narrow} get-tuple-element(t), index=1"
        )
    body = (
        body.replace(f"ROOT out = {narrow}", f"out = {narrow}").rstrip().removesuffix("}")
        + f"  ROOT r = {state} tuple(n, out)\n}}\n"
    )
    loop = f"""
goes_on {{
  t = {state} parameter(0)
  ROOT c = pred[] constant(true)
}}

ENTRY main {{
  t = {state} parameter(0)
  ROOT w = {state} while(t), condition=goes_on, body=body, backend_config={{"known_trip_count":{{"n":"5"}}}}
}}
"""
    assert _codes(once[:start] + body + loop)["attention-scores"] == 5 * 2 * 2 * LENGTH * LENGTH * 4


@pytest.mark.parametrize(
    "text",
    [
        apart("ROOT t = SCORES tanh(s)"),
        apart(MIDDLE.replace("divide(e, tb)", "add(e, tb)")),
        apart(MIDDLE, width=4096, length=1024),
        apart(MIDDLE, length=128),
        _ATTENTION["plain"],
    ],
    ids=["an MLP", "no softmax", "scores smaller than the result", "a few kilobytes", "in one kernel"],
)
def test_no_scores_are_told_of_anything_else(text: str) -> None:
    assert "attention-scores" not in _codes(text)


# -- the finding: results that the caller already has -------------------------------------------------------------------------


def _returning(lines: str, result: str, header: str = "") -> str:
    big = "f32[1024,1024]{1,0}"
    body = lines.replace("BIG", big)
    return f"HloModule m, is_scheduled=true{header}\n\nENTRY main {{\n x = {big} parameter(0)\n {body}\n ROOT t = ({big}, {big}) tuple({result})\n}}\n"


_SINE = "s = BIG sine(x)\n "


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (_returning(_SINE + "c = BIG copy(x)", "s, c"), "unchanged arguments"),
        (_returning(_SINE, "s, x"), "unchanged arguments"),
        (_returning(_SINE + "c = BIG copy(s)", "s, c"), "the same array twice"),
        (_returning(_SINE + "z = f32[] constant(0)\n b = BIG broadcast(z), dimensions={}", "s, b"), "constants"),
    ],
)
def test_a_result_that_the_caller_has_already(text: str, words: str) -> None:
    (found,) = (finding for finding in findings(written(text)) if finding.code == "needless-results")
    assert words in found.message
    assert found.bytes == 1024 * 1024 * 4


@pytest.mark.parametrize(
    "text",
    [
        _returning(_SINE + "c = BIG cosine(x)", "s, c"),
        _returning(_SINE, "s, x", ", input_output_alias={ {1}: (0, {}, may-alias) }"),
        _returning(_SINE + "c = BIG copy(x)", "s, c").replace("1024,1024", "16,16"),
    ],
    ids=["both computed", "donated", "small"],
)
def test_results_that_are_news_or_cost_nothing_are_not_told(text: str) -> None:
    assert "needless-results" not in _codes(text)


def _step(parameters: Any, slope: Any) -> tuple[Any, Any]:
    return jax.tree.map(lambda p, g: p - 0.1 * g, parameters, slope), sum(
        jnp.sum(p) for p in jax.tree.leaves(parameters)
    )


_STATE = {"w": f32(2048, 2048), "v": f32(2048, 2048)}


def test_a_step_that_does_not_donate_its_state_holds_it_twice() -> None:
    kept = module(jax.jit(_step).lower(_STATE, _STATE).compile().as_text())
    (found,) = (finding for finding in findings(kept) if finding.code == "lost-donation")
    assert found.bytes == 2 * 2048 * 2048 * 4
    donated = module(jax.jit(_step, donate_argnums=0).lower(_STATE, _STATE).compile().as_text())
    assert "lost-donation" not in {finding.code for finding in findings(donated)}


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: (jnp.sin(x), x @ y),  # one array is an update, the other one is not
        lambda x, y: (x @ y, y @ x),
        lambda x, y: (jnp.sin(x)[:100], jnp.sin(y)[:100]),
        lambda x, y: jnp.sin(x) + y,
    ],
)
def test_results_that_are_no_updates_of_a_state_have_nothing_to_donate(function: Callable[..., Any]) -> None:
    text = jax.jit(function).lower(f32(2048, 2048), f32(2048, 2048)).compile().as_text()
    assert "lost-donation" not in {finding.code for finding in findings(module(text))}
