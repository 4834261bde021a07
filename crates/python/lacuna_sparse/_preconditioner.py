"""Preconditioners, and settings as the core reads them."""

from __future__ import annotations

from typing import Any, Dict, Optional, Tuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _core
from ._operand import Operand, functions, on_host, type_char, vector

_Array = NDArray[Any]


def settings(**keys: Any) -> str:
    """Settings as the core reads them; those that are None are left out."""

    def text(value: Any) -> str:
        if isinstance(value, bool):
            return "yes" if value else "no"
        return repr(float(value)) if isinstance(value, (float, np.floating)) else str(value)

    return ";".join(f"{key}={text(value)}" for key, value in keys.items() if value is not None)


def preconditioner_of(M: Any, columns: int, char: str) -> Tuple[str, Any]:
    """The name of a preconditioner and what is given in its place."""
    if M is None:
        return "none", None
    if isinstance(M, str):
        return M, None
    if isinstance(M, Preconditioner):
        if M.dtype.char == char:
            return "none", M._core
        return "none", functions(M, char)
    if isinstance(M, tuple):
        return "none", tuple(preconditioner_of(part, columns, char)[1] for part in M)
    m = Operand(M)
    if m.shape != (columns, columns):
        raise ValueError(f"M: expected the shape ({columns}, {columns}), got {m.shape}: shapes of A and M are incompatible")
    return "none", m.given(char)


class Preconditioner:
    """A preconditioner ``M ≈ A⁻¹`` by itself.

    For ``M=`` of the functions here, within which it never leaves the core, and of SciPy's, PyAMG's and CuPy's solvers on the
    host.

    Parameters
    ----------
    A : sparse matrix, ndarray
        The matrix.
    name : str
        The preconditioner with options, as in ``"amg:theta=0.04"``; see `preconditioners`.
    device : str, optional
        Where: ``"cpu"``, ``"cuda"``, ``"cuda:1"``, ``"opencl"``; by default the best device there is.
    threads : int, optional
        Threads of the CPU; by default ``LACUNA_NUM_THREADS``, or the cores that the process may use.

    Examples
    --------
    >>> import numpy as np
    >>> import lacuna_sparse as la
    >>> A = la.read("gen:poisson2d:30x30")
    >>> M = la.Preconditioner(A, "amg")
    >>> x, info = la.cg(A, np.ones(900), M=M)
    >>> info, M.shape
    (0, (900, 900))
    """

    def __init__(
        self,
        A: Any,
        name: str = "amg",
        *,
        device: Optional[str] = None,
        threads: Optional[int] = None,
    ) -> None:
        operand = Operand(A)
        char = type_char(operand.dtype)
        self._arguments = (A, name, device, threads)
        self._operand = operand
        self.name = name
        self._core = _core.Preconditioner(operand.matrix(char), name, device, threads)
        self.shape = self._core.shape
        self.dtype = np.dtype(char)

    def _apply(self, r: ArrayLike, adjoint: bool) -> _Array:
        on_host(r, "r")
        shape = np.shape(r)
        given = vector(r, self.shape[1], "r", self.dtype.char)
        z = np.empty(self.shape[0], self.dtype)
        self._core.apply(given, z, adjoint)
        return z.reshape(shape)

    def matvec(self, r: ArrayLike) -> _Array:
        """``M r``, for a vector of shape (n,) or (n, 1)."""
        return self._apply(r, False)

    def rmatvec(self, r: ArrayLike) -> _Array:
        """``Mᴴ r``. Some preconditioners know it with the option ``adjoint=yes`` only."""
        return self._apply(r, True)

    def matmat(self, R: ArrayLike) -> _Array:
        """``M R``, column by column."""
        return np.stack([self.matvec(column) for column in np.asarray(R).T], axis=1)

    def __matmul__(self, r: ArrayLike) -> _Array:
        return self.matmat(r) if np.ndim(r) == 2 else self.matvec(r)

    __call__ = __matmul__

    def update_values(self, data: ArrayLike) -> None:
        """Sets it up for new values of the matrix, in the order of the ``data`` of the one that was given, by compressed rows
        (``A.tocsr().data``)."""
        self._core.update_values(self._operand.values(data, self.dtype))

    @property
    def report(self) -> Dict[str, str]:
        """What the set-up reports: levels, fill, storage, time."""
        return dict(self._core.report)

    def __reduce__(self) -> Any:
        return (_preconditioner, self._arguments)

    def __repr__(self) -> str:
        return f"<Preconditioner {self.name}, {self.shape[0]}x{self.shape[1]}, {self.dtype}>"


def _preconditioner(A: Any, name: str, device: Optional[str], threads: Optional[int]) -> Preconditioner:
    return Preconditioner(A, name, device=device, threads=threads)
