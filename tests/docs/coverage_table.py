"""docs/coverage.md: what softgpu makes of each function, as the built command says.

coverage_table.py BUILD prints it; `--write` puts it where it belongs.
"""
import json
import os
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
TABLE = SOURCE / "docs" / "coverage.md"
# The names that the driver API's documentation has.
DOCUMENTED = (SOURCE / "tests/coverage/documented.txt").read_text().split()

# The first prefix that fits decides; the last fits all.
CHAPTERS = [
    ("Graphics interoperability", ("cuGraphics", "cuGL", "cuEGL", "cuVDPAU", "cuEventCreateFromEGL",
                                   "cuDeviceGetNvSciSync")),
    ("Graphs", ("cuGraph", "cuUserObject", "cuDeviceGraphMem", "cuDeviceGetGraphMem",
                "cuDeviceSetGraphMem")),
    ("Green contexts", ("cuGreenCtx", "cuDevResource", "cuDevSmResource", "cuCtxFromGreenCtx",
                        "cuCtxGetDevResource", "cuDeviceGetDevResource")),
    ("Contexts", ("cuCtx", "cuDevicePrimaryCtx", "cuThread")),
    ("Pools", ("cuMemPool", "cuMemAllocAsync", "cuMemAllocFromPool", "cuMemFreeAsync",
               "cuDeviceGetDefaultMemPool", "cuDeviceGetMemPool", "cuDeviceSetMemPool",
               "cuMemGetMemPool", "cuMemSetMemPool", "cuMemGetDefaultMemPool")),
    ("Images", ("cuModule", "cuLibrary", "cuKernel", "cuFunc", "cuLink", "cuOccupancy")),
    ("Streams and events", ("cuStream", "cuEvent", "cuLaunchHostFunc")),
    ("Kernel launches", ("cuLaunch", "cuParam")),
    ("Arrays", ("cuArray", "cuMipmapped", "cuMemMapArray")),
    ("Textures, surfaces, tensor maps", ("cuTex", "cuSurf", "cuTensor")),
    ("External memory and semaphores", ("cuImportExternal", "cuExternal", "cuDestroyExternal",
                                        "cuSignalExternal", "cuWaitExternal")),
    ("Virtual memory and sharing", ("cuMemAddress", "cuMemCreate", "cuMemMap", "cuMemUnmap",
                                    "cuMemRelease", "cuMemRetain", "cuMemSetAccess",
                                    "cuMemGetAccess", "cuMemExport", "cuMemImport",
                                    "cuMemGetAllocation", "cuMemGetHandle", "cuMulticast",
                                    "cuIpc")),
    ("Managed memory", ("cuMemAllocManaged", "cuMemAdvise", "cuMemPrefetch", "cuMemRange",
                        "cuMemDiscard")),
    ("Copies and sets", ("cuMemcpy", "cuMemset", "cuMemBatchDecompress")),
    ("Memory", ("cuMem", "cuPointer")),
    ("Checkpoint, core dump, logs, profiler", ("cuCheckpoint", "cuCoredump", "cuLogs",
                                               "cuProfiler", "cuDeviceRegisterAsync",
                                               "cuDeviceUnregisterAsync")),
    ("Devices and the driver", ("cu",)),
]


def chapter_of(name):
    for title, prefixes in CHAPTERS:
        if name.startswith(prefixes):
            return title
    raise SystemExit(f"coverage_table: {name} belongs to no chapter")


def rows_of(build):
    command = [str(Path(build) / "bin" / "gpumem"), "driver", "--driver", "softgpu", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True,
                          env=dict(os.environ, SOFTGPU_LOG="off"))
    return json.loads(done.stdout)


def table_of(rows):
    chapters, refused = {}, {}
    for row in rows:
        title = chapter_of(row["name"])
        counts = chapters.setdefault(title, {"real": 0, "refused": 0, "missing": 0})
        counts[row["status"]] += 1
        if row["status"] != "real":
            refused.setdefault(title, []).append(row["name"])
    lines = ["# What softgpu implements", "",
             "Made by `tests/docs/coverage_table.py` from what `gpumem driver --driver softgpu` says; "
             "a test compares the two. A row is an exported function in one ABI version, twins for "
             "the per-thread default stream included. *Real* means that a test fails when the "
             "function answers success and does nothing; the command names the test.", "",
             "| chapter | real | refused |", "|---|---|---|"]
    total = {"real": 0, "refused": 0, "missing": 0}
    for title in dict.fromkeys(title for title, _ in CHAPTERS):
        counts = chapters.get(title)
        if not counts:
            continue
        lines.append(f"| {title} | {counts['real']} | {counts['refused'] + counts['missing']} |")
        for key, value in counts.items():
            total[key] += value
    # A documented name is real when one of its ABI versions is.
    # The documentation names some versions by themselves, `cuCtxCreate_v4`.
    real = {row[key] for row in rows if row["status"] == "real" for key in ("api_name", "name")}
    left = [name for name in DOCUMENTED if name not in real]
    lines += [f"| **all** | **{total['real']}** | **{total['refused'] + total['missing']}** |", "",
              f"Of the {len(DOCUMENTED)} documented names {len(DOCUMENTED) - len(left)} are real. The "
              "others: " + ", ".join(f"`{name}`" for name in left) + ".", "",
              "## Refused", ""]
    for title, names in refused.items():
        lines.append(f"- **{title}**: " + ", ".join(f"`{name}`" for name in names))
    return "\n".join(lines) + "\n"


def main():
    arguments = [word for word in sys.argv[1:] if word != "--write"]
    text = table_of(rows_of(arguments[0] if arguments else SOURCE / "build"))
    if "--write" in sys.argv:
        TABLE.write_text(text)
    else:
        print(text, end="")


if __name__ == "__main__":
    main()
