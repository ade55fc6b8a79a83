"""Strings, brackets, attributes and operand lists."""

from __future__ import annotations

import pytest

from jaxprof.hlo.read.syntax import attributes, items, operand_names


def read(text: str) -> tuple[dict[str, str], str, bool]:
    listed = attributes(text, 0, len(text))
    return {item.name: text[item.start : item.end] for item in listed.found}, text[listed.end :], listed.closed


def test_values_of_all_kinds() -> None:
    found, rest, closed = read(
        ", kind=kLoop, calls=%f.1, window={size=3x3 pad=0_1x-1_0}, dim_labels=b01f_01io->b01f, slice={[0:1], [2:4:2]},"
        ' metadata={op_name="a, b={(" source_line=3}, sharding={devices=[2,1]<=[2]}, x-y.z=1 // end\n'
        ", /*index=5*/ replica_groups=[2,4]<=[4,2]T(1,0), groups=mesh['a'=2,'b'=4] {'a'}, path=a/b, last=\"\\\"}\" ROOT"
    )
    assert found == {
        "kind": "kLoop", "calls": "%f.1", "window": "{size=3x3 pad=0_1x-1_0}", "dim_labels": "b01f_01io->b01f",
        "slice": "{[0:1], [2:4:2]}", "metadata": '{op_name="a, b={(" source_line=3}',
        "sharding": "{devices=[2,1]<=[2]}", "x-y.z": "1", "replica_groups": "[2,4]<=[4,2]T(1,0)",
        "groups": "mesh['a'=2,'b'=4] {'a'}", "path": "a/b", "last": r'"\"}"',
    }  # fmt: skip
    assert rest == " ROOT"
    assert closed


def test_deep_json_and_several_lines() -> None:
    config = '{"a":{"b":[{"c":{"d":[[{}]]}}]},\n  "e":"}"}'
    assert read(f", backend_config={config}, after=1\n")[0] == {"backend_config": config, "after": "1"}


@pytest.mark.parametrize("text", [", a={", ', a="x', ", a={[(}", ', a={"x}', ", a={{{{{{{{1}"])
def test_an_open_bracket_is_told(text: str) -> None:
    found, _, closed = read(text)
    assert not closed
    assert list(found) == ["a"]


def test_items() -> None:
    assert items('{0}: (1, {}, may-alias), {1}: (2, {}), "a,b"') == ["{0}: (1, {}, may-alias)", "{1}: (2, {})", '"a,b"']
    assert items("") == []


@pytest.mark.parametrize(
    ("inside", "names"),
    [
        ("%a, %b.1", ("a", "b.1")),
        ("a, b-2 , c_3", ("a", "b-2", "c_3")),
        ("f32[2,3]{1,0:T(8,128)} %a, (f32[], s32[]) %b, /*index=2*/token[] %c", ("a", "b", "c")),
        ("f32[2,3]{1,0} a, (f32[], s32[]) b, /*index=2*/token[] c", ("a", "b", "c")),
        ("%a, b", ("a", "b")),
        ("f32[10] %p0#0", ("p0",)),
        ("\n   s32[] %x,\n   s32[] %y", ("x", "y")),
        ("f32[] constant(1), x", ("x",)),
        ("", ()),
        ("0", ()),
    ],
)
def test_operand_names(inside: str, names: tuple[str, ...]) -> None:
    assert operand_names(inside) == names
