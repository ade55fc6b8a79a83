"""Two readings of one module compared: ours and jaxlib's, the text and the proto."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from jaxprof.hlo import files
from jaxprof.hlo.model import Instruction, Module
from jaxprof.hlo.parse import modules
from jaxprof.hlo.syntax import _COMMENT

from .corpus import peer_reads


def as_the_peer_tells(module: Module) -> dict[str, list[list[object]]]:
    found: dict[str, list[list[object]]] = {}
    for computation in module.computations.values():
        place = {instruction.name: instruction.position for instruction in reversed(computation.instructions)}
        found[computation.name] = [
            [instruction.opcode, [place[name] for name in instruction.operands], list(instruction.called)]
            for instruction in computation.instructions
        ]
    return found


def assert_agreement(paths: list[Path]) -> int:
    """How many of the files jaxlib reads, all of them the same as we do."""
    compared = 0
    for path, answer in peer_reads(paths):
        if "computations" in answer:
            (module,) = modules(path.read_text())
            assert as_the_peer_tells(module) == answer["computations"], path.name
            assert not module.problems
            compared += 1
    return compared


def assert_proto_is_the_text(path: Path) -> None:
    """`path` is a proto, and the text printed of the same module lies beside it."""
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


def same_instruction(mine: Instruction, theirs: Instruction, path: Path) -> None:
    where = f"{path.name}: {theirs.text[:500]}"
    for what in ("opcode", "operands", "called", "shape", "is_root", "parameter_number"):
        assert getattr(mine, what) == getattr(theirs, what), where
    assert mine.metadata.op_name == theirs.metadata.op_name, where
    assert mine.stack[:1] == theirs.stack[:1] or theirs.metadata.source_file, where
    ours, printed = plain(mine.attributes), plain(theirs.attributes)
    assert ours == printed, where
    if "{...}" not in (mine.literal, theirs.literal):
        assert mine.literal == theirs.literal, where


def plain(attributes: Mapping[str, str]) -> dict[str, str]:
    """Without blanks and index comments; metadata is compared on its own."""
    return {name: _COMMENT.sub("", raw).replace(" ", "") for name, raw in attributes.items() if name != "metadata"}
