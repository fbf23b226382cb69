#!/usr/bin/env python3
"""Makes README's pictures by gpumem's own programs and committed figures.

make.py [--check] [BUILD]: grow.svg of what examples/grow prints on softgpu; small.svg of a table of docs/h200.md;
map.png is the page of `gpumem map --demo` as Chromium draws it, and map.sources the checksum of what draws it. With
--check nothing is written, and the exit status is 1 where a picture is out of date."""
import hashlib
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parents[1]
TEXT = 'font-family="system-ui, DejaVu Sans, sans-serif"'
MAP_SOURCES = ("tools/gpumem/map/page.html", "tools/gpumem/map/page.css", "tools/gpumem/map/page.js", "tools/gpumem/map_demo.c")


def text(x, y, what, size=13, fill="#1b2330", anchor="start", weight="400"):
    what = what.replace("&", "&amp;").replace("<", "&lt;")
    return f'<text x="{x:g}" y="{y:g}" {TEXT} font-size="{size}" fill="{fill}" text-anchor="{anchor}" font-weight="{weight}">{what}</text>'


def box(x, y, width, height, fill, more=""):
    return f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="3" fill="{fill}" {more}/>'


def picture(width, height, title, parts):
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">'
    return "\n".join([head, f"<title>{title}</title>", box(0, 0, width, height, "#ffffff"), *parts, "</svg>", ""])


def grow(build):
    """Strips of used bytes, memory and addresses, one for each line that examples/grow prints of a buffer."""
    env = dict(os.environ, GPUMEM_DRIVER="softgpu", SOFTGPU_MEMORY="1G")
    said = subprocess.run([build / "examples/grow"], env=env, capture_output=True, text=True, check=True).stdout
    steps = re.findall(r"^(\w+) +(\d+) MiB used, +(\d+) MiB of memory, room for +(\d+) MiB$", said, re.M)
    assert len(steps) >= 3 and "the address stayed" in said, said
    scale = 560 / max(int(room) for *_, room in steps)
    parts = [text(20, 28, "One buffer, in MiB: used, memory behind it, addresses reserved for it", 15, weight="600")]
    for i, (what, used, memory, room) in enumerate(steps):
        y = 48 + 46 * i
        parts += [text(20, y + 19, what), box(120, y, int(room) * scale, 28, "#ffffff", 'stroke="#c3cad3" stroke-dasharray="4 3"'),
                  box(120, y, int(memory) * scale, 28, "#a9c7ee"), box(120, y, int(used) * scale, 28, "#2f7de1"),
                  text(690, y + 19, f"{used} used, {memory} of memory", 12, "#5b6675")]
    y = 48 + 46 * len(steps) + 14
    parts.append(text(20, y, "allocated and grown: one address; moved: more addresses, the same memory and bytes, no copy", 12, "#5b6675"))
    return picture(880, y + 16, "A buffer grows at one address", parts)


def figures():
    """(name, us, million pairs a second) of the table in docs/h200.md."""
    page = (SOURCE / "docs/h200.md").read_text()
    section = page.partition("## Other libraries, from C and C++")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| ([^|]+) \| ([\d.]+) \| ([\d.]+) \|$", section, re.M)
    assert len(rows) >= 4, "docs/h200.md has no such table"
    return [(name.replace("**", ""), float(one), float(many)) for name, one, many in rows]


def small():
    """Pairs in a second by 16 threads, on a logarithmic scale."""
    rows = sorted(figures(), key=lambda row: -row[2])
    parts = [text(20, 28, "Allocate and free 256 B on one H200: 16 threads, million pairs per second", 15, weight="600")]
    low, high = math.log10(0.1), math.log10(1000)
    for power in range(-1, 4):
        x = 230 + 480 * (power - low) / (high - low)
        parts += [box(x, 44, 1, 34 * len(rows), "#dfe3e8"), text(x, 44 + 34 * len(rows) + 18, f"{10.0 ** power:g}", 11, "#5b6675", "middle")]
    for i, (name, one, many) in enumerate(rows):
        y = 48 + 34 * i
        ours = name.startswith("gpumem")
        parts += [text(220, y + 17, name, 13, anchor="end", weight="600" if ours else "400"),
                  box(230, y, 480 * (math.log10(many) - low) / (high - low), 24, "#2f7de1" if ours else "#97a1af"),
                  text(725, y + 17, f"{many:g} M/s; {one * 1000:.0f} ns in one thread", 12, "#5b6675")]
    return picture(920, 44 + 34 * len(rows) + 34, "Small allocations", parts)


def map_checksum():
    return "".join(f"{hashlib.sha256((SOURCE / name).read_bytes()).hexdigest()}  {name}\n" for name in MAP_SOURCES)


def draw_map(build):
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not browser:
        sys.exit("make.py: map.png needs Chromium (./dev deps browser)")
    with tempfile.TemporaryDirectory(prefix="gpumem-", dir="/tmp") as folder:
        page = Path(folder) / "demo.html"
        subprocess.run([build / "bin/gpumem", "map", "--demo", "--driver", "softgpu", "--output", page], check=True)
        # Not where it was made.
        page.write_text(re.sub(r'("path":\s*")[^"]*(libsoftgpu)', r"\1\2", page.read_text()))
        subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={folder}/profile",
                        "--window-size=1280,1000", "--virtual-time-budget=4000", f"--screenshot={HERE / 'map.png'}",
                        f"file://{page}?theme=light"], check=True, stderr=subprocess.DEVNULL)
    (HERE / "map.sources").write_text(map_checksum())


def main():
    arguments = [word for word in sys.argv[1:] if word != "--check"]
    build = Path(arguments[0]) if arguments else SOURCE / "build"
    made = {"grow.svg": grow(build), "small.svg": small()}
    if "--check" in sys.argv:
        old = [name for name, wanted in made.items() if not (HERE / name).exists() or (HERE / name).read_text() != wanted]
        if not (HERE / "map.png").exists() or (HERE / "map.sources").read_text() != map_checksum():
            old.append("map.png")
        for name in old:
            print(f"docs/pictures/{name} is out of date: python3 docs/pictures/make.py")
        return 1 if old else 0
    for name, wanted in made.items():
        (HERE / name).write_text(wanted)
    draw_map(build)
    return 0


if __name__ == "__main__":
    sys.exit(main())
