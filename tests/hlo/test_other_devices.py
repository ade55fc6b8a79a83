"""Modules compiled for a GPU and for TPUs, which are not here: read as jaxlib reads them, from text and from protos.

Needs the vendor's compiler (`jaxprof devices target install nvidia`, `... tpu`).
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from jaxprof.devices.targets import wheels
from jaxprof.devices.targets.chips import Vendor, chip, target_config
from jaxprof.errors import JaxprofError
from jaxprof.hlo.read import files

from .agreement import assert_agreement, assert_proto_is_the_text
from .corpus import HERE, peer_has_reader


def _environment(vendor: Vendor) -> dict[str, str] | str:
    """The variables with which a child compiles for the vendor, or why it cannot."""
    try:
        return {**os.environ, **wheels.environment(vendor, sys.executable)}
    except JaxprofError as error:
        return error.what


# Asked before a test has a state folder of its own, in which nothing is installed.
ENVIRONMENTS: dict[Vendor, dict[str, str] | str] = {"nvidia": _environment("nvidia"), "tpu": _environment("tpu")}


@pytest.fixture(scope="module", params=["nvidia", "tpu"])
def compiled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    environment = ENVIRONMENTS[request.param]
    if isinstance(environment, str):
        pytest.skip(environment)
    folder = tmp_path_factory.mktemp(request.param)
    config = tmp_path_factory.mktemp("config") / "h100.txt"
    config.write_text(target_config(chip("h100")))
    script = [sys.executable, str(HERE / "topologies.py"), request.param, str(config), str(folder)]
    subprocess.run(script, env=environment, check=True, capture_output=True, timeout=110)
    return folder


@pytest.mark.skipif(not peer_has_reader(), reason="this jaxlib has no reader of HLO text to compare with")
@pytest.mark.process
def test_agrees_with_the_peer(compiled: Path) -> None:
    paths = sorted(compiled.glob("*.txt"))
    assert assert_agreement(paths) == len(paths) == 6


@pytest.mark.process
def test_the_proto_is_the_text(compiled: Path) -> None:
    for path in sorted(compiled.glob("*.pb")):
        assert_proto_is_the_text(path)


@pytest.mark.process
def test_what_only_devices_have(compiled: Path) -> None:
    opcodes = set()
    tiled = 0
    for path in compiled.glob("*.txt"):
        for computation in files.load(path)[0].computations.values():
            opcodes |= {one.opcode for one in computation}
            tiled += sum(any(leaf.layout and leaf.layout.tiles for leaf in one.shape.leaves()) for one in computation)
    assert "fusion" in opcodes
    assert opcodes & {"all-reduce", "all-reduce-start", "async-start"}
    assert bool(tiled) == compiled.name.startswith("tpu")
