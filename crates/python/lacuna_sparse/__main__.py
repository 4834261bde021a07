"""``python -m lacuna_sparse``: the devices, and a model problem solved on each."""

from __future__ import annotations

import numpy as np

from . import __version__, devices, read, solve


def main() -> None:
    print(f"lacuna_sparse {__version__}")
    A = read("gen:poisson2d:256x256")
    for backend, names in devices().items():
        if isinstance(names, str):
            print(f"{backend}: {names}")
            continue
        print(f"{backend}: {', '.join(names)}")
        _, report = solve(A, np.ones(A.shape[0]), device=backend, full_output=True)
        print("\n".join(f"    {line}" for line in str(report).splitlines()))


if __name__ == "__main__":
    main()
