"""Writes the HLO that JAX itself makes of `gpt.py` on a target's devices: `python oracle.py TARGET FILE`."""

import sys
from pathlib import Path

import jax
from jax.experimental import topologies
from jax.sharding import NamedSharding, PartitionSpec

from jaxprof.devices.absent import parse_target, target_config

target = parse_target(sys.argv[1])
if target.chip.vendor == "tpu":
    topology = topologies.get_topology_desc(target.topology, platform="tpu")
    devices = list(topologies.make_mesh(topology, (target.devices // 2, 2), ("data", "model")).devices.flat)
else:
    topology = topologies.get_topology_desc(
        platform="cuda",
        topology_name=target.chip.name,
        target_config=target_config(target.chip),
        topology=target.topology,
    )
    devices = list(topology.devices)
path = Path(__file__).with_name("gpt.py")
names: dict[str, object] = {"DEVICES": devices, "__name__": "gpt"}
exec(compile(path.read_text(), str(path), "exec"), names)
inputs, specs = names["train_step_inputs"](), names["train_step_shardings"]()
placed = jax.tree.map(
    lambda leaf, spec: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=NamedSharding(names["MESH"], spec)),
    inputs,
    specs,
    is_leaf=lambda value: isinstance(value, PartitionSpec),
)
Path(sys.argv[2]).write_text(names["train_step"].lower(*placed).compile().as_text())
