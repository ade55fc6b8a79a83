"""The ways through the app: from mode to mode, into the details of a run, back, and out.

Quitting asks first while a run is in progress, except at the second ctrl+c. Every child ends with the app.
"""

from __future__ import annotations

from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from jaxprof.tui.comparison import LiveComparison
from jaxprof.tui.kit.threads import in_thread
from jaxprof.tui.profiler import ModeScreen, Profiler

if TYPE_CHECKING:
    from collections.abc import Mapping

    from textual.actions import ActionParseResult
    from textual.dom import DOMNode
    from textual.widget import AwaitMount

TWICE_SECONDS = 2.0
"""Within this time a second ctrl+c quits."""


class ScreenNavigation(Profiler):
    """The part of the app that goes from screen to screen."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._trail: list[str] = []
        """The modes that Esc leads back through, the last one first gone to last."""
        self._mode_wanted = ""
        """Where a key leads to that came with others; empty once there."""
        self._interrupted_seconds = float("-inf")
        """When the user pressed ctrl+c last."""
        self.comparison = LiveComparison(self)

    def action_go(self, mode: str) -> None:
        """Goes to a mode. Of several that were asked for at once, only to the last: a change of screen costs a new
        layout, and nothing is drawn until all are over."""
        self._mode_wanted = mode
        self.call_later(self._arrive)

    def _arrive(self) -> None:
        mode, self._mode_wanted = self._mode_wanted, ""
        if mode:
            self.switch_mode(mode)

    def switch_mode(self, mode: str) -> AwaitMount:
        """Goes to a mode, and remembers from where. A mode that lies on the way back is gone back to, and one that was
        asked for before is not gone to any more."""
        self._mode_wanted = ""
        if mode in self._trail:
            del self._trail[self._trail.index(mode) :]
        elif mode != self.current_mode:
            self._trail.append(self.current_mode)
        return super().switch_mode(mode)

    async def run_action(
        self,
        action: str | ActionParseResult,
        default_namespace: DOMNode | None = None,
        namespaces: Mapping[str, DOMNode] | None = None,
    ) -> bool:
        """Runs the action of a key; says why where its screen dims it."""
        if await super().run_action(action, default_namespace, namespaces):
            return True
        screen = self.screen
        if default_namespace is not screen or not isinstance(screen, ModeScreen) or not isinstance(action, str):
            return False
        dimmed = "(" not in action and screen.check_action(action, ()) is None
        reason = screen.why_not(action) if dimmed else ""
        if reason:
            self.notify(reason, markup=False)
        return bool(reason)

    async def action_back(self) -> None:
        """Closes the screen on top; from a mode, goes back to the one before, in the end to Home."""
        if len(self.screen_stack) > 1:
            self.pop_screen()
        else:
            self.step_back()

    def step_back(self) -> None:
        """Goes to the mode before."""
        self.switch_mode(self._trail[-1] if self._trail else "home")

    def action_press(self, key: str) -> None:
        """Presses a key; a click in the key bar calls this."""
        self.simulate_key(key)

    def show_results(self, run: str = "") -> None:
        """Goes to Results, with that run in view."""
        self.run_in_view = run or self.run_in_view
        self.switch_mode("results")

    def show_program(self, run: str = "", view: str = "", words: str = "") -> None:
        """Goes to the screen of that program, and to a view of it, with only the rows that have these words."""
        self.run_in_view = run or self.run_in_view
        self.words_wanted = (view, words)
        in_view = self.current_mode == "program"
        self.switch_mode("program")
        for screen in self.session_screens:
            if in_view and screen.MODE == "program":
                screen.come_into_view()

    def show_run_detail(self, run: str) -> None:
        """Shows all details of that run on a screen above Run or Results."""
        from jaxprof.tui.results.run_detail import RunDetailScreen

        self.push_screen(RunDetailScreen("run" if self.current_mode == "run" else "results", run))

    def show_comparison(self, first: str, second: str) -> None:
        """Goes to the comparison of two runs of the session, on a screen above Results."""
        from jaxprof.tui.results.compare_screen import CompareScreen

        self.show_results(second)
        self.push_screen(CompareScreen(first, second))

    def show_hlo(self, run: str = "", kernel: str = "") -> None:
        """Goes to the HLO of that run, and to a kernel in it; Esc returns to the current mode."""
        self.run_in_view, self.kernel_wanted = run or self.run_in_view, kernel
        self._show_in("hlo")

    def open_hlo(self, path: Path) -> None:
        """Goes to the HLO in a file, or in a folder of XLA dumps."""
        self.hlo_wanted = path
        self._show_in("hlo")

    def open_job(self, folder: Path) -> None:
        """Goes to the job whose processes have their sessions in that folder."""
        self.job_folder = folder
        self._show_in("job")
        self.show_state()

    def _show_in(self, mode: str) -> None:
        """Goes to a mode that has something to show, also if it is in view already."""
        in_view = self.current_mode == mode
        self.switch_mode(mode)
        for screen in self.session_screens:
            if in_view and mode == screen.MODE:
                screen.come_into_view()

    def show_profile(self, run: str = "", view: str = "timeline", kernel: str = "") -> None:
        """Goes to a view of that run's profile, and to a kernel in it; Esc returns to the current mode."""
        self.run_in_view, self.view_wanted, self.kernel_wanted = run or self.run_in_view, view, kernel
        self._show_in("profile")

    def show_history(self, workload: str = "") -> None:
        """Shows how a workload, or all of them, went over the kept sessions, on a screen above the current one."""
        from jaxprof.tui.history.screen import HistoryScreen

        self.push_screen(HistoryScreen(self.current_mode, workload))

    def action_help(self) -> None:
        """Shows what each screen answers, and the keys of the current one."""
        from jaxprof.tui.help import HelpScreen

        if not isinstance(self.screen, HelpScreen):
            self.push_screen(HelpScreen(self.screen))

    # -- quitting ---------------------------------------------------------------------------------------------

    def action_interrupt(self) -> None:
        """Cancels the current run; a second time within two seconds, quits."""
        now = monotonic()
        if now - self._interrupted_seconds < TWICE_SECONDS:
            self._quit()
            return
        self._interrupted_seconds = now
        if self.comparison.give_up():
            self.notify("Press ctrl+c again to quit.", title="The comparison is cancelled", markup=False)
        elif self.live.busy:
            self.live.cancel_current()
            self.notify("Press ctrl+c again to quit.", title="Cancelling the run", severity="warning", markup=False)
        else:
            self.notify("Press ctrl+c again to quit.", title="Nothing is running", markup=False)

    async def action_quit(self) -> None:
        """Quits; asks first while a run is in progress."""
        if not self.live.busy:
            self._quit()
            return
        from jaxprof.tui.kit.dialogs import Confirm

        question = "A run is in progress. The session keeps what it has measured so far."
        Confirm("Quit jaxprof?", question, "Cancel it and quit").ask(self, lambda yes: self._quit())

    def _quit(self) -> None:
        """Ends the children and closes the log in a thread, then ends the app."""
        self.monitor.stop()

        def close() -> None:
            try:
                self.live.close()
            finally:
                self.call_from_thread(self.exit)

        in_thread(self, close, "leave")
