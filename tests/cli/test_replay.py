#!/usr/bin/env python3
"""gpumem replay: what it makes of a log, and which lines it refuses."""
import json
import random
import subprocess

import harness
from harness import expect, expect_nothing_left, expect_status, run

FIRST = "#gpumem-log,1"
COLUMNS = ("sequence,time_ns,thread,event,buffer,bytes,alignment,capacity,stream,pointer,committed,"
           "took_ns,status,note")
ALL = ("caching", "caching-virtual", "pool", "driver", "virtual", "pinned")
MIB = 1 << 20


class Log:
    """Writes rows as a trace resource does."""

    def __init__(self):
        self.lines = [FIRST, COLUMNS]
        self.sequence = 0

    def row(self, event, buffer=0, size=0, alignment=1, capacity=0, stream=0, thread=7,
            status="OK", note=""):
        self.sequence += 1
        self.lines.append(f"{self.sequence},{self.sequence * 1000},{thread},{event},{buffer},{size},"
                          f"{alignment},{capacity},{stream:#x},0x0,0,0,{status},{note}")
        return self

    def write(self, folder, name="log"):
        path = folder / name
        path.write_text("\n".join(self.lines) + "\n")
        return str(path)


def replay(path, *options):
    process = run("replay", "--json", *options, path)
    expect_nothing_left(process)
    return process, (json.loads(process.stdout) if process.stdout else None)


def test_every_resource_replays_a_log(folder):
    log = Log()
    for i in range(1, 41):
        log.row("allocate", i, 1000 * i, stream=0x1000 * (i % 3), thread=i % 4)
        if i > 10:
            log.row("free", i - 10, stream=0x1000 * (i % 3))
    log.row("note", note='"a ""note"", of\ntwo lines"')
    log.row("allocate", 0, 1 << 50, status="OUT_OF_MEMORY", note="no memory")
    process, out = replay(log.write(folder), "--resource", ",".join(ALL), "--repeat", "1")
    expect_status(process, 0)
    expect(out["events"] == 70 and out["allocations"] == 40 and out["not_freed"] == 10, out)
    expect(out["streams"] == 3 and out["failed"] == 1 and out["notes"] == 1, out)
    expect(out["threads"] == 5, out)
    expect(out["peak_in_use"] == sum(1000 * i for i in range(30, 41)), out)
    expect([r["resource"] for r in out["resources"]] == list(ALL), out)
    for row in out["resources"]:
        expect(row["done"] and row["seconds"] > 0, row)
        expect(row["peak_committed"] >= out["peak_in_use"], row)
        wanted = 1 - out["peak_in_use"] / row["peak_committed"]
        expect(abs(row["fragmentation"] - wanted) < 1e-4, row)
    text = run("replay", "--resource", "pool", log.write(folder))
    expect_status(text, 0)
    expect("\npool " in text.stdout and "\ncaching" not in text.stdout, text.stdout)


def test_resizes_are_replayed_in_place_or_by_copying(folder):
    log = Log().row("allocate", 1, MIB, capacity=64 * MIB).row("resize", 1, 9 * MIB)
    log.row("resize", 1, 3 * MIB).row("allocate", 2, MIB).row("free", 1).row("free", 2)
    process, out = replay(log.write(folder), "--resource", "virtual,pool,driver")
    expect_status(process, 0)
    virtual, pool, driver = out["resources"]
    expect(virtual["moved"] == 0 and pool["moved"] == 2 and driver["moved"] == 2, out)
    expect(virtual["peak_committed"] == 12 * MIB, virtual)
    expect(out["peak_in_use"] == 9 * MIB and out["resizes"] == 2, out)


def test_alignments_of_a_log_are_requested(folder):
    log = Log().row("allocate", 1, 100, alignment=1 << 16).row("allocate", 2, 100).row("free", 1)
    process, out = replay(log.write(folder), "--resource", ",".join(ALL))
    expect_status(process, 0)
    expect(all(row["done"] for row in out["resources"]), out)


def test_running_out_of_memory_is_reported_with_its_line(folder):
    log = Log().row("allocate", 1, MIB).row("note", note='"two\nlines"')
    log.row("allocate", 2, 1 << 40).row("free", 1)
    process, out = replay(log.write(folder), "--resource", "pool,driver")
    expect_status(process, 6)
    for row in out["resources"]:
        expect(not row["done"] and row["line"] == 6, row)
        expect(row["status"] == "GPUMEM_ERROR_OUT_OF_MEMORY", row)
    text = run("replay", "--resource", "driver", log.write(folder))
    expect("driver          ended at line 6: cuMemAllocFromPoolAsync answered" in text.stdout,
           text.stdout)


def refused(folder, text, line, says):
    path = folder / "bad"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    process = run("replay", str(path))
    expect_status(process, 4)
    where = f"bad:{line}: " if line else "bad: "
    expect(where in process.stderr and says in process.stderr,
           f"'{where}' and '{says}' are not in: {process.stderr}")
    expect(process.stdout == "", process.stdout)


def changed(line, old, new):
    lines = Log().row("allocate", 1, 100).row("resize", 1, 200).row("free", 1).lines
    expect(old in lines[line - 1], f"'{old}' is not in line {line}")
    lines[line - 1] = lines[line - 1].replace(old, new, 1)
    return "\n".join(lines) + "\n"


def test_invalid_log_lines_are_refused(folder):
    good = "\n".join(Log().row("allocate", 1, 100).row("free", 1).lines) + "\n"
    refused(folder, "", 1, "#gpumem-log,1")
    refused(folder, good.replace("log,1", "log,2"), 1, "version 1")
    refused(folder, changed(2, "thread", "fiber"), 2, "column 3 is 'fiber'")
    refused(folder, changed(3, "allocate", "allot"), 3, "'allot' is not an event")
    refused(folder, changed(3, "allocate", "\x1b[7m"), 3, "'\\x1b[7m' is not an event")
    refused(folder, changed(3, ",100,", ",1OO,"), 3, "column 'bytes': '1OO' is not a number")
    refused(folder, changed(3, ",100,", ",-1,"), 3, "column 'bytes'")
    refused(folder, changed(3, ",100,", ",99999999999999999999,"), 3, "column 'bytes'")
    refused(folder, changed(3, ",100,", ",0,"), 3, "invalid allocation")
    refused(folder, changed(3, ",1,0,0x0", ",3,0,0x0"), 3, "alignment 3")
    refused(folder, changed(3, ",1,0,0x0", ",1,50,0x0"), 3, "capacity 50")
    refused(folder, changed(3, "0x0", "0xg"), 3, "not a hexadecimal number")
    refused(folder, changed(3, ",OK,", ",fine,"), 3, "column 'status'")
    refused(folder, changed(3, ",OK,", ",OK,x\"y"), 3, "misplaced quote")
    refused(folder, changed(3, ",OK,", ",OK,\"y\"z"), 3, "misplaced quote")
    refused(folder, changed(3, ",OK,", ",OK"), 3, "13 columns, not 14")
    refused(folder, changed(3, ",OK,", ",OK,,"), 3, "more than 14 columns")
    refused(folder, changed(3, ",1,100", ",5000000,100"), 3, "not a number of this log")
    refused(folder, changed(4, "2,2000,", "3,2000,"), 4, "lines are missing")
    refused(folder, changed(4, ",2000,", ",999,"), 4, "the time decreases")
    refused(folder, changed(4, "resize,1", "resize,2"), 4, "there is no buffer 2")
    refused(folder, changed(4, "resize,1,200", "resize,1,0"), 4, "resize to 0 bytes")
    refused(folder, changed(4, "resize", "allocate"), 4, "it was used before")
    refused(folder, changed(5, "free,1", "free,3"), 5, "there is no buffer 3")
    refused(folder, good + good.splitlines()[3].replace("2,2000", "3,3000") + "\n", 5, "no buffer")
    refused(folder, good[:-1], 4, "incomplete line")
    refused(folder, good + '3,3000,7,note,0,0,0,0,0x0,0x0,0,0,OK,"open\nand so', 5, "incomplete line")
    refused(folder, good.encode() + b"\0\n", 0, "zero byte")
    process = run("replay", "/dev/zero")
    expect_status(process, 4)
    expect("/dev/zero: not text" in process.stderr, process.stderr)


def test_line_numbers_count_newlines_in_quoted_fields(folder):
    log = Log().row("note", note='"one\ntwo\nthree"').row("free", 9)
    path = log.write(folder, "bad")
    process = run("replay", path)
    expect_status(process, 4)
    expect("bad:6: there is no buffer 9" in process.stderr, process.stderr)


def test_damaged_logs_never_crash(folder):
    log = Log()
    for i in range(1, 30):
        log.row("allocate", i, 500 * i, note='"x, ""y""\n"')
        if i % 2:
            log.row("free", i)
    good = ("\n".join(log.lines) + "\n").encode()
    chance = random.Random(4711)
    for _ in range(60):
        bad = bytearray(good)
        for _ in range(chance.randint(1, 4)):
            at = chance.randrange(len(bad))
            kind = chance.randrange(3)
            if kind == 0:
                bad[at] = chance.randrange(256)
            elif kind == 1:
                del bad[at:at + chance.randint(1, 50)]
            else:
                bad[at:at] = bytes(chance.choices(b'",\n0123456789x', k=chance.randint(1, 9)))
        path = folder / "damaged"
        path.write_bytes(bad)
        process = run("replay", "--resource", "pool", "--repeat", "1", str(path))
        expect(process.returncode in (0, 4, 6), f"{process.returncode}: {process.stderr}\n{bad!r}")
        expect_nothing_left(process)


def test_invalid_usage_of_replay_is_refused(folder):
    path = Log().write(folder)
    for options, says in ((("--resource", "heap", path), "'heap' is not a resource"),
                          (("--resource", "limit", path), "'limit' is not a resource at this place"),
                          (("--resource", "pool/virtual", path), "'pool' is not a resource at this place"),
                          (("--resource", "limit/driver", path), "'driver' is not a resource at this place"),
                          (("--resource", "/".join(["limit"] * 5), path), "'limit' is not a resource"),
                          (("--resource", "caching" + ":never_waits" * 20, path), "too long"),
                          (("--resource", "caching:colour=1", path), "'colour' is not an option"),
                          (("--resource", "pool:never_waits", path), "'never_waits' is not an option"),
                          (("--resource", "caching:committed_ratio=0.9", path), "'0.9' is not a value of"),
                          (("--resource", "caching:segment_bytes=x", path), "'x' is not a value of"),
                          (("--resource", "caching:segment_bytes", path), "'' is not a value of"),
                          (("--resource", ",".join(f"caching:thread_bytes={i}M" for i in range(1, 19)), path),
                           "more than 16"),
                          (("--turns", "1,0", path, path), "--turns"), (("--turns", "1", path, path), "2 logs"),
                          (("--turns", "1,", path), "--turns"), (("--defer", "0", path), "--defer"),
                          (("--repeat", "0", path), "--repeat"), ((), "give a LOG"),
                          ([path] * 17, "up to 16"), (("--device", "x", path), "not a device number"),
                          (("--of-device", "-1", path), "not a device number")):
        process = run("replay", *options)
        expect_status(process, 2)
        expect(says in process.stderr, process.stderr)
    process = run("replay", str(folder / "absent"))
    expect_status(process, 4)
    process = run("replay", str(folder))
    expect_status(process, 4)
    process = run("replay", "--driver", "/no/such/driver", path)
    expect_status(process, 3)


def test_a_log_of_a_trace_resource_is_replayed(folder):
    """The arena of examples/ with its upstream traced."""
    program = harness.BUILD / "examples" / "arena"
    if not program.exists():
        raise harness.Skip("the examples are not built")
    path = folder / "log"
    done = subprocess.run([str(program), str(path)], env=harness.environment(), timeout=50,
                          capture_output=True, text=True, check=False)
    expect_status(done, 0)
    expect("0 pieces have other bytes" in done.stdout, done.stdout)
    expect(done.stdout.endswith("trimmed: 0 bytes of the device in 0 buffers\n"), done.stdout)
    expect_nothing_left(done)
    process, out = replay(str(path), "--resource", "virtual")
    expect_status(process, 0)
    expect(out["not_freed"] == 0 and out["allocations"] == 2, out)
    expect(out["resources"][0]["peak_committed"] == 4 * MIB, out)


def test_options_and_wrappers_of_a_description_are_used(folder):
    log = Log()
    for i in range(1, 41):
        log.row("allocate", i, 3 * MIB)
    path = log.write(folder)
    chosen = ("caching-virtual:reserve_bytes=300M", "caching-virtual:committed_ratio=inf:never_waits",
              "caching:segment_bytes=4M:maximum_bytes=256M/log/limit:maximum_bytes=512M/virtual",
              "limit:maximum_bytes=130M/pool:maximum_bytes=160M", "limit:maximum_bytes=100M/virtual")
    process, out = replay(path, "--repeat", "1", "--resource", ",".join(chosen))
    expect_status(process, 6)
    reserved, _, layered, limited, short = out["resources"]
    expect([row["resource"] for row in out["resources"]] == list(chosen), out)
    expect(reserved["peak_committed"] >= 300 * MIB and layered["peak_committed"] < 256 * MIB, out)
    expect(limited["done"] and not short["done"] and short["line"] == 2 + 34, out)
    expect(short["status"] == "GPUMEM_ERROR_OUT_OF_CAPACITY", short)
    text = run("replay", "--repeat", "1", "--resource", ",".join(chosen[:3]), path, COLUMNS="80")
    expect(all(len(line) <= 80 for line in text.stdout.splitlines() if not line.startswith(("log ", "caching:"))),
           text.stdout)


def test_events_of_several_threads_are_replayed_in_log_order(folder):
    """Eight threads on four streams, in the one order of the log."""
    order = random.Random(5)
    log, live, count = Log(), [], 0
    for _ in range(3000):
        if live and order.random() < 0.5:
            log.row("free", live.pop(order.randrange(len(live))), thread=order.randrange(8))
        else:
            count += 1
            live.append(count)
            log.row("allocate", count, order.choice((64, 4096, 70000, 3 * MIB)),
                    stream=order.randrange(4) << 12, thread=order.randrange(8))
        if len(live) > 60:
            log.row("free", live.pop(0))
    process, out = replay(log.write(folder))
    expect_status(process, 0)
    expect(out["threads"] == 8 and out["streams"] == 4 and out["allocations"] == count, out)
    expect([row["resource"] for row in out["resources"]] == ["caching", "pool", "driver"], out)
    expect(all(row["done"] for row in out["resources"]), out)


harness.main(globals())
