"""Home: marks, filter, presets, parameters, variants, devices, and what Enter runs."""

from dataclasses import replace

import pytest
from textual import events
from textual.widgets import Input, Static

from jaxprof.analysis.target import whole_word
from jaxprof.base.errors import UsageError, WorkerError
from jaxprof.runner.planning import estimate_time
from jaxprof.session import Library
from jaxprof.tui.home import dialogs
from jaxprof.tui.home.device_list import DeviceList
from jaxprof.tui.home.dialogs import split_specs
from jaxprof.tui.home.plan_options import HomeOptions
from jaxprof.tui.home.preview import last_medians
from jaxprof.tui.home.screen import HomeScreen
from jaxprof.tui.home.start_list import StartList
from jaxprof.tui.kit.dialogs import FormDialog
from jaxprof.workloads.model import Parameter
from tui.fakes import (
    HOSTILE,
    MIDDLE,
    Clocked,
    NoJax,
    NoMachine,
    Stage,
    StillDevices,
    info,
    keep_session,
    walking,
)

pytestmark = pytest.mark.usefixtures("catalogue", "shelf")


async def ready(walk):
    screen = await walk.on(HomeScreen)
    await walk.until(lambda: screen.info is not None and walk.app.devices.asked, "workloads and devices")
    await walk.pause()
    return screen


async def planned(walk, count):
    """What was queued, once there are so many; the queue has ended."""
    await walk.until(lambda: walk.stage.scheduler and len(walk.stage.scheduler.planned) == count, f"{count} runs")
    scheduler = walk.stage.scheduler
    await walk.until(lambda: walk.app.current_mode == "results" and len(walk.app.session.runs) == count)
    scheduler.finish()
    await walk.until(lambda: not walk.app.live.busy)
    return scheduler.planned


def plan_line(screen):
    return str(screen.query_one("#plan", Static).content)


def fill(walk, **values):
    for name, value in values.items():
        walk.screen.query_one(f"#{name}", Input).value = value


def hint(walk, name):
    return str(walk.screen.query_one(f"#{name}", Static).content)


async def test_plan_has_marks_presets_variants_and_devices():
    async with walking(MIDDLE) as walk:
        screen = await ready(walk)
        # On Python 3.12 and later an input on the first screen ended the app with an error once it was quit.
        assert not walk.screen.query(Input)
        listed = walk.find(StartList)
        for keys, plan in (
            ("", "matmul · 3 runs"),
            ("space space", "2 workloads · 6 runs × 3 launches · quick"),
            ("space m p", "3 workloads · 9 runs × 3 launches · published"),
            ("home space space space", "hessian · 3 runs"),
        ):
            await walk.press(keys)
            assert plan in plan_line(screen)
        assert not listed.marked

        await walk.press("/ 'jac")
        await walk.until(lambda: listed.keys == ["hessian"], "only hessian has that in its title")
        assert not {"/", "+"} & set(walk.text.splitlines()[-1]), "they are text there"
        assert screen.query_one("#start-box").border_subtitle == "2 hidden"
        await walk.press("/ 'zzz enter", "Nothing matches")
        assert (walk.app.focused, walk.screen) == (listed, screen)
        await walk.press("escape")
        await walk.until(lambda: len(listed.keys) == 4, "three and their heading")

        assert screen.choices.devices == ["cuda:0"], "JAX's first accelerator is proposed"
        await walk.shows("not used by JAX: CUDA_VISIBLE_DEVICES hides it", "unset CUDA_VISIBLE_DEVICES")
        await walk.press("m d home down space")
        assert screen.choices.devices == ["cuda:0", "cpu:0"]
        await walk.press("down space")
        assert walk.find(DeviceList).current == "nvidia:1"
        assert screen.choices.devices == ["cuda:0", "cpu:0"]
        await walk.press("enter", "nvidia:1 · ")
        await walk.press("escape")

        evil = info(HOSTILE, title=HOSTILE, description=HOSTILE, origin=f"/tmp/{HOSTILE}.py:f")
        screen.take_workloads([evil])
        await walk.until(lambda: HOSTILE in listed.keys)
        listed.focus()
        await walk.press("home")
        await walk.until(lambda: screen.info is evil, "what is the user's own comes first")
        await walk.press("e escape", "[b]evil[/x] ␛[31m")
        assert not {"\x1b", "\u202e"} & set(walk.text)
    async with walking(MIDDLE, Stage(devices=Clocked)) as walk:
        await walk.shows("2.60GHz")
        gpu, cpu = walk.row("cuda:0"), walk.row("cpu:0")
        for figure in ("GHz", "GiB"):
            assert gpu.index(figure) == cpu.index(figure), "figures of a kind stand below each other"
    async with walking(MIDDLE, Stage(devices=NoJax)) as walk:
        await walk.shows("jax is not installed there", "pip install jax")
    async with walking(MIDDLE, Stage(devices=NoMachine)) as walk:
        await walk.shows("the machine cannot be read", "The devices cannot be read.", gone="Looking for devices")


async def test_parameters_are_checked_where_they_are_typed():
    async with walking(MIDDLE) as walk:
        screen = await ready(walk)
        await walk.press("e")
        dialog = await walk.on("FormDialog")
        wrong = [("p0", "many", "n wants a number, not 'many'"), ("sweep", "m=1..2", "no parameter 'm' to sweep")]
        wrong += [
            ("launches", "0", "launches=0 is out of bounds"),
            ("launches", "101", "launches=101 is out of bounds. launches takes values from 1 up to 100"),
            ("launches", "2.5", "launches must be a whole number, not '2.5'"),
            ("launches", "", "launches wants a number, not ''"),
            ("budget", "0", "budget=0 is out of bounds"),
            ("variants", "jit", "numpy is missing. It is the baseline"),
            ("variants", "numpy, jot", "unknown variant 'jot'"),
        ]
        assert walk.screen.query_one("#launches", Input).value == "3"
        for field, value, says in wrong:
            right = {"p0": "2e6", "sweep": "n=10..1000:3", "launches": "3", "budget": "2", "variants": "numpy jit"}
            fill(walk, **right | {field: value})
            await walk.press("enter")
            assert says in hint(walk, f"{field}-hint")
            assert walk.screen is dialog, "it is not taken"
        assert "3 sizes: 10, 100, 1000" in hint(walk, "sweep-hint")
        fill(walk, variants="numpy jit")
        await walk.press("enter")
        await walk.until(lambda: walk.screen is screen)
        assert screen.choices.of("matmul").settings == {"n": "2e6"}
        assert set(screen.choices.of("matmul").variants) == {"numpy", "jit"}
        assert "6 runs" in plan_line(screen)
        await walk.press("e")
        await walk.pilot.click("#other")
        await walk.press("enter")
        assert screen.choices.of("matmul").settings == {}

        three = estimate_time(screen.choices.plan([screen.info]))
        assert three in plan_line(screen)
        await walk.press("e")
        fill(walk, launches="1")
        await walk.pause()
        assert "variation between processes is not measured" in hint(walk, "launches-hint")
        await walk.press("enter")
        assert "3 runs × 1 launch ·" in plan_line(screen)
        assert three not in plan_line(screen)
        await walk.press("down e")
        assert walk.screen.query_one("#launches", Input).value == "1"
        await walk.press("escape enter")
        runs = await planned(walk, 3)
        assert [(plan.spec.workload, plan.spec.variant, plan.spec.device, plan.spec.launches) for plan in runs] == [
            ("selu", "numpy", "cpu:0", 1),
            ("selu", "jax", "cuda:0", 1),
            ("selu", "jit", "cuda:0", 1),
        ]


async def test_what_is_named_so_comes_first_in_a_filter():
    async with walking(MIDDLE) as walk:
        await ready(walk)
        listed = walk.find(StartList)
        await walk.press("/ 's")  # also in the description of all
        await walk.until(lambda: listed.keys == ["selu", "hessian", "matmul"])
        assert listed.current == "selu"
        await walk.press("backspace 'm")
        await walk.until(lambda: listed.keys[0] == "matmul")
        assert listed.current == "matmul"


@pytest.mark.parametrize("keys", ["/ 'selu", "down"])
async def test_enter_twice_starts_the_runs_once(keys):
    async with walking(MIDDLE) as walk:
        await ready(walk)
        await walk.press(keys)
        await walk.pause()
        for _ in range(2):  # before the first one is handled
            walk.app.post_message(events.Key("enter", None))
        await planned(walk, 3)
        await walk.pause()
        assert walk.stage.scheduler.batches == 1


async def test_own_workload_joins_the_list_and_runs(monkeypatch, tmp_path):
    mine = info("train.py:step", origin="/x/train.py:step")
    asked = []

    def describe(interpreter, targets, arguments):
        asked.append((list(targets), list(arguments)))
        if len(asked) == 1:
            raise WorkerError("train.py has no function 'step'", "It has: main.")
        return [mine]

    monkeypatch.setattr("jaxprof.runner.engine_questions.describe", describe)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("")
    async with walking(MIDDLE) as walk:
        screen = await ready(walk)
        await walk.press("+")
        await walk.on(FormDialog)
        assert walk.app.screen_stack
        typed = "train.py:step f32[8,8], i32[4]"
        walk.find(Input).value = typed
        await walk.press("enter")
        await walk.shows("It has: main.")
        await walk.on(FormDialog)
        assert walk.find(Input).value == typed, "it is asked again"
        await walk.press("enter")
        await walk.until(lambda: walk.screen is screen and screen.info is mine)
        assert asked[1] == ([f"{tmp_path.resolve()}/train.py:step"], ["f32[8,8]", "i32[4]"])
        await walk.press("enter")
        runs = await planned(walk, 3)
        assert {plan.spec.target for plan in runs} == {"/x/train.py:step"}
        assert runs[0].spec.arguments == ("f32[8,8]", "i32[4]")


def test_parameter_without_a_default_may_stay_empty():
    parameter = Parameter(name="n", description="3 unless set")
    assert dialogs._number(parameter, "", usual="").read("") == []
    with pytest.raises(UsageError, match="n wants a number"):
        dialogs._number(parameter, "4", usual="4").read("")
    with pytest.raises(UsageError, match="n wants a number"):
        dialogs._number(parameter, "", usual="").read("many")


def test_specs_are_set_apart_outside_of_brackets():
    assert split_specs(" f32[8,8],i32[4]  bf16[2, ]; f32[] ") == ["f32[8,8]", "i32[4]", "bf16[2,", "]", "f32[]"]
    assert split_specs("") == []


def test_devices_of_a_setting_that_are_there_are_chosen():
    for chosen, there, left in (
        (["gpu:0", "tpu:0", "cpu:0"], ["cuda:0", "cpu:0"], ["cuda:0", "cpu:0"]), (["tpu:0"], ["cpu:0"], ["tpu:0"]),
    ):  # fmt: skip
        options = HomeOptions(devices=chosen)
        options.take_usable(there)
        assert options.devices == left


class Shared(StillDevices):
    def read(self):
        first, *others = super().read()
        users = [{"pid": 24612, "name": "python", "user": "alice", "memory_bytes": 32 << 30}, {"pid": 7, "user": "bob"}]
        return [
            replace(
                first, clock_hertz=1.98e9, throttle_reasons=["software power cap"], processes=users, power_watts=682.0
            ),
            *others,
        ]


@pytest.mark.parametrize(
    ("size", "shown", "left_out"),
    [
        ((80, 24), "682W power cap", "alice"),
        ((94, 24), "64°C power cap · alice +1", "1.98GHz"),
        ((160, 40), "1.98GHz power cap · alice +1 · python 24612 32.0GiB · 7", ""),
    ],
)
async def test_who_uses_a_device_comes_before_its_clock(size, shown, left_out):
    async with walking(size, Stage(devices=Shared)) as walk:
        await walk.shows(shown)
        assert not left_out or left_out not in walk.text


def test_a_target_is_made_whole(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert whole_word("package.module:function") == "package.module:function"
    for text in ("mine.py", "mine.py:f"):
        assert whole_word(text) == f"{tmp_path.resolve()}/{text}"


async def test_a_workload_is_compiled_for_devices_that_are_not_here():
    async with walking(MIDDLE) as walk:
        await ready(walk)
        await walk.press("down m B")
        await walk.on(FormDialog)
        walk.find(Input).value = "h10"
        await walk.press("enter")
        await walk.shows("Did you mean h100")
        await walk.on(FormDialog)
        walk.find(Input).value = "h100:8, tpu-v5e"
        await walk.press("enter")
        runs = [(plan.spec.workload, plan.spec.how, plan.spec.device) for plan in await planned(walk, 2)]
        assert runs == [("selu", "compile", "h100:8"), ("selu", "compile", "tpu-v5e")]


def test_the_last_median_is_one_of_the_same_size_on_this_machine(tmp_path):
    keep_session(tmp_path, "one", ("selu", "numpy", "ok", 4.4e-3), ("selu", "jit", "ok", 0.6e-3))
    keep_session(tmp_path, "two", ("selu", "jit", "ok", 1.2e-3), age_seconds=100)
    entries = list(Library(tmp_path).entries())
    known = {"numpy": "last 4.40 ms", "jit": "last 600 µs"}
    assert last_medians("selu", {"n": 1_000_000}, entries, "box") == known
    assert last_medians("selu", {"n": 1_000_000}, entries, "laptop") == {}, "another machine measured them"
    assert last_medians("selu", {"n": 4_000_000}, entries, "box") == {}
    assert last_medians("matmul", {"n": 1_000_000}, entries, "box") == {}
