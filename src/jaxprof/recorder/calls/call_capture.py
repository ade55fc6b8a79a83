"""`--function NAME`: keeps one real call of a function and measures it in the program's process once the program is
over.

The call is measured as a workload is: phases, an interval, HLO, kernels, a cold compile. The measurement must run
before JAX's own clean-up at exit. What the function prints while it is traced again goes to the run's log, not to the
program's output. In a job of several processes nothing is measured, because a call would wait for the other processes.
"""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Callable, Iterator
from difflib import get_close_matches
from typing import Any

from jaxprof.events import (
    DEFAULT_BUDGET_SECONDS,
    Event,
    LogLine,
    RunClosed,
    RunFinished,
    RunPlanned,
    RunSpec,
    WarningRaised,
)
from jaxprof.recorder.calls.kept_call import KeptArguments, WrittenCall, find_jitted, write_call
from jaxprof.recorder.guest import raised_by_program


class CallCapture:
    """Waits for a call of the function called `name`, keeps it, and measures it once."""

    def __init__(
        self, name: str, emit: Callable[[Event], None], *, values: bool = False, keep_constants: bool = False
    ) -> None:
        """`name`: JAX's name of the function (`train_step`), or with class or module (`Model.step`, `train.step`)."""
        self._name = name
        self._emit = emit
        self._values = values
        self._keep_constants = keep_constants
        self._run = f"function:{name}"
        self._names: dict[str, None] = {}
        self._function: Any = None
        self._jitted: Any = None
        self._kept: KeptArguments | None = None
        self._written = WrittenCall(name=name)

    def offer(self, function: object, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Examine a call that JAX is tracing, and keep the first call of the function. Raises nothing."""
        if self._kept is not None:
            return
        if len(self._names) < 500:
            self._names[name] = None
        qualified = str(getattr(function, "__qualname__", name)).replace("<locals>.", "")
        module = str(getattr(function, "__module__", ""))
        if module == "__main__":
            main = getattr(sys.modules.get("__main__"), "__spec__", None)
            module = main.name if main is not None else module
        if self._name not in (name, qualified, f"{module}.{qualified}", f"{module}:{qualified}"):
            return
        try:
            kept = KeptArguments.of(args, kwargs, values=self._values)
            self._jitted = find_jitted(function)
            self._written = write_call(function, self._jitted, name, args, kwargs)
        except Exception as error:  # the program is in the middle of this call and must go on
            if raised_by_program(error):
                raise
            what = f"{type(error).__name__}: {error}"
            self._emit(WarningRaised(code="function_not_kept", values={"function": name, "error": what}))
            return
        self._function, self._kept = function, kept

    def measure(self) -> None:
        """Measure the kept call and emit its run, or a warning if there is no call. Raises nothing."""
        kept, self._kept = self._kept, None
        if kept is None:
            near = get_close_matches(self._name, list(self._names), n=3, cutoff=0.5)
            listed = {"function": self._name, "functions": ", ".join(near or list(self._names)[:8])}
            self._emit(WarningRaised(code="function_not_called", values={**listed}))
            return
        import jax

        status, problem = "failed", ""
        try:
            if jax.process_count() > 1:
                count = jax.process_count()
                problem = f"not measured: the program ran in {count} processes, and a call would wait for all of them"
            else:
                with self._own_output():
                    self._measure(kept)
        except KeyboardInterrupt:
            status, problem = "cancelled", "interrupted"
        except Exception as error:  # noqa: BLE001 - the program is over, and a failure here must not change how it ends
            problem = f"not measured: {type(error).__name__}: {error}"
        if problem:
            spec = RunSpec(workload=self._written.name, variant="jit", how="jit", device="host")
            finished = RunFinished(run=self._run, status=status, error=problem)
            for event in (RunPlanned(run=self._run, spec=spec), finished, RunClosed.of(self._run, spec, finished)):
                self._emit(event)
        self._function = self._jitted = None

    def _measure(self, kept: KeptArguments) -> None:
        import jax

        from jaxprof.engine.measure.inprocess import device_of, measure_call
        from jaxprof.engine.measure.jax_devices import device_name

        args, kwargs = kept.arguments()
        if self._jitted is not None and not kwargs:
            function, arguments = self._jitted, args
        else:
            function, arguments = of_arrays_only(self._function, args, kwargs)
        jax.clear_caches()  # the program has already traced and compiled it, so the phases would be empty
        device = kept.device

        problem = self._written.problem

        def emit(event: Event) -> None:
            if isinstance(event, RunFinished):  # after the warnings that qualify the run's figures
                if kept.made_up:
                    self._emit(WarningRaised(run=self._run, code="values_made_up"))
                if problem:
                    self._emit(WarningRaised(run=self._run, code="cannot_repeat", values={"problem": problem}))
                elif kept.devices > 1:
                    self._emit(WarningRaised(run=self._run, code="one_device", values={"devices": kept.devices}))
            self._emit(event)

        spec = RunSpec(
            workload=self._written.name,
            variant="jit",
            how="jit",
            device=device_name(device) if device is not None else device_of(arguments),
            budget_seconds=DEFAULT_BUDGET_SECONDS,
            target=self._written.target,
            arguments=self._written.specs,
            keep_constants=self._keep_constants,
            check=False,
        )
        measure_call(self._run, spec, function, arguments, emit)

    @contextlib.contextmanager
    def _own_output(self) -> Iterator[None]:
        """Redirect what Python prints inside to the run's log, because the program's output has ended."""
        output = io.StringIO()
        try:
            with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
                yield
        finally:
            for line in output.getvalue().splitlines()[:200]:
                self._emit(LogLine(run=self._run, stream="stdout", text=line))


def of_arrays_only(
    function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Return the call as a function of its arrays alone; everything else is a constant inside the function.

    The function also returns only arrays: those of the call's result, and those that the call stored in its arguments
    (a training step of flax's nnx updates its model there), which would otherwise be dead code.
    """
    import jax
    import numpy as np

    leaves, structure = jax.tree.flatten((args, kwargs))
    indices = [index for index, leaf in enumerate(leaves) if isinstance(leaf, jax.Array | np.ndarray)]
    fixed = [None if index in set(indices) else leaf for index, leaf in enumerate(leaves)]

    def call(*arrays: Any) -> Any:
        filled = list(fixed)
        for index, array in zip(indices, arrays, strict=True):
            filled[index] = array
        positional, named = jax.tree.unflatten(structure, filled)
        result = jax.tree.leaves(function(*positional, **named))
        given = set(map(id, filled))
        result += [leaf for leaf in jax.tree.leaves((positional, named)) if id(leaf) not in given]
        return [leaf for leaf in result if isinstance(leaf, jax.Array | np.ndarray)]

    call.__name__ = call.__qualname__ = str(getattr(function, "__name__", "call"))
    return call, tuple(leaves[index] for index in indices)
