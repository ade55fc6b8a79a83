"""The app without processes, without the machine, and without the catalogue: everything that it shows is given here."""

import os
import threading
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from time import monotonic

from textual._context import visible_screen_stack

from jaxprof import events as e
from jaxprof.base.errors import WorkerError
from jaxprof.devices import Device
from jaxprof.runner.interpreter import Interpreter
from jaxprof.session import LogWriter, Session
from jaxprof.tui.kit.dialogs import READING
from jaxprof.tui.kit.host import Destination
from jaxprof.tui.shell.profiler import Profiler
from jaxprof.workloads.model import Estimate, Parameter, VariantInfo, WorkloadInfo
from waiting import SLOWER

NOW = 1_795_000_000.0
"""The time of day in every test: 2026-11-18 11:06:40 UTC."""
HEADER = e.Header(created="2026-11-18T11:06:40Z", host="box", wall_seconds=NOW)
HOSTILE = "[b]evil[/x] \x1b[31m\u202etxt"
PYTHON = Interpreter("/usr/bin/python3", "0.10.2")


PATIENCE_SECONDS = 30.0 * SLOWER
"""How long a test of the app waits for something, on a machine that may have much else to do."""


class StillDevices:
    """A machine whose readings never change: an H200 that JAX uses, a CPU, and a GPU that JAX does not use."""

    driver, is_late = None, False
    CPU = Device(id="cpu:0", platform="cpu", kind="AMD EPYC 9654", core_count=16)

    def local(self):
        return [self.CPU]

    def late(self):
        return None

    def usable(self, interpreter):
        hidden = {"reason": "CUDA_VISIBLE_DEVICES hides it", "hint": "unset CUDA_VISIBLE_DEVICES"}
        return [
            Device(
                id="cuda:0", platform="cuda", kind="NVIDIA H200", compute_capability="9.0",
                used_by_jax=True, is_default=True,
            ),
            replace(self.CPU, used_by_jax=True),
            Device(id="nvidia:1", platform="cuda", kind="NVIDIA T4", used_by_jax=False, **hidden),
        ]  # fmt: skip

    def read(self):
        return [
            e.DeviceReading(
                device="cuda:0", utilisation=0.87, memory_used_bytes=int(98.2 * 2**30),
                memory_limit_bytes=int(139.8 * 2**30), power_watts=612.4, power_limit_watts=700.0,
                temperature_celsius=64.0, clock_hertz=1.98e9,
            ),
            e.DeviceReading(
                device="cpu:0", utilisation=0.12, memory_used_bytes=int(21.4 * 2**30), memory_limit_bytes=128 * 2**30,
                load_average=1.9,
            ),
            e.DeviceReading(device="nvidia:1"),
        ]  # fmt: skip


class Clocked(StillDevices):
    def read(self):
        *others, cpu, other = super().read()
        return [*others, replace(cpu, clock_hertz=2.6e9), other]


class NoJax(StillDevices):
    def usable(self, interpreter):
        raise WorkerError("jax is not installed there", "pip install jax")


class NoMachine(StillDevices):
    def local(self):
        raise WorkerError("the machine cannot be read", "")


class FakeQueue:
    """What a queue of runs and a program have in common: each goes on until the test lets it end."""

    def __init__(self, header, listen):
        self.header = header
        self.listen = listen
        self.cancelled = []
        self.closed = ""
        self.closed_in = None
        self.moved_to = []
        self.storage_failure = None
        self.file_change = ""
        self.busy = False
        self._go = threading.Event()

    def run(self):
        """Blocks, as the real one does, until the test lets it end."""
        assert self._go.wait(2 * PATIENCE_SECONDS), "the test never let it end"
        self._go.clear()
        self.busy = False

    def emit(self, *events):
        self.listen(list(events))

    def cancel(self, run):
        self.cancelled.append(run)

    def cancel_all(self):
        self.cancelled.append("all")

    def move_to(self, path):
        self.moved_to.append(path)
        self.storage_failure = None

    def close(self, reason="finished"):
        self.closed = self.closed or reason
        self.closed_in = self.closed_in or threading.current_thread()
        self._go.set()


class FakeScheduler(FakeQueue):
    def __init__(self, header, listen):
        super().__init__(header, listen)
        self.planned = []
        self.batches = 0

    def add(self, planned):
        self.batches += 1
        self.busy = True
        for plan in planned:
            self.planned.append(plan)
            run = f"r{len(self.planned)}"
            baseline = f"r{self.planned.index(plan.baseline) + 1}" if plan.baseline is not None else ""
            spec = replace(plan.spec, baseline=baseline)
            self.emit(e.RunPlanned(run=run, spec=spec, batch=self.batches))
            if plan.comparison is not None:
                self.emit(replace(plan.comparison, run=run))
        return [f"r{len(self.planned) - back}" for back in reversed(range(len(planned)))]

    def finish(self):
        self._go.set()


class FakeProgramScheduler(FakeQueue):
    def __init__(self, header, program, listen):
        super().__init__(header, listen)
        self.program = program
        self.captured = []
        self.exit_code = None

    def start(self):
        self.busy = True
        began = monotonic()
        self.emit(
            e.RunPlanned(spec=e.RunSpec(workload=self.program.name, variant="program", how="program", device="host")),
            e.WorkerStarted(pid=4711, python="/venv/bin/python", monotonic_seconds=began),
            e.ProgramStarted(argv=self.program.argv, how="script", directory="/home/me", monotonic_seconds=began),
        )
        return "r1"

    def finish(self, exit_code=0):
        self.exit_code = exit_code
        end = {"status": "failed", "error": f"exit code {exit_code}"} if exit_code else {"status": "ok"}
        self.emit(
            e.ProgramEnded(exit_code=exit_code, wall_seconds=1.5),
            e.RunFinished(**end),
            e.RunClosed(workload=self.program.name, variant="program", device="host", **end),
        )
        self._go.set()

    def emit(self, *events):
        super().emit(*(replace(event, run="r1") for event in events))

    def capture(self, seconds):
        self.captured.append(seconds)


class Stage:
    def __init__(self, path=None, devices=StillDevices, **options):
        self.scheduler = None
        self.programs = []
        self.app = Profiler(path, interpreter=PYTHON, make=self._make, devices=devices, **options)
        self.app.folder = Path("/a folder that is not there")
        self.app.animation_level = "none"  # a list that scrolls to its end is a second on the way

    def _make(self, program, interpreter, listen):
        if program is not None:
            return self._make_program(program, listen)
        header = replace(HEADER, session="feedfeedfeed")
        self.scheduler = FakeScheduler(header, listen)
        return self.scheduler, Session(header), Path("/state/2026-11-18T11-06-40-feed.jaxprof")

    def _make_program(self, program, listen):
        header = replace(HEADER, session="cafecafecafe")
        made = FakeProgramScheduler(header, program, listen)
        self.programs.append(made)
        return made, Session(header), Path(f"/state/2026-11-18T11-06-40-caf{len(self.programs)}.jaxprof")


def info(name="selu", **changes):
    given = {
        "name": name,
        "title": "lmbda * where(x > 0, x, alpha * exp(x) - alpha)",
        "description": "Five elementwise operations over one array, of which XLA makes one kernel.",
        "parameters": (Parameter(name="n", description="length of the vector", minimum=1, maximum=1e9),),
        "presets": {"quick": {"n": 1_000_000}, "published": {"n": 4_000_000}},
        "variants": tuple(
            VariantInfo(name=name, how=how, description=description, source=source)
            for name, how, description, source in (
                ("numpy", "numpy", "NumPy on the host", "def numpy_selu(x):\n    return x\n"),
                ("jax", "eager", "op by op", "def jax_selu(x):\n    return x\n"),
                ("jit", "jit", "one compiled program", 'def jit_selu(x):\n    return "s" # no\n'),
            )
        ),
        "baseline": "numpy",
    }
    return WorkloadInfo(**{**given, **changes})


CARDS = [
    info("matmul", title="dot(x, x.T)"),
    info("selu"),
    info("hessian", title="jacfwd(jacrev(f))", parameters=(), presets={"quick": {}, "published": {}}),
]


class Needs:
    """A built-in workload, as far as the screens ask it."""

    has_dots = False

    def estimate(self, parameters):
        return Estimate(memory_bytes=24e6, flops=5e6, traffic_bytes=8e6)


def keep_session(folder, name, *runs, complete=True, age_seconds=0.0):
    """Writes a session; each run is workload, variant, status, median."""
    header = e.Header(
        jaxprof="0.1.0", session="beefbeefbeef", created="2026-11-18T10:00:00Z", host="box",
        command=["jaxprof", "run", "selu"], wall_seconds=NOW - age_seconds,
    )  # fmt: skip
    path = folder / f"{name}.jaxprof"
    writer = LogWriter(header, path)
    for index, (workload, variant, status, median) in enumerate(runs, 1):
        run = f"r{index}"
        writer.append(
            e.RunPlanned(run=run, spec=e.RunSpec(workload=workload, variant=variant, how="jit", device="cpu:0",
                                               parameters={"n": 1_000_000}, baseline="" if index == 1 else "r1"))
        )  # fmt: skip
        writer.append(
            e.RunClosed(
                run=run, workload=workload, variant=variant, device="cpu:0", status=status, median_seconds=median,
                error="" if status == "ok" else "out of memory: 40 GiB were asked for",
            )
        )  # fmt: skip
    if complete:
        writer.append(e.SessionClosed())
    writer.close()
    _pad(path, 1024 * (1 + len(runs)))
    os.utime(path, (NOW - age_seconds, NOW - age_seconds))
    return path


def _pad(path, size_bytes):
    """Brings a session file to one size, which pictures show: what a schema adds to an event would change them."""
    text = path.read_text()
    empty, filled = '"environment":{}', '"environment":{"padding":"%s"}'
    missing = size_bytes - len(text.encode()) - len(filled) + len("%s") + len(empty)
    assert empty in text
    assert missing >= 0, f"{path.name} has more than {size_bytes} bytes"
    path.write_text(text.replace(empty, filled % ("x" * missing), 1))
    assert path.stat().st_size == size_bytes


async def until(pilot, holds, what=""):
    """Waits until something holds; the screen's text is in the failure."""
    end, rest = monotonic() + PATIENCE_SECONDS, 0.002
    while monotonic() < end:
        if holds():
            return
        await pilot.pause(rest)
        rest = min(0.05, rest * 1.5)  # looking takes time from the threads that are waited for
    raise AssertionError(f"it never held: {what}\n{screen_text(pilot.app)}")


async def still(pilot):
    """Waits until the picture stays the same for a few rounds of messages.

    `pilot.pause()` waits until the process uses no processor time, which on a loaded machine also holds for a process
    that waits for its turn: a layout may be due then.
    """
    before, same = [], 0
    end = monotonic() + PATIENCE_SECONDS
    while monotonic() < end:
        await pilot.pause(0.01)
        picture = strips(pilot.app)
        same = same + 1 if picture == before and READING not in screen_text(pilot.app) else 0
        if same == 3:
            return
        before = picture
    raise AssertionError(f"the picture never stays the same\n{screen_text(pilot.app)}")


class Walk:
    def __init__(self, stage, pilot):
        self.stage = stage
        self.pilot = pilot
        self.app = stage.app

    @property
    def screen(self):
        return self.app.screen

    @property
    def text(self):
        return screen_text(self.app)

    @property
    def words(self):
        return in_one_line(self.text)

    @property
    def said(self):
        return " ".join(f"{one.title} {one.message}" for one in self.app._notifications)

    def find(self, kind):
        return self.app.screen.query_one(kind)

    def row(self, *words):
        return next(line for line in self.text.split("\n") if all(word in line for word in words))

    async def until(self, holds, what=""):
        await until(self.pilot, holds, what)

    async def shows(self, *words, gone=""):
        """Waits until each of these can be read, within a line or across lines and frames, and `gone` no longer."""

        def there():
            text = self.text
            seen = f"{text}\n{in_one_line(text)}\n{self.said}"
            return all(one in seen for one in words) and not (gone and gone in seen)

        await until(self.pilot, there, f"{words}" + (f", not {gone!r}" if gone else ""))

    async def on(self, kind):
        """The screen in view, once it is of that class, or of one with that name, and has its widgets."""

        def there():
            named = type(self.screen).__name__ == kind if isinstance(kind, str) else isinstance(self.screen, kind)
            return named and getattr(self.screen, "whole", True)

        await until(self.pilot, there, str(kind))
        return self.screen

    async def home(self):
        screen = await self.on("HomeScreen")
        rows = screen.query_one("#start")
        await self.until(lambda: rows.count and rows.row(rows.keys[-1]).note, "workloads")
        return screen

    async def mode(self, name):
        await until(self.pilot, lambda: self.app.current_mode == name, f"the mode {name}")

    async def press(self, keys, *words, gone=""):
        """Presses keys, set apart by spaces, and waits for words. What follows a `'` is typed by letters."""
        for key in keys.split():
            await self.pilot.press(*(key[1:] if key[0] == "'" and key[1:] else [key]))
        await self.pilot.pause(0)
        if words or gone:
            await self.shows(*words, gone=gone)

    async def through(self, script):
        """Goes line by line: keys, and then, each behind a `|`, what is waited for: words, `!words` that are gone,
        `@Screen`, the class of the screen in view, or `#mode`."""
        for line in script.strip().splitlines():
            keys, *expected = (part.strip() for part in line.split("|"))
            await self.press(keys)
            for one in expected:
                if one[0] == "@":
                    await self.on(one[1:])
                elif one[0] == "#":
                    await self.mode(one[1:])
                else:
                    await (self.shows(gone=one[1:]) if one[0] == "!" else self.shows(one))

    async def pause(self):
        await self.pilot.pause()

    async def show(self, session, mode, *words, gone="", view="", run=""):
        """Goes to a screen with this session; its text has the words. `view`: of the profile of `run` or the last."""
        self.app.set_session(session if isinstance(session, Session) else session.session(), None)
        await self.pilot.pause()  # until a screen in view shows it: the words may have been there before
        if view:
            self.app.show(Destination("profile", view, run or next(reversed(self.app.session.runs))))
        else:
            self.app.switch_mode(mode)
        await self.until(lambda: self.app.current_mode == mode and self.screen.whole, mode)
        await self.until(lambda: self.app.focused or self.screen.has_class("-empty"), f"{mode} has the focus")
        await self.shows(*words, gone=gone)
        await self.pilot.pause()
        return self.screen


SMALL, MIDDLE, WIDE = (80, 24), (100, 32), (120, 40)


@asynccontextmanager
async def walking(size=WIDE, stage=None):
    stage = stage or Stage()
    async with stage.app.run_test(size=size, notifications=True) as pilot:
        yield Walk(stage, pilot)


def in_one_line(text):
    return " ".join(text.translate(dict.fromkeys(map(ord, "│╭╮╰╯─"), " ")).split())


def screen_text(app):
    return "\n".join(line for strip in strips(app) if (line := strip.text.rstrip()))


drawn = {}
"""By screen what was drawn of it, while nothing has changed (`drawn_when_looked_at`)."""


def strips(app):
    """The lines of the screen, with their styles. A screenshot of Textual has the same, and takes ten times as long."""
    screen = app.screen
    if screen not in drawn:
        visible_screen_stack.set(app._background_screens)  # a dialog lies over these
        drawn[screen] = screen._compositor.render_strips()
    return drawn[screen]
