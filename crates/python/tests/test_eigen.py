"""Eigenvalues and singular values, beside SciPy's and dense ones."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as sl
from conftest import convection, poisson

import lacuna_sparse as la


def test_eigsh_agrees_with_dense_values_at_both_ends() -> None:
    A = poisson(25)
    dense = np.linalg.eigvalsh(A.toarray())
    for which, expected in (
        ("SA", dense[:5]),
        ("LA", dense[-5:]),
        ("SM", dense[:5]),
        ("LM", dense[-5:]),
        ("BE", np.r_[dense[:2], dense[-3:]]),
    ):
        w, v = la.eigsh(A, 5, which=which)
        assert np.allclose(w, expected, rtol=1e-8), which
        assert np.allclose(A @ v, v * w, atol=1e-6) and np.allclose(v.T @ v, np.eye(5), atol=1e-10)
    shifted = A - 3 * sp.eye_array(625)
    values = np.linalg.eigvalsh(shifted.toarray())
    largest = np.sort(values[np.argsort(-np.abs(values))[:4]])
    assert np.allclose(la.eigsh(shifted, 4)[0], largest, rtol=1e-8)
    near = la.eigsh(A, 4, sigma=2.1, return_eigenvectors=False)
    assert np.allclose(near, np.sort(dense[np.argsort(np.abs(dense - 2.1))[:4]]), rtol=1e-8)


def test_a_mass_matrix_and_what_is_refused() -> None:
    A, M = poisson(25), sp.diags_array(np.linspace(1, 3, 625))
    for sigma, which in ((None, "SA"), (0.0, "LM")):
        ours = la.eigsh(A, 3, M=M, sigma=sigma, which=which, return_eigenvectors=False)
        theirs = sl.eigsh(A, 3, M=M, sigma=0.0, return_eigenvectors=False)
        assert np.allclose(np.sort(ours), np.sort(theirs), rtol=1e-7)
    with pytest.raises(TypeError):
        la.eigsh(sl.LinearOperator(A.shape, matvec=lambda x: A @ x, dtype=float))
    with pytest.raises(NotImplementedError):
        la.eigsh(A, OPinv=sl.aslinearoperator(A), sigma=0)
    with pytest.raises(ValueError):
        la.eigsh(A, which="XX")
    with pytest.raises(la.EigenNotConverged) as short:
        la.lobpcg(A, np.ones((625, 1)), largest=False, maxiter=2)
    assert short.value.outcome["reason"] == "limit" and len(short.value.eigenvalues) == 0


@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("sigma", [None, 0.3])
@pytest.mark.parametrize("vectors", [False, True])
def test_values_are_in_the_order_of_scipy(dtype: type, sigma: object, vectors: bool, rng: np.random.Generator) -> None:
    # Both signs at either end, and near 0 and sigma; the last are far from the others, so that ARPACK finds them.
    d = np.r_[-30.0, -28.0, 29.0, 31.0, 27.0, -1.0, -0.5, 0.25, 0.45, 0.8, 1.5, np.linspace(3, 12, 40), -np.linspace(3, 12, 40)]
    Q = np.linalg.qr(rng.standard_normal((91, 91)) + (1j * rng.standard_normal((91, 91)) if dtype is complex else 0))[0]
    A = (Q * d) @ Q.conj().T
    A = (A + A.conj().T) / 2
    for which in ("LM", "SM", "LA", "SA", "BE"):
        if dtype is complex and (which == "BE" or vectors):
            continue  # SciPy refuses the first; with vectors, its order is that of no rule
        if sigma is not None and which == "SM":
            continue  # those farthest from sigma: ARPACK does not converge
        theirs = sl.eigsh(A, 4, which=which, sigma=sigma, return_eigenvectors=vectors)
        ours = la.eigsh(A, 4, which=which, sigma=sigma, return_eigenvectors=vectors)
        if vectors:
            ours, theirs = ours[0], theirs[0]
        assert np.allclose(ours, theirs, rtol=1e-7, atol=1e-9), (which, ours, theirs)
    # SciPy computes all of them by `eigh`.
    assert (np.diff(la.eigsh(A, 91, which="SA", return_eigenvectors=False)) > 0).all()


def test_counts_out_of_range_are_refused() -> None:
    A = poisson(5)
    for call in (la.eigsh, la.eigs, la.svds, la.eigen):
        for k in (0, -1, 26, 2.5, "3"):
            with pytest.raises(ValueError, match=rf"(k|count): expected an integer from 1 to 25, got {k!r}"):
                call(A, k)
    for call, name in ((la.eigsh, "maxiter"), (la.eigs, "maxiter"), (la.eigen, "max_iters"), (la.eigen, "seed")):
        for value in (-1, 2.5):
            with pytest.raises(ValueError, match=f"{name}: expected a whole number from 0, got {value}"):
                call(A, 2, **{name: value})


def test_an_exception_of_scipys_name_catches_ours_and_both_pickle() -> None:
    A = poisson(25)
    with pytest.raises(sl.ArpackNoConvergence) as caught:
        la.lobpcg(A, np.eye(625, 3), largest=False, M="amg", tol=1e-3, maxiter=3)
    raised = caught.value
    assert isinstance(raised, la.EigenNotConverged) and type(raised).__name__ == "EigenNotConverged"
    raised.eigenvalues = np.array([1.0, 2.0])  # not those of the values and of `outcome` any more
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        again = pickle.loads(pickle.dumps(raised, protocol))
        assert isinstance(again, sl.ArpackNoConvergence) and isinstance(again, la.EigenNotConverged)
        assert str(again) == str(raised) and again.outcome["reason"] == raised.outcome["reason"] == "limit"
        assert np.array_equal(again.eigenvalues, [1.0, 2.0]) and again.eigenvectors.shape == raised.eigenvectors.shape
    assert str(copy.copy(raised)) == str(raised)
    plain = la.EigenNotConverged(np.ones(2), np.eye(3, 2), {"reason": "limit", "complete": "?", "met": [True, False]})
    assert "1 of 2" in str(plain) and np.array_equal(pickle.loads(pickle.dumps(plain)).eigenvectors, np.eye(3, 1))


def test_a_result_shows_itself_in_a_line() -> None:
    found = la.eigen(poisson(30), 3)
    assert repr(found).startswith("<EigenResult: converged, 3 values from 0.0205") and "3 of 3 converged, n = 900" in repr(found)
    assert len(repr(found)) < 200 and str(found) == repr(found)
    short = la.eigen(poisson(30), 1, method="lobpcg", preconditioner="none", max_iters=2)
    assert "limit, the value " in repr(short) and "0 of 1 converged" in repr(short)
    assert repr(pickle.loads(pickle.dumps(found))) == repr(found)


def test_eigs_agrees_with_dense_values() -> None:
    A = convection(18)
    dense = np.linalg.eigvals(A.toarray())
    for which, key in (("LM", -np.abs(dense)), ("LR", -dense.real), ("SR", dense.real), ("SM", np.abs(dense))):
        w, v = la.eigs(A, 4, which=which)
        expected = dense[np.argsort(key)[:4]]
        off = np.abs(w[:, None] - expected[None, :]).min(axis=1) / np.abs(w)
        # Of a pair of conjugates one may be cut off.
        assert (off < 1e-6).sum() >= 3, (which, w, expected)
        assert np.allclose(A @ v, v * w, atol=1e-6)


def test_svds_agrees_with_dense_values() -> None:
    A = sp.random_array((400, 300), density=0.02, rng=np.random.default_rng(3)).tocsr()
    dense = np.linalg.svd(A.toarray(), compute_uv=False)
    u, s, vh = la.svds(A, 4)
    assert np.allclose(s, np.sort(dense[:4]), rtol=1e-8) and np.allclose(A @ vh.T, u * s, atol=1e-8)
    square = convection(18)
    smallest = np.sort(np.linalg.svd(square.toarray(), compute_uv=False))[:3]
    assert np.allclose(la.svds(square, 3, which="SM", return_singular_vectors=False), smallest, rtol=1e-8)
    assert np.allclose(la.svds(A, 3, which="SM", return_singular_vectors=False), np.sort(dense)[:3], rtol=1e-8)
    with pytest.raises(ValueError):
        la.svds(sp.random_array((400, 320), density=0.02, rng=np.random.default_rng(3)), 3, which="SM")


def test_results_say_how_they_came_about() -> None:
    found = la.eigen(poisson(30), 4, preconditioner="amg")
    assert found.converged and found.complete.startswith("complete: counted") and found.met.all()
    warm = la.eigen(poisson(30), 4, start=found.vectors)
    assert warm.iterations < found.iterations
    single = la.eigen(poisson(30).astype(np.float32), 2)
    assert single.vectors.dtype == np.float32 and np.allclose(single.values, found.values[:2], rtol=1e-3)
