"""Texts beside the timeline."""

from __future__ import annotations

from dataclasses import replace

from jaxprof import events as e
from jaxprof.tui.profile.timeline.facts import cursor_lines
from tui import profiles


def test_steps_of_several_devices_are_not_added_up_to_more_steps() -> None:
    from jaxprof.tui.profile.timeline.facts import step_lines

    def said(rows: list[e.StepTimes]) -> str:
        event = e.StepsMeasured(run="", found_by="modules", steps=rows)
        return "\n".join(line.plain for line in step_lines(event, -1.0, "", 100))

    other = [replace(row, device="gpu:1") for row in profiles.steps(4)]
    assert "4 steps, mean" in said(profiles.steps(4))
    assert "4×2 steps, mean" in said(profiles.steps(4) + other)
    assert "7 steps, mean" in said(profiles.steps(3) + other)


def test_the_cursor_and_the_ruler_have_one_zero() -> None:
    """The first interval begins at 47 ms: what is under the cursor there is at 47 ms, as the ruler says."""
    from jaxprof.analysis.lanes.rows import lanes_of
    from jaxprof.analysis.timeline import read_timeline
    from jaxprof.tui.profile.timeline.browse import AxisWindow
    from jaxprof.tui.profile.timeline.drawing import ruler

    rows = [("dot", 0, 47_000_000, 1_000_000), ("dot", 0, 60_000_000, 1_000_000)]
    text = profiles.text([profiles.lane("cpu:0", "thread", "thread", rows)], [("jit_f", None, "dot")])
    lanes = lanes_of(read_timeline(text))
    window = AxisWindow(lanes.begin, lanes.end)
    (lane,) = lanes.lanes
    said = cursor_lines(lanes, window, 47_500_000, (lane, lane.rows[0], 0), 100)[0].plain
    assert "at 47.000 ms" in said
    assert ruler(window, 80).split() == ["╷50", "ms", "╷55", "ms", "╷60", "ms"]


def test_the_totals_of_a_range_fill_their_room_and_no_more() -> None:
    from jaxprof.analysis.lanes.totals import range_totals
    from jaxprof.tui.profile.timeline.range_facts import range_facts
    from tui.profile.timeline.made_lanes import lanes

    found = lanes(profiles.timeline())
    totals = range_totals(found, 0, 4_000_000)
    stream = next(at for at, lane in enumerate(found.lanes) if lane.on_device)
    for width, height in ((40, 3), (76, 6), (116, 12), (196, 20)):
        lines = range_facts(found, totals, stream, width, height, "range", "Esc clears it").plain.split("\n")
        assert len(lines) == height
        assert all(len(line) <= width for line in lines)
    wide = range_facts(found, totals, stream, 116, 12, "range", "Esc clears it").plain.split("\n")
    assert wide[0].startswith("range  4.00 ms  from 0 ns to 4.0000 ms   Esc clears it")
    assert wide[2].split()[:8] == ["gpu:0", "#1", "Compute", "70", "%", "2.80", "ms", "1.20"]
    assert "gemm_kernel" in wide[2]
    assert wide[2].split()[-5:] == ["1.80", "ms", "45", "%", "×2"]
    host = range_facts(found, totals, 0, 116, 12, "range", "").plain.split("\n")
    assert "PjitFunction(selu)" in "\n".join(host), "on a host, what the lane under the cursor did"
    nothing = range_facts(found, range_totals(found, 500, 600), stream, 76, 6, "range", "").plain
    assert "nothing ran" in nothing
    assert "lanes idle throughout" in nothing
