# ruff: noqa: E501 - an instruction of HLO is one line
"""The origins of all kernels at once are those that each kernel has, whether its text is plain or not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from hlo.analysis.programs import written
from hlo.corpus import real_files
from jaxprof.errors import HloError
from jaxprof.hlo.analysis.kernels import Kernel, kernels
from jaxprof.hlo.analysis.origin_columns import origin_columns
from jaxprof.hlo.read import files
from jaxprof.hlo.read.parse import module
from jaxprof.hlo.read.plain import plain_instruction
from tui.hlo_texts import HLO


def assert_same(found: Sequence[Kernel]) -> None:
    columns = origin_columns(found)
    assert len(columns) == len(found)
    for number, kernel in enumerate(found):
        places = [columns.places[place] for place in columns.of(number)]
        assert places == [(origin.op_name, origin.source) for origin in kernel.origins], kernel
        first, source = columns.first(number), columns.source(number)
        assert (columns.places[first][0] if first >= 0 else "") == kernel.op_name
        assert (columns.places[source][1] if source >= 0 else None) == kernel.source


@pytest.mark.parametrize("path", real_files(), ids=lambda path: path.name)
def test_of_real_modules(path: Path) -> None:
    try:
        found = files.load(path)
    except HloError:
        return
    for one in found:
        assert_same(kernels(one))


_FUSION = """
    inner {
      p = f32[8]{0} parameter(0), metadata={op_name="a parameter is no origin"}
      ROOT e = f32[8]{0} exponential(p), metadata={op_name="jit(f)/exp" source_file="/a.py" source_line=4}
    }

    outer {
      %p = f32[8]{0} parameter(0)
      %t = f32[8]{0} tanh(%p), METADATA
      ROOT %n = f32[8]{0} fusion(%t), kind=kLoop, calls=%inner, metadata={op_name="a nested fusion is no origin"}
    }

    ENTRY main {
      %x = f32[8]{0} parameter(0)
      ROOT %f = f32[8]{0} fusion(%x), OWN
    }
"""
_OWN = 'kind=kLoop, calls=%outer, metadata={op_name="jit(f)/own" source_file="/b.py" source_line=7}'
_HELD = 'metadata={op_name="jit(f)/tanh" source_file="/lib/python3.11/site-packages/c.py" source_line=9}'


@pytest.mark.parametrize(
    ("own", "held", "expected"),
    [
        (_OWN, _HELD, ["jit(f)/own", "jit(f)/tanh", "jit(f)/exp"]),
        ("kind=kLoop, calls=%outer", _HELD, ["jit(f)/tanh", "jit(f)/exp"]),
        ("kind=kLoop, calls=%no_such_computation", _HELD, []),
        ("output_to_operand_aliasing={{}: (0, {})}, " + _OWN, _HELD, ["jit(f)/own", "jit(f)/tanh", "jit(f)/exp"]),
        (_OWN, 'metadata={op_name="a \\"b\\" {c}" source_line=3}', ["jit(f)/own", 'a "b" {c}', "jit(f)/exp"]),
        (_OWN, 'sharding={replicated}, metadata={op_name="a;b"}, frontend_attributes={x="metadata={y}"}', ["jit(f)/own", "a", "jit(f)/exp"]),
        (_OWN, 'frontend_attributes={x=", metadata={op_name=y}"}, metadata={op_name="z"}', ["jit(f)/own", "z", "jit(f)/exp"]),
        (_OWN, 'frontend_attributes={x="a",y="b"}', ["jit(f)/own", "jit(f)/exp"]),
        (_OWN, 'metadata={op_name="a"}\n      this is no instruction, metadata={op_name="b"}', ["jit(f)/own", "a", "jit(f)/exp"]),
        (_OWN, 'frontend_attributes={\n        x="y"\n      }, metadata={op_name="a"}', ["jit(f)/own", "a", "jit(f)/exp"]),
    ],
)  # fmt: skip
def test_however_they_are_written(own: str, held: str, expected: list[str]) -> None:
    found = kernels(written(_FUSION.replace("OWN", own).replace("METADATA", held)))
    assert_same(found)
    assert sorted(origin.op_name for origin in found[-1].origins) == sorted(expected)


def test_what_xla_writes_is_plain() -> None:
    """Else all of this is read the long way: the same result, eight times as slow."""
    for kernel in kernels(module(HLO)):
        instruction = kernel.instruction
        found = plain_instruction(instruction.computation.source.text, *instruction.span)
        assert (found.opcode, found.metadata) == (instruction.opcode, instruction.metadata.text)
        if instruction.opcode == "fusion":
            assert (found.called,) == instruction.called
