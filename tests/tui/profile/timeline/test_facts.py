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
    from jaxprof.tui.kit.canvas import AxisWindow, Scale, ruler
    from jaxprof.tui.profile.timeline.drawing import ruler_time

    rows = [("dot", 0, 47_000_000, 1_000_000), ("dot", 0, 60_000_000, 1_000_000)]
    text = profiles.text([profiles.lane("cpu:0", "thread", "thread", rows)], [("jit_f", None, "dot")])
    lanes = lanes_of(read_timeline(text))
    window = AxisWindow(lanes.begin, lanes.end)
    (lane,) = lanes.lanes
    said = cursor_lines(lanes, window, 47_500_000, (lane, lane.rows[0], 0), 100)[0].plain
    assert "at 47.000 ms" in said
    assert ruler(Scale(window.start, window.end), 80, ruler_time, "╷").split() == [
        "╷50",
        "ms",
        "╷55",
        "ms",
        "╷60",
        "ms",
    ]
