"""Programs that were compiled and not run, without compiling them."""

from typing import Any

from folding import fold
from jaxprof import events as e
from jaxprof.session import Session
from report import sessions


def compiled(
    hlo: str | None = sessions.HLO, *more: e.Event, devices: tuple[str, ...] = ("cpu:0",), **plan: Any
) -> list[e.Event]:
    """What is recorded of a function that is compiled for each of these devices, and what else is."""
    made: list[e.Event] = []
    for number, device in enumerate(devices, 1):
        spec = e.RunSpec(**{"workload": "f.py:step", "variant": "jit", "how": "compile", "device": device, **plan})
        made.append(e.RunPlanned(run=f"r{number}", spec=spec))
        if hlo is not None:
            made.append(e.TextRecorded(run=f"r{number}", name="hlo", text=hlo))
    return [*made, *more]


def session(*events: Any, **more: Any) -> Session:
    return fold(sessions.HEADER, compiled(*events, **more))
