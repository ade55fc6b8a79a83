"""What the Linux kernel shows of one thread: its state, the system call that it is blocked in, and the file of that.

A stack tells where a thread stands, and the kernel what it waits for: neither follows from the other. Elsewhere than on
Linux, and where `/proc` does not show it, all of it is unknown. Formats: proc(5); numbers: the kernel's syscall tables.
"""

from __future__ import annotations

import os
import platform
import struct
from contextlib import suppress

_NAMES = {
    "x86_64": {
        0: "read", 1: "write", 2: "open", 7: "poll", 17: "pread", 18: "pwrite", 19: "read", 20: "write", 23: "select",
        35: "sleep", 42: "connect", 43: "accept", 44: "send", 45: "receive", 46: "send", 47: "receive", 61: "wait",
        72: "fcntl", 73: "flock", 74: "fsync", 75: "fsync", 202: "futex", 230: "sleep", 232: "epoll", 247: "wait",
        257: "open", 270: "select", 271: "poll", 281: "epoll", 288: "accept",
    },
    "aarch64": {
        22: "epoll", 25: "fcntl", 32: "flock", 56: "open", 63: "read", 64: "write", 65: "read", 66: "write",
        67: "pread", 68: "pwrite", 72: "select", 73: "poll", 82: "fsync", 83: "fsync", 95: "wait", 98: "futex",
        101: "sleep", 115: "sleep", 202: "accept", 203: "connect", 206: "send", 207: "receive", 211: "send",
        212: "receive", 242: "accept", 260: "wait",
    },
}  # fmt: skip
"""Names of the calls that block, by machine and number; variants of a call share its name."""
_WITH_DESCRIPTOR = ("read", "write", "pread", "pwrite", "connect", "accept", "send", "receive", "fcntl", "flock",
                    "fsync", "epoll")  # fmt: skip
_LONGEST_PATH = 4096


def system_wait(process: int, thread: int) -> tuple[str, str, str]:
    """Return the state letter of a thread, the call that it is blocked in, and what that waits for: a path, or
    `socket`, `pipe`, `event`. Each is empty if it is unknown. Raises nothing."""
    folder = f"/proc/{process}/task/{thread}"
    status, words = _text(f"{folder}/stat"), _text(f"{folder}/syscall").split()
    state = status.rpartition(")")[2].split()[:1]
    numbers = _NAMES.get(platform.machine(), {})
    # The line is `running`, or has the call's number, six arguments, stack pointer and program counter.
    call = numbers.get(int(words[0]), "") if len(words) > 6 and words[0].isdecimal() else ""
    file = ""
    if call in _WITH_DESCRIPTOR:
        file = _file_of(process, int(words[1], 16))
    elif call == "open":  # its path is in the memory of the process: a FIFO has no descriptor before it is open
        address = int(words[2 if words[0] in ("257", "56") else 1], 16)  # `openat` has a folder before it
        path = ProcessMemory(process).read(address, _LONGEST_PATH)
        file = path.partition(b"\0")[0].decode("utf-8", "replace")
    # With several descriptors, which one is waited for is unknown; a `pollfd` begins with its descriptor.
    elif call == "poll" and int(words[2], 16) == 1:
        file = _file_of(process, int.from_bytes(ProcessMemory(process).read(int(words[1], 16), 4), "little"))
    return "".join(state), call, file


def processor_seconds(process: int) -> float | None:
    """Return the CPU time of a process; None if it is unknown."""
    values = _text(f"/proc/{process}/stat").rpartition(")")[2].split()
    return sum(map(int, values[11:13])) / os.sysconf("SC_CLK_TCK") if len(values) > 12 else None  # utime, stime


def io_bytes(process: int) -> int | None:
    """Return the bytes that a process has read and written by system calls; None if the system does not count them."""
    counts = dict(line.split(": ") for line in _text(f"/proc/{process}/io").splitlines())
    return int(counts["rchar"]) + int(counts["wchar"]) if "rchar" in counts and "wchar" in counts else None


def _file_of(process: int, descriptor: int) -> str:
    with suppress(OSError):
        target = os.readlink(f"/proc/{process}/fd/{descriptor}")
        if target.startswith("/"):
            return target
        kind = target.partition(":")[0]  # `socket:[81]`, `anon_inode:[eventpoll]`
        return kind if kind in ("socket", "pipe") else "event"
    return ""


class ProcessMemory:
    """The memory of a process as `/proc` shows it. What cannot be read is empty: no address is taken on trust."""

    def __init__(self, process: int) -> None:
        self._path = f"/proc/{process}/mem"

    def read(self, address: int, size: int) -> bytes:
        with suppress(OSError, OverflowError), open(self._path, "rb", buffering=0) as memory:
            return os.pread(memory.fileno(), size, address)
        return b""

    def words(self, address: int, count: int) -> tuple[int, ...]:
        data = self.read(address, 8 * count)
        return struct.unpack(f"{len(data) // 8}Q", data[: len(data) // 8 * 8])


def _text(path: str) -> str:
    with suppress(OSError, ValueError), open(path, encoding="utf-8", errors="replace") as file:
        return file.read()
    return ""
