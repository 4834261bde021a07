"""Times a solve of whole problems by `la.solve` beside what else Python offers, set-ups included, to a true relative residual of 1e-8.

    problems.py [small]      `small` takes the large problems at a quarter of their unknowns

Each row has our milliseconds, and the time of the others as a multiple of it; in brackets the residual of what did not converge
within `SECONDS`. All are run in turns, `ROUNDS` times; the medians are shown."""

from __future__ import annotations

import multiprocessing
import statistics
import sys
import time
from typing import Any, Callable, Dict, List, Optional, Tuple

ROUNDS = 3
SECONDS = 60.0
RTOL = 1e-8
Solve = Callable[[Any, Any, bool], Any]


def problems(small: bool) -> Dict[str, Callable[[], Any]]:
    """The matrices by name, made when they are needed."""
    import numpy as np
    import pyamg
    import scipy.sparse as sp

    import lacuna_sparse as la

    scale = 2 if small else 1
    cube = 32 if small else 50

    def nine_points(m: int) -> Any:
        return pyamg.gallery.stencil_grid(np.array([[-1.0] * 3, [-1.0, 8.0, -1.0], [-1.0] * 3]), (m, m), format="csr")

    def anisotropic(m: int) -> Any:
        stencil = pyamg.gallery.diffusion_stencil_2d(epsilon=0.001, theta=np.pi / 3, type="FE")
        return pyamg.gallery.stencil_grid(stencil, (m, m), format="csr")

    def example(name: str) -> Callable[[], Any]:
        return lambda: sp.csr_array(pyamg.gallery.load_example(name)["A"])

    return {
        "poisson2d": lambda: sp.csr_array(pyamg.gallery.poisson((500 // scale,) * 2, format="csr")),
        "poisson3d": lambda: sp.csr_array(pyamg.gallery.poisson((cube,) * 3, format="csr")),
        "anisotropic": lambda: sp.csr_array(anisotropic(320 // scale)),
        "FE 9-point": lambda: sp.csr_array(nine_points(400 // scale)),
        "linear_elasticity": lambda: sp.csr_array(pyamg.gallery.linear_elasticity((120 // scale,) * 2, format="csr")[0]),
        "convection": lambda: sp.csr_array(la.read(f"gen:convection:{240 // scale}x{240 // scale}:50")),
        **{name: example(name) for name in ("airfoil", "bar", "knot", "local_disc_galerkin_diffusion", "recirc_flow", "helmholtz_2D")},
    }


def ours(A: Any, b: Any, symmetric: bool) -> Any:
    import lacuna_sparse as la

    return la.solve(A, b, rtol=RTOL, full_output=True)[0]


def ours_amg(A: Any, b: Any, symmetric: bool) -> Any:
    import lacuna_sparse as la

    return la.solve(A, b, method="cg" if symmetric else "gmres", preconditioner="amg", rtol=RTOL, full_output=True)[0]


def spsolve(A: Any, b: Any, symmetric: bool) -> Any:
    import scipy.sparse.linalg as sla

    return sla.spsolve(A.tocsc(), b)


def krylov(A: Any, b: Any, symmetric: bool, M: Any) -> Any:
    import scipy.sparse.linalg as sla

    # `rtol` of gmres is tested on the preconditioned residual: a tenth of it leaves room.
    return sla.cg(A, b, rtol=RTOL, M=M)[0] if symmetric else sla.gmres(A, b, rtol=RTOL / 10, M=M)[0]


def spilu(A: Any, b: Any, symmetric: bool) -> Any:
    import scipy.sparse.linalg as sla

    factors = sla.spilu(A.tocsc(), drop_tol=1e-4, fill_factor=10)
    return krylov(A, b, symmetric, sla.LinearOperator(A.shape, factors.solve, dtype=A.dtype))


def pyamg_sa(A: Any, b: Any, symmetric: bool) -> Any:
    import pyamg

    kind = "hermitian" if symmetric else "nonsymmetric"
    levels = pyamg.smoothed_aggregation_solver(A, symmetry=kind)
    return krylov(A, b, symmetric, levels.aspreconditioner())


OTHERS: List[Tuple[str, Solve]] = [("ours, amg", ours_amg), ("spsolve", spsolve), ("spilu", spilu), ("PyAMG", pyamg_sa)]


def worker(solve: Solve, A: Any, rounds: Any, answers: Any) -> None:
    """Solves each time that it is asked to, and answers with the time and the residual."""
    import numpy as np

    b = np.ones(A.shape[0], dtype=A.dtype)
    difference = abs(A - A.conj().T)
    symmetric = bool((difference.max() if difference.nnz else 0) <= 1e-12 * abs(A).max())
    while rounds.recv():
        begin = time.perf_counter()
        try:
            x = solve(A, b, symmetric)
            took = time.perf_counter() - begin
            answers.send((took, float(np.linalg.norm(b - A @ x) / np.linalg.norm(b))))
        except Exception as error:  # What a library cannot do is a cell of the table.
            answers.send((time.perf_counter() - begin, str(error)[:30]))


class Candidate:
    """A way to solve, in a process of its own that can be ended."""

    def __init__(self, solve: Solve, A: Any) -> None:
        self.times: List[float] = []
        self.left: Any = "no answer"
        there, self.rounds = multiprocessing.Pipe(False)
        self.answers, back = multiprocessing.Pipe(False)
        self.process: Optional[Any] = multiprocessing.Process(target=worker, args=(solve, A, there, back), daemon=True)
        self.process.start()

    def run(self) -> None:
        if self.process is None:
            return
        self.rounds.send(True)
        if not self.answers.poll(SECONDS):
            self.process.kill()
            self.process = None
            return
        took, self.left = self.answers.recv()
        self.times.append(took)

    def end(self) -> None:
        if self.process is not None:
            self.rounds.send(False)
            self.process.join(5)

    def solved(self) -> bool:
        return isinstance(self.left, float) and self.left <= 1.01 * RTOL and bool(self.times)

    def time(self) -> float:
        return statistics.median(self.times)


def main(small: bool) -> None:
    print("| problem | n | la.solve, ms | " + " | ".join(name for name, _ in OTHERS) + " |")
    print("|---|--:|--:|" + "--:|" * len(OTHERS))
    slower: List[str] = []
    for name, make in problems(small).items():
        A = make()
        candidates = [Candidate(solve, A) for solve in [ours] + [other for _, other in OTHERS]]
        # The first run of a process loads and warms it.
        for round in range(ROUNDS + 1):
            for candidate in candidates:
                candidate.run()
                if round == 0 and candidate.process is not None and candidate.times and candidate.times[0] < SECONDS / 6:
                    candidate.times.clear()
        first, others = candidates[0], candidates[1:]
        cells = []
        for (other, _), candidate in zip(OTHERS, others):
            left = candidate.left
            told = f"{left:.0e}" if isinstance(left, float) else str(left)
            cells.append(f"{candidate.time() / first.time():.2f}" if candidate.solved() else f"({told})")
            if candidate.solved() and candidate.time() < first.time():
                slower.append(f"{name}: {other}")
        shown = f"{1e3 * first.time():.2f}" if first.solved() else f"({first.left})"
        print(f"| {name} | {A.shape[0]} | {shown} | " + " | ".join(cells) + " |", flush=True)
        for candidate in candidates:
            candidate.end()
    print(f"\nfaster than la.solve: {', '.join(slower) or 'none'}")


if __name__ == "__main__":
    main("small" in sys.argv[1:])
