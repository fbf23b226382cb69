#!/usr/bin/env python3
"""gpumem replay on compact traces and memory snapshots of PyTorch: what they say, and which are refused."""
import json
import lzma
import os
import pickle
import random
import subprocess
from pathlib import Path

import harness
from harness import expect, expect_nothing_left, expect_status, run

MIB = 1 << 20
SMALL = "+1000\n+5000@7\n*1@2\n=\n-2\n!\n+77\n-1\n# the end\n="


def replay(*arguments, **more):
    process = run("replay", "--json", "--repeat", "1", *arguments, **more)
    expect_nothing_left(process)
    return process, (json.loads(process.stdout) if process.stdout else None)


def write(folder, content, name="trace"):
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)


def converted(path, *options):
    process = run("replay", "--convert", *options, path)
    expect_status(process, 0)
    return process.stdout.split()


def refused(folder, content, says):
    process = run("replay", "--resource", "pool", "--repeat", "1", write(folder, content, "bad"), timeout=100)
    expect_status(process, 4)
    expect(f"bad{says}" in process.stderr and process.stdout == "", f"no 'bad{says}' in: {process.stderr}")


# ---- Compact traces ----------------------------------------------------------------------------------------------

def test_a_compact_trace_is_replayed(folder):
    path = write(folder, SMALL + "\n")
    process, out = replay("--resource", "caching,caching-virtual,pool,driver,virtual", path)
    expect_status(process, 0)
    expect((out["events"], out["allocations"], out["steps"], out["streams"], out["not_freed"], out["peak_in_use"]) ==
           (6, 3, 2, 3, 1, 6000), out)
    for row in out["resources"]:
        expect(row["done"] and row["first_ns"] > 0 and row["second_ns"] > 0, row)
        expect(len(row["step_ratios"]) == 2 and abs(row["ratio"] - row["peak_committed"] / 6000) < 1e-3 * row["ratio"],
               row)
        expect(("waits" in row) == row["resource"].startswith("caching"), row)
    packed = write(folder, lzma.compress(SMALL.encode() + b"\n"), "packed")
    expect(converted(packed) == converted(path) == "+1000 +5000@1 *1@2 = -2 ! +77 -1 =".split(), converted(path))


def test_invalid_lines_of_a_compact_trace_are_refused(folder):
    for text, says in (("+12\n-1\n-1\n", ":3: the allocation is freed already"), ("+12\n-2\n", ":2: 2 allocations back"),
                       ("+12\n-0\n", ":2: after '-'"), ("+0\n", ":1: after '+'"), ("+\n", ":1: after '+'"),
                       ("+18446744073709551616\n", ":1: after '+'"), ("+-5\n", ":1: after '+'"),
                       ("+18446744073709551615\n+2\n", ":2: 2 bytes overflow"), ("+12@\n", ":1: after '@'"),
                       ("+12@x\n", ":1: after '@'"), ("+12 \n", ":1: more than an event"), ("=x\n", ":1: more than"),
                       ("+12\n*1\n", ":2: a use names its stream"), ("+12\n\n", ":2: a line begins with"),
                       ("+12\r\n", ":1: more than an event"), ("+12\n-1", ":2: incomplete line"), ("+", ":1: incomplete"),
                       ("".join(f"+9@{i}\n" for i in range(5000)), ":4097: more than 4096 streams"),
                       (lzma.compress(b"+12\n-2\n"), ":2: 2 allocations back"),
                       (lzma.compress(SMALL.encode())[:-9], ": the packed file is incomplete"),
                       (lzma.compress(bytes(64 * MIB), preset=0) * 9, ": more than 512 MiB unpacked")):
        refused(folder, text, says)
    process, out = replay("--resource", "caching,driver", write(folder, "+4\n+18446744073709551000\n"))
    expect_status(process, 6)
    expect(all(row["line"] == 2 for row in out["resources"]), out)
    read, write_end = os.pipe()
    os.write(write_end, b"\x80")
    os.close(write_end)
    process = subprocess.run([harness.COMMAND, "replay", "/dev/stdin"], stdin=read, capture_output=True, text=True,
                             env=harness.environment(), check=False, timeout=50)
    os.close(read)
    expect(process.returncode == 4 and "not a pipe" in process.stderr, process.stderr)


def test_several_traces_take_turns(folder):
    one = write(folder, "+100\n=\n+200\n-1\n=\n+300\n=\n", "one")
    two = write(folder, "+1\n=\n+2@5\n-2\n=\n", "two")
    process, out = replay("--resource", "pool", "--turns", "2,1", one, two)
    expect_status(process, 0)
    expect((out["streams"], out["steps"], out["peak_in_use"], out["not_freed"], out["logs"]) ==
           (3, 5, 403, 3, [one, two]), out)
    process = run("replay", "--convert", "--turns", "2,1", one, two)
    expect(process.stdout.split() == "+100 = +200 -1 = +1@1 = +300 = +2@2 -3 =".split(), process.stdout)
    process, out = replay("--resource", "pool", one, write(folder, f"=\n+{1 << 45}\n", "three"))
    expect_status(process, 6)
    expect(out["resources"][0]["line"] == 2 and out["resources"][0]["log"].endswith("three"), out)


def test_the_least_limit_is_found(folder):
    """Sixteen blocks of 8 MiB, in memory that is taken in steps of 2 or 32 MiB."""
    path = write(folder, f"+{8 * MIB}\n" * 16)
    process, out = replay("--least-limit", "--resource", "caching-virtual,pool,driver,virtual", path)
    expect_status(process, 0)
    for row in out["resources"][:3]:
        expect(1 <= row["least_limit_ratio"] < 1.03, row)
    expect("least_limit" not in out["resources"][3], out)


def test_frees_pass_later_with_defer(folder):
    """Two streams in turn. Memory of the other one is taken only when its free has passed."""
    path = write(folder, "".join(f"+{64 * MIB}@{i % 2}\n-1\n" for i in range(40)))
    peaks = []
    for options in ((), ("--defer", "4"), ("--defer", "1000")):
        process, out = replay("--resource", "caching-virtual:never_waits", *options, path)
        expect_status(process, 0)
        row = out["resources"][0]
        expect(("first_ns" in row) == (not options), row)
        peaks.append(row["peak_committed"])
    expect(peaks[0] < 2 * 64 * MIB <= peaks[2], peaks)
    process, out = replay("--resource", "caching-virtual", "--defer", "1000", path)
    expect_status(process, 0)
    row = out["resources"][0]
    expect(row["waits"] > 0 and row["peak_committed"] < 2 * 64 * MIB, row)


# ---- Snapshots of PyTorch ----------------------------------------------------------------------------------------

def entry(action, address=0, size=0, stream=0, time=0, frames=()):
    return {"action": action, "addr": address, "size": size, "stream": stream, "time_us": time,
            "frames": [{"filename": "a.py", "line": 1, "name": name} for name in frames]}


def snapshot(entries=None, **more):
    """Blocks from before the trace, one of which is freed in it; a deferred free; a step; an emptied cache."""
    away = [entry("segment_free", 0x9000, 2 * MIB, 0, 7, ["release", name]) for name in ("empty_cache", "empty_cache")]
    trace = [entry("segment_alloc", 0x1000, 2 * MIB), entry("alloc", 0x1000, 1000, 0, 1),
             entry("alloc", 0x2000, 5000, 0x7f0055, 2), entry("free_requested", 0x1000, 1000, 0, 3),
             entry("alloc", 0x3000, 77, 0, 4), entry("free_completed", 0x1000, 1000, 0, 5),
             entry("free_requested", 0x9000, 512, 0, 6), entry("free_completed", 0x9000, 512, 0, 6), *away,
             entry("segment_alloc", 0x1000, 2 * MIB, 0, 9), entry("alloc", 0x1000, 42, 0, 9),
             entry("segment_free", 0x9000, 2 * MIB, 0, 9, ["malloc"]), entry("oom", 0, 1 << 40), entry("alloc", 0x9000, 99)]
    blocks = [{"size": 512, "requested_size": 500, "state": "active_allocated"}, {"size": 1024, "state": "inactive"},
              {"address": 0x3000, "size": 512, "requested_size": 77, "state": "active_allocated"}]
    whole = {"segments": [{"device": 0, "address": 0x700000, "stream": 3, "blocks": blocks},
                          {"device": 1, "address": 0x1000, "stream": 3, "blocks": blocks}],
             "device_traces": [trace if entries is None else entries, []], "allocator_settings": {"a": (False, None, 1.5)},
             "external_annotations": [{"stage": "START", "name": "ProfilerStep#1", "device": 0, "time_us": 1},
                                      {"stage": "END", "name": "ProfilerStep#1", "device": 0, "time_us": 8}]}
    return {**whole, **more}


MADE = "+512 +500@1 +1000 +5000@2 +77 -3 -5 ! = +42 +99".split()


def test_snapshots_of_pytorch_are_replayed(folder):
    whole = snapshot()
    forms = [pickle.dumps(whole, protocol) for protocol in (2, 3, 4, 5)]
    forms += [json.dumps(whole).encode(), lzma.compress(pickle.dumps(whole))]
    for form in forms:
        made = converted(write(folder, form))
        expect(made == MADE, made)
    process, out = replay("--resource", "caching-virtual", write(folder, forms[0]))
    expect_status(process, 0)
    expect((out["steps"], out["streams"], out["allocations"]) == (1, 3, 7), out)
    both = write(folder, json.dumps(snapshot(device_traces=[[entry("alloc", 1, 2)], [entry("alloc", 1, 3)]], segments=[])))
    expect(converted(both, "--of-device", "1") == ["+3", "="], converted(both, "--of-device", "1"))
    refused(folder, Path(both).read_text(), ": devices 0, 1 have traces: say which by --of-device")


def step_of_torch(number):
    """What tests/clients/programs/torch_snapshot.py does, as PyTorch frees: the first block when the other stream has passed."""
    sizes = [f"+{(1 + i + number) * MIB // 4}" for i in range(8)]
    return [*sizes, "+70000@1", *(f"-{i}" for i in range(1, 9)), "="]


def test_a_snapshot_that_pytorch_wrote_is_replayed(folder):
    """GPUMEM_TORCH_PYTHON: a python that has PyTorch, which writes another one."""
    paths, python = [str(harness.SOURCE / "tests/fixtures/torch_snapshot.pickle.xz")], os.environ.get("GPUMEM_TORCH_PYTHON")
    if python:
        paths.append(str(folder / "live.pickle"))
        program = harness.SOURCE / "tests/clients/programs/torch_snapshot.py"
        more = dict(harness.bare_environment(), SOFTGPU_MEMORY="2G")
        expect_status(harness.run_program([], python, program, paths[1], env=more), 0)
    wanted = [f"+{3 * MIB}", *step_of_torch(0), "-9", *step_of_torch(1), "-9", *step_of_torch(2), "-9", "!",
              *step_of_torch(3)]
    for path in paths:
        expect(converted(path) == wanted, f"{path}: {converted(path)}")
    process, out = replay("--resource", "caching-virtual,driver", paths[0])
    expect_status(process, 0)
    expect(out["steps"] == 4 and all(row["done"] for row in out["resources"]), out)


class Calls:
    def __reduce__(self):
        return os.system, ("touch called",)


def test_what_is_not_a_snapshot_is_refused(folder):
    trace = [entry("alloc", 16, 5), entry("free_completed", 16, 5)]
    plain = pickle.dumps(snapshot())
    for content, says in (
            (pickle.dumps(Calls()), ": it names posix.system; a snapshot has only containers, numbers and text"),
            (pickle.dumps({"device_traces": [Calls()]}), ": it names posix.system"),
            (pickle.dumps(folder), ": it names pathlib"), (b"\x80\x02U\x01aQ.", ": it refers to objects elsewhere"),
            (b"\x80\x02\x82\x01.", ": it is damaged"), (b"\x80", ": it is damaged"), (plain[:200], ": it is damaged"),
            (b"\x80\x02]r\xff\xff\xff\x7f.", ": it asks for more memory"),
            (b"\x80\x04\x8e" + b"\xff" * 7 + b"\x0f.", ": it asks for more memory"),
            (b"\x80\x02" + b"(" * 300000 + b"l" * 300000 + b".", ": it has no 'device_traces'"),
            (b'{"device_traces":' + b"[" * 200000, ": it is damaged"), (b"{}", ": it has no 'device_traces'"),
            (b'{"device_traces": [[], []]}', ": it has no trace: call"), (b'{"device_traces": 7}', ": 'device_traces' is not"),
            *((json.dumps(snapshot(**{"entries": entries})).encode(), says) for entries, says in (
                ([*trace, trace[1]], ": entry 2: address 0x10 is freed twice"),
                ([trace[0], trace[0]], ": entry 1: address 0x10 is allocated again"),
                ([{"action": "alloc", "addr": 1, "size": -1, "stream": 0}], ": entry 0: 'size' is not a number"),
                ([{"action": "alloc", "addr": 1, "size": 1 << 64, "stream": 0}], ": entry 0: 'size' is not a number"),
                ([{"action": "alloc", "addr": 1, "size": True, "stream": 0}], ": entry 0: 'size' is not a number"),
                ([{"action": "alloc", "size": 1, "stream": 0}], ": entry 0: 'addr' is not"),
                ([entry("oom", 1, 2)] * 2 + [7], ": entry 2: 'action' is not"))),
            (json.dumps(snapshot([entry("oom")], segments=[], external_annotations=[])).encode(),
             ": the trace of device 0 has no allocation"),
            (json.dumps(snapshot([entry("alloc", i, 1 << 63) for i in (1, 2, 3)])).encode(), ":4: 9223372036854775808 bytes")):
        refused(folder, content, says)
    expect(not (folder / "called").exists() and not Path("called").exists(), "the pickle was called")
    blocks = [{"address": i, "size": 1, "state": "active"} for i in range(3000)]
    refused(folder, pickle.dumps(snapshot(segments=[{"device": 0, "address": 1, "stream": 0, "blocks": blocks}] * 3000)),
            ": it refers to the same lists over and over")


def test_damaged_traces_never_crash(folder):
    chance = random.Random(4712)
    goods = [SMALL.encode() * 20 + b"\n", pickle.dumps(snapshot()), json.dumps(snapshot()).encode()]
    for turn in range(24):
        bad = bytearray(goods[turn % 3])
        for _ in range(chance.randint(1, 4)):
            at = chance.randrange(1, len(bad))
            kind = chance.randrange(3)
            if kind == 0:
                bad[at] = chance.randrange(256)
            elif kind == 1:
                del bad[at:at + chance.randint(1, 50)]
            else:
                bad[at:at] = bytes(chance.choices(b"+-*=!@\n0123456789.(]}Rb", k=chance.randint(1, 9)))
        process = run("replay", "--resource", "pool", "--repeat", "1", write(folder, bytes(bad), "damaged"))
        expect(process.returncode in (0, 4, 6), f"{process.returncode}: {process.stderr}\n{bad!r}")
        expect_nothing_left(process)


def test_without_python_the_reason_is_said(folder):
    process = run("replay", write(folder, pickle.dumps(snapshot())), PATH=str(folder))
    expect_status(process, 4)
    expect("python3, which reads" in process.stderr, process.stderr)


harness.main(globals())
