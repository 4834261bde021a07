"""Measures what the package must keep: each figure beside its bar.

    bars.py [calls] [busy] [memory] [growth] [import] [interrupt]      all of them by default

Calls are ratios to SciPy, medians of alternating runs in the same process. Everything else runs in processes of its own.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from multiprocessing import Process
from typing import Any, Callable, List, Tuple

missed: List[str] = []


def show(what: str, figure: float, bar: float, unit: str = "", note: str = "") -> None:
    """A line of a figure that must not exceed its bar."""
    ok = figure <= bar
    if not ok:
        missed.append(what)
    print(f"{'   ' if ok else '** '}{what:<58} {figure:>9.3f}{unit}  (at most {bar}{unit}) {note}", flush=True)


def alternating(ours: Callable[[], Any], theirs: Callable[[], Any], seconds: float = 1.5) -> Tuple[float, float]:
    """Medians of two calls in seconds, run in turns."""
    times: Tuple[List[float], List[float]] = ([], [])
    ours(), theirs()
    end = time.perf_counter() + seconds
    while len(times[0]) < 7 or time.perf_counter() < end and len(times[0]) < 2000:
        for call, list in zip((ours, theirs), times):
            begin = time.perf_counter()
            call()
            list.append(time.perf_counter() - begin)
    return statistics.median(times[0]), statistics.median(times[1])


def calls(label: str) -> None:
    """The table of calls."""
    import numpy as np
    import scipy.sparse.linalg as sla

    import lacuna_sparse as la

    for m in (10, 30, 100):
        A = la.read(f"gen:poisson2d:{m}x{m}")
        n = m * m
        b = np.ones(n)

        def operator() -> Any:
            return sla.LinearOperator(A.shape, lambda v: A @ v, dtype=A.dtype)

        rows: List[Tuple[str, Callable[[], Any], Callable[[], Any], float]] = [
            ("cg", lambda: la.cg(A, b), lambda: sla.cg(A, b), 0.5),
            ("bicgstab", lambda: la.bicgstab(A, b), lambda: sla.bicgstab(A, b), 0.5),
            ("gmres", lambda: la.gmres(A, b), lambda: sla.gmres(A, b), 0.5),
            ("cg, maxiter=5", lambda: la.cg(A, b, maxiter=5), lambda: sla.cg(A, b, maxiter=5), 1.5),
            ("cg, callback", lambda: la.cg(A, b, callback=lambda x: None), lambda: sla.cg(A, b, callback=lambda x: None), 1.2),
            ("cg, operator", lambda: la.cg(operator(), b), lambda: sla.cg(operator(), b), 1.1),
            ("gmres, operator", lambda: la.gmres(operator(), b), lambda: sla.gmres(operator(), b), 1.1),
        ]
        for name, ours, theirs, bar in rows:
            mine, other = alternating(ours, theirs)
            show(f"{label}n = {n}: {name}", mine / other, bar, "", f"{mine * 1e6:.0f} µs, SciPy {other * 1e6:.0f}")
        solver = la.Solver(A, "cg", "none", rtol=1e-5)
        product = alternating(lambda: A @ b, lambda: A @ b, 0.2)[0]
        setup = alternating(lambda: la.Solver(A, "cg", "none", rtol=1e-5), lambda: None, 0.5)[0]
        # Twenty products: at most 20 µs, or the matrix read that often.
        show(f"{label}n = {n}: Solver(A)", setup * 1e6, max(20.0, 10 * product * 1e6), " µs", f"a product {product * 1e6:.1f}")
        whole = alternating(lambda: solver.solve(b), lambda: None, 0.5)[0]
        inner = statistics.median([solver.solve(b) is not None and solver.report.time for _ in range(50)])
        show(f"{label}n = {n}: Solver.solve beside the solve", (whole - inner) * 1e6, 2.0, " µs", f"of {whole * 1e6:.1f}")
        updated, copied = alternating(lambda: solver.update_values(A.data), lambda: A.data.copy(), 0.5)
        show(f"{label}n = {n}: update_values", updated * 1e6, max(5.0, 2 * copied * 1e6), " µs")


def spin() -> None:
    while True:
        pass


def busy() -> None:
    """The table of calls with one busy loop a core beside it."""
    loops = [Process(target=spin, daemon=True) for _ in range(len(os.sched_getaffinity(0)))]
    for loop in loops:
        loop.start()
    try:
        calls("busy, ")
    finally:
        for loop in loops:
            loop.kill()


def python(code: str, *arguments: str, **keys: Any) -> str:
    done = subprocess.run([sys.executable, *arguments, "-c", code], capture_output=True, text=True, timeout=300, **keys)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    return done.stdout


MEMORY = """
import resource, sys
import numpy as np, lacuna_sparse as la
def now():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096
def peak():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM"))
A = la.read("gen:{spec}")
if "{values}" == "random":
    A.data = A.data + np.random.default_rng(1).random(A.data.size)
b = np.ones(A.shape[0])
size = A.data.nbytes + A.indices.nbytes + A.indptr.nbytes
vectors = b.nbytes
open("/proc/self/clear_refs", "w").write("5")
before = now()
s = la.Solver(A, {arguments})
kept, most = now() - before, peak() - before
s.solve(b)
print(size, kept, most, peak() - before, vectors)
"""


def memory() -> None:
    """What a solver keeps beside the matrix, and the peak of its set-up."""
    # With the five vectors of the method, and on the CPU: looking for devices loads the drivers there are.
    for spec, values, arguments in [
        ("poisson3d:110x110x110", "same", "'cg', 'none', device='cpu'"),
        ("poisson3d:110x110x110", "same", "'cg', 'none', format='csr', device='cpu'"),
        ("poisson3d:110x110x110", "random", "'cg', 'none', device='cpu'"),
    ]:
        code = MEMORY.format(spec=spec, values=values, arguments=arguments)
        size, kept, most, whole, vectors = map(int, python(code).split())
        note = f"A {size / 1e6:.0f} MB, a vector {vectors / 1e6:.0f}, kept {kept / 1e6:.0f}, peak of a solve {whole / 1e6:.0f}"
        show(f"Solver(A, {arguments}), {values} values: peak beside A", most / size, 1.5, " A", note)


GROWTH = """
import os, numpy as np, lacuna_sparse as la
A = la.read("gen:poisson2d:10x10"); b = np.ones(100)
solver = la.Solver(A, "cg", "jacobi")
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096
def threads():
    return len(os.listdir("/proc/self/task"))
def work(many):
    for _ in range(many): la.cg(A, b)
    for _ in range(many // 10): la.Solver(A, "gmres", "ilu0").solve(b)
    for _ in range(many): solver.update_values(A.data)
work(1000)
before = resident(), threads()
work(10000)
print((resident() - before[0]) / 1e6, threads() - before[1])
"""


def growth() -> None:
    """10⁴ calls of cg, 10³ solvers, 10⁴ new values."""
    grown, threads = map(float, python(GROWTH).split())
    show("growth in 10^4 cg, 10^3 Solver, 10^4 update_values", grown, 1.0, " MB")
    show("threads more after them", threads, 0.0)


def imports() -> None:
    """Time of the import beyond NumPy's."""
    code = "import time; import numpy; t = time.perf_counter(); import lacuna_sparse; print(time.perf_counter() - t)"
    show("import beyond NumPy", statistics.median(float(python(code)) for _ in range(5)), 0.3, " s")


INTERRUPTED = """
import os, signal, sys, threading, time, warnings
import numpy as np, lacuna_sparse as la
{prologue}
at = [0.0]
def stop():
    time.sleep({wait})
    at[0] = time.monotonic()
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=stop, daemon=True).start()
try:
    while True:
        {what}
except KeyboardInterrupt:
    print(time.monotonic() - at[0])
"""
BIG = "A = la.read('gen:poisson2d:1000x1000'); b = np.ones(A.shape[0]); R = A.copy(); R.data = R.data + np.random.default_rng(0).random(R.data.size) * 1e-3"
CUBE = "A = la.read('gen:poisson3d:48x48x48'); b = np.ones(A.shape[0])"
METHODS = ("cg", "bicg", "bicgstab", "cgs", "gmres", "minres", "qmr", "tfqmr")
INTERRUPTS = [
    *((f"la.{name}", BIG, f"la.{name}(A, b, rtol=1e-300, maxiter=10**6)") for name in METHODS),
    ("la.lsqr", BIG, "la.lsqr(A, b, atol=1e-300, iter_lim=10**6)"),
    ("la.lsmr", BIG, "la.lsmr(A, b, atol=1e-300, maxiter=10**6)"),
    ("la.gmres, restart=300", BIG, "la.gmres(A, b, restart=300, rtol=1e-300, maxiter=10**6)"),
    ("la.gmres, restart=300, another matrix", BIG, "la.gmres(R, b, restart=300, rtol=1e-300, maxiter=10**6)"),
    ("planning of long cycles", CUBE, "la.gmres(A, b, restart=900, maxiter=1, rtol=1e-300)"),
    ("set-ups of Solver, format by choice", BIG, "la.Solver(R, 'cg', 'none')"),
    ("set-ups of Solver, all by choice", BIG, "la.Solver(R)"),
    ("la.solve", BIG, "la.solve(R, b)"),
    ("order rcm", BIG, "la.Solver(R, 'cg', 'none', order='rcm')"),
    *((f"Preconditioner {name}", BIG, f"la.Preconditioner(A, '{name}')") for name in ("jacobi", "ilu0", "ilut", "spai", "fsai", "amg")),
    ("Preconditioner direct", CUBE, "la.Preconditioner(A, 'direct')"),
    ("advise", CUBE, "la.advise(A, b)"),
    ("refine", BIG, "la.Solver(R, 'cg', 'amg', refine=True).solve(b)"),
    ("several right-hand sides", BIG, "la.Solver(R, 'cg', 'none', rtol=1e-300, maxiter=10**6).solve(np.ones((b.size, 3)))"),
]


def interrupt() -> None:
    """How long Ctrl-C takes, the worst of three moments of each."""
    for name, prologue, what in INTERRUPTS:
        took = [
            float(python(INTERRUPTED.format(prologue=prologue, what=what, wait=wait))) for wait in (0.3, 0.65, 1.2)
        ]
        show(f"Ctrl-C in {name}", max(took), 0.2, " s")


PARTS = {
    "calls": lambda: calls(""),
    "busy": busy,
    "memory": memory,
    "growth": growth,
    "import": imports,
    "interrupt": interrupt,
}

if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        print(f"== {part}", flush=True)
        PARTS[part]()
    print("missed:", ", ".join(missed) or "nothing")
    sys.exit(1 if missed else 0)
