"""What is imported before the first frame with its rows is there: a start that becomes slower is seen here first."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from waiting import SLOWER

SOURCE = Path(__file__).parents[2] / "src"
UNTIL_THE_FRAME = """
import asyncio, json, sys
from jaxprof.tui.shell.profiler import Profiler
from jaxprof.base.config import read_config
from textual.css.stylesheet import Stylesheet

found, parsed, unseen = [], [], []
parse = Stylesheet.reparse
Stylesheet.reparse = lambda sheet: (parsed.append(sheet), parse(sheet))

def shown(app):
    if not found and app.screen_stack and any(rows.size for rows in app.screen.query("StartList")):
        found.extend(sorted(sys.modules))
        unseen.extend(widget.id for widget in app.screen.walk_children() if not widget.visual_style.foreground.a)

Profiler.post_display_hook = shown
app = Profiler(config=read_config())

async def run():
    async with app.run_test(size=(80, 24)) as pilot:
        while not found:
            await pilot.pause(0.01)
asyncio.run(run())
print(json.dumps([found, len(parsed), unseen]))
"""
WAITS = (
    "jax", "jaxlib", "numpy", "scipy", "psutil", "pynvml", "msgspec", "duckdb", "tomllib",
    "jaxprof.hlo", "jaxprof.trace", "jaxprof.report", "jaxprof.engine", "jaxprof.recorder", "jaxprof.query",
    "jaxprof.facts", "jaxprof.stats", "jaxprof.findings",
    "jaxprof.analysis.kernels.measured", "jaxprof.analysis.timeline",
    "jaxprof.tui.kit.dialogs", "jaxprof.tui.results",
    "jaxprof.tui.shell.actions", "jaxprof.tui.program", "jaxprof.tui.profile.screen",
)  # fmt: skip
"""What the first frame shows nothing of. Libraries come in threads afterwards, screens and dialogs when they are gone
to."""
MOST_OWN = 46
"""Files of ours. Each costs a millisecond and more."""


@pytest.mark.process
def test_the_first_frame_waits_for_nothing_that_it_does_not_show(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", UNTIL_THE_FRAME],
        capture_output=True,
        text=True,
        env={
            "PYTHONPATH": str(SOURCE),
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "JAXPROF_HOME": str(tmp_path),
        },
        cwd=tmp_path,
        timeout=120 * SLOWER,
    )
    assert done.returncode == 0, done.stderr
    modules, parsed, unseen = json.loads(done.stdout.splitlines()[-1])
    assert "jaxprof.tui.home.screen" in modules
    assert [name for name in modules for waits in WAITS if f"{name}.".startswith(f"{waits}.")] == []
    own = [name for name in modules if name.startswith("jaxprof")]
    assert len(own) <= MOST_OWN, own
    assert not parsed  # the styles were read once, with the colours of the theme
    assert unseen == [], "text in the colour of its background"
