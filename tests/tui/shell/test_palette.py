"""The palette finds actions by name or key, and what sessions hold; a choice goes there."""

from textual.widgets import Input

from folding import written
from jaxprof import events as e
from jaxprof.tui.hlo.kernels import KernelTable
from jaxprof.tui.program.ledger import LedgerList
from jaxprof.tui.shell.actions import PLACEHOLDER, of_session
from tui import recorded
from tui.fakes import walking
from tui.hlo_texts import program_tape


async def choose(walk, words, line):
    """Types words into the palette, and takes the first line, which is this one."""
    await walk.press("ctrl+p", PLACEHOLDER)
    palette = walk.screen
    walk.find(Input).value = words
    await walk.shows(line)
    await walk.press("enter")
    if walk.app.screen_stack[-1] is palette:  # it has only gone to the line
        await walk.press("enter")


async def test_actions_kernels_and_kept_sessions_are_found_and_gone_to(shelf):
    tape = recorded.finished()
    async with walking() as walk:
        await choose(walk, "Start", "1         Start")
        await walk.mode("home")
        measured = program_tape()
        times = [e.KernelTimes(name="tanh_fusion", self_seconds=2e-3)]
        measured.events.append(e.KernelsMeasured(run="r1", kind="run", calls=10, rows=times))
        walk.app.set_session(measured.session(), None)
        await choose(walk, "tanh_fus", "kernel    tanh_fusion")
        await walk.on("HloScreen")
        table = walk.find(KernelTable)
        await walk.until(lambda: table.ranked is not None and table.ranked.kernel.name == "tanh_fusion")
        written(shelf / "a-night-run.jaxprof", tape.events, tape.header)
        await choose(walk, "night", "session   a-night-run")
        await walk.until(lambda: walk.app.session_path == shelf / "a-night-run.jaxprof")


async def test_functions_and_lines_lead_to_their_rows():
    async with walking() as walk:
        walk.app.set_session(recorded.finished().session(), None)
        found = {one.name.split()[0]: one for one in reversed(list(of_session(walk.app)))}
        found["function"].callback()
        await walk.on("ProgramScreen")
        ledger = walk.find(LedgerList)
        await walk.until(lambda: ledger.hidden > 0 and ledger.current_row is not None)
        await walk.press("escape")
        await walk.until(lambda: ledger.hidden == 0, "one step back: the filter is cleared")
        found["line"].callback()
        await walk.until(lambda: walk.app.focused is not None and walk.app.focused.id == "lines")
