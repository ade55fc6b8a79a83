"""Attention in three kernels as text, for tests of what is found in it."""

from __future__ import annotations

COMBINERS = "".join(
    f"{name} {{\n a = {dtype}[] parameter(0)\n b = {dtype}[] parameter(1)\n ROOT r = {dtype}[] {opcode}(a, b)\n}}\n\n"
    for name, dtype, opcode in (
        ("sum", "f32", "add"), ("max", "f32", "maximum"), ("sum16", "bf16", "add"), ("max16", "bf16", "maximum"),
    )
)  # fmt: skip

LENGTH, WIDTH = 2048, 64
_TRITON = '{"fusion_backend_config":{"kind":"__triton_gemm"}}'


def apart(softmax: str, width: int = WIDTH, length: int = LENGTH) -> str:
    """Attention in three kernels, as XLA for GPUs leaves it."""
    scores, narrow = f"f32[{length},{length}]{{1,0}}", f"f32[{length},{width}]{{1,0}}"
    body = softmax.replace("SCORES", scores).replace("ROWS", f"f32[{length}]{{0}}")
    return f"""{COMBINERS}first {{
  q = {narrow} parameter(0)
  k = {narrow} parameter(1)
  ROOT d = {scores} dot(q, k), lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}}
}}

middle {{
  s = {scores} parameter(0)
  {body}
}}

last {{
  p = {scores} parameter(0)
  v = {narrow} parameter(1)
  ROOT d = {narrow} dot(p, v), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
}}

ENTRY main {{
  q = {narrow} parameter(0)
  k = {narrow} parameter(1)
  v = {narrow} parameter(2)
  scores = {scores} fusion(q, k), kind=kCustom, calls=first, backend_config={_TRITON}
  weights = {scores} fusion(scores), kind=kCustom, calls=middle
  ROOT out = {narrow} fusion(weights, v), kind=kCustom, calls=last
}}
"""


MIDDLE = """i = f32[] constant(-inf)
  m = ROWS reduce(s, i), dimensions={1}, to_apply=max
  mb = SCORES broadcast(m), dimensions={0}
  d = SCORES subtract(s, mb)
  e = SCORES exponential(d)
  z = f32[] constant(0)
  t = ROWS reduce(e, z), dimensions={1}, to_apply=sum
  tb = SCORES broadcast(t), dimensions={0}
  ROOT p = SCORES divide(e, tb)"""
