"""What solvers take, as what the core takes: matrices of any kind, operators, vectors."""

from __future__ import annotations

from typing import Any, Callable, NamedTuple, Optional, Tuple, Union

import numpy as np
from numpy.typing import NDArray

from . import _core
from ._gpu import incompatible, on_gpu

Functions = Tuple[str, Tuple[int, int], Callable[..., Any], Optional[Callable[..., Any]]]
Given = Union[_core.Matrix, Functions]


class Csr(NamedTuple):
    """A matrix by compressed rows, for those without SciPy: what `read` returns then."""

    data: NDArray[Any]
    indices: NDArray[Any]
    indptr: NDArray[Any]
    shape: Tuple[int, int]

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.data.dtype

    def toarray(self) -> NDArray[Any]:
        """It as a dense array."""
        dense = np.zeros(self.shape, self.data.dtype)
        rows = np.repeat(np.arange(self.shape[0]), np.diff(self.indptr))
        np.add.at(dense, (rows, self.indices), self.data)
        return dense


def type_char(*types: Any) -> str:
    """The character of the number type that holds all of these: f, d, F or D."""
    result = np.result_type(*types)
    if result.char in "fdFD":
        return result.char
    if result.kind not in "biufc":
        raise TypeError(f"expected numbers, got an array of {result}")
    return "D" if result.kind == "c" else "d"


def on_host(array: Any, what: str) -> None:
    """Raises for an array in the memory of a GPU, which would have to be copied to the host first."""
    if on_gpu(array):
        raise TypeError(
            f"{what} is in the memory of a GPU, where only right-hand sides, guesses and solutions of `Solver.solve` and `solve` on CUDA "
            "may be; copy it to the host, as by `.get()` or `.cpu()`"
        )


class Operand:
    """A matrix (its three arrays, or a dense one), or an operator (its functions)."""

    __slots__ = ("arrays", "dense", "functions", "shape", "dtype", "source", "made", "_order")

    def __init__(self, A: Any) -> None:
        self.source = A
        self.arrays: Optional[Tuple[Any, Any, Any]] = None
        self.dense: Optional[NDArray[Any]] = None
        self.functions: Any = None
        self.made: Optional[Tuple[str, _core.Matrix]] = None
        self._order: Any = False
        if isinstance(A, _core.Matrix):
            self.shape, self.dtype, self.made = A.shape, np.dtype(A.char), (A.char, A)
            return
        if hasattr(A, "matvec") and not hasattr(A, "tocsr"):
            inner = getattr(A, "A", None)
            if inner is not None and getattr(inner, "ndim", 0) == 2:
                A = inner  # the operator of a matrix
        if hasattr(A, "tocsr"):
            A = A.tocsr()
        if all(hasattr(A, name) for name in ("indptr", "indices", "data", "shape")):
            on_host(A.data, "A")
            self.arrays = (A.indptr, A.indices, A.data)
            self.shape, self.dtype = _shape(A), np.asarray(A.data).dtype
        elif hasattr(A, "matvec"):
            self.functions = A
            self.shape = _shape(A)
            dtype = getattr(A, "dtype", None)
            if dtype is None:
                dtype = np.asarray(A.matvec(np.zeros(self.shape[1]))).dtype
            self.dtype = np.dtype(dtype)
        else:
            on_host(A, "A")
            dense = np.asarray(A)
            if dense.ndim != 2:
                raise ValueError(f"A: expected a matrix of two dimensions, got {dense.ndim}")
            self.dense, self.shape, self.dtype = dense, _shape(dense), dense.dtype

    @property
    def is_matrix(self) -> bool:
        return self.functions is None

    def given(self, char: str) -> Given:
        """What the core takes for it, in a number type."""
        if self.functions is not None:
            return functions(self.functions, char)
        return self.matrix(char)

    def matrix(self, char: str) -> _core.Matrix:
        """The matrix of the core, in a number type; made once."""
        if self.made is not None and self.made[0] == char:
            return self.made[1]
        if char in "fd" and self.dtype.kind == "c":
            raise TypeError(f"A: expected real numbers, as the matrix before had, got {self.dtype}")
        arrays = self.arrays
        if self.dense is not None:
            flat = np.ascontiguousarray(self.dense, dtype=char).reshape(-1)
            made = _core.Matrix.dense(char, self.shape, flat)
        else:
            if arrays is None:
                if self.made is None:
                    raise TypeError("A is an operator, and a matrix is needed here")
                indptr, indices, data = self.made[1].arrays()
            else:
                indptr, indices, data = arrays
            data = np.ascontiguousarray(data, dtype=char)
            made = _core.Matrix.csr(char, self.shape, _indices(indptr, "indptr"), _indices(indices, "indices"), data)
        self.made = (char, made)
        return made

    def values(self, data: Any, dtype: np.dtype[Any]) -> NDArray[Any]:
        """Values in the order of the matrix that was given, in the order of the core: by rows, columns in increasing order, the sums of
        equal ones."""
        values = np.asarray(data)
        if values.dtype.kind == "c" and dtype.kind != "c":
            raise TypeError(f"data: expected real numbers, as the matrix has, got {values.dtype}")
        values = np.ascontiguousarray(values, dtype=dtype)
        if self.arrays is None:
            return values
        if self._order is False:
            self._order = _order(np.asarray(self.arrays[0]), np.asarray(self.arrays[1]))
        if self._order is None:
            return values
        order, starts = self._order
        if values.shape != order.shape:
            raise ValueError(f"data: expected {order.size} values, in the order of `A.tocsr().data`, got an array of the shape {values.shape}")
        return np.ascontiguousarray(np.add.reduceat(values[order], starts), dtype=dtype)


def _order(indptr: NDArray[Any], indices: NDArray[Any]) -> Optional[Tuple[NDArray[Any], NDArray[Any]]]:
    """What sorts the entries of each row by columns, and where each column begins then; nothing if they are in that order, each once."""
    rows = np.repeat(np.arange(indptr.size - 1), np.diff(indptr))
    if np.all((np.diff(indices) > 0) | (np.diff(rows) > 0)):
        return None
    order = np.lexsort((indices, rows))
    rows, columns = rows[order], indices[order]
    first = np.flatnonzero((np.diff(rows) != 0) | (np.diff(columns) != 0)) + 1
    return order, np.concatenate(([0], first))


def _shape(A: Any) -> Tuple[int, int]:
    rows, columns = A.shape
    return int(rows), int(columns)


def _indices(array: Any, what: str) -> NDArray[Any]:
    array = np.asarray(array)
    if array.dtype.kind not in "iu":
        raise ValueError(f"{what}: expected whole numbers, got {array.dtype}")
    if array.dtype != np.int32:
        array = array.astype(np.int64, copy=False)
    return np.ascontiguousarray(array)


def functions(operator: Any, char: str) -> Functions:
    """`matvec` and `rmatvec` of an operator, returning contiguous arrays of the type."""
    adjoint = _as_function(operator.rmatvec, char) if _knows_adjoint(operator) else None
    return (char, _shape(operator), _as_function(operator.matvec, char), adjoint)


def _as_function(function: Callable[..., Any], char: str) -> Callable[..., Any]:
    def called(x: NDArray[Any]) -> NDArray[Any]:
        return np.ascontiguousarray(np.asarray(function(x)).reshape(-1), dtype=char)

    return called


def _knows_adjoint(operator: Any) -> bool:
    if not hasattr(operator, "rmatvec"):
        return False
    # SciPy's operators of functions have an `rmatvec` that raises if none was given.
    return getattr(operator, "_CustomLinearOperator__rmatvec_impl", 0) is not None


def not_sparse(array: Any, what: str) -> None:
    """Raises for a sparse array, of which NumPy would make an array of one object."""
    if hasattr(array, "tocsr"):
        raise TypeError(f"{what}: expected a dense array, got a {type(array).__name__}; its `toarray` makes one")


def vector(b: Any, n: int, what: str, char: Optional[str] = None, of_A: Optional[Tuple[int, int]] = None) -> NDArray[Any]:
    """A vector of `n` numbers, of shape (n,) or (n, 1), as a contiguous array; of the type, if that is given. An error names the
    shape of the matrix, if that is given."""
    on_host(b, what)
    not_sparse(b, what)
    array = np.asarray(b)
    if array.shape not in ((n,), (n, 1)):
        raise ValueError(f"{what}: expected the shape ({n},) or ({n}, 1), got {array.shape}: {incompatible(what, array.shape, of_A)}")
    if char is not None and char in "fd" and array.dtype.kind == "c":
        raise TypeError(f"{what}: expected real numbers, as the matrix has, got {array.dtype}")
    return np.ascontiguousarray(array.reshape(-1), dtype=char)


def guess(x0: Any, n: int, char: str) -> NDArray[Any]:
    """The array that receives the solution: a copy of the guess, or zeros."""
    if x0 is None:
        return np.zeros(n, dtype=char)
    return np.array(vector(x0, n, "x0"), dtype=char, copy=True)
