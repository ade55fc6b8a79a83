"""Every finding has a pair: a program in which it appears, and the edit that removes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from hlo.analysis.attention_text import MIDDLE, apart
from hlo.analysis.programs import bf16, compiled, f32, written
from jaxprof.analysis.explain.catalogue import entries
from jaxprof.hlo.analysis.findings.catalogue import findings
from jaxprof.hlo.analysis.findings.codes import HLO_FINDINGS
from jaxprof.hlo.analysis.findings.finding import HloFinding
from jaxprof.hlo.model import Module

_X = f32(1024, 1024)
_Program = tuple[Callable[..., Any], tuple[Any, ...]]
_TABLE = np.arange(1024 * 512, dtype=np.float32).reshape(1024, 512)


def _layers(wrap: Callable[..., Any]) -> Callable[..., Any]:
    def loss(w: jax.Array, x: jax.Array) -> jax.Array:
        return lax.scan(wrap(lambda h, wi: (jnp.tanh(h @ wi), None)), x, w)[0].sum()

    return jax.value_and_grad(loss)


def _recurrence(x: jax.Array, xs: jax.Array) -> Any:
    return lax.scan(lambda c, a: (jnp.tanh(c + a), c), x, xs)


def _accumulated(xs: jax.Array, start: jax.Array) -> jax.Array:
    return lax.scan(lambda total, x: (total + x, None), start, xs)[0]


_PAIRS: dict[str, tuple[_Program, _Program]] = {
    "layout-copy": (
        (lambda a: jnp.einsum("bij,bjk->bik", a, a).transpose(1, 2, 0), (f32(64, 128, 128),)),
        (lambda a: jnp.einsum("bij,bjk->bik", a, a), (f32(64, 128, 128),)),
    ),
    "dtype-convert": (
        (lambda a, b: a.astype(jnp.float32) @ b, (bf16(1024, 1024), _X)),
        (lambda a, b: a @ b, (_X, _X)),
    ),
    "broadcast-materialised": (
        (lambda a, b: a @ jnp.broadcast_to(b, (1024, 1024)), (_X, f32(1024, 1))),
        (lambda a, b: a @ b, (_X, f32(1024, 1))),
    ),
    "tiny-kernels": (  # twelve small arrays, or one that they are stacked in
        (lambda *xs: [jnp.sin(x * 2).sum() for x in xs], tuple(f32(100 + n) for n in range(12))),
        (lambda x: jnp.sin(x * 2).sum(1), (f32(12, 119),)),
    ),
    "padding": (
        (lambda a: jnp.sort(jnp.pad(a, ((1, 1), (1, 1))), 0), (_X,)),
        (lambda a: jnp.sort(a, 0), (_X,)),
    ),
    "rematerialisation": (
        (_layers(jax.checkpoint), (f32(4, 512, 512), f32(512, 512))),
        (_layers(lambda f: f), (f32(4, 512, 512), f32(512, 512))),
    ),
    "large-constant": (
        (lambda a: a @ _TABLE, (_X,)),
        (lambda a, table: a @ table, (_X, f32(1024, 512))),
    ),
    "unused-output": (  # the sorted keys are thrown away, or returned
        (lambda a: jnp.argsort(a), (f32(1_000_000),)),
        (lambda a: lax.sort((a, lax.iota(jnp.int32, 1_000_000)), num_keys=1), (f32(1_000_000),)),
    ),
    "host-transfer": (
        (lambda a: jax.pure_callback(lambda y: y, _X, a) + 1, (_X,)),
        (lambda a: a + 1, (_X,)),
    ),
    "narrow-sum": (
        (_accumulated, (bf16(300, 64, 64), bf16(64, 64))),
        (_accumulated, (f32(300, 64, 64), f32(64, 64))),
    ),
    "small-loop-body": (  # one short recurrence, or many side by side
        (_recurrence, (f32(8), f32(1000, 8))),
        (_recurrence, (f32(100_000), f32(1000, 100_000))),
    ),
}


def _codes(module: Module, platform: str = "") -> set[str]:
    return {finding.code for finding in findings(module, platform)}


@pytest.mark.parametrize("code", _PAIRS)
def test_a_finding_appears_and_the_edit_removes_it(code: str) -> None:
    (with_it, arguments), (without_it, other_arguments) = _PAIRS[code]
    platform = "gpu" if code == "tiny-kernels" else ""
    assert code in _codes(compiled(with_it, *arguments), platform)
    assert code not in _codes(compiled(without_it, *other_arguments), platform)


def test_launch_costs_are_those_of_the_platform() -> None:
    """A CPU calls its kernels, a TPU runs a whole program: neither launches each from the host."""
    (small, arguments), _ = _PAIRS["tiny-kernels"]
    assert not _codes(compiled(small, *arguments), "cpu") & {"tiny-kernels"}
    assert not _codes(compiled(small, *arguments), "tpu") & {"tiny-kernels"}
    loop = compiled(_recurrence, f32(2000), f32(1000, 2000))  # 24 kB an iteration: below a GPU's launch alone
    assert {platform: "small-loop-body" in _codes(loop, platform) for platform in ("gpu", "cpu", "tpu")} == {
        "gpu": True, "cpu": False, "tpu": False,
    }  # fmt: skip


def test_odd_sizes_are_told_where_there_are_matrix_units() -> None:
    odd = compiled(lambda a, b: a @ b, bf16(1024, 1001), bf16(1001, 1024))
    even = compiled(lambda a, b: a @ b, bf16(1024, 1024), bf16(1024, 1024))
    assert "odd-sizes" in _codes(odd, "gpu")
    assert "odd-sizes" not in _codes(odd, "cpu")
    assert "odd-sizes" not in _codes(even, "gpu")
    (finding,) = (found for found in findings(odd, "gpu") if found.code == "odd-sizes")
    assert "1001" in finding.message


def test_float64_is_told_on_an_accelerator() -> None:
    text = "ENTRY main {{\n  x = {0}[1024] parameter(0)\n  ROOT y = {0}[1024] multiply(x, x)\n}}"
    assert "float64-on-accelerator" in _codes(written(text.format("f64")), "gpu")
    assert "float64-on-accelerator" not in _codes(written(text.format("f64")), "cpu")
    assert "float64-on-accelerator" not in _codes(written(text.format("f32")), "gpu")


_PRODUCT = """
    ENTRY main {{
      a = {0}[512,512] parameter(0)
      b = {0}[512,512] parameter(1)
      {1}
    }}
"""
_WIDENED = """wa = f32[512,512] convert(a)
      wb = f32[512,512] convert(b)
      t = f32[512,512] transpose(wb), dimensions={1,0}
      ROOT y = f32[512,512] dot(wa, t), lhs_contracting_dims={1}, rhs_contracting_dims={0}"""
_AS_IT_IS = "ROOT y = f32[512,512] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}"


@pytest.mark.parametrize(("attribute", "told"), [(", is_host_transfer=true", True), ("", False)])
def test_only_what_is_sent_to_the_host_is_a_host_transfer(attribute: str, told: bool) -> None:
    """Between the stages of a pipeline, devices send to each other with the same operation."""
    text = f"""
        ENTRY main {{
          x = f32[1024] parameter(0)
          token = token[] after-all()
          sent = (f32[1024], u32[], token[]) send(x, token), channel_id=1{attribute}
          ROOT done = token[] send-done(sent), channel_id=1{attribute}
        }}
    """
    assert ("host-transfer" in _codes(written(text))) is told


def test_a_product_wider_than_its_operands_is_told_on_an_accelerator() -> None:
    widened = written(_PRODUCT.format("bf16", _WIDENED))
    assert "upcast-product" in _codes(widened, "tpu")
    assert "upcast-product" not in _codes(widened, "cpu")
    assert "upcast-product" not in _codes(written(_PRODUCT.format("bf16", _AS_IT_IS)), "tpu")
    one_is_wide = _WIDENED.replace("wa = f32[512,512] convert(a)", "wa = f32[512,512] sine(c)")
    third = "c = f32[512,512] parameter(2)\n      "
    assert "upcast-product" not in _codes(written(_PRODUCT.format("bf16", third + one_is_wide)), "gpu")


def test_a_product_of_several_passes_is_told_on_an_accelerator() -> None:
    precise = written(_PRODUCT.format("f32", _AS_IT_IS + ", operand_precision={highest,highest}"))
    (finding,) = (found for found in findings(precise, "tpu") if found.code == "precise-product")
    assert "highest" in finding.message
    assert "precise-product" not in _codes(precise, "cpu")
    assert "precise-product" not in _codes(written(_PRODUCT.format("f32", _AS_IT_IS)), "tpu")


_SUM = """
    add {{
      a = {0}[] parameter(0)
      b = {0}[] parameter(1)
      {1}
    }}

    ENTRY main {{
      x = {0}[{2},64] parameter(0)
      zero = {0}[] constant(0)
      ROOT y = {0}[64] reduce(x, zero), dimensions={{0}}, to_apply=add
    }}
"""
_PLAIN_SUM = "ROOT s = {0}[] add(a, b)"
_ROUNDED = """s = f32[] add(a, b)
      r = bf16[] convert(s)
      ROOT w = f32[] convert(r)"""


@pytest.mark.parametrize(
    ("dtype", "body", "numbers", "told"),
    [
        ("bf16", _PLAIN_SUM, 4096, True),
        ("bf16", _PLAIN_SUM, 255, False),
        ("f16", _PLAIN_SUM, 4096, True),
        ("f16", _PLAIN_SUM, 2047, False),
        ("f32", _PLAIN_SUM, 4096, False),
        ("f32", _ROUNDED, 4096, True),
        ("bf16", "ROOT m = {0}[] maximum(a, b)", 4096, False),
    ],
)
def test_sums_that_are_rounded_at_each_addition(dtype: str, body: str, numbers: int, told: bool) -> None:
    module = written(_SUM.format(dtype, body.format(dtype), numbers))
    assert ("narrow-sum" in _codes(module, "gpu")) is told


def test_a_sum_of_jnp_is_not_rounded_at_each_addition() -> None:
    assert "narrow-sum" not in _codes(compiled(lambda x: x.sum(0), bf16(4096, 128)))
    assert "narrow-sum" not in _codes(compiled(_accumulated, bf16(100, 64, 64), bf16(64, 64)))
    (found,) = (one for one in findings(compiled(_accumulated, bf16(300, 64, 64), bf16(64, 64)))
                if one.code == "narrow-sum")  # fmt: skip
    assert "up to 300 numbers" in found.message


_BIG = "f32[1024,1024]"
_RETURNED = f"""
    ENTRY main {{{{
      x = {_BIG} parameter(0)
      s = {_BIG} sine(x)
      {{0}}
      ROOT t = ({_BIG}, {_BIG}) tuple(s, c)
    }}}}
"""
_ALL_TO_ALL = """
    HloModule m, is_scheduled=true, num_partitions=4

    ENTRY main {{
      x = f32[1024,1024] parameter(0)
      s = f32[1024,1024] sine(x)
      a = f32[1024,1024] all-to-all(s), replica_groups={{{{0,1,2,3}}}}, dimensions={{0}}, metadata={{op_name="{0}"}}
      ROOT y = f32[1024,1024] cosine(a)
    }}
"""
_UPDATED = """
    HloModule m, is_scheduled=true{0}

    ENTRY main {{
      w = f32[2048,2048] parameter(0)
      v = f32[2048,2048] parameter(1)
      a = f32[2048,2048] negate(w)
      b = f32[2048,2048] negate(v)
      ROOT t = (f32[2048,2048], f32[2048,2048]) tuple(a, b)
    }}
"""
_IN_ONE_KERNEL = """
    ENTRY main {
      q = f32[2048,64] parameter(0)
      k = f32[2048,64] parameter(1)
      v = f32[2048,64] parameter(2)
      ROOT out = f32[2048,64] custom-call(q, k, v), custom_call_target="__cudnn$fmhaSoftmax"
    }
"""
_ALIASED = ", input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, {}, may-alias) }"
_WRITTEN: dict[str, tuple[str, str, str]] = {
    "odd-sizes": (_PRODUCT.format("bf16", _AS_IT_IS).replace("512", "1001"), _PRODUCT.format("bf16", _AS_IT_IS), "gpu"),
    "float64-on-accelerator": (
        "ENTRY main {\n  x = f64[1024] parameter(0)\n  ROOT y = f64[1024] multiply(x, x)\n}",
        "ENTRY main {\n  x = f32[1024] parameter(0)\n  ROOT y = f32[1024] multiply(x, x)\n}",
        "gpu",
    ),
    "upcast-product": (_PRODUCT.format("bf16", _WIDENED), _PRODUCT.format("bf16", _AS_IT_IS), "tpu"),
    "precise-product": (
        _PRODUCT.format("f32", _AS_IT_IS + ", operand_precision={highest,highest}"),
        _PRODUCT.format("f32", _AS_IT_IS),
        "tpu",
    ),
    "attention-scores": (apart(MIDDLE), _IN_ONE_KERNEL, "gpu"),
    "needless-results": (_RETURNED.format(f"c = {_BIG} copy(x)"), _RETURNED.format(f"c = {_BIG} cosine(x)"), ""),
    "lost-donation": (_UPDATED.format(""), _UPDATED.format(_ALIASED), ""),
    "resharding": (_ALL_TO_ALL.format("jit(f)/add"), _ALL_TO_ALL.format("jit(f)/shard_map/all_to_all"), ""),
}
"""Pairs that a CPU does not show, or whose other cases are elsewhere, written by hand: with it, without, and where."""


@pytest.mark.parametrize("code", _WRITTEN)
def test_a_finding_is_in_one_text_and_not_in_the_other(code: str) -> None:
    with_it, without_it, platform = _WRITTEN[code]
    assert code in _codes(written(with_it), platform)
    assert code not in _codes(written(without_it), platform)


def test_every_finding_has_a_pair_and_advice() -> None:
    listed = {entry.code for entry in entries().values() if entry.source == "hlo"}
    assert listed == {*_PAIRS, *_WRITTEN} == set(HLO_FINDINGS)
    assert all(len(kind.fix) > 40 for kind in HLO_FINDINGS.values())


def _find(module: Module, code: str) -> HloFinding:
    (found,) = (finding for finding in findings(module) if finding.code == code)
    return found


def test_a_finding_says_where_and_how_much() -> None:
    module = compiled(_PAIRS["dtype-convert"][0][0], *_PAIRS["dtype-convert"][0][1])
    found = _find(module, "dtype-convert")
    assert found.bytes == 1024 * 1024 * (2 + 4)
    assert found.where == ("wrapped_convert",)
    assert found.advice == HLO_FINDINGS["dtype-convert"].fix
    assert "6.00 MiB" in found.message


def test_a_checkpoint_that_computes_nothing_twice_is_not_told() -> None:
    """Nobody asks for the value, so that the second forward pass is the only one."""

    def loss(w: jax.Array, x: jax.Array) -> jax.Array:
        return jnp.tanh(jnp.tanh(x @ w) @ w).sum()

    assert "rematerialisation" not in _codes(compiled(jax.grad(jax.checkpoint(loss)), _X, _X))


def test_a_transpose_that_only_renames_dimensions_is_not_a_layout_copy() -> None:
    text = """
        fused {
          p = f32[1024,1024]{1,0} parameter(0)
          ROOT t = f32[1024,1024]{%s} transpose(p), dimensions={1,0}
        }

        ENTRY main {
          x = f32[1024,1024]{1,0} parameter(0)
          ROOT f = f32[1024,1024]{%s} fusion(x), kind=kLoop, calls=fused
        }
    """
    assert "layout-copy" in _codes(written(text % ("1,0", "1,0")))
    assert "layout-copy" not in _codes(written(text % ("0,1", "0,1")))


def test_before_optimisation_only_what_does_not_depend_on_it_is_told() -> None:
    text = """
        HloModule before

        ENTRY main {
          x = f32[1024,1024] parameter(0)
          c = f32[1024,1024] constant({...})
          b = bf16[1024,1024] convert(x)
          w = f32[1024,1024] convert(b)
          ROOT y = f32[1024,1024] add(w, c)
        }
    """
    assert _codes(written(text)) == {"large-constant"}
