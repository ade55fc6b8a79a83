"""The sentences for warnings that a recorder sends as codes and values, made when they are read."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from jaxprof.events import WarningRaised


def with_text(warning: WarningRaised) -> WarningRaised:
    """Return the warning with its message and advice. Values that are missing are empty."""
    if warning.message or warning.code not in _TEXTS:
        return warning
    values = defaultdict(str, warning.values)
    offered = values["functions"]
    values["offered"] = f"Compiled functions include: {offered}." if offered else "Nothing was compiled."
    values["because"] = _NOT_COUNTED.get(str(values["cause"]), "")
    message, advice = (text.format_map(values) for text in _TEXTS[warning.code])
    return replace(warning, message=message, advice=advice)


_TEXTS = {
    "ledger_problem": (
        "a compilation could not be recorded: {error}",
        "the program is not affected; the ledger may miss rows",
    ),
    "ledger_folded": (
        "more than {most} compilations: later ones with the same function, line and reason are merged into one row "
        "with a count",
        "Start with the functions that have the most compilations.",
    ),
    "not_recorded": ("recording failed: {error}", ""),
    "recorder_failed": ("recording {part} failed: {error}", ""),
    "sampler_failed": ("the sampler ended: {error}", ""),
    "steps_not_counted": ("steps are not counted and lines are not timed{because}", ""),
    "function_not_kept": ("a call of {function} could not be kept: {error}", ""),
    "function_not_called": ("no call of {function} was compiled, so there is nothing to measure", "{offered}"),
    "cannot_repeat": ("jaxprof run cannot repeat this run: {problem}", ""),
    "function_not_measured": ("{function} was not measured: the program was interrupted", ""),
    "values_made_up": (
        "the arguments have the shapes, dtypes and devices of a real call, but random values",
        "If the time depends on the values, keep them with --values.",
    ),
    "one_device": ("the arguments were on {devices} devices; jaxprof run repeats the call on one", ""),
}
"""Code → message and advice."""
_NOT_COUNTED = {
    "unknown_python": ", because this version of jaxprof does not know the inside of this Python",
    "old_python": ", because that needs Python 3.12 or newer",
    "no_slot": ", because other tools use all monitoring slots of this Python",
}
