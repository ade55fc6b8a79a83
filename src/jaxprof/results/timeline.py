"""The timeline of a run, read from its text. Standard library only; the form is in `docs/traces.md`.

A text from a file that was edited or damaged is refused whole, not drawn in part.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from jaxprof.errors import FileRefusedError

TEXT_NAME = "timeline"
"""Under which a run has it: `session.text(run, TEXT_NAME)`."""
VERSION = 1


@dataclass(frozen=True, slots=True)
class TimelineOp:
    """An HLO op that intervals belong to."""

    module: str
    program: str | None
    """The program's id, in decimal digits: it may be larger than JSON's numbers."""
    name: str


@dataclass(frozen=True, slots=True)
class TimelineLane:
    """One row: intervals in order of their start, the longer first where two begin together. Nanoseconds."""

    device: str
    """`gpu:0`, `cpu:0`, `host`; with `NAME/` before it where several hosts are shown together."""
    name: str
    kind: str
    """`modules`, `steps`, `stream`, `ops`, `async`, `thread` or `host`."""
    labels: list[tuple[str, int | None]]
    """Names, each with the index of its op in `Timeline.ops`, or None."""
    label_of: list[int]
    starts: list[int]
    durations: list[int]

    def __len__(self) -> int:
        return len(self.starts)


@dataclass(frozen=True, slots=True)
class Timeline:
    """All lanes of a profile on one clock, which begins at its first event."""

    started_unix_ns: int | None
    """When the recording began; None where the profile does not say."""
    left_out: int
    """Intervals of the profile, the shortest ones, that are not here."""
    ops: list[TimelineOp]
    lanes: list[TimelineLane]

    @property
    def intervals(self) -> int:
        """How many there are in all lanes."""
        return sum(len(lane) for lane in self.lanes)


def read_timeline(text: str) -> Timeline:
    """The timeline in `text`. Raises FileRefusedError where it is none, or of a newer form."""
    try:
        data = json.loads(text)
        if data["version"] != VERSION:
            raise FileRefusedError(
                f"the timeline has form {data['version']}, and this jaxprof reads {VERSION}", "Update jaxprof."
            )
        return Timeline(
            started_unix_ns=data["started_unix_ns"],
            left_out=data["left_out"],
            ops=[TimelineOp(module, program, name) for module, program, name in data["ops"]],
            lanes=[_lane(lane, len(data["ops"])) for lane in data["lanes"]],
        )
    except (ValueError, LookupError, TypeError) as error:
        raise FileRefusedError(f"the timeline of this session is damaged: {error}") from error


def _lane(data: dict[str, Any], ops: int) -> TimelineLane:
    labels = [(str(name), op) for name, op in data["labels"]]
    for name in ("device", "name", "kind"):
        if not isinstance(data[name], str):
            raise TypeError(f"a lane's {name} is no text")
    lane = TimelineLane(
        device=data["device"],
        name=data["name"],
        kind=data["kind"],
        labels=labels,
        label_of=data["label"],
        starts=list(accumulate(data["start"])),
        durations=data["duration"],
    )
    sizes = {len(lane.label_of), len(lane.starts), len(lane.durations)}
    known_ops = all(op is None or 0 <= op < ops for _, op in labels)
    known_labels = not lane.label_of or (min(lane.label_of) >= 0 and max(lane.label_of) < len(labels))
    if len(sizes) != 1 or not known_ops or not known_labels:
        raise ValueError(f"lane {lane.name!r} does not fit together")
    return lane
