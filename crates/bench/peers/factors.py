"""Incomplete factors: ours beside those of Eigen, SciPy and PETSc. See factors.sh.

    factors.py BINARY EIGEN PETSC DIRECTORY THREADS MATRIX.mtx ...
    factors.py scipy gmres|bicgstab A.npz b.petsc      one solve: iterations, seconds of set-up and of solve, true residual

The right-hand side of A.mtx is A_b.mtx beside it, else ones. Conjugate gradients run only if the matrix is symmetric with a positive
diagonal. Cells are `iterations set-up+solve=total`. The summary compares the best of a peer with the best of ours, then pairs of
solvers with like factors. It has geometric means of the ratios of totals, set-ups and solves, and the least ratio of totals. Times are
those of the fastest of three runs in one process, so that what a process does once is in none: opening the device, `PetscInitialize`,
imports, first touches of memory."""
import json
import math
import os
import subprocess
import sys
import time

LIMIT = 60  # seconds of a solver, with reading
RUNS = 3  # in a process, of which the fastest counts
LONG = 5  # seconds of a run after which there is no other
AGAIN = 3  # solves more from the x there is, while the true residual is above 1e-8
SOLVED = 1.01e-8
OURS = {"cg+ic0": "cg ic0", "bicgstab+ilu0": "bicgstab ilu0", "gmres+ilut": "gmres ilut:drop=0.001,fill=10"}
RIGHT = "-ksp_pc_side right -ksp_norm_type unpreconditioned"  # stop by the residual itself
PETSC = {"cg+icc": ("cg", "-ksp_norm_type unpreconditioned", "icc"), "bicgstab+ilu0": ("bcgs", RIGHT, "ilu")}
LIKE = {
    "eigen cg+ic": "lacuna cg+ic0",
    "petsc cg+icc": "lacuna cg+ic0",
    "petsc bicgstab+ilu0": "lacuna bicgstab+ilu0",
    "eigen bicgstab+ilut": "lacuna gmres+ilut",
    "scipy bicgstab+spilu": "lacuna gmres+ilut",
    "scipy gmres+spilu": "lacuna gmres+ilut",
}


def most_iterations(n):
    """The limit of `lacuna solve`, for everyone."""
    return min(max(10 * n, 1000), 100000)


def scipy_solve(method, matrix, rhs):
    import numpy as np
    import scipy.sparse as sparse
    import scipy.sparse.linalg as linalg

    a = sparse.load_npz(matrix).tocsr()
    b = np.fromfile(rhs, ">f8", offset=8).astype(float)
    columns = a.tocsc()
    solve = {"gmres": linalg.gmres, "bicgstab": linalg.bicgstab}[method]
    most = most_iterations(a.shape[0])
    options = {"maxiter": most}
    if method == "gmres":
        options = {"restart": 50, "maxiter": most // 50, "callback_type": "pr_norm"}
    iterations = [0]

    def count(_):
        iterations[0] += 1

    runs = []
    for _ in range(RUNS):
        iterations[0] = 0
        start = time.perf_counter()
        factors = linalg.spilu(columns, drop_tol=1e-3, fill_factor=10)
        ready = time.perf_counter()
        m = linalg.LinearOperator(a.shape, factors.solve, dtype=a.dtype)
        x = np.zeros_like(b)
        for _ in range(1 + AGAIN):
            x, _ = solve(a, b, x0=x, M=m, rtol=1e-8, callback=count, **options)
            residual = np.linalg.norm(b - a @ x) / np.linalg.norm(b)
            if residual <= 1e-8:
                break
        end = time.perf_counter()
        runs.append((end - start, iterations[0], ready - start, end - ready, residual))
        if end - start > LONG:
            break
    print(*min(runs)[1:])


def commands(binary, eigen, petsc, scratch, threads, path):
    """Writes the matrix and the right-hand side in the forms that the peers read. Returns the matrix and the command of every solver."""
    import numpy as np
    import scipy.io
    import scipy.sparse as sparse

    at = lambda name: os.path.join(scratch, "factors" + name)
    for form in ".petsc", ".npz":
        subprocess.run([binary, "convert", path, at(form), "--quiet"], check=True)
    a = sparse.load_npz(at(".npz")).tocsr()
    side = path.replace(".mtx", "_b.mtx")
    side = side if os.path.exists(side) else None
    b = scipy.io.mmread(side).ravel() if side else np.ones(a.shape[0])
    with open(at("-b.petsc"), "wb") as file:
        file.write(np.array([1211214, b.size], ">i4").tobytes() + b.astype(">f8").tobytes())

    most = str(most_iterations(a.shape[0]))
    all = {}
    for name, words in OURS.items():
        method, precond = words.split()
        options = ["--method", method, "--precond", precond, "--threads", threads, "--repeat", str(RUNS), "-q", "--json", "-"]
        all[f"lacuna {name}"] = [binary, "solve", path, *options, *(["--rhs", side] if side else [])]
    for name, kind in {"cg+ic": "ic", "bicgstab+ilut": "ilut"}.items():
        all[f"eigen {name}"] = [eigen, kind, at(".petsc"), at("-b.petsc"), most]
    for method in "gmres", "bicgstab":
        all[f"scipy {method}+spilu"] = [sys.executable, __file__, "scipy", method, at(".npz"), at("-b.petsc")]
    for name, (method, options, factors) in PETSC.items():
        files = ["-f", at(".petsc"), "-rhs", at("-b.petsc"), "-again", str(AGAIN), "-repeat", str(RUNS)]
        krylov = f"-ksp_type {method} {options} -ksp_max_it {most} -ksp_divtol 1e99".split()
        all[f"petsc {name}"] = [petsc, *files, *krylov, "-pc_type", factors]
        ranks = ["env", "OMP_NUM_THREADS=1", "mpirun", "--oversubscribe", "-n", threads]
        all[f"petsc-ranks {name}"] = [*ranks, petsc, *files, *krylov, "-pc_type", "bjacobi", "-sub_pc_type", factors]
    return a, all


def run(command):
    """Iterations, seconds of set-up and of solve, and whether it was solved."""
    done = subprocess.run(["timeout", "-k", "5", str(LIMIT), *command], capture_output=True, text=True, check=False)
    try:
        if command[1] == "solve":
            told = json.loads(done.stdout)
            return told["iterations"], told["time"]["setup"], told["time"]["solve"], told["true_residual"] <= SOLVED
        iterations, setup, solve, residual = map(float, done.stdout.split()[-4:])
        return int(iterations), setup, solve, residual <= SOLVED
    except (ValueError, TypeError):
        return 0, LIMIT, LIMIT, False


def measure(solvers):
    """The results of the solvers that solve."""
    results = {name: run(command) for name, command in solvers.items()}
    return {name: result for name, (*result, solved) in results.items() if solved}


def cell(iterations, setup, solve):
    return f"{iterations} {1e3 * setup:.2f}+{1e3 * solve:.2f}={1e3 * (setup + solve):.2f}"


def line(label, *cells):
    print(f"{label:<48}", *(f"{cell:>7}" for cell in cells))


def summary(label, peer, ours):
    """One line that compares two solvers by their times, (set-up, solve) of each matrix."""
    both = [matrix for matrix in peer if matrix in ours]
    if not both:
        return
    parts = {"total": sum, "set-up": lambda t: t[0], "solve": lambda t: t[1]}
    ratios = {part: [of(peer[matrix]) / of(ours[matrix]) for matrix in both] for part, of in parts.items()}
    means = (math.exp(sum(map(math.log, all)) / len(all)) for all in ratios.values())
    least = min(ratios["total"])
    cells = (f"{value:.2f}" for value in (*means, least))
    line(label, len(peer), len(ours), len(both), *cells, both[ratios["total"].index(least)])


def main(binary, eigen, petsc, scratch, threads, *paths):
    os.environ["OMP_NUM_THREADS"] = threads
    times, kinds = {}, {"symmetric": [], "general": []}
    for path in paths:
        matrix = os.path.basename(path).removesuffix(".mtx")
        a, solvers = commands(binary, eigen, petsc, scratch, threads, path)
        definite = (a != a.T).nnz == 0 and a.diagonal().min() > 0
        if not times:
            print(f"{'matrix':<28}{'n':>8}{'nnz':>9}", *(f"{name:>32}" for name in solvers))
        best = measure({name: command for name, command in solvers.items() if definite or " cg+" not in name})
        cells = (cell(*best[name]) if name in best else "-" for name in solvers)
        print(f"{matrix:<28}{a.shape[0]:>8}{a.nnz:>9}", *(f"{text:>32}" for text in cells), flush=True)
        times[matrix] = {name: (setup, solve) for name, (_, setup, solve) in best.items()}
        kinds["symmetric" if definite else "general"].append(matrix)

    def best_of(solver, matrices=times):
        """The least times by matrix of the solvers whose names begin so."""
        all = {matrix: [t for name, t in times[matrix].items() if name.startswith(solver)] for matrix in matrices}
        return {matrix: min(least, key=sum) for matrix, least in all.items() if least}

    print()
    line("time of a peer / ours", "solved", "ours", "both", "total", "set-up", "solve", "least", "at")
    for peer in "eigen", "scipy", "petsc", "petsc-ranks":
        for kind, matrices in {**kinds, "all": times}.items():
            summary(f"{peer} / lacuna, {kind} {len(matrices)}", best_of(f"{peer} ", matrices), best_of("lacuna ", matrices))
    for peer, ours in LIKE.items():
        summary(f"{peer} / {ours}", best_of(peer), best_of(ours))


if sys.argv[1] == "scipy":
    scipy_solve(*sys.argv[2:])
else:
    main(*sys.argv[1:])
