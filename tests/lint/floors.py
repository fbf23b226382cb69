#!/usr/bin/env python3
"""The floors of src/ and of src/softgpu: which folder stands on which, by what the built objects use and by
what the sources include.

usage: floors.py [--build DIR] [--root DIR] [--svg FILE]

Without --svg: prints, for each folder from the top down, what it uses of those below, and what is wrong."""
import argparse
import os
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from files import SOURCE  # noqa: E402

# From the ground up. A folder uses its own files and those of the floors below it.
FLOORS = {
    "src/softgpu": """core device process checkpoint address coredump context stream memory managed pool array
        texture external multicast ipc green copy decompress tensor_map image ptx binary program engine module link check launch graph
        report entry""".split(),
    "src": "base driver vulkan memory cache wrap share load snapshot mapped vkgdr runtime".split(),
}
# A program of its own, and what the houses are made of.
OUTSIDE = {"src/softgpu": {"shim", "audit"}, "src": {"softgpu"}}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)
# A declaration at the beginning of a line: of a function, or of an object.
FUNCTION = re.compile(r"^(?!static|typedef|#|extern \"C\")[A-Za-z_][\w \t\n*]*?[\s*]((?:sg|gm|gpumem|vkgdr)_\w+)\(", re.M)
OBJECT = re.compile(r"^extern [\w \t*]*?[\s*]((?:sg|gm)_\w+)(?:\[[^\]]*\])*(?:,|;)", re.M)
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)


def folder_of(house, path):
    """The folder of a house that a path lies in, or None."""
    inside = str(path)[len(house) + 1:]
    folder = inside.split("/")[0] if "/" in inside else None
    return None if folder in OUTSIDE[house] else folder


def objects(root, build, house):
    """(source relative to the root, object) of everything that is built of a house."""
    for path in sorted(Path(build, "src").rglob("*.o")):
        made = re.search(r"^(.*)/CMakeFiles/[^/]+\.dir/(.+)\.o$", str(path.relative_to(build)))
        source = made and f"{made.group(1)}/{made.group(2)}"
        if source and source.startswith(house + "/") and (Path(root) / source).exists():
            if folder_of(house, source):
                yield source, path


def listed(paths, at_once=200):
    """(object, name, kind) of each symbol: nm is started for many objects together."""
    for first in range(0, len(paths), at_once):
        done = subprocess.run(["nm", "-A", "-P", *paths[first:first + at_once]], capture_output=True, text=True,
                              check=True)
        for line in done.stdout.splitlines():
            path, _, rest = line.partition(": ")
            name, kind = rest.split()[:2]
            yield path, name, kind


class Symbols:
    """Of the built objects of one house: who defines what, and who uses it."""

    def __init__(self, root, build, house):
        self.defined = {}
        self.uses = defaultdict(set)
        made = {str(path): source for source, path in objects(root, build, house)}
        for path, name, kind in listed(list(made)):
            if kind in ("U", "w", "v"):
                self.uses[made[path]].add(name)
            elif kind in "TDBRSVW":
                self.defined.setdefault(name, made[path])

    def edges(self, house):
        """(folder, folder below or above) -> {(source, symbol)}"""
        found = defaultdict(set)
        for source, names in self.uses.items():
            for name in names & self.defined.keys():
                pair = folder_of(house, source), folder_of(house, self.defined[name])
                if pair[0] != pair[1]:
                    found[pair].add((source, name))
        return found


def sources(root, house, suffixes=(".c", ".h")):
    for path in sorted(Path(root, house).rglob("*")):
        relative = path.relative_to(root)
        if path.suffix in suffixes and folder_of(house, relative):
            yield relative


def includes(root, house):
    """(folder, other folder) -> {(source, header)}"""
    inside = house[len("src/"):] + "/" if house != "src" else ""
    found = defaultdict(set)
    for path in sources(root, house, (".c", ".h", ".def")):
        for header in INCLUDE.findall((Path(root) / path).read_text(errors="replace")):
            if not header.startswith(inside) or "/" not in header[len(inside):]:
                continue
            other = header[len(inside):].split("/")[0]
            if other in FLOORS[house] and other != folder_of(house, path):
                found[folder_of(house, path), other].add((str(path), header))
    return found


def declared(text):
    """The names that a header declares."""
    text = COMMENT.sub("", text)
    text = re.sub(r"__attribute__\s*\(\(.*?\)\)", "", text, flags=re.S)
    return set(FUNCTION.findall(text)) | set(OBJECT.findall(text))


def unranked(root, house):
    there = {folder_of(house, path) for path in sources(root, house)}
    return ([f"{house}/{name}: has no floor" for name in sorted(there - set(FLOORS[house]))] +
            [f"{house}/{name}: has a floor and no files" for name in sorted(set(FLOORS[house]) - there)])


def upward(edges, house):
    """Uses of a floor above."""
    rank = {name: number for number, name in enumerate(FLOORS[house])}
    return [f"{source}: {name} is of {above}, which stands above {below}"
            for (below, above), uses in sorted(edges.items()) if rank.get(above, -1) > rank.get(below, -1)
            for source, name in sorted(uses)]


def foreign(root, house, symbols):
    """Headers that declare what another folder defines, or nothing does."""
    found = []
    for path in sources(root, house, (".h",)):
        for name in sorted(declared((Path(root) / path).read_text(errors="replace"))):
            where = symbols.defined.get(name)
            if where is None:
                found.append(f"{path}: {name} is declared, and defined nowhere")
            elif folder_of(house, where) != folder_of(house, path):
                found.append(f"{path}: {name} is defined in {where}")
    return found


# ---- The picture ---------------------------------------------------------------------------------------------

CELL, MARGIN = 22, 110


def svg(house, edges):
    """A square for each pair of folders: what the row uses of the column. All marks lie below the diagonal."""
    floors = FLOORS[house]
    size = MARGIN + CELL * len(floors) + 10
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{size}" height="{size}" font-family="sans-serif" '
           f'font-size="12">', f"<title>{house}: each row uses the columns that are marked</title>",
           f'<rect width="{size}" height="{size}" fill="#fff"/>']
    for at, name in enumerate(floors):
        middle = MARGIN + CELL * at + CELL / 2
        out.append(f'<text x="{MARGIN - 8}" y="{middle + 4}" text-anchor="end">{name}</text>')
        out.append(f'<text transform="translate({middle + 4},{MARGIN - 8}) rotate(-90)">{name}</text>')
        for column, other in enumerate(floors):
            fill = "#ddd" if column == at else "#246" if (name, other) in edges and column < at else (
                "#c00" if (name, other) in edges else "#f6f6f6")
            out.append(f'<rect x="{MARGIN + CELL * column + 1}" y="{MARGIN + CELL * at + 1}" width="{CELL - 2}" '
                       f'height="{CELL - 2}" fill="{fill}"/>')
    return "\n".join(out) + "\n</svg>\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.environ.get("GPUMEM_BUILD_DIR", SOURCE / "build"), type=Path)
    parser.add_argument("--root", default=SOURCE, type=Path)
    parser.add_argument("--svg", type=Path, help="write the picture of src/softgpu there")
    options = parser.parse_args()
    if options.svg:
        edges = Symbols(options.root, options.build, "src/softgpu").edges("src/softgpu")
        options.svg.write_text(svg("src/softgpu", edges))
        return 0
    wrong = []
    for house, floors in FLOORS.items():
        symbols = Symbols(options.root, options.build, house)
        edges = symbols.edges(house)
        wrong += unranked(options.root, house) + upward(edges, house) + upward(includes(options.root, house), house)
        print(f"{house}, from the top down, with the number of symbols used:")
        for name in reversed(floors):
            used = [f"{other} {len({name for _, name in edges[name, other]})}" for other in reversed(floors)
                    if (name, other) in edges]
            print(f"  {name:11} {', '.join(used)}")
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
