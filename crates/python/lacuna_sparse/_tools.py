"""Matrices in files, and what there is."""

from __future__ import annotations

import os
from typing import Any, Dict, List, Optional, Tuple, Union

import numpy as np
from numpy.typing import ArrayLike

from . import _core
from ._operand import Csr, Operand, type_char, vector
from ._results import Trial


def info(A: Any) -> Dict[str, Any]:
    """What the structure of a matrix is: sizes, symmetry, bandwidths, diagonal dominance.

    Parameters
    ----------
    A : sparse matrix, ndarray
        The matrix.

    Returns
    -------
    found : dict
        What was found, by name. `asymmetry` is by how much entries differ from their mirror images if that is no more than rounding,
        else None.

    Examples
    --------
    >>> import lacuna_sparse as la
    >>> found = la.info(la.read("gen:poisson2d:10x10"))
    >>> found["symmetric"], found["longest_row"]
    (True, 5)
    """
    operand = Operand(A)
    return _core.Matrix.structure(operand.matrix(type_char(operand.dtype)))


def devices() -> Dict[str, Union[List[str], str]]:
    """The devices of each backend.

    Returns
    -------
    found : dict
        For each backend the names of its devices, or why there is none.
    """
    return {backend: names or why for backend, names, why in _core.devices()}


def methods() -> Dict[str, str]:
    """The methods: every name that ``method=`` of `Solver` and `solve` takes.

    Returns
    -------
    listed : dict
        For each name what it solves, and its options. Options follow the name, as in ``"gmres:restart=50"``.

    Examples
    --------
    >>> from lacuna_sparse import methods
    >>> "gmres" in methods()
    True
    """
    return {name: _described(about, options) for name, about, options in _core.methods()}


def preconditioners() -> Dict[str, str]:
    """The preconditioners.

    Returns
    -------
    listed : dict
        For each name what it is, and its options.

    Examples
    --------
    >>> from lacuna_sparse import preconditioners
    >>> "amg" in preconditioners()
    True
    """
    return {name: _described(about, options) for name, about, options in _core.preconditioners()}


def _described(about: str, options: List[Tuple[str, str, str]]) -> str:
    lines = [f"  {key}={default}: {what}" for key, default, what in options]
    return "\n".join([about, *lines])


def advise(
    A: Any,
    b: ArrayLike,
    *,
    rtol: Optional[float] = None,
    seconds: float = 5.0,
    device: Optional[str] = None,
    threads: Optional[int] = None,
) -> List[Trial]:
    """Tries the methods and preconditioners that may suit a matrix, each for some seconds at most; the fastest first.

    The fastest is remembered for ``method="tune"``.

    Parameters
    ----------
    A : sparse matrix, ndarray
        The matrix.
    b : array_like
        The right-hand side.
    rtol : float, optional
        The relative residual to reach: 1e-8 by default, 1e-5 in single precision.
    seconds : float
        Time of the iterations of each.
    device : str, optional
        As for `Preconditioner`.
    threads : int, optional
        As for `Preconditioner`.

    Returns
    -------
    trials : list of Trial
        Those that solved the system come first, by their total time.

    Examples
    --------
    >>> import numpy as np
    >>> import lacuna_sparse as la
    >>> trials = la.advise(la.read("gen:poisson2d:20x20"), np.ones(400), seconds=0.2)
    >>> trials[0].true_residual <= 1e-8
    True
    """
    operand = Operand(A)
    char = type_char(operand.dtype)
    given = vector(b, operand.shape[0], "b", char, operand.shape)
    if rtol is None:
        rtol = 1e-5 if char in "fF" else 1e-8
    tried = _core.advise(operand.matrix(char), given, float(rtol), float(seconds), device, threads)
    return [Trial(*trial) for trial in tried]


def read(path: Union[str, "os.PathLike[str]"], dtype: Any = float) -> Any:
    """A matrix in a file of Matrix Market, SciPy, PETSc, MATLAB or Rutherford–Boeing, compressed or not, or a model problem.

    Parameters
    ----------
    path : str or path
        The file, or a generator such as ``"gen:poisson2d:64x64"``.
    dtype : dtype
        The number type: ``float32``, ``float64``, ``complex64`` or ``complex128``.

    Returns
    -------
    A : scipy.sparse.csr_array or Csr
        SciPy's class if SciPy is installed, else the three arrays with a shape.

    Examples
    --------
    >>> import lacuna_sparse as la
    >>> la.read("gen:poisson2d:8x8").shape
    (64, 64)
    """
    made = _core.Matrix.read(os.fspath(path), type_char(np.dtype(dtype)))
    indptr, indices, data = made.arrays()
    try:
        from scipy.sparse import csr_array
    except ImportError:
        return Csr(data, indices, indptr, made.shape)
    return csr_array((data, indices, indptr), shape=made.shape)


def write(path: Union[str, "os.PathLike[str]"], A: Any) -> None:
    """Writes a matrix to a file, whose form its name says: ``.mtx``, ``.npz`` or ``.petsc``, with ``.gz`` compressed."""
    operand = Operand(A)
    operand.matrix(type_char(operand.dtype)).write(os.fspath(path))
