# ruff: noqa: E501 - an instruction of HLO is one line
"""The tree of a kernel: from its result to its parameters, shared values once, constants folded into one line."""

from __future__ import annotations

from hlo.analysis.programs import written
from jaxprof.hlo.analysis.kernels import kernels
from jaxprof.hlo.analysis.tree import TreeRow, text_tree, tree


def _rows(text: str) -> tuple[TreeRow, ...]:
    module = written(text)
    (kernel,) = kernels(module)
    return tree(kernel.instruction)


def test_the_place_of_a_constant_and_what_an_opcode_does_not_say() -> None:
    text = """
        add {
          a = f32[] parameter(0)
          b = f32[] parameter(1)
          ROOT s = f32[] add(a, b)
        }

        fused {
          x = f32[8,4] parameter(0)
          one = f32[] constant(1)
          ones = f32[8,4] broadcast(one), dimensions={}
          z = f32[] constant(0)
          rest = f32[8,4] subtract(ones, x)
          small = pred[8,4] compare(rest, ones), direction=LT
          kept = f32[8,4] select(small, rest, ones)
          ROOT sum = f32[8] reduce(kept, z), dimensions={1}, to_apply=add
        }

        ENTRY main {
          x = f32[8,4] parameter(0)
          ROOT f = f32[8] fusion(x), kind=kLoop, calls=fused
        }
    """
    assert text_tree(_rows(text)) == [
        "reduce add {1} f32[8] (0)",
        "  select f32[8,4] (_, _, 1)",
        "    compare LT pred[8,4] (_, 1)",
        "      subtract f32[8,4] (1, _) %rest",
        "        parameter f32[8,4] = %x",
        "    subtract f32[8,4] (1, _) %rest (above)",
    ]


def test_an_instruction_that_is_no_fusion_shows_its_operands() -> None:
    text = """
        ENTRY main {
          x = f32[8,4] parameter(0)
          y = f32[4,2] parameter(1)
          ROOT d = f32[8,2] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
        }
    """
    assert text_tree(_rows(text)) == ["dot f32[8,2]", "  parameter f32[8,4] = %x", "  parameter f32[4,2] = %y"]


def test_a_chain_of_thousands_and_a_diamond_that_doubles() -> None:
    """Neither Python's stack nor exponential time: a shared value is opened once."""
    chain = "\n".join(f"v{n + 1} = f32[8] sine(v{n})" for n in range(3000))
    text = "fused {{\nv0 = f32[8] parameter(0)\n{}\nROOT r = f32[8] negate({})\n}}\n\nENTRY e {{\nx = f32[8] parameter(0)\nROOT f = f32[8] fusion(x), kind=kLoop, calls=fused\n}}"
    rows = _rows(text.format(chain, "v3000"))
    assert (len(rows), rows[-1].depth) == (3002, 3001)
    diamonds = "\n".join(f"v{n + 1} = f32[8] add(v{n}, v{n})" for n in range(60))
    assert len(_rows(text.format(diamonds, "v60"))) < 200
