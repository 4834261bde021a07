"""SciPy: its conjugate gradients, BiCGSTAB and GMRES without preconditioner, conjugate gradients with Jacobi's until
converged, its product, its reading of Matrix Market files, its assembly from triplets and its conversions.

Arguments as of the others, see peer.hpp: FILE NAME TYPE REPEATS METHOD,METHOD,...
"""
import inspect
import json
import statistics
import sys
import time

import numpy as np
import scipy.io
import scipy.sparse as sparse
import scipy.sparse.linalg as linalg

ITERATIONS = 30
TOLERANCE = 1e-8


def read(path, dtype):
    """A matrix from PETSc's binary form, as `lacuna generate SPEC --output NAME.petsc` writes it."""
    with open(path, "rb") as file:
        kind, rows, cols, nnz = (int(size) for size in np.fromfile(file, ">i4", 4))
        if kind != 1211216:
            sys.exit(f"{path} is not a matrix file")
        row_ptr = np.concatenate([[0], np.cumsum(np.fromfile(file, ">i4", rows))]).astype(np.int32)
        col_idx = np.fromfile(file, ">i4", nnz).astype(np.int32)
        values = np.fromfile(file, ">f8", nnz).astype(dtype)
    return sparse.csr_matrix((values, col_idx, row_ptr), shape=(rows, cols))


def median(repeats, work):
    """The median time of `work` in seconds, over `repeats` calls or as many as fit 20 ms; one call goes before."""
    work()
    times, begin = [], time.perf_counter()
    while len(times) < repeats or time.perf_counter() - begin < 0.02:
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def main():
    path, name, number, repeats, methods = sys.argv[1:6]
    a = read(path, np.float32 if number == "f32" else np.float64)
    b = np.ones(a.shape[0], a.dtype)
    # The name of the relative tolerance has changed.
    tolerance = "rtol" if "rtol" in inspect.signature(linalg.cg).parameters else "tol"
    never = {tolerance: 1e-100, "atol": 0.0}

    def converge():
        jacobi = sparse.diags(1 / a.diagonal())
        count = [0]
        linalg.cg(a, b, M=jacobi, callback=lambda _: count.__setitem__(0, count[0] + 1), **{tolerance: TOLERANCE})
        return count[0]

    def triplets():
        order = np.random.default_rng(1).permutation(a.nnz)
        coo = a.tocoo()
        return sparse.coo_matrix((coo.data[order], (coo.row[order], coo.col[order])), a.shape)

    unordered = triplets() if "assemble" in methods else None
    market = path.removesuffix(".petsc") + ".mtx"
    work = {
        "cg": lambda: linalg.cg(a, b, maxiter=ITERATIONS, **never),
        "bicgstab": lambda: linalg.bicgstab(a, b, maxiter=ITERATIONS, **never),
        "gmres": lambda: linalg.gmres(a, b, restart=ITERATIONS, maxiter=1, **never),
        "spmv": lambda: a @ b,
        "jacobi-cg": converge,
        "read": lambda: scipy.io.mmread(market).tocsr(),
        "assemble": lambda: unordered.tocsr(),
        "to-coo": lambda: a.tocoo(),
        "to-dia": lambda: a.todia(),
        "to-bcsr3": lambda: a.tobsr((3, 3)),
    }
    for method in methods.split(","):
        line = {"kind": "peer", "peer": "scipy", "threads": 1, "method": method, "matrix": name, "type": number}
        count = ITERATIONS if method in ("cg", "bicgstab", "gmres") else 1
        if method == "jacobi-cg":
            count = converge()
            stop = "to |b - A x| <= 1e-8 |b|"
            line = {**line, "method": "cg", "precond": "jacobi", "stop": stop, "iterations": count}
        us = 1e6 * median(int(repeats), work[method]) / count
        print(json.dumps({**line, "n": a.shape[0], "fresh_us": us, "again_us": us}))


main()
