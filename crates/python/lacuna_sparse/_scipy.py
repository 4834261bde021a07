"""The functions of ``scipy.sparse.linalg``, with the same arguments, results and meaning of `info`.

What differs: `info` is 0 only if ``‖b − A x‖ ≤ max(rtol ‖b‖, atol)`` holds for the `x` that is returned, whatever the
preconditioner; a negative `info` says why a method failed, see `Reason`; `M` may be a name, as ``"amg"``.
"""

from __future__ import annotations

import math
import warnings
from typing import Any, Callable, Optional, Tuple

import numpy as np
from numpy.typing import NDArray

from . import _core
from ._operand import Operand, guess, not_sparse, on_host, type_char, vector
from ._preconditioner import preconditioner_of, settings
from ._solver import solve

_Array = NDArray[Any]
_Result = Tuple[_Array, int]
_Callback = Optional[Callable[[Any], Any]]

#: The residual may grow by this factor: SciPy's methods have no such bound.
_DIVERGED = 1e150
#: For no more iterations than this the matrix stays in CSR: choosing another format costs as much as many products.
_FEW = 20


def _tolerances(rtol: Any, atol: Any) -> Tuple[float, float]:
    for name, value in (("rtol", rtol), ("atol", atol)):
        if value is None or isinstance(value, str) or not value >= 0:
            raise ValueError(f"{name}: expected a number of at least 0, got {value!r}")
    return float(rtol), float(atol)


def _right_hand_side(A: Operand, b: Any, rows: int) -> Tuple[str, _Array]:
    """The number type of a solve, and `b` in it."""
    on_host(b, "b")
    given = vector(b, rows, "b", of_A=A.shape)
    of_b = given.dtype if given.dtype.kind in "fc" else np.dtype("d")
    char = type_char(A.dtype, of_b)
    return char, given.astype(char, copy=False)


def _start(x0: Any, M: Any, b: _Array, n: int, char: str) -> _Array:
    if isinstance(x0, str):
        if x0 != "Mb":
            raise ValueError(f"x0: expected an array or 'Mb', got {x0!r}")
        if M is None or isinstance(M, str):
            return guess(b, n, char)
        return guess(M.matvec(b) if hasattr(M, "matvec") else M @ b, n, char)
    return guess(x0, n, char)


def _info(report: _core.Report) -> int:
    """SciPy's: 0, the iterations if these were too few, or the negative code of a reason."""
    if report.code <= 0:
        return report.code
    return max(report.iterations, 1)


def _solve(
    method: str,
    A: Any,
    b: Any,
    x0: Any,
    rtol: Any,
    atol: Any,
    maxiter: Optional[int],
    M: Any,
    callback: _Callback,
    *,
    per_unknown: int = 10,
    residuals: bool = False,
    **more: Any,
) -> _Result:
    rtol, atol = _tolerances(rtol, atol)
    operand = Operand(A)
    n, columns = operand.shape
    if n != columns:
        raise ValueError(f"A: expected a square matrix, got the shape {operand.shape}")
    char, given = _right_hand_side(operand, b, n)
    x = _start(x0, M, given, n, char)
    name, m = preconditioner_of(M, n, char)
    limit = per_unknown * n if maxiter is None else int(maxiter)
    text = settings(
        method=method, preconditioner=name, rtol=rtol, atol=atol, max_iters=limit, dtol=_DIVERGED, strict=True,
        format="csr" if operand.is_matrix and limit <= _FEW else None, **more,
    )  # fmt: skip
    system = _core.System(operand.given(char), text, m, None, None, callback, residuals)
    return x, _info(system.solve(given, x))


def cg(
    A: Any, b: Any, x0: Any = None, *, rtol: float = 1e-5, atol: float = 0.0, maxiter: Optional[int] = None, M: Any = None,
    callback: _Callback = None,
) -> _Result:  # fmt: skip
    """Conjugate gradients, for a Hermitian positive definite matrix.

    Parameters
    ----------
    A : sparse matrix, ndarray, LinearOperator
        The matrix or operator.
    b : array_like
        The right-hand side, of shape (n,) or (n, 1).
    x0 : array_like, optional
        The guess; ``"Mb"`` is ``M b``.
    rtol, atol : float
        Solved when ``‖b − A x‖ ≤ max(rtol ‖b‖, atol)``.
    maxiter : int, optional
        Iterations at most; ten for each unknown by default.
    M : str, Preconditioner, sparse matrix, ndarray, LinearOperator, optional
        A preconditioner ``M ≈ A⁻¹``, or its name.
    callback : callable, optional
        Called as ``callback(xk)`` after each iteration; returning True ends the solve.

    Returns
    -------
    x : ndarray
        The solution, or the best vector that was found.
    info : int
        0 if it is solved; the number of iterations if these were too few or nothing more was gained; negative if the method
        failed: ``Reason(info)`` says why.

    Examples
    --------
    >>> import numpy as np
    >>> import lacuna_sparse as la
    >>> x, info = la.cg(np.array([[4.0, 1.0], [1.0, 3.0]]), [1.0, 2.0])
    >>> info
    0
    """
    return _solve("cg", A, b, x0, rtol, atol, maxiter, M, callback)


def bicg(
    A: Any, b: Any, x0: Any = None, *, rtol: float = 1e-5, atol: float = 0.0, maxiter: Optional[int] = None, M: Any = None,
    callback: _Callback = None,
) -> _Result:  # fmt: skip
    """Biconjugate gradients, for any square matrix; needs products with ``Aᴴ`` and ``Mᴴ``. Arguments and results as for `cg`."""
    return _solve("bicg", A, b, x0, rtol, atol, maxiter, M, callback)


def bicgstab(
    A: Any, b: Any, x0: Any = None, *, rtol: float = 1e-5, atol: float = 0.0, maxiter: Optional[int] = None, M: Any = None,
    callback: _Callback = None,
) -> _Result:  # fmt: skip
    """Stabilised biconjugate gradients, for any square matrix. Arguments and results as for `cg`."""
    return _solve("bicgstab", A, b, x0, rtol, atol, maxiter, M, callback)


def cgs(
    A: Any, b: Any, x0: Any = None, *, rtol: float = 1e-5, atol: float = 0.0, maxiter: Optional[int] = None, M: Any = None,
    callback: _Callback = None,
) -> _Result:  # fmt: skip
    """Conjugate gradients squared, for any square matrix. Arguments and results as for `cg`."""
    return _solve("cgs", A, b, x0, rtol, atol, maxiter, M, callback)


def gmres(
    A: Any, b: Any, x0: Any = None, *, rtol: float = 1e-5, atol: float = 0.0, restart: Optional[int] = None,
    maxiter: Optional[int] = None, M: Any = None, callback: _Callback = None, callback_type: Optional[str] = None,
) -> _Result:  # fmt: skip
    """GMRES, restarted, for any square matrix. Arguments and results as for `cg`, and:

    Parameters
    ----------
    restart : int, optional
        Iterations of a cycle: at most 20 by default.
    maxiter : int, optional
        Cycles at most; iterations with a callback of the type ``"legacy"``.
    callback : callable, optional
        Called with the relative residual ``‖b − A x‖ / ‖b‖`` after each iteration, or with `x` after each cycle.
    callback_type : {"x", "pr_norm", "legacy"}
        ``"x"`` for the second, the others for the first.

    Notes
    -----
    The preconditioner is applied from the right, so that the residual in the callback is that of the system. SciPy applies it from the
    left, and its callback gets the residual of the preconditioned system.
    """
    if callback is not None and callback_type is None:
        warnings.warn(
            "lacuna_sparse.gmres called without specifying `callback_type`: the residual of each iteration is shown",
            DeprecationWarning,
            stacklevel=2,
        )
    kind = "legacy" if callback_type is None else callback_type
    if kind not in ("x", "pr_norm", "legacy"):
        raise ValueError(f"callback_type: expected 'x', 'pr_norm' or 'legacy', got {callback_type!r}")
    shape = np.shape(b)
    n = shape[0] if shape else 1
    cycle = min(restart or 20, max(n, 1))
    limit = 10 * n if maxiter is None else int(maxiter)
    per_iteration = callback is not None and kind == "legacy"
    shown = callback
    if callback is not None and kind != "x":
        given = callback

        def shown(residual: float) -> Any:
            return given(np.float64(residual))

    x, info = _solve(
        "gmres", A, b, x0, rtol, atol, limit if per_iteration else limit * cycle, M, shown, residuals=kind != "x", restart=cycle
    )
    if info > 0 and not per_iteration:
        info = max(limit, 1)
    return x, info


def minres(
    A: Any, b: Any, x0: Any = None, *, rtol: float = 1e-5, shift: float = 0.0, maxiter: Optional[int] = None, M: Any = None,
    callback: _Callback = None, show: bool = False, check: bool = False,
) -> _Result:  # fmt: skip
    """MINRES, for a Hermitian matrix, which need not be definite. Arguments and results as for `cg`, and:

    Parameters
    ----------
    shift : float
        Solves ``(A − shift I) x = b``.
    show : bool
        Whether to print how it ended.
    check : bool
        Whether to raise ValueError for a matrix that is not Hermitian up to rounding; an operator is not checked.
    """
    if check:
        operand = Operand(A)
        if operand.is_matrix and operand.matrix(type_char(operand.dtype)).structure()["asymmetry"] is None:
            raise ValueError("A: expected a Hermitian matrix, got a non-symmetric matrix")
    by = float(shift) if shift else None
    x, info = _solve("minres", A, b, x0, rtol, 0.0, maxiter, M, callback, per_unknown=5, shift=by)
    if show:
        print(f"minres: {'converged' if info == 0 else 'not converged'}, info = {info}")
    return x, info


def qmr(
    A: Any, b: Any, x0: Any = None, *, rtol: float = 1e-5, atol: float = 0.0, maxiter: Optional[int] = None, M1: Any = None,
    M2: Any = None, callback: _Callback = None,
) -> _Result:  # fmt: skip
    """Quasi-minimal residuals, for any square matrix; needs products with ``Aᴴ`` and ``Mᴴ``. Arguments and results as for `cg`, and:

    Parameters
    ----------
    M1, M2 : optional
        Preconditioners whose product ``M2 M1 ≈ A⁻¹`` is applied from the right.
    """
    M = (M2, M1) if M1 is not None and M2 is not None else M1 if M2 is None else M2
    return _solve("qmr", A, b, x0, rtol, atol, maxiter, M, callback)


def tfqmr(
    A: Any, b: Any, x0: Any = None, *, rtol: float = 1e-5, atol: float = 0.0, maxiter: Optional[int] = None, M: Any = None,
    callback: _Callback = None, show: bool = False,
) -> _Result:  # fmt: skip
    """Transpose-free quasi-minimal residuals, for any square matrix. Arguments and results as for `cg`, and:

    Parameters
    ----------
    show : bool
        Whether to print how it ended.
    """
    shape = np.shape(b)
    limit = min(10000, 10 * (shape[0] if shape else 1)) if maxiter is None else maxiter
    x, info = _solve("tfqmr", A, b, x0, rtol, atol, limit, M, callback)
    if show:
        print(
            "TFQMR: Linear solve converged due to reach TOL iterations"
            if info == 0
            else "TFQMR: Linear solve not converged due to reach MAXIT iterations"
        )
    return x, info


def spsolve(A: Any, b: Any) -> _Array:
    """``A⁻¹ b`` by a complete factorisation.

    Parameters
    ----------
    A : sparse matrix, ndarray
        The matrix.
    b : array_like
        The right-hand side, or several as the columns of an array.

    Returns
    -------
    x : ndarray
        The solution, whose true residual is at most 1e-8 ``‖b‖``, or 1e-5 ``‖b‖`` in single precision.

    Raises
    ------
    ValueError
        If the matrix is singular: it has no factors, since a pivot is zero. SciPy warns (`MatrixRankWarning`) and returns NaN.
    NotConverged
        If the matrix is so close to a singular one that its factors do not lead to the tolerance. Its `x` is the best vector found.

    Examples
    --------
    >>> import numpy as np
    >>> import lacuna_sparse as la
    >>> la.spsolve(np.array([[4.0, 1.0], [1.0, 3.0]]), np.array([1.0, 2.0])).round(6)
    array([0.090909, 0.636364])
    """
    return solve(A, b, method="direct")


def _least_squares(
    method: str, A: Any, b: Any, damp: float, atol: float, maxiter: Optional[int], x0: Any, variances: bool = False
) -> Tuple[_Array, _core.Report, float, float, _Array]:
    operand = Operand(A)
    rows, columns = operand.shape
    on_host(b, "b")
    not_sparse(b, "b")
    char, given = _right_hand_side(operand, np.atleast_1d(b), rows)
    if np.iscomplexobj(x0):
        char = type_char(char, "F")
        given = given.astype(char, copy=False)
    x = guess(x0, columns, char)
    if maxiter is None:
        maxiter = 2 * columns if method == "lsqr" else min(rows, columns)
    more = {"damp": abs(float(damp))} if damp else {}
    text = settings(
        method=f"{method}:variances=yes" if variances else method, preconditioner="none", rtol=float(atol),
        max_iters=int(maxiter), strict=True, dtol=_DIVERGED, **more,
    )  # fmt: skip
    system = _core.System(operand.given(char), text)
    report = system.solve(given, x)
    var = np.zeros(columns, char)
    # A solve without an iteration estimates nothing.
    if variances and report.iterations:
        system.variances(var)
    return x, report, _core.norm(char, given), _core.norm(char, x), var


def _stopped(report: _core.Report, misfit: float, norm_b: float, btol: float, conlim: float) -> int:
    """SciPy's number of the test that ended a solve of least squares."""
    if norm_b == 0.0 or report.normal_residual == 0.0 and report.iterations == 0:
        return 0
    if report.converged:
        return 1 if misfit <= btol * norm_b else 2
    if conlim > 0 and report.cond_a > conlim:
        return 3
    return 7 if report.reason == "limit" else 5


def lsqr(
    A: Any, b: Any, damp: float = 0.0, atol: float = 1e-6, btol: float = 1e-6, conlim: float = 1e8,
    iter_lim: Optional[int] = None, show: bool = False, calc_var: bool = False, x0: Any = None,
) -> Tuple[_Array, int, int, float, float, float, float, float, float, _Array]:  # fmt: skip
    """Least squares, ``min ‖b − A x‖² + damp² ‖x − x0‖²`` for a guess of zero, by bidiagonalisation; a matrix of any shape.

    Parameters
    ----------
    A : sparse matrix, ndarray, LinearOperator
        The matrix or operator; needs products with ``Aᴴ``.
    b : array_like
        The right-hand side.
    damp : float
        The damping.
    atol : float
        Solved when ``‖Aᴴ (b − A x)‖ ≤ atol ‖Aᴴ b‖``, with the damping as further rows of the matrix.
    btol, conlim : float
        What `istop` tells apart; they do not end the solve.
    iter_lim : int, optional
        Iterations at most; twice the columns by default.
    show : bool
        Whether to print how it ended.
    calc_var : bool
        Whether to estimate `var`.
    x0 : array_like, optional
        The guess.

    Returns
    -------
    x, istop, itn, r1norm, r2norm, anorm, acond, arnorm, xnorm, var :
        As SciPy's. `istop` is 0 if `x` is 0 or the guess, 1 if ``A x = b`` holds to `btol`, 2 for a solution of least squares, 3 if
        the condition number exceeds `conlim`, 5 if no more was gained, 7 if the iterations were too few. `var` is an estimate from
        below of the diagonal of ``(AᴴA + damp² I)⁻¹``, or zero without `calc_var`.
    """
    x, report, norm_b, norm_x, var = _least_squares("lsqr", A, b, damp, atol, iter_lim, x0, bool(calc_var))
    r2norm = 0.0 if norm_b == 0.0 else report.misfit * norm_b
    r1norm = math.sqrt(max(r2norm**2 - (damp * norm_x) ** 2, 0.0))
    istop = _stopped(report, r2norm, norm_b, btol, conlim)
    anorm, acond = _estimates(report)
    arnorm = 0.0 if norm_b == 0.0 else report.normal_residual
    if show:
        print(f"lsqr: istop = {istop}, {report.iterations} iterations, r2norm = {r2norm:.3e}")
    return x, istop, report.iterations, r1norm, r2norm, anorm, acond, arnorm, norm_x, var


def lsmr(
    A: Any, b: Any, damp: float = 0.0, atol: float = 1e-6, btol: float = 1e-6, conlim: float = 1e8,
    maxiter: Optional[int] = None, show: bool = False, x0: Any = None,
) -> Tuple[_Array, int, int, float, float, float, float, float]:  # fmt: skip
    """Least squares as by `lsqr`, with the residual of the normal equations decreasing at every step.

    Parameters
    ----------
    maxiter : int, optional
        Iterations at most; by default as many as the matrix has rows or columns, whichever are fewer.

    Returns
    -------
    x, istop, itn, normr, normar, norma, conda, normx :
        As SciPy's, with the meaning of `istop` as for `lsqr`.
    """
    x, report, norm_b, norm_x, _ = _least_squares("lsmr", A, b, damp, atol, maxiter, x0)
    normr = 0.0 if norm_b == 0.0 else report.misfit * norm_b
    istop = _stopped(report, normr, norm_b, btol, conlim)
    norma, conda = _estimates(report)
    normar = 0.0 if norm_b == 0.0 else report.normal_residual
    if show:
        print(f"lsmr: istop = {istop}, {report.iterations} iterations, normr = {normr:.3e}")
    return x, istop, report.iterations, normr, normar, norma, conda, norm_x


def _estimates(report: _core.Report) -> Tuple[float, float]:
    """Norm and condition number, 0 where nothing was iterated."""
    return tuple(0.0 if math.isnan(found) else found for found in (report.norm_a, report.cond_a))  # type: ignore[return-value]

