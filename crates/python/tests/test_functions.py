"""The functions of SciPy: what they return, and how they fail."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as sl
from conftest import convection, poisson, residual

import lacuna_sparse as la

SQUARE = [la.cg, la.bicg, la.bicgstab, la.cgs, la.gmres, la.minres, la.qmr, la.tfqmr]


@pytest.mark.parametrize("solver", SQUARE, ids=lambda f: f.__name__)
def test_solved_means_the_true_residual(solver) -> None:
    A, b = poisson(12), np.arange(144.0)
    for rtol in (1e-3, 1e-9):
        x, info = solver(A, b, rtol=rtol)
        assert info == 0 and residual(A, x, b) <= 1.001 * rtol


@pytest.mark.parametrize("solver", SQUARE, ids=lambda f: f.__name__)
def test_too_few_iterations_give_their_number_and_the_best_vector(solver) -> None:
    A, b = poisson(20), np.random.default_rng(1).standard_normal(400)
    more = {"restart": 4} if solver is la.gmres else {}
    x, info = solver(A, b, maxiter=4, **more)
    assert info == 4 and residual(A, x, b) <= 1.0


def test_the_preconditioner_may_be_anything() -> None:
    A, b = poisson(20), np.ones(400)
    diagonal = sp.diags_array(1 / A.diagonal())
    products = {
        name: la.cg(A, b, M=M, rtol=1e-9)
        for name, M in {
            "matrix": diagonal,
            "dense": diagonal.toarray(),
            "operator": sl.aslinearoperator(diagonal),
            "name": "jacobi",
            "object": la.Preconditioner(A, "jacobi"),
        }.items()
    }
    first = products["matrix"][0]
    for name, (x, info) in products.items():
        assert info == 0 and np.allclose(x, first, rtol=1e-6), name
    iterations = {}
    for M in ("none", "amg", "ilu0"):
        seen: list = []
        assert la.cg(A, b, M=M, callback=seen.append)[1] == 0
        iterations[M] = len(seen)
    assert iterations["amg"] < iterations["none"] / 3 and iterations["ilu0"] < iterations["none"]
    assert la.bicg(A, b, M="jacobi")[1] == 0
    M1, M2 = sp.diags_array(np.full(400, 0.5)), sl.aslinearoperator(sp.diags_array(np.full(400, 0.5)))
    assert np.allclose(la.qmr(A, b, M1=M1, M2=M2, rtol=1e-9)[0], first, rtol=1e-6)


def test_a_preconditioner_serves_scipy() -> None:
    A, b = poisson(40), np.ones(1600)
    M = la.Preconditioner(A, "amg")
    seen: list = []
    x, info = sl.cg(A, b, M=M, rtol=1e-8, callback=seen.append)
    assert info == 0 and residual(A, x, b) < 1e-7 and len(seen) < 20
    assert np.allclose(M @ np.stack([b, 2 * b], axis=1), np.stack([M(b), M(2 * b)], axis=1))
    largest = sl.lobpcg(A, np.random.default_rng(0).standard_normal((1600, 2)), M=M, largest=False, tol=1e-6)[0]
    assert abs(largest.min() - 8 * np.sin(np.pi / 82) ** 2) < 1e-5


def test_negative_info_names_the_reason() -> None:
    A = poisson(6) - 3 * sp.eye_array(36)
    x, info = la.cg(A, np.arange(36.0))
    assert info < 0 and la.Reason(info) is la.Reason.INDEFINITE_OPERATOR
    x, info = la.cg(poisson(6), np.ones(36), M=-np.eye(36))
    assert la.Reason(info) is la.Reason.INDEFINITE_PRECONDITIONER


def test_a_shift() -> None:
    A, b = poisson(8), np.arange(64.0)
    x, info = la.minres(A, b, shift=0.7, rtol=1e-10)
    assert info == 0 and residual(A - 0.7 * sp.eye_array(64), x, b) < 1e-9
    operator = sl.LinearOperator(A.shape, matvec=lambda v: A @ v)
    assert np.allclose(la.minres(operator, b, shift=0.7, rtol=1e-10)[0], x)


def test_a_check_of_symmetry() -> None:
    A, b = poisson(8), np.ones(64)
    assert la.minres(A, b, check=True)[1] == 0
    with pytest.raises(ValueError, match="non-symmetric"):
        la.minres(convection(8), b, check=True)
    rounded = A.copy()
    rounded.data[1] = np.nextafter(rounded.data[1], 0)
    assert la.minres(rounded, b, check=True)[1] == 0


@pytest.mark.parametrize("damp", [0.0, 0.3])
@pytest.mark.parametrize("of", ["matrix", "operator"])
def test_least_squares_as_scipy_has_it(damp: float, of: str, rng: np.random.Generator) -> None:
    A = sp.random_array((60, 30), density=0.3, rng=rng).tocsr()
    b = rng.standard_normal(60)
    given = A if of == "matrix" else sl.aslinearoperator(A) * 1.0
    keys = dict(damp=damp, atol=1e-12, btol=1e-12)
    for ours, theirs in ((la.lsqr, sl.lsqr), (la.lsmr, sl.lsmr)):
        found, expected = ours(given, b, **keys), theirs(A, b, **keys)
        assert np.allclose(found[0], expected[0], atol=1e-7)
        assert found[1] in (1, 2, 7)
        norms = slice(3, 5) if ours is la.lsqr else slice(3, 4)
        assert np.allclose(found[norms], expected[norms], rtol=1e-6)
        # Estimates depend on the number of iterations.
        estimates = slice(5, 7)
        assert np.allclose(found[estimates], expected[estimates], rtol=0.2)
        assert not np.isnan([v for v in found[1:9] if np.isscalar(v)]).any()


def test_least_squares_of_what_is_solved_already() -> None:
    A = np.eye(3, 2)
    for found in (la.lsqr(A, np.zeros(3)), la.lsmr(A, np.zeros(3))):
        assert found[1] == 0 and not np.isnan(found[2:8]).any() and (found[0] == 0).all()


@pytest.mark.parametrize("damp", [0.0, 0.3])
def test_variances(damp: float, rng: np.random.Generator) -> None:
    A = sp.random_array((80, 20), density=0.4, rng=rng).tocsr()
    b = rng.standard_normal(80)
    expected = sl.lsqr(A, b, damp=damp, atol=0, btol=0, conlim=0, iter_lim=5, calc_var=True)[9]
    keys = dict(atol=1e-14, iter_lim=5)
    assert np.allclose(la.lsqr(A, b, damp=damp, calc_var=True, **keys)[9], expected, rtol=1e-6)
    assert not la.lsqr(A, b, damp=damp, **keys)[9].any()
    # The matrix is scaled on the device; what is found is not.
    by = 2.0**300
    found = la.lsqr(A * by, b, damp=damp * by, calc_var=True, **keys)[9]
    assert np.allclose(found * by * by, expected, rtol=1e-6, atol=0)


def test_complete_factors() -> None:
    A = convection(20)
    B = np.random.default_rng(3).standard_normal((400, 3))
    assert residual(A, la.spsolve(A, B[:, 0]), B[:, 0]) < 1e-8
    assert np.allclose(la.spsolve(A, B), sl.spsolve(A.tocsc(), B))


def test_a_singular_matrix_has_no_factors() -> None:
    # SciPy warns and returns NaN.
    b = np.ones(2)
    with pytest.warns(sl.MatrixRankWarning):
        assert np.isnan(sl.spsolve(sp.csc_array([[1.0, 2.0], [2.0, 4.0]]), b)).all()
    for A in ([[1.0, 2.0], [2.0, 4.0]], [[1.0, 0.0], [0.0, 0.0]]):
        with pytest.raises(ValueError, match="singular"):
            la.spsolve(np.array(A), b)
        with pytest.raises(ValueError, match="singular"):
            la.spsolve(sp.csc_array(A), np.ones((2, 3)))
    # One whose pivots are only rounding has factors, which do not solve it.
    hilbert = 1 / (np.arange(20)[:, None] + np.arange(20) + 1.0)
    with pytest.raises(la.NotConverged) as caught:
        la.spsolve(hilbert, np.ones(20))
    assert caught.value.x.shape == (20,) and caught.value.report.why


def test_products_of_an_operator_are_counted() -> None:
    A, b = poisson(15), np.ones(225)
    count = 0

    def matvec(x: np.ndarray) -> np.ndarray:
        nonlocal count
        count += 1
        return A @ x

    operator = sl.LinearOperator(A.shape, matvec=matvec, dtype=float)
    seen: list = []
    count = 0
    assert la.cg(operator, b, callback=seen.append)[1] == 0
    # One to confirm, none for a guess of zero, and no second solve for the callback.
    assert count == len(seen) + 1
