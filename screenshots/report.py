"""Pictures of the page that `jaxprof export --format html` writes: `python screenshots/report.py` (about two minutes).

It is the page of the kept session `transformer.jaxprof`; a headless Chromium shows it, in light, in dark and as
wide as a phone.
"""

from __future__ import annotations

import sys
from base64 import b64decode
from pathlib import Path

from make import HERE, in_the_pictures, shelf, studio

sys.path.insert(0, str(HERE.parent / "tests"))
from browser import MISSING, Page, chromium, executable

SHOTS = (
    ("report", "answer", 1200, 900, False),
    ("report-kernels", "kernels", 1200, 1000, True),
    ("report-steps", "steps", 1200, 800, False),
    ("report-phone", "runs", 360, 800, False),
)
"""Each with the section that it shows, its size and whether it is dark."""


def shoot(page: Page, file: Path, name: str, section: str, size: tuple[int, int], *, dark: bool) -> None:
    """Write the picture of one section beside this script."""
    page.resize(*size, mobile=size[0] < 500)
    page.emulate(dark=dark)
    page.open(file.as_uri())
    page.ask("page.draw_all()")
    page.ask(f"{'window.scrollTo(0, 0)' if section == 'answer' else f'{section}.scrollIntoView()'}")
    page.ask("new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(go)))")
    (HERE / f"{name}.png").write_bytes(b64decode(page.call("Page.captureScreenshot")["data"]))
    print(f"{name}.png")


def main() -> None:
    """All pictures, in a state folder of their own."""
    from jaxprof.report.page.document import to_page
    from jaxprof.session import Session, load

    program = executable()
    if program is None:
        sys.exit(MISSING)
    with studio() as folder:
        file = folder / "report.html"
        session = shelf(folder) / "transformer.jaxprof"
        file.write_text(in_the_pictures(to_page(load(session, Session), session.stem)), encoding="utf-8")
        with chromium(folder / "chromium", program) as tab:
            page = tab()
            for name, section, width, height, dark in SHOTS:
                shoot(page, file, name, section, (width, height), dark=dark)
            if page.complaints:
                sys.exit("\n".join(page.complaints))


if __name__ == "__main__":
    main()
