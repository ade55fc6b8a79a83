"""The page in a browser: nothing is complained about or fetched, figures are the JSON's, tables and charts react."""

import json

import pytest

import browser
from jaxprof.base import units
from jaxprof.report.page.document import to_page
from report import sessions
from report.page.pages import hostile, with_ceilings
from report.page.test_document import many_kernels

PROGRAM = browser.executable()
pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(PROGRAM is None, reason=browser.MISSING),
    pytest.mark.timeout(300),
]


@pytest.fixture(scope="module")
def tab(tmp_path_factory):
    assert PROGRAM is not None
    with browser.chromium(tmp_path_factory.mktemp("chromium"), PROGRAM) as opened:
        yield opened


@pytest.fixture
def show(tab, tmp_path):
    """`show(session)` is a tab with its page, all charts drawn."""

    def opened(session, width=1000):
        file = tmp_path / "page.html"
        file.write_text(to_page(session, "last"), encoding="utf-8")
        page = tab()
        page.resize(width, mobile=width < 500)
        page.emulate()
        page.open(file.as_uri())
        page.ask("page.draw_all()")
        return page

    return opened


def undisturbed(page):
    assert page.complaints == []
    assert all(address.startswith("file:") for address in page.requests), page.requests
    return True


@pytest.mark.parametrize("make", [sessions.torn, sessions.swept, with_ceilings, hostile])
def test_a_page_draws_every_chart_and_complains_of_nothing(show, make):
    page = show(make())
    drawn, places = page.ask(
        "[document.querySelectorAll('.chart > :is(svg, canvas, .uplot)').length, "
        "document.querySelectorAll('figure[data-chart]').length]"
    )
    assert drawn == places
    assert page.ask("document.querySelectorAll('img, iframe').length") == 0
    assert undisturbed(page)


def test_policy_stops_injected_scripts(show):
    page = show(sessions.whole())
    page.ask(
        "document.body.insertAdjacentHTML('beforeend', '<button id=b onclick=\"window.ran = 1\">x</button>'); b.click()"
    )
    assert page.ask("window.ran ?? null") is None
    assert any("Content Security Policy" in line for line in page.complaints)


def column(page, section, title, table=0):
    """The numbers (or the texts) of a column, as its rows stand."""
    return list(
        page.ask(
            f"""(() => {{
              const table = document.querySelectorAll('#{section} .table table')[{table}];
              const at = [...table.tHead.rows[0].cells].findIndex((cell) => cell.textContent === {json.dumps(title)});
              const cells = [...table.tBodies[0].rows].filter((row) => !row.hidden).map((row) => row.cells[at]);
              return cells.map((cell) => (cell.dataset.v === undefined ? cell.textContent : Number(cell.dataset.v)));
            }})()"""
        )
    )


def click(page, section, title):
    page.ask(
        f"[...document.querySelectorAll('#{section} th')].find((cell) => cell.textContent === {json.dumps(title)})"
        ".querySelector('button').click()"
    )


def test_a_heading_sorts_and_a_filter_filters(show):
    page = show(many_kernels(60))
    before = column(page, "kernels", "self")
    assert before == sorted(before, reverse=True)  # type: ignore[type-var]
    click(page, "kernels", "self")
    click(page, "kernels", "self")
    assert column(page, "kernels", "self") == before[::-1]
    click(page, "kernels", "kernel")
    assert column(page, "kernels", "kernel")[:3] == ["k0", "k1", "k2"]
    rows = "[...document.querySelector('#kernels .table tbody').rows]"
    visible = f"{rows}.filter((row) => row.offsetParent !== null).length"
    assert page.ask(visible) == 25
    page.ask("document.querySelector('#kernels .tools button').click()")
    assert page.ask(visible) == 60
    page.ask("document.querySelector('#kernels input').value = 'K5'")
    page.ask("document.querySelector('#kernels input').dispatchEvent(new Event('input'))")
    assert column(page, "kernels", "kernel") == ["k5", *(f"k5{digit}" for digit in range(10))]
    assert page.ask("document.querySelector('#kernels .tools span').textContent") == "11 of 60 rows"
    assert undisturbed(page)


def test_the_script_writes_quantities_as_the_reports_do(show):
    page = show(sessions.whole())
    numbers = [0, 1e-10, 999.96e-9, 0.00437, 0.99996, 1.5, 119.6, 4000, 1023, 1024, 123456789, 999.6, 0.4, -2e-3]
    for name in ("seconds", "bytes_", "scaled"):
        written = page.ask(f"{json.dumps(numbers)}.map((value) => units.{name.rstrip('_')}(value))")
        assert written == [getattr(units, name)(number) for number in numbers]
    shares = [0, 1e-6, 0.004, 0.87, 0.996, 1]
    assert page.ask(f"{json.dumps(shares)}.map((value) => units.percent(value))") == [units.percent(s) for s in shares]


def test_chart_of_passes_zooms_and_pans(show):
    page = show(sessions.captured())
    canvas = "[...document.querySelectorAll('#compile canvas')][0]"
    page.ask(f"{canvas}.scrollIntoView({{block: 'center'}})")
    box = page.ask(f"(({{x, y, width, height}}) => ({{x, y, width, height}}))({canvas}.getBoundingClientRect())")
    window = f"[Number({canvas}.dataset.from), Number({canvas}.dataset.to)]"
    assert page.ask(window) == [0, 1]
    x, y = box["x"] + box["width"] * 0.2, box["y"] + 10  # the first row
    page.mouse("mouseMoved", x, y)
    assert page.ask(f"{canvas}.parentNode.querySelector('.said').textContent").startswith("compile: ")
    page.mouse("mouseWheel", x, y, deltaX=0, deltaY=-120, modifiers=2)
    page.until(f"{window}[1] - {window}[0] < 0.9")
    begin, end = page.ask(window)
    page.mouse("mousePressed", x, y, button="left", clickCount=1)
    page.mouse("mouseMoved", x - 100, y, button="left", buttons=1)
    page.mouse("mouseReleased", x - 100, y, button="left", clickCount=1)
    page.until(f"{window}[0] > {begin} + 0.01")
    assert page.ask(f"{window}[1] - {window}[0]") == pytest.approx(end - begin)
    page.ask(f"{canvas}.focus()")
    page.call("Input.dispatchKeyEvent", type="keyDown", key="Escape")
    page.until(f"{window}[1] === 1 && {window}[0] === 0")
    assert undisturbed(page)


@pytest.mark.parametrize("make", [sessions.captured, hostile])
def test_a_phone_needs_no_sideways_scrolling(show, make):
    page = show(make(), width=320)
    assert page.ask("document.documentElement.scrollWidth") <= 320
    assert page.ask("Math.max(...[...document.querySelectorAll('.chart')].map((box) => box.scrollWidth))") <= 320
    assert undisturbed(page)


def test_light_dark_and_paper_differ(show):
    page = show(sessions.captured())
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.ask(ground)
    axis = "document.querySelector('.uplot canvas').toDataURL()"
    drawn = page.ask(axis)
    page.emulate(dark=True)
    page.until(f"{axis} !== {json.dumps(drawn)}")  # charts are drawn anew
    assert page.ask(ground) != light
    page.emulate(dark=True, media="print")
    assert page.ask(ground) == "rgb(255, 255, 255)"
    assert page.ask("getComputedStyle(document.querySelector('nav')).display") == "none"
    assert page.call("Page.printToPDF")["data"]
    assert undisturbed(page)
