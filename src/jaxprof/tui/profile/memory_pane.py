"""The memory of a run, with what its device reported. A thread derives it, because that reads the HLO."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.content import Content
from textual.message import Message

from jaxprof.tui.kit.memory.plots import MemoryReading
from jaxprof.tui.kit.memory.view import MemoryView
from jaxprof.tui.kit.threads import in_thread
from jaxprof.units import UNKNOWN, bytes_, percent

if TYPE_CHECKING:
    from jaxprof.analysis.memory import MemoryPicture
    from jaxprof.session import Run, Session


class MemoryPane(MemoryView):
    """The memory of one run."""

    class Derived(Message, bubble=False):
        """A thread has derived the memory of a run; None if nothing is known about it."""

        def __init__(self, run: str, picture: MemoryPicture | None) -> None:
            super().__init__()
            self.run, self.picture = run, picture

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._session: Session | None = None
        self._run = ""

    def show(self, session: Session, run: Run | None, words: str = "") -> None:
        """Derives the memory of a run in a thread, and shows it. `words` say why there is none, where that is known."""
        if words:
            self._session, self._run = session, ""
            self.show_words(words)
            return
        fresh = run is None or run.id != self._run or session is not self._session
        self._session, self._run = session, run.id if run is not None else ""
        if fresh:
            self.show_words("Analysing the memory…" if run is not None else "Nothing was run yet.")
        if run is not None:
            in_thread(self, lambda: self._derive(session, run.id), "memory")

    def _derive(self, session: Session, run: str) -> None:
        from jaxprof.analysis.memory import buffers_of

        self.post_message(self.Derived(run, buffers_of(session, run)))

    def on_memory_pane_derived(self, message: Derived) -> None:
        session, picture = self._session, message.picture
        if session is None or message.run != self._run or self._run not in session.runs:
            return
        run = session.runs[self._run]
        if picture is None:
            self.show_words(why_no_memory(run))
        else:
            self.show_picture(picture, readings_of(session, run), allocator_line(run))


def readings_of(session: Session, run: Run) -> list[MemoryReading]:
    """The memory in use on the run's device while it ran; none on a CPU, where all processes share the memory."""
    if run.started_seconds is None or run.plan.device.startswith("cpu"):
        return []
    begin, end = run.started_seconds, run.ended_seconds
    return [
        MemoryReading(reading.monotonic_seconds - begin, reading.memory_used_bytes)
        for reading in session.readings.get(run.plan.device, ())
        if reading.memory_used_bytes is not None
        and reading.monotonic_seconds >= begin
        and (end is None or reading.monotonic_seconds <= end)
    ]


def allocator_line(run: Run) -> Content:
    """The most bytes that the device's allocator reports to have allocated."""
    memory = run.memory
    if memory is None or memory.allocator_peak_bytes is None:
        why = "a CPU's allocator keeps no count" if run.plan.device.startswith("cpu") else "the device reports none"
        return Content.styled(f"allocator peak, measured: {UNKNOWN} ({why})", "$text-muted")
    limit = memory.allocator_limit_bytes
    share = memory.allocator_peak_bytes / limit if limit else None
    of = f" of {bytes_(limit)}, {percent(share)}" if limit else ""
    return Content.assemble("allocator peak, measured: ", (bytes_(memory.allocator_peak_bytes), "bold"), of)


def why_no_memory(run: Run) -> str:
    """Why a run has no memory to show."""
    if run.plan.how == "numpy":
        return "NumPy's memory is unknown: XLA compiles no program for it."
    if run.plan.how == "eager":
        return "An op-by-op run has no single program whose memory could be shown."
    if run.plan.how == "imported":
        return "This profile has no HLO of the program, from which its memory could be derived."
    return "No memory was recorded." if run.over else "The program is not compiled yet."
