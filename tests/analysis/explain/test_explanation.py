"""What an explanation ranks first, what it costs, what it rests on, and what it does not say."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

import program_events as made
from folding import fold
from jaxprof import events as e
from jaxprof.analysis.explain.catalogue import entries
from jaxprof.analysis.explain.derive import explanation, explanation_of_modules
from jaxprof.analysis.explain.model import Explanation
from jaxprof.analysis.programs.derive import program_result
from jaxprof.errors import HloError
from jaxprof.hlo.open.paths import modules_at
from jaxprof.session import Session
from report import sessions

TRANSPOSES = sessions.TRANSPOSES
kernels = sessions.kernels
MENDED = TRANSPOSES.replace("transpose(%p), dimensions={1,0}", "negate(%p)")


def codes(explained: Explanation) -> list[str]:
    return [finding.code for finding in explained.findings]


def unknown(explained: Explanation) -> list[str]:
    return [abstention.code for abstention in explained.abstentions]


def run_of(hlo: str, *captured: e.Event, warnings: tuple[e.WarningRaised, ...] = ()) -> Session:
    """A compiled run of `hlo` beside NumPy's, with what was captured of it."""
    run = sessions.jit_run("r2", "r1")
    texts = [
        replace(event, text=hlo) if isinstance(event, e.TextRecorded) and event.name == "hlo" else event
        for event in run
    ]
    return fold(
        sessions.HEADER,
        [*sessions.numpy_run("r1"), *texts[:-2], *warnings, *captured, *texts[-2:], e.SessionClosed()],
    )


def test_findings_of_a_program_come_first_that_would_save_most() -> None:
    explained = explanation(made.training(), "train")
    assert explained.subject == "program"
    saved = [finding.cost.saves_seconds or 0.0 for finding in explained.findings]
    assert saved == sorted(saved, reverse=True)
    assert saved[0] > 1.0
    assert explained.findings[0].verify == ("jaxprof script --plain train.py --epochs 3 && jaxprof compare train last")


def test_compilations_that_are_not_kept_are_what_is_left_to_save() -> None:
    """They are true of nearly every run, so they are told only where the program itself has nothing to change."""
    long = [made.compiled(cache="off", compile_seconds=6.0), *made.steady(10, {"compile": 0.6, "device_busy": 0.4})]
    (found,) = explanation(made.session(*long), "p").findings
    assert (found.code, found.cost.seconds, found.cost.saves_seconds) == ("cache_off", 6.0, 6.0)
    assert found.cost.share == pytest.approx(0.6)
    seldom = [made.compiled(cache="off", compile_seconds=3.0), *made.steady(10, {"compile": 0.3, "device_busy": 0.7})]
    kept = [made.compiled(cache="hit", compile_seconds=6.0), *made.steady(10, {"compile": 0.6, "device_busy": 0.4})]
    assert codes(explanation(made.session(*seldom), "p")) == codes(explanation(made.session(*kept), "p")) == []
    assert codes(explanation(made.session(*long, *made.shaped(5)), "p")) == ["varying_shapes"]


def test_kernels_that_cost_time_come_before_compilations_that_are_not_kept() -> None:
    """Also where they are known from a capture window, and not from the program's own findings."""
    long = [made.compiled(cache="off", compile_seconds=6.0), *made.steady(10, {"compile": 0.6, "device_busy": 0.4})]
    window = [
        replace(event, spec=replace(event.spec, how="imported")) if isinstance(event, e.RunPlanned) else event
        for event in sessions.jit_run("r2", "")
    ]
    texts = [
        replace(event, text=TRANSPOSES) if isinstance(event, e.TextRecorded) and event.name == "hlo" else event
        for event in window
    ]
    taken = replace(kernels(fusion_1=3e-3, fusion_2=1e-3), kind="imported")
    captured = [*texts[:-2], taken, *texts[-2:]]
    ended = made.program(*long)
    found = explanation(fold(made.HEADER, [*ended[:-1], *captured, ended[-1]]), "p")
    assert codes(found) == ["layout-copy"]
    assert codes(explanation(fold(made.HEADER, ended), "p")) == ["cache_off"]


def test_seconds_of_another_finding_are_no_compilations_to_keep() -> None:
    rows = [
        made.compiled(cache="off", compile_seconds=took, operations=size) for took, size in ((5.5, 900), (2.6, 2_000))
    ]
    inside = [*rows, *made.steady(10, {"compile": 0.8, "device_busy": 0.2})]
    found = explanation(made.session(*inside), "p").findings
    assert [each.code for each in found] == ["cache_off", "large_program"]
    assert sum(each.cost.seconds or 0.0 for each in found) == pytest.approx(5.5 + 2.6)


def test_a_setting_that_makes_the_program_another_one_comes_first() -> None:
    windows = [replace(made.sampled(at, 1.0, {"device_busy": 1.0}), debug_settings=["jax_debug_nans"]) for at in (0, 1)]
    assert codes(explanation(made.session(*windows, *made.shaped(9)), "p")) == ["debug_settings", "varying_shapes"]
    assert codes(explanation(made.session(*made.shaped(9)), "p")) == ["varying_shapes"]


def test_what_a_baseline_could_do_better_is_not_told() -> None:
    def warned(run: str) -> list[e.Event]:
        told = e.WarningRaised(run=run, code="compiled_again", message="3 unexpected compilations", advice="Look.")
        return [*sessions.numpy_run("r1"), *sessions.jit_run("r2", "r1"), told, e.SessionClosed()]

    assert codes(explanation(fold(sessions.HEADER, warned("r2")), "s")) == ["compiled_again"]
    assert codes(explanation(fold(sessions.HEADER, warned("r1")), "s")) == []


def test_seconds_from_samples_have_an_interval_and_announced_ones_none() -> None:
    explained = explanation(made.training(), "train")
    by_code = {finding.code: finding for finding in explained.findings}
    shapes = by_code["varying_shapes"]
    assert (shapes.cost.low, shapes.cost.estimate) == (None, False)
    assert (shapes.function, shapes.compilations) == ("step", 33)
    sampled = [finding.cost for finding in explained.findings if finding.cost.estimate and finding.cost.seconds]
    assert sampled
    for cost in sampled:
        assert cost.high is not None
        assert cost.low < cost.seconds < cost.high


def test_a_program_that_records_itself_cannot_be_started_by_a_command() -> None:
    recorded = made.program(*made.shaped(33, compile_seconds=0.1), *made.steady(5, {"device_busy": 1.0}))
    itself = [replace(event, how="record") if isinstance(event, e.ProgramStarted) else event for event in recorded]
    explained = explanation(fold(made.HEADER, itself), "run.jaxprof")
    assert {finding.verify for finding in explained.findings} == {"jaxprof compare run.jaxprof last"}
    assert [each.command for each in explained.abstentions if each.code == "no-capture"] == [""]


def test_a_window_that_failed_is_not_advised_again() -> None:
    recorded = [*made.shaped(33, compile_seconds=0.1), *made.steady(5, {"device_busy": 1.0})]

    def missing(note: str) -> tuple[str, str]:
        failed = e.CaptureWindow(run="r1", state="failed", note=note)
        explained = explanation(fold(made.HEADER, made.program(*recorded, failed)), "t")
        (found,) = (each for each in explained.abstentions if each.code == "no-capture")
        return found.reason, found.command

    reason, command = missing("no capture: no steps were counted before the program ended")
    assert reason.startswith("no capture: no steps were counted before the program ended; a window by time")
    assert command == "jaxprof script --plain --capture-seconds 2 train.py --epochs 3"
    assert missing("no capture: the profiler wrote no file") == ("no capture: the profiler wrote no file", "")


def test_a_program_without_jax_has_an_abstention_and_its_failure() -> None:
    explained = explanation(made.without_jax(), "hello")
    assert (codes(explained), unknown(explained)) == (["program_failed"], ["no-jax"])


def test_a_captured_kernel_costs_its_share_of_a_call() -> None:
    explained = explanation(run_of(TRANSPOSES, kernels(fusion_1=3e-3, fusion_2=1e-3)), "s")
    (finding,) = explained.findings
    assert (finding.code, finding.run, finding.kernels) == ("layout-copy", "r2", ("fusion.1",))
    assert finding.where == e.SourceLocation("/home/me/turn.py", 7)
    assert finding.cost.share == pytest.approx(0.75)
    assert finding.cost.seconds == pytest.approx(0.75 * 0.63e-3, rel=0.01)
    assert finding.cost.low == pytest.approx(0.75 * 0.63e-3, rel=0.1)
    assert finding.cost.saves_seconds == finding.cost.seconds


def test_without_a_capture_and_without_ceilings_it_costs_bytes() -> None:
    explained = explanation(run_of(TRANSPOSES), "s")
    (finding,) = explained.findings
    assert (finding.cost.seconds, finding.cost.bytes) == (None, 8 << 20)
    (missing,) = (each for each in explained.abstentions if each.code == "no-capture")
    assert missing.command == "jaxprof run --from s:r2 --launches 10"  # a capture was planned, and did not come


def test_a_run_without_a_planned_capture_is_run_with_one() -> None:
    events = [
        replace(event, spec=replace(event.spec, capture=False)) if isinstance(event, e.RunPlanned) else event
        for event in [*sessions.numpy_run("r1"), *sessions.jit_run("r2", "r1"), e.SessionClosed()]
    ]
    (missing,) = (each for each in explanation(fold(sessions.HEADER, events), "s").abstentions
                  if each.code == "no-capture")  # fmt: skip
    assert missing.command == "jaxprof run selu --variant jit --set n=1000000"


def compared(slower: float, *, together: bool = True) -> Session:
    """A and B of a comparison, where B takes `slower` times as long as A."""
    sides: list[e.Event] = []
    for run, side, base, median in (("r1", "A", "", 1e-3), ("r2", "B", "r1", 1e-3 * slower)):
        for event in sessions.jit_run(run, base, median):
            if isinstance(event, e.RunPlanned):
                event = replace(event, spec=replace(event.spec, side=side, workload=f"m.py:{side}"))
            if isinstance(event, e.SamplesTaken) and side == "A" and event.block is not None:
                event = replace(event, block=event.block - 1)
            if together or not (isinstance(event, e.SamplesTaken) and event.series == "run" and side == "B"):
                sides.append(event)
    return fold(sessions.HEADER, [*sides, e.SessionClosed()])


def test_a_side_that_is_slower_is_a_finding_with_what_it_costs() -> None:
    explained = explanation(compared(1.5), "s")
    assert explained.subject == "comparison"
    (finding,) = (each for each in explained.findings if each.code == "slower")
    assert finding.cost.seconds == pytest.approx(0.5e-3, rel=0.02)
    assert finding.cost.high is not None
    assert finding.cost.low <= finding.cost.seconds <= finding.cost.high
    assert finding.cost.low == pytest.approx(0.5e-3, rel=0.05)
    assert finding.cost.high == pytest.approx(0.5e-3, rel=0.05)
    assert finding.cost.share == pytest.approx(1 / 3, rel=0.02)
    assert finding.cost.saves_seconds == finding.cost.seconds
    assert (finding.run, finding.verify) == ("r2", "jaxprof run --from s")
    assert finding.message.startswith("B is slower than A: 0.667× (0.667-0.667) as fast")
    assert finding.message.endswith("its kernels are the same")


def test_a_comparison_without_a_verdict_says_so_first() -> None:
    first = explanation(compared(1.5, together=False), "s").abstentions[0]
    assert (first.code, first.command.split()[:4]) == ("inconclusive", ["jaxprof", "run", "--from", "s"])
    assert first.reason == "whether B is faster than A: a side has no samples"


def test_what_makes_times_meaningless_comes_before_what_costs_time() -> None:
    wrong = e.WarningRaised(run="r2", code="folded_constants", message="XLA left 0 FLOPs", advice="Pass the arrays.")
    explained = explanation(run_of(TRANSPOSES, kernels(fusion_1=3e-3, fusion_2=1e-3), warnings=(wrong,)), "s")
    assert codes(explained) == ["folded_constants", "layout-copy"]


def test_a_failure_is_a_finding_and_a_refused_allocation_is_named() -> None:
    explained = explanation(sessions.whole(), "s")
    first = explained.findings[0]
    assert (first.code, first.run, first.fault) == ("out-of-memory", "r3", True)
    assert (first.cost.bytes, first.cost.held) == (4 * 1024**4, True)
    assert first.message == "selu jax cpu:0 failed: RESOURCE_EXHAUSTED: out of memory allocating 4 TB"
    assert first.fix == "Choose a smaller size."


def test_a_doubtful_measurement_is_an_abstention_with_the_command_for_a_better_one() -> None:
    noisy = e.WarningRaised(run="r2", code="noise", message="± 12 % only", advice="")
    (doubt,) = [each for each in explanation(run_of(MENDED, warnings=(noisy,)), "s").abstentions
                if each.code == "noise"]  # fmt: skip
    assert doubt.command == "jaxprof run --from s:r2 --launches 10"


def test_a_doubt_about_several_runs_is_one_that_names_the_others() -> None:
    noisy = [e.WarningRaised(run=run, code="noise", message="± 12 % only", advice="") for run in ("r1", "r2")]
    told = [
        each for each in explanation(run_of(MENDED, warnings=tuple(noisy)), "s").abstentions if each.code == "noise"
    ]
    assert [each.reason for each in told] == ["r1 selu numpy cpu:0: ± 12 % only; also r2"]


def steps(platform: str, found_by: str = "annotation", **parts: float) -> list[e.Event]:
    """A capture of ten steps of 1 ms."""
    kernels = 1e-3 - sum(parts.values())
    return [
        e.CaptureTaken(run="r2", kind="run", platform=platform, calls=10, wall_seconds=0.01),
        e.StepsMeasured(run="r2", found_by=found_by, steps=[
            e.StepTimes(name=str(number), device="gpu:0", start_seconds=1e-3 * number, seconds=1e-3,
                        parts=e.StepParts(kernels=kernels, **parts))
            for number in range(10)
        ]),
    ]  # fmt: skip


def test_hlo_alone_costs_bytes_and_says_so(tmp_path: Path) -> None:
    file = tmp_path / "turn.hlo"
    file.write_text(TRANSPOSES)
    explained = explanation_of_modules(modules_at(file), str(file))
    (finding,) = explained.findings
    assert (explained.subject, finding.code, finding.cost.bytes) == ("hlo", "layout-copy", 8 << 20)
    assert finding.verify == f"jaxprof hlo {file} --findings"
    assert unknown(explained) == ["no-times"]


def test_hlo_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "turn.hlo"
    file.write_text(TRANSPOSES)
    modules = modules_at(file)
    file.write_text("no HLO at all")
    with pytest.raises(HloError):
        explanation_of_modules([replace(modules[0], stages={"hlo": file.read_text})], str(file))


def test_each_finding_of_an_explanation_is_in_the_catalogue() -> None:
    for session in (made.training(), sessions.whole(), sessions.captured(), sessions.torn()):
        assert set(codes(explanation(session, "s"))) <= set(entries())


@pytest.mark.parametrize(("changed_after", "line"), [(-10.0, "y = x.T"), (10.0, "")])
def test_a_line_is_quoted_only_if_its_file_is_as_old_as_the_session(
    tmp_path: Path, changed_after: float, line: str
) -> None:
    file = tmp_path / "turn.py"
    file.write_text("\n" * 6 + "    y = x.T\n")
    recorded = sessions.HEADER.wall_seconds
    os.utime(file, (recorded + changed_after, recorded + changed_after))
    (finding,) = explanation(run_of(TRANSPOSES.replace("/home/me/turn.py", str(file))), "s").findings
    assert finding.code_line == line


def test_a_file_that_is_no_program_is_not_quoted(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("key\n" * 9)
    os.utime(file, (1.0, 1.0))
    (finding,) = explanation(run_of(TRANSPOSES.replace("/home/me/turn.py", str(file))), "s").findings
    assert finding.code_line == ""


def on_gpu(median: float, dispatch: float, copy: float) -> Session:
    """A run on a GPU: how long a call takes, until it returns, and how long its arguments take to be copied."""
    made_on_cpu = sessions.jit_run("r2", "r1", median)
    events: list[e.Event] = []
    for event in made_on_cpu:
        if isinstance(event, e.RunPlanned):
            events.append(replace(event, spec=replace(event.spec, device="cuda:0")))
        elif isinstance(event, e.SamplesTaken) and event.series in ("dispatch", "transfer_in"):
            took = dispatch if event.series == "dispatch" else copy
            events.append(replace(event, seconds=sessions.around(took, 9)))
        elif isinstance(event, e.TextRecorded) and event.name == "hlo":
            events.append(replace(event, text=MENDED))
        else:
            events.append(event)
    return fold(sessions.HEADER, [*sessions.numpy_run("r1"), *events, e.SessionClosed()])


def test_kernels_that_take_next_to_nothing_are_no_finding() -> None:
    assert codes(explanation(run_of(TRANSPOSES, kernels(fusion_1=1e-5, fusion_2=1e-3)), "s")) == []


def test_what_jax_announced_is_in_both_ends_of_an_interval() -> None:
    operations = [
        made.compiled(name, line=88, op_by_op=True, operations=1, compile_seconds=0.5, library=True)
        for name in ("sin", "add", "mul")
    ]
    lines = [made.line(88, 0.6, "host_busy", "jnp.sin()", kind="dispatch"), made.line(89, 0.4, "host_busy", "jnp.add()",
             kind="dispatch")]  # fmt: skip
    session = made.session(*made.steady(8, {"host_busy": 1.0}, lines), *operations, made.steps(4000, 2e-3))
    (finding,) = (each for each in explanation(session, "s").findings if each.code == "op_by_op_loop")
    compiling = 3 * (0.5 + 0.01 + 0.02)
    assert finding.cost.high is not None
    assert compiling < finding.cost.low <= (finding.cost.seconds or 0.0) <= finding.cost.high


def of_profile(*more: e.Event, hlo: str = TRANSPOSES, gap: float = 2e-4) -> list[e.Event]:
    """A profile that was opened: all of it as one run, and one program with its HLO as another. On two devices."""

    def plan(run: str, name: str) -> e.RunPlanned:
        spec = e.RunSpec(workload=name, variant="profile", how="imported", device="gpu:0")
        return e.RunPlanned(run=run, spec=spec)

    taken = [replace(row, device=device) for row in kernels(fusion_1=3e-3, fusion_2=1e-3).rows
             for device in ("gpu:0", "gpu:1")]  # fmt: skip
    of_steps = [replace(event, run="r1", kind="imported") if isinstance(event, e.CaptureTaken) else
                replace(event, run="r1") for event in steps("gpu", launch_gaps=gap, idle=gap)]  # fmt: skip
    return [
        plan("r1", "2026"),
        *of_steps,
        plan("r2", "jit_turn"),
        *([e.TextRecorded(run="r2", name="hlo", text=hlo, bytes=len(hlo))] if hlo else []),
        e.CaptureTaken(run="r2", kind="imported", platform="gpu", calls=10),
        e.KernelsMeasured(run="r2", kind="imported", calls=10, rows=taken),
        *more,
    ]


def test_a_profile_costs_the_time_of_its_devices() -> None:
    doubt = e.TrustReported(
        run="r1", kind="imported", rows=[e.TrustCheck(code="sum", verdict="doubt", message="busy for 20%")]
    )
    explained = explanation(fold(sessions.HEADER, of_profile(doubt)), "p")
    assert explained.subject == "profile"
    by_code = {finding.code: finding for finding in explained.findings}
    assert set(by_code) == {"layout-copy", "launch-gaps", "device-idle"}
    copy = by_code["layout-copy"]
    assert (copy.run, copy.cost.scope, copy.cost.estimate) == ("r2", "profile", False)
    assert copy.cost.share == pytest.approx(0.75)
    assert copy.cost.seconds == pytest.approx(3e-3), "what one device spent"
    for code in ("launch-gaps", "device-idle"):
        assert (by_code[code].run, by_code[code].cost.seconds) == ("r1", pytest.approx(2e-3)), "of all steps"
    assert {finding.verify for finding in explained.findings} == {"jaxprof explain p"}
    assert [(each.code, each.reason) for each in explained.abstentions] == [("sum", "r1: busy for 20%")]


def test_what_devices_did_not_do_is_a_part_of_their_time() -> None:
    idle = [
        replace(event, devices=[e.StepsDevice(device="gpu:0", busy_seconds=4e-3, span_seconds=8e-3)])
        if isinstance(event, e.StepsMeasured) else event
        for event in of_profile()
    ]  # fmt: skip
    explained = explanation(fold(sessions.HEADER, idle), "p")
    (copy,) = [finding for finding in explained.findings if finding.code == "layout-copy"]
    assert (copy.cost.seconds, copy.cost.share) == (pytest.approx(3e-3), pytest.approx(3 / 8))


def test_what_a_recorded_program_captured_is_a_part_of_its_device_time() -> None:
    recorded = made.program(*made.shaped(2, compile_seconds=0.1), *made.steady(50, {"device_busy": 1.0}))
    captured = [replace(event, run="c" + event.run) for event in of_profile()]
    explained = explanation(fold(made.HEADER, [*recorded, *captured]), "t")
    assert explained.subject == "program"
    assert "no-capture" not in unknown(explained)
    (copy,) = [finding for finding in explained.findings if finding.code == "layout-copy"]
    assert (copy.cost.scope, copy.cost.estimate) == ("program", True)
    whole = explained.session is not None and program_result(explained.session, "r1")
    assert whole
    assert copy.cost.seconds == pytest.approx(0.75 * whole.share("device_busy").seconds)
    assert copy.cost.share == pytest.approx(copy.cost.seconds / whole.wall_seconds)
    assert "device-idle" not in codes(explained), "of a program its samples tell that"
