"""jaxprof's side of `fidelity.py` with the terminal app live: the run is started in the app, in a pseudo-terminal,
and the app draws it while it goes on.

    python bench/fidelity.py --runner live_app:run_in_app
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
BUDGET_SECONDS = 1.0
PATIENCE_SECONDS = 120.0


def run_in_app(target: str) -> float:
    """jaxprof's median of `target` in seconds, measured from the app while it draws. Raises SystemExit."""
    from jaxprof.session.log import Library
    from terminal import Terminal

    with tempfile.TemporaryDirectory(prefix="jaxprof-") as folder:
        environment = {"JAXPROF_HOME": folder, "PYTHONPATH": str(HERE.parent / "src")}
        terminal = Terminal([sys.executable, str(HERE / "live_app.py"), target], 120, 40, environment)
        library = Library(Path(folder) / "sessions")
        try:
            deadline = time.monotonic() + PATIENCE_SECONDS
            while time.monotonic() < deadline:
                terminal.read(0.1)
                closed = [run for entry in library.entries() for run in entry.closed]
                if closed:
                    if closed[0].status != "ok" or closed[0].median_seconds is None:
                        raise SystemExit(f"{target}: {closed[0].error}")
                    return closed[0].median_seconds
            raise SystemExit(f"{target}: nothing was measured in {PATIENCE_SECONDS:g} s")
        finally:
            terminal.end()


def main(target: str) -> None:
    """The app, with one run of `target` started at once."""
    from jaxprof.events import RunSpec
    from jaxprof.runner import PlannedRun
    from jaxprof.tui.app import JaxprofApp

    spec = RunSpec(
        target=target,
        workload="bench",
        variant="jit",
        how="jit",
        device="cpu:0",
        parameters={},
        preset="quick",
        budget_seconds=BUDGET_SECONDS,
        check=False,
        capture=False,
    )

    app = JaxprofApp()

    async def start(pilot: Any) -> None:
        await pilot.pause()
        app.start_runs([PlannedRun(spec=spec)])

    app.run(auto_pilot=start)


if __name__ == "__main__":
    main(sys.argv[1])
