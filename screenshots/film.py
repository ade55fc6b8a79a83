"""Pictures of a terminal, one after the other, as one animated SVG: for places that show a picture and run no script.

A row that stays as it is from one picture to the next is in the file once, which makes it some ten times smaller than
its pictures.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html import escape
from itertools import accumulate

_TEXT = re.compile(r'<text class="[\w-]+-(r\d+)" x="([\d.]+)" y="([\d.]+)" textLength="([\d.]+)"[^>]*>(.*?)</text>')
_FILL = re.compile(r'<rect fill="(#\w+)" x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)"')
_STYLE = re.compile(r"-(r\d+) \{ ([^}]*)\}")
_ROW_HEIGHT, _TOP, _LEFT = 24.4, 41, 9
_FONTS = "'Fira Code',ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace"


@dataclass(slots=True)
class Film:
    """Frames with how long each is shown and what is said above it."""

    seconds: list[float] = field(default_factory=list)
    captions: list[str] = field(default_factory=list)
    frames: list[dict[int, str]] = field(default_factory=list)
    """The SVG of each row."""
    styles: dict[str, str] = field(default_factory=dict)
    """The class of each style, of all frames."""
    width: float = 0.0
    rows: int = 0

    def add(self, picture: str, seconds: float, caption: str) -> None:
        """Adds what Textual's `export_screenshot` gave. A picture like the one before makes that one longer."""
        names = {name: self.styles.setdefault(style.strip(), f"s{len(self.styles)}")
                 for name, style in _STYLE.findall(picture)}  # fmt: skip
        rows: dict[int, str] = {}
        for fill, x, y, width, height in _FILL.findall(picture):
            row = _row(float(y))
            rows[row] = rows.get(row, "") + f'<rect fill="{fill}" x="{x}" y="{y}" width="{width}" height="{height}"/>'
            self.width = max(self.width, float(x) + float(width))
        for name, x, y, length, text in _TEXT.findall(picture):
            if text.replace("&#160;", " ").strip():
                row = _row(float(y))
                rows[row] = rows.get(row, "") + (
                    f'<text class="{names[name]}" x="{x}" y="{y}" textLength="{length}">{text}</text>'
                )
        self.rows = max(self.rows, *rows, 0)
        if self.frames and (rows, caption) == (self.frames[-1], self.captions[-1]):
            self.seconds[-1] += seconds
            return
        self.frames.append(rows)
        self.seconds.append(seconds)
        self.captions.append(caption)

    def svg(self) -> str:
        """All of it, again and again. Where nothing moves, the last frame is seen."""
        when: dict[str, list[int]] = {}
        for number, rows in enumerate(self.frames):
            for drawn in rows.values():
                when.setdefault(drawn, []).append(number)
            when.setdefault(self._caption(self.captions[number]), []).append(number)
        patterns = {tuple(numbers): f"f{at}" for at, numbers in enumerate(sorted({tuple(n) for n in when.values()}))}
        width, height = self.width + 2 * _LEFT, (self.rows + 1) * _ROW_HEIGHT + _TOP + 10
        inside = "\n".join(f'<g class="{patterns[tuple(n)]}">{drawn}</g>' for drawn, n in when.items())
        style = "\n".join(
            [
                f"text{{font:20px {_FONTS};white-space:pre;font-variant-east-asian:full-width}}",
                *(f".{name}{{{rule.replace('; ', ';')}}}" for rule, name in self.styles.items()),
                *(self._shown(name, set(numbers)) for numbers, name in patterns.items()),
            ]
        )
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}">\n'
            f"<style>\n{style}\n</style>\n"
            f'<rect fill="#292929" x="1" y="1" width="{width - 2:.0f}" height="{height - 2:.0f}" rx="8"/>\n'
            '<circle cx="26" cy="22" r="7" fill="#ff5f57"/><circle cx="48" cy="22" r="7" fill="#febc2e"/>'
            '<circle cx="70" cy="22" r="7" fill="#28c840"/>\n'
            f'<g transform="translate({_LEFT},{_TOP})">\n{inside}\n</g>\n</svg>\n'
        )

    @staticmethod
    def _caption(words: str) -> str:
        return f'<text x="100" y="-13" style="fill:#e6e6e6;font-weight:bold">{escape(words)}</text>'

    def _shown(self, name: str, numbers: set[int]) -> str:
        """The rules of what is in these frames and in no other."""
        count = len(self.frames)
        if len(numbers) == count:
            return ""
        whole = sum(self.seconds)
        starts = [0.0, *accumulate(self.seconds)]
        steps = [
            f"{starts[at] / whole * 100:.3f}%{{visibility:{'visible' if at in numbers else 'hidden'}}}"
            for at in range(count)
            if at == 0 or (at in numbers) != (at - 1 in numbers)
        ]
        still = "visible" if count - 1 in numbers else "hidden"
        rule = f"visibility:{still};animation:{name} {whole:.2f}s step-end infinite"
        return f"@keyframes {name}{{{''.join(steps)}}}.{name}{{{rule}}}"


def _row(y: float) -> int:
    return int(y // _ROW_HEIGHT)
