"""The walk from many places finds what following the chain link by link finds, damage or not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from xplane_wire import nested, number

from jaxprof.trace.line import Chain
from jaxprof.trace.varints import padded

TAG = 4 << 3 | 2


def line(events: int, seed: int) -> bytes:
    """Events with statistics in them, which have the same tag; a long one now and then."""
    random = np.random.default_rng(seed)
    out = bytearray()
    for _ in range(events):
        content = number(1, 3) + number(2, int(random.integers(1 << 40)))
        for _ in range(int(random.integers(7))):
            content += nested(4, number(1, 9) + number(7, int(random.integers(300))))
        if random.random() < 0.001:
            content += nested(4, bytes(int(random.integers(200, 40_000))))
        out += nested(4, content)
    return bytes(out)


def begins(raw: bytes, *, walking: bool) -> tuple[list[int], int]:
    chain = Chain(padded(raw), raw + bytes(16), 0, len(raw), TAG)
    if not walking:
        chain._walks.clear()
    pieces, end = chain.run(0)
    return np.concatenate(pieces).tolist(), end


WHOLE = line(12_000, 5)


def test_a_long_line_is_walked_and_found_whole() -> None:
    chain = Chain(padded(WHOLE), WHOLE + bytes(16), 0, len(WHOLE), TAG)
    assert len(chain._walks) > 8
    assert begins(WHOLE, walking=True) == begins(WHOLE, walking=False)
    assert len(begins(WHOLE, walking=True)[0]) == 12_000


@given(data=st.data())
def test_damage_is_met_in_the_same_place(data: st.DataObject) -> None:
    raw = bytearray(WHOLE)
    for _ in range(data.draw(st.integers(1, 5))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(raw[: data.draw(st.integers(1, len(raw)))])
    assert begins(cut, walking=True) == begins(cut, walking=False)


@pytest.mark.parametrize(
    "filler", [b"\x22\x00", b"\x22\x22", b"\x22\xff", b"\x00"], ids=["empty", "tags", "long", "zeros"]
)
def test_a_line_made_to_mislead(filler: bytes) -> None:
    raw = filler * (300_000 // len(filler))
    assert begins(raw, walking=True) == begins(raw, walking=False)
