"""Sparse linear systems, solved on the CPU, on CUDA and on OpenCL with the same bits.

`solve` solves a system and chooses how; `Solver` keeps a matrix for many right-hand sides; `Preconditioner` is one by
itself. The functions named as in ``scipy.sparse.linalg`` take the same arguments and return the same values.

>>> import numpy as np
>>> import lacuna_sparse as la
>>> A = la.read("gen:poisson2d:20x20")
>>> x = la.solve(A, np.ones(400))
>>> float(np.abs(A.toarray() @ x - 1).max()) < 1e-6
True
"""

from ._eigen import EigenNotConverged, EigenResult, eigen, eigs, eigsh, lobpcg, svds
from ._operand import Csr
from ._results import NotConverged, Reason, Trial
from ._scipy import bicg, bicgstab, cg, cgs, gmres, lsmr, lsqr, minres, qmr, spsolve, tfqmr
from ._preconditioner import Preconditioner
from ._solver import Solver, solve
from ._tools import advise, devices, info, methods, preconditioners, read, write
from ._core import Report

__version__ = "0.1.0"

__all__ = [
    "Csr",
    "EigenNotConverged",
    "EigenResult",
    "NotConverged",
    "Preconditioner",
    "Reason",
    "Report",
    "Solver",
    "Trial",
    "advise",
    "bicg",
    "bicgstab",
    "cg",
    "cgs",
    "devices",
    "eigen",
    "eigs",
    "eigsh",
    "gmres",
    "info",
    "lobpcg",
    "lsmr",
    "lsqr",
    "methods",
    "minres",
    "preconditioners",
    "qmr",
    "read",
    "solve",
    "spsolve",
    "svds",
    "tfqmr",
    "write",
]
