"""Two readings of one module compared: ours and jaxlib's, the text and the proto."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from jaxprof.hlo.analysis.notices import problems
from jaxprof.hlo.model import Computation, Instruction, Module
from jaxprof.hlo.read import files
from jaxprof.hlo.read.parse import modules
from jaxprof.hlo.read.syntax import _COMMENT
from jaxprof.hlo.shape import Shape

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


NOT_READ = {"an element of a tuple (name#0)", "operands added after"}
"""How what jaxlib's reader understands, from 0.12 on, and ours says that it does not, begins."""
INCOMPLETE = ("_Dot_Incomplete_Chain", "_FusionStart_Incomplete_Chain")
"""Starts of asynchronous operations without operands, and without what would bring them: jaxlib 0.12 makes parameters
up from what the operation wants. They stand in tests of XLA's reader only; a text that was printed has the operands."""


def assert_agreement(paths: list[Path]) -> int:
    """How many of the files jaxlib reads, all of them the same as we do, or said not to be."""
    compared = 0
    for path, answer in peer_reads(paths):
        if "computations" in answer:
            (module,) = modules(path.read_text())
            if path.stem.endswith(INCOMPLETE):
                continue
            if problems(module):
                assert all(problem.message.startswith(tuple(NOT_READ)) for problem in problems(module)), path.name
                continue
            assert as_the_peer_tells(module) == answer["computations"], path.name
            compared += 1
    return compared


def assert_proto_is_the_text(path: Path) -> None:
    """`path` is a proto, and the text printed of the same module lies beside it."""
    (proto,), (text,) = files.load(path), files.load(path.with_suffix(".txt"))
    assert problems(proto) == ()
    assert (proto.name, proto.is_scheduled, proto.aliases) == (text.name, text.is_scheduled, text.aliases)
    assert proto.entry.name == text.entry.name
    # What a text leaves out has no name there: from 0.12 on a proto calls it `async_computation`.
    only_there = [name for name in proto.computations if name not in text.computations]
    left_out = [
        one.name for one in text.computations.values() if one.is_synthetic and one.name not in proto.computations
    ]
    renamed = dict(zip(left_out, only_there, strict=True))
    assert {renamed.get(name, name) for name in text.computations} == set(proto.computations)
    for computation in text.computations.values():
        other = proto[renamed.get(computation.name, computation.name)]
        if computation.name in renamed:
            assert outline(other) == outline(computation)
            continue
        assert [one.name for one in other] == [one.name for one in computation]
        for mine, theirs in zip(other, computation, strict=True):
            same_instruction(mine, theirs, path, renamed)


def outline(computation: Computation) -> list[tuple[str, Shape]]:
    """Opcodes and shapes without names: the parameters by number, then the root, which is all that is left out."""
    assert computation.root is not None
    ordered = [*computation.parameters, computation.root]
    assert len(ordered) == len(computation.instructions)
    return [(one.opcode, one.shape) for one in ordered]


def same_instruction(mine: Instruction, theirs: Instruction, path: Path, renamed: Mapping[str, str]) -> None:
    where = f"{path.name}: {theirs.text[:500]}"
    for what in ("opcode", "operands", "shape", "is_root", "parameter_number"):
        assert getattr(mine, what) == getattr(theirs, what), where
    assert mine.called == tuple(renamed.get(name, name) for name in theirs.called), where
    assert mine.metadata.op_name == theirs.metadata.op_name, where
    assert mine.stack[:1] == theirs.stack[:1] or theirs.metadata.source_file, where
    ours, printed = plain(mine.attributes), plain(theirs.attributes)
    if not set(theirs.called) & set(renamed):  # the short form prints what it wraps, the proto names what it calls
        assert ours == printed, where
    if "{...}" not in (mine.literal, theirs.literal):
        assert mine.literal == theirs.literal, where


def plain(attributes: Mapping[str, str]) -> dict[str, str]:
    """Without blanks and index comments; metadata is compared on its own."""
    return {name: _COMMENT.sub("", raw).replace(" ", "") for name, raw in attributes.items() if name != "metadata"}
