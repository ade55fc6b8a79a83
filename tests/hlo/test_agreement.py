"""The model against jaxlib's own reader: the same computations, instructions, opcodes, operands and calls.

Instructions are compared by position: jaxlib makes names unique in a module, which a text need not do. Modules for GPUs
and TPUs need the vendor's compiler (`jaxprof devices target install nvidia`, `... tpu`).
"""

import os
import subprocess
import sys

import pytest

from jaxprof.base.errors import JaxprofError
from jaxprof.devices.absent import chip, target_config, wheels
from jaxprof.hlo import files
from jaxprof.hlo.text import parse, proto
from waiting import SLOWER

from .agreement import HERE, assert_agreement, assert_proto_is_the_text, compiled_programs, peer_has_reader, peer_reads

PROGRAMS_AT_LEAST = 12


@pytest.fixture(scope="session")
def peer():
    """Asked when a test needs it: each worker would start a process to collect this file."""
    if not peer_has_reader():
        pytest.skip("this jaxlib has no reader of HLO text to compare with")


@pytest.fixture(scope="session")
def programs(tmp_path_factory):
    return compiled_programs(tmp_path_factory.getbasetemp() / "programs")


@pytest.mark.process
@pytest.mark.usefixtures("peer")
def test_programs_as_lowered_and_as_compiled(programs):
    paths = sorted(programs.glob("*.txt"))
    assert assert_agreement(paths) == len(paths) >= 2 * PROGRAMS_AT_LEAST


@pytest.mark.process
def test_proto_is_the_text(programs):
    paths = sorted(programs.glob("*.pb"))
    assert len(paths) >= PROGRAMS_AT_LEAST
    for path in paths:
        assert_proto_is_the_text(path)


@pytest.mark.process
def test_stack_of_a_program(programs):
    (module,) = parse.modules(files.read_text(programs / "train_step.txt"))
    tanh = next(one for computation in module.computations.values() for one in computation if one.opcode == "tanh")
    assert tanh.metadata.op_name.startswith("jit(train_step)/")
    frames = tanh.stack
    assert frames[0].file.endswith("programs.py")
    source = (HERE / "programs.py").read_text().splitlines()
    assert "jnp.tanh(jnp.tanh(x @ w) @ w)" in source[frames[0].line - 1]
    if len(frames) > 1:  # older XLA prints the innermost place only
        assert [frame.function for frame in frames[:2]] == ["train_step.<locals>.loss", "train_step"]
        assert frames[-1].function == "<module>"


@pytest.mark.process
def test_a_proto_inside_another_is_found(programs):
    whole = (programs / "scan.pb").read_bytes()
    size = len(whole)
    outer = b"\x0a" + bytes([size & 0x7F | 0x80, size >> 7 & 0x7F | 0x80, size >> 14]) + whole
    assert parse.module(proto.text(outer)).name == "jit_scan"


def _environment(vendor):
    """The variables with which a child compiles for the vendor, or why it cannot."""
    try:
        return {**os.environ, **wheels.environment(vendor, sys.executable)}
    except JaxprofError as error:
        return error.what


@pytest.fixture(scope="module", params=["nvidia", "tpu"])
def compiled(request, tmp_path_factory):
    """Of the whole file: made before a test has a state folder of its own, in which nothing is installed."""
    environment = _environment(request.param)
    if isinstance(environment, str):
        pytest.skip(environment)
    folder = tmp_path_factory.mktemp(request.param)
    config = tmp_path_factory.mktemp("config") / "h100.txt"
    config.write_text(target_config(chip("h100")))
    script = [sys.executable, str(HERE / "programs.py"), str(folder), request.param, str(config)]
    subprocess.run(script, env=environment, check=True, capture_output=True, timeout=110 * SLOWER)
    return folder


@pytest.mark.process
@pytest.mark.usefixtures("peer")
def test_modules_for_devices_that_are_not_here(compiled):
    paths = sorted(compiled.glob("*.txt"))
    # jaxlib 0.12 does not read what it writes itself of an asynchronous collective that works in place.
    unread = [
        path for path, answer in peer_reads(paths) if 'attribute "output_to_operand_al' in answer.get("error", "")
    ]
    assert assert_agreement(paths) + len(unread) == len(paths) == 6
    assert len(unread) <= 1
    for path in compiled.glob("*.pb"):
        assert_proto_is_the_text(path)
    opcodes = set()
    tiled = 0
    for path in paths:
        for computation in parse.modules(files.read_text(path))[0].computations.values():
            opcodes |= {one.opcode for one in computation}
            tiled += sum(any(leaf.layout and leaf.layout.tiles for leaf in one.shape.leaves()) for one in computation)
    assert "fusion" in opcodes
    assert opcodes & {"all-reduce", "all-reduce-start", "async-start"}
    assert bool(tiled) == compiled.name.startswith("tpu")
