"""The HLO screen: kernels with their source, the way to the text and to other stages, and what can go wrong."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from jaxprof import events as e
from jaxprof.analysis.ranking import RooflinePoint
from jaxprof.session import Session
from jaxprof.tui.hlo.code_view import CodeView
from jaxprof.tui.hlo.kernels import KernelTable
from jaxprof.tui.hlo.roofline import GUTTER, RooflineView, roofline_frame
from jaxprof.tui.hlo.screen import HloScreen
from jaxprof.tui.kit.dialogs import Choose
from jaxprof.tui.kit.fact_list import FactList
from tui.fakes import Stage, until
from tui.hlo_texts import FILE, HLO, large_hlo, program_session, program_tape
from tui.session_tapes import HOSTILE, Tape

_PLACED = re.compile(r'<text[^>]*? x="([\d.]+)" y="([\d.]+)"[^>]*>([^<]*)</text>')
_COLUMN = 12.2
"""Width of a column in a picture of the screen."""


def screen_text(app: Any) -> str:
    """What the screen shows, each text in its columns."""
    rows: dict[float, str] = {}
    for x, y, text in _PLACED.findall(app.export_screenshot()):
        column = round(float(x) / _COLUMN)
        row = rows.get(float(y), "")
        rows[float(y)] = row.ljust(column)[:column] + unescape(text).replace("\xa0", " ") + row[column + len(text) :]
    return "\n".join(rows[y] for y in sorted(rows))


async def test_a_small_terminal_leads_from_the_heaviest_kernel_to_its_text_and_back() -> None:
    stage = Stage()
    async with stage.app.run_test(size=(80, 24)) as pilot:
        await shown(stage, pilot, program_session())
        screen = stage.app.screen
        height = screen.query_one("#list-box").size.height
        assert height < screen.query_one("#fact-box").size.height, "one kernel and what is known of it"
        assert height >= screen.query_one(KernelTable).count

        await shown(stage, pilot, program_session())
        text = screen_text(stage.app)
        assert f"{FILE}:10 in layer" in text
        assert "GEMM" in row_of(stage, " dot.1 ", "model.py")
        assert "share of bytes moved (estimate)" in text

        await shown(stage, pilot, program_session())
        await pilot.press("down", "enter")
        await pilot.pause()
        assert current_line(stage).strip().startswith("%grad_fusion =")
        assert "%grad_fusion = " in screen_text(stage.app)
        assert f"{FILE}:11" in screen_text(stage.app)
        await pilot.press("up", "escape")
        await pilot.pause()
        assert stage.app.screen.focused is table(stage)
        ranked = table(stage).ranked
        assert ranked is not None
        assert ranked.kernel.name == "reduce.1", "the kernel that the text was at"

        await shown(stage, pilot, program_session())
        await pilot.press("slash", *"tanh", "enter")  # six
        await pilot.pause()
        assert f"{FILE}:11 in layer" in screen_text(stage.app)
        assert "3 hidden" in screen_text(stage.app)


async def shown(stage: Stage, pilot: Pilot[Any], session: Session) -> HloScreen:
    """The HLO screen, once everything about the program was worked out."""
    stage.app.set_session(session, None)
    stage.app.action_go("hlo")
    await until(pilot, lambda: isinstance(stage.app.screen, HloScreen))
    screen = stage.app.screen
    assert isinstance(screen, HloScreen)
    await until(pilot, lambda: not session.runs or (screen._opened is not None and screen._opened.over))
    await pilot.pause()
    return screen


def table(stage: Stage) -> KernelTable:
    return stage.app.screen.query_one(KernelTable)


def names(stage: Stage) -> list[str]:
    """The kernels in the order of the table."""
    ranking = table(stage).rows.ranking
    return [ranking.kernels[number].name for number in table(stage).rows.numbers]


def view(stage: Stage) -> CodeView:
    return stage.app.screen.query_one(CodeView)


def current_line(stage: Stage) -> str:
    return view(stage).document.line(view(stage).cursor)


def row_of(stage: Stage, *words: str) -> str:
    return next(line for line in screen_text(stage.app).split("\n") if all(word in line for word in words))


async def test_a_wide_terminal_shows_the_text_and_every_line_that_was_fused(tmp_path: Path) -> None:
    stage = Stage()
    lines = "\n".join(
        f'  a{n + 1} = f32[8] sine(a{n}), metadata={{source_file="/src/m.py" source_line={n + 30}}}' for n in range(12)
    )
    held = f"held {{\n  a0 = f32[8] parameter(0)\n{lines}\n  ROOT r = f32[8] negate(a12)\n}}"
    entry = "ENTRY e {\n  p = f32[8] parameter(0)\n  ROOT f = f32[8] fusion(p), kind=kLoop, calls=held\n}"
    path = tmp_path / "many.hlo"
    path.write_text(f"HloModule m, is_scheduled=true\n\n{held}\n\n{entry}\n")
    async with stage.app.run_test(size=(200, 60)) as pilot:
        await shown(stage, pilot, program_session())
        await pilot.press("down")
        await pilot.pause()
        assert current_line(stage).strip().startswith("%grad_fusion =")
        assert stage.app.screen.focused is table(stage)

        screen = await shown(stage, pilot, program_session())
        screen.open_file(path)
        await until(pilot, lambda: screen._opened is not None and str(path) in screen._opened.program.key)
        await until(pilot, lambda: screen._opened is not None and screen._opened.over)
        await pilot.pause()
        text = screen_text(stage.app)
        assert all(f"m.py:{line}" in text for line in range(30, 42))


async def test_sorting_stages_trees_barriers_and_the_flame_graph(tmp_path: Path) -> None:
    stage = Stage()
    path = tmp_path / "model.py"
    path.write_text("\n" * 9 + "    y = x @ w\n    return jnp.tanh(y / 2)\n")
    async with stage.app.run_test(size=(120, 40)) as pilot:
        await shown(stage, pilot, program_session())
        await pilot.press("enter")
        await pilot.pause()
        assert "M  jaxpr 2  ·  StableHLO 3" in screen_text(stage.app)
        start = view(stage).cursor
        await pilot.press("m", "M")
        await until(pilot, lambda: isinstance(stage.app.screen, Choose))
        await pilot.press("down", "enter")
        await until(pilot, lambda: isinstance(stage.app.screen, HloScreen))
        await pilot.pause()
        assert "stablehlo.dot_general" in current_line(stage)
        assert "[StableHLO]" in screen_text(stage.app)
        await pilot.press("m", "comma")
        await pilot.pause()
        assert view(stage).cursor == start
        assert "[HLO]" in screen_text(stage.app)

        screen = await shown(stage, pilot, program_session())
        screen.action_tab("barriers")
        await pilot.pause()
        text = screen_text(stage.app)
        assert "dot.1" in row_of(stage, " → ")
        assert "would save" in text
        await pilot.press("enter")
        await pilot.pause()
        assert "[Kernels" in screen_text(stage.app)
        assert table(stage).ranked is not None

        await shown(stage, pilot, program_session(file=str(path)))
        text = screen_text(stage.app)
        assert "▸10 y = x @ w" in text
        assert " 11 return jnp.tanh(y / 2)" in text

        await shown(stage, pilot, program_session())
        await pilot.press("m", "O")
        await until(pilot, lambda: "kernels by named scope · estimate" in screen_text(stage.app))
        assert "self 0 ns · total" in screen_text(stage.app) or "self 0 B · total" in screen_text(stage.app)
        await pilot.press(*["down"] * 6, "enter")
        await until(pilot, lambda: isinstance(stage.app.focused, CodeView))

        await shown(stage, pilot, program_session())
        screen.action_tab("kernels")
        await pilot.pause()
        await pilot.press("slash", *"grad", "enter", "tab")
        facts = stage.app.screen.query_one("#facts", FactList)
        assert stage.app.screen.focused is facts
        row = next(n for n in range(len(facts.keys)) if "multiply" in facts.draw_row(n, 60).plain)
        facts.move_to(row)
        await pilot.press("enter")
        await pilot.pause()
        assert current_line(stage).strip().startswith("%multiply.9 =")

        await shown(stage, pilot, program_session())
        screen.action_tab("kernels")
        table(stage).set_filter("")
        await pilot.pause()
        await pilot.press("s")
        assert names(stage) == ["dot.1", "grad_fusion", "reduce.1", "tanh_fusion"]
        await pilot.press("m", "S")
        assert names(stage)[0] == "tanh_fusion"
        await pilot.press("m", "g", "home")
        assert [key for key in table(stage).keys if isinstance(key, tuple)] == [
            ("loop fusion",), ("GEMM",), ("reduction",),
        ]  # fmt: skip
        before = len(table(stage).keys)
        await pilot.press("enter")
        assert len(table(stage).keys) == before - 2
        await pilot.press("m", "g", "m", "g")
        await pilot.pause()
        assert "by named scope" in screen_text(stage.app)
        assert "attn" in row_of(stage, "▾ attn")


async def test_the_cursor_goes_from_point_to_point_of_the_roofline_and_names_all_that_are_near() -> None:
    stage = Stage()
    async with stage.app.run_test(size=(120, 40)) as pilot:
        screen = await shown(stage, pilot, program_session())
        screen.action_tab("roofline")
        await pilot.pause()
        assert "The ceilings of this device are unknown." in screen_text(stage.app)
        await pilot.press("m", "d")
        await until(pilot, lambda: isinstance(stage.app.screen, Choose))
        await pilot.press(*"h200", "enter")
        await until(pilot, lambda: isinstance(stage.app.screen, HloScreen))
        kernels = table(stage)
        view = screen.query_one(RooflineView)
        frame = roofline_frame(kernels.rows.ranking, kernels.rows.numbers, view.size.width, view.size.height)
        assert frame is not None
        await pilot.pause()
        assert "share of least time (a lower bound)" in screen_text(stage.app)
        assert "4.80 TB/s" in screen_text(stage.app)

        async def chosen(point: RooflinePoint) -> None:
            await until(pilot, lambda: kernels.ranked is not None and kernels.ranked.number == point.number)
            text = screen_text(stage.app)
            for number in point.numbers:
                assert kernels.rows.ranking.kernels[number].name in text.partition("FLOP/B")[2], "named below the plot"

        order = sorted(frame.points, key=lambda point: (point.intensity, point.flops_per_second))
        assert len(order) > 2
        kernels.select(order[0].number)
        await pilot.press("right")
        await chosen(order[1])
        await pilot.press("right", "left", "left")
        await chosen(order[0])
        column, row = frame.cell(order[-1])
        await pilot.click(view, offset=(column + GUTTER + 1, row + 1))
        await chosen(frame.near((column, row))[0])


async def test_measured_times_unreadable_hlo_and_the_csv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tape = program_tape()
    rows = [e.KernelTimes(name="dot.1", self_seconds=2e-3), e.KernelTimes(name="grad_fusion", self_seconds=6e-3)]
    tape.events.append(e.KernelsMeasured(run="r1", kind="run", calls=10, rows=list(rows)))
    stage = Stage()
    monkeypatch.chdir(tmp_path)
    async with stage.app.run_test(size=(80, 24)) as pilot:
        await shown(stage, pilot, tape.session())
        assert "75%" in row_of(stage, "grad_fusion")
        assert "600 µs" in row_of(stage, "grad_fusion")
        assert " - " in row_of(stage, "tanh_fusion"), "what was not measured is unknown"
        assert "share of measured time" in screen_text(stage.app)
        assert "No capture" in screen_text(stage.app), "and how far they can be trusted"
        await pilot.press("m", "V")
        await until(pilot, lambda: "Can this capture be trusted?" in screen_text(stage.app))
        await pilot.press("escape")

        screen = await shown(stage, pilot, program_session(hlo="nothing [b]like[/b] \x1b[31mHLO"))
        assert "this is not HLO" in screen_text(stage.app)
        screen.action_tab("stablehlo")
        await pilot.pause()
        assert "stablehlo.tanh" in screen_text(stage.app)

        await shown(stage, pilot, program_session())
        await pilot.press("m", "E")
        await until(pilot, lambda: isinstance(stage.app.screen, Choose))
        await pilot.press("enter")
        await until(pilot, lambda: not isinstance(stage.app.screen, Choose | HloScreen))
        await pilot.press("enter")
        await until(pilot, lambda: (tmp_path / "kernels.csv").is_file())
        assert (tmp_path / "kernels.csv").read_text().count("\n") == 5


async def test_hostile_names_are_shown_and_not_obeyed() -> None:
    hostile = HOSTILE.replace("\n", "")
    text = HLO.replace("jit(loss)/jvp(attn)/dot_general", f"jit(loss)/{hostile}/dot_general")
    tape = Tape()
    tape.plan("r1", HOSTILE, workload=HOSTILE)
    tape.add(e.TextRecorded, "r1", name="hlo", text=text, bytes=len(text))
    stage = Stage()
    async with stage.app.run_test(size=(120, 40)) as pilot:
        await shown(stage, pilot, tape.session())
        shown_text = screen_text(stage.app)
        assert "\x1b" not in shown_text
        assert "\u202e" not in shown_text
        assert "[b]jit[/x]" in shown_text
        await pilot.press("m", "g", "m", "g", "m", "g", "enter", "m", "R")
        assert stage.app.is_running


async def test_a_file_is_opened_its_modules_are_chosen_among_and_unread_parts_are_listed(tmp_path: Path) -> None:
    path = tmp_path / "two.hlo"
    path.write_text(HLO + HLO.replace("jit_loss", "jit_other").replace("%dot.1", "%dot.2"))
    stage = Stage()
    whole, cut, before = (tmp_path / name for name in ("whole.hlo", "cut.hlo", "before.hlo"))
    whole.write_text(HLO)
    cut.write_text(HLO[: HLO.rindex("ROOT")])
    before.write_text("HloModule m\n\nENTRY e {\n  p = f32[8]{0} parameter(0)\n  ROOT r = f32[8]{0} add(p, p)\n}\n")
    async with stage.app.run_test(size=(80, 24)) as pilot:
        screen = await shown(stage, pilot, Tape().session())
        screen.open_file(path)
        await until(pilot, lambda: isinstance(stage.app.screen, Choose))
        await pilot.press("down", "enter")
        await until(pilot, lambda: isinstance(stage.app.screen, HloScreen) and "dot.2" in screen_text(stage.app))
        assert "jit_other" in screen_text(stage.app)

        screen = await shown(stage, pilot, program_session())
        for path, words, absent in (
            (whole, "kernels", "truncated"),
            (cut, "truncated: the text ends", "not optimised"),
            (before, "not optimised: XLA", "kernels ·"),
        ):
            screen.open_file(path)
            await until(pilot, lambda path=path: str(path) in (screen._opened.program.key if screen._opened else ""))
            await until(pilot, lambda: screen._opened is not None and screen._opened.over)
            await pilot.pause()
            text = screen_text(stage.app)
            assert words in text
            assert absent not in text
        assert "1 operation" in text
        await pilot.press("m", "f")
        await pilot.pause()


@pytest.mark.defects
async def test_a_failed_analysis_is_reported_and_the_text_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(module: object) -> None:
        raise RecursionError("[b]deep[/b]")

    monkeypatch.setattr("jaxprof.hlo.analysis.kernels.kernels", fail)
    stage = Stage()
    async with stage.app.run_test(size=(80, 24), notifications=True) as pilot:
        stage.app.set_session(program_session(), None)
        stage.app.action_go("hlo")
        await until(pilot, lambda: "RecursionError" in screen_text(stage.app))
        await pilot.press("m", "i")
        await until(pilot, lambda: "%dot.1 = " in screen_text(stage.app))


async def test_a_large_program_is_read_in_a_thread_and_the_screen_answers_meanwhile() -> None:
    stage = Stage()
    async with stage.app.run_test(size=(80, 24)) as pilot:
        stage.app.set_session(program_session(hlo=large_hlo(3000, 98)), None)
        stage.app.action_go("hlo")
        await until(pilot, lambda: isinstance(stage.app.screen, HloScreen) and stage.app.screen.whole)
        screen = stage.app.screen
        assert isinstance(screen, HloScreen)
        await pilot.press("right_square_bracket")
        await until(pilot, lambda: "[Findings" in screen_text(stage.app))
        stage.app.set_session(program_session(), None)
        await until(pilot, lambda: screen._opened is not None and screen._opened.over)
        await pilot.press("left_square_bracket")
        await until(pilot, lambda: len(table(stage).keys) == 4, "the program before was given up")


async def test_a_run_that_is_compiled_while_the_screen_is_in_view_appears() -> None:
    tape = Tape()
    tape.plan("r1", "jit", workload="two-layers")
    session = tape.session()
    stage = Stage()
    async with stage.app.run_test(size=(80, 24)) as pilot:
        stage.app.set_session(session, None)
        stage.app.action_go("hlo")
        await until(pilot, lambda: "No compiled program" in screen_text(stage.app))
        session.apply(e.TextRecorded(run="r1", name="hlo", text=HLO, bytes=len(HLO)))
        from jaxprof.tui.messages import SessionChanged

        stage.app.screen.post_message(SessionChanged(frozenset({"r1"})))
        await until(pilot, lambda: "dot.1" in screen_text(stage.app))


# -- pictures ---------------------------------------------------------------------------------------------------------


def pictured(*keys: str, tab: str = "kernels") -> Any:
    """Goes to the HLO screen, to a tab, and presses keys there."""

    async def go(pilot: Pilot[Any]) -> None:
        stage = Stage.__new__(Stage)
        stage.app = pilot.app  # type: ignore[assignment]
        screen = await shown(stage, pilot, program_session(hlo_before=HLO))
        screen.action_tab(tab)
        await pilot.pause()
        if keys:
            await pilot.press(*keys)
        await pilot.pause(0.05)

    return go


@pytest.mark.parametrize(("tab", "size"), [("kernels", (80, 24)), ("kernels", (120, 40)), ("hlo", (80, 24))], ids=str)
def test_pictures(snap_compare: Any, tab: str, size: tuple[int, int]) -> None:
    assert snap_compare(Stage().app, terminal_size=size, run_before=pictured(tab=tab))


def test_picture_of_the_roofline(snap_compare: Any) -> None:
    keys = ("m", "d", "h", "2", "0", "0", "enter")
    assert snap_compare(Stage().app, terminal_size=(120, 40), run_before=pictured(*keys, tab="roofline"))
