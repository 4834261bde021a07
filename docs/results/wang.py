#!/usr/bin/env python3
"""Draws Figure 3 of Wang et al. 2009 from results that were kept: iterations and time of GMRES(20) with block ILU against the order of
its polynomial, on every device measured: `docs/results/wang.py FILE.jsonl MATRIX FIGURE.svg`.

The results are those of `lacuna papers wang --json FILE.jsonl`, or kept ones; MATRIX is one of them, such as gen:poisson3d:58x58x57.
"""
import json
import re
import sys

WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 360, 260, 56, 40, 44
COLOURS = {"cuda": "#0072b2", "opencl": "#009e73", "cpu": "#d55e00"}
INK = "#333"


def read(path, matrix):
    """For each backend the iterations and milliseconds by order."""
    found = {}
    for line in map(json.loads, open(path, encoding="utf-8")):
        order = re.fullmatch(r"block-ilu:size=32,order=(\d+)", line.get("precond") or "")
        if order and line["matrix"] == matrix and "measured" in line:
            measured = line["measured"]
            point = measured["iterations"], 1e3 * measured["on_device"]["median"]
            found.setdefault(line["backend"], {}).setdefault(int(order[1]), point)  # the first run, as in the table
    return found


def panel(x, title, unit, lines):
    """One plot: lines are (name, colour, {order: value})."""
    orders = sorted({order for _, _, values in lines for order in values})
    most = 1.1 * max(value for _, _, values in lines for value in values.values())
    step = next(s for e in range(-3, 6) for s in (10**e, 2 * 10**e, 5 * 10**e) if most / s <= 6)
    across = lambda order: x + LEFT + (WIDTH - LEFT - 20) * orders.index(order) / (len(orders) - 1)
    up = lambda value: HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value / most
    out = [f'<text x="{x + LEFT}" y="22" font-weight="bold">{title}</text>']
    tick = 0.0
    while tick <= most:
        y = up(tick)
        out.append(f'<line x1="{x + LEFT}" x2="{x + WIDTH - 20}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
        out.append(f'<text x="{x + LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>')
        tick += step
    for order in orders:
        out.append(f'<text x="{across(order):.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{order}</text>')
    out.append(f'<text x="{x + (WIDTH + LEFT - 20) / 2}" y="{HEIGHT - 8}" text-anchor="middle">order of the polynomial</text>')
    middle = (HEIGHT + TOP - BOTTOM) / 2
    out.append(f'<text transform="translate({x + 14},{middle}) rotate(-90)" text-anchor="middle">{unit}</text>')
    for at, (name, colour, values) in enumerate(lines):
        points = " ".join(f"{across(order):.1f},{up(value):.1f}" for order, value in sorted(values.items()))
        out.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        for order, value in values.items():
            out.append(f'<circle cx="{across(order):.1f}" cy="{up(value):.1f}" r="3" fill="{colour}"/>')
        if name:
            y = TOP + 12 + 16 * at
            out.append(f'<line x1="{x + LEFT + 16}" x2="{x + LEFT + 40}" y1="{y}" y2="{y}" stroke="{colour}" stroke-width="2"/>')
            out.append(f'<text x="{x + LEFT + 46}" y="{y + 4}">{name}</text>')
    return out


def main(path, matrix, to):
    found = read(path, matrix)
    if not found:
        sys.exit(f"{path}: no result of block-ilu on {matrix}")
    of = lambda which: {b: {o: point[which] for o, point in points.items()} for b, points in found.items()}
    iterations = [("", INK, next(iter(of(0).values())))]
    times = [(b, COLOURS.get(b, INK), values) for b, values in of(1).items()]
    body = panel(0, "Iterations", "iterations", iterations) + panel(WIDTH, "Time to a residual of 1e-2", "ms on the device", times)
    with open(to, "w", encoding="utf-8") as file:
        file.write(
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{2 * WIDTH}" height="{HEIGHT}" font-family="sans-serif" font-size="12" '
            f'fill="{INK}">\n<title>GMRES(20) with block ILU and its polynomial on {matrix}</title>\n'
            f'<rect width="100%" height="100%" fill="#fff"/>\n' + "\n".join(body) + "\n</svg>\n"
        )


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
