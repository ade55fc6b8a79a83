"""Pictures of every screen: `python screenshots/make.py` (about two minutes).

The app is opened without a terminal, at two sizes, on the sessions that `record.py` has kept, and each screen is
written as SVG beside this script. Runs in progress are really going on while their picture is taken; the GPUs on Start
are made up (`eight_gpus.py`). `made_of.json` says of which code the pictures were made; with `--check` nothing is
drawn, and it exits 1 where that code, or a session, is another by now.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import choices
from string import ascii_lowercase
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from textual.pilot import Pilot

    from jaxprof.tui.shell.profiler import Profiler

HERE = Path(__file__).resolve().parent
ROOT = str(HERE.parent)
SESSIONS = HERE / "sessions"
MADE_OF = HERE / "made_of.json"
SHOWN = ("src/jaxprof/tui", "src/jaxprof/report", "screenshots")
SOURCES = (".py", ".tcss", ".js", ".css", ".jaxprof", ".jsonl")
"""What pictures are made of, and its kinds of files."""
SIZES = {"": (120, 40), "-80x24": (80, 24)}
PATIENCE_SECONDS = 120.0
STAND_IN = "/home/me/transformer"
"""What the pictures call the folder that they were taken in, and nobody's machine."""


@contextmanager
def studio() -> Iterator[Path]:
    """A folder with a state folder of its own, while the block runs.

    Its path is as long as `STAND_IN`, and ends as that does, because each text of a picture has a width.
    """
    before, temporary, ends = Path.cwd(), tempfile.gettempdir(), Path(STAND_IN).name
    parent = Path(temporary) / "".join(choices(ascii_lowercase, k=max(3, len(STAND_IN) - len(f"{temporary}//{ends}"))))
    folder = parent / ends
    folder.mkdir(parents=True)
    os.environ["JAXPROF_HOME"] = str(folder / ".jaxprof")
    os.chdir(folder)
    try:
        yield folder
    finally:
        os.chdir(before)
        shutil.rmtree(parent)


def in_the_pictures(text: str) -> str:
    """A picture, or a page, without the folders of this machine."""
    text = text.replace(str(Path(os.environ["JAXPROF_HOME"]).parent), STAND_IN)
    return text.replace(ROOT, f"/home/me/{'jaxprof':_<{max(0, len(ROOT) - len('/home/me/'))}}")


def picture_of(app: Profiler) -> str:
    """What is on the screen, as SVG."""
    return in_the_pictures(app.export_screenshot(title="jaxprof"))


def shelf(folder: Path) -> Path:
    """The kept sessions, as those of a user who recorded them just now."""
    if not SESSIONS.is_dir():
        sys.exit("no sessions are kept here: python screenshots/record.py records them, on an idle machine")
    sessions = folder / ".jaxprof" / "sessions"
    shutil.copytree(SESSIONS, sessions, copy_function=shutil.copyfile)
    for name in ("train.py", "data_parallel.py"):
        shutil.copy(HERE.parent / "examples" / {"train.py": "transformer.py"}.get(name, name), folder / name)
    return sessions


class Camera:
    """One app without a terminal, at one size, whose screens are written beside this script."""

    def __init__(self, app: Profiler, pilot: Pilot[None], suffix: str) -> None:
        self.app, self.pilot, self.suffix = app, pilot, suffix

    async def until(self, condition: Callable[[], bool]) -> None:
        """Waits for a condition. Raises TimeoutError."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not condition():
                await self.pilot.pause(0.1)

    async def shoot(self, name: str, *keys: str, on: str = "", settle: float = 1.0) -> None:
        """Presses `keys`, lets the screen settle, and writes its picture. Raises RuntimeError if the screen is of
        another class than `on`: its keys have changed."""
        await self.pilot.press(*keys)
        await self.pilot.pause(settle)
        if on and type(self.app.screen).__name__ != on:
            raise RuntimeError(f"{name}: {' '.join(keys)} leads to {type(self.app.screen).__name__}, not to {on}")
        (HERE / f"{name}{self.suffix}.svg").write_text(picture_of(self.app))
        print(f"{name}{self.suffix}.svg")


async def take_finished(camera: Camera, sessions: Path) -> None:
    """Every screen on finished sessions."""
    sweep, program = sessions / "sweep.jaxprof", sessions / "train.jaxprof"
    app = camera.app
    await camera.until(lambda: len(app.session.runs) > 0 and app.devices.asked)
    await camera.shoot("home", "1", on="HomeScreen", settle=3.0)  # a few readings, so that the sparklines have a shape
    app.switch_mode("results")
    await camera.shoot("results", *["down"] * 8, on="ResultsScreen")
    await camera.shoot("detail", "enter", on="ResultsScreen")
    await camera.pilot.press("escape", "end", "space", "up", "space")
    await camera.shoot("compare", "c", settle=3.0)
    await camera.pilot.press("escape")
    app.switch_mode("results")
    await camera.pilot.pause()
    await camera.pilot.press("end")  # the step of the example, compiled
    await camera.shoot("hlo", "4", on="HloScreen", settle=4.0)
    await camera.shoot("hlo-text", "enter", on="HloScreen", settle=2.0)
    await camera.pilot.press("escape")
    await camera.shoot("roofline", "m", "4", on="HloScreen", settle=3.0)
    await camera.shoot(
        "timeline", "5", "m", "t", "down", *["m", "full_stop"] * 12, *["plus"] * 3, on="ProfileScreen", settle=3.0
    )
    await camera.shoot("compile", "m", "b", on="ProfileScreen", settle=2.0)
    await camera.shoot("memory", "6", on="ProfileScreen", settle=2.0)
    await camera.shoot("help", "question_mark")
    await camera.pilot.press("escape")
    app.open_session(sweep)
    await camera.until(lambda: app.session_path == sweep)
    app.switch_mode("results")
    await camera.shoot("sweep", "home", on="ResultsScreen", settle=2.0)
    app.open_session(program)
    await camera.until(lambda: app.session_path == program)
    app.switch_mode("program")
    await camera.shoot("program", "3", "down", on="ProgramScreen", settle=2.0)
    await camera.shoot("findings", "m", "f", on="ProgramScreen", settle=2.0)
    await camera.shoot("flame", "5", "m", "O", on="ProfileScreen", settle=2.0)


async def take_job(camera: Camera, job: Path) -> None:
    """A job of several processes."""
    from jaxprof.tui.job.processes import ProcessList

    app = camera.app
    app.open_session(job)
    await camera.until(
        lambda: bool(app.screen.query(ProcessList)) and app.screen.query_one(ProcessList).grid is not None
    )
    await camera.shoot("job", *["right"] * 6, on="JobScreen", settle=2.0)


async def take_running(camera: Camera) -> None:
    """The runs while a compiled variant is sampled."""
    from jaxprof.tui.home.start_list import StartList

    app = camera.app
    await camera.pilot.pause(1.0)
    rows = app.screen.query_one(StartList)
    rows.move_to_key("selu")
    await camera.pilot.press("enter")
    await camera.until(
        lambda: any(len(run.samples("run")) > 100 for run in app.session.runs.values() if run.plan.how == "jit")
    )
    await camera.shoot("run", settle=0.2)
    app.live.close()


async def take(sessions: Path) -> None:
    """All pictures, at all sizes."""
    from eight_gpus import EightGpus

    from jaxprof.tui.shell.profiler import Profiler

    for suffix, size in SIZES.items():
        app = Profiler(sessions / "transformer.jaxprof", devices=EightGpus)
        async with app.run_test(size=size) as pilot:
            await take_finished(Camera(app, pilot, suffix), sessions)
        app = Profiler()
        async with app.run_test(size=size) as pilot:
            await take_job(Camera(app, pilot, suffix), sessions / "data_parallel.jaxprof.d")
        app = Profiler()
        async with app.run_test(size=size) as pilot:
            await take_running(Camera(app, pilot, suffix))


def made_of() -> dict[str, str]:
    """A hash of each folder that the pictures show."""
    return {folder: hash_of(HERE.parent / folder) for folder in SHOWN}


def hash_of(folder: Path) -> str:
    files = sorted(path for path in folder.rglob("*") if path.suffix in SOURCES)
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:16]


def changed() -> list[str]:
    """The folders that are others by now than when the pictures were made."""
    before = json.loads(MADE_OF.read_text()) if MADE_OF.exists() else {}
    return [folder for folder, hashed in made_of().items() if before.get(folder) != hashed]


def main() -> int:
    """Everything, in a state folder of its own."""
    if sys.argv[1:] == ["--check"]:
        print(f"the pictures are older than {', '.join(changed())}" if changed() else "the pictures are current")
        return int(bool(changed()))
    with studio() as folder:
        asyncio.run(take(shelf(folder)))
    MADE_OF.write_text(json.dumps(made_of(), indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
