"""Reads the recorder's output: a run, or a recording that merge.py wrote."""

import re

ENDED = re.compile(r"^(SIGNAL \d+|TIMEOUT|EXIT \d+)$")
HEAD = re.compile(r"^(?P<function>\S+) (?P<cls>\S+) (?P<args>.*)$", re.S)


class Line:
    """One call: where it was made, and what it answered."""

    def __init__(self, scenario, number, head, answer, mark=""):
        match = HEAD.match(head)
        self.scenario = scenario
        self.number = number
        self.function = match["function"] if match else ""
        self.cls = match["cls"] if match else ""
        self.args = match["args"] if match else head
        self.answer = answer
        self.mark = mark  # '' when scored, else 'ended', 'unstable' or 'unconfirmed'
        self.occurrence = 0

    @property
    def key(self):
        return (self.scenario, self.function, self.cls, self.args, self.occurrence)

    @property
    def result(self):
        """The enumerator, or for what is not a driver call the whole text."""
        return self.answer if self.function == "see" else self.answer.split(" ", 1)[0]

    @property
    def outputs(self):
        return dict(re.findall(r"([A-Za-z_][\w.\[\]]*)=([^,}]*)", self.answer.partition(" {")[2]))

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


def read(path):
    """Header lines and calls, each call numbered among those that look the same."""
    header, lines, seen, scenario = [], [], {}, None
    with open(path, encoding="utf-8", errors="replace") as file:
        for text in file:
            text = text.rstrip("\n")
            if text.startswith("#"):
                header.append(text)
            elif text.startswith("[") and text.endswith("]"):
                scenario = text[1:-1]
            elif text:
                line = parse_line(text, scenario)
                same = (line.scenario, line.function, line.cls, line.args)
                line.occurrence = seen.get(same, 0)
                seen[same] = line.occurrence + 1
                lines.append(line)
    return header, lines
