"""The parts of a measurement that can be looked at alone."""

from __future__ import annotations

from collections import namedtuple
from pathlib import Path
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxprof.engine.measure import environment
from jaxprof.engine.measure import preflight as forecast
from jaxprof.engine.measure.check import effective_precision, tolerance_key
from jaxprof.engine.measure.environment import HostLoad, HostLoadMeter
from jaxprof.engine.measure.failure import failed
from jaxprof.engine.measure.host_arrays import ALIGNMENT_BYTES, aligned, make_inputs, map_arrays
from jaxprof.engine.measure.pitfalls import dead_operations, narrowed_inputs
from jaxprof.engine.measure.stages import StageSpan, compile_ledger, configured, exclusive_seconds, settings
from jaxprof.engine.measure.transfer import Arguments, address, moved_nothing
from jaxprof.errors import JaxprofError
from jaxprof.workloads import built_in
from jaxprof.workloads.model import Estimate


@pytest.mark.parametrize("offset", [0, 1, 3, 16])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_are_aligned_whatever_the_allocator_gave(offset: int, order: str) -> None:
    block = np.zeros(4096, np.uint8)
    start = -block.ctypes.data % ALIGNMENT_BYTES + 4 * offset
    odd = block[start : start + 4 * 15].view(np.float32).reshape((3, 5), order=order)  # type: ignore[call-overload]
    odd[...] = np.arange(15).reshape(3, 5)
    even = aligned(odd)
    assert even.ctypes.data % ALIGNMENT_BYTES == 0
    assert aligned(even) is even, "nothing is copied twice"
    assert even.strides == odd.strides
    np.testing.assert_array_equal(even, odd)


def test_trees_of_arrays_keep_their_form() -> None:
    Pair = namedtuple("Pair", "left right")
    tree = (Pair(np.ones(2), 3.0), [np.zeros(1), "word"], {"a": None})
    changed = map_arrays(lambda array: array + 1, tree)
    assert isinstance(changed[0], Pair)
    np.testing.assert_array_equal(changed[0].left, [2, 2])
    assert changed[0].right == 3.0
    assert changed[1][1] == "word"
    assert changed[2] == {"a": None}


def test_inputs_are_the_same_for_the_same_seed() -> None:
    selu = built_in("selu")
    one, same, other = (make_inputs(selu, {"n": 100}, seed)[0] for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)


def test_nested_stages_are_not_counted_twice() -> None:
    spans = [
        StageSpan("trace", "f", 0.0, 10.0),
        StageSpan("trace", "inner", 1.0, 3.0),
        StageSpan("compile", "constant", 4.0, 7.0),
        StageSpan("lower", "f", 10.0, 12.0),
    ]
    assert exclusive_seconds(spans) == pytest.approx({"trace": 7.0, "compile": 3.0, "lower": 2.0})


def test_a_ledger_sees_compilations_only_while_it_is_open() -> None:
    with compile_ledger() as ledger:
        jax.jit(lambda x: x * 3 + 1).trace(np.ones(11, np.float32)).lower().compile()
    jax.jit(lambda x: x * 5 + 1).trace(np.ones(11, np.float32)).lower().compile()
    assert [span.stage for span in ledger.spans] == ["trace", "lower", "compile"]
    assert all(span.seconds > 0 for span in ledger.spans)


def test_dead_and_costly_operations_are_found_also_inside_a_jit() -> None:
    def program(x: jax.Array) -> jax.Array:
        jnp.linalg.svd(x)
        jnp.sort(x)
        x + 1
        return x * 2

    assert dead_operations(jax.jit(program).trace(np.ones((4, 4), np.float32)).jaxpr) == ["svd", "sort"]


def test_narrowed_inputs_name_both_dtypes() -> None:
    (warning,) = narrowed_inputs((np.ones(3), np.ones(3, np.float32)))
    assert "float64 inputs become float32" in warning.message
    assert not list(narrowed_inputs((np.ones(3, np.float32), 3.0)))


@pytest.mark.parametrize(
    ("platform", "capability", "asked", "dtypes", "expected"),
    [
        ("cpu", None, "", {"float32"}, "float32"),
        ("cpu", None, "", {"float64"}, "float64"),
        ("cpu", None, "", {"bfloat16", "float32"}, "bfloat16"),
        ("gpu", "9.0", "", {"float32"}, "tf32"),
        ("gpu", "7.5", "", {"float32"}, "float32"),
        ("gpu", "9.0", "highest", {"float32"}, "float32"),
        ("gpu", "9.0", "bfloat16", {"float32"}, "bfloat16"),
        ("gpu", "gfx90a", "", {"float32"}, "float32"),
        ("tpu", None, "", {"float32"}, "bfloat16"),
        ("tpu", None, "highest", {"float32"}, "float32"),
        ("tpu", None, "high", {"float32"}, "bfloat16_3x"),
    ],
)
def test_the_effective_precision_follows_the_device(
    platform: str, capability: str | None, asked: str, dtypes: set[str], expected: str
) -> None:
    device = SimpleNamespace(platform=platform, compute_capability=capability)
    found = effective_precision(device, asked, dtypes)
    assert found == expected
    assert tolerance_key(found) in {"float64", "float32", "tf32", "bfloat16"}


def test_settings_are_put_back(tmp_path: Path) -> None:
    before = configured("jax_compilation_cache_dir")
    jax.config.update("jax_compilation_cache_dir", str(tmp_path))
    try:
        with settings(jax.local_devices()[0], "highest", compilation_cache_on=False):
            assert configured("jax_enable_compilation_cache") is False
            assert configured("jax_default_matmul_precision") == "highest"
        assert configured("jax_enable_compilation_cache") is True
        assert configured("jax_default_matmul_precision") is None
    finally:
        jax.config.update("jax_compilation_cache_dir", before)


def test_fresh_arguments_can_be_donated_again_and_again() -> None:
    arguments = Arguments.of((np.ones(4, np.float32), {"b": jnp.zeros(4)}))
    consume = jax.jit(lambda x, tree: (x + 2, tree["b"] * 2), donate_argnums=(0, 1))
    for _ in range(3):
        one, two = consume(*arguments.fresh(jax.local_devices()[0]))
        np.testing.assert_array_equal(one, [3, 3, 3, 3])
        np.testing.assert_array_equal(two, [0, 0, 0, 0])


def test_fresh_arguments_share_no_memory_with_the_callers() -> None:
    """On a CPU, JAX takes over an aligned NumPy array as it is: a call that consumes it would write into it."""
    mine = (aligned(np.arange(64, dtype=np.float32)), jnp.zeros(64))
    fresh = Arguments.of(mine).fresh(jax.local_devices()[0])
    assert not {address(leaf) for leaf in mine} & {address(leaf) for leaf in fresh}


def test_only_numpy_arrays_go_to_the_device_and_scalars_stay_python() -> None:
    arguments = Arguments.of((np.ones(4, np.float32), 3.0, [np.zeros(2, np.float32)]))
    placed = arguments.placed(jax.device_put(arguments.host_arrays()))
    assert isinstance(placed[0], jax.Array)
    assert placed[1] == 3.0
    assert type(placed[1]) is float
    assert isinstance(placed[2][0], jax.Array)


def test_an_error_is_told_with_the_users_frames_and_advice() -> None:
    try:
        jax.jit(lambda x: float(x))(1.0)
    except Exception as error:  # noqa: BLE001 - whatever JAX raises
        failure = failed(error)
    assert "ConcretizationTypeError" in failure.error or "TracerConversion" in failure.error
    assert "jnp.where" in failure.advice
    assert "test_pieces.py" in failure.traceback


@pytest.mark.parametrize(
    ("error", "sign"),
    [
        (MemoryError("Unable to allocate 931. GiB"), "Out of memory"),
        (RuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 1 bytes"), "Out of memory"),
        (RuntimeError("Array has been deleted with shape=float32[4]."), "donated"),
        (JaxprofError("what", "mend it"), "mend it"),
        (KeyError("other"), ""),
    ],
)
def test_known_errors_have_advice(error: Exception, sign: str) -> None:
    advice = failed(error).advice
    assert sign in advice
    assert bool(advice) == bool(sign)


@pytest.mark.parametrize(
    ("files", "free"),
    [
        ({"memory.max": "1000\n", "memory.current": "400\n"}, 600),
        ({"memory.max": "max\n", "memory.current": "400\n"}, None),
        ({"memory/memory.limit_in_bytes": "9223372036854771712", "memory/memory.usage_in_bytes": "5"}, None),
        ({"memory/memory.limit_in_bytes": "2000", "memory/memory.usage_in_bytes": "500"}, 1500),
        ({}, None),
    ],
)
def test_the_limit_of_a_control_group_counts(tmp_path: Path, files: dict[str, str], free: int | None) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert forecast._cgroup_bytes(tmp_path) == free


def test_time_is_foretold_only_where_it_can_be() -> None:
    assert forecast.expected_call_seconds(Estimate(), has_dots=True) is None
    assert forecast.expected_call_seconds(Estimate(flops=10.0), has_dots=True) == 0.0
    long = forecast.expected_call_seconds(Estimate(flops=1e15, traffic_bytes=1e9), has_dots=True)
    assert long is not None
    assert long > 10
    without_dots = forecast.expected_call_seconds(Estimate(flops=1e15, traffic_bytes=1e9), has_dots=False)
    assert without_dots is not None
    assert without_dots < long


def test_work_of_others_is_what_the_machine_did_without_us() -> None:
    before = HostLoad(10.0, 100.0, 5.0)
    assert before.others_seconds(HostLoad(14.0, 110.0, 7.0)) == pytest.approx(8.0)
    assert before.others_seconds(HostLoad(14.0, None, 7.0)) is None


def test_runs_that_have_their_turns_meanwhile_are_no_work_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    readings = iter(
        [HostLoad(0, 0, 0), HostLoad(2, 5, 2), HostLoad(10, 21, 2), HostLoad(12, 25, 4), HostLoad(12, 25, 4)]
    )
    monkeypatch.setattr(HostLoad, "now", lambda: next(readings))
    meter = HostLoadMeter()
    meter.wait(begins=True)
    meter.wait(begins=False)
    assert meter.other_busy_cores() == pytest.approx((3 + 2) / 4)


def test_work_of_others_is_unknown_where_the_system_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HostLoad, "now", lambda: HostLoad(1.0, None, 0.5))
    assert HostLoadMeter().other_busy_cores() is None


def test_the_environment_holds_what_is_allowed_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_max_isa=AVX2")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter2")
    found = environment.read_environment([], 0.5)
    assert found.settings["XLA_FLAGS"] == "--xla_cpu_max_isa=AVX2"
    assert found.settings["load_average_before"] == 0.5
    assert found.jax == jax.__version__
    assert "hunter2" not in repr(found)


def test_a_call_that_hands_its_argument_on_moved_nothing() -> None:
    host = aligned(np.arange(4096, dtype=np.float32))
    on_device = jnp.arange(4096, dtype=jnp.float32)
    assert moved_nothing((host,), jax.device_put(host))
    assert moved_nothing((on_device,), np.asarray(on_device))
    assert moved_nothing((on_device, 3), (on_device, [on_device]))
    assert not moved_nothing((on_device,), on_device + 1)
    assert not moved_nothing((on_device,), (on_device, on_device + 1)), "some of it was made"
    assert not moved_nothing((on_device,), 3.0)
    assert not moved_nothing((), ())
    assert not moved_nothing((jax.random.key(0),), jax.random.key(1))
