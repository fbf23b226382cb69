#!/usr/bin/env python3
"""How much memory allocators take for recorded programs: tests/traces/ratios.csv as the table of
docs/small-allocations.md and as a picture. docs/test_memory_ratios.py compares.

memory_ratios.py --write      the table and the picture, from the figures
memory_ratios.py --measure    gpumem's figures first, by bench/bench_traces on softgpu"""
import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("GPUMEM_BUILD_DIR", SOURCE / "build"))
FIGURES, PICTURE = SOURCE / "tests/traces/ratios.csv", SOURCE / "docs/memory-ratios.svg"
PAGE = SOURCE / "docs/small-allocations.md"
OURS = {"gpumem": "caching-virtual", "gpumem_in_place": "caching"}
# Column: title, colour in the picture.
COLUMNS = {"gpumem": ("gpumem, memory moves", "#2a6f2a"), "gpumem_in_place": ("gpumem, in place", "#8fbf8f"),
           "torch_expandable": ("PyTorch, expandable segments", "#b5541c"), "torch": ("PyTorch", "#e3a883"),
           "driver_pool": ("the driver's pool", "#4a5a8a"), "rmm_pool": ("RMM, pool", "#b9bfd6")}


def figures(text):
    """{trace: {column: ratio}}, in the file's order."""
    head, *rows = [line.split(",") for line in text.splitlines() if line and not line.startswith("#")]
    return {row[0]: dict(zip(head[1:], map(float, row[1:]))) for row in rows}


def table(found):
    lines = ["| trace | " + " | ".join(title for title, _ in COLUMNS.values()) + " |", "|---" * (len(COLUMNS) + 1) + "|"]
    for trace, ratios in found.items():
        lines.append(f"| {trace} | " + " | ".join(f"{ratios[column]:.3f}" for column in COLUMNS) + " |")
    return "\n".join(lines) + "\n"


def old_table(page):
    """Where the table is in the page."""
    begin = page.index("| trace | ")
    end = page.index("\n\n", begin) + 1
    return begin, end


# ---- The picture -------------------------------------------------------------------------------------------------

LEFT, TOP, BAR, GAP, HEIGHT = 46, 66, 17, 26, 220
LOWEST, HIGHEST = 1.0, 1.7  # taller bars are cut, and their figure stands above


def y_of(ratio):
    return TOP + HEIGHT * (1 - (min(ratio, HIGHEST) - LOWEST) / (HIGHEST - LOWEST))


def svg(found):
    group = BAR * len(COLUMNS) + GAP
    width, height = LEFT + group * len(found) + 10, TOP + HEIGHT + 28
    title = "Memory taken from the device at most, by the most in use at a time"
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" '
           f'font-size="12">', f"<title>{title}</title>", f'<rect width="{width}" height="{height}" fill="#fff"/>',
           f'<text x="{LEFT}" y="18" font-weight="bold">{title}</text>']
    for at, (name, colour) in enumerate(COLUMNS.values()):
        x, y = LEFT + at % 3 * 210, 27 + at // 3 * 16
        out.append(f'<rect x="{x}" y="{y}" width="11" height="11" fill="{colour}"/><text x="{x + 16}" y="{y + 10}">{name}</text>')
    for step in range(8):
        ratio = LOWEST + step / 10
        y = y_of(ratio)
        out.append(f'<path d="M{LEFT} {y:.1f}H{width - 10}" stroke="{"#444" if step == 0 else "#ddd"}"/>'
                   f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{ratio:.1f}</text>')
    for at, (trace, ratios) in enumerate(found.items()):
        x = LEFT + GAP / 2 + at * group
        out.append(f'<text x="{x + (group - GAP) / 2}" y="{TOP + HEIGHT + 18}" text-anchor="middle">{trace}</text>')
        for number, (column, (_, colour)) in enumerate(COLUMNS.items()):
            y, left = y_of(ratios[column]), x + number * BAR
            out.append(f'<rect x="{left}" y="{y:.1f}" width="{BAR - 2}" height="{TOP + HEIGHT - y:.1f}" fill="{colour}"/>')
            out.append(f'<text transform="translate({left + 11},{y - 3 if ratios[column] < HIGHEST - 0.1 else y + 34:.1f}) '
                       f'rotate(-90)" font-size="10">{ratios[column]:.3f}</text>')
    return "\n".join(out) + "\n</svg>\n"


# ---- Measuring ---------------------------------------------------------------------------------------------------

def measured():
    """{trace: {column: ratio}} of this build."""
    done = subprocess.run([BUILD / "bench/bench_traces", "--peers", "none", "--repeat", "1", "--json", "--resource",
                           ",".join(OURS.values())], env=dict(os.environ, GPUMEM_DRIVER="softgpu"), capture_output=True,
                          text=True, check=True)
    return {trace: {column: row["allocators"][resource]["ratio"] for column, resource in OURS.items()}
            for trace, row in json.loads(done.stdout).items()}


def with_measured(text, found):
    lines = text.splitlines()
    head = next(line for line in lines if line.startswith("trace,")).split(",")
    for at, line in enumerate(lines):
        row = line.split(",")
        if row[0] in found:
            lines[at] = ",".join(f"{found[row[0]][name]:.3f}" if name in OURS else value for name, value in zip(head, row))
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--measure", action="store_true")
    options = parser.parse_args()
    if options.measure:
        FIGURES.write_text(with_measured(FIGURES.read_text(), measured()))
    found = figures(FIGURES.read_text())
    if options.write or options.measure:
        page = PAGE.read_text()
        begin, end = old_table(page)
        PAGE.write_text(page[:begin] + table(found) + page[end:])
        PICTURE.write_text(svg(found))
    else:
        print(table(found), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
