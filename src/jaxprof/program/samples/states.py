"""What the watched thread is doing, from its stack: one of the states of a program, the user's line, what it calls.

A stack alone does not say whether a thread runs or waits, so each stack has two answers, one for each; the CPU clock
chooses. The stages of compilations are not decided here: JAX announces them, the ledger has them exactly.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from types import BuiltinFunctionType, CodeType
from typing import Any, Final

from jaxprof.program.places import JAX, USER
from jaxprof.program.samples.call_text import Spot, compiled_by, is_foreign, look_up, spot_of
from jaxprof.program.samples.loops import Loop, loop_at
from jaxprof.program.samples.stack import Stack

_SEEN_AT_MOST: Final = 1_000
_SITES_AT_MOST: Final = 4_000

WORTH_COPYING_BYTES: Final = 65_536
"""An array that is there and smaller than this takes no time to copy: the thread is only just waking up."""

HOST, DISPATCH, COMPILED, SYNC, TRANSFER, DATA, IMPORT = (
    "host",
    "dispatch",
    "compiled",
    "sync",
    "transfer",
    "data",
    "import",
)
STATES: Final = {
    # kind: (state while it runs, state while it is blocked)
    HOST: ("host_busy", "waiting"),
    DISPATCH: ("host_busy", "device_busy"),
    COMPILED: ("device_busy", "device_busy"),
    SYNC: ("device_busy", "device_busy"),
    TRANSFER: ("transfer", "transfer"),
    DATA: ("data", "data"),
    IMPORT: ("import", "import"),
}

_DATA_NAME = re.compile(
    r"_*(load|load_(data|batch|train|test|example|image|file|shard)\w*|\w*(data_?)?loader\w*|\w*dataset\w*"
    r"|(get_|next_|sample_|make_|iter_|iterate_|random_)?(mini)?_?batch(es)?(_iter\w*)?"
    r"|(get_|next_|sample_)?data(_iter\w*|_stream\w*|_gen\w*)?|read_(batch|example|record|image)\w*)",
    re.IGNORECASE,
)
_LOADER_FILE = re.compile(
    r"[/\\](torch[/\\]utils[/\\]data|tensorflow_datasets|tensorflow[/\\]python[/\\]data|grain|datasets|webdataset"
    r"|torchvision[/\\]datasets|array_record|tfrecord)[/\\]"
)
_IMPORT_FILES: Final = ("<frozen importlib._bootstrap>", "<frozen importlib._bootstrap_external>")

_SYNC_CALLS: Final = {
    # the outermost of JAX's frames: what the user wrote there; "" where the line says it better
    "__float__": "float()",
    "__int__": "int()",
    "__bool__": "bool()",
    "__complex__": "complex()",
    "__index__": "index",
    "__format__": "f-string",
    "__repr__": "print()",
    "__str__": "print()",
    "__array__": "",
    "_value": "",
    "item": ".item()",
    "_item": ".item()",
    "tolist": ".tolist()",
    "_tolist": ".tolist()",
    "device_get": "",
    "block_until_ready": "",
    "try_to_block": "",
}
_IN_SO_MANY_WORDS: Final = frozenset({"block_until_ready", "device_get"})
"""Waiting that the program asked for: a synchronisation, and no implicit transfer."""
_TRANSFER_NAMES: Final = ("device_put", "shard_args", "make_array_from", "copy_to_host", "copy_to_device")
_ARRAY_MAKERS: Final = ("asarray", "array", "frombuffer", "from_dlpack")


@dataclass(frozen=True, slots=True)
class Line:
    """The user's line, and what is called there."""

    file: str
    line: int
    function: str
    call: str


@dataclass(frozen=True, slots=True)
class Seen:
    """One stack, understood."""

    kind: str
    """A key of `STATES`."""
    line: Line | None = None
    loop: Loop | None = None
    """The user's innermost loop around it."""
    implicit: str = ""
    """Direction of a copy that nobody asked for in words."""

    def state(self, running: bool) -> str:
        """One of `PROGRAM_STATES`."""
        return STATES[self.kind][0 if running else 1]

    @property
    def running_above(self) -> float:
        """A thread that ran for more than this share of the time around the sample counts as running, also where it
        seems blocked: it may only be waiting for the interpreter's lock, which the asker holds."""
        return 0.5 if self.kind == DISPATCH else 0.9

    def before(self) -> Seen:
        """What ran just before, when this call could not be entered yet for want of the interpreter's lock: Python, on
        the way to this line. Loading, importing and copying hold that lock themselves, and are what they seem."""
        if self.kind not in (COMPILED, SYNC, HOST):
            return self
        line = Line(self.line.file, self.line.line, self.line.function, "") if self.line else None
        return Seen(HOST, line, self.loop)


class Classifier:
    """Understands stacks; remembers those that it has seen, and where compiled functions were called."""

    def __init__(self) -> None:
        self._seen: dict[tuple[int, ...], tuple[list[CodeType], Seen]] = {}
        self._sites: dict[tuple[int, int], CodeType] = {}
        self._compiled_lines: set[tuple[str, int]] = set()
        self._loop_generators: dict[int, CodeType] = {}

    def classify(self, stack: Stack) -> Seen:
        """What the stack is at."""
        key = stack.key
        known = self._seen.get(key)
        if known is None:
            if len(self._seen) >= _SEEN_AT_MOST:
                self._seen.clear()
            known = self._seen[key] = (stack.codes, self._understand(stack))  # code that lives keeps its id
        seen = known[1]
        if seen.kind == SYNC and stack.ready and (stack.array_bytes or 0) >= WORTH_COPYING_BYTES:
            return Seen(TRANSFER, seen.line, seen.loop, seen.implicit)
        return seen

    def compiling_at(self, stack: Stack) -> None:
        """A compilation is going on that this stack's instruction caused: what is called there is a compiled function.

        So functions that are local variables are recognised, whose value must not be looked at.
        """
        at = stack.caller
        if at >= 0 and len(self._sites) < _SITES_AT_MOST and spot_of(stack.codes[at], stack.offsets[at]).is_call:
            key = (id(stack.codes[at]), stack.offsets[at])
            if key not in self._sites:
                self._sites[key] = stack.codes[at]
                self._seen.clear()

    def compiled_at(self, file: str, line: int) -> None:
        """The ledger says that a function of the user's was compiled, called from there."""
        if len(self._compiled_lines) < _SITES_AT_MOST and (file, line) not in self._compiled_lines:
            self._compiled_lines.add((file, line))
            self._seen.clear()

    def _understand(self, stack: Stack) -> Seen:
        if not stack.codes:
            return Seen(HOST)
        names = stack.jax_functions
        at = stack.caller
        spot = spot_of(stack.codes[at], stack.offsets[at]) if at >= 0 else Spot(0, "", "")
        kind = IMPORT if self._is_import(stack) else self._kind(stack, at, spot, names)
        if kind in (HOST, DISPATCH) and self._is_data(stack, max(at, 0)):
            kind = DATA
        if kind in (COMPILED, SYNC):
            self._remember_generators(stack, max(at, 0))
        return Seen(kind, _user_line(stack, names), _user_loop(stack, kind), _implicit(kind, spot, names))

    def _kind(self, stack: Stack, at: int, spot: Spot, names: list[str]) -> str:
        if any(name in _SYNC_CALLS for name in names):
            return SYNC
        made_array = bool(names) and names[-1] in _ARRAY_MAKERS
        if made_array or any(part in name for name in names for part in _TRANSFER_NAMES):
            return TRANSFER
        if at < 0:
            return DISPATCH if names else HOST
        if not names and spot.method == "block_until_ready":
            return SYNC
        value = look_up(spot.callee, stack.codes[at], stack.globals[at]) if spot.is_call else None
        maker = compiled_by(value)
        if maker == "user" or (not maker and self._is_site(stack, at, spot)):
            return COMPILED
        if names or maker == "jax" or _reads_arrays(value):
            return DISPATCH
        return HOST

    def _is_site(self, stack: Stack, at: int, spot: Spot) -> bool:
        code = stack.codes[at]
        if (id(code), stack.offsets[at]) in self._sites:
            return True
        if not spot.is_call or (code.co_filename, spot.line) not in self._compiled_lines:
            return False
        return not _is_builtin(spot) and not is_foreign(spot.callee, code, stack.globals[at])

    def _is_import(self, stack: Stack) -> bool:
        end = stack.kinds.index(USER) if USER in stack.kinds else len(stack.kinds)
        return any(code.co_filename in _IMPORT_FILES for code in stack.codes[:end])

    def _is_data(self, stack: Stack, begin: int) -> bool:
        """Whether an iterator or a loader that feeds the program is at work."""
        for index, (code, kind) in enumerate(zip(stack.codes, stack.kinds, strict=True)):
            if _LOADER_FILE.search(code.co_filename) and kind not in (JAX, USER):
                return True
            if index < begin or kind != USER:
                continue
            if _DATA_NAME.fullmatch(code.co_name) and id(code) not in self._loop_generators:
                return True
            inner = stack.codes[index - 1] if index > 0 else None
            if inner is not None and (stack.kinds[index - 1] == JAX or id(inner) in self._loop_generators):
                continue
            spot = spot_of(code, stack.offsets[index])
            if spot.operation.endswith("FOR_ITER") or spot.callee == ("next",):
                return True
        return False

    def _remember_generators(self, stack: Stack, begin: int) -> None:
        """A generator that itself calls compiled functions is the loop of the program, and no loader."""
        for index in range(begin, len(stack.codes)):
            code = stack.codes[index]
            if stack.kinds[index] == USER and id(code) not in self._loop_generators:
                self._loop_generators[id(code)] = code
                self._seen.clear()


def _is_builtin(spot: Spot) -> bool:
    return len(spot.callee) == 1 and spot.text.endswith("()")


def _reads_arrays(value: Any) -> bool:
    """NumPy's `asarray` and `array`, which wait for an array of JAX's without a frame of Python's."""
    return type(value) is BuiltinFunctionType and value.__name__ in ("asarray", "array", "ascontiguousarray")


def _user_line(stack: Stack, names: list[str]) -> Line | None:
    at = stack.user
    if at < 0:
        return None
    code = stack.codes[at]
    spot = spot_of(code, stack.offsets[at])
    call = spot.text
    if at == stack.caller and names:
        call = _SYNC_CALLS.get(names[-1]) or call
        if call == "print()" and "print" not in spot.text:
            call = "str()" if spot.text in ("", "str()", "repr()") else spot.text
    return Line(code.co_filename, spot.line, code.co_name, call)


def _user_loop(stack: Stack, kind: str) -> Loop | None:
    """The innermost loop around the user's frames; not one of a loader's own."""
    if kind == IMPORT:
        return None
    for index, (code, whose) in enumerate(zip(stack.codes, stack.kinds, strict=True)):
        if whose == USER and not (kind == DATA and _inside_a_loader(stack, index)):
            loop = loop_at(code, stack.offsets[index])
            if loop is not None:
                return loop
    return None


def _inside_a_loader(stack: Stack, index: int) -> bool:
    return not spot_of(stack.codes[index], stack.offsets[index]).operation.endswith("FOR_ITER")


def _implicit(kind: str, spot: Spot, names: list[str]) -> str:
    # device_put to another sharding may go over the host: that was asked for as well
    put = bool(names) and any(part in names[-1] for part in _TRANSFER_NAMES)
    if kind == SYNC and names and not put and not _IN_SO_MANY_WORDS & {*names, spot.method}:
        return "device_to_host"
    asked = put or (bool(names) and names[-1] in _ARRAY_MAKERS)
    if kind == TRANSFER and not asked and any("device_put" in name for name in names):
        return "host_to_device"
    return ""
