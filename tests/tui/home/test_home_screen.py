"""Home: marks, filter, presets, parameters, variants, devices, and what Enter runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.widgets import Input, Static

from jaxprof.errors import WorkerError
from jaxprof.runner.expected_time import expect
from jaxprof.tui.home.device_list import DeviceList
from jaxprof.tui.home.screen import HomeScreen
from jaxprof.tui.home.workload_dialogs import OwnWorkload, ParametersDialog, split_specs, whole_target
from jaxprof.tui.home.workloads import WorkloadDetail, WorkloadList
from tui.fakes import HOSTILE, NoJax, Stage, info, screen_text, until

pytestmark = pytest.mark.usefixtures("catalogue", "shelf")
SIZE = (100, 32)


def home(stage: Stage) -> HomeScreen:
    screen = stage.app.screen
    assert isinstance(screen, HomeScreen)
    return screen


async def ready(stage: Stage, pilot: object) -> HomeScreen:
    """Home once its threads have brought everything."""
    await until(pilot, lambda: home(stage).info is not None and stage.app.devices.asked, "workloads and devices")  # type: ignore[arg-type]
    await pilot.pause()  # type: ignore[attr-defined]
    return home(stage)


def plan_line(screen: HomeScreen) -> str:
    return str(screen.query_one("#plan", Static).content)


async def test_enter_runs_the_workload_under_the_cursor_with_its_baseline_first() -> None:
    stage = Stage()
    async with stage.app.run_test(size=SIZE, notifications=True) as pilot:
        await ready(stage, pilot)
        await pilot.press("down", "enter")
        await until(pilot, lambda: stage.scheduler and len(stage.scheduler.planned) == 3, "three runs")
        assert stage.scheduler is not None
        assert [(plan.spec.workload, plan.spec.variant, plan.spec.device) for plan in stage.scheduler.planned] == [
            ("selu", "numpy", "cpu:0"),
            ("selu", "jax", "cuda:0"),
            ("selu", "jit", "cuda:0"),
        ]
        await until(pilot, lambda: stage.app.current_mode == "run" and len(stage.app.session.runs) == 3)
        stage.scheduler.finish()
        await until(pilot, lambda: not stage.app.live.busy)


async def test_marks_presets_and_left_out_variants_are_in_the_plan() -> None:
    stage = Stage()
    async with stage.app.run_test(size=SIZE, notifications=True) as pilot:
        screen = await ready(stage, pilot)
        assert "matmul · 3 runs" in plan_line(screen)
        await pilot.press("space", "space")
        assert "2 workloads · 6 runs × 3 launches · quick" in plan_line(screen)
        await pilot.press("m", "A")
        assert "3 workloads · 9 runs" in plan_line(screen)
        await pilot.press("m", "A", "m", "p")
        assert not screen.choices.marked
        assert "published" in plan_line(screen)
        await pilot.press("m", "v", "down", "space")
        assert screen.query_one(WorkloadDetail).variant == "jax"
        assert "2 runs" in plan_line(screen)


async def test_filter_marks_presets_variants_and_devices_are_in_the_plan() -> None:
    stage = Stage()
    async with stage.app.run_test(size=SIZE, notifications=True) as pilot:
        screen = await ready(stage, pilot)
        listed = screen.query_one(WorkloadList)
        await pilot.press("slash", *"jac")
        await until(pilot, lambda: listed.keys == ["hessian"], "only hessian has that in its title")
        assert screen.query_one("#workloads-box").border_subtitle == "2 hidden"
        await pilot.press("enter")
        assert stage.app.focused is listed
        await pilot.press("slash", *"zzz")
        await until(pilot, lambda: listed.keys == [])
        assert "No workload matches" in screen_text(stage.app)
        await pilot.press("escape")
        await until(pilot, lambda: len(listed.keys) == 3)

        screen = await ready(stage, pilot)
        await pilot.press("m", "v", "space")
        assert "3 runs" in plan_line(screen)

        screen = await ready(stage, pilot)
        assert screen.choices.devices == ["cuda:0"], "JAX's first accelerator is proposed"
        text = screen_text(stage.app)
        assert "not used by JAX: CUDA_VISIBLE_DEVICES hides it" in text
        assert "unset CUDA_VISIBLE_DEVICES" in text
        await pilot.press("m", "d", "home", "down", "space")
        assert screen.choices.devices == ["cuda:0", "cpu:0"]
        assert "5 runs" in plan_line(screen)
        await pilot.press("down", "space")
        assert screen.query_one(DeviceList).current == "nvidia:1"
        assert screen.choices.devices == ["cuda:0", "cpu:0"]


async def test_a_wrong_parameter_is_said_beneath_it_and_not_taken() -> None:
    stage = Stage()
    async with stage.app.run_test(size=SIZE, notifications=True) as pilot:
        screen = await ready(stage, pilot)
        await pilot.press("e")
        dialog = stage.app.screen
        assert isinstance(dialog, ParametersDialog)
        field, hint = dialog.query_one("#p0", Input), dialog.query_one("#p0-hint", Static)
        field.value = "many"
        await pilot.pause()
        assert "n wants a number, not 'many'" in str(hint.content)
        await pilot.press("enter")
        assert stage.app.screen is dialog
        field.value = "1e6x"
        dialog.query_one("#sweep", Input).value = "m=1..2"
        await pilot.pause()
        assert "no parameter 'm' to sweep" in str(dialog.query_one("#sweep-hint", Static).content)
        field.value = "2e6"
        dialog.query_one("#sweep", Input).value = "n=10..1000:3"
        await pilot.pause()
        assert "3 sizes: 10, 100, 1000" in str(dialog.query_one("#sweep-hint", Static).content)
        await pilot.press("enter")
        await until(pilot, lambda: stage.app.screen is screen)
        assert screen.choices.of("matmul").settings == {"n": "2e6"}
        assert "9 runs" in plan_line(screen)
        await pilot.press("e")
        await pilot.pause()
        await pilot.click("#other")
        await pilot.press("enter")
        await until(pilot, lambda: stage.app.screen is screen)
        assert screen.choices.of("matmul").settings == {}


async def test_the_launches_are_asked_for_beside_the_budget_and_kept_for_all_workloads() -> None:
    stage = Stage()
    async with stage.app.run_test(size=SIZE, notifications=True) as pilot:
        screen = await ready(stage, pilot)
        assert "3 runs × 3 launches" in plan_line(screen)
        three = expect(screen.choices.plan([screen.info]), ()).whole.seconds or 0.0
        await pilot.press("e")
        dialog = stage.app.screen
        field, hint = dialog.query_one("#launches", Input), dialog.query_one("#launches-hint", Static)
        assert field.value == "3"
        for text, says in (
            ("0", "0 launches are too few"),
            ("101", "101 launches are too many"),
            ("2.5", "launches must be a whole number, not '2.5'"),
            ("", "launches must be a whole number, not ''"),
        ):
            field.value = text
            await pilot.press("enter")
            assert stage.app.screen is dialog
            assert says in str(hint.content)
            assert "Give 1 to 100; 3 is the default." in str(hint.content)
        field.value = "1"
        await pilot.pause()
        assert "what differs between processes is left out" in str(hint.content)
        await pilot.press("enter")
        await until(pilot, lambda: stage.app.screen is screen)
        assert "3 runs × 1 launch ·" in plan_line(screen)
        assert (expect(screen.choices.plan([screen.info]), ()).whole.seconds or 0.0) < three
        await pilot.press("down", "e")
        await pilot.pause()
        assert stage.app.screen.query_one("#launches", Input).value == "1"
        await pilot.press("escape", "enter")
        await until(pilot, lambda: stage.scheduler and len(stage.scheduler.planned) == 3, "three runs")
        assert stage.scheduler is not None
        assert {plan.spec.launches for plan in stage.scheduler.planned} == {1}
        await until(pilot, lambda: stage.app.current_mode == "run" and len(stage.app.session.runs) == 3)
        stage.scheduler.finish()
        await until(pilot, lambda: not stage.app.live.busy)


async def test_without_jax_it_is_said_with_what_mends_it() -> None:
    stage = Stage(devices=NoJax)
    async with stage.app.run_test(size=SIZE, notifications=True) as pilot:
        await until(pilot, lambda: "jax is not installed there" in screen_text(stage.app))
        await until(pilot, lambda: "pip install jax" in screen_text(stage.app))


async def test_hostile_names_are_shown_and_not_obeyed() -> None:
    stage = Stage()
    evil = info(HOSTILE, title=HOSTILE, description=HOSTILE, origin=f"/tmp/{HOSTILE}.py:f")
    async with stage.app.run_test(size=SIZE, notifications=True) as pilot:
        screen = await ready(stage, pilot)
        screen.take_workloads([evil])
        listed = screen.query_one(WorkloadList)
        await until(pilot, lambda: HOSTILE in listed.keys)
        await pilot.press("end")
        await until(pilot, lambda: screen.info is evil)
        await pilot.press("e")
        await pilot.pause()
        await pilot.press("escape")
        text = screen_text(stage.app)
        assert "[b]evil[/x] ␛[31m" in text
        assert "\x1b" not in text
        assert "\u202e" not in text


async def test_a_workload_of_ones_own_joins_the_list_and_runs_with_its_arguments(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    mine = info("train.py:step", origin="/x/train.py:step")
    asked: list[tuple[list[str], list[str]]] = []

    def describe(interpreter: object, targets: list[str], arguments: list[str]) -> list[object]:
        asked.append((list(targets), list(arguments)))
        if len(asked) == 1:
            raise WorkerError("train.py has no function 'step'", "It has: main.")
        return [mine]

    monkeypatch.setattr("jaxprof.runner.describe", describe)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("")
    stage = Stage()
    async with stage.app.run_test(size=SIZE, notifications=True) as pilot:
        screen = await ready(stage, pilot)
        await pilot.press("plus")
        dialog = stage.app.screen
        assert isinstance(dialog, OwnWorkload)
        said = dialog.query_one("#said", Static)
        await pilot.press("enter")
        await until(pilot, lambda: "no target is given" in str(said.content))
        dialog.query_one("#target", Input).value = "train.py:step"
        dialog.query_one("#arguments", Input).value = "f32[8,8], i32[4]"
        await pilot.press("enter")
        await until(pilot, lambda: "It has: main." in str(said.content))
        await pilot.press("enter")
        await until(pilot, lambda: stage.app.screen is screen and screen.info is mine)
        assert asked[1] == ([f"{tmp_path.resolve()}/train.py:step"], ["f32[8,8]", "i32[4]"])
        await pilot.press("enter")
        await until(pilot, lambda: stage.scheduler and stage.scheduler.planned)
        assert stage.scheduler is not None
        assert {plan.spec.target for plan in stage.scheduler.planned} == {"/x/train.py:step"}
        assert stage.scheduler.planned[0].spec.arguments == ("f32[8,8]", "i32[4]")
        stage.scheduler.finish()


def test_specs_are_set_apart_outside_of_brackets() -> None:
    assert split_specs(" f32[8,8],i32[4]  bf16[2, ]; f32[] ") == ["f32[8,8]", "i32[4]", "bf16[2,", "]", "f32[]"]
    assert split_specs("") == []


@pytest.mark.parametrize(
    ("text", "says"), [("", "no target"), ("train", "names no function"), ("no.py:f", "no file"), ("no.py", "no file")]
)
def test_a_wrong_target_says_what_is_wrong(text: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(Exception, match=says):
        whole_target(text, tmp_path)
    assert whole_target("package.module:function", tmp_path) == "package.module:function"
    (tmp_path / "mine.py").write_text("")
    assert whole_target("mine.py", tmp_path) == f"{tmp_path.resolve()}/mine.py", "all its functions"
    assert whole_target("mine.py:f", tmp_path) == f"{tmp_path.resolve()}/mine.py:f"


async def test_a_workload_is_compiled_for_devices_that_are_not_here_and_for_a_mesh() -> None:
    stage = Stage()
    async with stage.app.run_test(size=SIZE, notifications=True) as pilot:
        await ready(stage, pilot)
        await pilot.press("down", "m", "B")
        field = stage.app.screen.query_one(Input)
        field.value = "h100:8, tpu-v5e"
        await pilot.press("enter")
        await until(pilot, lambda: stage.scheduler and len(stage.scheduler.planned) == 2, "two compiles")
        assert stage.scheduler is not None
        assert [(plan.spec.workload, plan.spec.how, plan.spec.device) for plan in stage.scheduler.planned] == [
            ("selu", "compile", "h100:8"),
            ("selu", "compile", "tpu-v5e"),
        ]
        stage.scheduler.finish()
        await until(pilot, lambda: not stage.app.live.busy)

        await pilot.press("1")
        await until(pilot, lambda: isinstance(stage.app.screen, HomeScreen))
        await ready(stage, pilot)
        await pilot.press("m", "B")
        _fill(stage, devices="h100:8", mesh="data=4, model=2", shard="x=data ; 1=-,model")
        await pilot.press("enter")
        await until(pilot, lambda: stage.scheduler and len(stage.scheduler.planned) == 3, "a compile")
        assert stage.scheduler is not None
        plan = stage.scheduler.planned[-1]
        assert (dict(plan.mesh), plan.shard) == ({"data": 4, "model": 2}, ("x=data", "1=-,model"))
        stage.scheduler.finish()
        await until(pilot, lambda: not stage.app.live.busy)


def _fill(stage: Stage, **values: str) -> None:
    for name, value in values.items():
        stage.app.screen.query_one(f"#{name}", Input).value = value


async def test_what_cannot_be_compiled_for_is_said_beneath_its_field() -> None:
    wrong = [
        ({"mesh": "data"}, "mesh", "cannot read the mesh 'data'"),
        ({"shard": "x=data,-; data"}, "shard", "cannot read --shard 'data'"),
        ({"devices": "h100:4", "mesh": "data=4,model=2"}, "mesh", "has 8 devices, but h100:4 has 4"),
        ({"devices": "h10"}, "devices", "h100"),
    ]
    stage = Stage()
    async with stage.app.run_test(size=SIZE, notifications=True) as pilot:
        await ready(stage, pilot)
        await pilot.press("down", "m", "B")
        dialog = stage.app.screen
        for values, where, said in wrong:
            _fill(stage, **{"devices": "h100", "mesh": "", "shard": "", **values})
            await pilot.press("enter")
            hint = dialog.query_one(f"#{where}-hint", Static)
            await until(pilot, lambda hint=hint: hint.has_class("wrong"), "the reason")
            assert said in str(hint.content)
            assert stage.app.screen is dialog
            assert stage.scheduler is None
        _fill(stage, devices="h100", mesh="", shard="")
        await pilot.press("enter")
        await until(pilot, lambda: stage.scheduler and len(stage.scheduler.planned) == 1, "a compile")
        assert stage.scheduler is not None
        stage.scheduler.finish()
        await until(pilot, lambda: not stage.app.live.busy)
