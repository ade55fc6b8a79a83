"""The model against jaxlib's own reader: the same computations, instructions, opcodes, operands and calls.

Instructions are compared by position: jaxlib makes names unique in a module, which a text need not do.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from jaxprof.errors import HloError
from jaxprof.hlo.analysis.notices import problems
from jaxprof.hlo.read import files

from .agreement import NOT_READ, assert_agreement, assert_proto_is_the_text
from .corpus import REAL_FILES, compiled_programs, peer_has_reader, real_files

needs_peer = pytest.mark.skipif(not peer_has_reader(), reason="this jaxlib has no reader of HLO text to compare with")
PROGRAMS_AT_LEAST = 20


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled_programs(tmp_path_factory.getbasetemp() / "programs")


@pytest.mark.process
@needs_peer
def test_programs_as_lowered_and_as_compiled(programs: Path) -> None:
    paths = sorted(programs.glob("*.txt"))
    assert assert_agreement(paths) == len(paths) >= 2 * PROGRAMS_AT_LEAST


@pytest.mark.skipif(not REAL_FILES.is_dir(), reason="the real files are not on this machine")
def test_real_files_read_whole() -> None:
    for path in real_files():
        for module in files.load(path):
            told = [problem for problem in problems(module) if not problem.message.startswith(tuple(NOT_READ))]
            assert told == [], path.name
            for computation in module.computations.values():
                for instruction in computation:
                    assert instruction.shape.dtype, instruction.text
                    assert all(computation.get(name) for name in instruction.operands), instruction.text[:300]
                    assert all(module.get(name) for name in instruction.called), instruction.text[:300]


@pytest.mark.process
def test_proto_is_the_text(programs: Path) -> None:
    paths = sorted(programs.glob("*.pb"))
    assert len(paths) >= PROGRAMS_AT_LEAST
    for path in paths:
        assert_proto_is_the_text(path)


@pytest.mark.process
def test_stack_of_a_program(programs: Path) -> None:
    (module,) = files.load(programs / "train_step.txt")
    tanh = next(one for computation in module.computations.values() for one in computation if one.opcode == "tanh")
    assert tanh.metadata.op_name.startswith("jit(train_step)/")
    frames = tanh.stack
    assert frames[0].file.endswith("programs.py")
    source = (Path(__file__).parent / "programs.py").read_text().splitlines()
    assert "jnp.tanh(jnp.tanh(x @ w) @ w)" in source[frames[0].line - 1]
    if len(frames) > 1:  # older XLA prints the innermost place only
        assert [frame.function for frame in frames[:2]] == ["train_step.<locals>.loss", "train_step"]
        assert frames[-1].function == "<module>"


@pytest.mark.process
def test_a_proto_inside_another_is_found(programs: Path) -> None:
    inner = (programs / "selu.pb").read_bytes()
    size = len(inner)
    outer = b"\x0a" + bytes([size & 0x7F | 0x80, size >> 7 & 0x7F | 0x80, size >> 14]) + inner
    assert files.from_bytes(outer)[0].name == files.from_bytes(inner)[0].name == "jit_selu"


@pytest.mark.process
def test_a_proto_cut_anywhere_is_refused_or_partial(programs: Path) -> None:
    whole = (programs / "scan.pb").read_bytes()
    refused = 0
    for cut in range(0, len(whole), 211):
        try:
            (module,) = files.from_bytes(whole[:cut])
        except HloError:
            refused += 1
        else:
            assert module.name == "jit_scan"
    assert refused
