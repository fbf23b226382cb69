"""Where the time goes: seconds by step, by folder and by test, and what was compiled how often.

What a run measured is kept in build/times.json; `./dev test --times` makes the table of it, build/times.txt."""
import collections
import json
import re
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
SHOWN = 25
# A test that waits so long and does nothing meanwhile waits by the clock.
IDLE = 1.0


def read(path):
    try:
        kept = json.loads(path.read_text())
    except (OSError, ValueError):
        kept = {}
    return {"steps": kept.get("steps", {}), "tests": kept.get("tests", {})}


def keep(path, outcomes, steps):
    """Adds what was measured to what is known. `steps`: (title, seconds) of this run."""
    kept = read(path)
    for outcome in outcomes:
        kept["tests"].setdefault(outcome.where, {})[outcome.name] = \
            [round(outcome.seconds, 2), round(outcome.processor_seconds, 2)]
    kept["steps"].update({title: round(seconds, 1) for title, seconds in steps})
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(kept, indent=1, sort_keys=True))
    fresh.replace(path)


def table(title, columns, rows):
    if not rows:
        return []
    lines = ["", title, "  ".join(f"{column:>10}" for column in columns)]
    for *numbers, name in rows:
        lines.append("  ".join(f"{number:10.1f}" if isinstance(number, float) else f"{number:10}"
                               for number in numbers) + f"  {name}")
    return lines


def step_rows(kept):
    return [(seconds, title) for title, seconds in sorted(kept["steps"].items(), key=lambda step: -step[1])]


def test_rows(kept):
    rows = [(seconds, used, name if where == "release" else f"{where}: {name}")
            for where, tests in kept["tests"].items() for name, (seconds, used) in tests.items()]
    return sorted(rows, reverse=True)


def group_rows(kept):
    groups = collections.defaultdict(lambda: [0, 0.0, 0.0, 0.0])
    for where, tests in kept["tests"].items():
        for name, (seconds, used) in tests.items():
            group = groups[f"{where}: {name.partition('/')[0]}"]
            for i, more in enumerate((1, seconds, used, max(seconds - used, 0.0))):
                group[i] += more
    return sorted(((*group, name) for name, group in groups.items()), key=lambda row: -row[1])


def source_of(output):
    """The source of an object file, by how CMake names it; None for what is no object."""
    found = re.fullmatch(r"(.*?)/?CMakeFiles/[^/]+\.dir/(.+)\.o", output)
    if not found:
        return None
    parts = [part for part in found.group(1).split("/") if part]
    for part in found.group(2).split("/"):
        if part == "__":
            del parts[-1:]
        else:
            parts.append(part)
    return "/".join(parts)


def ninja_log(path):
    """Seconds by output that is still there, of the last time that each was made."""
    made = {}
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return made
    for line in lines:
        fields = line.split("\t")
        if len(fields) == 5 and not line.startswith("#") and (path.parent / fields[3]).exists():
            made[fields[3]] = (int(fields[1]) - int(fields[0])) / 1000
    return made


def compiled(folders):
    """Rows by build folder, and (times, seconds, source) of what is compiled more than once."""
    builds, sources = [], collections.defaultdict(lambda: [0, 0.0])
    for folder in folders:
        objects, links = [0, 0.0], [0, 0.0]
        for output, seconds in ninja_log(folder / ".ninja_log").items():
            source = source_of(output)
            group = objects if source else links
            group[0] += 1
            group[1] += seconds
            if source:
                sources[source][0] += 1
                sources[source][1] += seconds
        if objects[0]:
            builds.append((*objects, *links, folder.name))
    often = sorted(((times, seconds, name) for name, (times, seconds) in sources.items() if times > 1),
                   key=lambda row: -row[1])
    return builds, often


def multiplicity_rows(often, builds):
    """How many sources are compiled twice, three times, ...; in how many seconds."""
    groups = collections.defaultdict(lambda: [0, 0.0])
    for times, seconds, _ in often:
        groups[times][0] += 1
        groups[times][1] += seconds
    return [(count, seconds, f"sources, each {times} times in {len(builds)} builds")
            for times, (count, seconds) in sorted(groups.items())]


def report(kept, folders, whole):
    """The table's lines; not whole: the longest of each kind, for a screen."""
    most = None if whole else SHOWN
    tests = test_rows(kept)
    builds, often = compiled(folders)
    idle = sorted(((seconds - used, seconds, name) for seconds, used, name in tests if seconds - used > IDLE),
                  reverse=True)
    lines = table("steps", ["seconds"], step_rows(kept))
    lines += table("folders", ["programs", "seconds", "processor", "idle"], group_rows(kept))
    lines += table("compiled", ["objects", "seconds", "others", "seconds"], builds)
    lines += table("compiled more than once", ["sources", "seconds"], multiplicity_rows(often, builds))
    lines += table("of these the longest", ["times", "seconds"], often[:most])
    lines += table("tests that wait", ["idle", "seconds"], idle[:most])
    lines += table("tests", ["seconds", "processor"], tests[:most])
    return lines[1:] or ["nothing is measured yet"]


def write(kept_in, folders, text_in):
    """Writes the whole table; returns the lines for a screen."""
    kept = read(kept_in)
    text_in.parent.mkdir(parents=True, exist_ok=True)
    text_in.write_text("\n".join(report(kept, folders, True)) + "\n")
    lines = report(kept, folders, False)
    return [*lines, "", f"all of it is in {text_in}"]
