"""Callbacks: what they get, how they end a solve, what becomes of their exceptions."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse.linalg as sl
from conftest import poisson, residual

import lacuna_sparse as la

A, B = poisson(20), np.ones(400)


class Mine(Exception):
    pass


@pytest.mark.parametrize("solver", [la.cg, la.bicg, la.bicgstab, la.cgs, la.minres, la.qmr, la.tfqmr], ids=lambda f: f.__name__)
def test_each_iterate_in_an_array_of_its_own(solver) -> None:
    seen: list = []
    x, info = solver(A, B, callback=seen.append)
    assert info == 0 and len({id(v) for v in seen}) == len(seen) > 5
    assert (seen[-1] == x).all()
    assert residual(A, seen[0], B) > residual(A, seen[-1], B)


def test_gmres_shows_cycles_and_residuals() -> None:
    xs: list = []
    x, info = la.gmres(A, B, restart=10, callback=xs.append, callback_type="x")
    assert info == 0 and (xs[-1] == x).all()
    norms: list = []
    assert la.gmres(A, B, restart=10, callback=norms.append, callback_type="pr_norm")[1] == 0
    assert len(xs) == -(-len(norms) // 10) and all(isinstance(r, np.float64) for r in norms)
    assert norms == sorted(norms, reverse=True) and norms[-1] <= 1e-5
    assert abs(norms[9] - residual(A, xs[0], B)) < 1e-6
    with pytest.warns(DeprecationWarning, match="callback_type"):
        x, info = la.gmres(A, B, restart=10, maxiter=7, callback=lambda r: None)
    assert info == 7


def test_true_ends_the_solve_and_nothing_else_does() -> None:
    seen: list = []

    def enough(x: np.ndarray) -> bool:
        seen.append(x)
        return len(seen) == 25

    x, info = la.cg(A, B, rtol=1e-12, callback=enough)
    assert la.Reason(info) is la.Reason.CANCELLED and len(seen) == 25
    assert residual(A, x, B) <= 1.0
    assert la.cg(A, B, callback=lambda x: 1)[1] == 0


@pytest.mark.parametrize("where", ["callback", "matvec", "M"])
def test_an_exception_is_raised_as_it_is_and_leaves_nothing_behind(where: str) -> None:
    calls = 0
    thrown = Mine("as it is")

    def failing(v: np.ndarray) -> np.ndarray:
        nonlocal calls
        calls += 1
        if calls == 4:
            raise thrown
        return A @ v if where == "matvec" else v

    operator = sl.LinearOperator(A.shape, matvec=failing, dtype=float)
    keys = {"callback": {"callback": failing}, "matvec": {}, "M": {"M": operator}}[where]
    with pytest.raises(Mine) as caught:
        la.cg(operator if where == "matvec" else A, B, **keys)
    assert caught.value is thrown and calls == 4
    assert la.cg(A, B)[1] == 0


def test_results_of_operators_are_checked() -> None:
    def operator(result):
        return sl.LinearOperator((400, 400), matvec=lambda v: v, dtype=float), result

    class Short:
        shape, dtype = (400, 400), np.dtype(float)

        def matvec(self, v: np.ndarray) -> np.ndarray:
            return v[:-1]

    with pytest.raises(ValueError, match="expected 400 numbers, got 399"):
        la.cg(Short(), B)


def test_a_callback_may_solve() -> None:
    inner = la.Solver(A, "cg", "jacobi", rtol=1e-10)
    M = sl.LinearOperator(A.shape, matvec=inner.solve, dtype=float)
    x, info = la.gmres(A, B, M=M)
    assert info == 0 and residual(A, x, B) < 1e-5
    assert la.cg(A, B, callback=lambda v: None if la.cg(A, v)[1] == 0 else True)[1] == 0


def test_a_monitor_hears_of_a_long_solve_and_ends_it() -> None:
    heard: list = []

    def monitor(iterations: int, norm: float) -> bool:
        heard.append((iterations, norm))
        return len(heard) == 3

    solver = la.Solver(poisson(400), "gmres:restart=200", "none", rtol=1e-14)
    solver.solve(np.ones(160000), monitor=monitor)
    assert solver.report.reason == "cancelled" and len(heard) == 3
    assert heard[0][0] <= heard[1][0] <= heard[2][0] and heard[2][1] < 1.5


@pytest.mark.parametrize("of", ["matrix", "operator"])
def test_a_solver_shows_its_iterates(of: str) -> None:
    A = poisson(12)
    b = np.ones(144)
    given = A if of == "matrix" else sl.LinearOperator(A.shape, matvec=lambda v: A @ v, dtype=float)
    solver = la.Solver(given, "cg", "none")
    plain = solver.solve(b)
    seen = []
    x = solver.solve(b, callback=lambda xk: seen.append(xk))
    assert (x == plain).all() and len(seen) == solver.report.iterations
    sizes = [np.linalg.norm(b - A @ xk) for xk in seen]
    assert sizes[-1] <= 1e-8 * np.linalg.norm(b) and sizes[0] > 100 * sizes[-1]
    solver.solve(b, callback=lambda xk: True)
    assert solver.report.reason == "cancelled" and solver.report.iterations == 1
    with pytest.raises(ZeroDivisionError):
        solver.solve(b, callback=lambda xk: 1 / 0)
    assert (solver.solve(b) == plain).all() and solver.report.converged
    with pytest.raises(TypeError, match="one right-hand side"):
        solver.solve(np.ones((144, 2)), callback=lambda xk: None)
