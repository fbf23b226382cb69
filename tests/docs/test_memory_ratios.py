#!/usr/bin/env python3
"""The table and the picture of how much memory allocators take are those of the committed figures."""
import sys

import memory_ratios as ratios
from pages import SOURCE, report


def stale(page, picture, figures):
    found = ratios.figures(figures)
    begin, end = ratios.old_table(page)
    again = ": python3 tests/docs/memory_ratios.py --write"
    return ([] if page[begin:end] == ratios.table(found) else [f"{ratios.PAGE.name} has other figures" + again]) + \
           ([] if picture == ratios.svg(found) else [f"{ratios.PICTURE.name} is not of these figures" + again])


def main():
    page, picture, figures = (path.read_text() for path in (ratios.PAGE, ratios.PICTURE, ratios.FIGURES))
    named = [] if "docs/memory-ratios.svg" in (SOURCE / "README.md").read_text() else ["README shows no picture"]
    other = figures.replace("1.074", "1.075")
    return report([("the table and the picture are of the figures", stale(page, picture, figures) + named),
                   ("other figures are detected", [] if len(stale(page, picture, other)) == 2 else ["they are not"])])


if __name__ == "__main__":
    sys.exit(main())
