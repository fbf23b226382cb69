#!/usr/bin/env python3
"""gpumem map: the snapshot's form, what the page is made of, and what is refused."""
import html.parser
import json
import os
import re
import subprocess

import harness
from harness import expect, expect_nothing_left, expect_status

SCHEMA = json.loads((harness.SOURCE / "docs" / "snapshot.schema.json").read_text())
TYPES = {"object": dict, "array": list, "string": str, "integer": int, "boolean": bool,
         "null": type(None)}
KNOWN = {"$schema", "title", "$defs", "$ref", "type", "const", "enum", "pattern", "minimum",
         "required", "properties", "additionalProperties", "items"}


def is_of(value, name):
    return isinstance(value, TYPES[name]) and not (name == "integer" and isinstance(value, bool))


def breaches(value, schema, path="$"):
    """What of the schema's words (those that the project's one uses) the value does not keep to."""
    assert set(schema) <= KNOWN, f"the test does not know {set(schema) - KNOWN}"
    if "$ref" in schema:
        return breaches(value, SCHEMA["$defs"][schema["$ref"].rsplit("/", 1)[1]], path)
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    if types and not any(is_of(value, name) for name in types):
        return [f"{path}: {value!r} is no {types}"]
    found = []
    if "const" in schema and value != schema["const"] or "enum" in schema and value not in schema["enum"]:
        found.append(f"{path}: {value!r} is not {schema.get('const', schema.get('enum'))!r}")
    if "pattern" in schema and isinstance(value, str) and not re.search(schema["pattern"], value):
        found.append(f"{path}: {value!r} is not like {schema['pattern']}")
    if "minimum" in schema and value < schema["minimum"]:
        found.append(f"{path}: {value} is less than {schema['minimum']}")
    if isinstance(value, list) and "items" in schema:
        for i, element in enumerate(value):
            found += breaches(element, schema["items"], f"{path}[{i}]")
    if isinstance(value, dict):
        found += object_breaches(value, schema, path)
    return found


def object_breaches(value, schema, path):
    found = [f"{path}: no {name!r}" for name in schema.get("required", []) if name not in value]
    properties = schema.get("properties", {})
    for name, member in value.items():
        more = properties.get(name, schema.get("additionalProperties", {}))
        if more is False:
            found.append(f"{path}: {name!r} is not described")
        else:
            found += breaches(member, more, f"{path}.{name}")
    return found


class Page(html.parser.HTMLParser):
    """The scripts by their id, and every address that the page asks for."""

    def __init__(self, text):
        super().__init__()
        self.scripts, self.asked, self.inside = {}, [], None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.asked += [attributes[name] for name in ("src", "href", "action") if name in attributes]
        if tag == "script":
            self.inside = attributes.get("id", "code")

    def handle_endtag(self, tag):
        if tag == "script":
            self.inside = None

    def handle_data(self, data):
        if self.inside:
            self.scripts[self.inside] = self.scripts.get(self.inside, "") + data


def draw(folder, snapshot, *more):
    """The page of a snapshot that is given as an object, or as bytes."""
    source = folder / "snapshot.json"
    source.write_bytes(snapshot if isinstance(snapshot, bytes) else json.dumps(snapshot).encode())
    process = harness.run("map", *more, str(source))
    expect_status(process, 0)
    return Page(process.stdout)


def demo(folder):
    process = harness.run("map", "--demo", "--output", str(folder / "demo.html"),
                          "--snapshot", str(folder / "demo.json"))
    expect_status(process, 0)
    expect_nothing_left(process)
    return json.loads((folder / "demo.json").read_text(encoding="utf-8"))


def smallest(**more):
    return {"schema": "gpumem.snapshot", "version": 1, "gpumem": "0", "time": "", "pid": 1,
            "program": "p", "driver": None, "devices": [], **more}


def test_a_snapshot_conforms_to_its_schema(folder):
    snapshot = demo(folder)
    problems = breaches(snapshot, SCHEMA)
    expect(not problems, "\n".join(problems[:20]))
    device = snapshot["devices"][0]
    kinds = {resource["kind"] for resource in device["resources"]}
    expect({"device_pool", "caching", "pinned", "virtual"} <= kinds, f"only {kinds}")
    expect(device["exports"] and device["virtual_memory"]["mappings"], "the demo shows too little")
    states = {piece["state"] for resource in device["resources"]
              for part in resource.get("slabs", []) + resource.get("cache", {}).get("segments", [])
              for piece in part["pieces"]}
    expect({"free", "in_use", "thread"} <= states, f"pieces are {states}")


def test_the_schema_rejects_malformed_snapshots(folder):
    for path, value in ((("version",), 2), (("pid",), "1"), (("devices", 0, "ordinal"), -1),
                        (("devices", 0, "resources", 0, "upstream"), "x"),
                        (("devices", 0, "virtual_memory", "mappings", 0, "address"), 17),
                        (("devices", 0, "statistics", "in_use_bytes"), -5)):
        snapshot = demo(folder)
        place = snapshot
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = value
        expect(breaches(snapshot, SCHEMA), f"{path}: {value!r} was not noticed")


def test_pieces_of_a_segment_leave_no_gap(folder):
    for device in demo(folder)["devices"]:
        for resource in device["resources"]:
            for part in resource.get("slabs", []) + resource.get("cache", {}).get("segments", []):
                at = 0
                for piece in part["pieces"]:
                    expect(piece["offset"] == at, f"{part['address']}: {piece} is not at {at}")
                    at += piece["bytes"] * piece.get("count", 1)
                expect(at == part["bytes"], f"{part['address']} ends at {at}")


def test_snapshot_statistics_agree_with_its_lists(folder):
    device = demo(folder)["devices"][0]
    memory = device["virtual_memory"]
    expect(len(memory["mappings"]) == device["statistics"]["mappings"], "mappings")
    for resource in device["resources"]:
        if resource["kind"] in ("virtual", "device_pool", "managed") and resource["upstream"] is None:
            over = [r for r in device["resources"] if r["upstream"] == resource["id"]]
            listed = sum(buffer["bytes"] for buffer in resource["buffers"])
            # Of a cache the pool has the segments.
            listed += sum(r["statistics"]["committed_bytes" if r["kind"] == "caching" else "in_use_bytes"]
                          for r in over)
            expect(listed == resource["statistics"]["in_use_bytes"],
                   f"{resource['kind']}: {listed}, {resource['statistics']['in_use_bytes']}")


def test_the_page_makes_no_network_requests(folder):
    snapshot = demo(folder)
    text = (folder / "demo.html").read_text(encoding="utf-8")
    page = Page(text)
    expect(all(asked.startswith(("#", "data:")) for asked in page.asked), f"{page.asked}")
    code = page.scripts["code"].replace("http://www.w3.org/2000/svg", "")
    expect(not re.search(r"https?:|fetch\(|XMLHttpRequest|import\s*\(|WebSocket|innerHTML", code),
           "the script asks for something")
    expect("default-src 'none'" in text, "no policy forbids it")
    expect(json.loads(page.scripts["snapshot"]) == snapshot, "the page has another snapshot")
    expect(json.loads(page.scripts["history"]).startswith("time_ns,event,"), "no history")


def test_names_in_a_snapshot_cannot_inject_markup(folder):
    for name in ("</script><script>alert(1)</script>", "<!-- <script>", "]]>", "\u2028", "'\"\\",
                 "<img src=http://x/ onerror=alert(1)>"):
        snapshot = smallest(program=name)
        page = draw(folder, snapshot)
        expect(json.loads(page.scripts["snapshot"]) == snapshot, f"{name!r} is not kept")
        expect(set(page.scripts) == {"snapshot", "history", "code"}, f"{name!r} made a script")
        log = folder / "log.csv"
        log.write_text(f"time,event,resource,address,bytes\n1,allocate,{name},0x10,5\n",
                       encoding="utf-8")
        page = draw(folder, snapshot, "--log", str(log))
        expect(json.loads(page.scripts["history"]) == log.read_text(encoding="utf-8"), f"{name!r}")


def test_files_that_are_not_snapshots_are_refused(folder):
    for content, text in ((b"", "empty"), (b"{", ":1: not JSON"), (b'{"a":1}\n]', ":2: not JSON"),
                          (b'{"a":01}', "not JSON"), (b'{"a":"\\x"}', "not JSON"), (b"\0", "not text"), (b"{" * 70000 + b"\0", "not text"),
                          (b"[" * 100000, "not JSON"), (b'{"version":1}', "not a snapshot"),
                          (json.dumps(smallest(schema="x")).encode(), "not a snapshot"),
                          (json.dumps(smallest(version=2)).encode(), "version 2")):
        source = folder / "wrong.json"
        source.write_bytes(content)
        process = harness.run("map", str(source))
        expect_status(process, 4)
        expect(text in process.stderr, f"{content[:20]!r}: {process.stderr}")
        expect(not process.stdout, "half a page")
    process = harness.run("map", str(folder / "absent.json"))
    expect_status(process, 4)


def test_files_without_end_are_refused(folder):
    source = folder / "snapshot.json"
    source.write_text(json.dumps(smallest()))
    for arguments in (("/dev/zero",), ("--log", "/dev/zero", str(source)), ("/dev/full",)):
        process = harness.run("map", *arguments)
        expect_status(process, 4)
        expect("not text" in process.stderr, process.stderr)
    process = subprocess.run(["sh", "-c", f"yes | {harness.COMMAND} map -"], capture_output=True,
                             text=True, timeout=50, env=harness.environment())
    expect_status(process, 4)
    expect("more than 256 MiB" in process.stderr, process.stderr)


def test_files_that_are_not_logs_are_refused(folder):
    source, log = folder / "snapshot.json", folder / "log.csv"
    source.write_text(json.dumps(smallest()))
    for content in ("", "a,b,c\n1,2,3\n", "time,event,bytes\n", "# time,event,address,bytes\n"):
        log.write_text(content)
        process = harness.run("map", "--log", str(log), str(source))
        expect_status(process, 4)
    log.write_text("#gpumem-log,1\nsequence,time_ns,thread,event,buffer,bytes,pointer\n")
    expect_status(harness.run("map", "--log", str(log), str(source)), 0)


def test_invalid_usage_of_map_is_refused(folder):
    for arguments in ((), ("--demo", "x.json"), ("a", "b"), ("--snapshot", "x", "a"),
                      ("--device", "0", "a"), ("--device", "x", "--demo"), ("--what",)):
        process = harness.run("map", *arguments)
        expect_status(process, 2)
        expect(process.stderr.startswith("gpumem: "), process.stderr)
    process = harness.run("map", "--demo", "--output", str(folder / "no" / "folder.html"))
    expect_status(process, 4)


def test_a_full_disk_leaves_no_partial_page(folder):
    process = harness.run("map", "--demo", "--output", "/dev/full")
    expect(process.returncode != 0 and "No space" in process.stderr, process.stderr)
    expect(os.path.exists("/dev/full"), "the device was taken for half a page, and removed")
    process = harness.run("map", "--demo", "--driver", "/nowhere/libcuda.so", "--output",
                          str(folder / "x.html"))
    expect_status(process, 3)
    expect(not (folder / "x.html").exists(), "a page of nothing")


harness.main(globals())
