"""SciPy's own tests of its iterative solvers and of its functions for eigenvalues and singular values, run with those of this package in place
of SciPy's.

    python scipy_suite.py [pytest's options]

The tests are copied from the SciPy that is installed into a temporary folder, with the line that imports the solvers replaced. It fails
if a test fails that is not among `NOT_APPLICABLE`, for another reason than those of `REFUSED`, and if fewer are collected than `EXPECTED`.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

import pytest
import scipy
import scipy.sparse.linalg._eigen as eigen
import scipy.sparse.linalg._isolve as isolve

#: The files, and how many tests SciPy 1.17 has in each.
EXPECTED = {
    "test_iterative.py": 690,
    "test_minres.py": 7,
    "test_lsqr.py": 5,
    "test_lsmr.py": 15,
    "test_arpack.py": 688,
    "test_lobpcg.py": 1541,
    "test_svds.py": 625,
}
#: Those of them whose subject is linear systems; the others are about eigenvalues and singular values.
OF_SYSTEMS = ("test_iterative.py", "test_minres.py", "test_lsqr.py", "test_lsmr.py")
#: Where they are.
FOLDERS = [
    Path(isolve.__file__).parent / "tests",
    Path(eigen.__file__).parent / "tests",
    Path(eigen.__file__).parent / "arpack" / "tests",
    Path(eigen.__file__).parent / "lobpcg" / "tests",
]

#: Tests of what is not promised here, each with why.
NOT_APPLICABLE = {
    "test_show": "asserts that tfqmr does not converge on a matrix on which it does",
    "TestGMRES::test_callback": "expects the residual of the system preconditioned from the left",
    "no_convergence": "expects one iteration of ARPACK not to suffice; small matrices are computed whole",
    "test_parallel_threads": "needs a plugin of pytest",
    "test_svds_input_validation_v0": "v0 is accepted: vectors to begin with are drawn here",
    "test_svds_input_validation_ncv": "ncv is accepted: the size of the basis is chosen here",
    "test_svds_input_validation_k": "all values may be asked for",
    "test_svd_v0": "expects other vectors from another start; here they have the same bits",
    "test_svd_rng": "the same",
    "test_svd_maxiter": "expects few iterations not to suffice",
    "test_svds_parameter_tol": "expects a loose tolerance to be less accurate",
    "test_hermitian_modes[D2-F": "a random pencil in single precision, whose rounding is above the tolerance",
}
#: What is refused on purpose, or said otherwise, by the error of a test; each with why.
REFUSED = {
    "NotImplementedError: OPpart": "matrices are factored here; an operator in their place is not taken",
    "NotImplementedError: M: a mass matrix": "a mass matrix is taken for Hermitian matrices",
    "NotImplementedError: mode": "buckling and Cayley transforms",
    "NotImplementedError: which: expected 'LM' with sigma": "of matrices that are not Hermitian those nearest to sigma are found",
    "which: expected one of LM, LR, SR, SM": "largest and smallest imaginary parts",
    "NotImplementedError: M: expected the name": "a preconditioner is named",
    "NotImplementedError: Y": "constraints",
    "NotImplementedError: histories of lobpcg": "histories",
    "expected a stored matrix, got an operator": "factors and preconditioners need the entries",
    "expected a Hermitian matrix": "what is not Hermitian is an error, not a warning or a wrong answer",
    "A: expected a matrix of two dimensions": "the shape of an operator that is no matrix",
    "EigenNotConverged: limit": "an outcome that has not converged is an error, not a warning",
    "DID NOT WARN. No warnings of type (<class 'UserWarning'>": "SciPy's lobpcg warns of small problems, which are computed whole here",
    "Regex pattern did not match": "an error in other words",
    "TypeError: expected numbers, got an array of object": "a type, not a value, is wrong",
}

#: The functions that take the place of SciPy's.
OURS = ("bicg", "bicgstab", "cg", "cgs", "eigs", "eigsh", "gmres", "lobpcg", "lsmr", "lsqr", "minres", "qmr", "svds", "tfqmr")
#: Methods that this package does not have, which are left out of SciPy's list of solvers.
OTHERS = ("gcrotmk", "lgmres")


def adapted(text: str) -> str:
    """A file of tests whose solvers are those of this package."""
    listed = re.search(r"^_SOLVERS = \[.*?\]", text, re.MULTILINE | re.DOTALL)
    if listed:
        ours = [name for name in re.findall(r"\w+", listed.group(0))[1:] if name not in OTHERS]
        text = text.replace(listed.group(0), f"_SOLVERS = [{', '.join(ours)}]")
    imports = list(re.finditer(r"^from scipy\.sparse\.linalg[\w.]* import (\([^)]*\)|.*)$", text, re.MULTILINE))
    last = imports[-1]
    names = [name for name in OURS if any(re.search(rf"\b{name}\b", found.group(1)) for found in imports)]
    return f"{text[: last.end()]}\nfrom lacuna_sparse import {', '.join(names)}{text[last.end() :]}"


class Counting:
    """Collects what became of the tests: by file, and of those that failed the names."""

    def __init__(self) -> None:
        self.collected: dict[str, int] = {}
        self.passed: dict[str, int] = {}
        self.skipped: dict[str, int] = {}
        self.refused: dict[str, int] = {}
        self.failed: list[str] = []

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            count(self.collected, item.path.name)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        file = file_of(report.nodeid)
        if report.outcome == "skipped" or hasattr(report, "wasxfail"):
            count(self.skipped, file)
        elif report.when == "call" and report.outcome == "passed":
            count(self.passed, file)
        elif report.outcome == "failed":
            if any(reason in report.longreprtext for reason in REFUSED):
                count(self.refused, file)
            else:
                self.failed.append(report.nodeid)


    def line(self, title: str, files: list[str]) -> str:
        """What became of the tests of some files."""
        passed, skipped, refused = (sum(of.get(file, 0) for file in files) for of in (self.passed, self.skipped, self.refused))
        failed = [name for name in self.failed if file_of(name) in files]
        known = sum(applies_not(name) for name in failed)
        return f"{title}: {passed} passed, {skipped} skipped or not expected to pass, {refused} refused on purpose, {len(failed)} failed, of them {known} not applicable"


def file_of(test: str) -> str:
    return test.split("::")[0].rsplit("/", 1)[-1]


def count(of: dict[str, int], file: str) -> None:
    of[file] = of.get(file, 0) + 1


def applies_not(test: str) -> bool:
    return any(known in test for known in NOT_APPLICABLE)


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        # A package, since one of the files imports another.
        package = Path(folder) / "isolve"
        package.mkdir()
        (package / "__init__.py").touch()
        for name in EXPECTED:
            (source,) = [folder / name for folder in FOLDERS if (folder / name).exists()]
            (package / name).write_text(adapted(source.read_text()))
        (package / "conftest.py").write_text(
            "def pytest_configure(config):\n"
            "    for mark in ('fail_slow(x): slow', 'thread_unsafe: one thread', 'xslow: slow', 'slow: slow', 'parallel_threads_limit(n): few'):\n"
            "        config.addinivalue_line('markers', mark)\n"
        )
        counting = Counting()
        pytest.main(["-q", "-p", "no:cacheprovider", "--tb=short", folder, *sys.argv[1:]], plugins=[counting])
    unexpected = [name for name in counting.failed if not applies_not(name)]
    missing = [name for name, count in EXPECTED.items() if counting.collected.get(name, 0) < count]
    print(f"SciPy {scipy.__version__}")
    print(counting.line("systems", [name for name in EXPECTED if name in OF_SYSTEMS]))
    print(counting.line("eigenvalues and singular values", [name for name in EXPECTED if name not in OF_SYSTEMS]))
    for name in unexpected:
        print(f"failed: {name}")
    for name in missing:
        print(f"{name}: {counting.collected.get(name, 0)} tests collected, {EXPECTED[name]} expected")
    return int(bool(unexpected or missing))


if __name__ == "__main__":
    sys.exit(main())
