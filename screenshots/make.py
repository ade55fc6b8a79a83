"""Pictures of every screen, from real runs on this machine: `python screenshots/make.py` (about five minutes).

Sessions are recorded first, of workloads and of `examples/transformer.py`; then the app is opened on them without a
terminal, at two sizes, and each screen is written as SVG beside this script. The picture of runs in progress is taken
from a run that is really going on.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
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
SIZES = {"": (120, 40), "-80x24": (80, 24)}
WORKLOADS = ("selu", "batch-matmul-mean", "mlp-train-step")
PATIENCE_SECONDS = 120.0
MOST_TRIALS = 8
"""How often the ceilings of a busy machine are measured."""
STAND_IN = "/home/me/transformer"
"""What the pictures call the folder that they were taken in, and nobody's machine."""


@contextmanager
def studio() -> Iterator[Path]:
    """A folder with the example as `train.py`, and a state folder of its own, while the block runs.

    Its path is as long as `STAND_IN`, and ends as that does, because each text of a picture has a width.
    """
    before, temporary, ends = Path.cwd(), tempfile.gettempdir(), Path(STAND_IN).name
    parent = Path(temporary) / "".join(choices(ascii_lowercase, k=max(3, len(STAND_IN) - len(f"{temporary}//{ends}"))))
    folder = parent / ends
    folder.mkdir(parents=True)
    shutil.copy(HERE.parent / "examples" / "transformer.py", folder / "train.py")
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


def jaxprof(*words: str) -> None:
    """Run a command, in the studio."""
    subprocess.run([str(Path(sys.executable).with_name("jaxprof")), *words], check=True, stdout=subprocess.DEVNULL)


def kept(folder: Path, name: str) -> Path:
    """Where a session of that name is kept."""
    sessions = folder / ".jaxprof" / "sessions"
    sessions.mkdir(parents=True, exist_ok=True)
    return sessions / f"{name}.jaxprof"


def record(folder: Path) -> Path:
    """A finished session of several workloads and of the example's step, in `folder`."""
    path = kept(folder, "transformer")
    measure_ceilings(folder)
    jaxprof("run", *WORKLOADS, "train.py:train_step", "--budget", "1", "--out", str(path))
    return path


def measure_ceilings(folder: Path) -> None:
    """Measure what this machine can do, which the roofline has; again where it was busy meanwhile."""
    from jaxprof.analysis.runs.ceilings import MEMORY, session_rates
    from jaxprof.session import Session
    from jaxprof.session.log import load

    known: set[str] = set()
    for number in range(MOST_TRIALS):
        path = folder.parent / f"ceilings-{number}.jaxprof"
        jaxprof("run", "gemm-peak", "triad", "--launches", "1", "--budget", "1", "--no-capture", "--out", str(path))
        known |= set(session_rates(load(path, Session), "cpu:0"))
        if {MEMORY, "f32"} <= known:
            return
    raise SystemExit(f"this machine is busy: in {MOST_TRIALS} trials its ceilings were not measured")


def record_sweep(folder: Path) -> Path:
    """A finished session of selu over a range of sizes."""
    path = kept(folder, "sweep")
    jaxprof("run", "selu", "--variant", "jit", "--sweep", "n=1e2..1e7:6", "--budget", "0.5", "--no-capture",
            "--out", str(path))  # fmt: skip
    return path


def record_program(folder: Path) -> Path:
    """The finished recording of the example as a program."""
    from jaxprof.runner.interpreter import find_interpreter
    from jaxprof.runner.program import ProgramCommand
    from jaxprof.runner.program_run import ProgramScheduler
    from jaxprof.session.log import LogWriter, new_header

    header = new_header(command=["jaxprof", "script", "train.py"])
    path = kept(folder, "train")
    program = ProgramCommand(path="train.py", directory=str(folder))
    scheduler = ProgramScheduler(LogWriter(header, path), find_interpreter(), lambda batch: None, program)
    scheduler.start()
    scheduler.run()
    scheduler.close()
    return path


def record_job(folder: Path) -> Path:
    """The finished recording of a job of four processes, of which one makes its input more slowly."""
    shutil.copy(HERE.parent / "examples" / "data_parallel.py", folder / "data_parallel.py")
    path = folder / "data_parallel.jaxprof.d"
    jaxprof("script", "-n", "4", "--out", str(path), "data_parallel.py", "--slow", "2", "--steps", "500")
    return path


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


async def take_finished(camera: Camera, sweep: Path, program: Path) -> None:
    """Every screen on finished sessions."""
    app = camera.app
    await camera.until(lambda: len(app.session.runs) > 0 and app.devices.asked)
    await camera.shoot("home", "1", on="HomeScreen", settle=3.0)  # a few readings, so that the sparklines have a shape
    app.switch_mode("results")
    await camera.shoot("results", on="ResultsScreen")
    await camera.shoot("detail", "down", "down", "enter", on="ResultsScreen")
    await camera.pilot.press("escape", "home", "space", "down", "space")
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


async def take(path: Path, sweep: Path, program: Path, job: Path) -> None:
    """All pictures, at all sizes."""
    from jaxprof.tui.shell.profiler import Profiler

    for suffix, size in SIZES.items():
        app = Profiler(path)
        async with app.run_test(size=size) as pilot:
            await take_finished(Camera(app, pilot, suffix), sweep, program)
        app = Profiler()
        async with app.run_test(size=size) as pilot:
            await take_job(Camera(app, pilot, suffix), job)
        app = Profiler()
        async with app.run_test(size=size) as pilot:
            await take_running(Camera(app, pilot, suffix))


def main() -> None:
    """Everything, in a state folder of its own."""
    with studio() as folder:
        path, sweep, program, job = (make(folder) for make in (record, record_sweep, record_program, record_job))
        asyncio.run(take(path, sweep, program, job))


if __name__ == "__main__":
    sys.exit(main())
