"""Make roll-ups with tasks of a Ray cluster. A task fetches one session, or reads it from a disk that all nodes share.

All nodes of the cluster need this version of jaxprof: with another one, the tables would differ from those made here.
Needs the extra `ray`, which is imported where it is used.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from jaxprof.errors import UsageError, system_words
from jaxprof.rollup.making import RollUpReport, SessionPlace, roll_up_at
from jaxprof.session_names import process_number
from jaxprof.units import and_more
from jaxprof.version import __version__

ADDRESS_VARIABLE: Final = "RAY_ADDRESS"
LOCAL: Final = "local"
"""Address of a cluster on this machine alone, which is started and ended here."""
_TASKS_PER_PROCESSOR: Final = 4
"""Most tasks that wait or run for each processor of the cluster, however many sessions there are."""
_CHECK_SECONDS: Final = 120.0
_ANSWER_SECONDS: Final = 10.0
_HINT: Final = "`ray status` shows the state of a cluster."


@contextmanager
def cluster(address: str | None, workers: int | None = None) -> Iterator[Any]:
    """Connect to the Ray cluster at `address`, by default `RAY_ADDRESS`, and check that all its nodes have this version
    of jaxprof. `local` starts a cluster with `workers` processors. The context is the module `ray`. Raises
    UsageError."""
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
    _check_listening(where)
    local = {"num_cpus": workers or os.cpu_count(), "include_dashboard": False} if where == LOCAL else {}
    if local:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # jaxprof sends no data anywhere
    try:
        ray.init(address=where, log_to_driver=False, logging_level="ERROR", namespace="jaxprof", **local)
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        words = " ".join(str(error).split())[:300]
        raise UsageError(f"the Ray cluster at {where} cannot be used: {words}", _HINT) from error
    try:
        _check_nodes(ray)
        yield ray
    finally:
        ray.shutdown()


def _check_listening(address: str) -> None:
    """Raise UsageError if nothing listens at the address. Ray itself would wait for minutes, with notes on stderr."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon or not port.isdecimal():
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), _ANSWER_SECONDS).close()
    except (OSError, OverflowError) as error:
        words = system_words(error) if isinstance(error, OSError) else str(error)
        raise UsageError(f"no Ray cluster answers at {address}: {words}", _HINT) from error


def roll_up_on(ray: Any, sessions: Sequence[SessionPlace]) -> Iterator[RollUpReport]:
    """Yield the reports of these sessions as their roll-ups are done. A failed task is an error in its report."""
    task = ray.remote(max_retries=1)(roll_up_at)
    most = max(2, round(_TASKS_PER_PROCESSOR * ray.cluster_resources().get("CPU", 1)))
    waiting: dict[Any, SessionPlace] = {}
    rest = iter(sessions)
    try:
        while True:
            while len(waiting) < most and (session := next(rest, None)) is not None:
                waiting[task.remote(session)] = session
            if not waiting:
                return
            done, _ = ray.wait(list(waiting), num_returns=1)
            for result in done:
                yield _report(ray, result, waiting.pop(result))
    finally:
        for result in waiting:
            ray.cancel(result)


def _report(ray: Any, result: Any, session: SessionPlace) -> RollUpReport:
    try:
        report: RollUpReport = ray.get(result)
    except ray.exceptions.RayError as error:
        last = next((line.strip() for line in reversed(str(error).splitlines()) if line.strip()), "")
        words = f"its task failed: {type(error).__name__}: {last[:200]}"
        return RollUpReport(process_number(session.name) or 0, session.name, None, None, words)
    return report


def _check_nodes(ray: Any) -> None:
    """Raise UsageError unless every node that takes tasks has this version of jaxprof, and what roll-ups need."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    tasks = {}
    for node in ray.nodes():
        if node["Alive"] and node["Resources"].get("CPU"):
            strategy = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
            tasks[node["NodeManagerAddress"]] = ray.remote(scheduling_strategy=strategy)(_node_check()).remote()
    if not tasks:
        raise UsageError("the Ray cluster has no node with a processor for tasks", _HINT)
    try:
        answers = dict(zip(tasks, ray.get(list(tasks.values()), timeout=_CHECK_SECONDS), strict=True))
    except ray.exceptions.RayError as error:
        raise UsageError(
            f"the Ray cluster runs no task: {type(error).__name__}", "`ray status` shows what it waits for."
        ) from error
    lacking = {host: missing for host, (_, missing) in answers.items() if missing}
    if lacking:
        what = " and ".join(sorted({name for missing in lacking.values() for name in missing}))
        raise UsageError(
            f"{_hosts(lacking)} of the Ray cluster have no {what}",
            f"On each node: jaxprof {__version__} with its extras query and remote, in the Python that Ray runs.",
        )
    others = {host: version for host, (version, _) in answers.items() if version != __version__}
    if others:
        raise UsageError(
            f"{_hosts(others)} of the Ray cluster have jaxprof {', '.join(sorted(set(others.values())))}, "
            f"and this is {__version__}",
            "Install the same version on all: another one may make other tables.",
        )


def _hosts(hosts: Iterable[str]) -> str:
    return f"the nodes {and_more(sorted(hosts), 4)}"


def _node_check() -> Callable[[], tuple[str, list[str]]]:
    """Return the task that reports the version of jaxprof on a node, and the packages that the node lacks. The task is
    a nested function, so that Ray sends its code instead of its name: a node without jaxprof has to run it."""

    def check() -> tuple[str, list[str]]:
        from importlib.util import find_spec

        missing = [name for name in ("jaxprof", "duckdb", "pyarrow") if find_spec(name) is None]
        if "jaxprof" in missing:
            return "", missing
        from importlib import import_module

        return str(import_module("jaxprof.version").__version__), missing

    return check
