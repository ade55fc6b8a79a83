"""Roll-ups made by the tasks of a Ray cluster: each fetches one session, or reads it on a disk that all share.

The cluster has to have jaxprof on its nodes, in this version: otherwise the tables would not be those that are made
here. Needs the extra `ray`, which is imported where it is used.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from jaxprof.errors import UsageError, system_words
from jaxprof.rollup.making import RollUpReport
from jaxprof.rollup.places import SessionPlace, roll_up_at
from jaxprof.session_names import process_number
from jaxprof.version import __version__

ADDRESS_VARIABLE: Final = "RAY_ADDRESS"
LOCAL: Final = "local"
"""As an address: a cluster of this machine alone, which is started and ended here."""
_TOGETHER: Final = 4
"""Tasks for each processor that wait or run: so many results are on their way, however many sessions there are."""
_CHECK_SECONDS: Final = 120.0
_MOST_NAMED: Final = 4
_ANSWER_SECONDS: Final = 10.0
_HINT: Final = "`ray status` says how a cluster is."


@contextmanager
def cluster(address: str | None, workers: int | None = None) -> Iterator[Any]:
    """`ray`, connected to the cluster at the address (`RAY_ADDRESS` without one), all of whose nodes have this jaxprof.
    `local` starts one with so many workers. Raises UsageError."""
    try:
        import ray
    except ImportError as error:
        hint = f"{sys.executable} -m pip install 'ray>=2.40'"
        raise UsageError("--on ray needs ray, which is not installed", hint) from error
    where = address or os.environ.get(ADDRESS_VARIABLE, "")
    if not where:
        raise UsageError(
            "no Ray cluster was named",
            "--address HOST:PORT, or RAY_ADDRESS, names one; `ray start --head` starts one here, --address auto finds "
            "it; --address local starts one for this command alone.",
        )
    _refuse_deaf(where)
    own = {"num_cpus": workers or os.cpu_count(), "include_dashboard": False} if where == LOCAL else {}
    if own:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # jaxprof sends nothing anywhere
    try:
        ray.init(address=where, log_to_driver=False, logging_level="ERROR", namespace="jaxprof", **own)
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        words = " ".join(str(error).split())[:300]
        raise UsageError(
            f"the Ray cluster at {where} cannot be used: {words}", "`ray status` says how it is."
        ) from error
    try:
        _check_nodes(ray)
        yield ray
    finally:
        ray.shutdown()


def _refuse_deaf(address: str) -> None:
    """Raises UsageError if nobody listens at the address: Ray itself waits for minutes there, and says so on stderr."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon or not port.isdecimal():
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), _ANSWER_SECONDS).close()
    except (OSError, OverflowError) as error:
        words = system_words(error) if isinstance(error, OSError) else str(error)
        raise UsageError(f"no Ray cluster answers at {address}: {words}", _HINT) from error


def roll_up_on(ray: Any, sessions: Sequence[SessionPlace]) -> Iterator[RollUpReport]:
    """The roll-ups of these sessions, as they are done. A task that fails is an error in its report."""
    task = ray.remote(max_retries=1)(roll_up_at)
    most = max(2, round(_TOGETHER * ray.cluster_resources().get("CPU", 1)))
    waiting: dict[Any, SessionPlace] = {}
    rest = iter(sessions)
    try:
        while True:
            while len(waiting) < most and (session := next(rest, None)) is not None:
                waiting[task.remote(session)] = session
            if not waiting:
                return
            done, _ = ray.wait(list(waiting), num_returns=1)
            for each in done:
                yield _report(ray, each, waiting.pop(each))
    finally:
        for each in waiting:
            ray.cancel(each)


def _report(ray: Any, result: Any, session: SessionPlace) -> RollUpReport:
    try:
        report: RollUpReport = ray.get(result)
    except ray.exceptions.RayError as error:
        last = next((line.strip() for line in reversed(str(error).splitlines()) if line.strip()), "")
        words = f"its task failed: {type(error).__name__}: {last[:200]}"
        return RollUpReport(process_number(session.name) or 0, session.name, None, None, words)
    return report


def _check_nodes(ray: Any) -> None:
    """Raises UsageError unless every node that takes tasks has this version of jaxprof, and what roll-ups need."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    asked = {}
    for node in ray.nodes():
        if node["Alive"] and node["Resources"].get("CPU"):
            strategy = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
            asked[node["NodeManagerAddress"]] = ray.remote(scheduling_strategy=strategy)(_question()).remote()
    if not asked:
        raise UsageError("the Ray cluster has no node with a processor for tasks", _HINT)
    try:
        said = dict(zip(asked, ray.get(list(asked.values()), timeout=_CHECK_SECONDS), strict=True))
    except ray.exceptions.RayError as error:
        raise UsageError(
            f"the Ray cluster runs no task: {type(error).__name__}", "`ray status` says what it waits for."
        ) from error
    lacking = {host: missing for host, (_, missing) in said.items() if missing}
    if lacking:
        what = " and ".join(sorted({name for missing in lacking.values() for name in missing}))
        raise UsageError(
            f"{_hosts(lacking)} of the Ray cluster have no {what}",
            f"On each node: jaxprof {__version__} with its extras query and remote, in the Python that Ray runs.",
        )
    others = {host: version for host, (version, _) in said.items() if version != __version__}
    if others:
        raise UsageError(
            f"{_hosts(others)} of the Ray cluster have jaxprof {', '.join(sorted(set(others.values())))}, "
            f"and this is {__version__}",
            "The same version on all makes the same tables.",
        )


def _hosts(of: dict[str, Any]) -> str:
    named = sorted(of)
    more = f" and {len(named) - _MOST_NAMED} more" if len(named) > _MOST_NAMED else ""
    return f"the nodes {', '.join(named[:_MOST_NAMED])}{more}"


def _question() -> Callable[[], tuple[str, list[str]]]:
    """Asks a node what it has. Defined in a function, so that Ray sends its code and not its name: a node without
    jaxprof has to understand it."""

    def has() -> tuple[str, list[str]]:
        from importlib.util import find_spec

        missing = [name for name in ("jaxprof", "duckdb", "pyarrow") if find_spec(name) is None]
        if "jaxprof" in missing:
            return "", missing
        from importlib import import_module

        return str(import_module("jaxprof.version").__version__), missing

    return has
