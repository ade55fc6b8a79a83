"""A program on its way through JAX's stages: what each reports, and that a compile which was none is told. The buffer
assignment of real executables, against the sizes that XLA sums up. Weights must not end in a file: large literals leave
every kind of program text, and nothing else does. What changes the meaning of a time is told, once, and not where it is
not so."""

import gc
from types import SimpleNamespace
from unittest.mock import Mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax.experimental.compilation_cache import compilation_cache

from engine.measure.heard import of, only, reporter
from jaxprof.base.errors import HloError
from jaxprof.base.files import read_source
from jaxprof.engine.measure import stages
from jaxprof.engine.measure.ahead_of_time import _skip_debug_calls
from jaxprof.engine.measure.pitfalls import (
    dead_operations,
    is_elementwise,
    of_program,
    recompile_warnings,
    traced_is_elementwise,
    zero_copies,
)
from jaxprof.engine.measure.stages import (
    CompileLedger,
    StageSpan,
    buffers_of,
    compile_ledger,
    compile_stages,
    flops_of,
    memory_of,
    redact_literals,
    settings,
)
from jaxprof.events import (
    BuffersReported,
    MemoryReported,
    PhaseEnded,
    PhaseStarted,
    SourceFile,
    SourcesRead,
    TextRecorded,
    WarningRaised,
)
from jaxprof.session.fold import with_text
from jaxprof.trace.buffers import allocations

X = np.arange(64, dtype=np.float32)


def compiled(function, *, keep_constants=False):
    recorder, events = reporter()
    return compile_stages(recorder, function, (X,), keep_constants=keep_constants), events


def test_debug_calls_are_left_out_and_counted():
    def traced(x):
        jax.debug.print("{}", x)
        jax.debug.callback(lambda _: None, x)
        return x + 1

    with _skip_debug_calls() as calls:
        without = str(jax.make_jaxpr(traced)(1.0))
    assert calls == ["jax.debug.print", "jax.debug.callback"]
    assert "debug" not in without
    assert "debug" in str(jax.make_jaxpr(lambda x: traced(x))(1.0))


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (f"INTERNAL: no emitter for gemm_fusion_dot.3{' ' * 200}\nlong", False),
        ("INTERNAL: no emitter for a sort", True),
        ("INVALID_ARGUMENT: Failed to parse autotune results string for a sort", True),
    ],
    ids=["a product", "a sort", "results of a sort"],
)
def test_compile_falls_back_to_library_gemms(error, raised):
    class Lowered:
        def compile(self, *, compiler_options):
            if "xla_gpu_enable_triton_gemm" not in compiler_options:
                raise RuntimeError(error)
            return "compiled"

    recorder, events = reporter()
    if raised:
        with pytest.raises(RuntimeError, match="sort"):
            stages._compile(recorder, Lowered(), {"xla_dump_to": "x"})
        return
    assert stages._compile(recorder, Lowered(), {"xla_dump_to": "x"}) == "compiled"
    warning = with_text(only(events, WarningRaised))
    assert warning.code == "library_gemms"
    assert "gemm_fusion_dot.3" in warning.message
    assert "long" not in warning.message
    assert len(warning.message.partition("(")[2].partition(")")[0]) == 200


def test_reports_of_a_cold_compile():
    program, events = compiled(lambda x: jnp.tanh(x) * 3.25)
    phases = of(events, PhaseEnded)
    assert [phase.phase for phase in phases] == ["trace", "lower", "compile"]
    assert all(phase.seconds is not None and phase.seconds > 0 for phase in phases)
    assert [phase.note for phase in phases] == ["", "", ""]
    assert not of(events, WarningRaised)
    texts = {event.name: event for event in of(events, TextRecorded)}
    assert list(texts) == ["jaxpr", "stablehlo", "hlo_before", "hlo"]
    assert all(len(text.text) == text.bytes > 0 for text in texts.values())
    assert "test_stages.py" in texts["jaxpr"].text, "with its lines"
    assert only(events, SourcesRead).files == [SourceFile(file=__file__, digest=read_source(__file__)[1])]
    assert (of(events, MemoryReported), of(events, BuffersReported)) == ([program.memory], [program.buffers])
    assert program.hlo == texts["hlo"].text
    assert 0 < program.compile_seconds <= phases[-1].seconds
    np.testing.assert_allclose(program.jitted(X), np.tanh(X) * 3.25, rtol=1e-5)


class WrappedStages(jax.stages.Wrapped):
    """Calls, traces and lowers like flax's `nnx.jit`, whose stages hold those of JAX."""

    def __init__(self, function):
        self.inside = jax.jit(function)

    def trace(self, *arguments):
        return SimpleNamespace(traced=self.inside.trace(*arguments))

    def lower(self, *arguments):
        return self.trace(*arguments).traced.lower()

    def __call__(self, *arguments):
        return self.inside(*arguments)


def test_the_stages_inside_a_wrapper_of_stages_are_reported():
    function, (recorder, _) = WrappedStages(lambda x: x @ x), reporter()
    program = compile_stages(recorder, function, (jnp.ones((4, 4)),), keep_constants=False)
    assert program.jitted is function
    assert program.compiled_flops == 128
    assert "dot" in program.hlo


def test_no_stage_collects_the_garbage_of_all_of_jax(monkeypatch):
    events, during = [], []
    recorder, _ = reporter()
    monkeypatch.setattr(recorder, "emit", events.append)

    def sines(x):
        for _ in range(300):
            x = jnp.sin(x)
        return x

    def collecting(phase, info):
        if phase == "start" and info["generation"] == 2 and events:
            during.append(events[-1])

    thresholds = gc.get_threshold()
    many = [[number] for number in range(1_000_000)]
    gc.set_threshold(700, 10, 10)  # as Python has them, unlike these tests
    for _ in range(12):  # then the next collection is one of all objects
        gc.collect(1)
    gc.callbacks.append(collecting)
    try:
        compile_stages(recorder, sines, (X,), keep_constants=False)
    finally:
        gc.callbacks.remove(collecting)
        gc.set_threshold(*thresholds)
    assert many
    assert not of(during, PhaseStarted)


def test_a_program_that_was_compiled_before_is_told():
    function = jax.jit(lambda x: jnp.tanh(x) * 4.25)
    compiled(function)
    _, events = compiled(function)
    warning = with_text(only(events, WarningRaised))
    assert warning.code == "compile_cached"
    assert warning.message.startswith("the program came from JAX's cache in memory: ")
    assert of(events, PhaseEnded)[-1].note == "from JAX's cache in memory"


def test_seconds_by_stage_of_nested_spans():
    touching = [StageSpan("trace", "f", 0.0, 2.0), StageSpan("lower", "f", 2.0, 3.0)]
    assert CompileLedger(touching).seconds_by_stage() == {"trace": 2.0, "lower": 1.0}
    later = [StageSpan("trace", "f", 0.0, 2.0), StageSpan("compile", "g", 1.5, 4.0)]
    assert CompileLedger(later).seconds_by_stage() == {"trace": 1.5, "compile": 2.5}
    together = [StageSpan("compile", "g", 0.0, 1.0), StageSpan("trace", "f", 0.0, 4.0)]
    assert CompileLedger(together).seconds_by_stage() == {"trace": 3.0, "compile": 1.0}
    assert CompileLedger([]).seconds_by_stage() == {}


def test_open_ledgers_hear_of_compiles():
    def announce(event="/jax/core/compile/backend_compile_duration"):
        stages._on_duration(event, 0.5, fun_name="f")
        stages._on_event("/jax/compilation_cache/cache_hits")
        stages._on_event("/jax/compilation_cache/cache_misses")
        stages._on_event("/jax/something/else")

    with compile_ledger() as outer:
        announce()
        with compile_ledger() as inner:
            announce()
            announce("/jax/core/something_else")
        announce()
    announce()
    assert [len(ledger.spans) for ledger in (outer, inner)] == [3, 1]
    assert (outer.cache_hits, inner.cache_hits) == (4, 2)
    (span,) = inner.spans
    assert (span.stage, span.function, span.seconds) == ("compile", "f", pytest.approx(0.5))


def test_settings_that_are_as_they_should_be_are_left_alone(monkeypatch):
    changed = []
    update = jax.config.update
    monkeypatch.setattr(
        type(jax.config), "update", lambda self, name, value: (changed.append(name), update(name, value))
    )
    with settings(jax.local_devices()[0], "", compilation_cache_on=True):
        pass
    assert changed == []
    with settings(jax.local_devices()[0], "highest", compilation_cache_on=True):
        assert changed == ["jax_default_matmul_precision"]
    assert changed == ["jax_default_matmul_precision"] * 2


def test_persistent_cache_is_off_during_a_run(tmp_path, monkeypatch):
    """JAX decides at its first compile whether there is one, and keeps to that."""

    def files():
        return sum(path.is_file() for path in tmp_path.rglob("*"))

    def compile_one(number):
        jax.jit(lambda x: jnp.tanh(x) * number).lower(X).compile()

    with (
        stages.override("jax_compilation_cache_dir", str(tmp_path)),
        stages.override("jax_persistent_cache_min_compile_time_secs", 0.0),
        stages.override("jax_persistent_cache_min_entry_size_bytes", -1),
    ):
        compilation_cache.reset_cache()
        compile_one(5.5)
        kept = files()
        assert kept > 0
        with settings(jax.local_devices()[0], "", compilation_cache_on=False):
            compile_one(6.5)
            assert files() == kept
        compile_one(7.5)
        assert files() > kept, "afterwards it is used again"
        more = files()
        with settings(jax.local_devices()[0], "", compilation_cache_on=True):
            compile_one(8.5)
            assert files() > more, "the user's own cache stays on if that was asked for"
            jax.clear_caches()
            with compile_ledger() as ledger:
                compile_one(8.5)
            assert ledger.cache_hits == 1
    compilation_cache.reset_cache()


def executable(donate=()):
    def step(w, x):
        def body(carry, _):
            return jnp.tanh(carry @ w), carry.sum()

        return w * 2.0, jax.lax.scan(body, x, None, length=4)[0]

    arrays = (jax.ShapeDtypeStruct((128, 128), jnp.float32), jax.ShapeDtypeStruct((64, 128), jnp.float32))
    return jax.jit(step, donate_argnums=donate).lower(*arrays).compile()


@pytest.mark.parametrize("donate", [(), (0,)])
def test_the_parts_are_those_of_the_memory_analysis(donate):
    compiled = executable(donate)
    known = compiled.memory_analysis()
    found = buffers_of(compiled, compiled.as_text())
    assert found.parts["argument"] == known.argument_size_in_bytes
    assert found.parts.get("output", 0) == known.output_size_in_bytes - known.alias_size_in_bytes
    assert found.parts["temporary"] == known.temp_size_in_bytes
    assert found.peak_bytes == sum(found.parts.values())
    sizes = [row.bytes for row in found.buffers]
    assert sizes == sorted(sizes, reverse=True)
    first = next(row for row in found.buffers if row.kind == "argument")
    assert (first.op_name, first.shape) == ("w", "f32[128,128]{1,0}")
    assert any(row.file == __file__ and isinstance(row.line, int) for row in found.buffers)


def test_an_assignment_of_another_module_is_refused():
    compiled = executable()
    assignment = compiled.memory_analysis().serialized_buffer_assignment_proto
    with pytest.raises(HloError):
        allocations(assignment, b"")
    with pytest.raises(HloError):
        allocations(assignment[: len(assignment) // 2 + 1], b"")


@pytest.mark.parametrize(
    ("analysis", "flops"),
    [
        ({"flops": 7.0, "bytes accessed": 3}, 7.0),
        ([{"flops": 0.0}, {"flops": 9.0}], 0.0),
        ({"flops": -1.0}, None),
        ({"flops": float("nan")}, None),
        ({}, None),
        ([], None),
        (None, None),
    ],
)
def test_what_xla_does_not_know_is_unknown(analysis, flops):
    assert flops_of(SimpleNamespace(cost_analysis=lambda: analysis)) == flops


def test_memory_of_a_program_by_parts():
    known = SimpleNamespace(argument_size_in_bytes=5, temp_size_in_bytes=0, alias_size_in_bytes=None)
    found = memory_of(SimpleNamespace(memory_analysis=lambda: known))
    assert (found.argument_bytes, found.temporary_bytes, found.alias_bytes, found.output_bytes) == (5, 0, None, None)
    assert memory_of(SimpleNamespace(memory_analysis=lambda: None)) is None
    assert memory_of(SimpleNamespace(memory_analysis=Mock(side_effect=NotImplementedError))) is None


NUMBERS = ", ".join(map(str, range(40)))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"%c = f32[40]{{0}} constant({{{NUMBERS}}})", "%c = f32[40]{0} constant({...})"),
        (
            f'constant({{ {{ {NUMBERS} }}, {{ {NUMBERS} }} }}), metadata={{op_name="f"}}',
            'constant({...}), metadata={op_name="f"}',
        ),
        (f"stablehlo.constant dense<[{NUMBERS}]> : tensor<40xi32>", "stablehlo.constant dense<[...]> : tensor<40xi32>"),
        ('dense<"0x0123ABCD"> : tensor<2xf32>', "dense<...> : tensor<2xf32>"),
        (f"let a = [{NUMBERS}] in", "let a = [...] in"),
        (f"cut off constant({{{NUMBERS}", "cut off constant({...}"),
        ("%c = f32[4]{0} constant({1, 2, 3, 4})", ""),
        ("%c = f32[] constant(516.168091)", ""),
        ('fusion(%a, %b), kind=kLoop, calls=%f, metadata={op_name="constant({" stack_frame_id=3}', ""),
        ("dense<[1, 2, 3]> : tensor<3xi32>", ""),
        (f'backend_config="[{NUMBERS}]"', ""),
        (f"dot_general[dimension_numbers=(({NUMBERS}), ())] a b", ""),
    ],
)
def test_a_large_literal_is_elided_and_everything_else_stays(text, shown):
    assert redact_literals(text) == (shown or text)


@given(st.text(alphabet="dense<>constant({})[]\"'0123456789,. \n\\x"))
def test_any_text_is_taken_and_never_grows(text):
    assert len(redact_literals(text)) <= len(text) + 8


def test_no_stage_of_a_real_program_holds_the_weights():
    weights = np.random.default_rng(0).random((40, 40), dtype=np.float32)
    short = np.arange(20, dtype=np.float32) + 0.125

    def model(x):
        return jnp.tanh(x @ weights)[:20] * short

    traced = jax.jit(model).trace(np.ones(40, np.float32))
    lowered = traced.lower()
    for text in (str(traced.jaxpr), lowered.as_text(), lowered.compile().as_text() or ""):
        shown = redact_literals(text)
        assert "17.125" not in shown
        assert "1.712500e+01" not in shown
    assert "1.712500e+01" in lowered.as_text(), "the plain text holds them"


def program(before, after, hlo="", function=lambda x: x + 1):
    return SimpleNamespace(
        lowered_flops=before, compiled_flops=after, hlo=hlo, jaxpr=jax.jit(function).trace(jnp.ones(3)).jaxpr
    )


@pytest.mark.parametrize(
    ("before", "after", "hlo", "folded"),
    [
        (1000.0, 9.0, "", True),
        (1000.0, 10.0, "", False),
        (1000.0, None, "", True),
        (50.0, None, "", True),
        (0.0, 0.0, "", False),
        (None, None, "", False),
        (1000.0, 0.0, "custom-call(f32[3] x)", False),
        (1000.0, 0.0, "__triton", False),
    ],
)
def test_work_that_is_gone_after_compiling_was_folded(before, after, hlo, folded):
    assert [found.code for found in of_program(program(before, after, hlo))] == ["folded_constants"] * folded


def test_of_windows_xla_counts_more_than_it_computes():
    """A cumulative sum goes into XLA as one window for each element: few of those FLOPs are ever computed."""

    def smoothed(x):
        return jax.checkpoint(jnp.cumsum)(x)

    assert list(of_program(program(1e10, 1e7, "", smoothed))) == []
    assert [found.code for found in of_program(program(1e10, 1e7, "", jnp.sum))] == ["folded_constants"]


def test_what_is_computed_and_not_used_is_named_once():
    def wasteful(x):
        jnp.sort(x)
        jnp.sort(-x)
        return x * 2

    (found,) = of_program(program(None, None, "", wasteful))
    assert found.code == "dead_code"
    assert with_text(found).message.endswith("removed it: sort")


def test_compilations_that_nobody_expected_are_counted_and_named():
    spans = [StageSpan(stage, name, 0.0, 1.0) for name in ("f", "g", "f") for stage in ("trace", "compile")]
    (found,) = recompile_warnings(CompileLedger(spans), "steady_run")
    assert with_text(found).message == "3 unexpected compilations during the steady run: f, g"
    (one,) = recompile_warnings(CompileLedger(spans[:2]), "first_call")
    assert with_text(one).message.startswith("1 unexpected compilation at the first call, ")
    assert not list(recompile_warnings(CompileLedger(spans[:1]), "first_call")), "tracing is no compilation"


@pytest.mark.parametrize(
    ("directions", "calls", "said"),
    [
        ([], False, []),
        (["in"], False, ["the transfer in copied nothing"]),
        (["in", "out"], True, ["the transfer in and out copied nothing", "a call moved no data"]),
        ([], True, ["a call moved no data"]),
    ],
)
def test_a_transfer_that_copied_nothing_is_no_copy(directions, calls, said):
    found = list(map(with_text, zero_copies(directions, calls=calls)))
    assert [warning.message.partition(":")[0] for warning in found] == said
    assert {warning.code for warning in found} <= {"zero_copy"}


def test_used_operations_are_not_dead_code():
    def loss(weights, x):
        return (jnp.tanh(x) @ weights).sum()

    def wasteful(weights, x):
        jnp.linalg.svd(x)
        return jax.grad(loss)(weights, x)

    def used(weights, x):
        once = jnp.sort(x)
        jax.debug.print("{}", jnp.sort(-x))
        return jnp.cumsum(once)

    matrix = jnp.ones((8, 8))
    for function in (jax.grad(loss), used):
        assert dead_operations(jax.jit(function).trace(matrix, matrix).jaxpr) == []
    assert dead_operations(jax.jit(wasteful).trace(matrix, matrix).jaxpr) == ["svd"]


SQUARE = np.ones((4, 4), np.float32)


ALONE = [
    jax.nn.selu,
    jax.jit(lambda x: jnp.where(x > 0, x, jnp.expm1(x)).T),
    lambda x: jax.lax.cond(x[0, 0] > 0, jnp.sin, jnp.cos, x),
    jax.grad(lambda x: jnp.tanh(x).sum()),
    lambda x: jax.random.uniform(jax.random.key(0), x.shape) * x,
    lambda x: (jnp.dot(x, x), 2 * x)[1],
]
TOGETHER = [
    lambda x: jnp.dot(x, SQUARE),
    lambda x: x - x.mean(),
    jnp.cumsum,
    jax.jit(lambda x: jnp.exp(x @ x)),
    lambda x: jax.lax.scan(lambda carry, row: (carry + row, row), jnp.zeros(4), x)[0],
    lambda x: jax.lax.fori_loop(0, 9, lambda _, x: x + 1, x),
    lambda x: jax.lax.cond(x[0, 0] > 0, jnp.sin, lambda x: x @ x, x),
    lambda x: x.at[0].add(x[1]),
    lambda x: jax.pure_callback(np.exp, jax.ShapeDtypeStruct(x.shape, x.dtype), x),
]


@pytest.mark.parametrize("function", [*ALONE, *TOGETHER])
def test_elementwise_programs(function):
    assert traced_is_elementwise(function, (SQUARE,)) == (function in ALONE)
    assert is_elementwise(jax.jit(function).trace(SQUARE).jaxpr) == (function in ALONE)
