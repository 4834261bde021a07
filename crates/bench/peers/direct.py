"""Complete factorisations: ours beside those of KLU, UMFPACK, CHOLMOD, PARDISO and SuperLU, on one thread. See direct.sh.

    direct.py OURS PEERS MATRIX.mtx ...            OURS is the example `direct_time`, PEERS what direct.cpp becomes
    direct.py pardiso|superlu A.mtx                one row: milliseconds of order, factors and a solve, the least of several runs

A row is one matrix: milliseconds of the order, the factors and one solve, in brackets what is not solved to 1e-8 by refinement. The
summary has geometric means of our time over the best peer's, and where it is above 1.5."""
import json
import math
import os
import subprocess
import sys
import time

LIMIT = 120
SOLVED = 1e-8
PEERS = ["klu", "umfpack", "cholmod", "pardiso", "superlu"]


def own_row(peer, path):
    import numpy as np
    import scipy.io

    a = scipy.io.mmread(path).tocsr().astype(float)
    a.sum_duplicates()
    b = np.ones(a.shape[0])
    best, left = math.inf, math.inf
    begin = time.perf_counter()
    for _ in range(5):
        if peer == "pardiso":
            from pypardiso import PyPardisoSolver

            solver = PyPardisoSolver()
            start = time.perf_counter()
            solver.factorize(a)
            x = solver.solve(a, b)
            took = time.perf_counter() - start
            again = lambda r: solver.solve(a, r)
        else:
            import scipy.sparse.linalg as linalg

            columns = a.tocsc()
            start = time.perf_counter()
            factors = linalg.splu(columns)
            x = factors.solve(b)
            took = time.perf_counter() - start
            again = factors.solve
        rest = np.linalg.norm(b - a @ x) / np.linalg.norm(b)
        for _ in range(3):
            if rest <= SOLVED:
                break
            x = x + again(b - a @ x)
            rest = np.linalg.norm(b - a @ x) / np.linalg.norm(b)
        if took < best:
            best, left = took, rest
        if time.perf_counter() - begin > 3:
            break
    name = os.path.basename(path).removesuffix(".mtx")
    print(json.dumps({"name": name, "peer": peer, "order": 0.0, "factors": best, "solve": 0.0, "residual": float(left)}))


def lines(*command):
    one = dict(os.environ, OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1", RAYON_NUM_THREADS="1")
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False, env=one)
    except subprocess.TimeoutExpired as late:
        done = late
    told = done.stdout or ""
    told = told.decode() if isinstance(told, bytes) else told
    return [json.loads(line) for line in told.splitlines() if line.startswith("{")]


def total(row):
    return (row["order"] + row["factors"] + row["solve"]) * 1e3


def mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else math.nan


def main(ours, peers, paths):
    print("| matrix | ours | predicted | kind | " + " | ".join(PEERS) + " | ours / best |")
    print("|---|---|---|---|" + "---|" * len(PEERS) + "---|")
    every, long, above = [], [], []
    for path in paths:
        own = next(iter(lines(ours, path)), {"error": "nothing"})
        rows = {row["peer"]: row for row in lines(peers, path) if "error" not in row}
        for peer in ["pardiso", "superlu"]:
            rows.update({row["peer"]: row for row in lines(sys.executable, __file__, peer, path)})
        solved = [total(row) for row in rows.values() if row["residual"] <= SOLVED]
        cell = lambda row: f"{total(row):.2f}" if row["residual"] <= SOLVED else f"({total(row):.2f})"
        cells = [cell(rows[peer]) if peer in rows else "" for peer in PEERS]
        name = os.path.basename(path).removesuffix(".mtx")
        if "error" in own:
            print(f"| {name} | {own['error'][:40]} | | | " + " | ".join(cells) + " | |", flush=True)
            continue
        ratio = total(own) / min(solved) if solved and own["residual"] <= SOLVED else math.nan
        predicted = own["predicted"] / own["factors"]
        print(f"| {name} | {cell(own)} | {predicted:.2f} | {own['kind']} | " + " | ".join(cells) + f" | {ratio:.2f} |", flush=True)
        if not math.isnan(ratio):
            every.append(ratio)
            if max(total(own), min(solved)) >= 1:
                long.append(ratio)
                if ratio > 1.5:
                    above.append(f"{name} {ratio:.1f}")
    print(f"\nours over the best: {mean(every):.2f} ({len(every)}), from 1 ms on {mean(long):.2f} ({len(long)}); there above 1.5: {', '.join(above) or 'none'}")


if sys.argv[1] in ("pardiso", "superlu"):
    own_row(*sys.argv[1:])
else:
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
