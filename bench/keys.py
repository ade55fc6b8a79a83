"""How long the screen is silent after many keys at once, and how many bytes a key sends.

    python bench/keys.py [--keys 140] [--hog] [--rounds 3] [--smoke]

Keys: the app in a pseudo-terminal with a session of every kind of row open; on each screen, 140 keys arrive in one
piece, as from a held key over a slow line. Timed are the first bytes that answer, and the last. The peer is a bare
Textual list with as many rows, in turns with ours. `--hog` burns a core beside both. Bytes: what each change of screen
writes, the first time and when the screen was there before; and each move of its cursor. Exits 1 past a limit.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING

from terminal import Terminal

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui.session_tapes import Tape

APP = """
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
SCREENS = {"1": "Start", "2": "Summary", "3": "Compiles", "4": "Kernels", "5": "Timeline", "6": "Memory"}
SIZES = ((80, 24), (120, 40))
SMOKE = {"2": "Summary", "3": "Compiles"}
QUIET_SECONDS = 0.4
PATIENCE_SECONDS = 4.0
DOWN, UP, RIGHT, LEFT = b"\x1b[B", b"\x1b[A", b"\x1b[C", b"\x1b[D"
"""In turns, so that each burst has somewhere to go."""
SCREEN_BYTES = 1_000
"""A screen is more than this; the readings of the devices on Start are less."""
SWITCH_LIMIT_BYTES = 20_000
"""All cells of 120x40 with their colours are about 70 000, of which most are blank or as they were."""
MOVE_LIMIT_BYTES = 6 * 1024
"""A move of the cursor shows another row, and beside it what that is about: at most most of 120x40 is other text."""
FIRST_LIMIT = 2.0
"""The first answer to a burst, beside the bare list's."""


def kept(tape: Tape, path: Path) -> Path:
    """The events of a tape as a session file."""
    from jaxprof.session import LogWriter

    writer = LogWriter(tape.header, path)
    for event in tape.events:
        writer.append(event)
    writer.close()
    return path


@contextmanager
def opened(home: str, session: Path, size: tuple[int, int], wanted: bytes) -> Iterator[Terminal]:
    """The app with a session in view, once its devices were found."""
    environment = {"JAXPROF_HOME": home}
    terminal = Terminal([sys.executable, "-c", APP, str(session)], *size, environment)
    try:
        terminal.wait(wanted)
        terminal.drain(2.0, most=12.0)
        yield terminal
    finally:
        terminal.end()


def burst(terminal: Terminal, keys: bytes) -> tuple[float, float]:
    """Seconds from the keys, sent at once, to the first bytes that answer them, and to the last; 0 if nothing does."""
    terminal.drain(QUIET_SECONDS, most=5.0)
    terminal.send(keys)
    began = time.perf_counter()
    first = last = 0.0
    while terminal.read(PATIENCE_SECONDS if not first else QUIET_SECONDS):
        last = time.perf_counter() - began
        first = first or last
    return first, last


def written_by(terminal: Terminal, key: str) -> int:
    """Bytes that a key makes the app write."""
    before = len(terminal.output)
    terminal.send(key.encode())
    deadline = time.perf_counter() + PATIENCE_SECONDS
    while len(terminal.output) - before < SCREEN_BYTES and time.perf_counter() < deadline:
        terminal.read(0.1)
    terminal.drain(QUIET_SECONDS, most=8.0)
    return len(terminal.output) - before


def moved(terminal: Terminal, keys: bytes) -> int:
    """Bytes that a move of the cursor makes the app write."""
    terminal.drain(QUIET_SECONDS, most=8.0)
    before = len(terminal.output)
    terminal.send(keys)
    terminal.read(PATIENCE_SECONDS)
    terminal.drain(QUIET_SECONDS, most=8.0)
    return len(terminal.output) - before


def bytes_of_switches(home: str, session: Path, screens: dict[str, str], sizes: Sequence[tuple[int, int]]) -> bool:
    """Prints what each change of screen, and each move of its cursor, writes; whether one is past its limit."""
    past = False
    print(f"{'bytes of a change of screen':<28}" + "".join(f"{name:>10}" for name in screens.values()))
    for size in sizes:
        with opened(home, session, size, b"Runs|Program") as terminal:
            for visit in ("first", "again"):
                counts = [written_by(terminal, key) for key in screens]
                past |= max(counts) > SWITCH_LIMIT_BYTES
                name = f"{size[0]}x{size[1]}, {visit}"
                print(f"{name:<28}" + "".join(f"{count:>10}" for count in counts))
            moves = []
            for key in screens:
                written_by(terminal, key)
                moves.append(max(moved(terminal, arrow) for arrow in (DOWN, UP, RIGHT, LEFT)))
            past |= max(moves) > MOVE_LIMIT_BYTES
            print(f"{f'{size[0]}x{size[1]}, cursor':<28}" + "".join(f"{count:>10}" for count in moves))
    return past


def bursts(home: str, session: Path, keys: int, rounds: int, screens: dict[str, str]) -> bool:
    """Prints how long each screen and the bare list were silent after a burst; whether one is past the limit."""
    past = False
    print(f"{f'{keys} keys at once':<28}{'first':>10}{'final':>10}{'bare first':>12}{'bare final':>12}{'ratio':>8}")
    peer = Terminal([sys.executable, "-c", PEER], 120, 40)
    try:
        peer.wait(b"row-1")
        with opened(home, session, (120, 40), b"Runs|Program") as terminal:
            for key, name in [*screens.items(), ("1", "all screens in turn")]:
                written_by(terminal, key)
                turns, ends = "".join(SCREENS).encode() * (keys // 6), {DOWN: b"2", UP: b"1"}
                pairs = [
                    (
                        burst(terminal, arrow * keys if name in SCREENS.values() else turns + ends[arrow]),
                        burst(peer, arrow * keys),
                    )
                    for _, arrow in zip(range(rounds), cycle((DOWN, UP)), strict=False)
                ]
                first, final = (statistics.median(ours[at] for ours, _ in pairs) for at in (0, 1))
                bare, bare_final = (statistics.median(theirs[at] for _, theirs in pairs) for at in (0, 1))
                if first == 0:
                    print(f"{name:<28}nothing to go down to")
                    continue
                past |= name in SCREENS.values() and first > FIRST_LIMIT * bare
                print(
                    f"{name:<28}{first:>8.3f} s{final:>8.3f} s{bare:>10.3f} s{bare_final:>10.3f} s{first / bare:>7.2f}×"
                )
    finally:
        peer.close()
    return past


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, default=140)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--hog", action="store_true", help="burn both cores beside it")
    parser.add_argument(
        "--smoke",
        action="store_true",
        help="12 keys on two screens, one round; the table has to come out, whatever its figures",
    )
    args = parser.parse_args()
    screens, keys, rounds = (SMOKE, 12, 1) if args.smoke else (SCREENS, args.keys, args.rounds)
    from tui import profiles

    hogs = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(3 if args.hog else 0)]
    try:
        with tempfile.TemporaryDirectory() as home:
            (Path(home) / "sessions").mkdir()
            session = kept(profiles.captured(), Path(home) / "sessions" / "measured.jaxprof")
            past = bytes_of_switches(home, session, screens, SIZES[:1] if args.smoke else SIZES)
            past |= bursts(home, session, keys, rounds, screens)
            return 1 if past and not args.smoke else 0
    finally:
        for hog in hogs:
            hog.kill()


if __name__ == "__main__":
    sys.exit(main())
