"""What is drawn again: what looks different, whatever it depends on."""

from textual.app import App
from textual.content import Content
from textual.geometry import Size

from jaxprof.tui.kit.picture import Lines, Picture, show_titles
from tui.fakes import until

KNOWN: list[str] = []


class Shown(App[None]):
    CSS = "Picture { height: 1; }"

    def compose(self):
        yield Picture()
        yield Lines()

    def show(self):
        self.query_one(Picture).show(lambda width, height: Content(KNOWN[-1]))
        self.query_one(Lines).show(lambda width: map(Content, KNOWN))


async def test_unchanged_picture_is_not_sent_again(monkeypatch):
    app = Shown()
    KNOWN[:] = ["a"]
    async with app.run_test(size=(20, 6)) as pilot:
        app.show()
        await until(pilot, lambda: app.query_one(Picture).render().plain == app.query_one(Lines).render().plain == "a")
        app.show()
        await pilot.pause()
        drawn = []
        for widget in app.query("Picture, Lines"):
            name = type(widget).__name__
            monkeypatch.setattr(widget, "refresh", lambda name=name, **layout: drawn.append((name, layout)))
        for known, again in (
            ("a", []),
            ("ab", [("Picture", {}), ("Lines", {"layout": True})]),
            ("cb", [("Lines", {})]),
        ):
            drawn.clear()
            KNOWN[:] = known
            app.show()
            assert drawn == again, known
        for title, subtitle, again in (("a", "b", 2), ("a", "b", 0), ("a", None, 0), (None, "c", 1), ("", "c", 1)):
            drawn.clear()
            show_titles(app.query_one(Lines), *(None if text is None else Content(text) for text in (title, subtitle)))
            assert drawn == [("Lines", {})] * again, (title, subtitle)
        app.query_one(Lines).clear()
        assert not app.query_one(Lines).display


async def test_lines_get_their_height_though_a_layout_was_due_already():
    app = Shown()
    KNOWN[:] = ["a", "b"]
    async with app.run_test(size=(20, 9)) as pilot:
        app.show()
        lines = app.query_one(Lines)
        await until(pilot, lambda: lines.size.height == 2)
        lines.refresh(layout=True)
        app.screen._screen_resized(Size(30, 9))  # takes its height before what is due is done
        KNOWN.append("c")
        app.show()
        await until(pilot, lambda: lines.size.height == 3, "its height")
