"""The sentences for what a recorder sends as codes and values: why a function was compiled, and what was not recorded.

They are made where they are read, so that an old session speaks as well as a new one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import zip_longest
from pathlib import PurePath

from jaxprof.base.units import counted, seconds
from jaxprof.events import CaptureWindow, Compiled, CompileReason, Note, SourceLocation

_MOST_VARIABLES = 4
"""Most variables of a closure that are named; the rest are counted."""
_AGAIN = "the same function and signature again: "
_SPEC = re.compile(r"P\((.*)\)( over .*)$")


def compile_reason(row: Compiled) -> str:
    """Return why a function was compiled, in words; empty for a plain first compilation."""
    return "; ".join(_PHRASES[reason.kind](row, reason) for reason in row.reasons if reason.kind in _PHRASES)


def first_change(row: Compiled) -> str:
    """Return the first change of a compilation without its name, such as `shape f32[4] → f32[8] and 1 more`; empty if
    the reason is not a change of an argument."""
    if not row.reasons or row.reasons[0].kind not in _CHANGES:
        return ""
    first, *others = row.reasons
    more = sum(reason.more if reason.kind == "more" else 1 for reason in others)
    return f"{first.kind.replace('_', ' ')} {_CHANGES[first.kind](first)}{f' and {more} more' if more else ''}"


def argument_name(name: str) -> str:
    """Return an argument as sentences have it: `argument 0` for one that has a number only."""
    return f"argument {name}" if name[:1].isdigit() else name


def setting_name(reason: CompileReason) -> str:
    """Return the setting in which two compilations differ: `config jax_enable_x64`, `donated arguments`."""
    kind = "config" if reason.kind == "config" else "jit option"
    return _CHOSEN.get(reason.name.partition("_arg")[0], f"{kind} {reason.name}")


_CHOSEN = {"donate": "donated arguments", "static": "static arguments"}
"""Words for the options of `jax.jit` that choose arguments, by position (`_argnums`) or by name (`_argnames`)."""


def _closure(row: Compiled, _: CompileReason) -> str:
    """Return `new closure of make_step: rate: 0.1 → 0.2 (made at train.py:30, defined at train.py:12)`."""
    where = [f"made at {_line(row.made_at)}"] if row.made_at else []
    where.append(f"defined at {_line(row.defined_at)}")
    changed = [f"{change.name}: {change.before} → {change.now}" for change in row.closure]
    if not changed:
        return f"new closure of {row.factory} ({', '.join(where)})"
    values = ", ".join(changed[:_MOST_VARIABLES])
    if len(changed) > _MOST_VARIABLES:
        values = f"{values} and {len(changed) - _MOST_VARIABLES} more"
    return f"new closure of {row.factory}: {values} ({', '.join(where)})"


def _made_by_jit(row: Compiled, reason: CompileReason) -> str:
    kind = "new function object each time" if reason.kind == "new_function" else "another function object"
    return f"{kind}: jit at {_line(row.called_from)} (defined at {_line(row.defined_at)})"


def _keys(reason: CompileReason) -> str:
    """Return `structure: params['head'] (12 leaves) new`."""
    keys = [f"{path} ({count} leaves)" if count > 1 else path for path, count in reason.leaves.items()]
    more = f" and {reason.more} more" if reason.more else ""
    return f"structure: {', '.join(keys)}{more} {'new' if reason.kind == 'added' else 'removed'}"


def _static_change(reason: CompileReason) -> str:
    if reason.before == reason.now:
        return f"{reason.before} → another {reason.now}"
    return f"{reason.before} → {reason.now}"


def _types_change(reason: CompileReason) -> str:
    return f"{reason.before} → {reason.now}"


def _sharding_change(reason: CompileReason) -> str:
    """Return `P('x') over 4 devices → P(None) over 4 devices (axis 0: 'x' → not split)`."""
    now = _sharding(reason.now)
    if reason.before == reason.now:
        now = f"another arrangement of {now}"
    # The axes of an array that are split differently, unless the devices differ as well.
    old, new = _SPEC.match(reason.before), _SPEC.match(reason.now)
    changes = []
    if old is not None and new is not None and old[2] == new[2]:
        parts = zip_longest(_axes(old[1]), _axes(new[1]), fillvalue="None")
        changed = [(axis, earlier, later) for axis, (earlier, later) in enumerate(parts) if earlier != later]
        changes = [f"axis {axis}: {_split(earlier)} → {_split(later)}" for axis, earlier, later in changed]
    return f"{_sharding(reason.before)} → {now}" + (f" ({', '.join(changes)})" if changes else "")


def _sharding(text: str) -> str:
    if not text:
        return "not committed"
    return text if " over " in text else f"one device {text}"


def _axes(spec: str) -> list[str]:
    """Return the parts of a spec such as `'data', ('x', 'y'), None`."""
    return re.findall(r"\([^)]*\)|'[^']*'|[^,\s]+", spec)


def _split(part: str) -> str:
    return "not split" if part == "None" else part


def _setting(_: Compiled, reason: CompileReason) -> str:
    """Return `config jax_enable_x64: False → True`, or `donated arguments: none → x`."""
    before, now = reason.before, reason.now
    if setting_name(reason) in _CHOSEN.values():
        before, now = (", ".join(re.findall(r"[\w…]+", text or "none")) for text in (before, now))
    return f"{setting_name(reason)}: {before or 'not set'} → {now or 'not set'}"


def _line(where: SourceLocation) -> str:
    return f"{PurePath(where.file).name}:{where.line}" if where else "an unknown line"


_CHANGES: dict[str, Callable[[CompileReason], str]] = {
    "static_argument": _static_change,
    "unequal_object": lambda reason: f"another {reason.now}, by its own __eq__",
    "shape": _types_change,
    "dtype": _types_change,
    "weak_type": _types_change,
    "sharding": _sharding_change,
}
"""Kind of a difference in one argument → what changed."""
_PHRASES: dict[str, Callable[[Compiled, CompileReason], str]] = {
    "closure": _closure,
    "new_function": _made_by_jit,
    "another_function": _made_by_jit,
    "inner_function": lambda _, reason: f"new function object each time: {reason.name} of a call outside any jit",
    "static_argument": lambda _, reason: f"static argument {reason.name}: {_static_change(reason)}",
    "unequal_object": lambda _, reason: f"static argument {reason.name}: another {reason.now}, by its own __eq__",
    "static_part": lambda _, reason: f"static part of argument {reason.name}: {_static_change(reason)}",
    "containers": lambda _, __: "the containers of the arguments, or static parts in them, changed",
    "passed_by": lambda _, reason: f"structure: {reason.name} {reason.before} → {reason.now}",
    "keyword_order": lambda _, __: "the keyword arguments in another order",
    "added": lambda _, reason: _keys(reason),
    "removed": lambda _, reason: _keys(reason),
    "argument_order": lambda _, __: "the arguments in another order",
    **{
        kind: lambda _, reason: (
            f"{reason.kind.replace('_', ' ')} of {argument_name(reason.name)}: {_CHANGES[reason.kind](reason)}"
        )
        for kind in ("shape", "dtype", "weak_type", "sharding")
    },
    "config": _setting,
    "jit_option": _setting,
    "more": lambda _, reason: f"and {counted(reason.more, 'more difference')}",
    "first_under": lambda _, reason: f"the first time under {reason.now}",
    "traced_before": lambda _, __: "first compilation of its own: before, it was traced inside another function",
    "caches_cleared": lambda row, _: f"{_AGAIN}jax.clear_caches() at {_line(row.cleared_at)} emptied JAX's caches",
    "evicted": lambda _, __: (
        f"{_AGAIN}JAX's cache evicted it, its clear_cache() was called, or it was called in another context (such as "
        "under grad)"
    ),
    "arguments_unknown": lambda _, __: "the arguments of this call are unknown",
    "failed": lambda _, reason: f"failed: {reason.now}",
}
"""Kind of a reason → its phrase, from the row and the reason. Kinds of newer versions have none."""


def note_text(note: Note) -> str:
    """Return what was not recorded, in words; empty for a code of a newer version."""
    why = "a signal ended it" if note.by_signal else "os._exit, exec, or all descriptors closed"
    found = ": `import jax` finds jax.py in its folder, which has to be renamed" if note.shadowed else ""
    return _NOTES.get(note.code, "").format(lost=note.lost, why=why, took=seconds(note.seconds), found=found)


_NOTES = {
    "no_jax": "the program did not import jax{found}",
    "pipe_full": "{lost} events were lost because jaxprof was paused or too slow",
    "not_recorded": "nothing inside the program was recorded: the recorder did not start in its Python (-I, -E or -S "
    "is in force, jaxprof cannot be imported there, or it ended before that)",
    "not_unwound": "the recording ended before the program did: its last part is not in it ({why})",
    "child_processes": "{took} of CPU time in child processes, which this session does not hold. To record one, start "
    "it with `jaxprof script --plain` instead of python, or call jaxprof.record() in it (not in a fork)",
}


def window_text(window: CaptureWindow) -> str:
    """Return why a capture failed, in words; empty for a code of a newer version."""
    why = _FAILURES.get(window.code, "").format(seconds=window.seconds or 0.0, error=window.error)
    return f"no capture: {why}" if why else ""


_FAILURES = {
    "ended_uncounted": "no steps were counted before the program ended, within {seconds:g} s of its last compilation",
    "nothing_compiled": "the program had not compiled anything yet",
    "not_started": "the profiler could not be started: {error}",
    "not_stopped": "the profiler could not be stopped: {error}",
    "no_file": "the profiler wrote no file",
}
