"""The HLO screen: kernels with their source, the way to the text and to other stages, and what can go wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from jaxprof import events as e
from jaxprof.session import Session
from jaxprof.tui.hlo.code_view import CodeView
from jaxprof.tui.hlo.kernels import KernelTable
from jaxprof.tui.hlo.roofline import GUTTER, RooflineView, roofline_frame
from jaxprof.tui.hlo.screen import HloScreen
from jaxprof.tui.kit.dialogs import Choose
from jaxprof.tui.kit.fact_list import FactList
from jaxprof.tui.messages import SessionChanged
from tui.fakes import SMALL, Stage, Walk, still, walking
from tui.hlo_texts import FILE, HLO, large_hlo, program_session, program_tape
from tui.session_tapes import HOSTILE, Tape


async def opened(walk: Walk, session: Session, tab: str = "kernels") -> HloScreen:
    """The screen, once everything about the program was worked out."""
    screen = await walk.show(session, "hlo")
    if session.runs:
        await read(walk)
    screen.action_tab(tab)
    await walk.pause()
    return screen


async def read(walk: Walk, name: object = "") -> None:
    """Waits until the program, of a file of this name, is worked out."""

    def over() -> bool:
        found = walk.screen._opened
        return found is not None and found.over and str(name) in found.program.key

    await walk.until(over)
    await walk.pause()


def names(walk: Walk) -> list[str]:
    """The kernels in the order of the table."""
    rows = walk.find(KernelTable).rows
    return [rows.ranking.kernels[number].name for number in rows.numbers]


def current_line(walk: Walk) -> str:
    view = walk.find(CodeView)
    return view.document.line(view.cursor).strip()


async def test_a_small_terminal_leads_from_the_heaviest_kernel_to_its_text_and_back() -> None:
    async with walking(SMALL) as walk:
        screen = await opened(walk, program_session())
        table = walk.find(KernelTable)
        height = screen.query_one("#list-box").size.height
        assert table.count <= height < screen.query_one("#fact-box").size.height, "one kernel and what is known of it"
        assert "GEMM" in walk.row(" dot.1 ", "model.py")
        await walk.shows(f"{FILE}:10 in layer", "share of bytes moved (estimate)")

        await walk.press("down enter", "%grad_fusion = ", f"{FILE}:11")
        assert current_line(walk).startswith("%grad_fusion =")
        await walk.press("up escape")
        assert screen.focused is table
        assert table.ranked.kernel.name == "reduce.1", "the kernel that the text was at"
        await walk.press("/ 'tanh enter", f"{FILE}:11 in layer", "3 hidden")

        await opened(walk, Tape().session())
        tape = Tape()
        tape.plan("r1", "jit", workload="two-layers")
        session = tape.session()
        await walk.show(session, "hlo", "No compiled program")
        session.apply(e.TextRecorded(run="r1", name="hlo", text=HLO, bytes=len(HLO)))
        walk.screen.post_message(SessionChanged(frozenset({"r1"})))
        await walk.shows("dot.1")


async def test_measured_times_unreadable_hlo_and_the_csv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tape = program_tape()
    rows = [e.KernelTimes(name="dot.1", self_seconds=2e-3), e.KernelTimes(name="grad_fusion", self_seconds=6e-3)]
    tape.events.append(e.KernelsMeasured(run="r1", kind="run", calls=10, rows=list(rows)))
    monkeypatch.chdir(tmp_path)
    async with walking(SMALL) as walk:
        await opened(walk, tape.session())
        assert {"75%", "600"} <= set(walk.row("grad_fusion").split())
        assert " - " in walk.row("tanh_fusion"), "what was not measured is unknown"
        await walk.shows("share of measured time", "No capture")
        await walk.press("m V", "Can this capture be trusted?")
        await walk.press("escape")

        await opened(walk, program_session(hlo="nothing [b]like[/b] \x1b[31mHLO"))
        await walk.shows("this is not HLO")
        walk.screen.action_tab("stablehlo")
        await walk.shows("stablehlo.tanh")

        await opened(walk, program_session())
        await walk.press("m E")
        await walk.on(Choose)
        await walk.press("enter")
        await walk.until(lambda: not isinstance(walk.screen, Choose | HloScreen))
        await walk.press("enter")
        await walk.until((tmp_path / "kernels.csv").is_file)
        assert (tmp_path / "kernels.csv").read_text().count("\n") == 5


async def test_stages_barriers_sources_and_the_order_of_the_kernels(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_text("\n" * 9 + "    y = x @ w\n    return jnp.tanh(y / 2)\n")
    async with walking() as walk:
        await opened(walk, program_session())
        await walk.press("enter", "M  jaxpr 2  ·  StableHLO 3")
        view = walk.find(CodeView)
        start = view.cursor
        await walk.press("m M")
        await walk.on(Choose)
        await walk.press("down enter", "[StableHLO]")
        assert "stablehlo.dot_general" in current_line(walk)
        await walk.press("m ,", "[HLO]")
        assert view.cursor == start

        await opened(walk, program_session(), "barriers")
        assert "dot.1" in walk.row(" → ")
        await walk.press("enter", "[Kernels")
        assert walk.find(KernelTable).ranked is not None

        await opened(walk, program_session(file=str(path)))
        await walk.shows("▸10 y = x @ w", " 11 return jnp.tanh(y / 2)")

        await opened(walk, program_session())
        await walk.press("m O", "kernels by named scope · estimate", "self 0 ")
        await walk.press("down down down down down down enter")
        await walk.until(lambda: isinstance(walk.app.focused, CodeView))

        screen = await opened(walk, program_session())
        await walk.press("/ 'grad enter tab")
        facts = screen.query_one("#facts", FactList)
        assert screen.focused is facts
        facts.move_to(next(n for n in range(len(facts.keys)) if "multiply" in facts.draw_row(n, 60).plain))
        await walk.press("enter")
        await walk.until(lambda: current_line(walk).startswith("%multiply.9 ="))

        await opened(walk, program_session())
        table = walk.find(KernelTable)
        table.set_filter("")
        await walk.press("s")
        assert names(walk) == ["dot.1", "grad_fusion", "reduce.1", "tanh_fusion"]
        await walk.press("m S")
        assert names(walk)[0] == "tanh_fusion"
        await walk.press("m g home")
        assert [key[0] for key in table.keys if isinstance(key, tuple)] == ["loop fusion", "GEMM", "reduction"]
        before = len(table.keys)
        await walk.press("enter")
        assert len(table.keys) == before - 2
        await walk.press("m g m g", "by named scope", "▾ attn")


async def test_the_cursor_goes_from_point_to_point_of_the_roofline_and_names_all_that_are_near() -> None:
    async with walking() as walk:
        screen = await opened(walk, program_session(), "roofline")
        await walk.shows("The ceilings of this device are unknown.")
        await walk.press("m d")
        await walk.on(Choose)
        await walk.press("'h200 enter", "share of least time (a lower bound)", "4.80 TB/s")
        kernels, view = walk.find(KernelTable), walk.find(RooflineView)
        frame = roofline_frame(kernels.rows.ranking, kernels.rows.numbers, view.size.width, view.size.height)
        assert frame is not None

        async def chosen(point: Any) -> None:
            await walk.until(lambda: kernels.ranked is not None and kernels.ranked.number == point.number)
            below = walk.text.partition("FLOP/B")[2]
            assert all(kernels.rows.ranking.kernels[number].name in below for number in point.numbers)

        order = sorted(frame.points, key=lambda point: (point.intensity, point.flops_per_second))
        assert len(order) > 2
        kernels.select(order[0].number)
        await walk.press("right")
        await chosen(order[1])
        await walk.press("right left left")
        await chosen(order[0])
        column, row = frame.cell(order[-1])
        await walk.pilot.click(view, offset=(column + GUTTER + 1, row + 1))
        await chosen(frame.near((column, row))[0])
        assert walk.screen is screen


async def test_a_wide_terminal_shows_the_text_and_every_line_that_was_fused(tmp_path: Path) -> None:
    lines = "\n".join(
        f'  a{n + 1} = f32[8] sine(a{n}), metadata={{source_file="/src/m.py" source_line={n + 30}}}' for n in range(12)
    )
    held = f"held {{\n  a0 = f32[8] parameter(0)\n{lines}\n  ROOT r = f32[8] negate(a12)\n}}"
    entry = "ENTRY e {\n  p = f32[8] parameter(0)\n  ROOT f = f32[8] fusion(p), kind=kLoop, calls=held\n}"
    path = tmp_path / "many.hlo"
    path.write_text(f"HloModule m, is_scheduled=true\n\n{held}\n\n{entry}\n")
    async with walking((200, 60)) as walk:
        screen = await opened(walk, program_session())
        await walk.press("down")
        await walk.until(lambda: current_line(walk).startswith("%grad_fusion ="))
        assert screen.focused is walk.find(KernelTable)
        screen.open_file(path)
        await read(walk, path)
        await walk.shows(*(f"m.py:{line}" for line in range(30, 42)))


async def test_hostile_names_are_shown_and_not_obeyed() -> None:
    hostile = HOSTILE.replace("\n", "")
    text = HLO.replace("jit(loss)/jvp(attn)/dot_general", f"jit(loss)/{hostile}/dot_general")
    tape = Tape()
    tape.plan("r1", HOSTILE, workload=HOSTILE)
    tape.add(e.TextRecorded, "r1", name="hlo", text=text, bytes=len(text))
    async with walking() as walk:
        await opened(walk, tape.session())
        await walk.shows("[b]jit[/x]")
        assert not {"\x1b", "\u202e"} & set(walk.text)
        await walk.press("m g m g m g enter m R")
        assert walk.app.is_running


async def test_a_file_is_opened_its_modules_are_chosen_among_and_unread_parts_are_listed(tmp_path: Path) -> None:
    two, whole, cut, before = (tmp_path / name for name in ("two.hlo", "whole.hlo", "cut.hlo", "before.hlo"))
    two.write_text(HLO + HLO.replace("jit_loss", "jit_other").replace("%dot.1", "%dot.2"))
    whole.write_text(HLO)
    cut.write_text(HLO[: HLO.rindex("ROOT")])
    before.write_text("HloModule m\n\nENTRY e {\n  p = f32[8]{0} parameter(0)\n  ROOT r = f32[8]{0} add(p, p)\n}\n")
    async with walking(SMALL) as walk:
        screen = await opened(walk, Tape().session())
        screen.open_file(two)
        await walk.on(Choose)
        await walk.press("down enter", "dot.2", "jit_other")

        screen = await opened(walk, program_session())
        for path, words, absent in (
            (whole, "kernels", "truncated"),
            (cut, "truncated: the text ends", "not optimised"),
            (before, "not optimised: XLA", "kernels ·"),
        ):
            screen.open_file(path)
            await read(walk, path)
            assert words in walk.text
            assert absent not in walk.text
        assert "1 operation" in walk.text
        await walk.press("m f")


@pytest.mark.defects
async def test_a_failed_analysis_is_reported_and_the_text_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(module: object) -> None:
        raise RecursionError("[b]deep[/b]")

    monkeypatch.setattr("jaxprof.hlo.analysis.kernels.kernels", fail)
    async with walking(SMALL) as walk:
        await walk.show(program_session(), "hlo", "RecursionError")
        await walk.press("m i", "%dot.1 = ")


async def test_a_large_program_is_read_in_a_thread_and_the_screen_answers_meanwhile() -> None:
    async with walking(SMALL) as walk:
        walk.app.set_session(program_session(hlo=large_hlo(3000, 98)), None)
        walk.app.action_go("hlo")
        await walk.on(HloScreen)
        await walk.press("]", "[Findings")
        walk.app.set_session(program_session(), None)
        await read(walk)
        await walk.press("[")
        await walk.until(lambda: len(walk.find(KernelTable).keys) == 4, "the program before was given up")


@pytest.mark.parametrize(
    ("tab", "keys", "size"),
    [("kernels", "", (80, 24)), ("kernels", "", (120, 40)), ("hlo", "", (80, 24)), ("roofline", "m d", (120, 40))],
    ids=["kernels-(80, 24)", "kernels-(120, 40)", "hlo-(80, 24)", "roofline"],
)
def test_pictures(snap_compare: Any, tab: str, keys: str, size: tuple[int, int]) -> None:
    stage = Stage()

    async def go(pilot: Pilot[Any]) -> None:
        walk = Walk(stage, pilot)
        await opened(walk, program_session(hlo_before=HLO), tab)
        if keys:
            await walk.press(f"{keys} 'h200 enter")
        await still(pilot)

    assert snap_compare(stage.app, terminal_size=size, run_before=go)
