"""Draws the time of complete factorisations against what was predicted before them, from what the example `direct_time` prints.

    direct_time A.mtx ... > direct.jsonl; predicted.py direct.jsonl direct.svg

Prints how many are within 1.5 and within 2 times, and the ratios of the others from 1 ms on."""
import json
import math
import sys

SIZE, MARGIN = 420, 60
COLOURS = {"Cholesky": "#1b6ca8", "Symmetric": "#7a3e9d", "Sparse": "#2a8c4a", "Fronts": "#c8621b", "Pivoted": "#8a8a8a"}


def main(source, target):
    lines = [json.loads(line) for line in open(source, encoding="utf-8") if line.startswith("{")]
    rows = [(r["predicted"], r["factors"], r["kind"], r["name"]) for r in lines if "error" not in r]
    low = math.floor(min(math.log10(min(p, t)) for p, t, *_ in rows))
    high = math.ceil(max(math.log10(max(p, t)) for p, t, *_ in rows))
    at = lambda seconds: MARGIN + (math.log10(seconds) - low) / (high - low) * SIZE
    x, y = at, lambda seconds: 2 * MARGIN + SIZE - at(seconds)
    side = SIZE + 2 * MARGIN
    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {side + 90} {side}" font-family="sans-serif" font-size="12">',
        f'<rect width="{side + 90}" height="{side}" fill="white"/>',
    ]
    for power in range(low, high + 1):
        v = 10.0**power
        text = f"{v * 1e3:g} ms"
        drawn.append(f'<path d="M{x(v):.1f} {y(10.0**low):.1f}V{y(10.0**high):.1f}M{x(10.0**low):.1f} {y(v):.1f}H{x(10.0**high):.1f}" stroke="#ddd"/>')
        drawn.append(f'<text x="{x(v):.1f}" y="{y(10.0**low) + 18:.1f}" text-anchor="middle">{text}</text>')
        drawn.append(f'<text x="{x(10.0**low) - 6:.1f}" y="{y(v) + 4:.1f}" text-anchor="end">{text}</text>')
    for factor, dash in [(0.5, "4 4"), (1, ""), (2, "4 4")]:
        first, last = 10.0**low * max(1, 1 / factor), 10.0**high * min(1, 1 / factor)
        drawn.append(
            f'<path d="M{x(first):.1f} {y(first * factor):.1f}L{x(last):.1f} {y(last * factor):.1f}" stroke="#555" stroke-dasharray="{dash}"/>'
        )
    for predicted, took, kind, name in rows:
        drawn.append(f'<circle cx="{x(predicted):.1f}" cy="{y(took):.1f}" r="3.5" fill="{COLOURS[kind]}" fill-opacity="0.75"><title>{name}</title></circle>')
    for k, (kind, colour) in enumerate(COLOURS.items()):
        drawn.append(f'<circle cx="{side - 45}" cy="{MARGIN + 20 * k}" r="4" fill="{colour}"/><text x="{side - 36}" y="{MARGIN + 4 + 20 * k}">{kind}</text>')
    middle = MARGIN + SIZE / 2
    drawn.append(f'<text x="{middle}" y="{side - 15}" text-anchor="middle">predicted</text>')
    drawn.append(f'<text transform="rotate(-90 14 {middle})" x="14" y="{middle}" text-anchor="middle">measured</text>')
    with open(target, "w", encoding="utf-8") as file:
        file.write("\n".join([*drawn, "</svg>\n"]))
    within = lambda limit: sum(max(p / t, t / p) <= limit for p, t, *_ in rows)
    print(f"{len(rows)} matrices: within 1.5 {within(1.5)}, within 2 {within(2)}")
    print("others from 1 ms on:", ", ".join(f"{name} {p / t:.2f}" for p, t, _, name in rows if max(p / t, t / p) > 2 and t >= 1e-3) or "none")


main(*sys.argv[1:])
