"""Passes to the watchers what JAX announces about compilations, and counts the calls of `jax.clear_caches()`.

The listeners are registered once for each process and stay, because older versions of JAX cannot remove one. Without a
watcher they return at once, and what a watcher raises never reaches JAX.

JAX announces nothing when its caches are cleared, after which it compiles again what it compiled before, and has no
public way to ask. So while the ledger is attached, a function that notes each call and passes it on replaces the public
name.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from jaxprof.events import NOWHERE
from jaxprof.recorder.frame_owner import user_location
from jaxprof.recorder.guest import ReplacedName, raised_by_program, unseen

_STAGES = {
    "/jax/core/compile/jaxpr_trace_duration": "trace",
    "/jax/core/compile/jaxpr_to_mlir_module_duration": "lower",
    "/jax/core/compile/backend_compile_duration": "compile",
}
_CACHE_EVENTS = {
    "/jax/compilation_cache/compile_requests_use_cache": "asked",
    "/jax/compilation_cache/cache_hits": "hit",
    "/jax/compilation_cache/cache_misses": "miss",
}


_watchers: list[Any] = []
_registered: list[bool] = []


def watch(watcher: Any) -> None:
    """Pass events to `watcher` from now on, in the thread where they happen. Raises RuntimeError without jax."""
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


def unwatch(watcher: Any) -> None:
    if watcher in _watchers:
        _watchers.remove(watcher)


@unseen
def _on_scalar(event: str, value: float, **details: Any) -> None:
    if event in _STAGES:
        frame = sys._getframe(2)
        _pass_on(lambda watcher: watcher.stage_began(_STAGES[event], _function(details), frame))


@unseen
def _on_duration(event: str, duration: float, **details: Any) -> None:
    if event in _STAGES:
        _pass_on(lambda watcher: watcher.stage_ended(_STAGES[event], _function(details)))
    elif event == "/jax/compilation_cache/compile_time_saved_sec":
        _pass_on(lambda watcher: watcher.cache_saved(duration))


@unseen
def _on_event(event: str, **details: Any) -> None:
    if event in _CACHE_EVENTS:
        _pass_on(lambda watcher: watcher.cache_event(_CACHE_EVENTS[event]))


def _function(details: dict[str, Any]) -> str:
    return str(details.get("fun_name") or "unknown")


def _pass_on(event: Callable[[Any], None]) -> None:
    for watcher in _watchers:
        try:
            event(watcher)
        except Exception as error:  # the program must not be affected; the watcher counts and reports it
            if raised_by_program(error):
                raise
            watcher.problem(error)


class CacheClears:
    """Counts the calls of `jax.clear_caches()` and keeps the location of the last one."""

    def __init__(self) -> None:
        self.count = 0
        self.location = NOWHERE
        self._replaced: ReplacedName | None = None

    def attach(self) -> None:
        """Replace the public name, so that later calls are counted."""
        if self._replaced is None:
            self._replaced = ReplacedName(sys.modules["jax"], "clear_caches", self._counting)

    def detach(self) -> None:
        if self._replaced is not None:
            self._replaced.restore()
        self._replaced = None

    def _counting(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def clear_caches(*args: Any, **kwargs: Any) -> Any:
            self.count += 1
            self.location = user_location(sys._getframe(1))
            return original(*args, **kwargs)

        return clear_caches
