"""The model against jaxlib's own reader: the same computations, instructions, opcodes, operands and calls.

Instructions are compared by position: jaxlib makes names unique in a module, which a text need not do.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from jaxprof.hlo import files
from jaxprof.hlo.errors import HloError
from jaxprof.hlo.model import Module
from jaxprof.hlo.parse import modules

from .corpus import REAL_FILES, compiled_programs, peer_has_reader, peer_reads

needs_peer = pytest.mark.skipif(not peer_has_reader(), reason="this jaxlib has no reader of HLO text to compare with")
PROGRAMS_AT_LEAST = 20


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled_programs(tmp_path_factory.getbasetemp() / "programs")


def as_the_peer_tells(module: Module) -> dict[str, list[list[object]]]:
    found: dict[str, list[list[object]]] = {}
    for computation in module.computations.values():
        place = {instruction.name: instruction.position for instruction in reversed(computation.instructions)}
        found[computation.name] = [
            [instruction.opcode, [place[name] for name in instruction.operands], list(instruction.called)]
            for instruction in computation.instructions
        ]
    return found


def check(paths: list[Path]) -> int:
    compared = 0
    for path, answer in peer_reads(paths):
        if "computations" in answer:
            (module,) = modules(path.read_text())
            assert as_the_peer_tells(module) == answer["computations"], path.name
            assert not module.problems
            compared += 1
    return compared


@needs_peer
def test_programs_as_lowered_and_as_compiled(programs: Path) -> None:
    paths = sorted(programs.glob("*.txt"))
    assert check(paths) == len(paths) >= 2 * PROGRAMS_AT_LEAST


@needs_peer
@pytest.mark.skipif(not REAL_FILES.is_dir(), reason="the real files are not on this machine")
def test_real_files() -> None:
    assert check(sorted(REAL_FILES.iterdir())) >= 40


@pytest.mark.skipif(not REAL_FILES.is_dir(), reason="the real files are not on this machine")
def test_real_files_read_whole() -> None:
    for path in sorted(REAL_FILES.iterdir()):
        for module in files.load(path):
            assert module.problems == (), path.name
            for computation in module.computations.values():
                for instruction in computation:
                    assert instruction.shape.dtype, instruction.text
                    assert all(computation.get(name) for name in instruction.operands), instruction.text[:300]
                    assert all(module.get(name) for name in instruction.called), instruction.text[:300]


def test_proto_is_the_text(programs: Path) -> None:
    paths = sorted(programs.glob("*.pb"))
    assert len(paths) >= PROGRAMS_AT_LEAST
    for path in paths:
        (proto,), (text,) = files.load(path), files.load(path.with_suffix(".txt"))
        assert proto.problems == ()
        assert (proto.name, proto.is_scheduled, proto.aliases) == (text.name, text.is_scheduled, text.aliases)
        assert proto.entry is not None
        assert text.entry is not None
        assert proto.entry.name == text.entry.name
        assert set(proto.computations) == set(text.computations)
        for computation in text.computations.values():
            other = proto[computation.name]
            assert [one.name for one in other] == [one.name for one in computation]
            for mine, theirs in zip(other, computation, strict=True):
                same_instruction(mine, theirs, path)


def same_instruction(mine, theirs, path: Path) -> None:  # type: ignore[no-untyped-def]
    where = f"{path.name}: {theirs.text[:500]}"
    for what in ("opcode", "operands", "called", "shape", "is_root", "parameter_number"):
        assert getattr(mine, what) == getattr(theirs, what), where
    assert mine.metadata.op_name == theirs.metadata.op_name, where
    assert mine.stack[:1] == theirs.stack[:1] or theirs.metadata.source_file, where
    ours, printed = plain(mine.attributes), plain(theirs.attributes)
    assert ours == printed, where
    if "{...}" not in (mine.literal, theirs.literal):
        assert mine.literal == theirs.literal, where


def plain(attributes):  # type: ignore[no-untyped-def]
    """Without blanks and index comments; metadata is compared on its own."""
    from jaxprof.hlo.syntax import _COMMENT

    return {name: _COMMENT.sub("", raw).replace(" ", "") for name, raw in attributes.items() if name != "metadata"}


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


def test_a_proto_inside_another_is_found(programs: Path) -> None:
    inner = (programs / "selu.pb").read_bytes()
    size = len(inner)
    outer = b"\x0a" + bytes([size & 0x7F | 0x80, size >> 7 & 0x7F | 0x80, size >> 14]) + inner
    assert files.from_bytes(outer)[0].name == files.from_bytes(inner)[0].name == "jit_selu"


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
