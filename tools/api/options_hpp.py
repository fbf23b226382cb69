"""Makes include/gpumem/cpp/options.hpp of the interface's description."""
from pathlib import Path

OUTPUT = Path(__file__).resolve().parents[2] / "include/gpumem/cpp/options.hpp"
# Written by hand beside their callables, or because they are checked as they are converted.
BY_HAND = {"gpumem_load_options", "gpumem_trace_options", "gpumem_failure_callback_options",
           "gpumem_foreign_options", "gpumem_register_options"}
CHECKED = {"gpumem_dlpack_options"}
FLAGS = {"int": "0", "unsigned int": "0", "unsigned": "0", "double": "0", "CUdeviceptr": "0"}
SPELLED = {"size_t": "std::size_t", "uint64_t": "std::uint64_t", "uint32_t": "std::uint32_t",
           "int64_t": "std::int64_t", "unsigned int": "unsigned"}

BEGIN = """\
/*
 * The options of the C interface for C++20's designated initialisers: same names, same order, same
 * defaults, without `size`. The structs of the C interface document the members. Made by
 * tools/api/options_hpp.py from tools/api/api.json.
 *
 *     memory.allocate(bytes, {.stream = stream, .capacity = most});
 */
#ifndef GPUMEM_CPP_OPTIONS_HPP
#define GPUMEM_CPP_OPTIONS_HPP

"""


def is_count(member, members):
    """Whether it counts the elements of another member: peers and peer_count."""
    stem = member["name"].removesuffix("_count")
    return stem != member["name"] and any(each["name"] == stem + "s" and "*" in each["type"]
                                          for each in members)


def span_of(member, members):
    """The type of the elements, for a pointer that comes with a count."""
    counts = {f"{each['name'].removesuffix('_count')}s" for each in members if is_count(each, members)}
    if member["name"] not in counts:
        return None
    element = member["type"].removesuffix("*").strip()
    constant, name = element.startswith("const "), element.removeprefix("const ")
    return ("const " if constant else "") + SPELLED.get(name, name)


def declared(member, members):
    element = span_of(member, members)
    name, type_name = member["name"], member["type"]
    if element:
        return f"    std::span<{element}> {name} = {{}};\n"
    default = member["default"]["value"]
    if default is None:
        value = "nullptr"
    elif isinstance(default, bool):
        value = "false"
    else:
        value = str(default)
    spelled = SPELLED.get(type_name, type_name)
    space = "" if spelled.endswith("*") else " "
    return f"    {spelled}{space}{name} = {value};\n"


def struct(name, members):
    with_counts = [each["name"] for each in members if span_of(each, members)]
    about = f"/* {name}" + (f"; `{'`, `'.join(with_counts)}` with its count. */\n" if with_counts else " */\n")
    body = "".join(declared(each, members) for each in members if not is_count(each, members))
    return f"{about}struct {name.removeprefix('gpumem_')} {{\n{body}}};\n"


def conversion(name, members):
    lines = [f"inline {name} in_c(const {name.removeprefix('gpumem_')} &from) noexcept {{",
             f"    {name} to{{}};", "    to.size = sizeof to;"]
    for each in members:
        member = each["name"]
        if is_count(each, members):
            lines.append(f"    to.{member} = from.{member.removesuffix('_count')}s.size();")
        elif span_of(each, members):
            lines.append(f"    to.{member} = from.{member}.data();")
        else:
            lines.append(f"    to.{member} = from.{member};")
    return "\n".join([*lines, "    return to;", "}"]) + "\n"


def text(description):
    chosen = {name: record for name, record in description["structs"].items()
              if record["kind"] == "options" and name not in BY_HAND | CHECKED}
    includes = sorted({f"#include <gpumem/{record['header']}>" for record in chosen.values()} |
                      {"#include <cstddef>", "#include <cstdint>", "#include <span>"})
    parts = [BEGIN, "\n".join(includes), "\n\nnamespace gpumem {\n\n"]
    members = {name: record["members"][1:] for name, record in chosen.items()}
    parts.append("\n".join(struct(name, each) for name, each in members.items()))
    parts.append("\nnamespace detail {\n\n")
    parts.append("\n".join(conversion(name, each) for name, each in members.items()))
    parts.append("\n} // namespace detail\n} // namespace gpumem\n\n#endif\n")
    return "".join(parts)
