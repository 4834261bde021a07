"""Eigenvalues: `lacuna eigen` beside SciPy, PRIMME and SLEPc, on one thread, and how many values each of them misses. See eigenvalues.sh.

    eigenvalues.py BINARY DIRECTORY [MATRIX.mtx ...]
    eigenvalues.py one PEER A.npz COUNT WHICH SECONDS     one search: seconds, then the values

Rows are Laplacians whose values are known in closed form, and the given matrices, whose values are those of a dense problem up to
`DENSE` rows. Everything is asked for |A x - l x| <= 1e-8 |l|, or what comes nearest to it. A cell has milliseconds from a matrix in memory
to the vectors, set-up included, the least of `RUNS`; `M2`: two values are missing or wrong; `-`: refused, failed or more than `LIMIT` s."""

import glob
import json
import math
import os
import subprocess
import sys
import time

LIMIT = 60.0
RUNS = 3
DENSE = 5000
RTOL = 1e-8
# The interpreter that has SLEPc: that of the system.
SLEPC = "/usr/bin/python3"
PEERS = ["scipy SI", "scipy A", "scipy lobpcg", "primme", "slepc SI", "slepc A"]
# (generator, count, which)
KNOWN = [
    ("gen:poisson2d:100x100", 6, "smallest"),
    ("gen:poisson2d:100x100", 20, "smallest"),
    ("gen:poisson3d:40x40x40", 6, "smallest"),
    ("gen:poisson3d:40x40x40", 20, "smallest"),
    ("gen:poisson2d:100x100", 6, "largest"),
    ("gen:poisson3d:30x30x30", 20, "largest"),
    ("gen:poisson2d:300x300", 20, "smallest"),
]


def exact(generator):
    """All values of a Laplacian on a grid, in increasing order."""
    import numpy as np

    sides = [int(side) for side in generator.rsplit(":", 1)[1].split("x")]
    total = np.zeros(1)
    for side in sides:
        line = 2 - 2 * np.cos(np.pi * np.arange(1, side + 1) / (side + 1))
        total = np.add.outer(total, line).ravel()
    return np.sort(total)


def slepc(a, count, which, inverse):
    # Where Debian has them.
    sys.path += glob.glob("/usr/lib/slepcdir/*/*-real/lib/python3/dist-packages")
    sys.path += glob.glob("/usr/lib/petscdir/*/*-real/lib/python3/dist-packages")
    import slepc4py

    slepc4py.init([])
    from petsc4py import PETSc
    from slepc4py import SLEPc

    matrix = PETSc.Mat().createAIJ(a.shape, csr=(a.indptr, a.indices, a.data))
    solver = SLEPc.EPS().create()
    solver.setOperators(matrix)
    solver.setProblemType(SLEPc.EPS.ProblemType.HEP)
    solver.setDimensions(count)
    solver.setTolerances(RTOL, 100000)
    solver.setConvergenceTest(SLEPc.EPS.Conv.REL)
    if inverse:
        solver.setWhichEigenpairs(SLEPc.EPS.Which.TARGET_MAGNITUDE)
        solver.setTarget(0.0)
        solver.getST().setType(SLEPc.ST.Type.SINVERT)
    else:
        ends = {"smallest": SLEPc.EPS.Which.SMALLEST_REAL, "largest": SLEPc.EPS.Which.LARGEST_REAL}
        solver.setWhichEigenpairs(ends[which])
    solver.solve()
    return [solver.getEigenvalue(i).real for i in range(min(count, solver.getConverged()))]


def search(peer, a, count, which):
    """The values that a peer finds."""
    import numpy as np
    import scipy.sparse.linalg as linalg

    least = which == "smallest"
    if peer == "scipy SI":
        return linalg.eigsh(a, count, sigma=0.0, tol=RTOL)[0]
    if peer == "scipy A":
        return linalg.eigsh(a, count, which="SA" if least else "LA", tol=RTOL, maxiter=100000)[0]
    if peer == "scipy lobpcg":
        import pyamg

        m = pyamg.smoothed_aggregation_solver(a).aspreconditioner() if least else None
        start = np.random.default_rng(0).standard_normal((a.shape[0], count))
        scale = abs(a).sum(axis=1).max()
        # Its tolerance is absolute.
        return linalg.lobpcg(a, start, M=m, tol=1e-10 * scale, maxiter=2000, largest=not least)[0]
    if peer == "primme":
        import primme

        return primme.eigsh(a, count, which="SA" if least else "LA", tol=RTOL, maxiter=100000)[0]
    return slepc(a, count, which, peer == "slepc SI")


def one(peer, path, count, which):
    import numpy as np
    import scipy.sparse as sparse

    a = sparse.load_npz(path).tocsr()
    a.indices, a.indptr = a.indices.astype(np.int32), a.indptr.astype(np.int32)
    best, begin = math.inf, time.perf_counter()
    for _ in range(RUNS):
        start = time.perf_counter()
        values = search(peer, a, int(count), which)
        best = min(best, time.perf_counter() - start)
        if time.perf_counter() - begin > 5:
            break
    print(json.dumps({"seconds": best, "values": [float(v) for v in values]}))


def missed(values, expected, floor=0.0):
    """How many of the expected values are not among those found, each of which counts once."""
    left = list(values)
    count = 0
    for value in expected:
        nearest = min(left, key=lambda other: abs(other - value), default=math.inf)
        if abs(nearest - value) > max(1e-6 * abs(value), floor):
            count += 1
        else:
            left.remove(nearest)
    return count


def main(binary, directory, matrices):
    import numpy as np
    import scipy.io
    import scipy.sparse as sparse

    # One thread each.
    alone = dict(os.environ, OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", RAYON_NUM_THREADS="1")
    rows = KNOWN + [(path, count, "smallest") for path in matrices for count in (6, 20)]
    print("| matrix | values | ours |", " | ".join(PEERS), "| ours / best |")
    print("|---" * (len(PEERS) + 4) + "|")
    ratios = []
    for name, count, which in rows:
        file, path = os.path.join(directory, "a.mtx"), os.path.join(directory, "a.npz")
        if name.startswith("gen:"):
            subprocess.run([binary, "generate", name, "--output", file], check=True, capture_output=True)
            expected = exact(name)
        else:
            file = name
            dense = scipy.io.mmread(name)
            expected = np.linalg.eigvalsh(dense.toarray()) if dense.shape[0] <= DENSE else None
        sparse.save_npz(path, sparse.csr_array(scipy.io.mmread(file)).astype(float))
        if expected is not None:
            expected = expected[:count] if which == "smallest" else expected[-count:]
        cells, best, own = [], math.inf, None
        for peer in ["ours", *PEERS]:
            if peer.endswith("SI") and which == "largest":
                cells.append("")
                continue
            if peer == "ours":
                command = [binary, "eigen", file, "--count", str(count), "--which", which, "--threads", "1", "--quiet", "--json", "-"]
            else:
                command = [SLEPC if peer.startswith("slepc") else sys.executable, __file__, "one", peer, path, str(count), which]
            found, seconds = None, math.inf
            for _ in range(RUNS if peer == "ours" else 1):
                try:
                    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, env=alone, check=False)
                    found = json.loads(done.stdout)
                    seconds = min(seconds, found.get("time", found.get("seconds")))
                except (subprocess.TimeoutExpired, json.JSONDecodeError):
                    break
                if seconds > 3:
                    break
            if found is None or len(found["values"]) == 0:
                cells.append("-")
                continue
            lost = 0 if expected is None else missed(found["values"], expected)
            cells.append(f"{seconds * 1e3:.1f}" + (f" M{lost}" if lost else ""))
            if peer == "ours":
                own = (seconds, lost)
            elif lost == 0:
                best = min(best, seconds)
        ratio = own[0] / best if own and own[1] == 0 and best < math.inf else math.nan
        if not math.isnan(ratio):
            ratios.append(ratio)
        print(f"| {os.path.basename(name)} | {count} {which} |", " | ".join(cells), f"| {ratio:.2f} |", flush=True)
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(f"\nours over the best that misses none: {mean:.2f} ({len(ratios)} rows), at most {max(ratios):.2f}")


if __name__ == "__main__":
    if sys.argv[1] == "one":
        one(*sys.argv[2:6])
    else:
        main(sys.argv[1], sys.argv[2], sys.argv[3:])
