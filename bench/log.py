"""How fast a session file is written, and loaded into a Session again: against plain `json` into dicts.

    python bench/log.py [--events 100000] [--rounds 9] [--smoke]

The log is that of many runs as the engine sends them: mostly batches of samples and progress, with phases, texts, costs
and warnings between. Ours and the peer take turns on the same file. Seconds are CPU seconds of this process, so that
what else runs does not count; a figure is the median over the rounds, with the range. Prints a table; exits 1 when
fewer than 200 000 events a second are folded.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from jaxprof import events as e
from jaxprof.session import LogWriter, Session, load, new_header

FEWEST_FOLDED_A_SECOND = 200_000
EVENTS_A_RUN = 500


def one_run(run: str) -> Iterator[e.Event]:
    """The events of one run, about `EVENTS_A_RUN` of them."""
    yield e.RunPlanned(
        run=run,
        spec=e.RunSpec(
            workload="selu", variant="jit", how="jit", device="cpu:0", parameters={"n": 1_000_000}, preset="quick"
        ),
    )
    yield e.WorkerStarted(run=run, pid=4711, python="/usr/bin/python3")
    yield e.EnvironmentRead(run=run, python="3.11.7", numpy="2.4.6", jax="0.10.2", jaxlib="0.10.2")
    for phase in (*e.STARTUP_PHASES, "trace", "lower", "compile", "transfer_in", "first_run"):
        yield e.PhaseStarted(run=run, phase=phase, monotonic_seconds=1.0)
        yield e.PhaseEnded(run=run, phase=phase, seconds=0.0123, monotonic_seconds=1.0123)
    yield e.TextRecorded(run=run, name="hlo", text="HloModule jit_selu\n" * 40, bytes=760)
    yield e.CostReported(run=run, flops=5e6, bytes_accessed=8e6, source=e.ESTIMATED_BY)
    yield e.PhaseStarted(run=run, phase="run", monotonic_seconds=2.0)
    for index in range((EVENTS_A_RUN - 26) // 2):
        moment = 2.0 + index / 100
        yield e.SamplesTaken(
            run=run,
            series="run",
            seconds=[0.00063 + index * 1e-9, 0.00062, 0.00064, 0.00063],
            calls_per_sample=4,
            monotonic_seconds=moment,
        )
        yield e.ProgressMade(run=run, fraction=index / 240, remaining_seconds=2.0, monotonic_seconds=moment)
    yield e.PhaseEnded(run=run, phase="run", seconds=2.0)
    yield e.CheckReported(run=run, passed=True, max_relative_error=1e-7, tolerance=1e-5, against="numpy twin")
    yield e.RunFinished(run=run, status="ok")
    yield e.RunClosed(run=run, workload="selu", variant="jit", device="cpu:0", status="ok", median_seconds=0.00063)


def many(count: int) -> list[e.Event]:
    """`count` events of as many runs as it takes."""
    found: list[e.Event] = []
    number = 0
    while len(found) < count:
        number += 1
        found.extend(one_run(f"r{number}"))
    return found[:count]


def write_ours(events: list[e.Event], path: Path) -> None:
    """As the client writes: each line by itself, numbered, flushed."""
    writer = LogWriter(new_header(), path, replace_existing=True)
    for event in events:
        writer.append(event)
    writer.close()


def write_peer(events: list[e.Event], path: Path) -> None:
    """The engine's standard-library encoder into a file that is flushed at each line."""
    with path.open("wb", buffering=0) as file:
        for event in events:
            file.write(e.encode(event) + b"\n")


def fold_ours(path: Path) -> None:
    """Read, decoded into types, folded."""
    load(path, Session)


def fold_peer(path: Path) -> None:
    """Read and decoded into dicts; not folded."""
    with path.open("rb") as file:
        for line in file:
            json.loads(line)


def rates(
    count: int, rounds: int, ours: Callable[[], None], peer: Callable[[], None]
) -> tuple[list[float], list[float]]:
    """Events a second of both, taking turns."""
    measured: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for work, found in zip((ours, peer), measured, strict=True):
            began = time.process_time()
            work()
            found.append(count / (time.process_time() - began))
    return measured


def row(name: str, ours: list[float], peer: list[float]) -> str:
    ratios = [one / other for one, other in zip(ours, peer, strict=True)]
    cells = [
        f"{name:<8}",
        f"{statistics.median(ours):>10,.0f}/s",
        f"{min(ours):,.0f}..{max(ours):,.0f}".rjust(22),
        f"{statistics.median(peer):>10,.0f}/s",
        f"{statistics.median(ratios):>6.2f}x ({min(ratios):.2f}..{max(ratios):.2f})",
    ]
    return "  ".join(cells)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument(
        "--smoke",
        action="store_true",
        help="5 000 events, three rounds; the table has to come out, whatever its figures",
    )
    options = parser.parse_args()
    if options.smoke:
        options.events, options.rounds = 5_000, 3
    events = many(options.events)
    with tempfile.TemporaryDirectory() as folder:
        path, peer_path = Path(folder) / "ours.jaxprof", Path(folder) / "peer.jsonl"
        written = rates(
            len(events),
            max(3, options.rounds // 3),
            lambda: write_ours(events, path),
            lambda: write_peer(events, peer_path),
        )
        folded = rates(len(events), options.rounds, lambda: fold_ours(path), lambda: fold_peer(path))
        size = path.stat().st_size
        runs = len(load(path, Session).runs)
    print(f"{len(events):,} events, {runs} runs, {size / 1e6:.1f} MB")
    print(f"{'':<8}  {'jaxprof':>12}  {'range':>22}  {'json':>12}  {'ratio (range)'}")
    print(row("written", *written))
    print(row("folded", *folded))
    reached = statistics.median(folded[0])
    print(
        f"limit: {FEWEST_FOLDED_A_SECOND:,} folded a second: {'kept' if reached > FEWEST_FOLDED_A_SECOND else 'MISSED'}"
    )
    return 0 if reached > FEWEST_FOLDED_A_SECOND or options.smoke else 1


if __name__ == "__main__":
    sys.exit(main())
