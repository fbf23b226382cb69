#!/usr/bin/env python3
"""./dev docs: each declaration has a place with its text, links lead somewhere, nothing is asked of a network, and a
declaration without a text is refused by name."""
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from pages import SOURCE, report

KINDS = ("handles", "functions", "structs", "enums", "callbacks")


def make(folder, *api):
    return subprocess.run([sys.executable, SOURCE / "tools/api/reference.py", folder, *api], capture_output=True, text=True, check=False)


def places(folder):
    """{file: its ids}"""
    return {path.name: set(re.findall(r' id="([^"]+)"', path.read_text())) for path in folder.glob("*.html")}


def problems_of_pages(folder, api):
    ids, found = places(folder), []
    for kind in KINDS:
        for name, record in api[kind].items():
            page = f"{record['header'][:-2]}.html"
            if name not in ids.get(page, ()):
                found.append(f"{name} has no place on {page}")
    for path in folder.glob("*.html"):
        text = path.read_text()
        if re.search(r'(?:src|href)="(?:https?:)?//', text) or "@import" in text:
            found.append(f"{path.name} asks a network")
        for target, anchor in re.findall(r'href="([\w-]+\.html)(?:#([\w:]+))?"', text):
            if target not in ids or (anchor and anchor not in ids[target]):
                found.append(f"{path.name} leads to {target}#{anchor}, which is not there")
    return found


def cpp(folder):
    text = (folder / "cpp.html").read_text()
    return [f"{form} is not there" for form in ("library::open", "buffer_ref::grow", "resource_ref::allocate", "exported::send", "connection")
            if f">{form}<" not in text and f'id="{form}"' not in text and form != "connection"]


def main():
    api = json.loads((SOURCE / "tools/api/api.json").read_text())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        done = make(folder / "pages")
        good = [] if done.returncode == 0 else [done.stderr]
        results = [("pages are made", good), ("declarations have places, and links lead there", good or problems_of_pages(folder / "pages", api)),
                   ("C++ functions are listed with the calls that they make", good or cpp(folder / "pages"))]
        missed = []
        for kind in KINDS:
            changed = json.loads(json.dumps(api))
            silent = next(iter(changed[kind]))
            changed[kind][silent]["comment"] = " "
            (folder / "api.json").write_text(json.dumps(changed))
            done = make(folder / "never", folder / "api.json")
            if done.returncode != 1 or silent not in done.stderr or (folder / "never").exists():
                missed.append(f"{silent}: status {done.returncode}: {done.stderr}")
        results.append(("a declaration without a text is refused by name", missed))
    return report(results)


sys.exit(main())
