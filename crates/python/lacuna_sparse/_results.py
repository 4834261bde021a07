"""What solves return and raise."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, NamedTuple, Sequence, Union

from numpy.typing import NDArray

from ._core import Report


class Reason(IntEnum):
    """Why a solve ended: the value of `Report.code`, and of an `info` that is not positive.

    `CONVERGED` alone is success. The functions named as in SciPy return an `info` by its rule: 0 for `CONVERGED`; for the reasons with
    a positive number, where `x` is as good as the limit or the number type let it be, the number of iterations (of `gmres` the limit,
    in cycles); and the number of the reason where it is negative, since the method failed or was stopped. So ``Reason(info)`` is
    the reason if ``info <= 0``. `Report.code` is always the number of a reason.

    Attributes
    ----------
    CONVERGED : 0
        The true residual of `x` meets the tolerance. ``info == 0``.
    LIMIT : 1
        The limit of iterations was reached first: allow more, or take a better preconditioner. ``info > 0``.
    STAGNATED : 2
        The residual no longer decreases. ``info > 0``.
    ACCURACY_ATTAINED : 3
        What is left of the residual is rounding: `x` is as accurate as the number type allows, and the tolerance is tighter than
        that. ``info > 0``.
    DIVERGED : -1
        The residual grew far beyond its initial value.
    INDEFINITE_OPERATOR : -2
        The matrix is not positive definite, which the method needs.
    INDEFINITE_PRECONDITIONER : -3
        The preconditioner is not positive definite, which the method needs.
    OUT_OF_RANGE : -4
        Elements of the solution overflow or underflow in the number type.
    BREAKDOWN : -5
        A divisor of the method vanished, and restarting did not help.
    NOT_FINITE : -6
        A quantity became infinite or NaN.
    CANCELLED : -7
        A callback or a monitor returned True.
    CUSTOM : -8
        A test of a method of one's own held; no method of this package ends so.

    Examples
    --------
    >>> Reason(-2).name
    'INDEFINITE_OPERATOR'
    >>> Reason.LIMIT.value
    1
    """

    CONVERGED = 0
    LIMIT = 1
    STAGNATED = 2
    ACCURACY_ATTAINED = 3
    DIVERGED = -1
    INDEFINITE_OPERATOR = -2
    INDEFINITE_PRECONDITIONER = -3
    OUT_OF_RANGE = -4
    BREAKDOWN = -5
    NOT_FINITE = -6
    CANCELLED = -7
    CUSTOM = -8


class NotConverged(RuntimeError):
    """Raised by `solve` for a system that was not solved. It pickles, so that workers of `multiprocessing` may raise it.

    Attributes
    ----------
    x : ndarray
        The best vector that was found, no worse than the guess.
    report : Report or list of Report
        How it ended; for several right-hand sides, one of each.
    """

    def __init__(self, x: NDArray[Any], report: Union[Report, Sequence[Report]]) -> None:
        reports = [report] if isinstance(report, Report) else list(report)
        short = [one for one in reports if not one.converged]
        first = short[0] if short else reports[0]
        counted = "" if len(reports) == 1 else f"{len(short)} of {len(reports)} right-hand sides: "
        why = f". Why: {first.why}. To try: {first.advice}" if first.why else ""
        super().__init__(
            f"{counted}{first.message}, after {first.iterations} iterations, with a residual of "
            f"{first.true_residual:.2e} for a target of {first.target:.2e}{why}"
        )
        self.x = x
        self.report = report

    def __reduce__(self) -> Any:
        return type(self), (self.x, self.report), self.__dict__


class Trial(NamedTuple):
    """A method and a preconditioner that `advise` tried."""

    method: str
    preconditioner: str
    #: Seconds of the set-up, and of a solve without it.
    setup: float
    time: float
    iterations: int
    true_residual: float
    #: How it ended, or the error that prevented it.
    message: str
