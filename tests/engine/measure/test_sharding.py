"""How the inputs of a program are spread: who says it, how it is written, and what is refused."""

import jax
import numpy as np
import pytest
from jax.sharding import AbstractMesh, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from jaxprof.engine.measure.sharding import (
    companion_specs,
    leaves_of,
    make_mesh,
    own_sharding,
    read_spec,
    requested_specs,
    with_specs,
)
from jaxprof.errors import UsageError
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
    assert names(requested_specs(LEAVES, shard, MESH)) == found


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
        requested_specs(LEAVES, [shard], MESH)
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
