"""The sentences for warnings that an engine or a recorder sends as codes and values, made when they are read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import replace

from jaxprof.base.units import counted, seconds
from jaxprof.events import WarningRaised


def with_text(warning: WarningRaised) -> WarningRaised:
    """Return the warning with its message and advice. Values that are missing are empty."""
    if warning.message or warning.code not in _TEXTS:
        return warning
    values = defaultdict(str, {name: _shown(name, value) for name, value in warning.values.items()})
    values["because"] = _CAUSES.get(values["cause"], "")
    text = _TEXTS[warning.code]
    message, advice = text(values) if callable(text) else text
    return replace(warning, message=message.format_map(values), advice=advice.format_map(values))


def _shown(name: str, value: str | int | float) -> str:
    """Return a value as text; the end of its name is its unit."""
    if isinstance(value, str):
        return value
    if name.endswith("_seconds"):
        return seconds(value)
    return f"{value:.3g}" if name.endswith("_flops") else str(value)


def _function_not_called(values: Mapping[str, str]) -> tuple[str, str]:
    message = "no call of {function} was compiled, so there is nothing to measure"
    return message, "Compiled functions include: {functions}." if values["functions"] else "Nothing was compiled."


def _compiled_again(values: Mapping[str, str]) -> tuple[str, str]:
    count = counted(int(values["count"]), "unexpected compilation") if values["count"].isdecimal() else "compilations"
    advice = "Look for a new shape or dtype, a Python value that changes, or a function made anew at each call."
    return count + "{because}: {functions}", advice


def _zero_copy(values: Mapping[str, str]) -> tuple[str, str]:
    if values["directions"]:
        message = "the transfer {directions} copied nothing: host and device share the buffer"
        return message, "No copy happened on this CPU; a GPU or TPU would copy."
    return (
        "a call moved no data: its result shares its argument's memory",
        "The time is only the overhead of a call, so there is no bandwidth and no speed-up. Between host and "
        "accelerator the bytes would be copied.",
    )


def _max_seconds_reached(values: Mapping[str, str]) -> tuple[str, str]:
    where = " in phase {phase}" if values["phase"] else ""
    message = f"stopped at the hard cap of {{limit_seconds}}{where}: later phases were not measured"
    return message, "Give a larger --max-seconds, or choose a smaller size."


def _sharding(values: Mapping[str, str]) -> tuple[str, str]:
    message = "over {used} of {devices} devices, mesh {mesh}: "
    if values["used"] == values["devices"]:
        message = "over {devices} devices, mesh {mesh}: "
    if not values["split"]:
        message += "no input is split"
    elif values["others"] in ("", "0"):
        message += "{split}"
    elif values["others"] == "1":
        message += "{split}; 1 other input has no sharding"
    else:
        message += "{split}; {others} other inputs have no sharding"
    return message, "--shard ARGUMENT=SPEC splits an input, as in --shard {example}." if values["example"] else ""


_TEXTS: dict[str, tuple[str, str] | Callable[[Mapping[str, str]], tuple[str, str]]] = {
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
    "function_not_called": _function_not_called,
    "cannot_repeat": ("jaxprof run cannot repeat this run: {problem}", ""),
    "function_not_measured": ("{function} was not measured: the program was interrupted", ""),
    "values_made_up": (
        "the arguments have the shapes, dtypes and devices of a real call, but random values",
        "If the time depends on the values, keep them with --values.",
    ),
    "one_device": ("the arguments were on {devices} devices; jaxprof run repeats the call on one", ""),
    "folded_constants": (
        "XLA was given {before_flops} FLOPs and left {after_flops}: the rest was computed while compiling, or was not "
        "needed",
        "Pass the arrays as arguments instead of closing over them, and return what you want to measure.",
    ),
    "dead_code": (
        "computed but not used, so XLA removed it: {operations}",
        "Return the result if you want to measure its time.",
    ),
    "dtype_narrowed": (
        "{wide} inputs become {narrow} in JAX, but NumPy computes in {wide}: they do not do the same work",
        "Give {narrow} inputs to both, or set JAX_ENABLE_X64=1.",
    ),
    "compiled_again": _compiled_again,
    "zero_copy": _zero_copy,
    "compile_cached": (
        "the program came{because}: the time shown is not a compile time",
        "Run it in a fresh process, without the compilation cache, for a cold compile.",
    ),
    "library_gemms": (
        "XLA could not emit its own matrix products ({error}), so library calls replace them",
        "On the device XLA may choose its own kernels for some of them.",
    ),
    "max_seconds_reached": _max_seconds_reached,
    "over_budget": (
        "the first call took {first_seconds}, more than the budget of {budget_seconds}",
        "A smaller size or a larger --budget gives more samples; --max-seconds is the hard cap.",
    ),
    "result_not_kept": ("the result was not kept for a comparison: {error}", ""),
    "debug_calls_left_out": (
        "left out: {calls}, which JAX lowers for a GPU only where there is one",
        "What they copy to the host is not in the figures.",
    ),
    "sharding": _sharding,
}
"""Code → message and advice, or the function that makes them of the values."""
_CAUSES = {
    "unknown_python": ", because this version of jaxprof does not know the inside of this Python",
    "old_python": ", because that needs Python 3.12 or newer",
    "no_slot": ", because other tools use all monitoring slots of this Python",
    "first_call": " at the first call, although the program was compiled before",
    "steady_run": " during the steady run",
    "persistent_cache": " from the persistent compilation cache",
    "memory_cache": " from JAX's cache in memory",
}
"""Value `cause` of a warning → how its sentence goes on."""
