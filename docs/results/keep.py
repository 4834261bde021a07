#!/usr/bin/env python3
"""Reduces kept results to the lines that tables are made from: `docs/results/keep.py FILE.jsonl [KEY=VALUE,... ...]`.

* Of repeated runs the middle one stays, as in `lacuna-bench report`.
* Cases that were not measured, residual histories, and digests of bits that have no counterpart are dropped.
* Date, machine, compiler, commit and command stay in the first line of each run, method and type. A table that leaves that line out
  does not name its run.
* KEY=VALUE keeps only cases whose KEY is one of the values: `units=2 suite=,matrices`.
"""
import collections
import json
import sys

ORIGIN = ("date", "machine", "version", "compiler", "commit", "command")
CASE = ("suite", "matrix", "n", "nnz", "type", "method", "precond", "format", "stop", "backend", "device", "units")
PEER = ("peer", "threads", "method", "precond", "stop", "matrix", "type")
UNUSED = ("history", "history_stride", "outcome", "true_residual", "setup", "transfers", "upload")


def key(line):
    return (line["kind"], *(line.get(name) for name in (PEER if line["kind"] == "peer" else CASE)))


def time(line):
    return line["again_us"] if line["kind"] == "peer" else line["measured"]["again"]["median"]


def wanted(line, options):
    if line["kind"] == "device":
        return True
    names = [name for name in options if line["kind"] == "case" or name in ("matrix", "type")]
    chosen = all(str(line.get(name, "")) in options[name] for name in names)
    return chosen and (line["kind"] != "case" or "measured" in line)


def work(line):
    return tuple(line.get(name) for name in CASE[:9])


def main(path, *words):
    options = {name: values.split(",") for name, values in (word.split("=", 1) for word in words)}
    with open(path, encoding="utf-8") as file:
        lines = [json.loads(line) for line in file if line.strip()]
    origin = {}
    for line in lines:  # of a file that was kept already
        origin = {name: line[name] for name in ORIGIN if name in line} or origin
        line.update(origin if line["kind"] != "peer" else {})
    lines = [line for line in lines if wanted(line, options)]
    groups = {}
    for line in lines:
        if line["kind"] in ("case", "peer"):
            groups.setdefault(key(line), []).append(line)
    middle = {id(group[0]): sorted(group, key=time)[(len(group) - 1) // 2] for group in groups.values()}
    cases = [case for case in middle.values() if case["kind"] == "case"]
    done = collections.Counter(work(case) for case in cases)
    known, begun, kept = set(), set(), []
    for line in lines:
        if line["kind"] in ("case", "peer"):
            if id(line) not in middle:
                continue
            line = middle[id(line)]
        if line["kind"] == "device":
            device = (line["backend"], line.get("device"))
            used = any((case["backend"], case["device"]) == device for case in cases)
            if not used or device in known:
                continue
            known.add(device)
        for name in UNUSED:
            line.get("measured", {}).pop(name, None)
        if line["kind"] == "case" and done[work(line)] < 2:
            for name in ("x_bits", "history_bits"):
                line["measured"].pop(name, None)
        run = tuple(line.get(name) for name in (*ORIGIN, "kind", "suite", "type", "method", "precond", "backend"))
        if run in begun:
            line = {name: value for name, value in line.items() if name not in ORIGIN}
        begun.add(run)
        kept.append(json.dumps(line, separators=(",", ":"), ensure_ascii=False))
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(kept) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
