"""Arrays in the memory of a GPU: where they are, and new ones of the same kind. Their modules are never imported here."""

from __future__ import annotations

import sys
from typing import Any, Optional, Tuple

import numpy as np

from . import _core

#: DLPack's numbers for memory that CUDA allocated.
_CUDA = (2, 13)


def on_gpu(array: Any) -> bool:
    """Whether an array is in the memory of a GPU."""
    if isinstance(array, np.ndarray):
        return False
    if hasattr(type(array), "__dlpack_device__"):
        return int(array.__dlpack_device__()[0]) in _CUDA
    return hasattr(array, "__cuda_array_interface__")


def type_of(array: Any) -> np.dtype[Any]:
    """The type of its numbers."""
    return np.dtype(_found(array, "b")[2])


def incompatible(what: str, shape: Tuple[int, ...], of_A: Optional[Tuple[int, int]]) -> str:
    """That an array does not suit the matrix, in SciPy's words, with the shape of the matrix if it is given."""
    return "shapes are incompatible" if of_A is None else f"shapes of A {of_A} and {what} {shape} are incompatible"


def address(array: Any, n: int, char: str, what: str, written: bool = False, of_A: Optional[Tuple[int, int]] = None) -> int:
    """The address of `n` contiguous numbers of a type; raises for any other array, rather than to copy it."""
    place, shape, kind, contiguous, readonly = _found(array, what)
    if shape not in ((n,), (n, 1)):
        raise ValueError(f"{what}: expected the shape ({n},) or ({n}, 1), got {shape}: {incompatible(what, shape, of_A)}")
    if kind != char:
        raise TypeError(f"{what}: expected the type {np.dtype(char)} of the solver, got {np.dtype(kind)}; convert it on the GPU")
    if not contiguous:
        raise ValueError(f"{what}: expected a contiguous array; copy it on the GPU, as by `.copy()` or `.contiguous()`")
    if written and readonly:
        raise ValueError(f"{what}: expected an array that may be written")
    return place


def like(array: Any, n: int, what: str) -> Any:
    """A new array of `n` numbers on the GPU, of the kind of another."""
    module = sys.modules.get(type(array).__module__.split(".")[0])
    make = getattr(module, "empty_like", None)
    if make is None:
        raise TypeError(f"{what}: its module makes no empty arrays; give `out`")
    if array.shape[0] != n:
        raise TypeError(f"{what}: the solution has {n} elements and b {array.shape[0]}; give `out`")
    return make(array.reshape(-1))


def _found(array: Any, what: str) -> Tuple[int, Tuple[int, ...], str, bool, bool]:
    """Address, shape, character of the type, whether it is contiguous, whether it is read-only."""
    interface = getattr(array, "__cuda_array_interface__", None)
    if interface is not None:
        place, readonly = interface["data"]
        kind = np.dtype(interface["typestr"])
        if kind.char not in "fdFD" or not kind.isnative:
            raise TypeError(f"{what}: expected floating-point numbers, got {kind}")
        shape = tuple(int(length) for length in interface["shape"])
        steps = interface.get("strides")
        steps = None if steps is None else tuple(step // kind.itemsize for step in steps)
        return int(place), shape, kind.char, _contiguous(shape, steps), bool(readonly)
    place, lengths, steps, char, _ = _core.dlpack_tensor(array)
    shape = tuple(lengths)
    return place, shape, char, _contiguous(shape, None if steps is None else tuple(steps)), False


def _contiguous(shape: Tuple[int, ...], steps: Any) -> bool:
    """Whether numbers of this shape, so many numbers apart, lie one after the other."""
    expected = 1
    for length, step in zip(reversed(shape), reversed(steps if steps is not None else ())):
        if length > 1 and step != expected:
            return False
        expected *= length
    return True
