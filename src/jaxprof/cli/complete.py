"""Shell completion of workloads, devices and sessions. Imports no jax.

On failure it offers no completions. bash inserts a completion as it is, so a session called `$(touch x)` would be run
with the line: `_completions` is the only place that makes completions, and leaves such names out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from click.shell_completion import CompletionItem

_INERT = re.compile(r"[\w@%+=:,./][\w@%+=:,./-]*")
"""Words that no shell reads as anything but a word, and no command as an option."""


def complete_workload(incomplete: str) -> list[CompletionItem]:
    """Complete built-in names, and Python files for the user's own functions."""
    from jaxprof.workloads import names

    return _completions(incomplete, names()) or _files(incomplete)


def complete_target(incomplete: str) -> list[CompletionItem]:
    """Complete what `jaxprof hlo` takes: a workload, a kept session, a file."""
    from jaxprof.workloads import names

    return [*_completions(incomplete, names()), *complete_session(incomplete)]


def complete_device(incomplete: str) -> list[CompletionItem]:
    """Complete the devices of this machine, without those that JAX cannot use. Does not start JAX."""
    from jaxprof.devices.inventory.machine import local_devices

    return _completions(
        incomplete, sorted({device.id for device in local_devices() if device.used_by_jax is not False})
    )


def complete_target_device(incomplete: str) -> list[CompletionItem]:
    """Complete devices to compile for; after a comma, the next one."""
    from jaxprof.devices.absent import CHIPS

    before, comma, _ = incomplete.rpartition(",")
    return _completions(incomplete, sorted(f"{before}{comma}{chip.name}" for chip in CHIPS))


def complete_session(incomplete: str) -> list[CompletionItem]:
    from jaxprof.session import Library
    from jaxprof.session.files import EXTENSION

    stems = [path.name.removesuffix(EXTENSION) for path in Library().paths()]
    items = _completions(incomplete, ["last", *stems])
    return items if items and incomplete else [*items, *_files(incomplete)]


def _completions(incomplete: str, words: Iterable[str]) -> list[CompletionItem]:
    return [CompletionItem(word) for word in words if word.startswith(incomplete) and _INERT.fullmatch(word)]


def _files(incomplete: str) -> list[CompletionItem]:
    """Leave it to the shell to complete files, and to quote their names."""
    return [CompletionItem(incomplete, type="file")]
