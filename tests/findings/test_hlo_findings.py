"""Every finding has a pair: a program in which it appears, and the edit that removes it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from hlo.kernels.programs import SOFTMAX, attention_text, compiled, fused, looped, parameters, shapes, written
from jaxprof.findings.catalogue import entries
from jaxprof.findings.hlo import findings_on
from jaxprof.hlo.kernels.kinds import platform_of
from jaxprof.hlo.text.parse import module

_TABLE = np.arange(1024 * 512, dtype=np.float32).reshape(1024, 512)


def _layers(wrap):
    def loss(w, x):
        return lax.scan(wrap(lambda h, wi: (jnp.tanh(h @ wi), None)), x, w)[0].sum()

    return jax.value_and_grad(loss)


def _recurrence(x, xs):
    return lax.scan(lambda c, a: (jnp.tanh(c + a), c), x, xs)


def _filled(update):
    """A loop that writes the first `n` entries of the buffers of a batch, one an iteration."""

    def fill(buffer, n):
        return lax.scan(lambda buffer, i: (update(buffer, i, i < n), None), buffer, jnp.arange(3000))[0]

    return jax.vmap(fill)


def _mixed(batched):
    """Elements of a batch that need a product or half of themselves."""

    def one(chosen, w, x):
        return lax.cond(chosen, lambda x: jnp.tanh(x @ w), lambda x: 0.5 * x, x)

    def mix(chosen, w, x):
        return batched(lambda pair: one(pair[0], w, pair[1]), (chosen, x))

    return mix


def _iterated(batched):
    """Each of a batch of vectors shrinks until it is short."""

    def shrink(x):
        def going(state):
            return jnp.linalg.norm(state[0]) > 1e-3

        def step(state):
            return jnp.sin(state[0]) * 0.9, state[1] + 1

        return lax.while_loop(going, step, (x, 0))

    return lambda x: batched(shrink, x)


def _vmap(function, xs):
    return jax.vmap(function)(xs)


_PAIRS = {
    "dtype_convert": (
        (lambda a, b: a.astype(jnp.float32) @ b, "bf16[1024,1024] f32[1024,1024]"),
        (lambda a, b: a @ b, "f32[1024,1024] f32[1024,1024]"),
    ),
    "broadcast_materialised": (
        (lambda a, b: a @ jnp.broadcast_to(b, (1024, 1024)), "f32[1024,1024] f32[1024,1]"),
        (lambda a, b: a @ b, "f32[1024,1024] f32[1024,1]"),
    ),
    "tiny_kernels": (  # twelve small arrays, or one that they are stacked in
        (lambda *xs: [x.sum() for x in xs], " ".join(f"f32[{100 + n}]" for n in range(12))),
        (lambda x: x.sum(1), "f32[12,119]"),
    ),
    "padding": (
        (lambda a: jnp.sort(jnp.pad(a, ((1, 1), (1, 1))), 0), "f32[1024,1024]"),
        (lambda a: jnp.sort(a, 0), "f32[1024,1024]"),
    ),
    "rematerialisation": (
        (_layers(jax.checkpoint), "f32[4,512,512] f32[512,512]"),
        (_layers(lambda f: f), "f32[4,512,512] f32[512,512]"),
    ),
    "large_constant": (
        (lambda a: a @ _TABLE, "f32[1024,1024]"),
        (lambda a, table: a @ table, "f32[1024,1024] f32[1024,512]"),
    ),
    "unused_output": (  # the vectors are thrown away, or not computed
        (lambda a: jnp.linalg.svd(a)[1], "f32[512,512]"),
        (lambda a: jnp.linalg.svd(a, compute_uv=False), "f32[512,512]"),
    ),
    "whole_carry": (  # the condition chooses between buffers, or between entries
        (
            _filled(lambda buffer, i, going: lax.cond(going, lambda b: b.at[i].set(1.0), lambda b: b, buffer)),
            "f32[4,3000] s32[4]",
        ),
        (
            _filled(lambda buffer, i, going: buffer.at[i].set(jnp.where(going, 1.0, buffer[i]))),
            "f32[4,3000] s32[4]",
        ),
    ),
    "copy_traffic": (  # the window moves by one, or is written at one place after the other
        (
            lambda w, xs: lax.scan(lambda w, x: (jnp.concatenate([w[1:], x[None]]), jnp.sum(w[0])), w, xs),
            "f32[64,9216] f32[100,9216]",
        ),
        (
            lambda w, xs: lax.scan(
                lambda wn, x: ((wn[0].at[wn[1]].set(x), (wn[1] + 1) % 64), jnp.sum(wn[0][wn[1]])), (w, 0), xs
            ),
            "f32[64,9216] f32[100,9216]",
        ),
    ),
    "both_branches": (
        (_mixed(_vmap), "pred[16] f32[256,256] f32[16,64,256]"),
        (_mixed(lax.map), "pred[16] f32[256,256] f32[16,64,256]"),
    ),
    "longest_lane": ((_iterated(_vmap), "f32[64,512]"), (_iterated(lax.map), "f32[64,512]")),
}


def _codes(module, platform=""):
    return {finding.code for finding in findings_on(module, platform or platform_of(module))}


def _find(module, code, platform=""):
    found_on = findings_on(module, platform or platform_of(module))
    (found,) = (finding for finding in found_on if finding.code == code)
    return found


def test_launch_costs_are_those_of_the_platform():
    """A CPU calls its kernels, a TPU runs a whole program: neither launches each from the host."""
    (small, arguments), _ = _PAIRS["tiny_kernels"]
    assert not _codes(compiled(small, arguments), "cpu") & {"tiny_kernels"}
    assert not _codes(compiled(small, arguments), "tpu") & {"tiny_kernels"}
    loop = compiled(_recurrence, "f32[2000] f32[1000,2000]")  # 24 kB an iteration: below a GPU's launch alone
    assert {platform: "small_loop_body" in _codes(loop, platform) for platform in ("gpu", "cpu", "tpu")} == {
        "gpu": True, "cpu": False, "tpu": False,
    }  # fmt: skip


_DOT = "dot(p0, p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}"
_WIDENED = """wa = f32[512,512] convert(p0)
wb = f32[512,512] convert(p1)
t = f32[512,512] transpose(wb), dimensions={1,0}
ROOT y = f32[512,512] dot(wa, t), lhs_contracting_dims={1}, rhs_contracting_dims={0}"""
_PRECISE = _DOT + ", operand_precision={highest,highest}"


def _product(dtype, lines=_DOT, size=512):
    shape = f"{dtype}[{size},{size}]"
    return parameters(shape, shape) + (lines if "ROOT" in lines else f"ROOT y = f32[{size},{size}] {lines}")


_FEW_TOKENS = parameters("bf16[11,4096]", "bf16[4096,4096]") + f"ROOT y = bf16[11,4096] {_DOT}"


def _squared(dtype):
    return parameters(f"{dtype}[1024]") + f"ROOT y = {dtype}[1024] multiply(p0, p0)"


def _beside_float32(shape):
    return parameters("f32[1024,1024]", shape) + (
        f"a = f32[1024,1024] sine(p0)\nb = {shape} multiply(p1, p1)\nROOT t = (f32[1024,1024], {shape}) tuple(a, b)"
    )


def _sent(attribute):
    """Between the stages of a pipeline, devices send to each other with the operation that sends to the host."""
    return f"""
        x = f32[1024] parameter(0)
        token = token[] after-all()
        sent = (f32[1024], u32[], token[]) send(x, token), channel_id=1{attribute}
        ROOT done = token[] send-done(sent), channel_id=1{attribute}
    """


def _transposed(layout):
    inside = f"ROOT t = f32[1024,1024]{{{layout}}} transpose(p0), dimensions={{1,0}}"
    return fused(inside, "f32[1024,1024]{1,0}")


def _exchanged(moved, then="ROOT y = f32[1024,1024] cosine(a)", op_name="jit(f)/add"):
    """Something of an argument or of what is computed of it goes to other devices, as XLA's partitioner writes it."""
    groups = "source_target_pairs={{0,1},{1,0}}" if "permute" in moved else "replica_groups={{0,1,2,3}}, dimensions={0}"
    return f"""
        x = f32[1024,1024] parameter(0)
        s = f32[1024,1024] sine(x)
        part = f32[300,1024] slice(s), slice={{[0:300], [0:1024]}}
        a = f32[1024,1024] {moved}, {groups}, metadata={{op_name="{op_name}"}}
        {then}
    """


_ATTENTION_CALL = 'ROOT out = f32[2048,64] custom-call(p0, p1, p2), custom_call_target="__cudnn$fmhaSoftmax"'


def _turning(shape, operation):
    return looped(shape, f"y = {shape} {operation}", "y", turns=100)


def _called(text):
    """The same program, called by a computation of which XLA:CPU makes one function."""
    return (
        text.replace("ENTRY main", "inner")
        + """
ENTRY main {
  s = (s32[], f32[8]) parameter(0)
  ROOT call = (s32[], f32[8]) call(s), to_apply=inner, frontend_attributes={xla_cpu_small_call="true"}
}
"""
    )


def _sines(count):
    """So many in each turn of a loop, whose number nobody knows: they count once."""
    lines = [f"y{number} = f32[8] sine({f'y{number - 1}' if number else 'x'})" for number in range(count)]
    return looped("f32[8]", "\n".join(lines), f"y{count - 1}")


_RECOMPUTED = """
    x = f32[1024] parameter(0)
    ROOT sine.remat = f32[1024] sine(x), metadata={op_name="jit(f)/rematted_computation/sin"}
"""
"""With XLA's mark in the name, and with JAX's."""

_UPDATED = parameters("f32[2048,2048]", "f32[2048,2048]") + (
    "a = f32[2048,2048] negate(p0)\nb = f32[2048,2048] negate(p1)\n"
    "ROOT t = (f32[2048,2048], f32[2048,2048]) tuple(a, b)"
)
_ALIASED = "is_scheduled=true, input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, {}, may-alias) }"

_MESH = "is_scheduled=true, num_partitions=4"
_WRITTEN = {
    # of each code whether it is found, where, in which module, and with which header
    "odd_sizes": [
        (True, "gpu", _product("bf16", size=1001)),
        (False, "cpu", _product("bf16", size=1001)),
        (False, "gpu", _product("bf16")),
        (False, "gpu", _FEW_TOKENS),
        *((False, "gpu", _product(dtype, size=size)) for dtype, size in (("f32", 516), ("f64", 514), ("s8", 528))),
    ],
    "few_rows": [
        (True, "gpu", _FEW_TOKENS),
        (True, "tpu", _FEW_TOKENS),
        (False, "cpu", _FEW_TOKENS),
        (False, "gpu", _FEW_TOKENS.replace("[11,", "[512,")),
        (False, "gpu", _FEW_TOKENS.replace("4096", "512")),
    ],
    "float64": [
        (True, "gpu", _squared("f64")),
        (True, "cpu", _squared("f64")),
        (False, "gpu", _squared("f32")),
        (True, "gpu", _beside_float32("f64[4,4]")),
        (False, "cpu", _beside_float32("f64[4,4]")),  # little of what the program does
        (True, "cpu", _beside_float32("f64[2048,2048]")),
    ],
    "upcast_product": [
        (True, "tpu", _product("bf16", _WIDENED)),
        (False, "cpu", _product("bf16", _WIDENED)),
        (False, "tpu", _product("bf16")),
        (False, "gpu", _product("bf16", _WIDENED.replace("convert(p0)", "sine(c)"))),
    ],
    "precise_product": [
        (True, "tpu", _product("f32", _PRECISE)),
        (False, "cpu", _product("f32", _PRECISE)),
        (False, "tpu", _product("f32")),
        (True, "tpu", _product("f32", _PRECISE + ', metadata={op_name="jit(f)/dot_general"}')),
        (False, "tpu", _product("f32", _PRECISE + ', metadata={op_name="jit(f)/jit(fft)"}')),
    ],
    "host_transfer": [(True, "", _sent(", is_host_transfer=true")), (False, "", _sent(""))],
    "layout_copy": [
        (True, "", _transposed("1,0")),
        (False, "", _transposed("0,1")),  # it only renames dimensions
    ],
    "attention_scores": [
        (True, "gpu", attention_text()),
        (False, "gpu", parameters(*["f32[2048,64]"] * 3) + _ATTENTION_CALL),
        (False, "gpu", attention_text("ROOT t = SCORES tanh(p0)")),
        (False, "gpu", attention_text(SOFTMAX.replace("divide(e, tb)", "add(e, tb)"))),
        (False, "gpu", attention_text(width=4096, length=1024)),  # smaller than the result
        (False, "gpu", attention_text(length=128)),
    ],
    "rematerialisation": [(True, "", _RECOMPUTED)],
    "tiny_kernels": [(True, "gpu", _sines(10)), (False, "gpu", _sines(9))],
    "small_loop_body": [
        (True, "cpu", _turning("f32[8]", "sine(x)")),
        (False, "cpu", _turning("f32[8,8]", _DOT.replace("p0, p1", "x, x"))),  # a thousand FLOPs
        (False, "cpu", _turning("f32[8]", 'custom-call(x), custom_call_target="unknown"')),
        (False, "cpu", _called(_turning("f32[8]", "sine(x)"))),
        (True, "gpu", _called(_turning("f32[8]", "sine(x)"))),
    ],
    "lost_donation": [(True, "", _UPDATED), (False, "", _UPDATED, _ALIASED)],
    "resharding": [
        (True, "", _exchanged("all-to-all(s)"), _MESH),
        (False, "", _exchanged("all-to-all(s)", op_name="jit(f)/shard_map/add"), _MESH),  # asked for
        (False, "", _exchanged("all-to-all(s)", op_name="jit(f)/all_to_all"), _MESH),
        (True, "", _exchanged("collective-permute(s)"), _MESH),
        (False, "", _exchanged("collective-permute(part)"), _MESH),  # the border of a roll
        (True, "", _exchanged("all-gather(s)"), _MESH),
        (True, "", _exchanged("all-gather(x)", "ROOT y = f32[1024] reduce(a, a), to_apply=add"), _MESH),
        (False, "", _exchanged("all-gather(x)"), _MESH),  # weights, which it returns
        (False, "", _exchanged("all-gather(s)", "ROOT t = (f32[1024,1024]) tuple(a)"), _MESH),  # the result
    ],
}
"""What a CPU does not show, or shows only with cases that are near to it."""


@pytest.mark.parametrize("code", _WRITTEN)
def test_a_finding_is_in_one_text_and_not_in_the_near_one(code):
    for told, platform, text, *header in _WRITTEN[code]:
        assert (code in _codes(written(text, *header), platform)) is told, text


def _of_text(platform, text, *header):
    return lambda: _codes(written(text, *header), platform)


def _of_function(code, function, arguments):
    return lambda: _codes(compiled(function, arguments), "gpu" if code == "tiny_kernels" else "")


PAIRS = {
    code: tuple(next(_of_text(*case) for told, *case in cases if told is said) for said in (True, False))
    for code, cases in _WRITTEN.items()
    if {told for told, *_ in cases} == {True, False}
} | {code: tuple(_of_function(code, *case) for case in cases) for code, cases in _PAIRS.items()}
"""What compiles to a finding, or is the text of one, and the same mended."""


def _convolved(kernels, x):
    for kernel in kernels:
        numbers = ("NHWC", "HWIO", "NHWC")
        x = jax.nn.relu(lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=numbers))
    return (x**2).mean()


def _normalised(scale, x):
    x = (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-6)
    return ((x * scale) ** 3).mean()


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (lambda a, b, x: jax.grad(_convolved)((a, b), x), "f32[3,3,3,32] f32[3,3,32,64] f32[64,32,32,3]"),
        (jax.grad(_normalised, (0, 1)), "f32[512] f32[1024,512]"),
        (lambda x, w: jax.nn.gelu(x @ w) @ w.T, "f32[512,256] f32[256,1024]"),
    ],
)
def test_what_xla_adds_for_a_library_is_no_finding(function, arguments):
    assert not _codes(compiled(function, arguments), "cpu") & {"layout_copy", "broadcast_materialised"}


_DAMAGED = {
    "a result that copies itself": f"""{parameters("f32[1024,1024]")}
        a = f32[1024,1024] copy(b)
        ROOT b = f32[1024,1024] copy(a)""",
    "a product whose padding pads itself": f"""{parameters("f32[64,64]")}
        y = f32[64,64] {_DOT.replace("p1", "p0")}
        z = f32[64,64] pad(y, w), padding=0_0x0_0
        ROOT w = f32[64,64] copy(z)""",
    "filters that are made of themselves": f"""{parameters("f32[1,8,8,4]")}
        w = f32[3,3,1,4] reshape(w)
        ROOT y = f32[1,6,6,4] convolution(p0, w), window={{size=3x3}}, dim_labels=b01f_01io->b01f, \
feature_group_count=4""",
    "an order in memory of a dimension that is not there": f"""{parameters("f32[900,900]{1,0}")}
        ROOT y = f32[900,900]{{2,0}} transpose(p0), dimensions={{1,0}}""",
}


@pytest.mark.timeout(20)
@pytest.mark.parametrize("text", _DAMAGED)
@pytest.mark.parametrize("platform", ["cpu", "gpu"])
def test_findings_of_a_damaged_text_end(text, platform):
    list(findings_on(written(_DAMAGED[text]), platform))


def test_a_small_loop_has_the_line_of_its_scan():
    module = compiled(lambda a, xs: lax.scan(lambda c, x: (a @ c @ a.T + x, c), a, xs), "f32[4,4] f32[100,4,4]")
    found = _find(module, "small_loop_body", "gpu")
    assert found.places[0].file.endswith("test_hlo_findings.py")


def test_a_finding_says_where_and_how_much():
    found = _find(compiled(_PAIRS["dtype_convert"][0][0], _PAIRS["dtype_convert"][0][1]), "dtype_convert")
    assert found.bytes == 1024 * 1024 * (2 + 4)
    assert (found.kernels, found.fix) == (("wrapped_convert",), entries()["dtype_convert"].fix)
    assert "6.00 MiB" in found.message
    assert "1001" in _find(written(_product("bf16", size=1001)), "odd_sizes", "gpu").message
    assert "highest" in _find(written(_product("f32", _PRECISE)), "precise_product", "tpu").message


_BEFORE = """
before {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  p = s32[] parameter(2)
  q = s32[] parameter(3)
  ROOT less = pred[] compare(a, b), direction=LT
}
"""


@pytest.mark.parametrize("function", [jnp.linalg.eigvalsh, jnp.linalg.svdvals, lambda a: lax.top_k(a, 256)[0]])
def test_results_that_nobody_can_leave_out_are_none_unread(function):
    assert "unused_output" not in _codes(compiled(function, "f32[512,512]"))
    assert "unused_output" in _codes(compiled(lambda a: jnp.linalg.svd(a)[1], "f32[512,512]"))


@pytest.mark.parametrize("read", [0, 1], ids=["keys", "places"])
def test_what_is_sorted_beside_what_is_read_is_not_unread(read):
    """A sort that is stable takes its keys and their places: `jnp.sort` of jax 0.12 for a GPU. An argsort needs its
    keys."""
    both = "(f32[1000000]{0}, s32[1000000]{0})"
    result = ("f32", "s32")[read]
    text = f"""
ENTRY main {{
  x = f32[1000000]{{0}} parameter(0)
  places = s32[1000000]{{0}} iota(), iota_dimension=0
  sorted = {both} sort(x, places), dimensions={{0}}, to_apply=before
  one = {result}[1000000]{{0}} get-tuple-element(sorted), index={read}
  ROOT result = {result}[1000000]{{0}} copy(one)
}}"""
    assert "unused_output" not in _codes(written(_BEFORE + text), "gpu")


def test_a_copy_exchanges_each_byte_with_the_host_once():
    text = """
        x = f32[1024]{0} parameter(0)
        start = (f32[1024]{0:S(5)}, f32[1024]{0}, u32[]) copy-start(x)
        ROOT done = f32[1024]{0:S(5)} copy-done(start)
    """
    assert _find(written(text), "host_transfer", "tpu").bytes == 4096
    assert _find(written(_sent(", is_host_transfer=true")), "host_transfer").bytes == 4096


@pytest.mark.parametrize("turns", [0, 5])
def test_scores_count_written_and_read_in_each_iteration(turns):
    assert (
        _find(written(attention_text(turns=turns)), "attention_scores").bytes == (turns or 1) * 2 * 2 * 2048 * 2048 * 4
    )


def test_a_checkpoint_that_computes_nothing_twice_is_not_told():
    """Nobody asks for the value, so that the second forward pass is the only one."""

    def loss(w, x):
        return jnp.tanh(jnp.tanh(x @ w) @ w).sum()

    assert "rematerialisation" not in _codes(compiled(jax.grad(jax.checkpoint(loss)), "f32[64,64] f32[64,64]"))


_STATE = dict(zip("wv", shapes("f32[2048,2048] f32[2048,2048]"), strict=True))


def _step(state, slope):
    return jax.tree.map(lambda p, g: p - 0.1 * g, state, slope), sum(jnp.sum(p) for p in jax.tree.leaves(state))


def test_a_step_that_does_not_donate_its_state_holds_it_twice():
    kept = module(jax.jit(_step).lower(_STATE, _STATE).compile().as_text())
    assert _find(kept, "lost_donation").bytes == 2 * 2048 * 2048 * 4
    donated = module(jax.jit(_step, donate_argnums=0).lower(_STATE, _STATE).compile().as_text())
    assert "lost_donation" not in _codes(donated)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: (jnp.sin(x), x @ y),  # one array is an update, the other one is not
        lambda x, y: (jnp.sin(x)[:100], jnp.sin(y)[:100]),
        lambda x, y: jnp.sin(x) + y,
    ],
)
def test_results_that_update_no_state_have_nothing_to_donate(function):
    assert "lost_donation" not in _codes(compiled(function, "f32[2048,2048] f32[2048,2048]"))


def test_unoptimised_module_has_only_findings_of_its_own():
    text = """
        x = f32[1024,1024] parameter(0)
        c = f32[1024,1024] constant({...})
        b = bf16[1024,1024] convert(x)
        w = f32[1024,1024] convert(b)
        ROOT y = f32[1024,1024] add(w, c)
    """
    assert _codes(written(text, header="num_partitions=1")) == {"large_constant"}
