"""How long jaxprof takes to be there: the app's first frame, and `--help`, each against the least that is possible.

    python bench/start.py [--rounds 15] [--smoke]

The frame is timed in a pseudo-terminal, from the start of the process until the rows of the workloads have been
written, against a bare Textual app that shows one Static. The two alternate, so that a busy moment meets both. Then,
at 80x24, the keys and the seconds from the command to each of the five answers that a newcomer asks for, of a recorded
program in the list of Start. Exits 1 when a ratio of medians, or a number of keys, is past its limit.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from keys import kept
from terminal import Terminal
from tui import recorded

FRAME_LIMIT = 1.7
HELP_LIMIT = 1.4
BARE = """
from textual.app import App
from textual.widgets import Static
class Bare(App):
    def compose(self):
        yield Static("bare-ready")
Bare().run()
"""
APP = "import sys; from jaxprof.tui.shell.launch import launch; sys.exit(launch())"

HERE = "import os, sys; os.chdir(sys.argv[1]); " + APP
ANSWERS = (
    ("what costs most", ("\r",), b"saves"),
    ("which line", ("\r",), rb"train\.py:91"),
    ("why was it compiled again", ("\r", "3"), b"shape of x"),
    ("does it fit", ("\r", "6"), b"It fits"),
    ("which of two is faster", (" ", "c"), b"first"),
)
"""The question, the keys from Start, and what is written."""
MOST_KEYS = 3
SECOND_SCREEN = b"Ledger"
"""What Summary has of a program, and the preview on Start has not."""


def frame(code: str, written: bytes, home: str) -> float:
    """Seconds from the start of the process until `written` was on the screen."""
    terminal = Terminal([sys.executable, "-c", code], environment={"JAXPROF_HOME": home})
    try:
        return terminal.wait(written)
    finally:
        terminal.close()


def next_row(home: str) -> float:
    """Seconds until the row below has the cursor, by a key pressed with the first frame: its explanation is shown."""
    terminal = Terminal([sys.executable, "-c", APP], environment={"JAXPROF_HOME": home})
    try:
        terminal.wait(b"matmul")
        terminal.send(b"\x1b[B")
        return terminal.wait(rb"\(trace")  # only what differs from the line before is written
    finally:
        terminal.close()


def answer(keys: Sequence[str], written: bytes, home: str) -> float:
    """Seconds from the start of the process to an answer, by keys each of which is pressed once the one before it has
    been answered."""
    terminal = Terminal([sys.executable, "-c", HERE, home], environment={"JAXPROF_HOME": home})
    try:
        terminal.wait(b"train")
        for number, key in enumerate(keys):
            before = len(terminal.output)
            terminal.send(key.encode())
            if number < len(keys) - 1:
                terminal.wait(SECOND_SCREEN if key == "\r" else b".", start=before)
        return terminal.wait(written)
    finally:
        terminal.close()


def command(arguments: list[str]) -> float:
    """Seconds that a command takes from start to end."""
    began = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
    return time.perf_counter() - began


def compare(ours: Callable[[], float], theirs: Callable[[], float], rounds: int) -> tuple[list[float], list[float]]:
    """Alternating times of both; one round before is not counted."""
    ours(), theirs()
    pairs = [(ours(), theirs()) for _ in range(rounds)]
    return [pair[0] for pair in pairs], [pair[1] for pair in pairs]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument(
        "--smoke", action="store_true", help="one round; the table has to come out, whatever its figures"
    )
    options = parser.parse_args()
    rounds = 1 if options.smoke else options.rounds
    failed = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has its bytecode
    print(f"{'what':<28}{'jaxprof':>10}{'peer':>10}  {'peer is':<30}{'ratio':>7}{'spread':>14}{'limit':>7}")
    with tempfile.TemporaryDirectory() as home:
        (Path(home) / "sessions").mkdir()
        rows = [
            ("first frame, with its rows", lambda: frame(APP, b"matmul", home),
             lambda: frame(BARE, b"bare-ready", home), "bare Textual app, one Static", FRAME_LIMIT),
            ("jaxprof --help", lambda: command(["-m", "jaxprof", "--help"]), lambda: command(["-c", "import click"]),
             "python -c 'import click'", HELP_LIMIT),
        ]  # fmt: skip
        for name, ours, theirs, peer, limit in rows:
            mine, others = compare(ours, theirs, rounds)
            ratio = statistics.median(mine) / statistics.median(others)
            ratios = sorted(a / b for a, b in zip(mine, others, strict=True))
            spread = f"{ratios[len(ratios) // 4]:.2f}-{ratios[-1 - len(ratios) // 4]:.2f}"
            failed |= ratio > limit
            print(
                f"{name:<28}{statistics.median(mine):>8.3f} s{statistics.median(others):>8.3f} s  {peer:<30}"
                f"{ratio:>6.2f}×{spread:>14}{limit:>6.1f}×{'  PAST ITS LIMIT' if ratio > limit else ''}"
            )
        moved = statistics.median(next_row(home) for _ in range(min(5, rounds)))
        print(f"{'the cursor moved':<28}{moved:>8.3f} s   (by a key pressed with the first frame)")
        for name in ("train", "older"):
            kept(recorded.finished(), Path(home) / "sessions" / f"{name}.jaxprof")
        for question, keys, written in ANSWERS:
            took = statistics.median(answer(keys, written, home) for _ in range(min(5, rounds)))
            failed |= len(keys) > MOST_KEYS
            print(f"{question:<28}{took:>8.3f} s   {len(keys)} keys of at most {MOST_KEYS}, from the command")
    return 1 if failed and not options.smoke else 0


if __name__ == "__main__":
    sys.exit(main())
