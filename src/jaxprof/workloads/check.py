"""Check a result: every number in a tree of arrays is compared with the expected one.

NumPy only, imported inside. A number of a floating-point result is right when its error is within

    tolerance × min(largest, |expected| + scale)

where `largest` is the largest magnitude of the array, and `scale` its typical one (the median) or `SPREAD` of the
largest, whichever is more: a number that was summed from others carries the rounding of what cancelled, so near 0 its
error is not in proportion to its own magnitude. In an elementwise program the numbers do not depend on each other, and
for most of them it is: at most `MOST_INEXACT` of them may be off by more than the tolerance of their own magnitude
(those where terms cancelled). So a result with a wide range, `exp(x)`, is checked down to its small numbers.

Integers, booleans and keys are right if they are equal. NaN is right where NaN is expected.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from jaxprof.base.units import counted
from jaxprof.base.values import frozen
from jaxprof.events import CheckReported
from jaxprof.workloads.callables import is_key, leaves

if TYPE_CHECKING:
    import numpy

    from jaxprof.workloads.model import Workload

_FLOOR_BY_DTYPE = {
    "float8_e4m3fn": 0.25,
    "float8_e5m2": 0.5,
    "bfloat16": 5e-2,
    "float16": 1e-2,
    "float32": 1e-6,
    "complex64": 1e-6,
}
"""Smallest useful tolerance of a narrow dtype, after a few roundings (of 2⁻⁴, 2⁻³, 2⁻⁸, 2⁻¹¹ and 2⁻²⁴ each)."""
_SMALLEST_NORMAL = {"float8_e4m3fn": 2.0**-6, "float8_e5m2": 2.0**-14, "float16": 2.0**-14, "float64": 2.0**-1022}
"""Smallest normal number, below which a device may flush numbers to 0. Other dtypes have that of float32, 2⁻¹²⁶."""
SPREAD = 0.1
"""Share of the largest magnitude that counts as noise: sums leave it where nothing is expected, as beside the peak of a
spectrum, or off the diagonal of a matrix times its inverse."""
MOST_INEXACT = 0.10
"""Share of the numbers of an elementwise result that may be off relative to themselves, because terms cancelled."""
_CHUNK = 1 << 20
"""How many numbers are compared at a time, so that no temporary array is as large as the result."""


_LeafReport = tuple[CheckReported, float]
"""What is reported of one array, and its largest error divided by the error accepted there."""


def compare(output: Any, expected: Any, tolerance: float, *, elementwise: bool = False) -> CheckReported:
    """Compare `output` with `expected`, two trees of arrays and numbers. The largest error is infinite if it cannot be
    determined, and absolute for an array that should be all 0.

    The trees are nested tuples, lists and dicts (and all other JAX trees, once JAX is imported); a tuple and a list of
    the same leaves are equal. `tolerance` is relative. `elementwise`: no number of the result depends on a sum over
    others. An expected Python number matches any array that can hold it.
    """
    outputs, expected_leaves = list(leaves(output)), list(leaves(expected))
    if len(outputs) != len(expected_leaves):
        elements = sum(_array(value).size for _, value in expected_leaves)
        verb = "is" if len(expected_leaves) == 1 else "are"
        note = f"the result has {counted(len(outputs), 'array')}, {len(expected_leaves)} {verb} expected"
        return _unlike(elements, note)[0]
    compared = [
        _compare_leaf(path, value, right, tolerance, elementwise=elementwise)
        for (path, value), (_, right) in zip(outputs, expected_leaves, strict=True)
    ]
    worst, _ = max(compared, key=lambda leaf: (not leaf[0].passed, leaf[1]), default=(CheckReported(passed=True), 0.0))
    reports = [report for report, _ in compared]
    return replace(
        worst,
        passed=all(report.passed for report in reports),
        max_relative_error=max((report.max_relative_error or 0.0 for report in reports), default=0.0),
        elements=sum(report.elements or 0 for report in reports),
        wrong_elements=sum(report.wrong_elements or 0 for report in reports),
        note="; ".join(dict.fromkeys(report.note for report in reports if report.note)),
    )


def _unlike(elements: int, note: str) -> _LeafReport:
    """Return the report of a result of another form, of which no number is right."""
    report = CheckReported(
        passed=False, max_relative_error=math.inf, elements=elements, wrong_elements=elements, note=note
    )
    return report, math.inf


def tolerance(workload: Workload, precision: str, *results: Any) -> float:
    """Return the largest relative error that `workload` accepts at the effective `precision` (`float32`, `tf32`...).

    An unknown precision counts as float32. Results (the run's, the expected one) with leaves
    of a narrow dtype widen it to what those can hold.
    """
    declared = workload.tolerance
    accepted = declared.get(precision, declared.get("float32", max(declared.values(), default=0.0)))
    if accepted == 0:
        return 0.0
    dtypes = {str(getattr(leaf, "dtype", "")) for result in results for _, leaf in leaves(result)}
    return max([accepted, *(floor for dtype, floor in _FLOOR_BY_DTYPE.items() if dtype in dtypes)])


def _compare_leaf(path: str, output: Any, expected: Any, tolerance: float, *, elementwise: bool) -> _LeafReport:
    import numpy as np

    got, right = _array(output), _array(expected)
    whole, where = right.size, f"{path}: " if path else ""
    if got.shape != right.shape:
        return _unlike(whole, f"{where}the result's shape is {got.shape}, {right.shape} is expected")
    kind, wanted = _kind(got.dtype), _kind(right.dtype)
    if kind != wanted and not (isinstance(expected, (int, float, complex)) and kind in _HOLDS.get(wanted, ())):
        return _unlike(whole, f"{where}the result is {got.dtype}, {right.dtype} is expected")
    if whole == 0 or np.array_equal(got, right):
        return CheckReported(passed=True, max_relative_error=0.0, elements=whole, wrong_elements=0), 0.0
    exact = {kind, wanted} <= {"bool", "integer"}
    flat_got, flat_right = got.reshape(-1), right.reshape(-1)
    scales = _Scales.of(flat_got, flat_right, 0.0 if exact else tolerance, elementwise=elementwise)
    errors = _Errors()
    for start in range(0, whole, _CHUNK):
        errors.add(start, flat_got[start : start + _CHUNK], flat_right[start : start + _CHUNK], scales)
    wrong, excess, at = errors.count_wrong(scales)
    relative = math.inf if errors.unlike else errors.largest / (scales.largest or 1.0)
    index = ", ".join(str(int(number)) for number in np.unravel_index(at, right.shape))
    report = CheckReported(
        passed=wrong == 0,
        max_relative_error=relative,
        elements=whole,
        wrong_elements=wrong,
        note=f"{errors.nan} of {whole} values are NaN, as expected" if errors.nan else "",
    )
    if excess:
        where = f"{path}[{index}]" if index else path
        report = replace(report, worst_at=where, worst_got=_text(flat_got[at]), worst_expected=_text(flat_right[at]))
    return report, excess


@frozen
class _Scales:
    """What the errors in one array are compared with."""

    tolerance: float
    largest: float
    scale: float
    smallest: float
    """Magnitude below which numbers count as 0."""
    is_elementwise: bool

    @classmethod
    def of(cls, got: Any, right: Any, tolerance: float, *, elementwise: bool) -> _Scales:
        import numpy as np

        def finite_magnitudes(part: Any) -> Any:
            magnitudes = np.abs(_wide(part))
            return magnitudes[np.isfinite(magnitudes)]

        parts = (finite_magnitudes(right[start : start + _CHUNK]) for start in range(0, right.size, _CHUNK))
        largest = max(float(np.max(part, initial=0.0)) for part in parts)
        # The typical magnitude of a large array is that of numbers evenly spread over it.
        sampled = finite_magnitudes(right[:: max(1, right.size // (1 << 18))])
        typical = float(np.median(sampled[sampled > 0])) if (sampled > 0).any() else 0.0
        dtypes = (str(got.dtype), str(right.dtype))
        smallest = max(_SMALLEST_NORMAL.get(name, 2.0**-126) for name in dtypes) if tolerance else 0.0  # float32's
        return cls(tolerance, largest, max(typical, SPREAD * largest), smallest, elementwise)


class _Errors:
    """The errors of an array, collected part by part."""

    def __init__(self) -> None:
        self.largest = 0.0
        self.unlike = 0
        """How many positions have a NaN or an infinity that the other array does not have there."""
        self.nan = 0
        """How many numbers are NaN, as expected."""
        self._wrong = self._inexact = self._compared = 0
        self._worst = self._worst_itself = (-1.0, 0)
        """Largest error divided by the error accepted there, and its index; `_worst_itself` accepts an error in
        proportion to the number itself."""

    def add(self, start: int, got: Any, right: Any, scales: _Scales) -> None:
        import numpy as np

        both_nan = (got != got) & (right != right)
        self.nan += int(np.count_nonzero(both_nan))
        differs = ~((got == right) | both_nan)
        got, right = _wide(got), _wide(right)
        finite = np.isfinite(got) & np.isfinite(right)
        unlike = differs & ~finite
        with np.errstate(all="ignore"):
            error = np.where(differs & finite, np.abs(got - right), 0.0)
            magnitudes = np.where(finite, np.abs(right), 0.0)
            most = magnitudes + scales.scale if scales.largest else np.ones_like(magnitudes)  # all 0 expected: absolute
            accepted = scales.tolerance * np.minimum(scales.largest or 1.0, most) + scales.smallest
            # What differs may be equal in float64: integers beyond 2⁵³, of which none may differ.
            excess = np.where(unlike | (differs & (accepted == 0)), np.inf, np.where(differs, error / accepted, 0.0))
            relative = error / (scales.tolerance * magnitudes + scales.smallest)
            itself = np.where(error > 0, relative, 0.0) * (magnitudes > 0)
        self.largest = max(self.largest, float(error.max()))
        self.unlike += int(np.count_nonzero(unlike))
        self._wrong += int(np.count_nonzero(excess > 1))
        self._inexact += int(np.count_nonzero(itself > 1))
        self._compared += int(np.count_nonzero(magnitudes > scales.smallest))
        self._worst = max(self._worst, _peak(excess, start), key=lambda peak: peak[0])
        self._worst_itself = max(self._worst_itself, _peak(itself, start), key=lambda peak: peak[0])

    def count_wrong(self, scales: _Scales) -> tuple[int, float, int]:
        """Return how many numbers are wrong, the largest error divided by the accepted one, and the index of that."""
        if not self._wrong and scales.is_elementwise and self._inexact > max(1.0, MOST_INEXACT * self._compared):
            return self._inexact, *self._worst_itself
        return self._wrong, *self._worst


def _peak(values: Any, start: int) -> tuple[float, int]:
    at = int(values.argmax())
    return float(values[at]), start + at


def _array(leaf: Any) -> numpy.ndarray[Any, Any]:
    import numpy as np

    if is_key(leaf):
        import jax

        leaf = jax.random.key_data(leaf)
    return np.asarray(leaf)


def _wide(array: Any) -> Any:
    """Return the array in a dtype wide enough that the comparison itself rounds nothing away."""
    import numpy as np

    return array.astype(np.complex128 if np.iscomplexobj(array) else np.float64)


def _kind(dtype: Any) -> str:
    """Return `bool`, `integer`, `float` or `complex`; NumPy's own kind hides a narrow dtype of ml_dtypes."""
    name = str(dtype)
    for kind, beginnings in (("bool", ("bool",)), ("integer", ("int", "uint")), ("complex", ("complex",))):
        if name.startswith(beginnings):
            return kind
    return "float" if "float" in name else name


_HOLDS: Mapping[str, tuple[str, ...]] = {"integer": ("float", "complex"), "float": ("complex",)}
"""Kinds of an array that an expected Python number of another kind matches."""


def _text(value: Any) -> str:
    return str(value.item()) if str(value.dtype) in ("bool", "float64", "complex128") else str(value)
