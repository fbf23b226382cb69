"""The one-place changes of a line of C that are tried: each is a mistake that somebody might make.

Only what the compiler made code of is changed, and no comment, string, preprocessor line or assertion."""
import random
import re

COMMENT_OR_TEXT = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.S)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.M)
# Neither is what a program does: an assertion states what holds, the others only quieten a compiler.
NOT_CHANGED = re.compile(r"\b\w*assert\w*\s*\(|\(void\)\w+;|\b__builtin_unreachable\b", re.I)

# (name, pattern, what it becomes). clang-format puts blanks around binary operators, and none at a pointer's star.
SWAPS = [
    ("equal for unequal", r"==", "!="),
    ("unequal for equal", r"!=", "=="),
    ("less or equal for less", r" < ", " <= "),
    ("less for less or equal", r" <= ", " < "),
    ("greater or equal for greater", r" > ", " >= "),
    ("greater for greater or equal", r" >= ", " > "),
    ("difference for sum", r" \+ ", " - "),
    ("sum for difference", r" - ", " + "),
    ("quotient for product", r" \* ", " / "),
    ("product for quotient", r" / ", " * "),
    ("quotient for remainder", r" % ", " / "),
    ("or for and", r" && ", " || "),
    ("and for or", r" \|\| ", " && "),
    ("bits or for and", r" & ", " | "),
    ("bits and for or", r" \| ", " & "),
    ("right shift for left", r" << ", " >> "),
    ("left shift for right", r" >> ", " << "),
    ("decrease for increase", r"\+\+", "--"),
    ("increase for decrease", r"--", "++"),
    ("subtracted for added", r" \+= ", " -= "),
    ("added for subtracted", r" -= ", " += "),
    ("bits kept for set", r" \|= ", " &= "),
    ("bits set for kept", r" &= ", " |= "),
    ("false for true", r"\btrue\b", "false"),
    ("true for false", r"\bfalse\b", "true"),
    ("no negation", r"!(?=[\w(])", ""),
    ("success for an error", r"\breturn (?:CUDA_ERROR_\w+);", "return CUDA_SUCCESS;"),
    ("an error for success", r"\breturn CUDA_SUCCESS;", "return CUDA_ERROR_UNKNOWN;"),
    ("an error for success", r"\breturn GPUMEM_OK;", "return GPUMEM_ERROR_SYSTEM;"),
]
SWAPS = [(name, re.compile(pattern), new) for name, pattern, new in SWAPS]
NUMBER = re.compile(r"(?<![\w.])(\d+)([uUlL]*)(?![\w.])")
ARRAY = re.compile(r"^\s*(?:static |const |unsigned |struct )*\w+ \*?\w+(\[\w+\])+( = .*)?;")
CONDITION = re.compile(r"\b(?:if|while) \(")
RETURNED = re.compile(r"\breturn (?!0;|NULL;|false;|true;|-?\d+;|CUDA_\w+;|GPUMEM_\w+;|\(void)[^;{}]+;")
# A call, an assignment to what is there already, or a jump: a declaration has two words before the `=`.
STATEMENT = re.compile(r"^(\s*)((?:\(void\))?[\w.>\[\]-]+(?:->\w+)*\(.*\);|[\w.>\[\]()*+-]+ [-+*/|&^%<>]{0,2}= .*;"
                       r"|break;|continue;|goto \w+;|return;|(?:\+\+|--)?[\w.>-]+(?:\+\+|--)?;)$")


def blank(found):
    return re.sub(r"[^\n]", " ", found.group(0))


def code_of(text):
    """The text with blanks for what is no code, every character in its place."""
    return DIRECTIVE.sub(blank, COMMENT_OR_TEXT.sub(blank, text))


def closing(line, start):
    """Where the parenthesis that opens at `start` is closed in this line, or -1."""
    depth = 0
    for at in range(start, len(line)):
        depth += (line[at] == "(") - (line[at] == ")")
        if depth == 0:
            return at
    return -1


def is_whole(code, before):
    """Whether a line that ends in a semicolon is a statement by itself, and not the end of one."""
    previous = next((line.rstrip() for line in reversed(before) if line.strip()), "{")
    return previous.endswith((";", "{", "}", ":", ")", "else", "do")) and code.count("(") == code.count(")")


def swaps(line, code):
    for name, pattern, new in SWAPS:
        for found in pattern.finditer(code):
            yield name, line[:found.start()] + new + line[found.end():]


def numbers(line, code):
    for found in NUMBER.finditer(code):
        if not ARRAY.match(code):
            yield "a number off by one", f"{line[:found.start()]}{int(found.group(1)) + 1}{line[found.end(1):]}"


def conditions(line, code):
    for found in CONDITION.finditer(code):
        end = closing(code, found.end() - 1)
        if end > 0:
            yield ("a condition negated",
                   f"{line[:found.end()]}!({line[found.end():end]}){line[end:]}")


def returns(line, code):
    for found in RETURNED.finditer(code):
        yield "0 returned", f"{line[:found.start()]}return 0;{line[found.end():]}"


def removals(line, code, before):
    found = STATEMENT.match(code.rstrip())
    if found and is_whole(code, before):
        yield "a statement left out", f"{found.group(1)};"


def changes_of(lines, code, number):
    """(name, new line) for each change of the line with that number, which counts from 1."""
    line, plain = lines[number - 1], code[number - 1]
    if NOT_CHANGED.search(plain) or line.endswith("\\"):
        return []
    found = [*swaps(line, plain), *numbers(line, plain), *conditions(line, plain), *returns(line, plain),
             *removals(line, plain, code[max(0, number - 6):number - 1])]
    return [(name, new) for name, new in found if new != line]


def draws(text, numbers_of_lines, chance):
    """An endless choice is not needed: each line once, in a random order, with one of its changes."""
    lines, code = text.split("\n"), code_of(text).split("\n")
    order = sorted(numbers_of_lines)
    chance.shuffle(order)
    for number in order:
        if found := changes_of(lines, code, number):
            yield number, *chance.choice(found)


def chance_of(*seeds):
    """Random numbers that are the same on every machine."""
    return random.Random("/".join(map(str, seeds)))
