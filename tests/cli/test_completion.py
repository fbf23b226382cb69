#!/usr/bin/env python3
"""bash, zsh and fish complete commands, options, and their values: all that the help has, of every command,
so that a new one is completed as soon as it has a help."""
import re
import shutil

import completion_shells
import harness
import help_text
from harness import expect

# What a value in capitals is; a new name is to be put here, and into the completions if it has values.
FILES = {"FILE", "LOG", "SNAPSHOT", "PATH", "SOCKET", "PROGRAM", "HTML", "OUTPUT"}
FOLDERS = {"FOLDER", "DIRECTORY"}
ANYTHING = {"N", "SIZE", "SPEC", "NAME", "SECONDS", "TEXT", ""}
OTHERS = {"CHOICE", "LIST", "COMMAND"}


def alternatives(kind):
    return ("nvidia|softgpu|FILE" if kind == "CHOICE" else kind).split("|")


def completed(text, option, kind):
    """(words, whether files too) for the value of an option, or of the operand."""
    if kind == "LIST":
        return set(text.values[option]), False
    parts = alternatives(kind)
    return ({part for part in parts if not part.isupper()} - {""},
            any(part in FILES | FOLDERS for part in parts))


def questions(files):
    """(line, words that are the answer) for all commands."""
    commands = help_text.commands()
    yield "gpumem ", {*commands, "help"}
    yield "gpumem -", {"--help", "--version"}
    yield "gpumem help ", set(commands)
    for command in commands:
        text = help_text.of(command)
        yield f"gpumem {command} --", {*text.options, "--help"}
        for option, kind in text.options.items():
            if kind:
                words, with_files = completed(text, option, kind)
                yield f"gpumem {command} {option} ", words | (files if with_files else set())
        # Without one zsh offers the options at once, the others nothing.
        if text.operand not in ("COMMAND", ""):
            yield f"gpumem {command} ", files if completed(text, "", text.operand)[1] else set()


DETAILS = [
    ("gpumem lo", {"load"}),
    ("gpumem load --dri", {"--driver"}),
    ("gpumem load --driver=so", {"softgpu", "some.file"}),
    ("gpumem load --no-share some", {"some.file"}),
    ("gpumem load --receiver some", {"some.file"}),
    ("gpumem run --fail-on l", {"leaks"}),
    ("gpumem run --softgpu -- cat some", {"some.file"}),
    ("gpumem run --devices 2 --leaks cat some", {"some.file"}),
    ("gpumem run --softgpu runs-noth", {"runs-nothing-of-this-name"}),
]


def prepare(folder):
    (folder / "some.file").write_text("")
    (folder / "bin").mkdir()
    program = folder / "bin" / "runs-nothing-of-this-name"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    return {"some.file", "bin"}


def simple(words):
    """fish writes a folder with its slash, bash adds it later."""
    return {word.rstrip("/") for word in words}


def check(shell, folder):
    if not shutil.which(shell):
        raise harness.Skip(f"{shell} is not installed")
    files = prepare(folder)
    path = completion_shells.os.environ["PATH"]
    completion_shells.os.environ["PATH"] = f"{folder / 'bin'}:{path}"
    try:
        asked = [*questions(files), *DETAILS]
        answers = getattr(completion_shells, shell)([line for line, _ in asked], folder)
    finally:
        completion_shells.os.environ["PATH"] = path
    expect(len(answers) == len(asked), f"{len(answers)} answers to {len(asked)} questions")
    wrong = [f"{line!r}: {sorted(simple(words))}, not {sorted(wanted)}"
             for (line, wanted), words in zip(asked, answers) if simple(words) != wanted]
    expect(not wrong, "\n".join(wrong))


def test_bash_completes_commands_options_and_values(folder):
    check("bash", folder)


def test_zsh_completes_commands_options_and_values(folder):
    check("zsh", folder)


def test_fish_completes_commands_options_and_values(folder):
    check("fish", folder)


def test_comma_separated_lists_are_completed_item_by_item(folder):
    asked = {"bash": {"caching,pool", "caching,pinned"}, "zsh": {"pool", "pinned"},
             "fish": {"caching,pool", "caching,pinned"}}
    there = {shell: wanted for shell, wanted in asked.items() if shutil.which(shell)}
    if not there:
        raise harness.Skip("no shell is installed")
    for shell, wanted in there.items():
        answer = getattr(completion_shells, shell)(["gpumem replay --resource caching,p"], folder)
        expect(set(answer[0]) == wanted, f"{shell}: {answer}")


def test_completion_handles_every_kind_of_value(_):
    known = FILES | FOLDERS | ANYTHING | OTHERS
    for command in help_text.commands():
        text = help_text.of(command)
        kinds = {part for kind in (*text.options.values(), text.operand) for part in alternatives(kind)}
        unknown = {kind for kind in kinds if re.fullmatch("[A-Z]+", kind)} - known
        expect(not unknown, f"{command}: no completion knows what {unknown} is")


def test_all_completions_have_the_same_kinds(_):
    for path in sorted(completion_shells.FOLDER.iterdir()):
        words = set(re.findall(r"\b[A-Z]{3,}\b", "\n".join(
            line for line in path.read_text().splitlines() if not line.lstrip().startswith("#"))))
        expect(FILES | FOLDERS <= words, f"{path.name} lacks {(FILES | FOLDERS) - words}")


harness.main(globals())
