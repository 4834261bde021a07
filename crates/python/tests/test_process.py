"""Signals, forks, spawned processes, imports, memory: each in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROLOGUE = """
import numpy as np, scipy.sparse as sp, lacuna_sparse as la
A = la.read("gen:poisson2d:{m}x{m}")
b = np.ones(A.shape[0])
"""


def run(code: str, **keys: object) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, **keys)


INTERRUPTED = """
import os, signal, threading, time
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


@pytest.mark.parametrize(
    "what",
    [
        "la.cg(A, b, rtol=1e-300, atol=1e-300, maxiter=10**9)",
        "la.qmr(A, b, rtol=1e-300, atol=1e-300, maxiter=10**9)",
        "la.Solver(A, 'gmres:restart=300', 'none', rtol=1e-15, maxiter=10**6).solve(b)",
        "la.Solver(A, 'cg', 'none', rtol=1e-300, maxiter=10**9).solve(np.ones((b.size, 3)))",
        "la.Solver(A, 'cg', 'amg', refine=True).solve(b)",
        "la.Solver(A, order='rcm')",
        "la.Preconditioner(A, 'spai')",
        "la.Preconditioner(A, 'ilut')",
        "la.Preconditioner(A, 'direct')",
        "la.advise(A, b)",
    ],
)
def test_an_interrupt_is_heard_soon(what: str) -> None:
    values = "A.data = A.data + np.random.default_rng(0).random(A.data.size) * 1e-3\n"
    done = run(PROLOGUE.format(m=700) + values + INTERRUPTED.format(what=what, wait=1.0))
    took = float(done.stdout)
    # Threads wait for a processor where other programs run; this one has two itself.
    waits = max(1.0, 2 * os.getloadavg()[0] / len(os.sched_getaffinity(0)))
    assert took < 0.2 * waits, f"{took:.2f} s, with {waits:.1f} programs a core"


def test_a_fork_works_with_objects_of_its_own() -> None:
    code = """
import os
import numpy as np, lacuna_sparse as la
A = None
def work():
    A = la.read("gen:poisson2d:200x200")
    b = np.ones(40000)
    assert la.cg(A, b)[1] == 0 and la.cg(A, b, M="amg")[1] == 0
    return la.Solver(A).solve(b)
def child(what):
    pid = os.fork()
    if pid == 0:
        try:
            what()
            os._exit(0)
        except RuntimeError as error:
            os._exit(7 if "forked" in str(error) else 1)
        except BaseException as error:
            print(error, flush=True)
            os._exit(2)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
print(child(work))
x = work()
print(child(lambda: work() - x), child(lambda: child(work) and 1 / 0))
solver = la.Solver(la.read("gen:poisson2d:20x20"), "cg", "jacobi")
kept = solver.solve(np.ones(400))
print(child(lambda: solver.solve(np.ones(400))), child(work), (solver.solve(np.ones(400)) == kept).all())
"""
    done = run(code)
    assert done.stdout.split() == ["0", "0", "0", "7", "0", "True"], done.stdout + done.stderr


def test_multiprocessing_by_fork() -> None:
    code = PROLOGUE.format(m=100) + """
import multiprocessing as mp
def work(k):
    return la.solve(A, k * b)
if __name__ == "__main__":
    expected = [la.solve(A, k * b) for k in (1, 2, 3)]
    with mp.get_context("fork").Pool(2) as pool:
        found = pool.map(work, [1, 2, 3])
    print(all((x == y).all() for x, y in zip(found, expected)))
"""
    done = run(code)
    assert done.stdout.strip() == "True", done.stderr


def test_a_spawned_process_gets_a_solver() -> None:
    code = PROLOGUE.format(m=20) + """
import multiprocessing as mp
if __name__ == "__main__":
    solver = la.Solver(A, "cg", "jacobi")
    with mp.get_context("spawn").Pool(2) as pool:
        found = pool.map(solver.solve, [b, 2 * b])
    print((found[0] == solver.solve(b)).all())
"""
    path = os.environ.get("TMPDIR", "/tmp") + f"/lacuna_spawn_{os.getpid()}.py"
    with open(path, "w") as file:
        file.write(code)
    try:
        done = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=120)
    finally:
        os.remove(path)
    assert done.stdout.strip() == "True", done.stderr


def test_scipy_is_imported_only_where_its_objects_come_in() -> None:
    done = run("""
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "scipy":
            raise ImportError("there is no SciPy here")
sys.meta_path.insert(0, Refuse())
import numpy as np, lacuna_sparse as la
A = la.read("gen:poisson2d:10x10")
x = la.solve(A, np.ones(100))
print(type(A).__name__, "scipy" in sys.modules, float(abs(A.toarray() @ x - 1).max()) < 1e-6, la.cg(A, np.ones(100), M="amg")[1])
""")
    assert done.stdout.split() == ["Csr", "False", "True", "0"], done.stderr


def test_a_search_that_fails_does_not_import_scipy() -> None:
    done = run("""
import pickle, sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "scipy":
            raise ImportError("there is no SciPy here")
sys.meta_path.insert(0, Refuse())
import numpy as np, lacuna_sparse as la
try:
    la.lobpcg(la.read("gen:poisson2d:25x25"), np.eye(625, 1), largest=False, maxiter=2)
except la.EigenNotConverged as error:
    again = pickle.loads(pickle.dumps(error))
    print(type(error) is type(again) is la.EigenNotConverged, "scipy" in sys.modules, str(error) == str(again))
""")
    assert done.stdout.split() == ["True", "False", "True"], done.stderr


def test_workers_raise_what_they_do_not_solve() -> None:
    code = PROLOGUE.format(m=25) + """
import multiprocessing as mp
def solving(rtol):
    return la.solve(A, b, method="cg", preconditioner="none", maxiter=3, strict=True, rtol=rtol)
def searching(maxiter):
    return la.lobpcg(A, np.eye(625, 1), largest=False, maxiter=maxiter)
if __name__ == "__main__":
    from scipy.sparse.linalg import ArpackNoConvergence
    with mp.get_context("fork").Pool(1) as pool:
        try:
            pool.apply(solving, [1e-8])
        except la.NotConverged as error:
            print(error.report.reason, error.report.iterations, error.x.shape)
        try:
            pool.apply(searching, [2])
        except ArpackNoConvergence as error:
            print(error.outcome["reason"], len(error.eigenvalues))
"""
    done = run(code)
    assert done.stdout.split("\n")[:2] == ["limit 3 (625,)", "limit 0"], done.stdout + done.stderr


def test_nothing_grows() -> None:
    done = run(PROLOGUE.format(m=12) + """
import os, threading
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096
def threads():
    return len(os.listdir("/proc/self/task"))
solver = la.Solver(A, "cg", "jacobi")
def work(count):
    for _ in range(count):
        la.cg(A, b)
        la.cg(A, b, callback=lambda x: None)
        la.Solver(A, "gmres", "ilu0").solve(b)
        la.Preconditioner(A, "amg") @ b
        solver.update_values(A.data)
        solver.solve(b)
work(100)
before = resident(), threads()
work(400)
print((resident() - before[0]) / 1e6, threads() - before[1])
""")
    grown, threads = map(float, done.stdout.split())
    assert grown < 3.0 and threads <= 0, done.stdout


def test_threads_by_the_environment() -> None:
    code = "import lacuna_sparse as la; print(la.Solver(la.read('gen:poisson2d:5x5'), 'cg')._core.device[2])"
    done = run(code, env={**os.environ, "LACUNA_NUM_THREADS": "3"})
    assert done.stdout.strip() == "3", done.stderr
    done = run(code, env={**os.environ, "LACUNA_NUM_THREADS": "many"})
    assert "LACUNA_NUM_THREADS: expected a whole number" in done.stderr


def test_the_module_runs() -> None:
    done = subprocess.run([sys.executable, "-m", "lacuna_sparse"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and "converged" in done.stdout, done.stderr
