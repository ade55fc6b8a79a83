"""The memory of a module that no session holds: an HLO file has no run, and so no place in Profile."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from textual.binding import BindingType
from textual.message import Message

from jaxprof.analysis.memory import memory_of
from jaxprof.tui.keys import bindings
from jaxprof.tui.kit.fact_list import FactTarget
from jaxprof.tui.kit.guard import on
from jaxprof.tui.kit.memory.buffers import BufferList
from jaxprof.tui.kit.memory.view import MemoryView
from jaxprof.tui.kit.screen import SessionScreen, set_size_classes
from jaxprof.tui.kit.threads import in_thread

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from jaxprof.analysis.memory import MemoryPicture
    from jaxprof.hlo.model import Module


class MemoryScreen(SessionScreen):
    """An estimate from the schedule of one module, above HLO."""

    MODE: ClassVar[str] = "hlo"
    AUTO_FOCUS = "#buffers"
    BINDINGS: ClassVar[list[BindingType]] = bindings("module_memory")

    class Derived(Message, bubble=False):
        """A thread has derived the memory; None if the module has no schedule."""

        def __init__(self, picture: MemoryPicture | None) -> None:
            super().__init__()
            self.picture = picture

    def __init__(self, module: Module, show_text: Callable[[FactTarget], None]) -> None:
        """`show_text` goes to an instruction in the text, once this is closed."""
        super().__init__()
        self._module = module
        self._show_text = show_text

    def on_unmount(self) -> None:
        """Stops hearing of changes."""
        if self in self.profiler.session_screens:
            self.profiler.session_screens.remove(self)

    def compose_body(self) -> ComposeResult:
        set_size_classes(self)
        yield MemoryView(id="memory")

    def on_mount(self) -> None:
        self.query_one(MemoryView).show_words("Analysing the memory…")
        in_thread(self, lambda: self.post_message(self.Derived(self._module.once(memory_of))), "memory")

    def on_memory_screen_derived(self, message: Derived) -> None:
        view, picture = self.query_one(MemoryView), message.picture
        if picture is None:
            view.show_words("The order of its instructions is not that of execution, so what is alive when is unknown.")
        else:
            view.show_picture(picture)

    @on(BufferList.HloRequested)
    def _to_instruction(self, message: BufferList.HloRequested) -> None:
        computations = self._module.computations.values()
        holder = next((computation for computation in computations if computation.get(message.name) is not None), None)
        self.dismiss()
        if holder is not None:
            self._show_text(FactTarget(holder.name, message.name))

    def action_close(self) -> None:
        """Takes the cursor back to the peak, else goes back to HLO."""
        if not self.query_one(MemoryView).to_peak():
            self.dismiss()
