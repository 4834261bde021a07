"""SciPy's own tests of its iterative solvers, run with the functions of this package in place of SciPy's.

    python scipy_suite.py [pytest's options]

The tests are copied from the SciPy that is installed into a temporary folder, with the line that imports the solvers replaced. It fails
if a test fails that is not among `NOT_APPLICABLE`, and if fewer are collected than `EXPECTED`.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

import pytest
import scipy
import scipy.sparse.linalg._isolve as isolve

#: The files, and how many tests SciPy 1.17 has in each.
EXPECTED = {"test_iterative.py": 690, "test_minres.py": 7, "test_lsqr.py": 5, "test_lsmr.py": 15}

#: Tests of what is not promised here, each with why.
NOT_APPLICABLE = {
    "test_show": "asserts that tfqmr does not converge on a matrix on which it does",
    "TestGMRES::test_callback": "expects the residual of the system preconditioned from the left",
}

#: The functions that take the place of SciPy's.
OURS = ("bicg", "bicgstab", "cg", "cgs", "gmres", "lsmr", "lsqr", "minres", "qmr", "tfqmr")
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
    """Collects what became of the tests."""

    def __init__(self) -> None:
        self.collected: dict[str, int] = {}
        self.passed = self.skipped = 0
        self.failed: list[str] = []

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            self.collected[item.path.name] = self.collected.get(item.path.name, 0) + 1

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.outcome == "skipped" or hasattr(report, "wasxfail"):
            self.skipped += 1
        elif report.when == "call" and report.outcome == "passed":
            self.passed += 1
        elif report.outcome == "failed":
            self.failed.append(report.nodeid)


def main() -> int:
    source = Path(isolve.__file__).parent / "tests"
    with tempfile.TemporaryDirectory() as folder:
        # A package, since one of the files imports another.
        package = Path(folder) / "isolve"
        package.mkdir()
        (package / "__init__.py").touch()
        for name in EXPECTED:
            (package / name).write_text(adapted((source / name).read_text()))
        (package / "conftest.py").write_text(
            "def pytest_configure(config):\n"
            "    for mark in ('fail_slow(x): slow', 'thread_unsafe: one thread', 'xslow: slow'):\n"
            "        config.addinivalue_line('markers', mark)\n"
        )
        counting = Counting()
        pytest.main(["-q", "-p", "no:cacheprovider", "--tb=short", folder, *sys.argv[1:]], plugins=[counting])
    unexpected = [name for name in counting.failed if not any(known in name for known in NOT_APPLICABLE)]
    missing = [name for name, count in EXPECTED.items() if counting.collected.get(name, 0) < count]
    print(
        f"SciPy {scipy.__version__}: {counting.passed} passed, {counting.skipped} skipped or not expected to pass, "
        f"{len(counting.failed)} failed, of them {len(counting.failed) - len(unexpected)} not applicable"
    )
    for name in unexpected:
        print(f"failed: {name}")
    for name in missing:
        print(f"{name}: {counting.collected.get(name, 0)} tests collected, {EXPECTED[name]} expected")
    return int(bool(unexpected or missing))


if __name__ == "__main__":
    sys.exit(main())
