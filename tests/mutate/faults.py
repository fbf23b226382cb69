"""The list of planted faults: which are chosen, what became of each, and the file that says so.

A list is a file of JSON lines, to which each result is added when it is known, so that a run that was ended
goes on where it was. A fault is known by its source, the text of its line, and which one it is of the lines
with that text: line numbers change with every commit. Results:

    found       a test failed, or found no end; `by` says which
    survived    every test that runs the line passed
    cut         the seconds for one fault were over before all of them had run
    unreached   no test runs the line
    dropped     no fault: it does not compile, or the machine code is the same; another one is drawn
    gone        the line is no longer there (of a list that is run again)
"""
import dataclasses
import json
from pathlib import Path

import changes

FOUND, SURVIVED, CUT, UNREACHED, DROPPED, GONE = "found", "survived", "cut", "unreached", "dropped", "gone"
COUNTED = [FOUND, SURVIVED, CUT, UNREACHED]


@dataclasses.dataclass(frozen=True)
class Fault:
    source: str
    text: str
    occurrence: int
    change: str
    becomes: str

    @property
    def folder(self):
        return str(Path(self.source).parent)

    def number(self, text):
        """The line's number in a source, which counts from 1; None where it is not there."""
        places = [number for number, line in enumerate(text.split("\n"), 1) if line == self.text]
        return places[self.occurrence] if self.occurrence < len(places) else None

    def planted(self, text):
        """The source with the fault in it."""
        lines = text.split("\n")
        lines[self.number(text) - 1] = self.becomes
        return "\n".join(lines)


def fault_at(source, text, number, change, becomes):
    lines = text.split("\n")
    line = lines[number - 1]
    return Fault(source, line, lines[:number - 1].count(line), change, becomes)


def shares(sizes, count):
    """How many of `count` each folder gets: one each, the largest first, and the rest by size."""
    order = sorted(sizes, key=lambda folder: (-sizes[folder], folder))
    given = {folder: 1 for folder in order[:count]}
    left, every = count - len(given), sum(sizes.values())
    exact = {folder: left * sizes[folder] / every for folder in given}
    for folder in given:
        given[folder] += int(exact[folder])
    rest = sorted(given, key=lambda folder: (int(exact[folder]) - exact[folder], folder))
    for folder in rest[:count - sum(given.values())]:
        given[folder] += 1
    return given


def draws_of_folder(project, folder, sources, seed):
    """Faults of one folder, in the order in which they are drawn."""
    chance = changes.chance_of(seed, folder)
    places = [(source, number) for source in sorted(sources) for number in sorted(project.lines(source))]
    chance.shuffle(places)
    for source, number in places:
        text = project.read(source)
        lines, code = project.split(source)
        if found := changes.changes_of(lines, code, number):
            yield fault_at(source, text, number, *chance.choice(found))


class Record:
    """The file of a list."""

    def __init__(self, path):
        self.path, self.rows = path, {}
        rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        self.unstable = {row["unstable"] for row in rows if "unstable" in row}
        for row in rows:
            if "source" in row and row.get("by") not in self.unstable:
                self.rows[self.fault_of(row)] = row

    @staticmethod
    def fault_of(row):
        return Fault(*(row[field.name] for field in dataclasses.fields(Fault)))

    def write(self, row):
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a") as file:
            file.write(json.dumps(row) + "\n")

    def add(self, fault, line, result, **more):
        row = {"line": line, **dataclasses.asdict(fault), "result": result, **more}
        self.rows[fault] = row
        self.write(row)
        return row

    def distrust(self, test):
        """A test that fails without any fault, too: what it found counts no more."""
        self.unstable.add(test)
        self.write({"unstable": test})
        self.rows = {fault: row for fault, row in self.rows.items() if row.get("by") != test}

    def counted(self):
        return {fault: row for fault, row in self.rows.items() if row["result"] in COUNTED}


def score(rows):
    """A table by folder, and then what no test found."""
    folders = {}
    for fault, row in rows.items():
        count = folders.setdefault(fault.folder, [0, 0])
        count[0] += 1
        count[1] += row["result"] == FOUND
    every = [sum(column) for column in zip([0, 0], *folders.values())]
    lines = ["| folder | faults | found | % |", "|---|--:|--:|--:|"]
    for folder, (count, found) in [*sorted(folders.items()), ("all", every)]:
        lines.append(f"| {folder} | {count} | {found} | {100 * found / max(1, count):.0f} |")
    lines.append("")
    for fault, row in sorted(rows.items(), key=lambda pair: (pair[1]["result"], pair[0].source, pair[1]["line"])):
        if row["result"] != FOUND:
            lines += [f"{row['result']}: {fault.source}:{row['line']}: {fault.change} ({row['tests']} tests ran)",
                      f"    - {fault.text.strip()}", f"    + {fault.becomes.strip()}"]
    return "\n".join(lines) + "\n"
