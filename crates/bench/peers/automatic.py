"""What solves a matrix where nobody chose: `lacuna solve` beside SciPy's spsolve, its GMRES and BiCGSTAB with incomplete
factors, and PETSc as it comes, on the same matrices and right-hand sides, to a true residual of 1e-8. See automatic.sh.

    automatic.py BINARY PETSC DIRECTORY MATRIX.mtx ...
    automatic.py scipy METHOD A.mtx [B.mtx]        one solve: seconds and the true residual

The right-hand side of A.mtx is A_b.mtx beside it, else ones."""
import json
import math
import os
import subprocess
import sys
import time

LIMIT = 60  # seconds a solve
RUNS = 3  # of which the fastest counts, where they are short
SOLVED = 1.01e-8


def scipy_solve(method, path, rhs):
    import numpy as np
    import scipy.io
    import scipy.sparse.linalg as linalg

    a = scipy.io.mmread(path).tocsc()
    b = scipy.io.mmread(rhs).ravel() if rhs else np.ones(a.shape[0])
    rows = a.tocsr()
    start = time.perf_counter()
    if method == "spsolve":
        x = linalg.spsolve(a, b)
    else:
        factors = linalg.spilu(a)
        m = linalg.LinearOperator(a.shape, factors.solve, dtype=a.dtype)
        solve = {"gmres": linalg.gmres, "bicgstab": linalg.bicgstab}[method]
        x, _ = solve(rows, b, M=m, rtol=1e-8, maxiter=1000)
    seconds = time.perf_counter() - start
    print(seconds, np.linalg.norm(b - rows @ x) / np.linalg.norm(b))


def run(*arguments):
    """The output of a command, nothing if it fails or takes too long."""
    try:
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=LIMIT, check=False)
    except subprocess.TimeoutExpired:
        return ""
    return done.stdout


def ours(binary, path, rhs):
    told = run(binary, "solve", path, *(["--rhs", rhs] if rhs else []), "--quiet", "--json", "-")
    if not told:
        return LIMIT, math.inf
    told = json.loads(told)
    return told["time"]["setup"] + told["time"]["solve"], told["true_residual"] or 0


def scipy_row(method):
    def row(path, rhs):
        words = run(sys.executable, __file__, "scipy", method, path, *([rhs] if rhs else [])).split()
        return tuple(map(float, words)) if len(words) == 2 else (LIMIT, math.inf)

    return row


def petsc(binary, convert, scratch):
    def row(path, rhs):
        form = os.path.join(scratch, "automatic.petsc")
        if os.path.exists(form):
            os.remove(form)  # that of the matrix before
        run(convert, "convert", path, form, "--quiet")
        if not os.path.exists(form):
            return LIMIT, math.inf
        options = ["-f", form]
        if rhs:
            side = os.path.join(scratch, "automatic-b.petsc")
            run(convert, "convert", rhs, side, "--quiet")
            options += ["-rhs", side]
        words = run(binary, *options).split()
        return (float(words[2]) + float(words[3]), float(words[4])) if len(words) == 5 else (LIMIT, math.inf)

    return row


def main(binary, petsc_binary, scratch, *paths):
    solvers = {
        "lacuna": lambda path, rhs: ours(binary, path, rhs),
        "spsolve": scipy_row("spsolve"),
        "gmres+spilu": scipy_row("gmres"),
        "bicgstab+spilu": scipy_row("bicgstab"),
        "petsc": petsc(petsc_binary, binary, scratch),
    }
    print("%-36s" % "matrix", *("%15s" % name for name in solvers))
    solved, ratios = dict.fromkeys(solvers, 0), {name: [] for name in solvers}
    for path in paths:
        rhs = path.replace(".mtx", "_b.mtx")
        rhs = rhs if os.path.exists(rhs) else None
        cells, times = [], {}
        for name, solver in solvers.items():
            seconds, residual = solver(path, rhs)
            if seconds < 1:
                seconds = min(seconds, *(solver(path, rhs)[0] for _ in range(RUNS - 1)))
            if residual <= SOLVED:
                times[name], solved[name] = seconds, solved[name] + 1
            cells.append(f"{1e3 * seconds:.1f} ms" if residual <= SOLVED else "-" if residual == math.inf else f"({residual:.0e})")
        for name, seconds in times.items():
            if "lacuna" in times:
                ratios[name].append(seconds / times["lacuna"])
        print("%-36s" % os.path.basename(path)[:-4], *("%15s" % cell for cell in cells), flush=True)
    print("%-36s" % f"solved of {len(paths)}", *("%15d" % solved[name] for name in solvers))
    mean = lambda all: math.exp(sum(map(math.log, all)) / len(all)) if all else math.nan
    print("%-36s" % "times ours where both solve", *("%15.2f" % mean(ratios[name]) for name in solvers))


if sys.argv[1] == "scipy":
    scipy_solve(*sys.argv[2:4], sys.argv[4] if len(sys.argv) > 4 else None)
else:
    main(*sys.argv[1:])
