"""The examples of the documentation run, and the types of the package and of its core are true."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import lacuna_sparse

MODULES = [f"lacuna_sparse.{found.name}" for found in pkgutil.iter_modules(lacuna_sparse.__path__) if found.name[0:2] != "__"]
GUIDE = Path(__file__).resolve().parents[3] / "docs" / "guide" / "python.md"


@pytest.mark.parametrize("name", ["lacuna_sparse", *MODULES])
def test_examples(name: str) -> None:
    found = doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert found.failed == 0


def test_every_public_name_is_documented() -> None:
    for name in lacuna_sparse.__all__:
        described = getattr(lacuna_sparse, name).__doc__
        assert described and described.strip(), name


def test_every_member_of_a_report_is_documented() -> None:
    listed = lacuna_sparse.Report.__doc__ or ""
    for name in vars(lacuna_sparse.Report):
        if not name.startswith("_"):
            described = getattr(lacuna_sparse.Report, name).__doc__
            assert described and described.strip(), name
            assert re.search(rf"^(\w+, )*{name}(, \w+)* : ", listed, re.MULTILINE), name
    assert re.search("^Attributes\n-----", listed, re.MULTILINE)


def test_every_reason_is_documented() -> None:
    listed = lacuna_sparse.Reason.__doc__ or ""
    for reason in lacuna_sparse.Reason:
        assert f"    {reason.name} : {reason.value}\n" in listed


def test_what_a_solver_takes_is_documented() -> None:
    for function in (lacuna_sparse.Solver, lacuna_sparse.solve, lacuna_sparse.eigen):
        listed = function.__doc__ or ""
        for name in inspect.signature(function).parameters:
            assert re.search(rf"^    (\w+, )*{name}(, \w+)* : ", listed, re.MULTILINE), f"{function.__name__}: {name}"


@pytest.mark.skipif(not GUIDE.exists(), reason="the guide is beside the sources only")
def test_programs_of_the_guide_run() -> None:
    programs = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    assert len(programs) >= 4
    names: dict = {}
    for program in programs:
        exec(compile(program, str(GUIDE), "exec"), names)


@pytest.mark.parametrize(
    "command",
    [
        ["mypy", "--strict", "--ignore-missing-imports", "-p", "lacuna_sparse"],
        ["mypy.stubtest", "lacuna_sparse._core", "--ignore-disjoint-bases"],
    ],
    ids=["mypy", "stubtest"],
)
def test_types(command: list, tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    done = subprocess.run([sys.executable, "-m", *command], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
