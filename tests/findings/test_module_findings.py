"""Which kernels are far below their device, by which ceiling, why, and what is said where no finding explains the
largest part of the time."""

import json
import socket
from dataclasses import replace

import jax
import jax.numpy as jnp
import pytest
from explained_sessions import TRANSPOSES, codes, explained, profile, unknown
from jax import lax

import program_events as made
from analysis.made_runs import run, session
from folding import fold
from hlo.kernels.programs import compiled
from jaxprof import events as e
from jaxprof.analysis.runs import ceilings
from jaxprof.findings.modules import reason
from jaxprof.hlo.kernels.kernels import kernels, with_running
from report.sessions import kernel_times

H200 = "NVIDIA H200"


def captured(seconds, hlo=None, *, share=1.0, kind=H200, count=10, size=1 << 20, **more):
    """A function on a GPU: its product takes so long in ten calls, which is `share` of all its kernels."""
    text = (
        hlo
        or f"""HloModule jit_f, is_scheduled=true

ENTRY main {{
  x = f32[{size}] parameter(0)
  i = s32[{size},1] parameter(1)
  other = f32[{size}] negate(x), metadata={{op_name="jit(f)/neg" source_file="/home/me/f.py" source_line=6}}
  ROOT work = f32[{size}] tanh(other), metadata={{op_name="jit(f)/tanh" source_file="/home/me/f.py" source_line=7}}
}}
"""
    )
    rows = [
        kernel_times("work", seconds, count, device="gpu:0", module="jit_f"),
        kernel_times("other", seconds / share - seconds, 10, device="gpu:0", module="jit_f"),
    ]
    capture = e.KernelsMeasured(run="r1", kind="run", calls=10, rows=rows)
    return session(run("r1", capture, samples=[seconds / 10] * 9, hlo=text, kind=kind, device="cuda:0", **more))


FAST = 10 * (8 << 20) / 4.8e12
"""Seconds in which ten executions move their bytes by the vendor's figure."""


@pytest.mark.parametrize(
    ("made", "found"),
    [
        ({"seconds": 5 * FAST}, True),  # a fifth of the bandwidth
        ({"seconds": 3 * FAST}, False),  # a third of it
        ({"seconds": 50 * FAST, "share": 0.21}, True),
        ({"seconds": 50 * FAST, "share": 0.19}, False),  # less than a fifth of the time
        ({"seconds": 50 * FAST, "kind": "a device that nobody knows"}, False),
        ({"seconds": 50 * FAST, "size": 1 << 11}, False),  # its launch takes longer than its work
    ],
)
def test_slow_kernel_reaches_little_of_its_device(made, found):
    slow = [each.kernels for each in explained(captured(**made)).findings if each.code == "slow_kernel"]
    assert (("work",) in slow) is found


def test_it_names_the_line_the_rate_and_that_of_the_device():
    (finding,) = explained(captured(10 * FAST)).findings
    assert finding.where.text == "/home/me/f.py:7"
    assert finding.message == (
        "work (elementwise) reaches 480 GB/s of the 4.80 TB/s of H200 SXM, 10 %: the reason is not known"
    )
    assert finding.share == pytest.approx(1.0)
    assert finding.at_most, "a part of the time remains"


def test_a_kernel_that_a_finding_explains_is_not_found_again():
    text = """HloModule jit_f, is_scheduled=true

ENTRY main {
  other = f32[4096,4096]{1,0} parameter(0)
  work = f32[4096,4096]{0,1} copy(other)
  ROOT more = f32[4096,4096]{0,1} negate(work)
}
"""
    assert codes(explained(captured(1.0, text))) == ["layout_copy"]


def _recurrence(x, xs):
    return lax.scan(lambda c, a: (jnp.tanh(c + a), c), x, xs)


def names(module):
    """The names of all instructions of the entry."""
    return {instruction.name for instruction in module.entry.instructions}


def _convolved(x, filters):
    return lax.conv_general_dilated(x, filters, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


FORMS = {
    # a form that is slow on a CPU, its reason, and what is done instead
    "scatter": (lambda x, i: jnp.zeros(9).at[i].add(x), "a scatter", lambda x, i: x * i, "f32[4096] s32[4096]"),
    "sort": (jnp.sort, "a sort", jnp.max, "f32[4096]"),
    "argmax": (jnp.argmax, "values and their indices", jnp.max, "f32[4096]"),
    "window": (
        lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (2,), (2,), "VALID"),
        "each window",
        lambda x: jnp.maximum(x[::2], x[1::2]),
        "f32[4096]",
    ),
    "sine": (jnp.sin, "it calls a function for each element", jnp.tanh, "f32[4096]"),
    "groups": (
        jax.vmap(_convolved),
        "a grouped convolution",
        lambda x, k: lax.map(lambda each: _convolved(*each), (x, k)),
        "f32[4,8,8,8,3] f32[4,3,3,3,8]",
    ),
    "order": (lambda x: x + x.T, "it reads an array in another order", lambda x: x + x, "f32[512,512]"),
    "axis": (lambda x: (x * x).sum(0), "it reduces an axis", lambda x: (x * x).sum(1), "f32[512,512]"),
    "gather": (lambda x, i: x[i], "a gather", lambda x, i: x * i, "f32[4096] s32[4096]"),
    "padding": (
        jax.grad(lambda x: jnp.square(jnp.diff(x)).sum()),
        "padding or reversing",
        jax.grad(lambda x: jnp.square(x).sum()),
        "f32[4096]",
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_the_reason_is_one_that_the_hlo_shows(form):
    slow, why, near, arguments = FORMS[form]

    def reasons(function, platform="cpu"):
        return [text for kernel in kernels(compiled(function, arguments)) for text in reason(kernel, platform)[:1]]

    assert any(text.startswith(why) for text in reasons(slow))
    assert not any(text.startswith(why) for text in reasons(near))
    assert not any(reasons(slow, "gpu")), "what is slow on a CPU was measured there alone"


@pytest.mark.parametrize(("width", "small"), [(64, True), (100_000, False)])
def test_loop_is_slow_if_kernels_do_less_than_their_start(width, small):
    arguments = f"f32[{width}] f32[1000,{width}]"
    module = compiled(_recurrence, arguments)
    (loop,) = (each for each in with_running(module, names(module)) if each.runs_kernels)
    why, fix = reason(loop, "cpu")
    assert ("starting one takes longer" in why) is small
    assert ("unroll" in fix) is small


def bound_by(state, **where):
    """A program whose loop is bound by one part."""
    lines = [made.line(88, 0.9, state, "step", **where), made.line(90, 0.1, state, "step", **where)]
    return made.session(*made.steady(20, {state: 1.0}, lines), made.compiled())


def test_verdict_without_a_finding_names_its_lines():
    found = explained(bound_by("device_busy"))
    assert found.findings == ()
    assert found.leading.reason.startswith("device-bound 100 %, unexplained: 100 % of it is waited for at train.py:88")
    assert found.leading.command == "jaxprof script --plain --capture-steps 5 train.py --epochs 3"
    assert "no_capture" not in unknown(found), "it says the same"
    for shares in ({88: 1.0}, {88: 0.995, 90: 0.005}):  # the second is too little to be named
        lines = [made.line(line, share, "device_busy", "step") for line, share in shares.items()]
        one_line = made.session(*made.steady(20, {"device_busy": 1.0}, lines))
        assert "is waited for at train.py:88; only a capture shows which" in explained(one_line).leading.reason


def window(*, slow):
    """A program whose device works for the whole loop, and a capture of it: a kernel that takes nearly all of the time,
    at a tenth of its device or at the whole of it, beside one that only reorders."""
    events = profile(gap=0.0)
    rows = [
        kernel_times("fusion.1", 0.1 * FAST, 10, device="gpu:0", module="jit_turn"),
        kernel_times("fusion.2", (10 if slow else 1) * FAST, 10, device="gpu:0", module="jit_turn"),
    ]
    events = [replace(each, rows=rows) if isinstance(each, e.KernelsMeasured) else each for each in events]
    device = {"id": "gpu:0", "platform": "gpu", "kind": H200}
    seen = e.EnvironmentRead(run="cr2", python="3", numpy="2", devices=[device])
    lines = [made.line(88, 1.0, "device_busy", "step")]
    recorded = made.program(*made.steady(50, {"device_busy": 1.0}, lines))
    return fold(made.HEADER, [*recorded, *(replace(each, run="c" + each.run) for each in events), seen])


def test_tiny_finding_follows_the_note_about_the_rest():
    """A layout copy of 1 % beside a kernel that is as fast as its device."""
    found = explained(window(slow=False))
    note = found.leading
    assert note.reason.startswith("device-bound 100 %: 91 % of it in one kernel (fusion.2)")
    assert "unexplained" not in note.reason
    assert "100 %" in note.reason
    assert codes(found) == ["layout_copy"]


def test_a_slow_kernel_explains_what_bounds_the_loop():
    found = explained(window(slow=True))
    assert codes(found)[0] == "slow_kernel"
    assert found.leading is None


@pytest.mark.parametrize(("share", "leads"), [(0.3, False), (0.1, True)])
def test_note_leads_if_no_finding_is_a_quarter_as_much(share, leads):
    """Compilations of the loop beside its device, of which nothing is known."""
    lines = [made.line(88, 1 - share, "device_busy", "step"), made.line(88, share, "host_busy", "load", kind="data")]
    found = explained(made.session(*made.steady(40, {"device_busy": 1 - share, "data": share}, lines)))
    assert [each.code for each in found.findings] == ["data_waits"]
    assert (found.leading is not None) is leads


TRIAD = """HloModule jit_triad, is_scheduled=true

ENTRY main {
  b = f32[50000000] parameter(0)
  c = f32[50000000] parameter(1)
  ROOT sum = f32[50000000] add(b, c)
}
"""


def triad(busy):
    """A session in which triad was measured on this machine, of which other programs used so many cores."""
    settings = {"cpu_model": "A CPU", "other_busy_cores": busy, "cores": 2}
    seen = e.EnvironmentRead(run="r1", python="3", numpy="2", settings=settings)
    spec = {"workload": "triad", "device": "cpu:0", "hlo": TRIAD}
    return session(run("r1", seen, samples=[0.05, 0.051] * 9, **spec), host=socket.gethostname())


def on_cpu(seconds=0.1):
    """A function on this machine's processor, whose capture has one kernel."""
    environment = e.EnvironmentRead(run="r1", python="3", numpy="2", settings={"cpu_model": "A CPU"})
    rows = [kernel_times("fusion.1", 10 * seconds, 10, device="cpu:0", module="jit_turn")]
    text = TRANSPOSES.replace("transpose(%p), dimensions={1,0}", "negate(%p)")
    capture = e.KernelsMeasured(run="r1", kind="run", calls=10, rows=rows)
    return session(run("r1", environment, capture, samples=[seconds] * 9, hlo=text), host=socket.gethostname())


def test_missing_ceilings_name_the_command_and_the_refusal():
    note = explained(on_cpu()).leading
    assert note.reason.endswith(
        "was not measured, so that a slow kernel does not show: measure it once, on an idle machine"
    )
    assert note.command == "jaxprof run gemm-peak triad"
    ceilings.remember(triad(busy=0.8))
    again = explained(on_cpu()).leading.reason
    assert "unknown, because its measurement was disturbed (" in again
    assert again.endswith("repeat it idle")
    ceilings.remember(triad(busy=0.1))
    of = on_cpu()
    assert ceilings.session_rates(triad(busy=0.1), "cpu:0").keys() == {"memory"}
    assert "disturbed" not in ceilings.why_unmeasured(of, of.runs["r1"]), "the peak of products is still to be measured"


@pytest.mark.parametrize(
    ("times", "words"), [(8.0, "so a cache holds its arrays"), (0.9, "which reaches"), (0.1, "unexplained; it reaches")]
)
def test_kernel_faster_than_memory_is_said_to_be_cached(times, words, state_home):
    """The kernel moves as many times the bytes per second that triad does. Nothing is known to mend it, so it is no
    finding, however slow."""
    bandwidth = 8e9
    took = 2 * 1024 * 1024 * 4 / (times * bandwidth)  # it reads one array and writes another
    rates = {"memory": {"per_second": bandwidth, "call_bytes": 4e8, "measured": 1.8e9}}
    rates["f32"] = {"per_second": 1e15, "call_bytes": None, "measured": 1.8e9}
    (state_home / "ceilings.json").write_text(json.dumps({"rates": {"A CPU": rates}, "refused": {}}))
    of = on_cpu(seconds=took)
    reason = explained(of).leading.reason if explained(of).leading is not None else ""
    assert words in reason
    assert ("cache" in reason) is (times == 8.0)
    assert "slow_kernel" not in codes(explained(of))
