"""PyAMG's own tests of its Krylov methods, run with the methods of this package in place of PyAMG's.

    python pyamg_suite.py [pytest's options]

The names, the tolerance and the number of results are PyAMG's, by the adapters below; the numbers are ours.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path
from typing import Any, Callable

import numpy as np
import pyamg.krylov
import pytest

import lacuna_sparse as la

#: PyAMG's names and ours.
METHODS = {
    "bicgstab": "bicgstab",
    "cg": "cg",
    "cgne": "craig",
    "cgnr": "cgls",
    "cr": "cr",
    "fgmres": "fgmres",
    "gmres": "gmres",
    "gmres_householder": "gmres",
    "gmres_mgs": "gmres",
    "steepest_descent": "richardson",
}


def adapted(name: str) -> Callable[..., Any]:
    """A method under PyAMG's name, with its arguments."""

    def solve(A: Any, b: Any, x0: Any = None, tol: float = 1e-5, maxiter: Any = None, M: Any = None, **others: Any) -> Any:
        method, columns = METHODS[name], A.shape[1]
        cycle = columns if "gmres" in method else None
        solver = la.Solver(A, method, "none" if M is None else M, rtol=tol, maxiter=maxiter or 10 * columns, restart=cycle)
        x = solver.solve(b, None if x0 is None else np.ravel(x0))
        report = solver.report
        return x.reshape(np.shape(b)), 0 if report.converged else max(report.iterations, 1)

    solve.__name__ = name
    return solve


def main() -> int:
    text = (Path(pyamg.krylov.__file__).parent / "tests" / "test_krylov.py").read_text()
    last = list(re.finditer(r"^from pyamg\.krylov[\w.]* import .*$", text, re.MULTILINE))[-1]
    names = ", ".join(METHODS)
    ours = f"\nfrom pyamg_suite import adapted\n{names} = map(adapted, {list(METHODS)!r})\n"
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "test_krylov.py").write_text(text[: last.end()] + ours + text[last.end() :])
        sys.path.insert(0, str(Path(__file__).parent))
        return pytest.main(["-q", "-p", "no:cacheprovider", "--tb=short", folder, *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
