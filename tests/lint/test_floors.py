#!/usr/bin/env python3
"""Folders stand on floors: what a file includes, and what its object uses, lies in its own folder or below, and
a header declares only what its folder defines. docs/architecture.md has the picture."""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import floors  # noqa: E402
from files import SOURCE, tap  # noqa: E402

BUILD = Path(os.environ.get("GPUMEM_BUILD_DIR", SOURCE / "build"))
PICTURE = SOURCE / "docs/floors.svg"


def judge(root, build, house):
    symbols = floors.Symbols(root, build, house)
    return (floors.unranked(root, house) + floors.upward(floors.includes(root, house), house) +
            floors.upward(symbols.edges(house), house) + floors.foreign(root, house, symbols))


def picture():
    edges = floors.Symbols(SOURCE, BUILD, "src/softgpu").edges("src/softgpu")
    if not PICTURE.exists() or PICTURE.read_text() != floors.svg("src/softgpu", edges):
        return ["docs/floors.svg is not what the code is: ./dev floors --svg docs/floors.svg"]
    return []


# ---- Planted violations --------------------------------------------------------------------------------------

def plant(root, house, files):
    """A house with a file of each folder, which nothing is asked of, these files beside them, and their objects."""
    for folder in floors.FLOORS[house]:
        (root / house / folder).mkdir(parents=True)
        (root / house / folder / "empty.c").write_text(f"int sg_empty_{folder};\n")
    for name, text in files.items():
        path = root / house / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        if path.suffix == ".c":
            built = root / "build/src/softgpu/CMakeFiles/softgpu_objs.dir" / f"{name}.o"
            built.parent.mkdir(parents=True, exist_ok=True)
            subprocess.run(["cc", "-c", "-I", str(root / "src"), str(path), "-o", str(built)], check=True)


PLANTED = [
    ("an include of a floor above", "softgpu/graph/x.h", {
        "graph/x.h": "struct sg_x;\n", "stream/a.c": '#include "softgpu/graph/x.h"\nint sg_a;\n'}),
    ("a call of a floor above, declared by the caller", "sg_above is of pool", {
        "pool/b.c": "void sg_above(void) {}\n",
        "core/a.c": "void sg_above(void);\nvoid sg_below(void);\nvoid sg_below(void) { sg_above(); }\n"}),
    ("an object of a floor above", "sg_object is of graph", {
        "graph/b.c": "int sg_object = 1;\n",
        "copy/a.c": "extern int sg_object;\nint sg_read(void);\nint sg_read(void) { return sg_object; }\n"}),
    ("a header that declares what another folder defines", "context/a.h: sg_other is defined in", {
        "stream/b.c": "int sg_other(int a) { return a; }\n",
        "context/a.h": "/* Says. */\nint sg_other(int a);\n"}),
    ("a header that declares an object of another folder", "context/a.h: sg_table is defined in", {
        "stream/b.c": "const int sg_table[2] = {1, 2};\n",
        "context/a.h": "extern const int sg_table[2];\n"}),
    ("a declaration of nothing", "sg_gone is declared, and defined nowhere", {
        "stream/a.h": "struct sg_x *sg_gone(int a,\n                     int b);\n"}),
    ("a folder without a floor", "src/softgpu/attic: has no floor", {"attic/a.c": "int sg_attic;\n"}),
]
ALLOWED = {
    "core/x.h": "int sg_low(void);\nextern int sg_lowest;\n",
    "core/x.c": '#include "softgpu/core/x.h"\nint sg_lowest;\nint sg_low(void) { return sg_lowest; }\n',
    "graph/a.c": '#include "softgpu/core/x.h"\nint sg_high(void);\nint sg_high(void) { return sg_low(); }\n',
}


def planted():
    problems = []
    for title, expected, files in PLANTED + [("nothing wrong", None, ALLOWED)]:
        with tempfile.TemporaryDirectory() as temporary:
            root = Path(temporary)
            plant(root, "src/softgpu", files)
            found = judge(root, root / "build", "src/softgpu")
            if [expected in line for line in found] != ([True] if expected else []):
                problems.append(f"{title}: found {found}")
    return problems


if __name__ == "__main__":
    if os.environ.get("GPUMEM_SANITIZE", "off") != "off":
        print("1..0 # SKIP objects of the release build are looked at: a sanitizer's have symbols of its own")
        sys.exit(0)
    sys.exit(tap([(f"{house}: every use and include goes downwards", judge(SOURCE, BUILD, house))
                  for house in floors.FLOORS] +
                 [("planted violations are detected", planted()), ("the diagram agrees with the code", picture())]))
