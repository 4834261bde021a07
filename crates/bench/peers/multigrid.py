"""One row of multigrid.sh: iterations, seconds of the set-up and of the solve, and the true residual; the least of three runs in
one process.

    multigrid.py sa|rs A.npz               PyAMG's smoothed aggregation, or Ruge and Stueben's method, with conjugate gradients
    multigrid.py ours BINARY MATRIX ...    `lacuna solve` with these arguments"""
import json
import subprocess
import sys
import time

kind, path, *rest = sys.argv[1:]
runs = []
if kind == "ours":
    command = [path, "solve", *rest, "--repeat", "3", "--quiet", "--json", "-"]
    told = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    iterations, residual = told["iterations"], told["true_residual"]
    runs.append((told["time"]["setup"], told["time"]["solve"]))
else:
    import numpy as np
    import pyamg
    import scipy.sparse as sp

    a = sp.load_npz(path).tocsr()
    b = np.ones(a.shape[0])
    make = {"sa": pyamg.smoothed_aggregation_solver, "rs": pyamg.ruge_stuben_solver}[kind]
    for _ in range(3):
        start = time.perf_counter()
        levels = make(a)
        ready = time.perf_counter()
        residuals = []
        x = levels.solve(b, tol=1e-8, accel="cg", maxiter=1000, residuals=residuals)
        runs.append((ready - start, time.perf_counter() - ready))
    iterations, residual = len(residuals) - 1, np.linalg.norm(b - a @ x) / np.linalg.norm(b)
setup, solve = (min(times) for times in zip(*runs))
print(iterations, f"{setup:.3f} {solve:.3f} {residual:.1e}")
