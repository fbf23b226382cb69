#!/usr/bin/env python3
"""The page of gpumem map in a browser: what it shows, by keyboard too, without an error."""
import json
import os
import re
import shutil
import struct
import subprocess
import tempfile

import harness
from harness import Skip, expect, expect_status

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
# Put behind the page's own script: uses the page as a hand on the keyboard would, and leaves what it
# found in the document.
PROBE = """
const found = { errors: [] };
addEventListener("error", (event) => found.errors.push(String(event.message)));
addEventListener("securitypolicyviolation", (event) => found.errors.push(event.violatedDirective));
const press = (key) => document.activeElement.dispatchEvent(
  new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
const detail = () => document.getElementById("detail").textContent;
const strips = [...document.querySelectorAll("#rows svg")];
found.rows = strips.length;
found.focusable = strips.every((strip) => strip.tabIndex === 0 && strip.getAttribute("aria-label"));
if (strips.length) {
  const most = strips.reduce((a, b) => (b.childElementCount > a.childElementCount ? b : a));
  most.focus();
  found.first = detail();
  press("ArrowRight");
  found.second = detail();
  press("End");
  found.last = detail();
  press("ArrowUp");
  found.moved = document.activeElement !== most;
  found.overviewWorks = (() => {
    document.querySelector("#space .overview").focus();
    press("End");
    press("Enter");
    return document.activeElement.closest(".row") !== null;
  })();
}
const heads = [...document.querySelectorAll("#buffer-table th button")];
if (heads.length) {
  const column = () => [...document.querySelectorAll("#buffer-table tbody tr td:nth-child(2)")].map((cell) => cell.textContent);
  heads[1].click();
  const down = column();
  heads[1].click();
  found.sorts = down[0] === column().at(-1) && document.querySelector("th[aria-sort=ascending]") !== null;
}
const background = () => getComputedStyle(document.body).backgroundColor;
const before = background();
document.getElementById("theme").click();
found.themes = before !== background();
document.getElementById("theme").click();
found.overflow = document.documentElement.scrollWidth - document.documentElement.clientWidth;
found.cut = [...document.querySelectorAll(".scroll")].filter((box) => box.scrollWidth > box.clientWidth + 1).map((box) => box.getAttribute("aria-label"));
found.smallest = Math.min(...[...document.querySelectorAll("p, td, th, dd, dt, small, span, li, b")]
  .filter((element) => element.textContent.trim() && element.offsetParent).map((element) => parseFloat(getComputedStyle(element).fontSize)));
document.body.dataset.found = JSON.stringify(found);
"""


def browser():
    for name in BROWSERS:
        path = shutil.which(name)
        if path:
            return path
    raise Skip("no Chromium here (./dev deps browser)")


def start(folder, *arguments):
    """Headless, with a profile of its own and without anything that it asks of the network."""
    command = [browser(), "--headless", "--no-sandbox", "--disable-gpu", "--disable-extensions",
               "--disable-background-networking", "--no-first-run", "--hide-scrollbars",
               "--disable-dev-shm-usage", f"--user-data-dir={folder / 'profile'}",
               "--virtual-time-budget=5000", *arguments]
    # It makes a socket in its temporary folder, whose path may have 107 bytes.
    with tempfile.TemporaryDirectory(prefix="gpumem-", dir="/tmp") as short:
        env = dict(os.environ, HOME=str(folder), XDG_CONFIG_HOME=str(folder), XDG_CACHE_HOME=str(folder),
                   TMPDIR=short)
        return subprocess.run(command, env=env, timeout=50, stdin=subprocess.DEVNULL,
                              capture_output=True, check=False)


def dump(folder, page):
    """The page's document after its script and the probe, and what the probe found."""
    text = page.read_text(encoding="utf-8")
    probed = folder / "probed.html"
    probed.write_text(text.replace("</body>", f"<script>{PROBE}</script></body>"), encoding="utf-8")
    process = start(folder, "--window-size=1280,900", "--dump-dom", f"file://{probed}")
    document = process.stdout.decode("utf-8", "replace")
    found = re.search(r'data-found="([^"]*)"', document)
    expect(found, f"the probe did not run: {document[:200]} {process.stderr[-500:]!r}")
    text = found.group(1).replace("&quot;", '"').replace("&lt;", "<").replace("&gt;", ">")
    return document, json.loads(text.replace("&amp;", "&"))


def attribute(document, name):
    found = re.search(rf'<body[^>]*data-{name}="([^"]*)"', document)
    return found.group(1) if found else None


def demo(folder):
    page, snapshot = folder / "demo.html", folder / "demo.json"
    expect_status(harness.run("map", "--demo", "--output", str(page), "--snapshot", str(snapshot)), 0)
    return page, json.loads(snapshot.read_text(encoding="utf-8"))


def test_the_demo_page_is_drawn_without_errors(folder):
    browser()
    page, snapshot = demo(folder)
    document, found = dump(folder, page)
    device = snapshot["devices"][0]
    expect(attribute(document, "ready") == "yes", "the page's script failed")
    expect(not found["errors"], str(found["errors"]))
    expect(attribute(document, "resources") == str(len(device["resources"])), "resources")
    expect(attribute(document, "buffers") == str(sum(len(r["buffers"]) for r in device["resources"])),
           "buffers")
    expect(int(attribute(document, "regions")) == found["rows"] > 5, f"{found['rows']} strips")
    for section in ("summary", "past", "space", "physical", "resources", "buffers", "others"):
        expect(f'id="{section}"' in document, f"no section {section}")
    for buffer in device["resources"][-1]["buffers"][:3]:
        expect(buffer["address"] in document, f"{buffer['address']} is not in a table")


def test_every_part_of_the_page_is_reached_by_keyboard(folder):
    browser()
    _, found = dump(folder, demo(folder)[0])
    expect(found["focusable"], "a strip cannot be focused, or has no name")
    expect("Addresses" in found["first"], found["first"])
    expect(len({found["first"], found["second"], found["last"]}) == 3, "arrows change nothing")
    expect(found["moved"] and found["overviewWorks"], "rows or overview cannot be walked")
    expect(found["sorts"], "columns do not sort")


def test_the_page_is_readable_at_1280_pixels(folder):
    browser()
    _, found = dump(folder, demo(folder)[0])
    expect(found["overflow"] <= 0, f"the page is {found['overflow']} pixels too wide")
    expect(not found["cut"], f"tables are cut: {found['cut']}")
    expect(found["smallest"] >= 10.5, f"text of {found['smallest']} pixels")
    expect(found["themes"], "light and dark look the same")


KEYS = """
const keys = [...document.querySelectorAll("#past .key, #legend li")].map((key) => [key.textContent, key.querySelector("rect")?.getAttribute("class")]);
const boxes = [...document.querySelectorAll(".scroll")].map((box) => [box.scrollWidth > box.clientWidth + 1, box.classList.contains("more"), box.previousSibling.hidden]);
const texts = [...document.querySelectorAll("#space .row")].map((row) => [row.querySelector("rect.reserved") !== null, row.textContent]);
document.body.dataset.keys = JSON.stringify({ keys, boxes, texts, wide: document.documentElement.scrollWidth - document.documentElement.clientWidth,
  outside: [...document.querySelectorAll("button, input, output, p, dd")].filter((e) => e.offsetParent && !e.closest(".scroll") && e.getBoundingClientRect().right > document.documentElement.clientWidth + 1).map((e) => e.textContent),
  counted: [...document.querySelectorAll("#summary dt, #summary .caption span")].map((e) => e.textContent) });
"""


def narrow(folder, page, width):
    """What KEYS found on the page in a frame of so many pixels: a window of Chromium has 500 at least."""
    shown = folder / "shown.html"
    shown.write_text(page.read_text(encoding="utf-8").replace("</body>", f"<script>{KEYS};parent.postMessage(document.body.dataset.keys, '*')</script></body>"), encoding="utf-8")
    frame = folder / "frame.html"
    frame.write_text(f'<body style="margin:0"><script>addEventListener("message", (m) => document.body.dataset.keys = m.data)</script>'
                     f'<iframe src="shown.html" style="border:0;width:{width}px;height:900px"></iframe></body>', encoding="utf-8")
    document = start(folder, "--window-size=1400,900", "--dump-dom", f"file://{frame}").stdout.decode("utf-8", "replace")
    found = re.search(r'data-keys="([^"]*)"', document)
    expect(found, document[:300])
    return json.loads(found.group(1).replace("&quot;", '"').replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))


def test_a_resource_has_one_colour_and_the_legend_names_it(folder):
    browser()
    found = narrow(folder, demo(folder)[0], 1280)
    keys = {name: style for name, style in found["keys"]}
    for name, kind in (("virtual", "virtual #3"), ("managed", "managed #4"), ("device_pool", "device_pool #1"), ("pinned", "pinned #2"),
                       ("tracking", "tracking #7"), ("caching", "caching #5"), ("caching_pinned", "caching #6")):
        legend = [style for text, style in found["keys"] if text.startswith(kind)]
        expect(legend == [keys[name]], f"{name}: {keys[name]}, in the legend {legend}")
    counted = [text for text in found["counted"] if "n use" in text]
    expect(len(counted) == 2 and counted[0].startswith("In use by buffers") and counted[1].startswith("Device memory in use"), str(counted))
    for shortened, text in found["texts"]:
        expect(not (shortened and "% used" in text), f"a share of what is not drawn to scale: {text}")


def test_nothing_is_cut_off_at_390_pixels(folder):
    browser()
    found = narrow(folder, demo(folder)[0], 390)
    expect(found["wide"] <= 0 and not found["outside"], str(found["outside"]))
    expect(any(cut for cut, _, _ in found["boxes"]), "no table scrolls")
    expect(all(more == cut and hidden == (not cut) for cut, more, hidden in found["boxes"]), str(found["boxes"]))


def test_names_are_shown_as_text_not_markup(folder):
    browser()
    _, snapshot = demo(folder)
    evil = '<img src=x onerror="document.body.dataset.broken=1">'
    snapshot["program"] = snapshot["devices"][0]["name"] = evil
    for resource in snapshot["devices"][0]["resources"]:
        resource["kind"] = f"{evil}</script>"
        resource["properties"]["note"] = evil
    source, page = folder / "evil.json", folder / "evil.html"
    source.write_text(json.dumps(snapshot), encoding="utf-8")
    expect_status(harness.run("map", "--output", str(page), str(source)), 0)
    document, found = dump(folder, page)
    expect(attribute(document, "ready") == "yes" and not found["errors"], str(found["errors"]))
    expect(attribute(document, "broken") is None and "<img" not in document, "a name became markup")


def test_unusual_snapshots_are_drawn_without_errors(folder):
    browser()
    _, snapshot = demo(folder)
    device = snapshot["devices"][0]
    empty = {**device, "resources": [], "deferred": [], "exports": [], "name": None,
             "free_bytes": None, "virtual_memory": {"reservations": [], "physical": [],
                                                    "mappings": [], "unlisted": 0}}
    far = json.loads(json.dumps(device).replace('"0x7', '"0xff7'))
    for devices in ([], [empty], [device, empty], [far]):
        source, page = folder / "odd.json", folder / "odd.html"
        source.write_text(json.dumps({**snapshot, "devices": devices}), encoding="utf-8")
        expect_status(harness.run("map", "--output", str(page), str(source)), 0)
        document, found = dump(folder, page)
        expect(attribute(document, "ready") == "yes" and not found["errors"],
               f"{len(devices)} devices: {found['errors']}")


def test_parts_of_buffers_are_distinguished_by_their_state(folder):
    """What is decommitted, freed and kept, the program's own, and who made what."""
    browser()
    _, snapshot = demo(folder)
    device = snapshot["devices"][0]
    first = device["resources"][0]
    buffer = {"address": "0x10000000000", "bytes": 4096, "committed_bytes": 4096, "capacity": 4096,
              "stream": None, "state": "live", "deleter": True}
    device["resources"].append({**first, "id": 9999, "kind": "foreign", "upstream": None,
                                "takes_buffers": False, "buffers": [buffer]})
    source, page = folder / "parts.json", folder / "parts.html"
    source.write_text(json.dumps(snapshot), encoding="utf-8")
    expect_status(harness.run("map", "--output", str(page), str(source)), 0)
    document, found = dump(folder, page)
    expect(not found["errors"], str(found["errors"]))
    rows = document.split('id="rows"')[1].split('id="physical"')[0]
    for style in ("gap", "cached", "reserved", "slack", "foreign", "mapped"):
        expect(f'class="{style}"' in rows, f"no {style} is drawn")
    tracked = [r for r in device["resources"] if r.get("tracked")]
    expect(tracked, "the demo tracks nothing")
    frame = tracked[0]["tracked"][0]["frames"][0]
    short = re.sub(r" \(.*", "", frame).rsplit("/", 1)[-1]
    expect(f"<td class=\"left\">{short}</td>" in document, f"{short} made nothing")


LOG = """#gpumem-log,1
sequence,time_ns,thread,event,buffer,bytes,alignment,capacity,stream,pointer,committed,took_ns,status,note
1,500,7,note,0,0,0,0,0x0,0x0,0,0,OK,"a, ""quoted"" note
over two lines"
2,1500,7,allocate,1,4096,1,0,0x0,0x7f0000000000,4096,10,OK,
3,2500,7,resize,1,8192,1,0,0x0,0x7f0000000000,8192,10,OK,
4,3000,7,allocate,0,99999,1,0,0x0,0x0,0,10,OUT_OF_MEMORY,no memory
5,3500,7,free,1,8192,1,0,0x0,0x7f0000000000,0,10,OK,
"""


def test_a_log_is_shown_as_history(folder):
    browser()
    _, snapshot = demo(folder)
    source, log, page = folder / "some.json", folder / "log.csv", folder / "log.html"
    source.write_text(json.dumps(snapshot), encoding="utf-8")
    log.write_text(LOG, encoding="utf-8")
    expect_status(harness.run("map", "--output", str(page), "--log", str(log), str(source)), 0)
    document, found = dump(folder, page)
    expect(not found["errors"], str(found["errors"]))
    wanted = "2 allocations in 3.0 µs, peak 8 KiB at 2.0 µs, 1 refused"
    expect(wanted in document, re.search(r'id="past-title".{0,300}', document).group(0))
    expect("3.0 µs: 0 allocations, 0 B" in document, "something is alive at the end")


def picture_facts(png):
    """Width and height, and bytes: a blank picture packs to few."""
    expect(png[:8] == b"\x89PNG\r\n\x1a\n", "no PNG")
    return struct.unpack(">II", png[16:24]), len(png)


def test_a_screenshot_is_not_blank(folder):
    browser()
    page, _ = demo(folder)
    for theme in ("light", "dark"):
        picture = folder / f"{theme}.png"
        start(folder, "--window-size=1280,2400", f"--screenshot={picture}",
              f"file://{page}?theme={theme}")
        size, length = picture_facts(picture.read_bytes())
        expect(size == (1280, 2400), str(size))
        expect(length > 60000, f"{theme}: {length} bytes are a blank page")


harness.main(globals())
