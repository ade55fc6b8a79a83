"""What a large module costs, and that what is counted once for many kernels is what each would have counted itself."""

from itertools import islice

import pytest

from hlo.kernels.programs import written
from jaxprof.hlo.kernels.kernels import alike, stream
from jaxprof.hlo.text import record
from tables import rows

_FUSIONS = """
    first {{
      %p = f32[8,16]{{1,0}} parameter(0)
      %q = f32[8,16]{{1,0}} parameter(1)
      ROOT %r = f32[8,16]{{1,0}} add(%p, %q), metadata={{op_name="a/add"}}
    }}

    second {{
      %s = f32[8,16]{{1,0}} parameter(0)
      %t = f32[8,16]{{1,0}} parameter(1)
      ROOT %u = f32[8,16]{{1,0}} {}, metadata={{op_name="b/{{add}}"}}
    }}

    ENTRY main {{
      %x = f32[8,16]{{1,0}} parameter(0)
      %y = f32[8,16]{{1,0}} parameter(1)
      %one = f32[8,16]{{1,0}} fusion(%x, %y), kind=kLoop, calls=first
      ROOT %two = f32[8,16]{{1,0}} fusion({}), kind={}, calls=second
    }}
"""
_ROWS = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"


def _products(second):
    return f"""
        %x = f32[16,16]{{1,0}} parameter(0)
        %y = f32[16,16]{{0,1}} parameter(1)
        %one = f32[16,16]{{1,0}} dot(%x, %x), {_ROWS}, metadata={{op_name="a"}}
        ROOT %two = f32[16,16]{{1,0}} {second}, metadata={{op_name="b"}}
    """


def test_alike_fusions_differ_in_names_and_origins_only():
    for inside, given, kind, same in rows("""
        add(%s, %t)  %one, %y        kLoop   True
        add(%t, %s)  %one, %y        kLoop   False
        add(%s, %s)  %one, %y        kLoop   False
        tanh(%s)     %one, %y        kLoop   False
        add(%s, %t)  %one, %one      kLoop   False
        add(%s, %t)  %one, %y        kInput  False
        add(%s, %t)  %one, %missing  kLoop   False
    """):
        entry = written(_FUSIONS.format(inside, given, kind))["main"]
        assert str(alike(entry["one"]) == alike(entry["two"])) == same


def test_and_those_of_products():
    for second, same in rows("""
        dot(%one, %one), lhs_contracting_dims={1}, rhs_contracting_dims={0}                                  True
        dot(%one, %one), lhs_contracting_dims={0}, rhs_contracting_dims={0}                                  False
        dot(%one, %one), lhs_contracting_dims={1}, rhs_contracting_dims={0}, operand_precision={high,high}   False
        dot(%one, %y), lhs_contracting_dims={1}, rhs_contracting_dims={0}                                    False
    """):
        entry = written(_products(second))["main"]
        assert str(alike(entry["one"]) == alike(entry["two"])) == same


def _chain(count):
    """Fusions and single operations in a chain, as the bench makes them."""
    held = [
        f"%held.{number} (p: f32[128,256]) -> f32[128,256] {{\n  %p = f32[128,256]{{1,0}} parameter(0)\n"
        "  ROOT %t = f32[128,256]{1,0} tanh(%p)\n}\n\n"
        for number in range(count // 4)
    ]
    lines = ["%v0 = f32[128,256]{1,0} parameter(0)\n"]
    for number in range(count):
        fusion = f"fusion(%v{number}), kind=kLoop, calls=%held.{number // 4}"
        what = f"add(%v{number}, %v{number})" if number % 4 else fusion
        lines.append(f"{'ROOT ' * (number == count - 1)}%v{number + 1} = f32[128,256]{{1,0}} {what}\n")
    return written("".join([*held, "ENTRY %main (x: f32[128,256]) -> f32[128,256] {\n", *lines, "}\n"]))


@pytest.fixture
def read(monkeypatch):
    """The places of the instructions that are read, each time that one is."""
    places = []
    plain = record.read
    monkeypatch.setattr(record, "read", lambda *place: places.append(place) or plain(*place))
    return places


def test_the_first_kernels_are_there_without_the_others(read):
    chain = _chain(2000)
    page = [kernel.name for kernel in islice(stream(chain), 100)]
    first = len(read)
    every = [kernel.name for kernel in stream(chain)]
    assert (every[:100], len(every)) == (page, 2000)
    assert first < 0.2 * len(read)


def test_plain_operations_are_not_read_one_by_one(read):
    lines = [f"%v{n} = f32[8]{{0}} add(%v{n * n // 7 % n}, %v0)" for n in range(1, 400)]
    found = written("%v0 = f32[8]{0} parameter(0)\n" + "\n".join(lines))
    assert len(list(stream(found))) == 399
    assert len(read) < 4


def test_kernels_with_the_same_metadata_share_their_origins():
    entry = """
        %x = f32[8]{0} parameter(0)
        %a = f32[8]{0} tanh(%x), metadata={op_name="jit(f)/tanh"}
        %b = f32[8]{0} tanh(%a), metadata={op_name="jit(f)/tanh"}
        ROOT %c = f32[8]{0} tanh(%b), metadata={op_name="jit(f)/sin"}
    """
    first, second, third = (kernel.origins for kernel in stream(written(entry)))
    assert first is second
    assert (first[0].op_name, third[0].op_name) == ("jit(f)/tanh", "jit(f)/sin")
