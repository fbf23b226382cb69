#!/usr/bin/env python3
"""Makes the API reference: pages of HTML from api.json and the C++ headers, which a browser shows without a network.

reference.py FOLDER [API.JSON]: writes index.html, a page for each header, and cpp.html into FOLDER. Exit status 1,
with the names, where a declaration has no text: a function, a struct, an enumeration, a callback, a handle."""
import html
import json
import re
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
KINDS = {"handles": "Handles", "functions": "Functions", "structs": "Structs", "enums": "Enumerations", "callbacks": "Callbacks"}
STYLE = """body{font:15px/1.5 system-ui,"DejaVu Sans",sans-serif;margin:0;color:#1b2330;background:#fff}
main{max-width:980px;margin:0 auto;padding:1rem 1.2rem 4rem}nav{padding:.6rem 1.2rem;border-bottom:1px solid #dfe3e8}
code,pre{font-family:ui-monospace,"DejaVu Sans Mono",monospace;font-size:13px}pre{background:#f5f6f8;padding:.7rem;overflow-x:auto}
h2{border-bottom:1px solid #dfe3e8;margin-top:2.2rem}h3{margin:1.8rem 0 .3rem;overflow-wrap:anywhere}a{color:#0b63ce;text-decoration:none}a:hover{text-decoration:underline}
table{border-collapse:collapse;width:100%}td,th{border-top:1px solid #dfe3e8;padding:.3rem .5rem;text-align:left;vertical-align:top}
.wide{overflow-x:auto}.quiet{color:#5b6675;font-size:.88em}input{font:inherit;padding:.35rem .6rem;width:min(100%,26rem)}
ul.names{columns:3 16rem;padding-left:1.1rem}li{overflow-wrap:anywhere}
@media (prefers-color-scheme:dark){body{color:#e6ebf2;background:#10141b}pre{background:#181e27}a{color:#79b4ff}nav,h2,td,th{border-color:#2b3441}}"""
FILTER = """<script>
document.getElementById("find").addEventListener("input", (event) => {
  const words = event.target.value.toLowerCase().split(/\\s+/);
  for (const item of document.querySelectorAll("ul.names li"))
    item.hidden = !words.every((word) => item.textContent.toLowerCase().includes(word));
});
</script>"""


def lacking(api):
    """Declarations without text."""
    return [f"{name} ({record['header']})" for kind in KINDS for name, record in api[kind].items() if not record["comment"].strip()]


class Pages:
    def __init__(self, api, forms):
        self.api, self.forms = api, forms
        self.where = {name: record["header"] for kind in KINDS for name, record in api[kind].items()}
        for name, record in api["enums"].items():
            for value in record["values"]:
                self.where.setdefault(value["name"], record["header"])

    def linked(self, text):
        """Names in a text lead to their declarations."""
        def link(match):
            name = match.group(0)
            return f'<a href="{self.where[name][:-2]}.html#{name}">{name}</a>' if name in self.where else name
        marked = re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text, quote=False))
        return re.sub(r"\b(?:gpumem|softgpu|GPUMEM|SOFTGPU)_\w+", link, marked)

    def prose(self, text):
        return "".join(f"<p>{self.linked(part)}</p>" for part in text.split("\n\n") if part.strip())

    def page(self, title, body, script=""):
        return (f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
                f"<title>{html.escape(title)}</title><style>{STYLE}</style></head><body>"
                f'<nav><a href="index.html">gpumem {self.api["version"]}</a> · <a href="cpp.html">C++</a></nav>'
                f"<main><h1>{html.escape(title)}</h1>{body}</main>{script}</body></html>\n")

    def function(self, name, record):
        listed = [f"{each['type']} {each['name']}".replace("* ", "*") for each in record["parameters"]] or ["void"]
        long = len(name) + sum(map(len, listed)) > 80
        parameters = (",\n    " if long else ", ").join(listed)
        before = "\n    " if long else ""
        parts = [f"<pre>{self.linked(record['returns'])} {name}({before}{self.linked(parameters)});</pre>", self.prose(record["comment"])]
        if record.get("statuses"):
            parts.append(f'<p class="quiet">Answers named here: {", ".join(map(self.linked, record["statuses"]))}</p>')
        if self.forms.get(name):
            parts.append(f'<p class="quiet">C++: {", ".join(f"<code>{html.escape(form)}</code>" for form in self.forms[name])}</p>')
        return "".join(parts)

    def rows(self, cells):
        body = "".join(f'<tr id="{name}"><td><code>{name}</code></td><td>{middle}</td><td>{self.linked(text)}</td></tr>' for name, middle, text in cells)
        return f'<div class="wide"><table>{body}</table></div>'

    def declaration(self, kind, name, record):
        head = f'<h3 id="{name}">{name}</h3>'
        if kind in ("functions", "callbacks"):
            body = self.function(name, record)
        elif kind == "structs":
            body = self.prose(record["comment"]) + self.rows(
                (member["name"], f"<code>{html.escape(member['type'])}</code>", member["comment"]) for member in record["members"])
        elif kind == "enums":
            body = self.prose(record["comment"]) + self.rows((value["name"], str(value["value"]), value["comment"]) for value in record["values"])
        else:
            body = self.prose(record["comment"])
        since = "" if record["since"] == "0.1" else f'<p class="quiet">Since {record["since"]}.</p>'
        return head + body + since

    def header(self, header):
        parts = [f"<pre>#include &lt;gpumem/{header}&gt;</pre>", self.prose(self.api["headers"][header])]
        for kind, title in KINDS.items():
            here = {name: record for name, record in self.api[kind].items() if record["header"] == header}
            if here:
                parts += [f"<h2>{title}</h2>", *(self.declaration(kind, name, record) for name, record in here.items())]
        return self.page(header, "".join(parts))

    def index(self):
        rows = "".join(f'<tr><td><a href="{header[:-2]}.html"><code>{header}</code></a></td><td>{html.escape(text.split(". ")[0].split(chr(10))[0])}</td></tr>'
                       for header, text in sorted(self.api["headers"].items()))
        names = "".join(f'<li><a href="{header[:-2]}.html#{name}">{name}</a></li>' for name, header in sorted(self.where.items()))
        return self.page("gpumem: the interface in C", f"<table>{rows}</table><h2>All names</h2><p><label for=\"find\">Part of a name</label> <input id=\"find\" type=\"search\" "
                         f"aria-label=\"Part of a name\"></p><ul class=\"names\">{names}</ul>", FILTER)

    def cpp(self):
        """By C++ class: each function, and the C call whose contract it has."""
        by_class = {}
        for name, forms in self.forms.items():
            for form in forms:
                by_class.setdefault(form.rpartition("::")[0] or "gpumem", []).append((form, name))
        parts = ["<p>A member does what the C call does; functions that begin with <code>try_</code> return a result, the same without it throw. "
                 "Owning handles end what they own.</p>"]
        for owner, rows in sorted(by_class.items()):
            cells = "".join(f"<tr><td><code>{html.escape(form)}</code></td><td>{self.linked(name)}</td></tr>" for form, name in sorted(rows))
            parts.append(f'<h2 id="{owner}">{owner}</h2><table>{cells}</table>')
        return self.page("gpumem: the interface in C++", "".join(parts))


def cpp_forms(folder):
    """{C function: [C++ functions that call it]}, as the C++ headers are laid out."""
    forms = {}
    for path in sorted(folder.glob("*.hpp")):
        owner, function = "", None
        for line in path.read_text().splitlines():
            if match := re.match(r"(?:class|struct) (\w+)[^;]*$", line):
                owner = match.group(1)
            elif line.startswith("}"):
                owner, function = "", None
            elif match := re.match(r"(?: {4})?(?!return\b)(?:[\w:<>,&*\[\]]+ )+[&*]*((?:\w+::)?\w+)\(", line):
                function = match.group(1) if not match.group(1).startswith("gpumem_") else function
            for name in re.findall(r"\b(gpumem_\w+)\(", line):
                if function and function != "give_back":
                    form = f"{owner}::{function}" if owner and "::" not in function else function
                    # With and without exceptions.
                    for each in dict.fromkeys((form.replace("try_", ""), form)):
                        if each not in forms.setdefault(name, []):
                            forms[name].append(each)
    return forms


def main():
    folder = Path(sys.argv[1])
    api = json.loads(Path(sys.argv[2] if len(sys.argv) > 2 else Path(__file__).with_name("api.json")).read_text())
    if missing := lacking(api):
        print("reference.py: without text:", *missing, sep="\n  ", file=sys.stderr)
        return 1
    folder.mkdir(parents=True, exist_ok=True)
    pages = Pages(api, {name: forms for name, forms in cpp_forms(SOURCE / "include/gpumem/cpp").items() if name in api["functions"]})
    for header in api["headers"]:
        (folder / f"{header[:-2]}.html").write_text(pages.header(header))
    (folder / "index.html").write_text(pages.index())
    (folder / "cpp.html").write_text(pages.cpp())
    return 0


if __name__ == "__main__":
    sys.exit(main())
