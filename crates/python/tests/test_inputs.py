"""Every class of matrix, every type, every layout: the same bits."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import convection, poisson, residual
from scipy.sparse.linalg import LinearOperator, aslinearoperator

import lacuna_sparse as la

TYPES = [np.float32, np.float64, np.complex64, np.complex128]
CLASSES = ["csr", "csc", "coo", "bsr", "dia", "lil", "dok"]


def equal(x: np.ndarray, y: np.ndarray) -> bool:
    return x.dtype == y.dtype and x.tobytes() == y.tobytes()


@pytest.mark.parametrize("dtype", TYPES)
def test_equal_bits_from_every_class(dtype: type) -> None:
    A = convection(9, dtype)
    b = np.arange(1, 82).astype(dtype)
    expected, info = la.bicgstab(A, b)
    assert info == 0 and expected.dtype == dtype and residual(A, expected, b) <= 2e-5
    for name in CLASSES:
        for kind in ("array", "matrix"):
            other = getattr(sp, f"{name}_{kind}")(A)
            assert equal(expected, la.bicgstab(other, b)[0]), f"{name}_{kind}"
    assert equal(expected, la.bicgstab(A.toarray(), b)[0])
    assert equal(expected, la.bicgstab(np.asfortranarray(A.toarray()), b)[0])
    assert equal(expected, la.bicgstab(aslinearoperator(A), b)[0])
    wide = sp.csr_array((A.data, A.indices.astype(np.int64), A.indptr.astype(np.int64)), shape=A.shape)
    assert equal(expected, la.bicgstab(wide, b)[0])
    assert equal(expected, la.bicgstab(la.Csr(A.data, A.indices, A.indptr, A.shape), b)[0])


@pytest.mark.parametrize("dtype", TYPES)
def test_vectors_of_any_layout(dtype: type) -> None:
    A = convection(9, dtype)
    b = np.arange(1, 82).astype(dtype)
    expected = la.gmres(A, b)[0]
    strided = np.zeros((81, 3), dtype)
    strided[:, 1] = b
    frozen = b.copy()
    frozen.setflags(write=False)
    swapped = b.astype(b.dtype.newbyteorder())
    for other in (strided[:, 1], frozen, swapped, b[:, None], list(b) if dtype in (np.float64, np.complex128) else b):
        assert equal(expected, la.gmres(A, other)[0])
    assert expected.shape == (81,) and la.gmres(A, b[:, None])[0].shape == (81,)


def test_unsorted_and_repeated_entries_are_summed_and_left_alone() -> None:
    data, indices, indptr = np.array([1.0, 3.0, 1.0, 2.0]), np.array([1, 0, 0, 1]), np.array([0, 3, 4])
    A = sp.csr_array((data, indices, indptr), shape=(2, 2))
    before = A.indices.tobytes()
    x = la.solve(A, np.array([5.0, 2.0]))
    assert np.allclose(x, [1.0, 1.0]) and A.indices.tobytes() == before


def test_new_values_are_in_the_order_of_the_matrix_that_was_given() -> None:
    P = poisson(8)
    K = (P @ P).tocsr()
    assert not K.has_sorted_indices
    b, new = np.arange(1.0, 65.0), np.random.default_rng(1).random(K.nnz) * 0.1
    other = K.copy()
    other.data = K.data + new * (K.indices == np.repeat(np.arange(64), np.diff(K.indptr)))
    solver, preconditioner = la.Solver(K, "direct"), la.Preconditioner(K, "jacobi")
    solver.update_values(other.data)
    preconditioner.update_values(other.data)
    assert residual(other, solver.solve(b), b) < 1e-10
    assert np.allclose(preconditioner @ b, b / other.diagonal())
    with pytest.raises(ValueError, match="expected"):
        solver.update_values(other.data[1:])
    with pytest.raises(TypeError, match="expected real numbers"):
        solver.update_values(other.data * 1j)
    with pytest.raises(TypeError, match="expected real numbers"):
        solver.update(other * (1 + 1j))
    # Columns that stand twice are added.
    data, indices, indptr = np.array([1.0, 3.0, 1.0, 2.0]), np.array([1, 1, 0, 1]), np.array([0, 3, 4])
    twice = la.Solver(sp.csr_array((data, indices, indptr), shape=(2, 2)), "direct")
    twice.update_values(np.array([2.0, 3.0, 4.0, 5.0]))
    assert np.allclose(twice.solve(np.array([9.0, 5.0])), [1.0, 1.0])


def test_a_callback_may_return_a_number_of_numpy() -> None:
    seen: list = []
    la.cg(poisson(20), np.ones(400), callback=lambda x: seen.append(1) or np.bool_(len(seen) == 3))
    assert len(seen) == 3


def test_numbers_of_other_types() -> None:
    A = poisson(6)
    whole = sp.csr_array((A.data.astype(np.int32), A.indices, A.indptr), shape=A.shape)
    x, info = la.cg(whole, np.arange(36))
    assert info == 0 and x.dtype == np.float64
    assert la.cg(A.astype(np.float32), np.ones(36, np.float32))[0].dtype == np.float32
    assert la.cg(A.astype(np.float32), np.ones(36))[0].dtype == np.float64
    assert la.bicgstab(A, np.ones(36) * 1j)[0].dtype == np.complex128
    assert la.solve(A, np.ones(36) * 1j).dtype == np.complex128
    with pytest.raises(TypeError, match="expected numbers"):
        la.cg(np.array([["a"]]), np.ones(1))
    with pytest.raises(TypeError, match="expected real numbers"):
        la.Solver(A, "cg").solve(np.ones(36) * 1j)


def test_operators_with_and_without_an_adjoint() -> None:
    A = convection(8)
    b = np.ones(64)
    without = LinearOperator(A.shape, matvec=lambda x: A @ x)
    both = LinearOperator(A.shape, matvec=lambda x: A @ x, rmatvec=lambda x: A.T @ x)
    assert residual(A, la.qmr(both, b, rtol=1e-10)[0], b) < 1e-9
    assert residual(A, la.gmres(without, b, rtol=1e-10)[0], b) < 1e-9
    for call in (la.bicg, la.qmr, la.lsqr, lambda A, b: la.solve(A, b, method="cgls"), lambda A, b: la.Solver(A, "craig").solve(b)):
        with pytest.raises(ValueError, match="^adjoint of an operator: it was given no function for it; .* needs `rmatvec`"):
            call(without, b)

    for method in ("direct", "jacobi"):
        with pytest.raises(ValueError, match="for an operator: it needs the entries of a matrix"):
            la.Solver(both, method)

    class Duck:
        shape = A.shape

        def matvec(self, x: np.ndarray) -> np.ndarray:
            return A @ x

    assert residual(A, la.bicgstab(Duck(), b, rtol=1e-10)[0], b) < 1e-9


def test_what_is_given_is_never_written() -> None:
    A, b = poisson(8), np.ones(64)
    x0 = np.full(64, 0.5)
    copies = A.data.copy(), b.copy(), x0.copy()
    x = la.cg(A, b, x0)[0]
    assert x is not x0
    assert all((p == q).all() for p, q in zip((A.data, b, x0), copies))
    # Nor read later.
    solver = la.Solver(A, "cg")
    expected = solver.solve(b)
    A.data[:], A.indices[:] = 0, 0
    assert equal(expected, solver.solve(b))


def test_guesses() -> None:
    A, b = poisson(8), np.arange(64.0)
    x = la.cg(A, b, rtol=1e-12)[0]
    assert equal(x, la.cg(A, b, x)[0])
    assert equal(x, la.cg(A, b, x[:, None])[0])
    M = sp.diags_array(np.full(64, 0.25))
    by_name, by_hand = la.cg(A, b, "Mb", M=M, maxiter=3), la.cg(A, b, M @ b, M=M, maxiter=3)
    assert equal(by_name[0], by_hand[0])
    with pytest.raises(ValueError, match="'Mb'"):
        la.cg(A, b, "Ab")


@pytest.mark.parametrize(
    "arrays, message",
    [
        ((np.ones(2), np.array([0, 5]), np.array([0, 1, 2])), r"indices\[1\]|col_idx\[1\]: expected 0 to 1, got 5"),
        ((np.ones(2), np.array([0, -1]), np.array([0, 1, 2])), r"col_idx\[1\]: expected 0 to 1, got -1"),
        ((np.ones(2), np.array([0, 1]), np.array([0, 2])), r"expected 2 \+ 1 numbers, got 2"),
        ((np.ones(2), np.array([0, 1]), np.array([0, 2, 1])), "row_ptr"),
        ((np.ones(3), np.array([0, 1]), np.array([0, 1, 2])), "length 2, got 3"),
        ((np.ones(2), np.array([0.0, 1.0]), np.array([0, 1, 2])), "expected whole numbers"),
    ],
)
def test_broken_arrays_are_refused(arrays: tuple, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        la.cg(la.Csr(*arrays, (2, 2)), np.ones(2))


def test_a_wrong_right_hand_side_is_told_with_both_shapes() -> None:
    A = poisson(4)
    for call in (la.cg, la.lsqr, la.spsolve, la.solve, la.advise, lambda A, b: la.Solver(A, "cg").solve(b)):
        with pytest.raises(ValueError, match=r"shapes of A \(16, 16\) and b \(15,\) are incompatible"):
            call(A, np.ones(15))
        with pytest.raises(TypeError, match="b: expected a dense array, got a csr_array"):
            call(A, sp.csr_array(np.ones((16, 1))))
    with pytest.raises(ValueError, match=r"expected 16 rows, got 15: shapes of A \(16, 16\) and b \(15, 2\) are incompatible"):
        la.solve(A, np.ones((15, 2)))
    with pytest.raises(TypeError, match="b: expected a dense array"):
        la.solve(A, sp.csr_array(np.ones((16, 2))))
    with pytest.raises(ValueError, match=r"shapes of A \(16, 3\) and b \(3,\)"):
        la.lsmr(A[:, :3], np.ones(3))


def test_errors_of_threads_and_devices_say_what_to_do() -> None:
    A, b = poisson(4), np.ones(16)
    calls = (
        lambda **keys: la.solve(A, b, **keys),
        lambda **keys: la.Preconditioner(A, "jacobi", **keys),
        lambda **keys: la.eigen(A, 2, **keys),
        lambda **keys: la.advise(A, b, seconds=0.1, **keys),
    )
    for call in calls:
        for threads in (-1, 0):
            with pytest.raises(ValueError, match=f"threads: expected a whole number from 1, got {threads}"):
                call(threads=threads)
        for threads in (1.5, "2"):
            with pytest.raises(TypeError, match=f"threads: expected a whole number from 1, got {threads!r}"):
                call(threads=threads)
        for backend, found in la.devices().items():
            if found == "not built in":
                for device in (backend, f"{backend}:1"):
                    with pytest.raises(ValueError, match=f"device {device}: this build .* has .*maturin build --release --features {backend}` .*wheel.sh"):
                        call(device=device)
        with pytest.raises(ValueError, match="ranks:2: this package has no ranks"):
            call(device="ranks:2")
    assert la.solve(A, b, threads=np.int64(2)).shape == (16,)


def test_errors_say_what_was_expected() -> None:
    A, b = poisson(4), np.ones(16)
    wrong = A.copy()
    wrong.data[5] = np.nan
    with pytest.raises(ValueError, match="row"):
        la.cg(wrong, b)
    b[3] = np.inf
    with pytest.raises(ValueError, match="row 3"):
        la.cg(A, b)
    b[3] = 1.0
    for call, message in [
        (lambda: la.cg(A, np.ones(17)), "expected the shape"),
        (lambda: la.cg(A, np.ones((16, 2))), "expected the shape"),
        (lambda: la.cg(A[:, :5], b), "square"),
        (lambda: la.cg(A, b, np.ones(3)), "x0"),
        (lambda: la.cg(A, b, M=np.eye(3)), "M: expected the shape"),
        (lambda: la.cg(A, b, rtol=-1), "rtol"),
        (lambda: la.cg(A, b, atol=None), "atol"),
        (lambda: la.cg(A, b, M="abacus"), "expected one of"),
        (lambda: la.solve(A, b, method="abacus"), "expected one of"),
        (lambda: la.solve(A, b, device="abacus"), "abacus"),
        (lambda: la.solve(A, b, threads=0), "threads"),
        (lambda: la.gmres(A, b, callback_type="y"), "callback_type"),
        (lambda: la.read("nothing.mtx"), "nothing.mtx"),
    ]:
        with pytest.raises((ValueError, OSError), match=message):
            call()


class OnGpu:
    """Looks like an array in the memory of a GPU, at an address that nobody may follow."""

    def __init__(self, n: int, typestr: str = "<f8", strides: object = None, readonly: bool = False) -> None:
        self.shape = (n,)
        self.__cuda_array_interface__ = {
            "shape": (n,), "typestr": typestr, "data": (1 << 40, readonly), "strides": strides, "version": 3
        }  # fmt: skip


def test_arrays_on_a_gpu_are_refused_not_copied() -> None:
    A = poisson(4)
    with pytest.raises(TypeError, match="memory of a GPU"):
        la.cg(A, OnGpu(16))
    with pytest.raises(TypeError, match="memory of a GPU"):
        la.Preconditioner(A, "jacobi") @ OnGpu(16)
    with pytest.raises(TypeError, match="give `out`"):
        la.solve(A, OnGpu(16), device="cpu")
    solver = la.Solver(A, "cg", "none", device="cpu")
    out = OnGpu(16)
    with pytest.raises(ValueError, match="cannot reach them"):
        solver.solve(OnGpu(16), out=out)
    for b, words in [
        (OnGpu(15), r"expected the shape .*shapes of A \(16, 16\) and b \(15,\) are incompatible"),
        (OnGpu(16, "<f4"), "convert it on the GPU"),
        (OnGpu(16, "<i8"), "floating-point"),
        (OnGpu(16, strides=(16,)), "contiguous"),
    ]:
        with pytest.raises((TypeError, ValueError), match=words):
            solver.solve(b, out=out)
    with pytest.raises(ValueError, match="written"):
        solver.solve(OnGpu(16), out=OnGpu(16, readonly=True))
    with pytest.raises(TypeError, match="as b is"):
        solver.solve(OnGpu(16), out=np.ones(16))
    with pytest.raises(TypeError, match="callback"):
        solver.solve(OnGpu(16), out=out, callback=lambda x: None)

def test_no_warning_of_our_own() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        la.cg(poisson(6), np.ones(36), callback=lambda x: None)
        la.gmres(poisson(6), np.ones(36), callback=lambda r: None, callback_type="pr_norm")
