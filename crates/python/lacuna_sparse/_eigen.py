"""Eigenvalues and singular values: `eigen`, and the functions of ``scipy.sparse.linalg``.

What differs from SciPy: a result is returned only if residuals, orthogonality and completeness were checked from the matrices and the
vectors; `tol` is relative to each value; ``which="SM"`` needs no `sigma`; matrices must be stored, operators are refused.
"""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Type, Union

import numpy as np
from numpy.typing import NDArray

from . import _core
from ._operand import Operand, on_host, type_char

_Array = NDArray[Any]
#: A matrix and its adjoint may differ by so many units of rounding of the largest entry.
HERMITIAN = 64
#: The most columns that a block has beside those that are sought.
SPARE = 6


class EigenResult(NamedTuple):
    """What `eigen` found.

    Attributes
    ----------
    values : ndarray
        The eigenvalues, those that were sought first.
    vectors : ndarray
        The eigenvectors as columns.
    converged : bool
        Whether all pairs meet the tolerance, the vectors are orthonormal, and no value is known to be missing.
    reason, complete : str
        How the search ended, and how completeness was checked.
    residuals : ndarray
        The residual of each pair, in twice the working precision.
    met : ndarray
        Which pairs meet their tolerance.
    iterations, products : int
        The work.
    history : ndarray
        The largest residual over its tolerance, for each iteration or cycle.
    said : list of str
        What was chosen and why, and what is worth knowing.
    """

    values: _Array
    vectors: _Array
    converged: bool
    reason: str
    complete: str
    residuals: _Array
    met: _Array
    iterations: int
    products: int
    history: _Array
    said: List[str]

    def __repr__(self) -> str:
        first, last = (f"{pick(self.values):.6g}" for pick in (min, max))
        found = f"the value {first}" if len(self.values) == 1 else f"{len(self.values)} values from {first} to {last}"
        return (
            f"<EigenResult: {self.reason}, {found}, {int(self.met.sum())} of {len(self.met)} converged, n = {len(self.vectors)}, "
            f"{self.iterations} iterations>"
        )


class EigenNotConverged(RuntimeError):
    """Raised by the functions named as in SciPy where the search did not converge.

    If SciPy is loaded, ``except scipy.sparse.linalg.ArpackNoConvergence`` catches it too. It pickles, so that workers of
    `multiprocessing` may raise it.

    Attributes
    ----------
    eigenvalues, eigenvectors : ndarray
        The pairs that meet the tolerance; of `svds` the singular values and the right vectors.
    outcome : dict
        How it ended: `reason`, `complete`, `residuals` and more.
    """

    eigenvalues: _Array
    eigenvectors: _Array
    outcome: Dict[str, Any]

    def __init__(self, values: _Array, vectors: _Array, outcome: Dict[str, Any]) -> None:
        met = np.asarray(outcome["met"], dtype=bool)
        # A class of SciPy's may stand between this one and RuntimeError, with other arguments.
        RuntimeError.__init__(self, f"{outcome['reason']}, {outcome['complete']}: {int(met.sum())} of {len(met)} converged")
        self.eigenvalues = values[met]
        self.eigenvectors = vectors[:, met]
        self.outcome = outcome

    def __reduce__(self) -> Any:
        return _unpickled, self.args, self.__dict__


def _raised() -> Type[EigenNotConverged]:
    """The class to raise: of SciPy's as well, if SciPy is loaded; nobody else can ask for that."""
    if "scipy" not in sys.modules:
        return EigenNotConverged
    try:
        from scipy.sparse.linalg import ArpackNoConvergence
    except ImportError:
        return EigenNotConverged
    return _of_both(ArpackNoConvergence)


@lru_cache(maxsize=None)
def _of_both(theirs: Type[Exception]) -> Type[EigenNotConverged]:
    described = {"__doc__": EigenNotConverged.__doc__, "__module__": EigenNotConverged.__module__}
    return type("EigenNotConverged", (EigenNotConverged, theirs), described)


def _unpickled(*args: str) -> EigenNotConverged:
    kind = _raised()
    return kind.__new__(kind, *args)


def _matrix(A: Any, what: str, char: Optional[str] = None) -> Tuple[_core.Matrix, str, Tuple[int, int]]:
    operand = Operand(A)
    if not operand.is_matrix:
        raise TypeError(f"{what}: expected a stored matrix, got an operator; its factors and its preconditioner need the entries")
    char = type_char(operand.dtype) if char is None else char
    return operand.matrix(char), char, operand.shape


def _hermitian(A: Any) -> Any:
    """The Hermitian part of a matrix that is Hermitian but for rounding; any other matrix as it is."""
    inner: Any = getattr(A, "A", None) if hasattr(A, "matvec") and not hasattr(A, "tocsr") else A
    matrix: Any = inner.tocsr() if hasattr(inner, "tocsr") else inner
    if not (hasattr(matrix, "conj") and hasattr(matrix, "max")) or matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or 0 in matrix.shape:
        return A
    mirrored = matrix.conj().T
    off = abs(matrix - mirrored).max()
    rounding = HERMITIAN * np.finfo(np.result_type(matrix.dtype, np.float32)).eps * abs(matrix).max()
    return (matrix + mirrored) / 2 if 0 < off <= rounding else A


def _square(A: Any, mass: Any, hermitian: bool = True) -> Tuple[_core.Matrix, Optional[_core.Matrix], str, int]:
    if hermitian:
        A, mass = _hermitian(A), None if mass is None else _hermitian(mass)
    if mass is None:
        matrix, char, (n, columns) = _matrix(A, "A")
        other = None
    else:
        char = type_char(Operand(A).dtype, Operand(mass).dtype)
        matrix, _, (n, columns) = _matrix(A, "A", char)
        other = _matrix(mass, "M", char)[0]
    if n != columns:
        raise ValueError(f"A: expected a square matrix, got the shape {(n, columns)}")
    return matrix, other, char, n


def _count(k: Any, n: int, what: str = "k") -> int:
    """How many values are sought: no more than there are."""
    if not (isinstance(k, (int, np.integer)) and 0 < k <= n):
        raise ValueError(f"{what}: expected an integer from 1 to {n}, got {k!r}")
    return int(k)


def _whole(value: Any, what: str) -> Optional[int]:
    """A whole number from 0, or none."""
    if value is not None and not (isinstance(value, (int, np.integer)) and value >= 0):
        raise ValueError(f"{what}: expected a whole number from 0, got {value!r}")
    return value if value is None else int(value)


def _start(v0: Any, n: int, char: str) -> Optional[_Array]:
    """Vectors to begin with, as the columns of an array or one by itself, one after the other."""
    if v0 is None:
        return None
    on_host(v0, "v0")
    array = np.asarray(v0)
    if array.ndim not in (1, 2) or array.shape[0] != n:
        raise ValueError(f"v0: expected {n} rows, got the shape {array.shape}")
    return np.ascontiguousarray(array.reshape(n, -1).T, dtype=char).reshape(-1)


def _found(
    what: str, matrix: _core.Matrix, char: str, n: int, *, count: int, which: str, sigma: complex = 0.0,
    mass: Optional[_core.Matrix] = None, method: str = "auto", preconditioner: str = "auto", rtol: Optional[float] = None,
    max_iters: Optional[int] = None, complete: str = "auto", seed: int = 0, start: Any = None, device: Optional[str] = None,
    threads: Optional[int] = None,
) -> Tuple[_Array, _Array, Dict[str, Any]]:  # fmt: skip
    of_start = "D" if what == "general" else char
    found = _core.spectrum(
        what, matrix, int(count), which, (complex(sigma).real, complex(sigma).imag), mass, method, preconditioner, rtol, max_iters, complete, int(seed),
        _start(start, n, of_start), of_start, device, threads,
    )  # fmt: skip
    values = found.pop("values")
    if what != "general":
        values = values.real.copy()
    vectors = found.pop("vectors").reshape(len(values), -1).T
    return values, vectors, found


def eigen(
    A: Any, count: int = 6, *, which: str = "smallest", near: Optional[float] = None, mass: Any = None, method: str = "auto",
    preconditioner: str = "auto", rtol: Optional[float] = None, max_iters: Optional[int] = None, complete: str = "auto",
    seed: int = 0, start: Any = None, device: Optional[str] = None, threads: Optional[int] = None,
) -> EigenResult:  # fmt: skip
    """Some eigenvalues of ``A x = λ x``, or of ``A x = λ B x``, for Hermitian matrices, and none of them missed.

    Parameters
    ----------
    A : sparse matrix, ndarray
        A Hermitian matrix.
    count : int
        How many, from 1 to the rows of `A`.
    which : {"smallest", "largest"}
        Which ones: the most negative, or the most positive.
    near : float, optional
        Those nearest to this number instead, by factors of ``A − near B``; `which` is not used then.
    mass : sparse matrix, ndarray, optional
        The mass matrix ``B``: Hermitian and positive definite.
    method : {"auto", "lobpcg", "lanczos", "dense"}
        ``"lobpcg"`` finds the smallest or the largest with a preconditioner. ``"lanczos"`` finds the largest by products, and those near
        a number and the smallest by factors. ``"dense"`` computes all of a matrix with at most 5000 rows. ``"auto"`` takes ``"dense"`` up to
        500 rows, for the smallest ``"lanczos"`` where factors are cheap, else ``"lobpcg"``, and ``"lanczos"`` for the others.
    preconditioner : str
        That of ``"lobpcg"``, by name; `preconditioners` lists them. ``"auto"`` takes ``"amg"`` for the smallest of a matrix with a positive
        diagonal, and none otherwise.
    rtol : float, optional
        The tolerance relative to a value: 1e-8, or 1e-4 in single precision.
    max_iters : int, optional
        Iterations at most, or products of Lanczos' method: 10 000 by default.
    complete : {"auto", "counted", "probed", "off"}
        How to make sure that none is missing: by the signs of the pivots of a factorisation, by a second search from other vectors, or
        not at all. ``"auto"`` counts where factors are cheap, and probes otherwise.
    seed : int
        That of the vectors to begin with, from 0 to 999.
    start : ndarray, optional
        Vectors to begin with, as columns, such as those of a matrix that is near.
    device : str, optional
        Where to compute, as for `Solver`.
    threads : int, optional
        Threads of the CPU, as for `Solver`.

    Returns
    -------
    EigenResult
        Whatever the outcome: see `EigenResult.converged`.

    Examples
    --------
    >>> import lacuna_sparse as la
    >>> found = la.eigen(la.read("gen:poisson2d:30x30"), 3)
    >>> found.converged, bool(abs(found.values[1] - found.values[2]) < 1e-9)
    (True, True)
    """
    matrix, other, char, n = _square(A, mass)
    count = _count(count, n, "count")
    if near is not None:
        which = "near"
    values, vectors, found = _found(
        "eigen", matrix, char, n, count=count, which=which, sigma=near or 0.0, mass=other, method=method,
        preconditioner=preconditioner, rtol=rtol, max_iters=_whole(max_iters, "max_iters"), complete=complete,
        seed=_whole(seed, "seed") or 0, start=start, device=device,
        threads=threads,
    )  # fmt: skip
    return EigenResult(
        values, vectors, found["converged"], found["reason"], found["complete"], np.array(found["residuals"]),
        np.array(found["met"], dtype=bool), found["iterations"], found["products"], np.array(found["history"]), found["said"],
    )  # fmt: skip


def _tolerance(tol: Any) -> Optional[float]:
    """SciPy's 0 asks for what is possible; the default here is 1e-8."""
    return float(tol) if tol else None


def _refuse(**given: Any) -> None:
    for name, value in given.items():
        if value is not None:
            raise NotImplementedError(f"{name}: matrices are factored here, and an operator in their place is not taken")


def _checked(values: _Array, vectors: _Array, found: Dict[str, Any]) -> None:
    if not found["converged"]:
        raise _raised()(values, vectors, found)


def eigsh(
    A: Any, k: int = 6, M: Any = None, sigma: Optional[float] = None, which: str = "LM", v0: Any = None, ncv: Optional[int] = None,
    maxiter: Optional[int] = None, tol: float = 0, return_eigenvectors: bool = True, Minv: Any = None, OPinv: Any = None,
    mode: str = "normal", rng: Any = None,
) -> Union[_Array, Tuple[_Array, _Array]]:  # fmt: skip
    """Eigenvalues of a Hermitian matrix, with the arguments of ``scipy.sparse.linalg.eigsh``.

    Parameters
    ----------
    A : sparse matrix, ndarray
        A Hermitian matrix.
    k : int
        How many, from 1 to the rows of `A`.
    M : sparse matrix, ndarray, optional
        The mass matrix: Hermitian and positive definite.
    sigma : float, optional
        Those nearest to this number: `which` is about ``1 / (w - sigma)`` then, so that ``"LA"`` are the nearest above it, ``"SA"`` the
        nearest below it, ``"SM"`` the farthest.
    which : {"LM", "SM", "LA", "SA", "BE"}
        Largest or smallest modulus, largest, smallest, or half from each end.
    v0 : array_like, optional
        A vector to begin with.
    maxiter : int, optional
        Iterations or products at most.
    tol : float
        Relative to each value; 0 is 1e-8.
    return_eigenvectors : bool
        Whether to return the vectors too.
    ncv, rng, mode : optional
        Accepted; the size of the basis, and the vectors to begin with, are chosen here. `mode` must be ``"normal"``.

    Returns
    -------
    w : ndarray
        The eigenvalues, in increasing order. Without `v`, in the order of SciPy: by increasing modulus for ``"LM"``, by decreasing
        modulus for ``"SM"``, in decreasing order for ``"SA"``, in increasing order for ``"LA"`` and ``"BE"``. With `sigma` this is the order
        of ``1 / (w - sigma)`` for a complex matrix; for a real one, `w` increases.
    v : ndarray
        The eigenvectors, as columns.

    Raises
    ------
    EigenNotConverged
        If not all pairs converged, or a value is known to be missing.

    Examples
    --------
    >>> import lacuna_sparse as la
    >>> w, v = la.eigsh(la.read("gen:poisson2d:30x30"), 2, which="SA")
    >>> w.round(4)
    array([0.0205, 0.0512])
    """
    _refuse(Minv=Minv, OPinv=OPinv)
    if mode != "normal":
        raise NotImplementedError(f"mode: expected 'normal', got {mode!r}")
    matrix, mass, char, n = _square(A, M)
    k = _count(k, n)
    common: Dict[str, Any] = {"mass": mass, "rtol": _tolerance(tol), "max_iters": _whole(maxiter, "maxiter"), "start": v0}

    def part(count: int, of: str, at: float = 0.0) -> Tuple[_Array, _Array]:
        values, vectors, found = _found("eigen", matrix, char, n, count=count, which=of, sigma=at, **common)
        _checked(values, vectors, found)
        return values, vectors

    def ends(counts: Tuple[int, int]) -> Tuple[_Array, _Array]:
        """So many of the largest and of the smallest, each once."""
        parts = [part(min(count, n), of) for count, of in zip(counts, ("largest", "smallest")) if count]
        values, vectors = np.concatenate([w for w, _ in parts]), np.concatenate([v for _, v in parts], axis=1)
        if len(parts) == 2:
            least = parts[0][0].min()
            fresh = np.concatenate([np.ones(len(parts[0][0]), bool), parts[1][0] < least - 1e-9 * abs(least)])
            values, vectors = values[fresh], vectors[:, fresh]
        return values, vectors

    def beside(at: float, above: int, below: int) -> Tuple[_Array, _Array]:
        """So many nearest above and below a number; where there are fewer, the farthest on its other side."""
        count = min(n, max(k, 1))
        while True:
            values, vectors = part(count, "near", at)
            found = (int((values > at).sum()), int((values <= at).sum()))
            if count == n or (found[0] >= above and found[1] >= below):
                break
            count = min(n, 2 * count)
        # By 1 / (w - sigma): the largest, and the smallest.
        order = np.argsort(1 / np.where(values == at, -np.finfo(float).tiny, values - at), kind="stable")
        chosen = np.concatenate([order[:below], order[len(order) - above :]])
        return values[chosen], vectors[:, chosen]

    if which not in ("LM", "SM", "LA", "SA", "BE"):
        raise ValueError(f"which: expected LM, SM, LA, SA or BE, got {which!r}")
    if sigma is not None:
        at = float(sigma)
        if which == "LM":
            values, vectors = part(k, "near", at)
        elif which == "SM":
            values, vectors = ends((k, k))
            order = np.argsort(-np.abs(values - at), kind="stable")[:k]
            values, vectors = values[order], vectors[:, order]
        else:
            values, vectors = beside(at, *{"LA": (k, 0), "SA": (0, k), "BE": (k - k // 2, k // 2)}[which])
    elif which == "SA":
        values, vectors = part(k, "smallest")
    elif which == "LA":
        values, vectors = part(k, "largest")
    elif which == "SM":
        values, vectors = part(k, "near", 0.0)
    elif which == "BE":
        values, vectors = ends((k - k // 2, k // 2))
    else:
        values, vectors = ends((k, k))
        order = np.argsort(-np.abs(values), kind="stable")[:k]
        values, vectors = values[order], vectors[:, order]
    order = np.argsort(values, kind="stable")
    values, vectors = values[order], vectors[:, order]
    if return_eigenvectors:
        return values, vectors
    return values if k == n else values[_order(values, which, sigma, char)]


def _order(values: _Array, which: str, sigma: Optional[float], char: str) -> _Array:
    """The order in which ARPACK returns values without vectors: those that were sought first are the last ones."""
    key = values
    if sigma is not None:
        if char in "fd":
            return np.arange(len(values))
        key = 1 / np.where(values == sigma, -np.finfo(float).tiny, values - sigma)
    by = {"LM": np.abs(key), "SM": -np.abs(key), "SA": -key}.get(which, key)
    return np.argsort(by, kind="stable")


def eigs(
    A: Any, k: int = 6, M: Any = None, sigma: Optional[complex] = None, which: str = "LM", v0: Any = None, ncv: Optional[int] = None,
    maxiter: Optional[int] = None, tol: float = 0, return_eigenvectors: bool = True, Minv: Any = None, OPinv: Any = None,
    OPpart: Any = None, rng: Any = None,
) -> Union[_Array, Tuple[_Array, _Array]]:  # fmt: skip
    """Eigenvalues of a square matrix, with the arguments of ``scipy.sparse.linalg.eigs``: computed in complex double precision.

    Parameters
    ----------
    A : sparse matrix, ndarray
        A square matrix.
    k : int
        How many, from 1 to the rows of `A`.
    sigma : complex, optional
        Those nearest to this number; only with ``which="LM"``.
    which : {"LM", "LR", "SR", "SM"}
        Largest modulus, largest or smallest real part, nearest to 0.
    M, OPpart : optional
        Not taken.
    v0, ncv, maxiter, tol, return_eigenvectors, rng : optional
        As for `eigsh`.

    Returns
    -------
    w, v : ndarray
        The eigenvalues, those that come first by `which` first, and the eigenvectors as columns.

    Examples
    --------
    >>> import lacuna_sparse as la
    >>> A = la.read("gen:convection:20x20")
    >>> w, v = la.eigs(A, 3, which="LR")
    >>> bool(w[0].real >= w[1].real)
    True
    """
    _refuse(Minv=Minv, OPinv=OPinv, OPpart=OPpart)
    if M is not None:
        raise NotImplementedError("M: a mass matrix is taken for Hermitian matrices, by eigsh")
    matrix, _, char, n = _square(A, None, hermitian=False)
    k = _count(k, n)
    parts = {"LM": "modulus", "LR": "rightmost", "SR": "leftmost", "SM": "near"}
    if which not in parts:
        raise ValueError(f"which: expected one of {', '.join(parts)}, got {which!r}")
    if sigma is not None and which != "LM":
        raise NotImplementedError(f"which: expected 'LM' with sigma, got {which!r}")
    values, vectors, found = _found(
        "general", matrix, char, n, count=k, which=parts[which] if sigma is None else "near", sigma=sigma or 0.0,
        rtol=_tolerance(tol), max_iters=_whole(maxiter, "maxiter"), start=v0,
    )  # fmt: skip
    _checked(values, vectors, found)
    return (values, vectors) if return_eigenvectors else values


def svds(
    A: Any, k: int = 6, ncv: Optional[int] = None, tol: float = 0, which: str = "LM", v0: Any = None, maxiter: Optional[int] = None,
    return_singular_vectors: Union[bool, str] = True, solver: Optional[str] = None, rng: Any = None, options: Any = None,
) -> Union[_Array, Tuple[Optional[_Array], _Array, Optional[_Array]]]:  # fmt: skip
    """Singular values of a matrix of any shape, with the arguments of ``scipy.sparse.linalg.svds``.

    Parameters
    ----------
    A : sparse matrix, ndarray
        The matrix.
    k : int
        How many, from 1 to the shorter side of `A`.
    which : {"LM", "SM"}
        The largest, of any matrix; the smallest, of a square matrix or a small one.
    tol : float
        Relative to each value; 0 is 1e-8.
    maxiter : int, optional
        Products at most.
    return_singular_vectors : bool or {"u", "vh"}
        Which vectors to return.
    solver : {"arpack", "lobpcg", "propack"}, optional
        Accepted; each is the method of this package.
    ncv, v0, rng, options : optional
        Accepted; all this is chosen here.

    Returns
    -------
    u, s, vh : ndarray
        The left vectors as columns, the values in increasing order, the conjugated right vectors as rows.

    Raises
    ------
    TypeError
        For an operator: matrices must be stored.
    ValueError
        For ``which="SM"`` of a matrix that is not square, unless its shorter side has at most 300 rows or columns and the longer one
        2000, and of a structurally singular one; for a `which`, a `solver` or a `return_singular_vectors` that is not listed above; for a `k`, a `tol`
        or a `maxiter` out of range.
    EigenNotConverged
        If not all triplets converged, or a value is known to be missing.

    Examples
    --------
    >>> import lacuna_sparse as la
    >>> A = la.read("gen:convection:20x20")
    >>> u, s, vh = la.svds(A, 2)
    >>> bool(abs(A.toarray() @ vh[1].conj() - s[1] * u[:, 1]).max() < 1e-8)
    True
    """
    if which not in ("LM", "SM"):
        raise ValueError(f"which: expected LM or SM, got {which!r}")
    if return_singular_vectors not in (True, False, "u", "vh"):
        raise ValueError(f"return_singular_vectors: expected True, False, 'u' or 'vh', got {return_singular_vectors!r}")
    if solver not in (None, "arpack", "lobpcg", "propack"):
        raise ValueError(f"solver: expected arpack, lobpcg or propack, each of which is ours, got {solver!r}")
    for name, value in (("tol", tol), ("maxiter", maxiter)):
        if value is not None and not isinstance(value, (int, float, np.integer, np.floating)):
            raise TypeError(f"{name}: expected a number, got {value!r}")
    if not 0 <= tol < np.inf:
        raise ValueError(f"tol: expected a number from 0 on, got {tol!r}")
    if maxiter is not None and not (isinstance(maxiter, (int, np.integer)) and maxiter > 0):
        raise ValueError(f"maxiter: expected a positive integer, got {maxiter!r}")
    matrix, char, (rows, columns) = _matrix(A, "A")
    k = _count(k, min(rows, columns))
    values, right, found = _found(
        "svd", matrix, char, rows, count=k, which="largest" if which == "LM" else "smallest", rtol=_tolerance(tol),
        max_iters=maxiter,
    )  # fmt: skip
    _checked(values, right, found)
    if return_singular_vectors is False:
        return np.sort(values)
    order = np.argsort(values, kind="stable")
    u = found["left"].reshape(len(values), -1).T[:, order]
    vh = right[:, order].conj().T
    wanted = return_singular_vectors
    return (None if wanted == "vh" else u, values[order], None if wanted == "u" else vh)


def lobpcg(
    A: Any, X: Any, B: Any = None, M: Any = None, Y: Any = None, tol: Optional[float] = None, maxiter: Optional[int] = None,
    largest: bool = True, verbosityLevel: int = 0, retLambdaHistory: bool = False, retResidualNormsHistory: bool = False,
    restartControl: int = 20,
) -> Tuple[_Array, _Array]:  # fmt: skip
    """Eigenvalues at one end of the spectrum by LOBPCG, with arguments of ``scipy.sparse.linalg.lobpcg``.

    Parameters
    ----------
    A, B : sparse matrix, ndarray
        Hermitian matrices; `B` positive definite.
    X : ndarray
        Vectors to begin with, as columns: as many as are sought.
    M : str, optional
        The name of a preconditioner, as ``"amg"``; none by default.
    tol : float, optional
        Relative to each value: 1e-8 by default.
    maxiter : int, optional
        Iterations at most.
    largest : bool
        Whether the largest are sought.
    verbosityLevel, restartControl : int
        Accepted; nothing is printed.
    Y, retLambdaHistory, retResidualNormsHistory : optional
        Not taken.

    Returns
    -------
    w, v : ndarray
        The eigenvalues, those that were sought first, and the eigenvectors as columns.

    Examples
    --------
    >>> import numpy as np
    >>> import lacuna_sparse as la
    >>> X = np.random.default_rng(0).standard_normal((900, 2))
    >>> la.lobpcg(la.read("gen:poisson2d:30x30"), X, M="amg", largest=False)[0].round(4)
    array([0.0205, 0.0512])
    """
    if Y is not None:
        raise NotImplementedError("Y: constraints are not taken")
    if retLambdaHistory or retResidualNormsHistory:
        raise NotImplementedError("histories of lobpcg are not kept; eigen returns the largest residual of each iteration")
    if M is not None and not isinstance(M, str):
        raise NotImplementedError("M: expected the name of a preconditioner, as 'amg'")
    matrix, mass, char, n = _square(A, B)
    count = np.shape(X)[1] if np.ndim(X) == 2 else 1
    # Where a block would be a large part of the space, everything is computed.
    method = "lobpcg" if 3 * (count + SPARE) <= n else "dense"
    values, vectors, found = _found(
        "eigen", matrix, char, n, count=count, which="largest" if largest else "smallest", mass=mass, method=method,
        preconditioner="none" if M is None else M, rtol=tol, max_iters=_whole(maxiter, "maxiter"), start=X,
    )  # fmt: skip
    _checked(values, vectors, found)
    return values, vectors
