"""JAX's public monitoring events, told to whoever watches compilations.

The listeners are registered once a process and stay: older versions of JAX cannot take one back. Without a watcher they
return at once, and what a watcher raises never reaches JAX.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any, Final, Protocol

_STAGES: Final = {
    "/jax/core/compile/jaxpr_trace_duration": "trace",
    "/jax/core/compile/jaxpr_to_mlir_module_duration": "lower",
    "/jax/core/compile/backend_compile_duration": "compile",
}
_CACHE_EVENTS: Final = {
    "/jax/compilation_cache/compile_requests_use_cache": "asked",
    "/jax/compilation_cache/cache_hits": "hit",
    "/jax/compilation_cache/cache_misses": "miss",
}
_SAVED: Final = "/jax/compilation_cache/compile_time_saved_sec"


class Watcher(Protocol):
    """What is told, in the thread where it happens. `frame` is the innermost frame, JAX's own."""

    def stage_began(self, stage: str, function: str, frame: FrameType) -> None:
        """A stage of a compilation begins."""

    def stage_ended(self, stage: str, function: str) -> None:
        """The stage is over, also where it raised."""

    def cache_told(self, what: str) -> None:
        """The persistent cache was `asked`, or answered `hit` or `miss`."""

    def cache_saved(self, seconds: float) -> None:
        """What a hit saved, as JAX reckons it."""

    def problem(self, error: Exception) -> None:
        """One of the above raised; must not raise."""


_watchers: list[Watcher] = []
_registered: list[bool] = []


def watch(watcher: Watcher) -> None:
    """From now on `watcher` is told. JAX must have been imported by the program: raises RuntimeError otherwise."""
    jax = sys.modules.get("jax")
    if jax is None:
        raise RuntimeError("jax is not imported yet")
    if not _registered:
        monitoring = jax.monitoring
        monitoring.register_scalar_listener(_on_scalar)
        monitoring.register_event_duration_secs_listener(_on_duration)
        monitoring.register_event_listener(_on_event)
        _registered.append(True)
    if watcher not in _watchers:
        _watchers.append(watcher)


def unwatch(watcher: Watcher) -> None:
    """It is told nothing any more."""
    if watcher in _watchers:
        _watchers.remove(watcher)


def _on_scalar(event: str, value: float, **details: Any) -> None:
    stage = _STAGES.get(event)
    if stage is None:
        return
    for watcher in _watchers:
        try:
            watcher.stage_began(stage, str(details.get("fun_name") or "unknown"), sys._getframe(1))
        except Exception as error:  # noqa: BLE001 the program must not feel it; the watcher counts and tells it
            watcher.problem(error)


def _on_duration(event: str, duration: float, **details: Any) -> None:
    stage = _STAGES.get(event)
    if stage is None and event != _SAVED:
        return
    for watcher in _watchers:
        try:
            if stage is None:
                watcher.cache_saved(duration)
            else:
                watcher.stage_ended(stage, str(details.get("fun_name") or "unknown"))
        except Exception as error:  # noqa: BLE001 as above
            watcher.problem(error)


def _on_event(event: str, **details: Any) -> None:
    what = _CACHE_EVENTS.get(event)
    if what is None:
        return
    for watcher in _watchers:
        try:
            watcher.cache_told(what)
        except Exception as error:  # noqa: BLE001 as above
            watcher.problem(error)
