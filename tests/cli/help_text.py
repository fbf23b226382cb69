"""The help texts of the command, taken apart: what man pages and completions are compared with."""
import re

import harness

OPTION = re.compile(r"^  (--[a-z0-9-]+)(?:\[=[A-Z]+\])?(?: (\S+))?(?:  .*)?$")
VALUE = re.compile(r"^ {10,}([a-z0-9_-]+)  +\S")
COMMAND = re.compile(r"^  ([a-z][a-z-]*)  +(\S.*)$")


class Help:
    """`options` are {name: kind of value, or ""}, `values` {name: those listed below the option}."""

    def __init__(self, text):
        self.text = text
        self.usage = text.splitlines()[0]
        self.options, self.values = {}, {}
        last = None
        for line in text.splitlines():
            if option := OPTION.match(line):
                last = option.group(1)
                self.options[last] = option.group(2) or ""
                self.values[last] = []
            elif last and (value := VALUE.match(line)):
                self.values[last].append(value.group(1))
        self.operand = operand_of(self.usage)


def operand_of(usage):
    """The first word in capitals that is neither OPTION nor an option's value."""
    before = ""
    for word in usage.split():
        plain = word.strip("[].")
        if re.fullmatch("[A-Z]+", plain) and plain != "OPTION" and not re.fullmatch(r"\[?--[a-z-]+", before):
            return plain
        before = word
    return ""


def of(*arguments):
    process = harness.run("help", *arguments)
    harness.expect_status(process, 0)
    return Help(process.stdout)


def commands():
    """{name: summary}, as `gpumem help` lists them."""
    return {match.group(1): match.group(2) for line in of().text.splitlines()
            if (match := COMMAND.match(line))}
