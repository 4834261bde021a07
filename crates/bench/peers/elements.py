"""SciPy: assembly of the triplets that `elements_time N REPEATS FOLDER` left. Arguments: FOLDER N REPEATS."""
import statistics
import sys
import time

import numpy as np
import scipy.sparse as sparse

folder, n, repeats = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
rows, cols = (np.fromfile(f"{folder}/{name}", np.uint32).astype(np.int32) for name in ("rows", "cols"))
values = np.fromfile(f"{folder}/values", np.float64)
times, entries = [], 0
for _ in range(repeats):
    triplets = sparse.coo_matrix((values, (rows, cols)), shape=(n * n, n * n))
    start = time.perf_counter()
    entries = triplets.tocsr().nnz
    times.append(time.perf_counter() - start)
print(f"{'SciPy':>20}: {statistics.median(times):.3f} s, {entries} entries")
