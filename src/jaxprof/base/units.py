"""Quantities as text: one way to write a time, a size, a rate and a ratio, for every screen and report.

Unknown is `None`, and shown as a dash, never as 0; so is what is not finite. Scales change at 1000 (times, rates,
counts) or at 1024 (bytes), and no more than four significant digits are shown, because timings on real machines are
noisy.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

UNKNOWN = "-"
_SECONDS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_BYTES = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_LEAST_PERCENT = 0.001
_MOST_PERCENT = 10_000
_WIDEST = 1e4
"""Bounds of a ratio or a time that are further apart than this factor say nothing."""
WIDEST_HALF = 0.5
"""Half the width of an interval, as a share of its value, above which only the interval's ends say something."""
_COUNT = ("", "k", "M", "G", "T", "P", "E")


def _digits(value: float, significant: int) -> str:
    """Return `value` with `significant` digits, without an exponent and without a trailing point."""
    if value == 0:
        return "0"
    decimals = max(0, significant - 1 - math.floor(math.log10(abs(value))))
    text = f"{value:.{decimals}f}"
    whole = text.lstrip("-").split(".")[0]
    if decimals and len(whole) + decimals > significant and whole != "0":  # 9.9996 became 10.000
        text = f"{value:.{decimals - 1}f}"
    return text


def seconds(value: float | None, significant: int = 3) -> str:
    """Return a duration as text: `4.37 ms`, `22.5 µs`, `1.61 s`, `2 min 05 s`, `1 h 12 min`."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    if value < 0:
        return "-" + seconds(-value, significant)
    if value >= 3600:
        minutes = round(value / 60)
        return f"{minutes // 60} h {minutes % 60:02d} min"
    if value >= 120:
        whole = round(value)
        return f"{whole // 60} min {whole % 60:02d} s"
    if 0 < value < 0.5e-9:
        return "< 1 ns"
    for scale, unit in _SECONDS:
        if value >= scale * 0.99995:
            return f"{_digits(value / scale, significant)} {unit}"
    return f"{_digits(value / 1e-9, significant)} ns"


def parts_of(parts: Sequence[float], whole: float) -> tuple[list[str], str]:
    """Return `parts` and their sum `whole`, in seconds, as text: in one unit, and rounded so that the parts add up."""
    scales = ((60.0, "min"), *_SECONDS) if whole >= 3600 else _SECONDS
    scale, unit = next((each for each in scales if whole >= each[0]), scales[-1])
    decimals = (whole < 100 * scale) + (whole < 10 * scale)  # three digits
    steps = whole_steps([part / scale * 10**decimals for part in parts], round(whole / scale * 10**decimals))
    return [f"{step / 10**decimals:.{decimals}f} {unit}" for step in steps], f"{whole / scale:.{decimals}f} {unit}"


def whole_percents(parts: Sequence[float]) -> list[int]:
    """Return the shares of `parts` in their sum as whole percents that add up to 100."""
    whole = sum(parts)
    return whole_steps([100 * part / whole for part in parts], 100) if whole > 0 else [0] * len(parts)


def whole_steps(values: Sequence[float], total: int) -> list[int]:
    """Return `values` as whole numbers with the sum `total`: those with the largest remainders are rounded up."""
    steps = [math.floor(value) for value in values]
    by_remainder = sorted(range(len(values)), key=lambda index: steps[index] - values[index])
    for index in by_remainder[: max(0, total - sum(steps))]:
        steps[index] += 1
    return steps


def spread(half: float | None, low: float | None, high: float | None) -> str:
    """Return the 95 % interval of a time as text: `± 0.9 %`, where `half` is half its width as a share of the time; if
    it is wider than the time itself, its two ends in seconds, `12 ms to 96 ms`."""
    if half is None:
        return UNKNOWN
    if half <= WIDEST_HALF or low is None or high is None:
        return f"± {percent(half)}"
    return between(low, high, 2)


def between(low: float, high: float, significant: int = 3) -> str:
    """Return an interval of a time as text: `0.62 ms to 0.64 ms`; `0 to ∞` if its ends (seconds) say nothing."""
    if low <= 0 or high / low > _WIDEST:
        return "0 to ∞"
    return f"{seconds(low, significant)} to {seconds(high, significant)}"


def bytes_(value: float | None) -> str:
    """Return a size as text in binary units: `64.0 MiB`, `139 GiB`, `512 B`."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    scaled, unit = float(value), 0
    while abs(scaled) >= 1024 and unit < len(_BYTES) - 1:
        scaled /= 1024
        unit += 1
    if unit == 0:
        return f"{scaled:.0f} B"
    return f"{_digits(scaled, max(3, len(str(int(abs(scaled))))))} {_BYTES[unit]}"


def scaled(value: float | None, unit: str = "", significant: int = 3) -> str:
    """Return a count or a rate in decimal units: `2.00 M`, `812 GB/s` for `scaled(812e9, "B/s")`, `54.2 TFLOP/s`."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    size, step = float(value), 0
    # From here on three digits round to 1 000.
    while abs(size) >= 999.5 and step < len(_COUNT) - 1:
        size /= 1000
        step += 1
    number = f"{size:.0f}" if step == 0 and size == int(size) else _digits(size, significant)
    suffix = f"{_COUNT[step]}{unit}"
    return f"{number} {suffix}" if suffix else number


def percent(fraction: float | None, significant: int = 2) -> str:
    """Return a share as text: `87 %` for 0.87, `0.40 %` for 0.004; at the ends `under 0.001 %`, `over 10 000 %`."""
    if fraction is None or math.isnan(fraction):
        return UNKNOWN
    value = fraction * 100
    if 0 < abs(value) < _LEAST_PERCENT:
        return f"under {_LEAST_PERCENT} %"
    if abs(value) > _MOST_PERCENT:
        return f"over {integer(_MOST_PERCENT)} %"
    if abs(value) >= 99.5:
        return f"{value:.0f} %"
    return f"{_digits(value, significant)} %"


def percent_or_less(fraction: float | None) -> str:
    """Return a share for a column of a table: as `percent` does, but `< 0.1 %` for less than that."""
    return "< 0.1 %" if fraction is not None and 0 < fraction < 0.001 else percent(fraction)


def growth(fraction: float | None) -> str:
    """Return a difference as a share of what it differs from: `+12 %`, `-0.40 %`, `0 %`; unsigned `under 0.001 %`."""
    if fraction is None or math.isnan(fraction):
        return UNKNOWN
    text = percent(abs(fraction))
    if fraction == 0 or text.startswith("under"):
        return text
    return f"+{text}" if fraction > 0 else f"-{text}"


def ratio(value: float | None, significant: int = 2) -> str:
    """Return a speed-up as text: `6.9×`, `28×`, `0.46×`; below a thousandth, as a fraction: `1/31k×`."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    if 0 < value < 0.001:
        return f"1/{scaled(1 / value, significant=significant).replace(' ', '')}×"
    return f"{_digits(value, max(significant, len(str(int(abs(value))))))}×"


def ratio_interval(value: float, low: float | None, high: float | None) -> str:
    """Return a ratio with its interval: `6.9× (6.8-7.0)`. A third digit is shown if at two the bounds look equal, or
    one of them like 1 (`1.13× (1.04-1.22)`), and `(0-∞)` if they are too far apart to say anything.

    Without bounds, the result is the ratio alone.
    """
    if low is None or high is None:
        return ratio(value)
    if low <= 0 or high / low > _WIDEST:
        return f"{ratio(value)} (0-∞)"
    for significant in (2, 3):
        lowest, highest = (ratio(bound, significant).removesuffix("×") for bound in (low, high))
        if lowest != highest and "1.0" not in (lowest, highest):
            break
    return f"{ratio(value, significant)} ({lowest}-{highest})"


def utc_text(moment: str | None) -> str:
    """Return a moment in UTC, `2026-11-26T05:05:06Z`, as people read it: `2026-11-26 05:05:06`."""
    return UNKNOWN if moment is None else moment.replace("T", " ").removesuffix("Z")


def integer(value: float | None) -> str:
    """Return a whole number in groups of three, set apart by a thin no-break space: `1 000 000`."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    return f"{value:,.0f}".replace(",", "\u202f")


def value_text(value: object) -> str:
    """Return the value of a parameter as people read it: a whole number in groups, a dash for None."""
    if isinstance(value, int) and not isinstance(value, bool):
        return integer(value)
    return UNKNOWN if value is None else str(value)


def and_more(names: Collection[str], most: int) -> str:
    """Return the first `most` of some names, and how many follow: `a, b and 3 more`."""
    more = len(names) - most
    return ", ".join(list(names)[:most]) + (f" and {integer(more)} more" if more > 0 else "")


def counted(count: int, one: str, many: str = "") -> str:
    """Return a number of things: `1 kernel`, `3 kernels`, `12 launches`.

    `many` is the plural if English does not make it with `s` or `es`, and if a verb follows: `counted(n, "kernel
    rewrites", "kernels rewrite")`.
    """
    if count == 1:
        return f"1 {one}"
    return f"{integer(count)} {many or one + ('es' if one.endswith(('s', 'x', 'ch', 'sh')) else 's')}"
