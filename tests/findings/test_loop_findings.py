"""What loops and batches do for nothing: how much is said of it, with which line, and the near cases in which nothing
is wrong."""

import inspect

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from hlo.kernels.programs import compiled, looped, parameters, shapes, written
from jaxprof.findings.hlo import findings_on
from jaxprof.hlo.text.parse import module


def _find(module, code, platform="cpu"):
    return [finding for finding in findings_on(module, platform) if finding.code == code]


def _line(finding):
    """The text of the line that a finding leads to."""
    with open(finding.where.file) as file:
        return file.readlines()[finding.where.line - 1].strip()


_ROWS = "f32[2000,16]"


def _scan(step):
    return lambda table, *rest: lax.scan(step, table, *rest)


def _gradient_of_a_table(start):
    """Each row is made of the one before, in a table that the loop carries."""
    table = jnp.zeros((2000, 64)).at[0].set(start)
    table = lax.fori_loop(1, 2000, lambda i, t: t.at[i].set(jnp.tanh(t[i - 1])), table)
    return jnp.sum(table[-1])


def _gradient_of_rows(start):
    return jnp.sum(lax.scan(lambda row, _: (jnp.tanh(row), row), start, length=2000)[0])


def _saved(table, rows):
    """The derivative needs the whole table of each step."""

    def step(table, at_row):
        at, row = at_row
        table = table.at[at].set(jnp.tanh(row))
        return table, jnp.sum(jnp.tanh(table @ row))

    return jnp.sum(lax.scan(step, table, (jnp.arange(200) % 100, rows))[1])


def _kept(table, at):
    """The table before the last step is asked for, beside the one after it."""

    def step(i, tables):
        table, _ = tables
        return table.at[at[i]].set(table[at[i]] + 1), table

    table, before = lax.fori_loop(0, 500, step, (table, table))
    return table, jnp.sum(table - before)


def _until_all(buffer):
    """Under `vmap`, a select keeps the buffers that are full."""
    return lax.while_loop(lambda s: s[0] < 5000, lambda s: (s[0] + 1, s[1].at[s[0]].set(1.0)), buffer)


def _written(table, rows):
    return lax.scan(lambda t, at_row: (t.at[at_row[0]].set(at_row[1]), None), table, (jnp.arange(500), rows))[0]


def _decayed(table, rows):
    """Every element changes."""
    return lax.scan(lambda t, at_row: (0.9 * t.at[at_row[0]].set(at_row[1]), None), table, (jnp.arange(500), rows))[0]


@pytest.mark.parametrize(
    ("function", "arguments", "line", "fix"),
    [
        (jax.grad(_gradient_of_a_table), "f32[64]", "jnp.tanh(t[i - 1])", "scan's output (ys)"),
        (jax.grad(_saved, argnums=(0, 1)), "f32[100,1000] f32[200,1000]", "table.at[at]", "scan's output (ys)"),
        (_kept, "f32[65536] s32[500]", "table.at[at[i]]", "read what is needed"),
        (jax.vmap(lambda n, b: _until_all((n, b))), "s32[4] f32[4,5000]", "lax.while_loop", "choose the element"),
    ],
)
def test_loop_that_moves_its_state_has_line_and_fix(function, arguments, line, fix):
    (found,) = _find(compiled(function, arguments), "whole_carry")
    assert line in " ".join(_line_of(place) for place in found.places)
    assert fix in found.fix
    assert found.kernels


def _line_of(place):
    with open(place.file) as file:
        return file.readlines()[place.line - 1].strip()


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (jax.grad(_gradient_of_rows), "f32[64]"),
        (_written, f"{_ROWS} f32[500,16]"),
        (_decayed, f"{_ROWS} f32[500,16]"),
        (lambda xs: lax.scan(lambda c, x: (c + x, c), xs[0], xs), "f32[2000,64]"),
        (lambda x, rows: jax.vmap(lambda x: _written(x, rows))(x), "f32[4,2000,16] f32[500,16]"),
    ],
)
def test_loop_that_writes_in_place_moves_nothing_in_vain(function, arguments):
    assert _find(compiled(function, arguments), "whole_carry") == []


def _selected(turns=None, shape="f32[1000,64]"):
    row = shape.replace("1000", "1")
    return looped(
        shape,
        f"""row = {row} slice(x), slice={{[0:1], [0:64]}}
        new = {shape} dynamic-update-slice(x, row, i, i)
        all = {shape} select(x, new, x)""",
        "all",
        turns,
    )


def test_what_moves_is_counted_beside_what_changes():
    (found,) = _find(written(_selected(100)), "whole_carry")
    # the select reads the predicate, which is the array here, and both arrays, and writes one
    assert found.bytes == 100 * 3 * 1000 * 64 * 4
    assert (
        "moves 750 KiB of its state in each of 100 iterations to change 256 B of it: 73.2 MiB a call" in found.message
    )
    assert found.kernels == ("all",)


def test_without_a_number_of_iterations_no_sum_is_given():
    (found,) = _find(written(_selected()), "whole_carry")
    assert "in each iteration to change" in found.message
    assert "a call" not in found.message


def test_state_smaller_than_a_launch_is_no_finding():
    """On a GPU the launches of the loop take longer than the copies of such an array."""
    text = _selected(100_000).replace("f32[1000,64]", "f32[40,64]")
    assert {platform: len(_find(written(text), "whole_carry", platform)) for platform in ("cpu", "gpu")} == {
        "cpu": 1, "gpu": 0,
    }  # fmt: skip


def test_on_a_tpu_the_state_counts_also_where_it_is_on_the_chip():
    on_chip = "f32[1000,64]{1,0:T(8,128)S(1)}"
    assert _find(
        written(_selected(100, on_chip).replace("f32[1,64]{1,0:T(8,128)S(1)}", "f32[1,64]")), "whole_carry", "tpu"
    )


# -- batches -----------------------------------------------------------------------------------------------------------


def _costly(w, x):
    return jnp.tanh(jnp.tanh(x @ w) @ w)


def test_both_branches_have_their_lines_and_costs():
    def one(chosen, w, x):
        return lax.cond(chosen, lambda x: _costly(w, x), lambda x: 0.5 * x, x)

    (found,) = _find(compiled(jax.vmap(one, (0, None, 0)), "pred[16] f32[256,256] f32[16,64,256]"), "both_branches")
    costly = inspect.getsourcelines(_costly)[1]
    assert "cond under vmap runs both branches for each element" in found.message
    assert f"273 MFLOP (line {costly + 1}), 262 kFLOP (line" in found.message
    assert "lax.cond(chosen" in _line(found)
    assert len(found.kernels) >= 3


def test_switch_has_its_branches_and_loops_their_iterations():
    def slow(x):
        return lax.fori_loop(0, 200, lambda i, x: jnp.sin(x) * 1.01, x)

    def one(which, x):
        return lax.switch(which, [slow, jnp.cos, lambda x: x], x)

    (found,) = _find(compiled(jax.vmap(one), "s32[64] f32[64,4096]"), "both_branches")
    assert "switch under vmap runs all 3 branches" in found.message
    assert "472 MFLOP" in found.message  # 64 * 4096 * 200 * (8 for a sine, 1 for a product)


@pytest.mark.parametrize(
    "function",
    [
        # the same condition for the whole batch
        lambda chosen, w, x: jax.vmap(lambda x: lax.cond(chosen[0], lambda x: _costly(w, x), lambda x: x, x))(x),
        # a where of what is needed anyway
        lambda chosen, w, x: jax.vmap(lambda c, h: jnp.where(c, h, 0.1 * h))(chosen, _costly(w, x)),
        # both are cheap beside the rest
        lambda chosen, w, x: jax.vmap(lambda c, x: lax.cond(c, lambda x: x + 1, lambda x: x, x))(chosen, _costly(w, x)),
    ],
)
def test_no_branch_is_in_vain(function):
    assert _find(compiled(function, "pred[16] f32[256,256] f32[16,64,256]"), "both_branches") == []


def _newton(a):
    def going(state):
        return (jnp.abs(state[0] ** 2 - a) > 1e-5).any()

    return lax.while_loop(going, lambda state: (0.5 * (state[0] + a / state[0]), state[1] + 1), (a, 0))


def test_all_wait_for_the_longest_of_the_batch():
    (found,) = _find(compiled(jax.vmap(_newton), "f32[1000,64]"), "longest_lane")
    assert "until the last of 1\u202f000 elements" in found.message
    assert "lax.while_loop" in _line(found)
    assert _find(compiled(_newton, "f32[1000,64]"), "longest_lane") == []  # its own any: one loop, by intent


def test_loops_of_jax_itself_leave_nothing_to_map_over():
    def draws(key, a):
        return jax.random.gamma(jax.random.wrap_key_data(key), a)

    assert _find(compiled(draws, "u32[2] f32[1000]"), "longest_lane") == []


# -- donation ----------------------------------------------------------------------------------------------------------


def _decode(cache, new, at):
    cache = lax.dynamic_update_slice(cache, new, (0, at, 0))
    return cache, jnp.sum(cache[:, :8])


_CACHE = shapes("f32[16,2048,64] f32[16,1,64] s32[]")


def test_argument_copied_for_an_update_is_named():
    text = jax.jit(_decode).lower(*_CACHE).compile().as_text()
    (found,) = _find(module(text), "lost_donation")
    assert found.bytes == 2 * 16 * 2048 * 64 * 4
    assert not found.held
    assert "1 result updates an argument that is not donated: 8.00 MiB more memory, and copies that move 16.0 MiB" in (
        found.message
    )
    assert 'jax.jit(decode, donate_argnames=("cache",))' in found.fix
    assert "dynamic_update_slice" in _line(found)
    donated = jax.jit(_decode, donate_argnums=0).lower(*_CACHE).compile().as_text()
    assert _find(module(donated), "lost_donation") == []


def test_tpu_updates_an_argument_in_slices():
    def part(name, first):
        shape = "((f32[1024,1024]), f32[512,1024], u32[])"
        at = f"slice={{[{first}:{first + 512}], [0:1024]}}"
        return f"{name}s = {shape} slice-start(p), {at}\n{name} = f32[512,1024] slice-done({name}s), {at}\n"

    text = f"""p = f32[1024,1024] parameter(0), metadata={{op_name="cache"}}
u = f32[1,1024] parameter(1)
i = s32[] parameter(2)
{part("a", 0)}{part("b", 512)}c = f32[1024,1024] custom-call(a, b), custom_call_target="ConcatBitcast"
d = f32[1024,1024] dynamic-update-slice(c, u, i, i)
ROOT k = f32[1024,1024] copy(d)"""
    (found,) = _find(written(text), "lost_donation", "tpu")
    assert 'donate_argnames=("cache",)' in found.fix
    assert found.kernels == ("k",)


def test_copies_beside_much_larger_work_are_not_worth_a_finding():
    def train(cache, new, at, w):
        return _decode(cache, new, at)[0], jnp.sum(w @ w @ w)

    arguments = [*_CACHE, *shapes("f32[4096,4096]")]
    assert _find(module(jax.jit(train).lower(*arguments).compile().as_text()), "lost_donation") == []


def test_copy_before_many_launches_is_no_finding_on_a_gpu():
    def fill(buffer, xs):
        return lax.fori_loop(0, 900, lambda i, b: b.at[i].set(xs[i]), buffer)

    module = compiled(fill, "f32[4000,250] f32[900,250]")  # rows, as a loop over numbers is one kernel of XLA:CPU
    assert {platform: len(_find(module, "lost_donation", platform)) for platform in ("cpu", "gpu")} == {
        "cpu": 1, "gpu": 0,
    }  # fmt: skip


def test_copy_of_a_state_before_a_loop_is_a_lost_donation():
    def fill(buffer, rows):
        return lax.fori_loop(0, 8, lambda i, b: b.at[i].set(rows[i]), buffer)

    (found,) = _find(compiled(fill, "f32[100000,64] f32[8,64]"), "lost_donation")
    assert 'donate_argnames=("buffer",)' in found.fix


# -- copies ------------------------------------------------------------------------------------------------------------


def _appended(window, frames):
    return lax.scan(lambda w, frame: (jnp.concatenate([w[1:], frame[None]]), jnp.sum(w[0])), window, frames)


def _alternating_by_two(now, before):
    """The newest array becomes the former one, and after two steps each is back in its own place."""

    def step(_, arrays):
        now, before = arrays
        before = 2 * jnp.cos(now) - before
        return 2 * jnp.cos(before) - now, before

    return lax.fori_loop(0, 50, step, (now, before))[0]


def test_copies_of_half_the_traffic_have_line_and_fix():
    (found,) = _find(compiled(_appended, "f32[64,9216] f32[100,9216]"), "copy_traffic")
    assert "jnp.concatenate" in _line(found)
    assert "i % n" in found.fix
    handed_on = looped("f32[1024,1024]", "c = f32[1024,1024] copy(x)\ny = f32[1024,1024] negate(c)", "y", 100)
    (found,) = _find(written(handed_on), "copy_traffic")
    assert "unroll=2" in found.fix
    assert found.bytes == 100 * 2 * 4 << 20
    assert _find(compiled(_alternating_by_two, "f32[262144] f32[262144]"), "copy_traffic") == []


def test_copies_of_a_stencil_are_not_reported():
    def heat(field, _):
        return field + 0.2 * (jnp.roll(field, 1, 0) + jnp.roll(field, -1, 0) - 2 * field), None

    assert _find(compiled(lambda x: lax.scan(heat, x, length=50)[0], "f32[256,256]"), "copy_traffic") == []
    tiny = looped("f32[1000]", "c = f32[1000] copy(x)\ny = f32[1000] negate(c)", "y", 100_000)
    assert _find(written(tiny), "copy_traffic") == []  # 8 kB each: the loop itself takes as long
    returned = parameters("f32[1024,1024]") + "ROOT c = f32[1024,1024] copy(p0)"
    assert _find(written(returned), "copy_traffic") == []
