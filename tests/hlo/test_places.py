"""Places in StableHLO and jaxprs: the text loses them and they keep their meaning."""

from __future__ import annotations

import pytest

from jaxprof.hlo.analysis.origin import HloSourceLocation
from jaxprof.hlo.places import LineOrigin, without_comments, without_locations
from tui.hlo_texts import FILE, JAXPR, STABLEHLO

# -- places -----------------------------------------------------------------------------------------------------------


def test_stablehlo_loses_its_locations_and_keeps_their_meaning() -> None:
    text, places = without_locations(STABLEHLO)
    assert "loc(" not in text
    lines = text.split("\n")
    tanh = next(number for number, line in enumerate(lines) if "tanh" in line)
    assert lines[tanh] == "    %1 = stablehlo.tanh %0 : tensor<256x512xf32>"
    assert places.of(tanh) == LineOrigin(HloSourceLocation(FILE, 11), "jit(loss)/jvp(attn)/tanh")
    assert lines[1].startswith("  func.func public @main(%arg0: tensor<256x512xf32>, %arg1: tensor<512x512xf32>)")


def test_a_jaxpr_loses_its_comments_and_keeps_their_meaning() -> None:
    text, places = without_comments(JAXPR)
    lines = text.split("\n")
    assert "#" not in text
    assert lines[1] == "    c:f32[256,512] = dot_general["
    assert places.of(1) == LineOrigin(HloSourceLocation(FILE, 10), "jvp(attn)/dot_general")
    assert lines[5] == "    d:f32[256,512] = tanh c"
    assert places.of(5) == LineOrigin(HloSourceLocation(FILE, 11), "jvp(attn)/tanh")


@pytest.mark.parametrize("strip", [without_locations, without_comments])
def test_a_text_without_places_comes_back_as_it_is(strip: object) -> None:
    text = "module @m {\n  %0 = x.y %1\n}"
    assert callable(strip)
    assert strip(text)[0] == text
