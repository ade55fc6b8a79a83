"""What a large module costs, and that what is counted once for many kernels is what each would have counted itself."""

from __future__ import annotations

import sys
import time
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import pytest

from hlo.analysis.programs import written
from hlo.corpus import real_files
from jaxprof.errors import HloError
from jaxprof.hlo.analysis.barriers import barriers
from jaxprof.hlo.analysis.findings import flow
from jaxprof.hlo.analysis.findings.catalogue import findings
from jaxprof.hlo.analysis.kernels import Kernel, KernelAnalysis, alike, kernels, stream
from jaxprof.hlo.read import files, record
from jaxprof.hlo.read.parse import module


def _figures(table: KernelAnalysis) -> list[tuple[object, ...]]:
    return [
        (k.name, k.kind, k.flops, k.transcendentals, k.bytes_read, k.bytes_written, k.instructions, k.dtype, k.target,
         k.precision, k.estimated, k.operand_bytes)
        for k in table.kernels
    ]  # fmt: skip


@pytest.mark.parametrize("path", real_files(), ids=lambda path: path.name)
def test_kernels_that_are_alike_have_the_figures_that_each_has(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        found = files.load(path)
    except HloError:
        return
    shared = [_figures(KernelAnalysis(one)) for one in found]
    monkeypatch.setattr(sys.modules[KernelAnalysis.__module__], "alike", lambda instruction: None)
    assert shared == [_figures(KernelAnalysis(one)) for one in found]


_TWO = """
    first {{
      %p = f32[8,16]{{1,0}} parameter(0)
      %q = f32[8,16]{{1,0}} parameter(1)
      ROOT %r = f32[8,16]{{1,0}} add(%p, %q), metadata={{op_name="a/add"}}
    }}

    second {{
      %s = f32[8,16]{{1,0}} parameter(0)
      %t = f32[8,16]{{1,0}} parameter(1)
      ROOT %u = f32[8,16]{{1,0}} {inside}, metadata={{op_name="b/{{add}}"}}
    }}

    ENTRY main {{
      %x = f32[8,16]{{1,0}} parameter(0)
      %y = f32[8,16]{{1,0}} parameter(1)
      %one = f32[8,16]{{1,0}} fusion(%x, %y), kind=kLoop, calls=first
      ROOT %two = f32[8,16]{{1,0}} fusion({operands}), kind={kind}, calls=second
    }}
"""


@pytest.mark.parametrize(
    ("inside", "operands", "kind", "same"),
    [
        ("add(%s, %t)", "%one, %y", "kLoop", True),
        ("add(%t, %s)", "%one, %y", "kLoop", False),
        ("add(%s, %s)", "%one, %y", "kLoop", False),
        ("tanh(%s)", "%one, %y", "kLoop", False),
        ("add(%s, %t)", "%one, %one", "kLoop", False),
        ("add(%s, %t)", "%one, %y", "kInput", False),
        ("add(%s, %t)", "%one, %missing", "kLoop", False),
    ],
)
def test_only_names_and_origins_may_differ(inside: str, operands: str, kind: str, same: bool) -> None:
    entry = written(_TWO.format(inside=inside, operands=operands, kind=kind))["main"]
    assert (alike(entry["one"]) == alike(entry["two"])) is same


_NEARLY_ALIKE = """HloModule m, is_scheduled=true

body {
  c = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(c), index=0
  one = s32[] constant(1)
  next = s32[] add(i, one), metadata={op_name="a" source_file="f.py" source_line=3}
  v = f32[8] get-tuple-element(c), index=1
  in_a_loop = f32[8] add(v, v), metadata={op_name="a" source_file="f.py" source_line=3}
  ROOT r = (s32[], f32[8]) tuple(next, in_a_loop)
}

condition {
  c = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(c), index=0
  most = s32[] constant(5)
  ROOT less = pred[] compare(i, most), direction=LT
}

fused {
  p = f32[8] parameter(0)
  ROOT n = f32[8] negate(p), metadata={op_name="b" source_file="f.py" source_line=7}
}

fused.2 {
  p = f32[8] parameter(0)
  ROOT n = f32[8] negate(p), metadata={op_name="b" source_file="f.py" source_line=8}
}

ENTRY main {
  x = f32[8] parameter(0)
  zero = s32[] constant(0)
  first = f32[8] add(x, x), metadata={op_name="a" source_file="f.py" source_line=3}
  same = f32[8] add(x, x), metadata={op_name="a" source_file="f.py" source_line=3}
  other_line = f32[8] add(x, x), metadata={op_name="a" source_file="f.py" source_line=4}
  other_operands = f32[8] add(x, first), metadata={op_name="a" source_file="f.py" source_line=3}
  a_name_that_takes_more_than_the_forty_columns = f32[8] add(x, x), metadata={op_name="a" source_file="f.py" source_line=3}
  näme = f32[8] add(x, x), metadata={op_name="a" source_file="f.py" source_line=3}
  f1 = f32[8] fusion(x), kind=kLoop, calls=fused
  f2 = f32[8] fusion(x), kind=kLoop, calls=fused.2
  t = (s32[], f32[8]) tuple(zero, x)
  ROOT w = (s32[], f32[8]) while(t), condition=condition, body=body
}
"""  # noqa: E501


def test_what_kernels_share_is_printed_as_if_each_were_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """As rows of text after the first page, and in JSON."""
    from jaxprof.facts import recorder
    from jaxprof.report import kernel_list, modules, renderers

    monkeypatch.setattr(kernel_list, "LARGE", 0)
    monkeypatch.setattr(renderers, "PAGE", 1)

    def printed() -> tuple[list[str], list[Any]]:
        program = modules.HloProgram(module(_NEARLY_ALIKE))
        made = recorder(modules.facts_of_program("kernels"))(program)
        return list(kernel_list.kernel_lines(module(_NEARLY_ALIKE), None)), list(made["kernels"])

    text, rows = printed()
    assert [row["name"] for row in rows] == [row["name"] for row in printed()[1]]
    assert len({(row["count"], row["line"], row["read_bytes"]) for row in rows}) > 5
    for at in (kernel_list, modules):
        monkeypatch.setattr(at, "likeness", lambda row: None)
    assert (text, rows) == printed()


def _module_of(count: int) -> str:
    """Fusions and single operations in a chain, as the bench makes them."""
    held = [
        f"%held.{number} (p.{number}: f32[128,256]) -> f32[128,256] {{\n"
        f"  %p.{number} = f32[128,256]{{1,0}} parameter(0)\n"
        f"  ROOT %t.{number} = f32[128,256]{{1,0}} tanh(%p.{number})\n}}\n\n"
        for number in range(count // 4)
    ]
    values = ["x", *(f"v.{number}" for number in range(count))]
    lines = []
    for number, (taken, made) in enumerate(pairwise(values)):
        fusion = f"fusion(%{taken}), kind=kLoop, calls=%held.{number // 4}"
        what = f"add(%{taken}, %{taken})" if number % 4 else fusion
        lines.append(f"  {'ROOT ' * (number == count - 1)}%{made} = f32[128,256]{{1,0}} {what}\n")
    entry = "ENTRY %main (x: f32[128,256]) -> f32[128,256] {\n  %x = f32[128,256]{1,0} parameter(0)\n"
    return "".join(["HloModule large, is_scheduled=true\n\n", *held, entry, *lines, "}\n"])


def test_the_first_kernels_are_there_long_before_the_last() -> None:
    """Times of the same test, the best of three: a page of kernels against all of them."""
    text = _module_of(10_000)

    def share() -> float:
        start = time.process_time()
        table = KernelAnalysis(module(text))
        page = list(islice(table.stream(), 200))
        first = time.process_time() - start
        everything = table.kernels
        assert everything[:200] == tuple(page)
        assert len(everything) == 10_000
        return first / (time.process_time() - start)

    assert min(share() for _ in range(3)) < 0.5


def test_a_page_of_kernels_copies_none_of_those_before_it() -> None:
    copied: list[int] = []

    class Counting(list[Kernel]):
        def __getitem__(self, key: Any) -> Any:
            found = super().__getitem__(key)
            copied.append(len(found))
            return found

    table = KernelAnalysis(module(_module_of(2000)))
    table._made = Counting()
    count = sum(1 for _ in table.stream())
    assert len(copied) > 4
    assert sum(copied) == count


def test_time_grows_with_the_module_and_not_faster() -> None:
    def seconds(count: int) -> float:
        found = module(_module_of(count))
        start = time.process_time()
        assert len(kernels(found)) == count
        assert len(barriers(found)) == count - 1
        return time.process_time() - start

    assert seconds(12_000) < 12 * max(seconds(2_400), 0.02)


_DIMENSIONS = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
_PRODUCTS = """
    ENTRY main {{
      %x = f32[16,16]{{1,0}} parameter(0)
      %y = f32[16,16]{{0,1}} parameter(1)
      %one = f32[16,16]{{1,0}} dot(%x, %x), {dimensions}, metadata={{op_name="a"}}
      ROOT %two = f32[16,16]{{1,0}} {second}, metadata={{op_name="b"}}
    }}
"""


@pytest.mark.parametrize(
    ("second", "same"),
    [
        ("dot(%one, %one), lhs_contracting_dims={1}, rhs_contracting_dims={0}", True),
        ("dot(%one, %one), lhs_contracting_dims={0}, rhs_contracting_dims={0}", False),
        (
            "dot(%one, %one), lhs_contracting_dims={1}, rhs_contracting_dims={0}, operand_precision={high,high}",
            False,
        ),
        ("dot(%one, %y), lhs_contracting_dims={1}, rhs_contracting_dims={0}", False),
        ("dot(%y, %y), lhs_contracting_dims={1}, rhs_contracting_dims={0}", False),
    ],
)
def test_products_with_the_same_attributes_and_shapes_are_alike(second: str, same: bool) -> None:
    entry = written(_PRODUCTS.format(second=second, dimensions=_DIMENSIONS))["main"]
    assert (alike(entry["one"]) == alike(entry["two"])) is same


def test_operands_far_away_are_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [f"%v{n} = f32[8]{{0}} add(%v{n * n // 7 % n}, %v0)" for n in range(1, 400)]
    text = "ENTRY main {\n%v0 = f32[8]{0} parameter(0)\n" + "\n".join(lines) + "\n}\n"
    monkeypatch.setattr("jaxprof.hlo.model._REMEMBERED", 8)
    read = []
    plain = record.read
    monkeypatch.setattr(record, "read", lambda *place: read.append(place) or plain(*place))
    assert len(list(stream(module(text), keep=False))) == 399
    assert len(read) < 1.2 * 400


def test_no_attention_is_sought_where_nothing_is_reduced(monkeypatch: pytest.MonkeyPatch) -> None:
    sought = []
    monkeypatch.setattr(flow, "attention_before", sought.append)
    products = _PRODUCTS.format(second=f"dot(%one, %one), {_DIMENSIONS}", dimensions=_DIMENSIONS)
    findings(written(products))
    assert not sought
    findings(written(products.replace('op_name="a"', 'op_name=" reduce"')))
    assert len(sought) == 2
