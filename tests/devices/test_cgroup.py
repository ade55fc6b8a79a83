"""Limits of control groups, read from made-up hierarchies of both versions."""

from __future__ import annotations

from pathlib import Path

import pytest

from jaxprof.devices.live.cgroup import Limits, read_limits


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def limits(root: Path, membership: str) -> Limits:
    (root / "membership").write_text(membership)
    return read_limits(root / "mount", root / "membership")


def test_version_2_takes_the_least_limit_on_the_way_up(tmp_path: Path) -> None:
    write(
        tmp_path / "mount",
        {
            "cgroup.controllers": "cpu memory\n",
            "slice/cpu.max": "150000 100000\n",
            "slice/job/cpu.max": "400000 100000\n",
            "slice/memory.max": "8589934592\n",
            "slice/job/memory.max": "max\n",
            "slice/memory.current": "3000\n",
            "slice/memory.stat": "anon 1000\ninactive_file 500\n",
        },
    )
    found = limits(tmp_path, "0::/slice/job\n")
    assert found.cores == 1.5
    assert found.memory is not None
    assert found.memory.limit_bytes == 8 * 1024**3
    assert found.memory.used_bytes() == 2500


def test_version_1_has_a_folder_for_each_controller(tmp_path: Path) -> None:
    write(
        tmp_path / "mount",
        {
            "cpu,cpuacct/job/cpu.cfs_quota_us": "200000\n",
            "cpu,cpuacct/job/cpu.cfs_period_us": "100000\n",
            "memory/job/memory.limit_in_bytes": "1048576\n",
            "memory/job/memory.usage_in_bytes": "524288\n",
            "memory/job/memory.stat": "total_inactive_file 24288\n",
            "memory/memory.limit_in_bytes": "9223372036854771712\n",
        },
    )
    found = limits(tmp_path, "4:memory:/job\n3:cpu,cpuacct:/job\n1:name=systemd:/\n")
    assert found.cores == 2.0
    assert found.memory is not None
    assert (found.memory.limit_bytes, found.memory.used_bytes()) == (1048576, 500000)


@pytest.mark.parametrize(
    "files",
    [
        {"cgroup.controllers": "", "cpu.max": "max 100000\n", "memory.max": "max\n"},
        {"cgroup.controllers": "", "cpu.max": "", "memory.max": "nonsense\n"},
        {"cgroup.controllers": "", "cpu.max": "100 0\n"},
        {"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"},
        {},
    ],
)
def test_no_limit_and_unreadable_limits_are_none(tmp_path: Path, files: dict[str, str]) -> None:
    write(tmp_path / "mount", files)
    assert limits(tmp_path, "2:cpu:/\n0::/\n") == Limits()
