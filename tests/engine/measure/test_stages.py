"""A program on its way through JAX's stages: what each reports, and that a compile which was none is told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental.compilation_cache import compilation_cache

from engine.measure.heard import of, only, reporter
from jaxprof.engine.measure import stages
from jaxprof.engine.measure.ahead_of_time import _skip_debug_calls
from jaxprof.engine.measure.stages import (
    CompileLedger,
    StagedProgram,
    StageSpan,
    compile_ledger,
    compile_stages,
    exclusive_seconds,
    only_ledgers,
    settings,
)
from jaxprof.events import BuffersReported, Event, MemoryReported, PhaseEnded, TextRecorded, WarningRaised

X = np.arange(64, dtype=np.float32)


def compiled(function: Callable[..., Any], *, keep_constants: bool = False) -> tuple[StagedProgram, list[Event]]:
    recorder, events = reporter()
    return compile_stages(recorder, function, (X,), keep_constants=keep_constants), events


def test_debug_calls_are_left_out_where_they_cannot_be_lowered_and_counted():
    def traced(x: Any) -> Any:
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
        ("INTERNAL: no emitter for gemm_fusion_dot.3\nlong", False),
        ("INTERNAL: no emitter for a sort", True),
        ("INVALID_ARGUMENT: Failed to parse autotune results string for a sort", True),
    ],
)
def test_products_that_xla_cannot_emit_without_the_device_are_library_calls(error, raised):
    class Lowered:
        def compile(self, *, compiler_options: dict[str, Any]) -> str:
            if "xla_gpu_enable_triton_gemm" not in compiler_options:
                raise RuntimeError(error)
            return "compiled"

    recorder, events = reporter()
    if raised:
        with pytest.raises(RuntimeError, match="sort"):
            stages._compiled(recorder, Lowered(), {"xla_dump_to": "x"})
        return
    assert stages._compiled(recorder, Lowered(), {"xla_dump_to": "x"}) == "compiled"
    warning = only(events, WarningRaised)
    assert warning.code == "library_gemms"
    assert "gemm_fusion_dot.3" in warning.message
    assert "long" not in warning.message


def test_a_cold_compile_reports_its_phases_texts_and_figures_and_no_warning():
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
    assert (of(events, MemoryReported), of(events, BuffersReported)) == ([program.memory], [program.buffers])
    assert program.hlo == texts["hlo"].text
    assert 0 < program.compile_seconds <= phases[-1].seconds  # type: ignore[operator]
    np.testing.assert_allclose(program.jitted(X), np.tanh(X) * 3.25, rtol=1e-5)


def test_a_program_that_was_compiled_before_is_told():
    function = jax.jit(lambda x: jnp.tanh(x) * 4.25)
    compiled(function)
    _, events = compiled(function)
    assert only(events, WarningRaised).code == "compile_cached"
    assert of(events, PhaseEnded)[-1].note == "from JAX's cache in memory"


def test_stages_that_touch_are_not_nested_and_one_that_ends_later_is_nested_as_far_as_it_goes():
    touching = [StageSpan("trace", "f", 0.0, 2.0), StageSpan("lower", "f", 2.0, 3.0)]
    assert exclusive_seconds(touching) == {"trace": 2.0, "lower": 1.0}
    later = [StageSpan("trace", "f", 0.0, 2.0), StageSpan("compile", "g", 1.5, 4.0)]
    assert exclusive_seconds(later) == {"trace": 1.5, "compile": 2.5}
    together = [StageSpan("compile", "g", 0.0, 1.0), StageSpan("trace", "f", 0.0, 4.0)]
    assert exclusive_seconds(together) == {"trace": 3.0, "compile": 1.0}
    assert exclusive_seconds([]) == {}


def test_inside_only_the_ledgers_that_are_named_hear_of_a_compile():
    def announce(event: str = "/jax/core/compile/backend_compile_duration") -> None:
        stages._on_duration(event, 0.5, fun_name="f")
        stages._on_event("/jax/compilation_cache/cache_hits")
        stages._on_event("/jax/compilation_cache/cache_misses")
        stages._on_event("/jax/something/else")

    with compile_ledger() as outer:
        announce()
        mine = CompileLedger()
        with only_ledgers([mine]) as outside:
            assert outer in outside
            announce()
            announce("/jax/core/something_else")
        announce()
    announce()
    assert [len(ledger.spans) for ledger in (outer, mine)] == [2, 1]
    assert (outer.cache_hits, outer.cache_misses) == (2, 2)
    assert (mine.cache_hits, mine.cache_misses) == (2, 2)
    (span,) = mine.spans
    assert (span.stage, span.function, span.seconds) == ("compile", "f", pytest.approx(0.5))


def test_settings_that_are_as_they_should_be_are_left_alone(monkeypatch):
    changed: list[str] = []
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


def test_a_compile_of_a_run_neither_reads_nor_writes_the_persistent_cache(tmp_path, monkeypatch):
    """JAX decides at its first compile whether there is one, and keeps to that."""

    def files() -> int:
        return sum(path.is_file() for path in tmp_path.rglob("*"))

    def compile_one(number: float) -> None:
        jax.jit(lambda x: jnp.tanh(x) * number).lower(X).compile()

    with (
        stages.updated("jax_compilation_cache_dir", str(tmp_path)),
        stages.updated("jax_persistent_cache_min_compile_time_secs", 0.0),
        stages.updated("jax_persistent_cache_min_entry_size_bytes", -1),
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
    compilation_cache.reset_cache()
