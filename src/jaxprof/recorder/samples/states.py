"""What a sample shows the watched thread doing: kinds of work, the program states that they map to, lines and loops.

`classifier` derives it from a stack."""

from __future__ import annotations

import inspect
from dataclasses import replace
from types import CodeType

from jaxprof.base.values import field, frozen
from jaxprof.events import LoopSite, SourceLocation
from jaxprof.events.programs import IMPORTS, UNROLLED
from jaxprof.recorder.cpython import module_at
from jaxprof.recorder.frame_owner import JAX, LIBRARY, USER
from jaxprof.recorder.samples.flow import is_unchanging, under_a_condition
from jaxprof.recorder.samples.loops import Loop, loops_at
from jaxprof.recorder.samples.stack import Stack

GENERATORS = inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR
_SITES_OF_A_STACK = 6
IMPORT_FILES = ("<frozen importlib._bootstrap>", "<frozen importlib._bootstrap_external>")

WORTH_COPYING_BYTES = 65_536
"""Copying a ready array smaller than this takes no time: the thread is only waking up."""
RUNNING_ABOVE = 0.9
"""Share of the time around a sample above which a thread that ran counts as running, even if it appears blocked: it may
only be waiting for the interpreter's lock, which the sampler holds."""
_RUNNING_ABOVE_IN_DISPATCH = 0.5
"""The same for a thread that is in a single operation."""

HOST, IDLE, CALL, READ = "host", "idle", "call", "read"
DISPATCH, COMPILED, FED, CALLBACK = "dispatch", "compiled", "fed", "callback"
SYNC, TRANSFER, DATA, IMPORT = "sync", "transfer", "data", "import"
INLINE, UNSEEN, CONTENDED, PREEMPTED = "inline", "unseen", "contended", "preempted"
"""`idle`: blocked until something comes from outside (`select`, `epoll`), as a server is between requests; this is no
part of the loop's time. `call`: the Python code around the call of a compiled function, such as libraries' wrappers and
the flattening of arguments. `read`: `np.asarray`, which waits for a JAX array without a Python frame that shows it; a
blocked `read` is such a wait. `inline`: the thread runs inside the call of a compiled function, without the
interpreter's lock: it launches the function, or computes it itself. `unseen`: the interpreter's lock was held, at a
line that the sample did not see. `contended`: the thread waited for the lock, or, by its clock, for something else that
no sample saw. `preempted`: it waited for a processor, in a call in which it may have waited for the device before."""
STATES = {
    # kind: (state while it runs, state while it is blocked)
    HOST: ("host_busy", "waiting"),
    IDLE: ("host_busy", "waiting"),
    CALL: ("host_busy", "waiting"),
    READ: ("host_busy", "device_busy"),
    DISPATCH: ("host_busy", "device_busy"),
    COMPILED: ("device_busy", "device_busy"),
    # a compiled function with NumPy arguments: the calling thread copies them itself
    FED: ("transfer", "device_busy"),
    # a compiled function calls Python: the device waits until the host has answered
    CALLBACK: ("host_busy", "host_busy"),
    SYNC: ("device_busy", "device_busy"),
    TRANSFER: ("transfer", "transfer"),
    DATA: ("data", "data"),
    IMPORT: ("import", "import"),
    INLINE: ("device_busy", "device_busy"),
    UNSEEN: ("host_busy", "host_busy"),
    CONTENDED: ("waiting", "waiting"),
    PREEMPTED: ("waiting", "waiting"),
}
WORK = frozenset({COMPILED, INLINE, FED, CALLBACK, DISPATCH, TRANSFER})
"""Kinds that are a loop's work with JAX; waiting for a value is not."""


@frozen
class UserLine:
    """A line of the user's code, with the call in it."""

    file: str
    line: int
    function: str
    call: str
    through: str = ""
    """The library whose Python code is between the line and the compiled function, such as `flax.nnx`. For a callback,
    the user's function that is called back."""


@frozen
class Site:
    """The line in the function of a loop (of the user's or a library's) that was executed, with the call in it."""

    at: LoopSite
    loop: Loop | None = field(default=None, compare=False, repr=False)


@frozen
class Statement:
    """A statement of the user's code around what was sampled, as in `StatementTime`."""

    kind: str
    where: SourceLocation
    name: str = ""


@frozen
class Seen:
    """The interpretation of one stack."""

    kind: str
    """A key of `STATES`."""
    line: UserLine | None = None
    sites: tuple[Site, ...] = ()
    """The lines in the loops around the line, innermost first."""
    implicit: str = ""
    """Direction of an implicit copy; empty if there is none."""
    path: tuple[tuple[CodeType, int], ...] = field(default=(), compare=False, repr=False)
    """Code and line of the user's frames, innermost first."""
    statements: tuple[Statement, ...] = field(default=(), compare=False, repr=False)
    doubtful: bool = False
    """Whether the callee is unknown without reading the program's locals, and may be a compiled function."""
    is_beside_unknown: bool = False
    """Whether it is Python's own work in a statement that calls something unknown, which may be a compiled function."""
    shares_line: bool = False
    """Whether the line computes something besides its work with JAX, which may have held the interpreter's lock."""
    is_all_work: bool = False
    """Whether its loop does nothing but such calls, and waits for their results."""

    @property
    def works(self) -> bool:
        """Whether JAX is working there, or is waited for."""
        return self.kind in WORK or self.kind == SYNC

    @property
    def running_above(self) -> float:
        """See `RUNNING_ABOVE`."""
        return _RUNNING_ABOVE_IN_DISPATCH if self.kind == DISPATCH else RUNNING_ABOVE

    def while_locked(self, *, forced: bool, brief: bool = False) -> Seen:
        """Return the interpretation for a sample that had to wait for the interpreter's lock.

        The thread was not in this call, which releases the lock, but in Python before it or inside it, at an unknown
        line; inside a call if the loop does nothing else. A holder that was `forced` to hand the lock over was at this
        line, unless the line calls a compiled function. Loading, importing and copying hold the lock themselves, so
        they are what they appear to be, and so does a single operation after a `brief` wait, if its line does nothing
        else."""
        brief = brief and not self.shares_line
        if self.kind in (COMPILED, SYNC) and self.is_all_work:
            return replace(self, kind=CALL)
        if self.kind in (COMPILED, SYNC) or (
            not forced and (self.kind == HOST or (self.kind == DISPATCH and not brief))
        ):
            return replace(self, kind=UNSEEN, line=replace(self.line, call="") if self.line else None)
        return self


def sites_of(stack: Stack, kind: str) -> tuple[Site, ...]:
    """Return the user's loops around the current instruction, innermost first; if there are none, those of libraries.
    Loops in functions that JAX itself calls are left out: they are being traced and unrolled."""
    if kind == IMPORT:
        return ()
    inner = max((at for at, frame in enumerate(stack.frames, 1) if frame.kind == JAX), default=0)
    puts = stack.frames[stack.user] if kind in (TRANSFER, DATA) and stack.jax_functions and stack.user >= 0 else None
    for whose in (USER, LIBRARY):
        sites: list[Site] = []
        for frame in stack.frames[inner:]:
            code = frame.code
            # The loop of a comprehension is part of an expression, and not a loop of the program.
            if (
                frame.kind == whose
                and len(sites) < _SITES_OF_A_STACK
                and code.co_name not in ("<genexpr>", "<listcomp>", "<setcomp>", "<dictcomp>")
            ):
                spot, span = frame.spot, frame.spot.span if frame is puts and stack.user == stack.caller else None
                for loop in loops_at(code, frame.offset):
                    at = LoopSite(
                        file=code.co_filename,
                        function=code.co_name,
                        loop_line=loop.line,
                        last_line=loop.last_line,
                        line=spot.line,
                        call=spot.text,
                        library=whose == LIBRARY,
                        conditional=under_a_condition(code.co_filename, loop.line, spot.line),
                        unchanging=span is not None and is_unchanging(code.co_filename, loop.line, span),
                    )
                    sites.append(Site(at, loop))
        if sites:
            # a generator's loop is suspended while the loop that it feeds runs: that one is the program's
            driving = [site for site in sites if site.loop is not None and not site.loop.code.co_flags & GENERATORS]
            return tuple((driving or sites)[:_SITES_OF_A_STACK])
    return ()


def statements_of(stack: Stack) -> tuple[Statement, ...]:
    """Return the user's innermost import, and the loops of the functions that JAX calls, which tracing unrolls,
    outermost first."""
    traced = max((at for at, frame in enumerate(stack.frames, 1) if frame.kind == JAX), default=0)
    imports: list[Statement] = []
    loops: list[Loop] = []
    called = None
    for at, frame in enumerate(stack.frames):
        code = frame.code
        if frame.kind == USER and at < traced:
            loops += loops_at(code, frame.offset)
        imported = called is not None and (called.co_filename in IMPORT_FILES or called.co_name == "import_module")
        if frame.kind == USER and imported and not imports:
            where = SourceLocation(code.co_filename, frame.spot.line, code.co_name)
            imports.append(Statement(IMPORTS, where, module_at(code, frame.offset)))
        called = code
    unrolled = dict.fromkeys(Statement(UNROLLED, loop.location) for loop in reversed(loops))
    return (*imports, *unrolled)
