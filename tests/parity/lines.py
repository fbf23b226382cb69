"""Reads the recorder's output: a run, or a recording that merge.py wrote, perhaps packed (.xz)."""

import lzma
import os
import re

ENDED = re.compile(r"^(SIGNAL \d+|TIMEOUT|EXIT \d+)$")
OUTPUT = re.compile(r"([A-Za-z_][\w.\[\]]*)=([^,}]*)")


class Line:
    """One call: where it was made, and what it answered."""

    __slots__ = ("scenario", "number", "function", "cls", "args", "answer", "mark", "key")

    def __init__(self, scenario, number, head, answer, mark=""):
        words = head.split(" ", 2)
        self.scenario = scenario
        self.number = number
        self.function, self.cls, self.args = words if len(words) == 3 else ("", "", head)
        self.answer = answer
        self.mark = mark  # '' when scored, else 'ended', 'unstable' or 'unconfirmed'
        self.key = None  # what it is looked up by: the call, and how many calls before it look the same

    @property
    def result(self):
        """The enumerator, or for what is not a driver call the whole text."""
        return self.answer if self.function == "see" else self.answer.split(" ", 1)[0]

    @property
    def outputs(self):
        return dict(OUTPUT.findall(self.answer.partition(" {")[2]))

    @property
    def ended(self):
        return bool(ENDED.match(self.answer))

    def head(self):
        return " ".join(part for part in (self.function, self.cls, self.args) if part)

    def __str__(self):
        return f"{self.scenario} {self.head()} -> {self.answer}"


def parse_line(text, scenario):
    """`scenario#number head -> answer`, or, inside a recording's section, `number head -> answer`."""
    mark = ""
    if text.startswith("!"):
        mark, _, text = text[1:].partition(" ")
    place_and_head, arrow, answer = text.partition(" -> ")
    if not arrow:
        raise ValueError(f"no answer in: {text[:120]}")
    place, _, head = place_and_head.partition(" ")
    if "#" in place:
        scenario, _, number = place.partition("#")
    elif place.isdigit() and scenario:
        number = place
    else:  # a scenario that ended before its first call
        scenario, number, head = place, "0", ""
    return Line(scenario, int(number), head, answer, mark)


def open_text(path, mode="r"):
    """A file's text; what ends in .xz is packed. The recordings lie so in the repository."""
    if str(path).endswith(".xz"):
        return lzma.open(path, mode + "t", preset=9 if mode == "w" else None, encoding="utf-8", errors="replace")
    return open(path, mode, encoding="utf-8", errors="replace")


def recordings(folder):
    """The paths of all recordings of a folder, packed or not."""
    names = sorted(name for name in os.listdir(folder) if name.endswith((".txt", ".txt.xz")))
    return [os.path.join(folder, name) for name in names]


def read(path):
    """Header lines and calls, each call numbered among those that look the same."""
    header, lines, seen, scenario = [], [], {}, None
    with open_text(path) as file:
        for text in file:
            text = text.rstrip("\n")
            if text.startswith("#"):
                header.append(text)
            elif text.startswith("[") and text.endswith("]"):
                scenario = text[1:-1]
            elif text:
                try:
                    line = parse_line(text, scenario)
                except ValueError as problem:
                    raise SystemExit(f"{path}: {problem}") from None
                same = (line.scenario, line.function, line.cls, line.args)
                occurrence = seen.get(same, 0)
                seen[same] = occurrence + 1
                line.key = (*same, occurrence)
                lines.append(line)
    return header, lines
