"""Tries and times the package on a GPU beside CuPy: a right-hand side and a solution in the memory of the GPU, solved to the same true residual.

    gpu.py [seconds]      stops beginning new rows after so many seconds (240 by default)

Needs the wheel with CUDA, and CuPy. A row has the milliseconds of a first solve (set-up included) and of one more, ours and CuPy's, which solves by the same method
without a preconditioner, as it has none of ours; `spsolve` is beside our complete factors, which are computed on the host. Every `x` must be on the GPU, and its
true residual is printed: ‖b − A x‖ / ‖b‖, computed by CuPy in double precision.
"""

from __future__ import annotations

import inspect
import sys
import time
from typing import Any, Callable, List, Tuple

import cupy as cp
import cupyx.scipy.sparse as csp
import cupyx.scipy.sparse.linalg as csl

import lacuna_sparse as la
import lacuna_sparse._operand

RTOL = 1e-8
LIMIT = 20_000
PROBLEMS = [
    ("poisson2d:1000x1000", "cg"),
    ("poisson3d:100x100x100", "cg"),
    ("poisson-p1:700", "cg"),
    ("elasticity3d:30", "cg"),
    ("convection:500x500", "gmres"),
    ("convection:200x200", "gmres"),
    ("poisson2d:100x100", "spsolve"),
    ("convection:100x100", "spsolve"),
]
failed: List[str] = []


def tolerance(solver: Callable[..., Any]) -> str:
    """The name of the relative tolerance, which versions of CuPy differ in."""
    known = inspect.signature(solver).parameters
    return "rtol" if "rtol" in known else "tol"


def on_gpu(A: Any, char: str = "d") -> Any:
    """A matrix of the host, with or without SciPy there, in the memory of the GPU."""
    arrays = (cp.asarray(A.data.astype(char)), cp.asarray(A.indices), cp.asarray(A.indptr))
    return csp.csr_matrix(arrays, shape=A.shape)


def residual(A: Any, x: Any, b: Any) -> float:
    return float(cp.linalg.norm(b - A @ x) / cp.linalg.norm(b))


def timed(call: Callable[[], Any]) -> Tuple[Any, float]:
    cp.cuda.Device().synchronize()
    begin = time.perf_counter()
    found = call()
    cp.cuda.Device().synchronize()
    return found, (time.perf_counter() - begin) * 1e3


def theirs(method: str, A: Any, b: Any) -> Any:
    if method == "spsolve":
        return csl.spsolve(A, b)
    solver = getattr(csl, method)
    keys = {tolerance(solver): RTOL, "maxiter": LIMIT}
    if method == "gmres":
        keys["restart"] = 30
    return solver(A, b, **keys)[0]


def ours(method: str) -> List[Tuple[str, str]]:
    """Method and preconditioner: the same as CuPy's, and what we would rather take."""
    if method == "spsolve":
        return [("direct", "auto")]
    name = "gmres:restart=30" if method == "gmres" else method
    return [(name, "none"), ("auto", "auto")]


def check(what: str, holds: bool) -> None:
    if not holds:
        failed.append(what)
        print("** " + what, flush=True)


def try_arrays() -> None:
    """Arrays in and out in four types, from a guess, into an array, on a stream of the caller's; those of the host are refused."""
    H = la.read("gen:poisson2d:40x40")
    for char in "fdFD":
        of_type = la._operand.Csr(H.data.astype(char), H.indices, H.indptr, H.shape)
        solver = la.Solver(of_type, "cg", "none", device="cuda")
        b = cp.ones(1600, char)
        x = solver.solve(b)
        check(f"type {char}: the kind that came in", isinstance(x, cp.ndarray) and x.dtype == b.dtype)
        A = on_gpu(H, char)
        check(f"type {char}: {residual(A, x, b):.1e}", residual(A, x, b) < (1e-4 if char in "fF" else 1e-7))
        out = cp.empty_like(b)
        check(f"type {char}: out", solver.solve(b, x0=x, out=out) is out and solver.report.iterations <= 1)
        with cp.cuda.Stream(non_blocking=True):
            late = cp.ones(1600, char) * 2
            check(f"type {char}: a stream", bool(cp.allclose(solver.solve(late), 2 * x, rtol=1e-3)))
    try:
        la.Solver(H, "cg", "none", device="cpu").solve(cp.ones(1600))
        check("an array of the GPU on the CPU is refused", False)
    except (TypeError, ValueError, RuntimeError):
        pass


def main() -> None:
    until = time.monotonic() + float(sys.argv[1] if len(sys.argv) > 1 else 240)
    print(f"lacuna {la.__version__}, CuPy {cp.__version__}, {cp.cuda.runtime.getDeviceProperties(0)['name'].decode()}")
    for backend, names, why in la._core.devices():
        print(f"{backend}: {', '.join(names) or why}")
    try_arrays()
    # The first kernels of either are compiled before anything is timed.
    small = la.read("gen:poisson2d:20x20")
    ones = cp.ones(400)
    for name in ("cg", "gmres"):
        theirs(name, on_gpu(small), ones)
        la.Solver(small, name, "none", device="cuda").solve(ones)
    print(f"{'problem':<24}{'solver':<34}{'first ms':>10}{'again ms':>10}{'iterations':>11}{'residual':>10}")
    for spec, method in PROBLEMS:
        if time.monotonic() > until:
            print("stopped: no time left")
            break
        H = la.read(f"gen:{spec}")
        A, b = on_gpu(H), cp.ones(H.shape[0])
        x, first = timed(lambda: theirs(method, A, b))
        x, again = timed(lambda: theirs(method, A, b))
        line = f"{spec:<24}{'CuPy ' + method:<34}{first:>10.1f}{again:>10.1f}{'':>11}{residual(A, x, b):>10.1e}"
        print(line, flush=True)
        for name, preconditioner in ours(method):
            made: List[Any] = []

            def whole() -> Any:
                made[:] = [la.Solver(H, name, preconditioner, rtol=RTOL, maxiter=LIMIT, device="cuda")]
                return made[0].solve(b)

            try:
                x, first = timed(whole)
                solver = made[0]
                x, again = timed(lambda: solver.solve(b))
            except Exception as error:  # a row of its own: the others go on
                check(f"{spec}: {name}: {error}", False)
                continue
            label = f"{solver.method}, {solver.preconditioner}"
            left = residual(A, x, b)
            print(f"{spec:<24}{label:<34}{first:>10.1f}{again:>10.1f}{solver.report.iterations:>11}{left:>10.1e}", flush=True)
            check(f"{spec}: {label}: x on the GPU", isinstance(x, cp.ndarray))
            check(f"{spec}: {label}: the residual is what the report says", not solver.report.converged or left <= 2 * RTOL)
    print("failed:", ", ".join(failed) or "nothing")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
