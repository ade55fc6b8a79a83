"""The first minute with jaxprof as a film for the README: `python screenshots/first_minute.py` (about a minute).

The app runs the example program without a terminal, keys are pressed, and what the screen then shows is the film. What
happens is real, and so are its figures; only the time between two keys is that of a reader.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from film import Film
from make import HERE, PATIENCE_SECONDS, picture_of, studio

if TYPE_CHECKING:
    from textual.pilot import Pilot

    from jaxprof.tui.shell.profiler import Profiler

SIZE = (108, 30)
LIVE_SECONDS = 0.7
"""Between two frames of a program that runs."""
SHOWN_SECONDS = 0.35
"""How long each of them is seen."""
COMMAND = "$ jaxprof train.py"
WARM = 3
"""Compilations of the example, after which it trains for some time."""


class Director:
    """Presses keys, and has what is then on the screen filmed."""

    def __init__(self, app: Profiler, pilot: Pilot[None]) -> None:
        self.app, self.pilot, self.film = app, pilot, Film()

    def shoot(self, seconds: float, caption: str) -> None:
        """What is on the screen now, for so many seconds."""
        self.film.add(picture_of(self.app), seconds, caption)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Waits for a condition. Raises TimeoutError."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not condition():
                await self.pilot.pause(0.1)

    async def press(self, keys: str, seconds: float, caption: str, *, settle: float = 1.5) -> None:
        """Presses keys, and films what they bring."""
        await self.pilot.press(*keys.split())
        await self.pilot.pause(settle)
        self.shoot(seconds, caption)


async def film(folder: Path) -> Film:
    """The whole of it."""
    from jaxprof.runner.program import ProgramCommand
    from jaxprof.tui.kit.captures import last_window
    from jaxprof.tui.shell.profiler import Profiler

    app = Profiler(program=ProgramCommand(path="train.py", directory=str(folder)))
    async with app.run_test(size=SIZE) as pilot:
        director = Director(app, pilot)
        await director.until(lambda: bool(app.session.runs))
        await pilot.pause(1.0)
        director.shoot(1.2, COMMAND)
        run = next(iter(app.session.runs.values()))
        captured = False
        while app.session_grows:
            await pilot.pause(LIVE_SECONDS)
            if not captured and run.program is not None and len(run.program.compiled) >= WARM:
                captured = True
                await director.press("w", 1.5, "w  The profiler is switched on for a moment", settle=0.3)
            doing = "training, while two seconds are captured" if captured else "compiling"
            director.shoot(SHOWN_SECONDS, f"{COMMAND}    {doing}")
        await director.until(lambda: last_window(app.session)[1] != "")
        await pilot.pause(3.0)
        director.shoot(3.0, f"{COMMAND}    it has ended: what costs most is above")
        await director.press("3", 4.5, "3  Compiles: what was compiled again, and why")
        await director.press("2", 4.5, "2  Summary: what costs most, and what a change would save")
        await director.press("5 m O", 4.5, "5 m O  The flame graph: which lines took the time")
        await director.press("4", 4.5, "4  Kernels of the captured steps, as measured", settle=4.0)
        await director.press("6", 4.0, "6  Memory: what is alive at the peak", settle=4.0)
        for _ in range(4):
            await director.press("m comma m comma", 0.8, "6  Memory: what is alive, from change to change", settle=0.5)
        await director.press("5", 4.0, "5  The timeline of the captured steps", settle=4.0)
        await director.press("plus plus plus", 3.0, "5  The timeline, closer")
    return director.film


def main() -> None:
    """The film, beside this script."""
    with studio() as folder:
        shutil.copy(HERE.parent / "examples" / "transformer.py", folder / "train.py")
        picture = asyncio.run(film(folder)).svg()
    (HERE / "first-minute.svg").write_text(picture)
    print(f"first-minute.svg, {len(picture) / 1024:.0f} KiB")


if __name__ == "__main__":
    sys.exit(main())
