"""Systems that are kept, and solved at once."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Literal, Optional, Tuple, Union, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _core
from ._core import Report
from ._gpu import address, incompatible, like, on_gpu, type_of
from ._operand import Operand, functions, guess, not_sparse, type_char, vector
from ._preconditioner import Preconditioner, preconditioner_of, settings
from ._results import NotConverged

_Array = NDArray[Any]


class Solver:
    """A system that is prepared once and solved for many right-hand sides.

    Parameters
    ----------
    A : sparse matrix, ndarray, LinearOperator
        The matrix or operator.
    method : str
        The method with options, as in ``"gmres:restart=50"``; `methods` lists them. ``"auto"`` chooses by the structure of the
        matrix, ``"tune"`` takes what `advise` found to be fastest for that structure.
    preconditioner : str, Preconditioner, sparse matrix, LinearOperator
        A name with options, as in ``"amg:theta=0.04"``; `preconditioners` lists them. ``"auto"`` chooses by the matrix and the method.
        Or ``M ≈ A⁻¹`` itself.
    rtol, atol : float
        Solved when ``‖b − A x‖ ≤ max(rtol ‖b‖, atol)``. `rtol` is 1e-8 by default, 1e-5 in single precision.
    maxiter : int, optional
        Iterations at most: 10 000 by default. None is ten for each row or column, whichever are more, but at least 1000 and at most
        100 000.
    restart : int, optional
        Iterations of a cycle of `gmres` and the methods like it, which store as many vectors; by default as `methods` says. Methods
        without cycles do not use it.
    format : str
        How the matrix is stored for products: ``"csr"``, ``"stencil"``, ``"dia"``, ``"dia-sym"``, ``"ell"``, ``"sell"``, ``"packed"``,
        ``"packed-f32"``, ``"pkt"``, ``"hyb"``, ``"coo"``, ``"bcsr2"`` to ``"bcsr8"``, ``"dense"``. ``"auto"`` takes the one whose product
        is estimated to be fastest, ``"tune"`` the one that is by measurement, which is done once and remembered.
    order : str
        The order of rows and columns within the solver; vectors keep the order of `A`. ``"none"`` leaves them, ``"auto"`` changes them if
        that is likely to gain much, ``"rcm"`` is reverse Cuthill–McKee, ``"length"`` by falling length of rows, ``"parts"`` and
        ``"packets"`` by connected parts of 8192 and of 1024 rows; ``"matching"`` moves rows alone, so that large entries are on the
        diagonal.
    refine : bool
        Mixed precision: corrections in single precision, which moves half the bytes, residuals and `x` in double. As accurate as
        without, as long as the condition number leaves single precision at least one digit. For a stored matrix in double precision.
    strict : bool
        Whether to run the method and the preconditioner that were named, or chosen first, and no other: where they fall short, the
        solve ends, and its report has neither `why` nor `advice`. By default others are tried in place of what was not named.
    device : str, optional
        Where: ``"cpu"``, ``"cuda"``, ``"cuda:1"``, ``"opencl"``, if the build has it: see `devices`. By default the best device there is.
    threads : int, optional
        Threads of the CPU; by default ``LACUNA_NUM_THREADS``, or the cores that the process may use.

    Examples
    --------
    >>> import numpy as np
    >>> import lacuna_sparse as la
    >>> A = la.read("gen:poisson2d:30x30")
    >>> solver = la.Solver(A, "cg", "amg")
    >>> x = solver.solve(np.ones(900))
    >>> solver.report.converged
    True
    """

    def __init__(
        self,
        A: Any,
        method: str = "auto",
        preconditioner: Any = "auto",
        *,
        rtol: Optional[float] = None,
        atol: float = 0.0,
        maxiter: Optional[int] = 10_000,
        restart: Optional[int] = None,
        format: str = "auto",
        order: str = "none",
        refine: bool = False,
        strict: bool = False,
        device: Optional[str] = None,
        threads: Optional[int] = None,
    ) -> None:
        self._keys = dict(
            rtol=rtol, atol=atol, maxiter=maxiter, restart=restart, format=format, order=order, refine=refine,
            strict=bool(strict), device=device, threads=threads,
        )  # fmt: skip
        self._arguments = (A, method, preconditioner)
        self._operand = Operand(A)
        char = type_char(self._operand.dtype)
        self.dtype = np.dtype(char)
        name, m = preconditioner_of(preconditioner, self._operand.shape[1], char)
        text = settings(
            method=method, preconditioner=name, rtol=rtol, atol=float(atol), max_iters=maxiter, restart=restart,
            format=format, order=order, refine=refine, strict=bool(strict),
        )  # fmt: skip
        self._made_of = (text, m)
        self._core = self._prepared(None)
        self.shape = self._core.shape
        self._report: Union[None, Report, List[Report]] = None

    def _prepared(self, callback: Optional[Callable[[_Array], Any]]) -> _core.System:
        text, m = self._made_of
        given = self._operand.given(self.dtype.char)
        return _core.System(given, text, m, self._keys["device"], self._keys["threads"], callback)  # type: ignore[arg-type]

    def solve(
        self,
        b: ArrayLike,
        x0: Optional[ArrayLike] = None,
        *,
        out: Optional[_Array] = None,
        callback: Optional[Callable[[_Array], Any]] = None,
        monitor: Optional[Callable[[int, float], Any]] = None,
    ) -> _Array:
        """Solves for `b`; what came of it is in `report`.

        Parameters
        ----------
        b : array_like
            A right-hand side of shape (n,) or (n, 1), or several as the columns of an array. One right-hand side may be in the memory
            of the GPU that the solver is on (CuPy, PyTorch, anything with ``__cuda_array_interface__`` or ``__dlpack__``): then `x0`
            and `out` are there too, so is the solution, of the same kind, and nothing passes through the host.
        x0 : array_like, optional
            The guess, of the shape of the solution; zeros by default.
        out : ndarray, optional
            A contiguous array of the type of the solver that receives the solution and is returned; for one right-hand side.
        callback : callable, optional
            Called as ``callback(xk)`` with a new array after each iteration, of `gmres` after each cycle; returning True ends the solve.
            For one right-hand side on the host.
        monitor : callable, optional
            Called as ``monitor(iterations, residual)`` some 25 times a second; returning True ends the solve.

        Returns
        -------
        x : ndarray
            The solution, or the best vector that was found: see `report`.
        """
        rows, columns = self.shape
        if on_gpu(b):
            if callback is not None:
                raise TypeError("callback: for arrays on the host; `monitor` is for those on the GPU too")
            on_device: _Array = self._solve_on_gpu(b, x0, out, monitor)
            return on_device
        not_sparse(b, "b")
        if np.ndim(b) == 2 and np.shape(b)[1] != 1:
            if callback is not None:
                raise TypeError("callback: for one right-hand side")
            return self._solve_columns(np.asarray(b), x0)
        given = vector(b, rows, "b", self.dtype.char, self.shape)
        if out is None:
            x = guess(x0, columns, self.dtype.char)
        else:
            if out.shape != (columns,) or out.dtype != self.dtype or not out.flags.c_contiguous:
                raise ValueError(
                    f"out: expected a contiguous array of shape ({columns},) and type {self.dtype}, got {out.shape} and {out.dtype}"
                )
            x = out
            x[:] = 0 if x0 is None else vector(x0, columns, "x0")
        if callback is None:
            self._report = self._core.solve(given, x, monitor)
        elif self._operand.is_matrix:
            self._core.observe(callback)
            try:
                self._report = self._core.solve(given, x, monitor)
            finally:
                self._core.observe(None)
        else:
            self._report = self._prepared(callback).solve(given, x, monitor)
        return x

    def _solve_on_gpu(self, b: Any, x0: Any, out: Any, monitor: Optional[Callable[[int, float], Any]]) -> Any:
        """Solves for arrays in the memory of the GPU; those of the host are refused rather than copied there."""
        rows, columns = self.shape
        char = self.dtype.char
        for array, what in ((x0, "x0"), (out, "out")):
            if array is not None and not on_gpu(array):
                raise TypeError(f"{what}: expected an array in the memory of the GPU, as b is")
        place = address(b, rows, char, "b", of_A=self.shape)
        x = like(b, columns, "b") if out is None else out
        to = address(x, columns, char, "out", written=True)
        if x0 is not None and x0 is not x:
            address(x0, columns, char, "x0")
            x[...] = x0
        self._report = self._core.solve_at(place, to, x, x0 is not None, monitor)
        return x

    def _solve_columns(self, b: _Array, x0: Optional[ArrayLike]) -> _Array:
        rows, columns = self.shape
        if b.shape[0] != rows:
            raise ValueError(f"b: expected {rows} rows, got {b.shape[0]}: {incompatible('b', b.shape, self.shape)}")
        count = b.shape[1]
        x = np.zeros((columns, count), dtype=self.dtype, order="F")
        if x0 is not None:
            if np.shape(x0) != x.shape:
                raise ValueError(f"x0: expected the shape {x.shape}, got {np.shape(x0)}: shapes are incompatible")
            x[...] = x0
        given = np.asfortranarray(b, dtype=self.dtype)
        self._report = self._core.solve_columns(count, given.T.reshape(-1), x.T.reshape(-1))
        return x

    __call__ = solve

    def update_values(self, data: ArrayLike) -> None:
        """Gives the matrix new values on the same pattern, in the order of the ``data`` of the matrix that was given, by compressed rows
        (``A.tocsr().data``)."""
        self._core.update_values(self._operand.values(data, self.dtype))
        # What pickles and copies are made of.
        self._operand.made = None
        arrays = self._operand.arrays
        if arrays is not None:
            values = np.array(data, dtype=self.dtype)
            self._operand.arrays = (arrays[0], arrays[1], values)
            self._arguments = (_WithValues(self._operand, values), *self._arguments[1:])

    def update(self, A: Any) -> None:
        """Gives it a matrix with other values, whose pattern is checked to be the same."""
        other = Operand(A)
        char = self.dtype.char
        before, after = self._operand.matrix(char).arrays(), other.matrix(char).arrays()
        if other.shape != self.shape or not all(np.array_equal(p, q) for p, q in zip(before[:2], after[:2])):
            raise ValueError("A: expected the pattern of the matrix before, got another")
        self._core.update_values(after[2])
        self._operand = other
        self._arguments = (A, *self._arguments[1:])

    def matvec(self, x: ArrayLike) -> _Array:
        """``A x`` by the matrix as it is stored for the solves."""
        return self._apply(x, self.shape[1], self.shape[0], False)

    def precondition(self, r: ArrayLike) -> _Array:
        """``M r`` by the preconditioner in use."""
        return self._apply(r, self.shape[1], self.shape[1], True)

    def _apply(self, x: ArrayLike, columns: int, rows: int, preconditioner: bool) -> _Array:
        y = np.empty(rows, self.dtype)
        self._core.apply(vector(x, columns, "x", self.dtype.char), y, preconditioner)
        return y

    def aspreconditioner(self) -> Preconditioner:
        """The preconditioner in use as an object of its own, which is set up for the matrix."""
        A, _, given = self._arguments
        if isinstance(given, Preconditioner):
            return given
        name = self.preconditioner
        if name == "none":
            raise ValueError("the solver has no preconditioner")
        return Preconditioner(A, name, device=self._keys["device"], threads=self._keys["threads"])  # type: ignore[arg-type]

    @property
    def report(self) -> Any:
        """The `Report` of the last solve; a list of them for several right-hand sides; None before the first."""
        return self._report

    @property
    def choices(self) -> List[str]:
        """What was chosen, in words."""
        return self._core.choices

    @property
    def setup(self) -> Dict[str, float]:
        """Seconds of the set-up, by part."""
        return dict(self._core.setup)

    @property
    def device(self) -> str:
        """The device, as backend and name."""
        backend, name, _ = self._core.device
        return f"{backend}: {name}"

    @property
    def method(self) -> str:
        """The method in use."""
        return self._core.chosen[0][0]

    @property
    def preconditioner(self) -> str:
        """The preconditioner in use."""
        return self._core.chosen[1][0]

    @property
    def format(self) -> str:
        """The storage format in use."""
        return self._core.chosen[2][0]

    def __reduce__(self) -> Any:
        return (_solver, (self._arguments, self._keys))

    def __repr__(self) -> str:
        rows, columns = self.shape
        return f"<Solver {self.method}, {self.preconditioner}, {rows}x{columns}, {self.dtype}, {self.device}>"


class _WithValues:
    """The matrix of a solver after its values were replaced, for pickles."""

    def __init__(self, operand: Operand, data: _Array) -> None:
        indptr, indices, _ = operand.arrays or (None, None, None)
        self.indptr, self.indices, self.data, self.shape = indptr, indices, data, operand.shape


def _solver(arguments: Tuple[Any, str, Any], keys: Dict[str, Any]) -> Solver:
    return Solver(*arguments, **keys)


@overload
def solve(
    A: Any,
    b: ArrayLike,
    *,
    method: str = ...,
    preconditioner: Any = ...,
    rtol: Optional[float] = ...,
    atol: float = ...,
    maxiter: Optional[int] = ...,
    x0: Optional[ArrayLike] = ...,
    strict: bool = ...,
    device: Optional[str] = ...,
    threads: Optional[int] = ...,
    full_output: Literal[False] = ...,
) -> _Array: ...
@overload
def solve(
    A: Any,
    b: ArrayLike,
    *,
    method: str = ...,
    preconditioner: Any = ...,
    rtol: Optional[float] = ...,
    atol: float = ...,
    maxiter: Optional[int] = ...,
    x0: Optional[ArrayLike] = ...,
    strict: bool = ...,
    device: Optional[str] = ...,
    threads: Optional[int] = ...,
    full_output: Literal[True],
) -> Tuple[_Array, Any]: ...
def solve(
    A: Any,
    b: ArrayLike,
    *,
    method: str = "auto",
    preconditioner: Any = "auto",
    rtol: Optional[float] = None,
    atol: float = 0.0,
    maxiter: Optional[int] = None,
    x0: Optional[ArrayLike] = None,
    strict: bool = False,
    device: Optional[str] = None,
    threads: Optional[int] = None,
    full_output: bool = False,
) -> Any:
    """Solves ``A x = b``, by a method and a preconditioner that suit the matrix unless they are named.

    A matrix that is not square makes it a least-squares problem.

    Parameters
    ----------
    A : sparse matrix, ndarray, LinearOperator
        The matrix or operator.
    b : array_like
        The right-hand side, or several as the columns of an array.
    method : str
        The method with options, as in ``"gmres:restart=50"``; `methods` lists them. ``"auto"`` chooses by the structure of the matrix.
    preconditioner : str, Preconditioner, sparse matrix, LinearOperator
        A name with options, as in ``"amg:theta=0.04"``; `preconditioners` lists them. ``"auto"`` chooses. Or ``M ≈ A⁻¹`` itself.
    rtol, atol : float
        Solved when ``‖b − A x‖ ≤ max(rtol ‖b‖, atol)``, of least squares when ``‖Aᴴ (b − A x)‖ ≤ max(rtol ‖Aᴴ b‖, atol)``. `rtol` is 1e-8
        by default, 1e-5 in single precision.
    maxiter : int, optional
        Iterations at most; by default ten for each row or column, whichever are more, but at least 1000 and at most 100 000.
    x0 : array_like, optional
        The guess; zeros by default.
    strict : bool
        Whether to run the method and the preconditioner that were named, or chosen first, and no other: see `Solver`.
    device : str, optional
        Where: ``"cpu"``, ``"cuda"``, ``"cuda:1"``, ``"opencl"``, if the build has it: see `devices`. By default the first of CUDA, OpenCL
        and the CPU that is built in and has a device.
    threads : int, optional
        Threads of the CPU; by default ``LACUNA_NUM_THREADS``, or the cores that the process may use.
    full_output : bool
        Whether to return a report and never to raise `NotConverged`.

    Returns
    -------
    x : ndarray
        The solution.
    report : Report
        With `full_output`; a list of them for several right-hand sides.

    Raises
    ------
    NotConverged
        If the system was not solved. Its attributes are the best vector found and the report.

    Examples
    --------
    >>> import numpy as np
    >>> import lacuna_sparse as la
    >>> la.solve(np.array([[4.0, 1.0], [1.0, 3.0]]), [1.0, 2.0]).round(6)
    array([0.090909, 0.636364])
    """
    operand = Operand(A)
    of_b = type_of(b) if on_gpu(b) else np.asarray(b).dtype
    char = type_char(operand.dtype, of_b if of_b.kind in "fc" else np.dtype("d"))
    if char != type_char(operand.dtype):
        A = operand.matrix(char) if operand.is_matrix else _AsType(operand.functions, char)
    solver = Solver(
        A, method, preconditioner, rtol=rtol, atol=atol, maxiter=maxiter, strict=strict, device=device, threads=threads
    )
    x = solver.solve(b, x0)
    report = solver.report
    if full_output:
        return x, report
    reports = report if isinstance(report, list) else [report]
    if not all(one.converged for one in reports):
        raise NotConverged(x, report)
    return x


class _AsType:
    """An operator whose vectors are of a wider type."""

    def __init__(self, operator: Any, char: str) -> None:
        self.shape, self.dtype, self.matvec = operator.shape, np.dtype(char), operator.matvec
        _, _, _, adjoint = functions(operator, char)
        if adjoint is not None:
            self.rmatvec = adjoint
