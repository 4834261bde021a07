"""What the tests share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import lacuna_sparse as la


def poisson(m: int, dtype: Any = float) -> sp.csr_array:
    """Poisson's equation on a grid of m by m points."""
    return la.read(f"gen:poisson2d:{m}x{m}", dtype)


def convection(m: int, dtype: Any = float) -> sp.csr_array:
    """The same with a wind, which is not symmetric."""
    return la.read(f"gen:convection:{m}x{m}:10", dtype)


def residual(A: Any, x: Any, b: Any) -> float:
    """``‖b − A x‖ / ‖b‖``"""
    return float(np.linalg.norm(np.ravel(b) - A @ np.ravel(x)) / np.linalg.norm(b))


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(62)
