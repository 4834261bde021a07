#!/usr/bin/env python3
"""Draws docs/theory/architecture.svg: the crates of the project, from `cargo metadata` and what their sources import.

    docs/theory/architecture.py            draws it anew
    docs/theory/architecture.py --check    fails if the picture that is there differs

An arrow goes from a crate to one that it depends on, unless a chain of other arrows leads there. A dependency that no
source file names is an error. Needs Python and Cargo, and no network.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PICTURE = ROOT / "docs" / "theory" / "architecture.svg"

# The rows of the picture from top to bottom, each crate with its column.
ROWS = [
    [("lacuna-cli", 0.3), ("lacuna-bench", 1.3), ("lacuna-capi", 2.8), ("lacuna-python", 3.8)],
    [("lacuna-measure", 0.8)],
    [("lacuna-sparse", 2)],
    [("lacuna-eigen", 0), ("lacuna-mpi", 2)],
    [("lacuna-solvers", 0), ("lacuna-io", 1), ("lacuna-ranks", 2), ("lacuna-cpu", 3), ("lacuna-opencl", 4.1), ("lacuna-cuda", 5.2)],
    [("lacuna-direct", 0), ("lacuna-gpu", 3.8), ("lacuna-drivers", 4.8)],
    [("lacuna-formats", 1.2), ("lacuna-kernels-opencl", 3.8), ("lacuna-kernels-cuda", 5.8)],
    [("lacuna-engine", 1.2)],
]
# What a crate is, in a few words.
ABOUT = {
    "lacuna-cli": "the command `lacuna`",
    "lacuna-bench": "measurements",
    "lacuna-capi": "C, C++, Fortran",
    "lacuna-python": "Python",
    "lacuna-measure": "timed runs, reports",
    "lacuna-sparse": "the library, called `lacuna`",
    "lacuna-solvers": "methods, preconditioners",
    "lacuna-io": "files, generators",
    "lacuna-eigen": "eigenvalues",
    "lacuna-ranks": "one system on several devices",
    "lacuna-mpi": "several processes",
    "lacuna-cpu": "backend: CPU",
    "lacuna-opencl": "backend: OpenCL",
    "lacuna-cuda": "backend: CUDA",
    "lacuna-direct": "complete factors",
    "lacuna-gpu": "generated kernels",
    "lacuna-drivers": "drivers, loaded late",
    "lacuna-formats": "matrices on the host",
    "lacuna-kernels-opencl": "kernels",
    "lacuna-kernels-cuda": "kernels",
    "lacuna-engine": "passes, programs, devices",
}
WIDTH, HEIGHT, ROW, COLUMN, MARGIN = 156, 42, 80, 176, 20


def metadata() -> dict:
    command = ["cargo", "metadata", "--no-deps", "--format-version", "1", "--offline"]
    return json.loads(subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True).stdout)


def edges() -> dict:
    """The crates of the picture, with those that each depends on: not for tests, and named by a source file."""
    packages = {package["name"]: package for package in metadata()["packages"]}
    listed = [name for row in ROWS for name, _ in row]
    tests = {"lacuna-tests", "lacuna-fuzz", "lacuna-model"}
    if set(packages) != set(listed) | tests:
        sys.exit(f"ROWS and the workspace differ: {sorted(set(packages) ^ (set(listed) | tests))}")
    found = {}
    for name in listed:
        package = packages[name]
        folder = Path(package["manifest_path"]).parent
        files = [*folder.glob("src/**/*.rs"), *folder.glob("*.rs"), folder / "Cargo.toml"]
        text = "\n".join(file.read_text() for file in sorted(files) if file.name != "Cargo.toml")
        found[name] = set()
        for dependency in package["dependencies"]:
            if dependency["name"] not in packages or dependency["kind"] == "dev":
                continue
            word = (dependency["rename"] or dependency["name"]).replace("-", "_")
            built = f"DEP_{dependency['name'].upper().replace('-', '_')}"  # what a build script hands on
            if not re.search(rf"\b{word}\b|{built}", text):
                sys.exit(f"{name} depends on {dependency['name']}, and no source of it says `{word}`")
            found[name].add(dependency["name"])
    return found


def drawn(found: dict) -> list:
    """The edges without those that a longer way implies."""

    def reached(start: str) -> set:
        return {start}.union(*(reached(to) for to in found[start]))

    pairs = [(name, to) for name in found for to in sorted(found[name])]
    return [(a, b) for a, b in pairs if not any(b in reached(other) for other in found[a] - {b})]


def picture() -> str:
    found = edges()
    place = {
        name: (MARGIN + column * COLUMN, MARGIN + number * ROW)
        for number, row in enumerate(ROWS)
        for name, column in row
    }
    total = max(x for x, _ in place.values()) + WIDTH + MARGIN
    height = max(y for _, y in place.values()) + HEIGHT + MARGIN
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {total:.0f} {height}" width="{total:.0f}" height="{height}" '
        'font-family="sans-serif" text-anchor="middle">',
        "<title>Which crate depends on which</title>",
        f'<rect width="{total:.0f}" height="{height}" fill="#ffffff"/>',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0 8 4 0 8z" fill="#5b6b7a"/></marker></defs>',
    ]
    pairs = drawn(found)
    into = {name: sorted((a for a, b in pairs if b == name), key=lambda a: place[a]) for name in found}
    out_of = {name: sorted((b for a, b in pairs if a == name), key=lambda b: place[b]) for name in found}
    for a, b in pairs:
        from_x = place[a][0] + WIDTH * (out_of[a].index(b) + 1) / (len(out_of[a]) + 1)
        to_x = place[b][0] + WIDTH * (into[b].index(a) + 1) / (len(into[b]) + 1)
        from_y, to_y = place[a][1] + HEIGHT, place[b][1]
        if to_y <= from_y:
            sys.exit(f"{a} stands below {b}, on which it depends")
        bend = (to_y - from_y) / 2
        out.append(
            f'<path d="M{from_x:.0f} {from_y:.0f}C{from_x:.0f} {from_y + bend:.0f} {to_x:.0f} {to_y - bend:.0f} '
            f'{to_x:.0f} {to_y:.0f}" fill="none" stroke="#5b6b7a" stroke-width="1.3" marker-end="url(#tip)">'
            f"<title>{a} depends on {b}</title></path>"
        )
    for name, (x, y) in place.items():
        out.append(f'<rect x="{x:.0f}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="5" fill="#eef3f8" stroke="#3a5a7a"/>')
        middle = x + WIDTH / 2
        out.append(f'<text x="{middle:.0f}" y="{y + 18}" font-size="13" fill="#16324a">{name}</text>')
        out.append(f'<text x="{middle:.0f}" y="{y + 34}" font-size="11" fill="#46586a">{ABOUT[name]}</text>')
    return "\n".join([*out, "</svg>", ""])


if __name__ == "__main__":
    made = picture()
    if "--check" in sys.argv:
        if not PICTURE.exists() or PICTURE.read_text() != made:
            sys.exit(f"{PICTURE.relative_to(ROOT)} differs from what {Path(__file__).name} draws: run it, and commit the picture")
    else:
        PICTURE.write_text(made)
