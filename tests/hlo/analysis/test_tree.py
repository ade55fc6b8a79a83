"""The tree of a kernel: from its result to its parameters, shared values once, constants folded into one line."""

from hlo.analysis.programs import fused, only_kernel, parameters
from jaxprof.hlo.analysis.tree import tree


def _rows(text):
    return tree(only_kernel(text).instruction)


def _lines(rows):
    return ["  " * row.depth + row.text for row in rows]


def test_the_place_of_a_constant_and_what_an_opcode_does_not_say():
    inside = """
        one = f32[] constant(1)
        ones = f32[8,4] broadcast(one), dimensions={}
        z = f32[] constant(0)
        rest = f32[8,4] subtract(ones, p0)
        small = pred[8,4] compare(rest, ones), direction=LT
        kept = f32[8,4] select(small, rest, ones)
        ROOT sum = f32[8] reduce(kept, z), dimensions={1}, to_apply=add
    """
    assert _lines(_rows(fused(inside, "f32[8,4]"))) == [
        "reduce add {1} f32[8] (0)",
        "  select f32[8,4] (_, _, 1)",
        "    compare LT pred[8,4] (_, 1)",
        "      subtract f32[8,4] (1, _) %rest",
        "        parameter f32[8,4] = %p0",
        "    subtract f32[8,4] (1, _) %rest (above)",
    ]


def test_an_instruction_that_is_no_fusion_shows_its_operands():
    dot = "ROOT d = f32[8,2] dot(p0, p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    rows = _rows(parameters("f32[8,4]", "f32[4,2]") + dot)
    assert _lines(rows) == ["dot f32[8,2]", "  parameter f32[8,4] = %p0", "  parameter f32[4,2] = %p1"]


def test_a_chain_of_thousands_and_a_diamond_that_doubles():
    """Neither Python's stack nor exponential time: a shared value is opened once."""

    def rows(steps):
        lines = "\n".join(f"v{number + 1} = f32[8] {step}" for number, step in enumerate(steps))
        return _rows(fused(f"v0 = f32[8] negate(p0)\n{lines}\nROOT r = f32[8] negate(v{len(steps)})", "f32[8]"))

    chain = rows([f"sine(v{number})" for number in range(3000)])
    assert (len(chain), chain[-1].depth) == (3003, 3002)
    assert len(rows([f"add(v{number}, v{number})" for number in range(60)])) < 200
