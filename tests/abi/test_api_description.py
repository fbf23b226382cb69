#!/usr/bin/env python3
"""tools/api/api.json is what the headers say, what is generated from it is current, and each function,
struct, member and value that programs see has a text."""
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests/harness"))
from tap_report import Report  # noqa: E402  pylint: disable=wrong-import-position

MAKER = SOURCE / "tools/api/describe.py"
REPORT = Report()


def is_current():
    # Debian's bindings belong to Debian's interpreter.
    for python in (sys.executable, "/usr/bin/python3"):
        done = subprocess.run([python, str(MAKER), "--check"], capture_output=True, text=True, check=False)
        if done.returncode != 77:
            REPORT.expect(done.returncode == 0, "the description is that of the headers",
                          done.stdout + done.stderr)
            return
    REPORT.skip("the description is that of the headers", "the Python package clang is not installed")


def has_text(description):
    missing = [name for kind in ("functions", "callbacks") for name, record in description[kind].items()
               if not record["comment"]]
    REPORT.expect(not missing, "each function has a text", "\n".join(missing))
    options = [f"{name}.{member['name']}: {member['default']}"
               for name, record in description["structs"].items() if record["kind"] == "options"
               for member in record["members"][1:] if "value" not in member.get("default", {})]
    REPORT.expect(not options, "each option has a default", "\n".join(options))


def is_whole(description):
    """What is known of some, so that a reader that finds nothing is seen."""
    functions, structs = description["functions"], description["structs"]
    read = functions["gpumem_buffer_read"]
    REPORT.expect(
        read["returns"] == "gpumem_status" and [each["name"] for each in read["parameters"]] ==
        ["buffer", "offset", "host", "bytes", "stream"] and "NOT_PERMITTED" in read["statuses"] and
        "cuMemcpyAsync" in read["driver"] and read["header"] == "copy.h",
        "a function is described by all that its header says", json.dumps(read, indent=1))
    members = {each["name"]: each for each in structs["gpumem_virtual_options"]["members"]}
    REPORT.expect(
        members["cache_bytes"]["unit"] == "bytes" and
        members["cache_bytes"]["default"] == {"value": 0, "means": "nothing is cached"} and
        members["handle_type"]["default"]["value"] == "GPUMEM_HANDLE_POSIX_FD" and
        members["compression"]["type"] == "bool",
        "a member is described by its type, unit and default", json.dumps(members, indent=1))
    busy = [each for each in description["enums"]["gpumem_status"]["values"]
            if each["name"] == "GPUMEM_ERROR_BUSY"]
    REPORT.expect(len(busy) == 1 and busy[0]["value"] == 5 and busy[0]["comment"],
                  "a value of an enum is described", str(busy))


def every_name_is_in_the_list(description):
    page = (SOURCE / "docs/api-1.0.md").read_text()
    stays = dict(re.findall(r"^\| `(gpumem_\w+)` \| `(\w+\.h)` \|", page, re.M))
    REPORT.expect(stays == {name: record["header"] for name, record in description["functions"].items()},
                  "docs/api-1.0.md says of each function why it stays, and of no other",
                  "\n".join(sorted(set(stays) ^ set(description["functions"]))))
    text = (SOURCE / "include/gpumem/removed.h").read_text()
    gone = re.findall(r"^GPUMEM_REMOVED(?:_TYPE)?\(\s*(gpumem_\w+)", text, re.M)
    unlisted = [name for name in gone if f"| `{name}` | " not in page]
    known = set().union(*(description[kind] for kind in ("functions", "structs", "enums", "callbacks")))
    REPORT.expect(len(gone) > 30 and not unlisted and not known & set(gone),
                  "removed names are listed, and are gone", "\n".join(unlisted + sorted(known & set(gone))))


def old_names_are_refused():
    """With a message that names the new word, by each compiler that can."""
    for compiler, oldest in (("gcc", 12), ("clang", 14)):
        if not shutil.which(compiler):
            REPORT.skip(f"old names are refused by {compiler}", f"{compiler} is not installed")
            continue
        version = subprocess.run([compiler, "-dumpversion"], capture_output=True, text=True, check=True).stdout
        if int(version.split(".")[0]) < oldest:
            REPORT.skip(f"old names are refused by {compiler}", f"{compiler} {version} has no such attribute")
            continue
        program = "#include <gpumem/gpumem.h>\nvoid *f(void);\nvoid *f(void) { return (void *)gpumem_watch_end; }\n"
        done = subprocess.run([compiler, "-std=c17", "-I", str(SOURCE / "include"), "-fsyntax-only", "-xc", "-"],
                              input=program, capture_output=True, text=True, check=False)
        REPORT.expect(done.returncode != 0 and "use gpumem_watch_destroy" in done.stderr,
                      f"old names are refused by {compiler}", done.stderr)


def main():
    description = json.loads((MAKER.parent / "api.json").read_text())
    is_current()
    has_text(description)
    is_whole(description)
    every_name_is_in_the_list(description)
    old_names_are_refused()
    return REPORT.end()


if __name__ == "__main__":
    sys.exit(main())
