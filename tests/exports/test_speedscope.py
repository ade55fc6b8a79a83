"""speedscope's JSON: events that open and close in order, stacks whose weights add up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from folding import fold
from jaxprof import events as e
from jaxprof.exports import speedscope
from jaxprof.exports.source import ExportSource
from jaxprof.session import Session
from report import sessions
from report.page.pages import with_timeline


def exported(session: Session) -> dict[str, Any]:
    source = ExportSource(session, speedscope.runs(session), Path("s.jaxprof"))
    return dict(json.loads("".join(speedscope.pieces(source))))


def names(file: dict[str, Any], profile: dict[str, Any]) -> list[list[str]]:
    frames = file["shared"]["frames"]
    return [[frames[number]["name"] for number in stack] for stack in profile["samples"]]


def test_a_lane_is_opened_and_closed_in_order_as_it_nests() -> None:
    file = exported(with_timeline())
    (host,) = [profile for profile in file["profiles"] if profile["name"] == "r2 host main"]
    frames = file["shared"]["frames"]
    words = [f"{event['type']}{frames[event['frame']]['name']}" for event in host["events"][:5]]
    assert words == ["Ocall", "Odispatch", "Cdispatch", "Ccall", "Ocall"]
    for profile in file["profiles"]:
        if profile["type"] == "evented":
            times = [event["at"] for event in profile["events"]]
            assert times == sorted(times)
            assert (profile["startValue"], profile["endValue"]) == (times[0], times[-1])
            open_frames: list[int] = []
            for event in profile["events"]:
                if event["type"] == "O":
                    open_frames.append(event["frame"])
                else:
                    assert open_frames.pop() == event["frame"]
            assert open_frames == []


def test_overlapping_intervals_are_profiles_of_their_own() -> None:
    lane = {"device": "gpu:0", "name": "async", "kind": "async", "labels": [["a", None], ["b", None]], "label": [0, 1],
            "start": [0, 5], "duration": [10, 10]}  # fmt: skip
    text = json.dumps({"version": 1, "unit": "ns", "started_unix_ns": None, "left_out": 0, "ops": [], "lanes": [lane]})
    session = fold(
        sessions.HEADER, [sessions.plan("r1", "jit", "jit"), e.TextRecorded(run="r1", name="timeline", text=text)]
    )
    assert [profile["name"] for profile in exported(session)["profiles"]] == ["r1 gpu:0 async", "r1 gpu:0 async (2)"]


def test_kernels_and_passes_are_stacks_with_their_self_times() -> None:
    file = exported(with_timeline())
    kernels, passes = [profile for profile in file["profiles"] if profile["type"] == "sampled"]
    assert kernels["name"] == "r2 selu jit cpu:0: kernels, self time"
    assert names(file, kernels)[0] == ["jit_selu", "selu", "fusion"]
    assert kernels["weights"] == pytest.approx([4e-3, 1e-3, 1e-8, 1e-4])
    assert names(file, kernels)[-1] == ["no HLO op", "gpu:0"]
    assert names(file, passes)[0] == ["compile", "fusion"]
    assert sum(passes["weights"]) == pytest.approx(passes["endValue"]) == pytest.approx(0.04)
    (source,) = [frame for frame in file["shared"]["frames"] if frame["name"] == "fusion" and "file" in frame]
    assert source == {"name": "fusion", "file": "/home/me/selu.py", "line": 28}
