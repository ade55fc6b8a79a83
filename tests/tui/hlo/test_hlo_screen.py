"""The HLO screen: what it opens, kernels with their source, the way to the text and other stages, what can go wrong."""

import threading
import time

import pytest
from textual.widgets import Input

from hlo_sources import BOTH_STAGES, SOURCES, WRONG
from jaxprof import events as e
from jaxprof.base.files import digests_of_sources
from jaxprof.events.finding import Finding
from jaxprof.hlo.kernels.kernels import kernels, stream
from jaxprof.hlo.kernels.origin import origin_columns
from jaxprof.tui.hlo.kernel_side import HloFindings
from jaxprof.tui.hlo.kernels import KernelTable, arrange, label_of
from jaxprof.tui.hlo.modules import OpenedModule
from jaxprof.tui.hlo.screen import HloScreen
from jaxprof.tui.kit.picture import Picture
from jaxprof.tui.kit.text_lists import FactList
from tui.fakes import SMALL, Stage, walking
from tui.hlo_texts import FILE, HLO, program_session, program_tape
from tui.session_tapes import HOSTILE, Tape

SINE = (
    "HloModule m, is_scheduled=true\n\nENTRY %main (x: f32[256]) -> f32[256] {\n  %x = f32[256]{0} parameter(0)\n"
    "  ROOT %out = f32[256]{0} sine(%x)\n}\n"
)


async def opened(walk, session, tab="kernels"):
    screen = await walk.show(session, "hlo")
    if session.runs:
        await read(walk)
    screen.action_tab(tab)
    await walk.pause()
    return screen


async def read(walk, name=""):
    def over():
        found = walk.screen._opened
        return found is not None and found.over and str(name) in found.program.key

    await walk.until(over)
    await walk.pause()


async def test_small_terminal_leads_from_a_kernel_to_its_text():
    async with walking(SMALL) as walk:
        screen = await opened(walk, program_session())
        table = walk.find(KernelTable)
        height = screen.query_one("#list-box").size.height
        assert table.count <= height < screen.query_one("#fact-box").size.height, "one kernel and what is known of it"
        await walk.through(f"""
            down enter | {FILE}:11 | ▸ %grad_fusion =
            up escape
        """)
        assert screen.focused is table
        assert table.ranked.kernel.name == "reduce.1", "the kernel that the text was at"
        await walk.press("m 6")
        assert screen._view == "jaxpr"
        await walk.press("escape / 'tanh enter", f"{FILE}:11 in layer", "3 hidden")
        await walk.press("m 8")
        await walk.until(lambda: "HLO (unoptimised) was not recorded for this program." in walk.said)
        assert screen._view == "kernels"

        tape = Tape()
        tape.plan("r1", "jit", workload="two-layers")
        session = tape.session()
        await walk.show(session, "hlo", "No compiled program")
        session.apply(e.TextRecorded(run="r1", name="hlo", text=HLO, bytes=len(HLO)))
        walk.screen.receive_change(frozenset({"r1"}), replaced=False)
        await walk.shows("tanh_fusion")


async def test_stages_barriers_sources_and_the_order_of_the_kernels(tmp_path):
    path = tmp_path / "model.py"
    path.write_text("\n" * 9 + "    y = x @ w\n    return jnp.tanh(y / 2)\n")
    async with walking() as walk:
        await opened(walk, program_session(file=str(path)))
        await walk.shows("model.py:10", "its text was not recorded", gone="y = x @ w")
        session = program_session(file=str(path))
        session.apply(e.SourcesRead.of(digests_of_sources([str(path)], time.time()), run="r1"))
        screen = await opened(walk, session)
        await walk.shows("▸10 y = x @ w", " 11 return jnp.tanh(y / 2)")
        table = walk.find(KernelTable)
        await walk.through("""
            enter | ▸ %dot.1 =
        """)
        await opened(walk, program_session())
        await walk.press("/ 'grad enter tab")
        facts = screen.query_one("#facts", FactList)
        facts.move_to(next(n for n in range(len(facts.keys)) if "multiply" in facts.draw_row(n, 60).plain))
        await walk.press("enter", "▸ %multiply.9 =")

        await opened(walk, program_session())
        table.set_filter("")
        await walk.press("s m S")
        assert table.wanted.sort == "order"
        assert table.wanted.turned is True
        await walk.press("m g home enter")
        assert [key[0] for key in table.keys if isinstance(key, tuple)] == ["loop fusion", "GEMM", "reduction"]
        assert len(table.keys) == 3 + 4 - 2
        for keys, count in (("m Z", 3 + 4), ("left", 3 + 4 - 2), ("right", 3 + 4), ("down left left", 3 + 4 - 2)):
            await walk.press(keys)
            assert len(table.keys) == count, keys
        await walk.press("m g m g", "by named scope", "▾ attn")


async def test_finding_is_in_the_pane_of_its_kernel():
    async with walking() as walk:
        screen = await opened(walk, program_session())
        slow = Finding("[b]it[/b] is slow", own_fix="make it fast", kernels=("dot.1",), code="slow")
        screen._opened.findings = (slow,)
        screen.lists.show_findings(screen._opened)
        await walk.shows("! [b]it[/b] is slow", "make it fast")
        await walk.press("down", gone="make it fast")

        await opened(walk, program_session(), "roofline")
        await walk.shows("The ceilings of this device are unknown.")
        await walk.through("""
            m d | @Choose
            'h200 enter | share of least time (a lower bound) | 4.80 TB/s
        """)
        table, plot = walk.find(KernelTable), walk.screen.query_one("#roofline", Picture)
        drawn = plot.render().plain
        assert [name in drawn for name in ("attn matmul", "attn ∂ sub", "attn tanh", "loss reduce_sum")] == [1, 1, 1, 0]
        assert "above the roof" not in drawn, "nothing was measured"
        await walk.press("end")
        await walk.until(lambda: label_of(table.ranked) == "loss reduce_sum" in plot.render().plain)

        tape = program_tape()
        fast = e.KernelTimes(name="dot.1", self_seconds=1e-6)
        tape.events.append(e.KernelsMeasured(run="r1", kind="run", calls=10, rows=[fast]))
        await opened(walk, tape.session(), "roofline")
        await walk.press("m d", "Compare the kernels with")
        await walk.press("'h200 enter", "1 kernel above the roof: served by a cache")

        fresh = OpenedModule(screen._opened.program)
        screen.lists.show_program(fresh)
        screen.lists.show_findings(fresh)
        assert screen.query_one(HloFindings).empty_text == "", "what is not known yet is not called nothing"


async def test_a_wide_terminal_shows_the_text_and_obeys_no_name():
    text = HLO.replace("jit(loss)/jvp(attn)/dot_general", "jit(loss)/" + HOSTILE.replace("\n", "") + "/dot_general")
    tape = Tape()
    tape.plan("r1", HOSTILE, workload=HOSTILE)
    tape.add(e.TextRecorded, "r1", name="hlo", text=text, bytes=len(text))
    async with walking((200, 60)) as walk:
        await opened(walk, tape.session())
        await walk.press("down", "▸ %grad_fusion =")
        assert walk.app.focused is walk.find(KernelTable)
        await walk.press("up", "[b]jit[/x]")
        assert not {"\x1b", "\u202e"} & set(walk.text)
        await walk.press("m g m g m g enter m R")


async def test_tabs_of_both_sides_are_marked_once_both_are_seen():
    async with walking(SMALL) as walk:
        await opened(walk, program_session())
        assert walk.text.splitlines()[1].count("[") == 1
        await walk.pilot.resize_terminal(200, 60)
        await walk.until(lambda: walk.text.splitlines()[1].count("[") == 2)


async def test_file_has_modules_times_and_unreadable_parts(tmp_path):
    tape = program_tape()
    rows = [e.KernelTimes(name="dot.1", self_seconds=2e-3), e.KernelTimes(name="grad_fusion", self_seconds=6e-3)]
    tape.events.append(e.KernelsMeasured(run="r1", kind="run", calls=10, rows=list(rows)))
    before = "HloModule m\n\nENTRY e {\n  p = f32[8]{0} parameter(0)\n  ROOT r = f32[8]{0} add(p, p)\n}\n"
    two = tmp_path / "two.hlo"
    two.write_text(HLO + HLO.replace("jit_loss", "jit_other").replace("%dot.1", "%dot.2"))
    async with walking(SMALL) as walk:
        await opened(walk, tape.session())
        rows = [
            walk.row(f"│ {bar}", words)
            for bar, words in (("██████  75%", "attn ∂ sub"), ("██      25%", "attn matmul"))
        ]
        assert ["600" in row for row in rows] == [True, False], "bars to the largest, named by layer and operation"
        assert " - " in walk.row("attn tanh"), "what was not measured is unknown"
        strip = walk.text.splitlines()[walk.text.splitlines().index(walk.row("share ▾")) - 1]
        assert [word in strip for word in ("loop fusion 75 %", "GEMM 25 %", "reduction")] == [True, True, False]
        await walk.through("""
            m V | @TextDialog
            escape
        """)

        await opened(walk, program_session(hlo="nothing [b]like[/b] \x1b[31mHLO"))
        await walk.shows("this is not HLO")
        walk.screen.action_tab("stablehlo")
        await walk.shows("stablehlo.tanh")

        screen = await opened(walk, Tape().session())
        screen.open_file(two)
        await walk.through("""
            | @Choose
            down enter | dot.2 | jit_other
        """)
        for name, text, words, absent in (
            ("whole", HLO, "kernels", "truncated"),
            ("cut", HLO[: HLO.rindex("ROOT")], "truncated: the text ends", "not optimised"),
            ("before", before, "not optimised: XLA", "kernels ·"),
        ):
            path = tmp_path / f"{name}.hlo"
            path.write_text(text)
            screen.open_file(path)
            await read(walk, path)
            await walk.shows(words, gone=absent)
        assert "1 operation" in walk.text
        await walk.press("m f")


async def test_two_modules_are_compared_and_one_is_not(tmp_path):
    tape = Tape()
    for run, variant, text in (("r1", "jit", HLO), ("r2", "jit-sine", HLO.replace("tanh(%multiply", "sine(%multiply"))):
        tape.plan(run, variant, workload="two-layers")
        tape.add(e.TextRecorded, run, name="hlo", text=text, bytes=len(text))
    tape.plan("r3", "traced", workload="two-layers")
    tape.add(e.TextRecorded, "r3", name="jaxpr", text="{ }", bytes=3)
    async with walking() as walk:
        for alone, why in (
            (Tape(), "Nothing was run yet"),
            (program_tape(), "this is the only compiled program here: m, then o opens another one"),
        ):
            await opened(walk, alone.session())
            await walk.press("c")
            await walk.until(lambda why=why: why in walk.said, why)
        screen = await opened(walk, tape.session())
        await walk.press("c", "two-layers jit cpu:0 and two-layers jit-sine cpu:0", "kernels: 1 changed, 3 the same")
        await walk.press("y escape")
        assert "+ ROOT %tanh.7 = f32[256,512]{1,0} sine(%multiply.7)" in walk.app.clipboard
        await walk.press("m R down enter")
        await read(walk, "r2")
        await walk.press("c", "two-layers jit cpu:0 and two-layers jit-sine cpu:0")
        await walk.press("escape m R end enter c")
        await walk.until(lambda: "two-layers traced cpu:0 has no optimised HLO" in walk.said)

        cut = tmp_path / "cut.hlo"
        cut.write_text(SINE[: SINE.rindex("ROOT")])
        screen.open_file(cut)
        await read(walk, cut)
        walk.app.clear_notifications()  # of the program without HLO, which the list leaves out
        await walk.press("c", "Compare with which program?", gone="traced")
        await walk.press("down enter", "two-layers jit-sine cpu:0 and ", "truncated: the text ends")


@pytest.mark.defects
async def test_a_failed_analysis_is_reported_and_the_text_is_shown(monkeypatch):
    def fail(module):
        raise RecursionError("[b]deep[/b]")

    monkeypatch.setattr("jaxprof.hlo.kernels.kernels.kernels", fail)
    async with walking(SMALL) as walk:
        await walk.show(program_session(), "hlo", "RecursionError")
        await walk.press("m 9", "%dot.1 = ")


async def test_program_is_read_in_a_thread_and_given_up(monkeypatch):
    read_origins, read_kernels, go = origin_columns, kernels, {"slow": threading.Event(), "origins": threading.Event()}

    def held(module):
        assert module.name != "slow" or go["slow"].wait(30)
        return read_kernels(module)

    def held_origins(kernels, cancelled):
        return go["origins"].wait(30) and read_origins(kernels, cancelled=cancelled)

    monkeypatch.setattr("jaxprof.analysis.kernels.ranking.FEW", 1)
    monkeypatch.setattr("jaxprof.hlo.kernels.kernels.kernels", held)
    monkeypatch.setattr("jaxprof.hlo.kernels.origin.origin_columns", held_origins)
    async with walking() as walk:
        walk.app.set_session(program_session(hlo=HLO.replace("jit_loss", "slow").replace("dot.1", "dot.2")), None)
        walk.app.switch_mode("hlo")
        await walk.on("HloScreen")
        await walk.press("]", "[Findings")  # the screen answers meanwhile
        walk.app.set_session(program_session(), None)
        go["slow"].set()
        await walk.press("[", "dot.1", gone="dot.2")

        table = walk.find(KernelTable)
        table.group_by("scope")
        await walk.shows("reading origins…")
        assert all(isinstance(key, int) for key in table.keys)
        go["origins"].set()
        await walk.shows("by named scope", "(no named scope)", gone="reading origins")
        table.set_filter("scope:attn")
        named = {table.ranking.kernels[number].name for number in table.filtered}
        assert named == {"dot.1", "grad_fusion", "tanh_fusion"}


async def test_first_kernels_are_shown_while_the_rest_is_read(monkeypatch):
    all_of, go = stream, threading.Event()

    def held(module):
        for number, kernel in enumerate(all_of(module)):
            assert number < 3 or go.wait(30)
            yield kernel

    monkeypatch.setattr("jaxprof.hlo.kernels.kernels.stream", held)
    monkeypatch.setattr("jaxprof.hlo.kernels.kernels._STEP", 2)
    monkeypatch.setattr("jaxprof.tui.hlo.modules.EVERY", 0)
    monkeypatch.setattr("jaxprof.tui.hlo.screen.FEW", 1)
    async with walking() as walk:
        walk.app.set_session(program_session(), None)
        walk.app.switch_mode("hlo")
        await walk.shows("reading, 2 kernels so far", "the first 2, in the order of execution")
        table = walk.find(KernelTable)
        assert table.ranking[0].share is None, "a share of all kernels"
        await walk.press("down")
        second = table.ranked.kernel.name
        go.set()
        await walk.shows("share of", gone="so far")
        await walk.until(lambda: table.ranking.is_whole, "all kernels")
        assert table.ranked.kernel.name == second
        assert table.ranking.kernels is kernels(walk.screen._opened.module)
        assert table.ranking[0].share is not None


async def test_many_kernels_are_arranged_beside_the_keys(monkeypatch):
    go = threading.Event()

    def held(*asked):
        assert asked[2].sort == "share" or go.wait(30)
        return arrange(*asked)

    async with walking() as walk:
        screen = await opened(walk, program_session())
        table = walk.find(KernelTable)
        first, *_, last = table.keys
        monkeypatch.setattr("jaxprof.tui.hlo.kernels.FEW", 1)
        monkeypatch.setattr("jaxprof.tui.hlo.kernels.arrange", held)
        await walk.press("s", "arranging…")
        await walk.press("end")
        assert table.current == last, "a key is answered meanwhile"
        await walk.press("s s home")
        assert list(table.keys) == [first, *table.keys[1:-1], last]
        assert screen.lists.select("", table.ranking.kernels[last].name)
        go.set()
        await walk.until(lambda: table.arranged.arrangement == table.wanted, "the last order that was wanted")
        await walk.shows("4 kernels", gone="arranging…")
        assert table.current == last


async def has_its_module(name, walk):
    await walk.on("HloScreen")
    await read(walk)
    opened = walk.screen._opened
    assert not opened.errors
    assert [kernel.name for kernel in opened.kernels or ()] == ["exp"]
    assert ("hlo_before" in opened.stages) == (name in BOTH_STAGES)


async def test_file_without_hlo_is_refused(tmp_path):
    def path_of(make, name):
        folder = tmp_path / name
        folder.mkdir()
        return make(folder)

    async with walking() as walk:
        screen = await walk.show(Tape(), "hlo")
        for name, said in (("nothing", "there is no"), ("an empty file", "the file is empty"), ("a jaxpr", "a jaxpr")):
            walk.app.open_session(path_of(WRONG[name][0], name), "hlo")
            await walk.shows(said)
        await walk.press("5", "Nothing was run yet", gone="is HLO that was not run here")
        await walk.press("4")
        for name in ("text", "dump", "session"):
            before, path = screen._opened, path_of(SOURCES[name], name)
            if name == "text":
                await walk.press("m o")
                await walk.on("FormDialog")
                walk.find(Input).value = str(path)
                await walk.press("enter")
            else:
                walk.app.open_session(path, "hlo")
            await walk.until(lambda before=before: screen._opened is not before)
            await has_its_module(name, walk)


async def test_hlo_and_memory_show_the_same_module(tmp_path):
    path = tmp_path / "a.hlo"
    path.write_text(SINE)
    async with walking(stage=Stage(path)) as walk:
        await walk.shows("out")
        await walk.press("6", "[Memory] m · a.hlo", "2 buffers of 2.00 KiB alive at the highest point · out")
        await walk.press("home enter", "ROOT", gone="[Memory]")
        assert isinstance(walk.screen, HloScreen)
        await walk.press("m 1", "[Kernels")

        await walk.show(program_tape(), "results", "jit")
        await walk.press("6", "peak memory 2.50 MiB", gone="a.hlo")
        screen = await opened(walk, program_session())
        screen.open_file(path)
        await read(walk, path)
        await walk.press("6", "[Memory] m · a.hlo")
        await walk.press("2", "two-layers")
        await walk.press("6", "[Memory] m · a.hlo")
        await walk.press("4", "a.hlo")
        await walk.press("m R home enter", "grad_fusion", gone="a.hlo")
        walk.screen.receive_change(frozenset({"r1"}), replaced=False)
        await walk.press("6", "peak memory 2.50 MiB")

        tape = Tape()
        tape.plan("r1", "numpy")
        await walk.show(tape.session(), "hlo", "No compiled program", gone="grad_fusion")
        walk.screen.open_file(path)
        await read(walk, path)
        await walk.press("6", "[Memory] m · a.hlo")
