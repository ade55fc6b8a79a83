"""Pictures of every screen, from real runs on this machine: `python screenshots/make.py` (about five minutes).

A session is recorded first, through the same queue that the app uses; then the app is opened on it without a
terminal, at two sizes, and each screen is written as SVG beside this script. The Run screen is taken from a run that
is really going on.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from textual.pilot import Pilot

    from jaxprof.tui.app import JaxprofApp

HERE = Path(__file__).resolve().parent
ROOT = str(HERE.parent)
SIZES = {"": (120, 40), "-80x24": (80, 24)}
WORKLOADS = ("selu", "batch-matmul-mean", "mlp-train-step")
PATIENCE_SECONDS = 120.0
PROGRAM = """\
import jax
import jax.numpy as jnp
import numpy as np


def batches(count):
    random = np.random.default_rng(0)
    for number in range(count):
        size = 256 if number % 5 else 160 + number
        x = np.sort(random.standard_normal((size, 256), dtype=np.float32), axis=1)
        yield x, x[:, :1] * 0.5


def loss(weights, x, y):
    return jnp.mean((jnp.tanh(x @ weights["in"]) @ weights["out"] - y) ** 2)


@jax.jit
def train_step(weights, x, y):
    value, gradient = jax.value_and_grad(loss)(weights, x, y)
    return jax.tree.map(lambda w, g: w - 0.001 * g, weights, gradient), value


weights = {"in": jnp.full((256, 512), 0.01), "out": jnp.full((512, 1), 0.01)}
history = []
for step, (x, y) in enumerate(batches(120)):
    weights, value = train_step(weights, x, y)
    history.append(float(value))
    if step % 20 == 0:
        largest = jax.jit(lambda w: jnp.abs(w).max() + step)(weights["in"])
        print(f"step {step}  loss {history[-1]:.4f}  largest {largest:.2f}")
"""
"""A training loop with what people plant in one: ragged batches, a lambda jitted anew, a loss read at each step."""


def in_the_pictures(path: str) -> str:
    """What stands for a folder of this machine, as long as that: each text of a picture has a width."""
    return f"/home/me/{'jaxprof':_<{max(0, len(path) - len('/home/me/'))}}"


def record(folder: Path) -> Path:
    """A finished session of several workloads, and of one sweep, in `folder`."""
    from jaxprof.runner import PlanOptions, Scheduler, find_interpreter, plan_runs
    from jaxprof.session.log import Library, LogWriter, new_header
    from jaxprof.workloads import built_in
    from jaxprof.workloads.model import workload_info

    header = new_header(command=["jaxprof", "run", *WORKLOADS])
    path = Library(folder / "sessions").new_path(header)
    scheduler = Scheduler(LogWriter(header, path), find_interpreter(), lambda batch: None)
    scheduler.add(plan_runs([workload_info(built_in(name)) for name in WORKLOADS], PlanOptions(budget_seconds=1.0)))
    scheduler.run()
    scheduler.close()
    return path


def record_sweep(folder: Path) -> Path:
    """A finished session of selu over a range of sizes."""
    from jaxprof.runner import PlanOptions, Scheduler, find_interpreter, plan_runs
    from jaxprof.session.log import Library, LogWriter, new_header
    from jaxprof.workloads import built_in
    from jaxprof.workloads.model import workload_info

    header = new_header(command=["jaxprof", "run", "selu", "--sweep", "n=1e2..1e7"])
    path = Library(folder / "sessions").new_path(header)
    scheduler = Scheduler(LogWriter(header, path), find_interpreter(), lambda batch: None)
    choice = PlanOptions(sweep="n=1e2..1e7:6", variants=["jit"], budget_seconds=0.5, capture=False)
    scheduler.add(plan_runs([workload_info(built_in("selu"))], choice))
    scheduler.run()
    scheduler.close()
    return path


def record_program(folder: Path) -> Path:
    """The finished recording of a program."""
    from jaxprof.runner import find_interpreter
    from jaxprof.runner.program import ProgramCommand
    from jaxprof.runner.program_run import ProgramScheduler
    from jaxprof.session.log import Library, LogWriter, new_header

    (folder / "train.py").write_text(PROGRAM)
    header = new_header(command=["jaxprof", "script", "train.py"])
    path = Library(folder / "sessions").new_path(header)
    program = ProgramCommand(path="train.py", directory=str(folder))
    scheduler = ProgramScheduler(LogWriter(header, path), find_interpreter(), lambda batch: None, program)
    scheduler.start()
    scheduler.run()
    scheduler.close()
    return path


STEP = """\
import jax.numpy as jnp


def step(x):
    for _ in range({}):
        x = jnp.tanh(x @ x / 23)
    return x.sum()
"""
STEPS = {9: STEP.format(1), 6: STEP.format(3)}
"""A function that is measured so many times, and then edited."""


def record_history(folder: Path) -> None:
    """Sessions of a function, before and after an edit, by the command line."""
    command = [sys.executable, "-m", "jaxprof", "run", "step.py:step", "--variant", "jit", "--arg", "f32[512,512]"]
    for times, source in STEPS.items():
        (folder / "step.py").write_text(source)
        for _ in range(times):
            subprocess.run([*command, "--launches", "1", "--budget", "0.3", "--no-capture"], cwd=folder, check=True)


class Camera:
    """One app without a terminal, at one size, whose screens are written beside this script."""

    def __init__(self, app: JaxprofApp, pilot: Pilot[None], suffix: str) -> None:
        self.app, self.pilot, self.suffix = app, pilot, suffix

    async def until(self, condition: Callable[[], bool]) -> None:
        """Waits for a condition. Raises TimeoutError."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not condition():
                await self.pilot.pause(0.1)

    async def shoot(self, name: str, *keys: str, settle: float = 1.0) -> None:
        """Presses `keys`, lets the screen settle, and writes its picture."""
        await self.pilot.press(*keys)
        await self.pilot.pause(settle)
        picture = self.app.export_screenshot(title="jaxprof")
        for path in (ROOT, os.environ["JAXPROF_HOME"]):
            picture = picture.replace(path, in_the_pictures(path))
        (HERE / f"{name}{self.suffix}.svg").write_text(picture)
        print(f"{name}{self.suffix}.svg")


async def take_finished(camera: Camera, sweep: Path, program: Path) -> None:
    """Every screen on finished sessions."""
    app = camera.app
    await camera.until(lambda: len(app.session.runs) > 0 and app.devices.asked)
    await camera.shoot("home", "1", settle=3.0)  # a few readings, so that the sparklines have a shape
    await camera.shoot("results", "3")
    await camera.shoot("detail", "down", "down", "enter")
    await camera.pilot.press("escape", "home", "space", "down", "space")
    await camera.shoot("compare", "c", settle=3.0)
    await camera.pilot.press("escape")
    await camera.shoot("hlo", "4", settle=3.0)
    await camera.shoot("hlo-text", "enter", settle=2.0)
    await camera.shoot("timeline", "6", "t", settle=3.0)
    await camera.shoot("compile", "b", settle=2.0)
    await camera.shoot("memory", "m", settle=2.0)
    await camera.shoot("sessions", "5", settle=2.0)
    await camera.shoot("help", "question_mark")
    await camera.pilot.press("escape")
    app.open_session(sweep)
    await camera.until(lambda: app.session_path == sweep)
    await camera.shoot("sweep", "3", settle=2.0)
    app.open_session(program)
    await camera.until(lambda: app.session_path == program)
    await camera.shoot("program", "7", "down", "down", "enter", settle=2.0)
    await camera.shoot("findings", "f", settle=2.0)


async def take_history(camera: Camera) -> None:
    """The history of a function that was edited."""
    from jaxprof.tui.history.lists import Measurements

    app = camera.app
    await camera.pilot.press("5")
    await camera.pilot.pause(2.0)
    await camera.pilot.press("H")
    await camera.until(lambda: bool(app.screen.query(Measurements)) and app.screen.query_one(Measurements).count > 0)
    await camera.shoot("history", "enter", *["up"] * 5, settle=2.0)


async def take_running(camera: Camera) -> None:
    """The Run screen while a compiled variant is sampled."""
    from jaxprof.tui.home.workload_list import WorkloadList

    app = camera.app
    await camera.pilot.pause(1.0)
    app.screen.query_one(WorkloadList).focus()  # Home opens on the user's own code
    await camera.pilot.press("down", "down", "enter")
    await camera.until(
        lambda: any(len(run.samples("run")) > 100 for run in app.session.runs.values() if run.plan.how == "jit")
    )
    await camera.shoot("run", settle=0.2)
    app.live.close()


async def take(path: Path, sweep: Path, program: Path, histories: Path) -> None:
    """All pictures, at all sizes."""
    from jaxprof.tui.app import JaxprofApp

    for suffix, size in SIZES.items():
        app = JaxprofApp(path)
        async with app.run_test(size=size) as pilot:
            await take_finished(Camera(app, pilot, suffix), sweep, program)
        app = JaxprofApp()
        app.library_folder = histories
        async with app.run_test(size=size) as pilot:
            await take_history(Camera(app, pilot, suffix))
        app = JaxprofApp()
        async with app.run_test(size=size) as pilot:
            await take_running(Camera(app, pilot, suffix))


def main() -> None:
    """Everything, in a state folder of its own."""
    with tempfile.TemporaryDirectory(prefix="jaxprof-") as folder:
        os.environ["JAXPROF_HOME"] = folder
        path, sweep, program = record(Path(folder)), record_sweep(Path(folder)), record_program(Path(folder))
        histories = Path(folder) / "histories"
        histories.mkdir()
        os.environ["JAXPROF_HOME"] = str(histories)
        record_history(histories)
        os.environ["JAXPROF_HOME"] = folder
        asyncio.run(take(path, sweep, program, histories / "sessions"))


if __name__ == "__main__":
    sys.exit(main())
