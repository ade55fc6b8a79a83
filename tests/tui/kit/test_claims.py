"""Claims: those that are not under the cursor also use the lines that are free."""

from __future__ import annotations

from textual.app import App, ComposeResult

from jaxprof.tui.kit.claims import Claim, ClaimList
from tui.fakes import screen_text


class Shown(App[None]):
    def compose(self) -> ComposeResult:
        yield ClaimList("Nothing.")


async def test_claims_that_do_not_all_fit_share_the_free_lines() -> None:
    app = Shown()
    async with app.run_test(size=(40, 9)) as pilot:
        claims = app.query_one(ClaimList)
        claims.show(Claim(f"{name} takes most of the wall time of it", fix=f"mend {name}") for name in "abc")
        await pilot.pause()
        text = screen_text(app)
        assert [text.count(f"mend {name}") for name in "abc"] == [1, 1, 1]
        for height, shown in ((7, ["mend a", "mend b"]), (6, ["mend a"])):
            await pilot.resize_terminal(40, height)
            await pilot.pause()
            lines = [line.rstrip() for line in screen_text(app).split("\n")]
            assert [line.strip() for line in lines if "mend" in line] == shown
            assert len([line for line in lines if line]) == height
        assert lines[4].endswith(" …"), "what is left out is marked"
