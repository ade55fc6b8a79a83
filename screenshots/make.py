"""Pictures of every screen, from real runs on this machine: `python screenshots/make.py` (about three minutes).

A session is recorded first, through the same queue that the app uses; then the app is opened on it without a
terminal, at two sizes, and each screen is written as SVG beside this script. The Run screen is taken from a run that
is really going on.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

HERE = Path(__file__).resolve().parent
SIZES = {"": (120, 40), "-80x24": (80, 24)}
WORKLOADS = ("selu", "batch-matmul-mean", "mlp-train-step")
PATIENCE_SECONDS = 120.0


def record(folder: Path) -> Path:
    """A finished session of several workloads, and of one sweep, in `folder`."""
    from jaxprof.store import Library, LogWriter, new_header
    from jaxprof.worker import Choice, Conductor, find_interpreter, plan_runs
    from jaxprof.workloads import built_in
    from jaxprof.workloads.model import card

    header = new_header(command=["jaxprof", "run", *WORKLOADS])
    path = Library(folder / "sessions").new_path(header)
    conductor = Conductor(LogWriter(header, path), find_interpreter(), lambda batch: None)
    conductor.add(plan_runs([card(built_in(name)) for name in WORKLOADS], Choice(budget_seconds=1.0)))
    conductor.run()
    conductor.close()
    return path


def record_sweep(folder: Path) -> Path:
    """A finished session of selu over a range of sizes."""
    from jaxprof.store import Library, LogWriter, new_header
    from jaxprof.worker import Choice, Conductor, find_interpreter, plan_runs
    from jaxprof.workloads import built_in
    from jaxprof.workloads.model import card

    header = new_header(command=["jaxprof", "run", "selu", "--sweep", "n=1e2..1e7"])
    path = Library(folder / "sessions").new_path(header)
    conductor = Conductor(LogWriter(header, path), find_interpreter(), lambda batch: None)
    choice = Choice(sweep="n=1e2..1e7:6", variants=["jit"], budget_seconds=0.5, capture=False)
    conductor.add(plan_runs([card(built_in("selu"))], choice))
    conductor.run()
    conductor.close()
    return path


async def until(condition: Callable[[], bool], pause: Callable[[], Awaitable[None]]) -> None:
    """Waits for a condition. Raises TimeoutError."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not condition():
            await pause()


async def take(path: Path, sweep: Path) -> None:
    """All screens on finished sessions, and the Run screen on one that goes on."""
    from jaxprof.tui.app import JaxprofApp

    for suffix, size in SIZES.items():
        app = JaxprofApp(path)
        async with app.run_test(size=size) as pilot:

            async def pause() -> None:
                await pilot.pause(0.1)

            def shoot(name: str, suffix: str = suffix, app: JaxprofApp = app) -> None:
                (HERE / f"{name}{suffix}.svg").write_text(app.export_screenshot(title="jaxprof"))
                print(f"{name}{suffix}.svg")

            await until(lambda app=app: len(app.session.runs) > 0 and bool(app.devices.devices), pause)
            await pilot.pause(2.5)  # a few readings, so that the sparklines have a shape
            await pilot.press("1")
            await pilot.pause(0.5)
            shoot("home")
            for key, name in (("3", "results"), ("4", "hlo"), ("5", "sessions")):
                await pilot.press(key)
                await pilot.pause(2.0)
                shoot(name)
            await pilot.press("3", "down", "down", "enter")
            await pilot.pause(1.0)
            shoot("detail")
            await pilot.press("escape", "question_mark")
            await pilot.pause(0.5)
            shoot("help")
            await pilot.press("escape")
            app.open_session(sweep)
            await until(lambda app=app: app.session_path == sweep, pause)
            await pilot.press("3")
            await pilot.pause(1.0)
            shoot("sweep")

        app = JaxprofApp()
        async with app.run_test(size=size) as pilot:
            await pilot.pause(1.0)
            await pilot.press("down", "down", "enter")
            await until(
                lambda app=app: any(
                    len(run.samples("run")) > 20 for run in app.session.runs.values() if run.plan.how == "jit"
                ),
                pause,
            )
            (HERE / f"run{suffix}.svg").write_text(app.export_screenshot(title="jaxprof"))
            print(f"run{suffix}.svg")
            app.live.close()


def main() -> None:
    """Everything, in a state folder of its own."""
    with tempfile.TemporaryDirectory(prefix="jaxprof-") as folder:
        os.environ["JAXPROF_HOME"] = folder
        path, sweep = record(Path(folder)), record_sweep(Path(folder))
        asyncio.run(take(path, sweep))


if __name__ == "__main__":
    sys.exit(main())
