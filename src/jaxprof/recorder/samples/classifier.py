"""Derives from a stack what the watched thread is doing: a program state, the user's line, and the call in it.

A stack alone does not show whether a thread runs or waits, so each stack has two answers, and the CPU clock decides
between them. The stages of compilations are not derived here: JAX announces them, and the ledger has them exactly.
"""

from __future__ import annotations

import os
import re
from dataclasses import replace
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

from jaxprof.recorder.cpython import instructions
from jaxprof.recorder.frame_owner import JAX, LIBRARY, STDLIB, USER, package_of
from jaxprof.recorder.samples.call_text import CallSpot, Span, is_a, is_foreign, look_up, maker_of, spot_of
from jaxprof.recorder.samples.flow import callees_at, feeds, has_other_work, is_all_work, is_between, statement_at
from jaxprof.recorder.samples.loops import loops_at
from jaxprof.recorder.samples.stack import SampledFrame, Stack
from jaxprof.recorder.samples.states import (
    CALL,
    CALLBACK,
    COMPILED,
    DATA,
    DISPATCH,
    FED,
    GENERATORS,
    HOST,
    IDLE,
    IMPORT,
    IMPORT_FILES,
    READ,
    SYNC,
    TRANSFER,
    UNSEEN,
    WORK,
    WORTH_COPYING_BYTES,
    Seen,
    UserLine,
    sites_of,
    statements_of,
)

_FUNCTIONS_AT_MOST = 4_000
_SITES_AT_MOST = 4_000
FEW_BYTES = 4096
"""An operand that is not a JAX array and is as small as a Python number: putting it on the device is dispatch."""
_FED_BYTES = 1 << 20
"""NumPy arguments from which the call of a compiled function may be their copy: about 0.2 ms."""
STEPPING = ("range()", "enumerate()", "zip()", "reversed()")
"""Python's own iterators, which take no time as long as no other function runs below them."""
_LOADER_FILE = re.compile(
    r"[/\\](torch[/\\]utils[/\\]data|tensorflow_datasets|tensorflow[/\\]python[/\\]data|grain|datasets|webdataset"
    r"|torchvision[/\\]datasets|array_record|tfrecord)[/\\]"
)

_CALLBACKS = frozenset({"_wrapped_callback", "pure_callback_impl", "io_callback_impl", "debug_callback_impl"})
"""JAX's functions in which a compiled function has called back into Python; the first one is around the others."""
_TOKEN = "get_token_input"
"""JAX's function that puts its own token on the device, in the call of a compiled function with ordered effects."""
_SYNC_CALLS = {
    # JAX's outermost function → what the user wrote there; "" if the line itself shows it better
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
_EXPLICIT = frozenset({"block_until_ready", "device_get"})
"""Names of explicit waits and reads: a synchronisation that the program requested, not an implicit transfer."""
_TRANSFER_NAMES = ("device_put", "shard_args", "make_array_from", "copy_to_host", "copy_to_device")
_INPUT_OUTPUT = frozenset({
    "write", "read", "readline", "readlines", "flush", "close", "append", "extend", "get", "put", "next", "poll",
    "recv", "send", "sendall", "communicate", "select", "sleep", "wait", "join", "result", "acquire", "commit",
    "execute",
})  # fmt: skip
"""Method names that no compiled function has."""
_EVENT_FUNCTIONS = frozenset({("selectors.py", "select"), ("socket.py", "accept"), ("socket.py", "readinto")})
_ARRAY_MAKERS = ("asarray", "array", "frombuffer", "from_dlpack")


class Classifier:
    """Interprets stacks. Remembers those that it has seen, and where compiled functions were called."""

    def __init__(self) -> None:
        self._seen: dict[tuple[int, ...], tuple[list[CodeType], Seen]] = {}
        self._sites: dict[tuple[int, int], CodeType] = {}
        self._names: set[tuple[int, tuple[str, ...]]] = set()
        """Local names that such an instruction called, by their code object in `_sites`: a function that is warmed up
        before its loop compiles there, and is called by the same name in the loop."""
        self._compiled_lines: dict[tuple[str, int], int] = {}
        """Bytes of the NumPy arguments of the compiled function called at a file and line."""
        self._work = _WorkInstructions()

    def classify(self, stack: Stack) -> Seen:
        key = stack.key
        entry = self._seen.get(key)
        if entry is None:
            if len(self._seen) >= 1_000:
                self._seen.clear()
            # the code objects are kept, so their ids in the key stay theirs
            entry = self._seen[key] = ([frame.code for frame in stack.frames], self._interpret(stack))
        seen = entry[1]
        if seen.kind == SYNC and stack.ready and (stack.array_bytes or 0) >= WORTH_COPYING_BYTES:
            return Seen(TRANSFER, seen.line, seen.sites, seen.implicit)
        if seen.kind == TRANSFER and seen.implicit and stack.put_bytes is not None and stack.put_bytes < FEW_BYTES:
            return Seen(DISPATCH, seen.line, seen.sites)
        return seen

    def at_line(self, code: CodeType, line: int, head: int) -> tuple[str, UserLine]:
        """Return the kind and the call of a line that no sample saw running, from the source alone. `head`: first line
        of the loop. A line that may fetch an array, `walker.step(float(action))`, is `UNSEEN`: the source does not show
        what takes the time."""
        spans = self._work.spans(code)
        if any(span[0] <= line <= span[1] for span in spans):
            kind = UNSEEN if self.is_shared(code, line) else CALL
            return kind, UserLine(code.co_filename, line, code.co_name, "")
        span, call, fetches = statement_at(code.co_filename, line)
        if fetches:
            return UNSEEN, UserLine(code.co_filename, line, code.co_name, "")
        steps_on = line == head and call in STEPPING
        fed = not steps_on and span is not None and bool(spans) and feeds(code.co_filename, span, spans)
        return DATA if fed else HOST, UserLine(code.co_filename, line, code.co_name, call)

    def compiling_at(self, stack: Stack) -> None:
        """Note that this stack's instruction has caused a compilation, so what it calls is a compiled function.

        This identifies functions in local variables, whose values must not be read.
        """
        caller = stack.frames[stack.caller] if stack.caller >= 0 else None
        if caller is not None and len(self._sites) < _SITES_AT_MOST and caller.spot.is_call:
            key = (id(caller.code), caller.offset)
            if key not in self._sites:
                self._sites[key] = caller.code
                if len(caller.spot.callee) == 1:
                    self._names.add((id(caller.code), caller.spot.callee))
                self._seen.clear()
        self.working_at(stack)

    def calls_compiled(self, code: CodeType, offset: int) -> None:
        """Note that this instruction was seen to call a compiled function."""
        if (id(code), offset) not in self._sites and len(self._sites) < _SITES_AT_MOST:
            self._sites[id(code), offset] = code
            self._work.add(code, offset)
            self._seen.clear()

    def working_at(self, stack: Stack) -> None:
        """Note that JAX is at work under this stack."""
        if self._work.saw(stack):
            self._seen.clear()

    def note_compiled_line(self, file: str, line: int, numpy_bytes: int = 0) -> None:
        """Note that a user's function called from that line was compiled, with this size of NumPy arguments."""
        size = self._compiled_lines.get((file, line), -1)
        if len(self._compiled_lines) < _SITES_AT_MOST and size < numpy_bytes:
            self._compiled_lines[file, line] = numpy_bytes
            self._seen.clear()

    def _interpret(self, stack: Stack) -> Seen:
        if not stack.frames:
            return Seen(HOST)
        # On a CPU, the thread that calls a compiled function may run its callbacks, with what they call.
        frames = enumerate(stack.frames, 1)
        inside = max((end for end, each in frames if each.kind == JAX and each.code.co_name in _CALLBACKS), default=0)
        if inside:  # the compiled function's call is the user's line, and what is called back is part of its lines
            called = Stack(stack.read[inside:])
            line, path = _user_line(called, called.jax_functions), _path(called)
            outermost = next((frame for frame in reversed(stack.frames[:inside]) if frame.kind == USER), None)
            through = ""
            if outermost is not None:
                through = outermost.code.co_name
                path = ((outermost.code, outermost.spot.line), *path)
            return Seen(CALLBACK, line and replace(line, through=through), sites_of(called, CALLBACK), path=path)
        names = stack.jax_functions
        at = stack.caller
        spot = stack.frames[at].spot if at >= 0 else CallSpot(0, "", "")
        importing = any(frame.code.co_filename in IMPORT_FILES for frame in stack.called_by_user)
        # JAX's function that starts a backend. A first operation calls it, which on a GPU takes 0.5 to 2 s.
        starting = "_init_backend" in names or importing
        kind = IMPORT if starting else self._kind(stack, at, spot, names)
        if kind == COMPILED and stack.user >= 0:
            # The compiled function called here may have NumPy arguments whose copies take time.
            frame = stack.frames[stack.user]
            size = self._compiled_lines.get((frame.code.co_filename, frame.spot.line), 0)
            kind = FED if frame.spot.is_call and size >= _FED_BYTES else COMPILED
        if kind in (HOST, READ):
            host_kind = self._host_kind(stack)
            # A read that makes an argument of the loop's work is the loop's data; any other stays a wait for an array.
            kind = host_kind if kind == HOST or host_kind == DATA else READ
            if kind == HOST and _waits_for_events(stack, spot):
                kind = IDLE
        elif kind in WORK or kind == DATA:
            self.working_at(stack)
        line, sites, implicit = _user_line(stack, names), sites_of(stack, kind), _implicit(kind, spot, names)
        if sites and kind in (HOST, READ, SYNC, TRANSFER) and self._is_between(stack):
            sites = tuple(replace(site, at=replace(site.at, between=True)) for site in sites)
        # Python itself calls something unknown, with no frame below: a compiled function has none either.
        doubtful = kind == HOST and at == 0 and _may_be_compiled(stack, spot)
        beside = kind == HOST and at == 0 and not doubtful and _is_beside_unknown_call(stack, spot)
        user = stack.frames[stack.user] if stack.user >= 0 else None
        shared = kind == DISPATCH and user is not None and self.is_shared(user.code, user.spot.line)
        whole = False
        if kind in (COMPILED, SYNC) and user is not None and user.spot.span is not None:
            whole = is_all_work(user.code.co_filename, user.spot.span, self._work.spans(user.code))
        return Seen(kind, line, sites, implicit, _path(stack), statements_of(stack), doubtful, beside, shared, whole)

    def is_shared(self, code: CodeType, line: int) -> bool:
        """Return whether a line has other work besides that with JAX."""
        return has_other_work(code.co_filename, line, self._work.spans(code))

    def _kind(self, stack: Stack, at: int, spot: CallSpot, names: list[str]) -> str:
        """Return the kind of work at frame `at`, at instruction `spot`; `names`: JAX's functions, innermost first."""
        if names and names[-1] in ("block_until_ready", "try_to_block") and at != stack.user:
            return COMPILED  # a library waits for what it has called, as equinox does in order to raise its errors
        if _TOKEN in names:
            return COMPILED
        if any(name in _SYNC_CALLS for name in names):
            return SYNC
        made_array = bool(names) and names[-1] in _ARRAY_MAKERS
        if any(part in name for name in names for part in _TRANSFER_NAMES):
            return TRANSFER
        if made_array:  # before it binds an operation to copy it, it makes a NumPy array of a list, number by number
            return TRANSFER if any("bind" in name for name in names) else DATA
        if at < 0:
            return DISPATCH if names else HOST
        if not names and spot.method == "block_until_ready":
            return SYNC
        if spot.is_call and names and names[-1].lstrip("_") == spot.method:
            return DISPATCH  # a method of an array, `x.at[i].add(1)`, which compiles what it needs
        value = stack.frames[at].callee
        maker = maker_of(value)
        if maker == "user" or (not maker and not _is_jax_function(value) and self._is_site(stack.frames[at])):
            return COMPILED
        if names or maker == "jax" or _is_jax_function(value):
            return DISPATCH
        # NumPy's `asarray` and `array` wait for a JAX array without a Python frame.
        reads = type(value) is BuiltinFunctionType and value.__name__ in ("asarray", "array", "ascontiguousarray")
        return READ if reads else HOST

    def _is_site(self, frame: SampledFrame) -> bool:
        code, spot = frame.code, frame.spot
        if (id(code), frame.offset) in self._sites or (spot.is_call and (id(code), spot.callee) in self._names):
            return True
        if not spot.is_call or (code.co_filename, spot.line) not in self._compiled_lines:
            return False
        if spot.method in _INPUT_OUTPUT or spot.text.startswith("."):  # `file.write(step(x).tobytes())`
            return False
        return not _is_builtin(spot) and not is_foreign(spot.callee, code, frame.globals)

    def _host_kind(self, stack: Stack) -> str:
        """Return what Python or NumPy does for the loop: it makes the loop's `DATA`, it belongs to the `CALL` of a
        compiled function, or neither (`HOST`). The innermost function in which JAX was at work decides."""
        if any(_LOADER_FILE.search(frame.code.co_filename) for frame in stack.frames if frame.kind not in (JAX, USER)):
            return DATA
        for index, frame in enumerate(stack.frames):
            if frame.kind != USER:
                continue
            code, called = frame.code, stack.frames[:index]
            self._work.look(code, frame.offset, frame.globals)
            offsets = self._work.offsets(code)
            if not offsets:
                continue
            spot = frame.spot
            # The function is at an instruction under which JAX works at other times, but not now.
            if frame.offset in offsets:
                if index == 0:  # an operand of the operation at which JAX was seen, or the Python just before its call
                    return CALL if spot.is_call and not _is_jax_function(frame.callee) else DISPATCH
                if any(inner.code.co_flags & GENERATORS for inner in called):
                    return DATA  # `reduce(step, batches())`: one call takes from a generator and passes on to JAX
                # Below it, a library's own Python wraps the call; the user's functions do other work before it.
                return CALL if index == stack.user and any(inner.kind == LIBRARY for inner in called) else HOST
            spans = self._work.spans(code)
            if index == 0 and _is_stepping(code, spot):
                return HOST
            if index == 0 and not spot.is_call and any(span[0] <= spot.line <= span[1] for span in spans):
                return HOST if spot.operation.endswith("FOR_ITER") else CALL  # Python's own, next to an operation
            fed = feeds(code.co_filename, spot.span, spans) if spot.span is not None and spans else None
            if fed is None:  # no source: an iterator that feeds the loop shows in the bytecode
                fed = spot.operation.endswith("FOR_ITER") or spot.callee == ("next",)
            return DATA if fed else HOST
        return HOST

    def _is_between(self, stack: Stack) -> bool:
        """Whether results of JAX's work become arguments of it there, in the innermost function with such work."""
        for frame in stack.frames:
            spans = self._work.spans(frame.code) if frame.kind == USER else []
            if spans and frame.spot.span is not None:
                return is_between(frame.code.co_filename, frame.spot.span, spans)
        return False


class _WorkInstructions:
    """Instructions of the user's functions under which JAX is at work, from which follows which code around them feeds
    it. Keeping the code objects keeps their ids valid.

    A sample sees work only where it takes time. A step that is much shorter than the wait for its data is hardly ever
    seen, so its instruction is also taken from its compilation, and from the names that a loop calls."""

    def __init__(self) -> None:
        self._offsets: dict[int, tuple[CodeType, set[int]]] = {}
        self._searched: dict[tuple[int, int], CodeType] = {}

    def offsets(self, code: CodeType) -> set[int]:
        """Return the instructions of a code object; empty if none are known."""
        return self._offsets[id(code)][1] if id(code) in self._offsets else set()

    def spans(self, code: CodeType) -> list[Span]:
        """Return the source positions of these instructions, in the form of `CallSpot.span`."""
        return [span for offset in self.offsets(code) if (span := spot_of(code, offset).span) is not None]

    def saw(self, stack: Stack) -> bool:
        """Add each of the user's instructions on this stack; return whether any of them is new."""
        new = [self.add(frame.code, frame.offset) for frame in stack.frames if frame.kind == USER]
        return any(new)

    def look(self, code: CodeType, offset: int, names: dict[str, Any]) -> None:
        """Find, once, which calls in the loops around an instruction are of compiled functions in the module's globals
        `names`. This runs no code of the program."""
        loops = loops_at(code, offset)
        if not loops or (id(code), loops[-1].begins) in self._searched or len(self._searched) >= _FUNCTIONS_AT_MOST:
            return
        outermost = loops[-1]
        self._searched[id(code), outermost.begins] = code
        held = [names.get(name) for name in code.co_names]
        if not any(is_a(value, ModuleType) or maker_of(value) == "user" for value in held):
            return
        for instruction in instructions(code):
            at = instruction.offset
            if not (outermost.begins <= at <= outermost.ends and instruction.opname.startswith("CALL")):
                continue
            if maker_of(look_up(spot_of(code, at).callee, code, names)) == "user":
                self.add(code, at)

    def add(self, code: CodeType, offset: int) -> bool:
        """Add an instruction; return whether it is new."""
        if id(code) not in self._offsets:
            if len(self._offsets) >= _FUNCTIONS_AT_MOST:
                return False
            self._offsets[id(code)] = (code, set())
        offsets = self._offsets[id(code)][1]
        if offset in offsets or len(offsets) >= 100:
            return False
        offsets.add(offset)
        return True


def _waits_for_events(stack: Stack, spot: CallSpot) -> bool:
    """Whether the thread is in a selector or a socket, as an idle server is. `spot`: the call."""
    code = stack.frames[0].code
    if stack.frames[0].kind == STDLIB:
        return (os.path.basename(code.co_filename), code.co_name) in _EVENT_FUNCTIONS
    # Methods of sockets, and of the objects of the module `select`, are in C and have no frame.
    return spot.is_call and (
        spot.method in {"accept", "recv", "recv_into", "recvfrom", "poll"} or spot.callee == ("select", "select")
    )


def _is_stepping(code: CodeType, spot: CallSpot) -> bool:
    """Whether a loop only advances to its next number or item, which takes no time."""
    call = spot.text
    if spot.operation.endswith("FOR_ITER"):
        call = call or statement_at(code.co_filename, spot.line)[1]
    return call in STEPPING


def _is_jax_function(value: Any) -> bool:
    """Whether this is a plain function of JAX, such as `jnp.max`, which compiles what it needs."""
    module = getattr(value, "__module__", None) if is_a(value, FunctionType, BuiltinFunctionType) else None
    return isinstance(module, str) and module.partition(".")[0] in ("jax", "jaxlib") and not maker_of(value)


def _is_builtin(spot: CallSpot) -> bool:
    return len(spot.callee) == 1 and spot.text.endswith("()")


def _may_be_compiled(stack: Stack, spot: CallSpot) -> bool:
    """Whether the innermost instruction calls something that only its name identifies."""
    if not spot.is_call or spot.method in _INPUT_OUTPUT or _is_builtin(spot):
        return False
    frame = stack.frames[0]
    return frame.callee is None and not is_foreign(spot.callee, frame.code, frame.globals)


def _is_beside_unknown_call(stack: Stack, spot: CallSpot) -> bool:
    """Whether the innermost instruction is Python's own, in a statement that calls something of which only the name is
    known: what is dropped when `kept = step(tree)` gets its value are the results of the last call."""
    if spot.is_call or spot.operation.endswith("FOR_ITER"):
        return False
    code, names = stack.frames[0].code, stack.frames[0].globals
    return any(
        callee[-1] not in _INPUT_OUTPUT and look_up(callee, code, names) is None and not is_foreign(callee, code, names)
        for callee in callees_at(code.co_filename, spot.line)
    )


def _path(stack: Stack) -> tuple[tuple[CodeType, int], ...]:
    """Return the user's frames outside JAX's and libraries', innermost first, as far as they are consecutive."""
    path: list[tuple[CodeType, int]] = []
    for frame in stack.frames:
        if frame.kind == USER:
            path.append((frame.code, frame.spot.line))
        elif path or len(path) >= 8:
            break
    return tuple(path)


def _user_line(stack: Stack, names: list[str]) -> UserLine | None:
    at = stack.user
    if at < 0:
        return None
    code, spot = stack.frames[at].code, stack.frames[at].spot
    call = spot.text
    if at == stack.caller and names:
        call = _SYNC_CALLS.get(names[-1]) or call
        if call == "print()" and "print" not in spot.text:
            call = "str()" if spot.text in ("", "str()", "repr()") else spot.text
    between = [frame.code.co_filename for frame in stack.frames[:at] if frame.kind == LIBRARY]
    return UserLine(code.co_filename, spot.line, code.co_name, call, package_of(between[-1]) if between else "")


def _implicit(kind: str, spot: CallSpot, names: list[str]) -> str:
    """Return the direction of a copy that the program did not request; empty if there is none."""
    if kind == FED:
        return "host_to_device"
    # device_put to another sharding may go through the host: that was requested as well
    put = bool(names) and any(part in names[-1] for part in _TRANSFER_NAMES)
    if kind == SYNC and names and not put and not _EXPLICIT & {*names, spot.method}:
        return "device_to_host"
    requested = put or (bool(names) and names[-1] in _ARRAY_MAKERS)
    if kind == TRANSFER and not requested and any("device_put" in name for name in names):
        return "host_to_device"
    return ""
