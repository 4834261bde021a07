"""Eigenvalues that `lacuna eigen` misses, from several starts: Laplacians whose values are known, complex and real matrices of the
files given, whose values are those of a dense problem.

    eigenvalues_seeds.py BINARY [MATRIX.mtx ...]

A row has, for each seed, `ok`, what is missing or wrong, or the reason why the search did not converge."""

import json
import os
import subprocess
import sys

from eigenvalues import DENSE, exact, missed

SEEDS = range(5)
LIMIT = 120.0
# (generator, count, which)
ROWS = [
    ("gen:poisson2d:100x100", 1, "smallest"),
    ("gen:poisson2d:100x100", 6, "smallest"),
    ("gen:poisson2d:100x100", 20, "smallest"),
    ("gen:poisson2d:100x100", 6, "largest"),
    ("gen:poisson3d:40x40x40", 1, "smallest"),
    ("gen:poisson3d:40x40x40", 6, "smallest"),
    ("gen:poisson3d:40x40x40", 20, "smallest"),
    ("gen:poisson3d:40x40x40", 6, "largest"),
    ("gen:poisson3d:64x64x64", 6, "smallest"),
]
# Besides what `auto` takes.
WAYS = [[], ["--method", "lobpcg", "--complete", "probed"], ["--method", "lanczos", "--complete", "probed"]]


def main(binary, matrices):
    import numpy as np
    import scipy.io

    rows = ROWS + [(path, count, which) for path in matrices for count in (6, 20) for which in ("smallest", "largest")]
    print("| matrix | values | way |", " | ".join(f"seed {seed}" for seed in SEEDS), "|")
    print("|---" * (len(SEEDS) + 3) + "|")
    lost = total = 0
    for name, count, which in rows:
        if name.startswith("gen:"):
            values = exact(name)
        else:
            dense = scipy.io.mmread(name)
            values = np.linalg.eigvalsh(dense.toarray()) if dense.shape[0] <= DENSE else None
        if values is None:
            print(f"| {os.path.basename(name)} | {count} {which} | too large for a dense problem |")
            continue
        expected = values[:count] if which == "smallest" else values[::-1][:count]
        # What rounding of the largest value leaves of digits.
        floor = 1e-12 * abs(values).max()
        for way in WAYS:
            if "lanczos" in way and which == "smallest" and name.startswith("gen:poisson3d:64"):
                continue
            cells = []
            for seed in SEEDS:
                command = [binary, "eigen", name, "--count", str(count), "--which", which, "--seed", str(seed), *way]
                total += 1
                try:
                    done = subprocess.run([*command, "--quiet", "--json", "-"], capture_output=True, text=True, timeout=LIMIT, check=False)
                except subprocess.TimeoutExpired:
                    cells.append("time")
                    continue
                try:
                    found = json.loads(done.stdout)
                except json.JSONDecodeError:
                    cells.append("refused")
                    continue
                if found["outcome"] != "converged":
                    cells.append(found["outcome"])
                    continue
                gone = missed(found["values"], expected, floor)
                lost += gone > 0
                cells.append(f"M{gone}" if gone else "ok")
            print(f"| {os.path.basename(name)} | {count} {which} | {' '.join(way) or 'auto'} |", " | ".join(cells), "|", flush=True)
    print(f"\n{total} searches, {lost} of which missed a value and said that they converged")
    sys.exit(lost > 0)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
