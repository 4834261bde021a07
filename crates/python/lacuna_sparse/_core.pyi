"""The extension module."""

from typing import Any, Callable, Dict, List, Optional, Tuple, Type, final

from numpy.typing import NDArray

__all__ = ["Matrix", "Preconditioner", "Report", "System", "advise", "devices", "dlpack_tensor", "methods", "norm", "preconditioners", "spectrum"]

_Array = NDArray[Any]
_Listed = Tuple[str, str, List[Tuple[str, str, str]]]

@final
class Matrix:
    @staticmethod
    def csr(char: str, shape: Tuple[int, int], indptr: _Array, indices: _Array, data: _Array) -> Matrix: ...
    @staticmethod
    def dense(char: str, shape: Tuple[int, int], data: _Array) -> Matrix: ...
    @staticmethod
    def read(path: str, char: str) -> Matrix: ...
    def write(self, path: str) -> None: ...
    def arrays(self) -> Tuple[_Array, _Array, _Array]: ...
    def structure(self) -> Dict[str, Any]: ...
    @property
    def shape(self) -> Tuple[int, int]: ...
    @property
    def nnz(self) -> int: ...
    @property
    def char(self) -> str: ...

@final
class Preconditioner:
    def __new__(
        cls, matrix: Matrix, name: str, device_name: Optional[str] = None, threads: Optional[int] = None
    ) -> Preconditioner: ...
    def apply(self, r: _Array, z: _Array, adjoint: bool) -> None: ...
    def update_values(self, data: _Array) -> None: ...
    @property
    def shape(self) -> Tuple[int, int]: ...
    @property
    def char(self) -> str: ...
    @property
    def report(self) -> List[Tuple[str, str]]: ...

@final
class Report:
    """How a solve ended.

    It prints as a table, shows itself with the history of the residual in a notebook, and pickles. Residuals and tolerances are
    relative: numbers without a unit, multiples of `‖b‖`, or of `‖Aᴴ b‖` for least squares. A number that is not known is NaN.

    Attributes
    ----------
    x : ndarray
        The solution, or the best vector that was found: the array that the solve returned.
    reason : str
        Why the solve ended: the name of a `Reason` in lower case.
    code : int
        The same as a number: the value of a `Reason`, 0 if it converged.
    message : str
        The same as a sentence.
    converged : bool
        Whether `x` was confirmed to meet the tolerance.
    iterations, restarts : int
        Iterations, and restarts from the true residual.
    residual, true_residual, target : float
        The relative residual by the recurrence of the method, that of `x`, and the one to reach.
    backward_error : float
        The smallest relative change of `A` and `b` that makes `x` exact.
    misfit, normal_residual : float
        Least squares: the part of `b` outside the range of `A`, and `‖Aᴴ (b − A x)‖`.
    norm_a, cond_a : float
        Estimates of the Frobenius norm and of the condition number of `A` by `lsqr` and `lsmr`.
    history : ndarray
        The relative residual every `history_stride` iterations.
    history_stride : int
        Iterations between two values of `history`.
    method, preconditioner : str
        What finished the solve.
    before : list of str
        What was tried before that: a method, ``with`` and a preconditioner each.
    choices, notes : list of str
        What was chosen, and what happened.
    why, advice : str
        Why it fell short, and what to try.
    time, setup_time : float
        Seconds of the solve, and of the set-up before it.
    """

    def __new__(cls, state: Dict[str, Any], x: Any, setup: float) -> Report: ...
    def __reduce__(self) -> Tuple[Type[Report], Tuple[Dict[str, Any], Any, float]]: ...
    @property
    def x(self) -> _Array:
        """The solution, or the best vector that was found, no worse than the guess: the array that the solve returned."""
    @property
    def reason(self) -> str:
        """Why the solve ended: the name of a `Reason` in lower case, as `"converged"` or `"limit"`."""
    @property
    def code(self) -> int:
        """Why the solve ended, as a number: the value of a `Reason`. 0 if it converged, positive if `x` is as good as the limit of
        iterations or the number type let it be, negative if the method failed or was stopped."""
    @property
    def message(self) -> str:
        """Why the solve ended, as a sentence."""
    @property
    def converged(self) -> bool:
        """Whether it converged: `true_residual` was confirmed to be at most `target`, up to rounding."""
    @property
    def iterations(self) -> int:
        """Iterations, those of all methods that were tried."""
    @property
    def restarts(self) -> int:
        """Restarts: how often a cycle ended, or the recurrence met the tolerance and the true residual did not."""
    @property
    def residual(self) -> float:
        """`‖r‖ / ‖b‖` by the recurrence of the method, at the last iteration; relative to `‖Aᴴ b‖` for least squares. NaN if the method
        computed none."""
    @property
    def true_residual(self) -> float:
        """`‖b − A x‖ / ‖b‖` of the `x` that is returned, or `‖Aᴴ (b − A x)‖ / ‖Aᴴ b‖` for least squares. NaN for a method that does not
        confirm."""
    @property
    def target(self) -> float:
        """The relative residual to converge to: `max(rtol, atol / ‖b‖)`, with `‖Aᴴ b‖` for least squares. NaN if nothing was solved."""
    @property
    def backward_error(self) -> float:
        """`‖b − A x‖ / (‖A‖ ‖x‖ + ‖b‖)`: the smallest relative change of `A` and `b` that makes `x` exact. At best about the unit
        roundoff, 1e-16 in double precision. NaN if the matrix is not known, as for operators."""
    @property
    def misfit(self) -> float:
        """Least squares: `‖b − A x‖ / ‖b‖`, the part of `b` outside the range of `A`. NaN for other systems, and if the matrix is not
        known."""
    @property
    def normal_residual(self) -> float:
        """Least squares: `‖Aᴴ (b − A x)‖`, in the units of `Aᴴ b`, when it was confirmed last. NaN for other systems."""
    @property
    def norm_a(self) -> float:
        """An estimate from below of the Frobenius norm of `A` by `lsqr` and `lsmr`, in the units of `A`. NaN for other methods."""
    @property
    def cond_a(self) -> float:
        """An estimate of the condition number of `A` by `lsqr` and `lsmr`. NaN for other methods."""
    @property
    def history(self) -> _Array:
        """`‖r‖ / ‖b‖` at iterations 0, `history_stride`, 2 `history_stride`, … by the recurrence. The first is NaN if it is not known."""
    @property
    def history_stride(self) -> int:
        """Iterations between two values of `history`: 1 if the limit is below 1 048 576 iterations."""
    @property
    def method(self) -> str:
        """The method that finished the solve."""
    @property
    def preconditioner(self) -> str:
        """The preconditioner that finished the solve; ``none`` if there was none."""
    @property
    def before(self) -> List[str]:
        """What was tried before that: a method, ``with`` and a preconditioner each."""
    @property
    def choices(self) -> List[str]:
        """What was chosen, in words: the method, the preconditioner, the format, each with why."""
    @property
    def notes(self) -> List[str]:
        """What happened during the solve, and what explains its end, in words."""
    @property
    def why(self) -> str:
        """Why it fell short, in a line; empty if it converged, and with `strict`."""
    @property
    def advice(self) -> str:
        """What to try then, in a line; empty if `why` is."""
    @property
    def time(self) -> float:
        """Seconds of the solve itself: the iterations, transfers to the device and back, and the set-up of what continued."""
    @property
    def setup_time(self) -> float:
        """Seconds of the set-up before it: once for each `Solver`, however many solves follow."""
    def _repr_html_(self) -> str: ...

@final
class System:
    def __new__(
        cls,
        given: Any,
        settings: str,
        m: Any = None,
        device_name: Optional[str] = None,
        threads: Optional[int] = None,
        callback: Optional[Callable[[Any], Any]] = None,
        residuals: bool = False,
    ) -> System: ...
    def solve(self, b: _Array, x: _Array, monitor: Optional[Callable[[int, float], Any]] = None) -> Report: ...
    def solve_columns(self, columns: int, b: _Array, x: _Array) -> List[Report]: ...
    def solve_at(
        self, b: int, x: int, array: Any, from_guess: bool, monitor: Optional[Callable[[int, float], Any]] = None
    ) -> Report: ...
    def variances(self, to: _Array) -> bool: ...
    def observe(self, callback: Optional[Callable[[Any], Any]]) -> None: ...
    def update_values(self, data: _Array) -> None: ...
    def apply(self, x: _Array, y: _Array, preconditioner: bool) -> None: ...
    @property
    def shape(self) -> Tuple[int, int]: ...
    @property
    def char(self) -> str: ...
    @property
    def device(self) -> Tuple[str, str, int]: ...
    @property
    def chosen(self) -> List[Tuple[str, str]]: ...
    @property
    def choices(self) -> List[str]: ...
    @property
    def setup(self) -> List[Tuple[str, float]]: ...

def advise(
    matrix: Matrix, b: _Array, rtol: float, seconds: float, device_name: Optional[str], threads: Optional[int]
) -> List[Tuple[str, str, float, float, int, float, str]]: ...
def devices() -> List[Tuple[str, List[str], str]]: ...
def dlpack_tensor(object: Any) -> Tuple[int, List[int], Optional[List[int]], str, int]: ...
def methods() -> List[_Listed]: ...
def preconditioners() -> List[_Listed]: ...
def norm(char: str, array: _Array) -> float: ...
def spectrum(
    what: str, matrix: Matrix, count: int, which: str, sigma: Tuple[float, float], mass: Optional[Matrix], method: str, preconditioner: str,
    rtol: Optional[float], max_iters: Optional[int], complete: str, seed: int, start: Optional[_Array], start_char: str,
    device_name: Optional[str], threads: Optional[int],
) -> Dict[str, Any]: ...
