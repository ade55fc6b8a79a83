"""Folders of kept sessions with planted figures, for whatever reads many of them."""

import math
import os
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from jaxprof import events as e
from jaxprof.session.log.codec import encode_header, encode_line

DAY = 86_400.0
FIRST = 1_767_000_000.0
"""Unix time of the first session: 2025-12-29."""


def medians(*levels: tuple[float, int], noise: float = 0.02, seed: int = 1) -> list[float]:
    """Medians of sessions (seconds): for each level, so many sessions about it."""
    random = np.random.default_rng(seed)
    return [level * math.exp(random.normal() * noise) for level, count in levels for _ in range(count)]


def run(
    name: str,
    median: float,
    *,
    variant: str = "jit",
    workload: str = "matmul",
    kind: str = "cpu",
    status: str = "ok",
    samples: int = 9,
    passed: bool | None = True,
    jax: str = "0.10.2",
    compile_seconds: Sequence[float | None] = (0.04,),
    flops: float | None = 2e9,
    source: str = "def f(x): return x @ x\n",
    ended: bool = True,
    settings: dict[str, Any] | None = None,
    commit: str = "",
    dirty: bool = False,
    **spec: Any,
) -> list[e.Event]:
    """One run with this median, its interval half a percent wide to each side."""
    spec = {"how": "jit", "device": f"{'cuda' if kind != 'cpu' else 'cpu'}:0", "parameters": {"n": 1000}, **spec}
    events = [e.RunPlanned(run=name, spec=e.RunSpec(workload=workload, variant=variant, **spec))]
    device = {"id": spec["device"], "platform": spec["device"].partition(":")[0], "kind": kind}
    if commit:
        events.append(e.RevisionRead(run=name, repository="/src/net", commit=commit, dirty=dirty))
    for launch, seconds in enumerate(compile_seconds, start=1):
        events += [
            e.WorkerStarted(run=name, pid=launch, python="python", launch=launch),
            e.EnvironmentRead(
                run=name, python="3.12.1", numpy="2.3", jax=jax, jaxlib=jax, devices=[device], settings=settings or {}
            ),
            e.PhaseEnded(run=name, phase="compile", seconds=seconds),
        ]
    if flops is not None:
        events.append(e.CostReported(run=name, flops=flops, bytes_accessed=8e6, source=e.ESTIMATED_BY))
    events += [
        e.TextRecorded(run=name, name="source", text=source),
        e.SamplesTaken(run=name, series="run", seconds=[median] * samples, block=1),
        e.PhaseEnded(run=name, phase="run", seconds=1.0),
        e.CheckReported(run=name, passed=passed),
    ]
    if ended:
        figures = {
            "median_seconds": median if samples else None,
            "ci95_seconds": [median * 0.995, median * 1.005] if samples > 4 else None,
        }
        events += [
            e.RunFinished(run=name, status=status),
            e.RunClosed(run=name, workload=workload, variant=variant, device=spec["device"], status=status, **figures),
        ]
    return events


def keep(
    folder: Path,
    number: int,
    events: Iterable[e.Event],
    *,
    cpu: str = "A CPU",
    host: str = "box",
    closed: bool = True,
    driver: str | None = None,
    day: float | None = None,
) -> Path:
    """A session file of the day `number`; its name and its id have that number."""
    began = FIRST + DAY * (number if day is None else day)
    machine = {"cpu_model": cpu, "machine_cores": 8, "nvidia_driver": driver}
    made = {
        "jaxprof": "0.1.0",
        "session": f"{number:012x}",
        "created": f"{datetime.fromtimestamp(began, UTC):%Y-%m-%dT%H:%M:%SZ}",
    }
    header = e.Header(**made, host=host, environment=machine, wall_seconds=began, monotonic_seconds=10.0)
    lines = [encode_header(header), *map(encode_line, events)]
    if closed:
        lines.append(encode_line(e.SessionClosed()))
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"session-{number:03}.jaxprof"
    path.write_bytes(b"".join(lines))
    os.utime(path, (began, began))
    return path
