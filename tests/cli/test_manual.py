#!/usr/bin/env python3
"""The man pages say what the help says, of every command and option; the help says what the source
takes; no reader of pages complains; and the examples run."""
import re
import shlex
import shutil
import subprocess

import harness
import help_text
from harness import expect

PAGES = harness.BUILD / "share/man/man1"
TOOL = harness.SOURCE / "tools/gpumem"
EXAMPLES = TOOL / "manual/examples.txt"
TAKEN = re.compile(r'\{"([a-z0-9-]+)", (required|optional|no)_argument')
ESCAPES = [("\\-", "-"), ("\\(aq", "'"), ("\\(ha", "^"), ("\\(ti", "~"), ("\\(ga", "`"), ("\\&", "")]


def page_name(command):
    return f"gpumem-{command}" if command else "gpumem"


def page(command):
    path = PAGES / f"{page_name(command)}.1"
    expect(path.exists(), f"there is no page {path.name}")
    return path.read_text()


def plain(text):
    """Without fonts and escapes."""
    text = re.sub(r"\\f[BIR]", "", text)
    for escaped, character in ESCAPES:
        text = text.replace(escaped, character)
    return text.replace("\\e", "\\")


def terms(text):
    """{option: kind} of the page's definitions."""
    found = [plain(line).split() for line in re.findall(r"^\.TP\n(.*)$", text, re.M)]
    return {words[0].split("[")[0]: words[1] if len(words) > 1 else "" for words in found if words[0].startswith("--")}


def words_of_page(text):
    """What is between the title and the examples, without requests."""
    body = re.split(r"^\.SH (?:EXAMPLES|SEE ALSO)$", text.partition(".SH SYNOPSIS\n")[2], flags=re.M)[0]
    return plain("\n".join(line for line in body.splitlines() if not re.match(r"\.[A-Z]|\.[nf]", line))).split()


def words_of_help(text):
    return re.sub(r"^(usage|Exit status): ", "", text, flags=re.M).split()


def differences(wanted, text):
    """What a page lacks of a help, or has beyond it."""
    found = []
    if terms(text) != wanted.options:
        found.append(f"options: the help has {wanted.options}, the page {terms(text)}")
    said, printed = words_of_help(wanted.text), words_of_page(text)
    # A section begins with a capital, what follows "Exit status:" does not.
    if [word.lower() for word in said] != [word.lower() for word in printed]:
        found.append(f"words: the help has {said}, the page {printed}")
    return found


def each_command():
    yield "", help_text.of()
    for command in help_text.commands():
        yield command, help_text.of(command)


def test_every_command_has_exactly_one_manual_page(_):
    wanted = {f"{page_name(command)}.1" for command in ["", *help_text.commands()]}
    found = {path.name for path in PAGES.iterdir()}
    expect(wanted == found and len(found) > 5, f"pages {sorted(found)}, not {sorted(wanted)}")
    for command, summary in help_text.commands().items():
        expect(f"{page_name(command)} - {summary}" in plain(page(command)), f"{command}: no summary")


def test_manual_pages_agree_with_the_help(_):
    for command, wanted in each_command():
        found = differences(wanted, page(command))
        expect(not found, f"{page_name(command)}: {found}")


def test_differences_between_page_and_help_are_detected(_):
    wanted, text = help_text.of("load"), page("load")
    for changed in (text.replace("\\fB\\-\\-quiet\\fR", "quiet"), text.replace("\\-\\-quiet", "\\-\\-silent"),
                    text.replace("\\fIFILE\\fR\n", "\\fIPATH\\fR\n", 1),
                    text.replace(".SH EXIT", ".TP\n\\fB\\-\\-more\\fR\nmore\n.SH EXIT")):
        expect(changed != text and differences(wanted, changed), "a planted mistake goes unnoticed")


def source_of(command):
    """The file of a command and those that are named after it."""
    return "".join(path.read_text() for path in sorted(TOOL.glob("*.c"))
                   if re.match(rf"(cmd_)?{command}(_|\.)", path.name))


def test_the_help_lists_the_options_that_the_source_parses(_):
    for command in help_text.commands():
        taken = {f"--{name}": how == "required" for name, how in TAKEN.findall(source_of(command))}
        said = {name: bool(kind) for name, kind in help_text.of(command).options.items()}
        expect(taken and taken == said, f"{command} takes {taken}, and its help says {said}")


def test_every_help_text_has_the_same_structure(_):
    for command, text in each_command():
        name = f"gpumem {command}".strip()
        expect(text.usage.startswith(f"usage: {name} "), text.usage)
        expect("\nExit status: " in text.text, f"{name}: nothing about the exit status")
        wide = [line for line in text.text.splitlines() if len(line) > 80]
        expect(not wide, f"{name}: {wide}")


def test_manual_page_readers_report_no_warnings(_):
    readers = [words for words in (["mandoc", "-T", "lint", "-W", "warning"],
                                   ["groff", "-man", "-ww", "-z", "-T", "utf8"]) if shutil.which(words[0])]
    if not readers:
        raise harness.Skip("neither mandoc nor groff is installed")
    for reader in readers:
        for path in sorted(PAGES.glob("*.1")):
            done = subprocess.run([*reader, path], capture_output=True, text=True, timeout=30, check=False)
            said = done.stdout + done.stderr
            expect(done.returncode == 0 and not said, f"{reader[0]}: {done.returncode}\n{said}")


def examples():
    """(command or "gpumem", line) of each."""
    section = None
    for line in EXAMPLES.read_text().splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        elif line.startswith("    "):
            yield section, line.strip()


def test_manual_pages_contain_their_examples(_):
    for section, line in examples():
        expect(section == "gpumem" or section in help_text.commands(), f"[{section}] is no command")
        expect(section == "gpumem" or line.split()[1] == section, f"[{section}]: {line}")
        expect(line in plain(page("" if section == "gpumem" else section)), f"{section}: {line} is missing")


def prepare(folder):
    (folder / "model.bin").write_bytes(bytes(range(256)) * 4096)
    (folder / "my_tests").write_text(f'#!/bin/sh\nexec "{harness.COMMAND}" info\n')
    (folder / "my_tests").chmod(0o755)
    done = subprocess.run([harness.BUILD / "examples/arena", folder / "run.csv"], capture_output=True, text=True,
                          env=harness.environment(), timeout=50, check=False)
    expect_done("examples/arena", done)


def expect_done(line, done):
    expect(done.returncode == 0, f"{line}: {done.returncode}\n{done.stdout}{done.stderr}")


def test_the_examples_of_the_manual_pages_run(folder):
    if harness.SANITIZE != "off":
        raise harness.Skip("run looks for softgpu's libcuda.so.1, which a sanitizer's build does not have")
    prepare(folder)
    for section, line in examples():
        words = shlex.split(line)
        env = harness.environment(SOFTGPU_DEVICES="2")
        # What doctor finds is the machine's affair, and a fault's outcome the program's.
        allowed = (0, 1, 3) if section == "doctor" or words[1] == "doctor" else (0, 1, 9) if "--fault" in words else (0,)
        done = subprocess.run([harness.COMMAND, *words[1:]], cwd=folder, env=env, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=50, check=False)
        expect(done.returncode in allowed, f"{line}: {done.returncode}\n{done.stdout}{done.stderr}")


harness.main(globals())
