"""How quickly the screen answers while a run saturates the cores, and what it costs while nothing happens.

    python bench/screen.py [--keys 60] [--idle 10] [--smoke]

Following: what the app takes, and writes to the terminal, while another process records a program: once it has run for
a minute, and for a quarter of an hour.

A key to the change: the app in a pseudo-terminal, with a large matrix product running on every core; each key moves the
cursor, and is timed until its change has been written. The peer is a bare Textual app with a list, while `jaxprof run`
does the same in another process. Idle: the app after its devices were found, with its readings held still: the bytes
that it writes; and with live readings: its CPU time. Exits 1 past a limit.
"""

from __future__ import annotations

import argparse
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from terminal import Terminal

ANSWER_LIMIT_SECONDS = 0.050
CPU_LIMIT = 0.05
FOLLOWING_LIMITS = 0.03, 2_000
"""Share of a core and bytes a second; neither grows with the session."""
APP = "import sys; from jaxprof.tui.shell.launch import launch; sys.exit(launch())"
MEASURING = """
import sys
from jaxprof.events import RunSpec
from jaxprof.runner.planning import PlannedRun
from jaxprof.tui.shell.profiler import Profiler
app = Profiler()
async def start(pilot):
    await pilot.pause()
    app.start_runs([PlannedRun(spec=RunSpec(
        target="matmul", workload="matmul", variant="jit", how="jit", device="cpu:0", parameters={"n": 3000},
        preset="quick", budget_seconds=60.0, check=False, capture=False))])
app.run(auto_pilot=start)
"""
"""The app, with a run of a large product started at once, as Start would."""
STILL = """
import sys
from jaxprof.devices.live.host import Monitor
read = Monitor.read
kept = []
def still(self):
    if len(kept) < 12:  # until the sparkline is full
        kept.append(read(self))
    return kept[0]
Monitor.read = still
from jaxprof.tui.shell.launch import launch
sys.exit(launch())
"""
FOLLOWING = """
import sys
from pathlib import Path
from jaxprof.tui.shell.launch import launch
sys.exit(launch(Path(sys.argv[1])))
"""
PEER = """
from textual.app import App
from textual.widgets import OptionList
class Peer(App):
    def compose(self):
        yield OptionList(*[f"row-{number}" for number in range(40)])
Peer().run()
"""


def answers(terminal: Terminal, keys: int) -> list[float]:
    """Seconds from each key (down, up, down...) to the first bytes that it changes on the screen."""
    times = []
    for index in range(keys):
        terminal.drain(0.03)
        began = time.perf_counter()
        terminal.send(b"\x1b[B" if index % 2 == 0 else b"\x1b[A")
        while not terminal.read(5.0):
            if time.perf_counter() - began > 5:
                raise TimeoutError("a key had no answer in 5 s")
        times.append(time.perf_counter() - began)
    return times


def app_under_load(home: str, keys: int, settle: float) -> list[float]:
    """The answers of jaxprof's Start screen while its own run goes on."""
    terminal = Terminal([sys.executable, "-c", MEASURING], 120, 40, {"JAXPROF_HOME": home})
    try:
        terminal.wait(b"to go")
        terminal.drain(settle, most=settle)  # the run has started
        terminal.send(b"1")
        terminal.drain(0.3, most=1.0)
        return answers(terminal, keys)
    finally:
        terminal.end()


def peer_under_load(home: str, keys: int, settle: float) -> list[float]:
    """The answers of a bare Textual list while the same run goes on elsewhere."""
    out = str(Path(home) / "peer.jaxprof")
    command = [sys.executable, "-m", "jaxprof", "run", "matmul", "--set", "n=3000", "--budget", "60", "--out", out]
    load = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    terminal = Terminal([sys.executable, "-c", PEER], 120, 40, {"JAXPROF_HOME": home})
    try:
        terminal.wait(b"row-1")
        terminal.drain(min(settle, 3.0), most=3.0)
        return answers(terminal, keys)
    finally:
        load.send_signal(signal.SIGINT)
        load.wait()
        terminal.close()


def idle_bytes(home: str, seconds: float, settle: float) -> int:
    """Bytes that the app writes in `seconds` while no value that it shows changes."""
    terminal = Terminal([sys.executable, "-c", STILL], 120, 40, {"JAXPROF_HOME": home})
    try:
        terminal.wait(b"matmul")
        terminal.drain(1.5 * settle, most=1.5 * settle)  # jax was asked, the sparkline is full
        before = len(terminal.output)
        terminal.drain(seconds, most=seconds)
        return len(terminal.output) - before
    finally:
        terminal.close()


def idle_cpu(home: str, seconds: float, settle: float) -> float:
    """The share of a core that the app takes with live readings, its child of the start over."""
    terminal = Terminal([sys.executable, "-c", APP], 120, 40, {"JAXPROF_HOME": home})
    try:
        terminal.wait(b"matmul")
        terminal.drain(settle, most=settle)
        before, began = terminal.cpu_seconds(), time.perf_counter()
        terminal.drain(seconds, most=seconds)
        return (terminal.cpu_seconds() - before) / (time.perf_counter() - began)
    finally:
        terminal.close()


def percentile(values: list[float], share: float) -> float:
    """The value below which `share` of them are."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def following(home: str, length: int, seconds: int, settle: float) -> tuple[float, float]:
    """The share of a core that the app takes, and the bytes a second that it writes, beside a program that has run for
    `length` seconds and goes on, a sample window a second."""
    from jaxprof.events import Header
    from jaxprof.session import LogWriter
    from job_scale import growing

    began = time.monotonic() - length
    path = Path(home) / f"grows-{length}.jaxprof"
    writer = LogWriter(Header(session="cafe", monotonic_seconds=began, wall_seconds=time.time() - length), path)
    events = growing(began)
    for _ in range(length):
        writer.append(next(events))
    terminal = Terminal([sys.executable, "-c", FOLLOWING, str(path)], 120, 40, {"JAXPROF_HOME": home})
    try:
        terminal.wait(b"now ")
        terminal.drain(settle, most=settle)
        cpu, size, clock = terminal.cpu_seconds(), len(terminal.output), time.perf_counter()
        for _ in range(seconds):
            writer.append(next(events))
            terminal.drain(1.0, most=1.0)
        took = time.perf_counter() - clock
        return (terminal.cpu_seconds() - cpu) / took, (len(terminal.output) - size) / took
    finally:
        terminal.close()
        writer.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, default=60)
    parser.add_argument("--idle", type=float, default=10.0)
    parser.add_argument(
        "--smoke", action="store_true", help="six keys, short waits; the table has to come out, whatever its figures"
    )
    args = parser.parse_args()
    settle = 0.5 if args.smoke else 8.0
    if args.smoke:
        args.keys, args.idle = 6, 1.0
    with tempfile.TemporaryDirectory() as home:
        (Path(home) / "sessions").mkdir()
        ours = app_under_load(home, args.keys, settle)
        theirs = peer_under_load(home, args.keys, settle)
        written = idle_bytes(home, args.idle, settle)
        cpu = idle_cpu(home, args.idle, settle)
        followed = {length: following(home, length, max(1, round(args.idle)), settle) for length in (60, 900)}
    p95, peer95 = percentile(ours, 0.95), percentile(theirs, 0.95)
    spread = f"median {statistics.median(ours) * 1e3:.1f}, worst {max(ours) * 1e3:.1f} ms"
    print(f"{'what':<40}{'jaxprof':>10}{'peer':>10}{'ratio':>8}{'limit':>9}  spread")
    print(
        f"{'key to change, p95, during a run':<40}{p95 * 1e3:>7.1f} ms{peer95 * 1e3:>7.1f} ms{p95 / peer95:>7.2f}×"
        f"{ANSWER_LIMIT_SECONDS * 1e3:>6.0f} ms  {spread}; peer: a bare list"
    )
    print(f"{f'bytes in {args.idle:g} s, nothing changes':<40}{written:>8} B{'-':>10}{'-':>8}{0:>7} B")
    print(f"{'CPU with readings at 2 Hz':<40}{cpu:>9.1%}{'-':>11}{'-':>8}{CPU_LIMIT:>9.0%}  of one core")
    most = FOLLOWING_LIMITS
    for length, (share, size) in followed.items():
        print(
            f"{f'CPU, following after {length} s':<40}{share:>9.1%}{'-':>11}{'-':>8}{most[0]:>9.0%}  of one "
            f"core; {size / 1e3:.2f} KB/s of at most {most[1] / 1e3:g}"
        )
    past = any(share > most[0] or size > most[1] for share, size in followed.values())
    past |= p95 > ANSWER_LIMIT_SECONDS or written > 0 or cpu > CPU_LIMIT
    return 1 if past and not args.smoke else 0


if __name__ == "__main__":
    sys.exit(main())
