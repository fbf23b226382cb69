#!/usr/bin/env python3
"""The chapters on tasks: what they show is a part of the example that they name, what they name exists, what they
say that an operation costs was measured, and their links lead somewhere."""
import re
import sys
import textwrap

from pages import BLOCK, CALL, CODE, LINK, SOURCE, blocks, declared, public_headers, report

WHOLE = re.compile(r"The whole program is \[`(examples/\w+\.c)`\]")
NUMBER = re.compile(r"\d[\d,.]*\d|\d")


def chapters():
    """{page: (text, example)} of all pages that say where their whole program is."""
    found = {}
    for path in sorted((SOURCE / "docs").glob("*.md")):
        if match := WHOLE.search(path.read_text()):
            found[path.name] = (path.read_text(), match.group(1))
    return found


def foreign_code(text, program):
    """Blocks of C that are no part of the program as it stands."""
    program = textwrap.dedent(program)
    lines = [line.strip() for line in program.splitlines()]
    wrong = []
    for block in blocks(text, "c"):
        wanted = [line.strip() for line in block.splitlines()]
        if not any(lines[i:i + len(wanted)] == wanted for i in range(len(lines))):
            wrong.append(f"not in the program:\n{block}")
    return wrong


def unknown_names(text, headers):
    return [f"{name} is not declared" for name in CALL.findall(" ".join(CODE.findall(BLOCK.sub("", text))))
            if not declared(name, headers)]


def unmeasured(text, measured):
    """Numbers of the section on costs that docs/h200.md does not have."""
    section = re.search(r"^## What it costs$(.*?)(?=^## |\Z)", text, re.M | re.S)
    if not section:
        return ["nothing about what it costs"]
    plain = LINK.sub("]", CODE.sub("", section.group(1)))
    there = set(NUMBER.findall(measured))
    return [f"{number} is not in docs/h200.md" for number in NUMBER.findall(re.sub(r"H200", "", plain))
            if number not in there]


def lost_links(page, text):
    folder = (SOURCE / page).parent
    return [f"{page}: {target}" for target in LINK.findall(BLOCK.sub("", text))
            if not re.match(r"\w+:", target) and not (folder / target).exists()]


def form(text):
    """An engineer finds the same things in each."""
    wanted = ["What to call", "What it costs"]
    found = re.findall(r"^## (.*)$", text, re.M)
    problems = [f"no section '{title}'" for title in wanted if title not in found]
    if not any(title in found for title in ("What refuses, and why", "Which answer means what")):
        problems.append("nothing about refusals")
    if not 60 <= text.count("\n") <= 150:
        problems.append(f"{text.count(chr(10))} lines")
    return problems


def problems_of(text, program, headers, measured):
    return (foreign_code(text, program) + unknown_names(text, headers) + unmeasured(text, measured) + form(text))


def planted(page, program, headers, measured):
    """That each kind of mistake is noticed."""
    mistakes = [("```c\n", "```c\nint not_in_any_example;\n"), ("`gpumem_", "`gpumem_no_such_"),
                ("## What it costs\n", "## What it costs\n\n987.65 us\n"), ("## What to call", "## How")]
    missed = []
    for old, new in mistakes:
        changed = page.replace(old, new, 1)
        if changed == page or not problems_of(changed, program, headers, measured):
            missed.append(f"{new!r} goes unnoticed")
    if not lost_links("docs/grow.md", "[a](no-such-page.md)"):
        missed.append("a link to nothing goes unnoticed")
    return missed


def main():
    headers, measured = public_headers(), (SOURCE / "docs/h200.md").read_text()
    found, results = chapters(), []
    for name, (text, example) in found.items():
        program = (SOURCE / example).read_text()
        results.append((f"docs/{name} shows, names and measures what there is",
                        problems_of(text, program, headers, measured)))
    text, example = found["grow.md"]
    results.append(("planted mistakes are detected",
                    planted(text, (SOURCE / example).read_text(), headers, measured)))
    results.append(("the documentation has chapters", [] if len(found) >= 4 else [f"only {list(found)}"]))
    pages = ["README.md", *(f"docs/{path.name}" for path in sorted((SOURCE / "docs").glob("*.md")))]
    results.append(("links lead to files", [problem for page in pages
                                            for problem in lost_links(page, (SOURCE / page).read_text())]))
    readme = (SOURCE / "README.md").read_text()
    results.append(("README.md leads to each chapter", [name for name in found if f"docs/{name}" not in readme]))
    return report(results)


sys.exit(main())
