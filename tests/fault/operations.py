"""The public operations, as the headers declare them; and a C file that counts what they do.

    operations.py OUT.c OUT.options

writes for each public function a wrapper that the linker puts in its place (--wrap), and the linker's
options. tests/fault/operations.h says what is counted."""
import re
import sys
from pathlib import Path

INCLUDE = Path(__file__).resolve().parents[2] / "include/gpumem"
# Interfaces of their own: the driver's table, and softgpu's controls.
OTHER_INTERFACES = {"driver.h", "softgpu.h", "cuda_api.h"}
DECLARATION = re.compile(r"GPUMEM_API\s+(?:GPUMEM_MUST_CHECK\s+)?([^;()]*?)\b(gpumem_\w+)\s*\(([^;]*)\)\s*;")


class Operation:
    def __init__(self, comment, result, name, parameters):
        self.comment = comment
        self.result = " ".join(result.split())
        self.name = name
        self.parameters = " ".join(parameters.split())

    def says_driver_calls(self):
        """Whether its own comment names functions of the driver."""
        return bool(re.search(r"Driver\b[^:]*:(?!\s*none)", self.comment))

    def arguments(self):
        if self.parameters == "void":
            return []
        return [re.search(r"(\w+)(?:\[\w*\])?$", part.strip()).group(1)
                for part in self.parameters.split(",")]


COMMENT = re.compile(r"/\*.*?\*/", re.S)


def blank(match):
    return re.sub(r"[^\n]", " ", match.group(0))


def in_header(path):
    """Each with the comment that ends where its declaration begins, or "" where there is none."""
    text = path.read_text()
    comments = {match.end(): match.group(0) for match in COMMENT.finditer(text)}
    code = COMMENT.sub(blank, text)
    code = re.sub(r"^#.*(?:\\\n.*)*$", blank, code, flags=re.M)
    return [Operation(comments.get(len(text[:match.start()].rstrip()), ""), *match.groups())
            for match in DECLARATION.finditer(code)]


def find():
    """All of them, by header and place."""
    return [operation for path in sorted(INCLUDE.glob("*.h")) if path.name not in OTHER_INTERFACES
            for operation in in_header(path)]


def wrapper(number, operation):
    call = f"__real_{operation.name}({', '.join(operation.arguments())})"
    head = f"{operation.result} __real_{operation.name}({operation.parameters});\n" \
           f"{operation.result} __wrap_{operation.name}({operation.parameters});\n" \
           f"{operation.result} __wrap_{operation.name}({operation.parameters}) {{\n" \
           f"    const struct operation_entry entry = operation_enter({number});\n"
    if operation.result == "void":
        return head + f"    {call};\n    operation_leave(&entry, 1);\n}}\n"
    good = "result == GPUMEM_OK" if operation.result == "gpumem_status" else "1"
    return head + f"    {operation.result} result = {call};\n" \
        f"    operation_leave(&entry, {good});\n    return result;\n}}\n"


def main():
    operations = find()
    names = ",\n".join(f'    "{operation.name}"' for operation in operations)
    Path(sys.argv[1]).write_text(
        '#include "operations.h"\n\n#include <gpumem/gpumem.h>\n\n'
        f"const char *const operation_names[] = {{\n{names}}};\n"
        f"const size_t operation_count = {len(operations)};\n"
        + "".join("\n" + wrapper(i, operation) for i, operation in enumerate(operations)))
    Path(sys.argv[2]).write_text("".join(f"--wrap={operation.name}\n" for operation in operations))


if __name__ == "__main__":
    main()
