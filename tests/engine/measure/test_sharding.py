"""How the inputs of a program are spread, also over devices that are not here: who says it, how it is written, and what
is refused."""

from dataclasses import replace
from types import SimpleNamespace

import jax
import numpy as np
import pytest
from jax.experimental import topologies
from jax.sharding import AbstractMesh, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from engine.measure.heard import of, only, reporter
from jaxprof.base.errors import JaxprofError, UsageError
from jaxprof.engine.measure.ahead_of_time import _TargetCompile, abstract, compile_request
from jaxprof.engine.measure.control import RunControl
from jaxprof.engine.measure.sharding import (
    companion_specs,
    leaves_of,
    make_mesh,
    own_sharding,
    read_spec,
    specs_of_options,
    split_text,
    with_specs,
)
from jaxprof.engine.protocol.request import CompileRequest
from jaxprof.events import RunFinished, RunSpec, TextRecorded, WarningRaised
from jaxprof.session.fold import with_text
from jaxprof.workloads import load_built_in
from tables import rows

MESH = AbstractMesh((4, 2), ("data", "model"))
PARAMS = {"w": np.zeros((8, 6), np.float32), "b": np.zeros(6, np.float32), "step": np.int32(0)}
ARGUMENTS = (PARAMS, np.zeros((8, 8), np.float32), 3)
LEAVES = leaves_of(ARGUMENTS, ["params", "x"])


def names(specs):
    return {leaf.name: specs[leaf.number] for leaf in LEAVES if leaf.number in specs}


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("data,-", P("data", None)),
        ("-,model", P(None, "model")),
        ("data+model", P(("data", "model"))),
        ("PartitionSpec(None, ('data', 'model'))", P(None, ("data", "model"))),
        ("", P()),
        ("-", P(None)),
        ("0", P("data")),
        ("1", P(None, "data")),
    ],
)
def test_a_spec_is_read(text, spec):
    assert read_spec(text, MESH) == spec


@pytest.mark.parametrize(
    ("shard", "found"),
    [
        (["x=data"], {"x": P("data")}),
        (["1=data,model"], {"x": P("data", "model")}),
        (["params=-,model"], {"params/w": P(None, "model")}),  # those with as many dimensions
        (["params/w=-,model", "params/b=model"], {"params/w": P(None, "model"), "params/b": P("model")}),
        (["*/w=-,model"], {"params/w": P(None, "model")}),
        (["0/w=data", "params/w=-,model"], {"params/w": P(None, "model")}),  # the last one counts
    ],
)
def test_what_the_command_line_says(shard, found):
    assert names(specs_of_options(LEAVES, shard, MESH)) == found


@pytest.mark.parametrize(
    ("shard", "said"),
    rows("""
        x                 cannot read
        =data             cannot read
        y=data            argument to shard
        params/b=-,model  no array of params/b has 2 dimensions
        params/w=-,data   float32[8,6] params/w cannot be split along dimension 1 into 4
        x=batch           axis of the mesh
    """),
)
def test_what_is_refused(shard, said):
    with pytest.raises(UsageError) as caught:
        specs_of_options(LEAVES, [shard], MESH)
    assert said in caught.value.what
    assert caught.value.hint


def test_what_the_companion_says():
    found = companion_specs(LEAVES, ({"w": P(None, "model"), "b": None, "step": P()}, "data,-", None), MESH, "f")
    assert names(found) == {"params/w": P(None, "model"), "params/step": P(), "x": P("data", None)}
    whole = companion_specs(LEAVES, (None, P("data"), None), MESH, "f")
    assert names(whole) == {"x": P("data")}
    one = leaves_of((np.zeros((8, 8)),), ["x"])
    assert companion_specs(one, P("data"), MESH, "f") == {0: P("data")}
    assert names(companion_specs(LEAVES, [None, P("data"), None], MESH, "f")) == {"x": P("data")}


@pytest.mark.parametrize(
    ("made", "said"),
    [
        ((None,), "1 shardings for 3 arguments"),
        (({"w": P()}, None, None), "1 shardings for 3 arrays"),
        ((None, 4, None), "is not a sharding"),
        ((P("model", "data"), None, None), "cannot be split"),
    ],
)
def test_a_companion_that_does_not_fit_is_refused(made, said):
    with pytest.raises(UsageError, match=said):
        companion_specs(LEAVES, made, MESH, "f")


def test_an_arrays_own_sharding_counts_only_over_a_mesh():
    mesh = Mesh(np.array(jax.devices()[:1]), ("data",))
    placed = jax.device_put(np.zeros(4), NamedSharding(mesh, P("data")))
    sharding = own_sharding(placed)
    assert sharding.spec == P("data")
    assert own_sharding(jax.numpy.zeros(4)) is None
    assert own_sharding(np.zeros(4)) is None
    shaped = with_specs(ARGUMENTS, {3: P("data")}, mesh)
    assert shaped[1].sharding == NamedSharding(mesh, P("data"))
    assert shaped[0] is not None


def test_a_mesh_needs_its_devices():
    assert make_mesh({"data": 2, "model": 1}, ["a", "b"]).axis_names == ("data", "model")
    with pytest.raises(UsageError, match="has 8 devices, but the target has 2"):
        make_mesh({"data": 4, "model": 2}, ["a", "b"])


SPEC = RunSpec(workload="w", variant="jit", how="compile", device="cpu:0")
X, W = (jax.ShapeDtypeStruct((8, 4), np.float32) for _ in "xw")
SHAPES = leaves_of((X, {"kernel": W, "bias": jax.ShapeDtypeStruct((4,), np.float32)}, 3.0), ["x", "params", "rate"])


def test_arrays_split_alike_are_named_by_the_first():
    x, *params = SHAPES[:3]
    specs = {x.number: P("data"), **{leaf.number: P("model") for leaf in params}}
    assert split_text(SHAPES, specs) == [f"{x.words} as data", f"{params[0].words} and 1 more as model"]
    assert split_text(SHAPES, {x.number: P(None)}) == []


def elsewhere(workload=None, context=None, recorder=None, **request):
    asked = CompileRequest(run="r1", spec=SPEC, **request)
    return _TargetCompile(asked, recorder or reporter()[0], workload, context)


@pytest.mark.parametrize(
    ("leaves", "request_", "message", "advice"),
    [
        (SHAPES, {"devices": 8}, "over 4 of 8 devices, mesh data=2, model=2: no input is split", "--shard rate=data."),
        ((), {"devices": 4}, "over 4 devices, mesh data=2, model=2: no input is split", "--shard 0=data."),
        (SHAPES, {"devices": 4, "shard": ["x=data"]}, "over 4 devices, mesh data=2, model=2: no input is split", ""),
    ],
)
def test_idle_devices_are_reported_without_advice_after_a_spec(leaves, request_, message, advice):
    recorder, events = reporter()
    axes = {"data": 2, "model": 2}
    mesh = SimpleNamespace(shape=axes, axis_names=tuple(axes), devices=np.empty((2, 2)))
    elsewhere(recorder=recorder, **request_)._report_sharding(leaves, {}, mesh)
    warning = with_text(only(events, WarningRaised))
    assert (warning.message, warning.advice.partition("as in ")[2]) == (message, advice)


HERE = Mesh(np.array(jax.devices()[:1]), ("data",))
"""Over one device: every size can be split."""


def test_the_command_line_precedes_the_workload():
    declared = replace(load_built_in("selu"), shardings=("data", "-,data", None))
    leaves = leaves_of((X, W, 3.0), ["x", "w", "rate"])
    assert elsewhere(declared)._specs(leaves, HERE) == {0: P("data"), 1: P(None, "data")}
    overridden = elsewhere(declared, shard=["x=-,data"])._specs(leaves, HERE)
    assert overridden == {0: P(None, "data"), 1: P(None, "data")}
    assert elsewhere(replace(declared, shardings=()), shard=["w=data"])._specs(leaves, HERE) == {1: P("data")}
    called = replace(declared, shardings=lambda mesh: (P(mesh.axis_names[0]), None, None))
    assert elsewhere(called)._specs(leaves, HERE) == {0: P("data")}


def test_the_mesh_is_the_command_lines_or_the_largest_named():
    four = AbstractMesh((4,), ("data",))
    placed = jax.ShapeDtypeStruct((8,), np.float32, sharding=NamedSharding(HERE, P("data")))
    unnamed, named = leaves_of((X,), ["x"]), leaves_of((placed,), ["x"])
    none, own = SimpleNamespace(meshes=lambda: iter(())), SimpleNamespace(meshes=lambda: iter((four, HERE)))
    other = Mesh(np.array(jax.devices()[:1]), ("model",))
    assert elsewhere(context=other)._mesh(named, own) is other
    assert elsewhere()._mesh(unnamed, none) is None
    assert elsewhere()._mesh(named, none) == HERE
    assert elsewhere()._mesh(unnamed, own) == HERE
    with jax.set_mesh(other):
        assert elsewhere()._mesh([], own) == other


@pytest.mark.parametrize(
    ("request_", "asked"),
    [
        ({"platform": "tpu", "topology": "v5e:2x2"}, {"topology_name": "v5e:2x2", "platform": "tpu"}),
        (
            {"platform": "tpu", "topology": "v4:2x2x1", "chip_config": "megachip"},
            {"topology_name": "v4:2x2x1", "platform": "tpu", "chip_config_name": "megachip"},
        ),
        (
            {"platform": "cuda", "topology": "1x4x1", "topology_name": "H100", "target_config": "text"},
            {"topology_name": "H100", "platform": "cuda", "target_config": "text", "topology": "1x4x1"},
        ),
    ],
)
def test_absent_devices_are_the_requested_ones(monkeypatch, request_, asked):
    found = []

    def get(topology_name, **options):
        found.append({"topology_name": topology_name, **options})
        return SimpleNamespace(devices=[0, 1, 2, 3])

    monkeypatch.setattr(topologies, "get_topology_desc", get)
    for devices in (1, 4):
        assert elsewhere(devices=devices, **request_)._topology().devices == [0, 1, 2, 3]
    assert found == [asked] * 2
    with pytest.raises(JaxprofError, match="has 4 devices, not 3"):
        elsewhere(devices=3, **request_)._topology()


def test_a_whole_slice_is_laid_out_as_jax_lays_it_out(monkeypatch):
    slice_ = SimpleNamespace(devices=["a", "b"])
    here = SimpleNamespace(
        devices=np.array([SimpleNamespace(id=0), SimpleNamespace(id=1)], dtype=object), axis_names=("data",)
    )
    laid = SimpleNamespace(devices=np.array(["b", "a"], dtype=object))
    monkeypatch.setattr(topologies, "make_mesh", lambda topology, shape, names: laid)
    assert elsewhere(platform="tpu")._order(here, slice_) == ("b", "a")
    assert elsewhere(platform="cuda")._order(here, slice_) == ("a", "b")
    more = SimpleNamespace(devices=["a", "b", "c"])
    assert elsewhere(platform="tpu")._order(here, more) == ("a", "b", "c")


def compiled(control=None, variant="jit", **request):
    events, spec = [], replace(SPEC, workload="selu", target="selu", variant=variant, parameters={"n": 1000})
    compile_request(CompileRequest(run="r1", spec=spec, **request), events.append, control or RunControl())
    assert isinstance(events[-1], RunFinished)
    return events


@pytest.mark.parametrize("raised", ["SystemExit", "KeyboardInterrupt"])
def test_whatever_the_function_raises_is_the_end_of_its_compile(tmp_path, raised):
    path = tmp_path / f"{raised}.py"
    path.write_text(f"def stop(x):\n    raise {raised}('enough')\n")
    spec = replace(SPEC, target=f"{path}:stop", arguments=["f32[8]"])
    events = []
    compile_request(CompileRequest(run="r1", spec=spec), events.append, RunControl())
    assert (events[-1].status, events[-1].error) == ("failed", f"{raised}: enough")


def test_a_compile_ends_with_what_came_of_it():
    cancelled = RunControl()
    cancelled.cancel()
    for options, status, error in (
        ({}, "ok", ""),
        ({"control": cancelled}, "cancelled", "cancelled"),
        ({"variant": "numpy"}, "failed", "selu numpy is NumPy: there is nothing to compile"),
    ):
        finished = compiled(**options)[-1]
        assert (finished.status, finished.error) == (status, error)
    assert {event.name for event in of(compiled(), TextRecorded)} >= {"jaxpr", "stablehlo", "hlo_before", "hlo"}


def test_a_jaxlib_without_hlo_is_refused_with_one_that_has_it(monkeypatch):
    program = elsewhere(platform="cpu")
    monkeypatch.setattr(program, "_topology", lambda: SimpleNamespace(devices=jax.devices()[:1]))
    monkeypatch.setattr(program, "_compile_plain", lambda *_: SimpleNamespace(hlo=""))
    with pytest.raises(JaxprofError, match="does not return the HLO") as caught:
        program.compile(lambda x: x, (np.zeros(2),))
    assert "jax 0.10" in caught.value.hint


def test_arguments_become_shapes_and_numbers_stay_numbers():
    over_one = NamedSharding(HERE, P("data"))
    placed = jax.device_put(jax.numpy.zeros(4), over_one)
    host, scalar, here, over, number = abstract(
        (np.zeros((2, 3)), np.float64(1.0), jax.numpy.asarray(2.0), {"x": placed}, 3.0)
    )
    assert host.shape == (2, 3)
    assert host.dtype == np.float32
    assert scalar.shape == ()
    assert here.shape == ()
    assert here.weak_type is True
    assert here.sharding is None
    assert over["x"].sharding == over_one
    assert over["x"].weak_type is False
    assert type(number) is float
