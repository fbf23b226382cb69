"""What a page shows as a whole: files, which name themselves on their first line, and the commands beside them."""
import re

from pages import BLOCK, SOURCE

NAME = re.compile(r"(?:#|//|/\*) ?(?:\.github/workflows/)?([\w.-]+\.\w+|Containerfile)\b")
SECTION = re.compile(r"^## (.*?)$(.*?)(?=^## |\Z)", re.M | re.S)


def sections(page):
    """{title: [(language, text)]} of docs/<page>."""
    return {title: BLOCK.findall(body) for title, body in SECTION.findall((SOURCE / "docs" / page).read_text())}


def files(blocks):
    """{name: text}: a block of Python may have several files, one after another."""
    found = {}
    for language, text in blocks:
        if language == "sh":
            continue
        name = None
        for line in text.splitlines(keepends=True):
            if match := NAME.match(line):
                name = match.group(1)
                found[name] = ""
            if name:
                found[name] += line
    return found


def commands(blocks):
    """The lines of shell, without comments behind them; (command, what its comment says that it prints)."""
    rows = []
    for language, text in blocks:
        for line in text.splitlines() if language == "sh" else ():
            command, _, comment = line.partition("    #")
            rows.append((command.strip(), comment.strip()))
    return [(command, comment) for command, comment in rows if command and not command.startswith("#")]
