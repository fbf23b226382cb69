#!/usr/bin/env python3
"""gpumem load: what it does, what it says to bad input, and that nothing is left behind."""
import json
import os
import signal
import subprocess
import time
from pathlib import Path

import harness
from harness import expect, expect_nothing_left, expect_status, run

MIB = 1 << 20


def make_file(path, size, seed=1):
    """Bytes that do not repeat within a chunk."""
    block = b"".join((seed * 2654435761 + i * 40503).to_bytes(8, "little") for i in range(8192))
    with open(path, "wb") as file:
        for index in range(0, size, len(block)):
            file.write(index.to_bytes(8, "little") + block[8:size - index])
    os.truncate(path, size)
    return str(path)


def bytes_read(process):
    for line in Path(f"/proc/{process.pid}/io").read_text().splitlines():
        if line.startswith("rchar:"):
            return int(line.split()[1])
    return 0


def start(*arguments, **more):
    """A load that has read 8 MiB of its file and is stopped there."""
    process = subprocess.Popen([harness.COMMAND, "load", *arguments],
                               env=harness.environment(**more), stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for line in process.stdout:
        if line.startswith("file"):
            break
    before = bytes_read(process)
    while bytes_read(process) < before + 8 * MIB:
        time.sleep(0.001)
    process.send_signal(signal.SIGSTOP)
    return process


def finish(process):
    process.send_signal(signal.SIGCONT)
    out, err = process.communicate(timeout=50)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def write_receiver(folder, text):
    path = folder / "receiver"
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)
    return str(path)


def test_loading_a_file_reports_each_step(folder):
    process = run("load", make_file(folder / "f", 20 * MIB + 12345))
    expect_status(process, 0)
    for word in ("driver ", "device ", "loaded    20983865 bytes", "checked ", "shared ", "done "):
        expect(word in process.stdout, f"no '{word}' in\n{process.stdout}")
    expect("100 %" in process.stderr, f"no progress in\n{process.stderr}")
    expect_nothing_left(process)


def test_the_json_report_has_every_figure(folder):
    process = run("load", "--json", "--chunk", "1M", "--threads", "2",
                  make_file(folder / "f", 5 * MIB + 1))
    expect_status(process, 0)
    report = json.loads(process.stdout)
    expect(report["bytes"] == 5 * MIB + 1, str(report))
    expect(report["chunks"] == 6 and report["readers"] == 2, str(report))
    expect(report["peak_pinned_bytes"] == 4 * MIB, str(report))
    expect(report["device_checksum"] == report["file_checksum"], str(report))
    expect(report["shared"] is True and report["descriptors"] == report["mappings"], str(report))
    expect(report["softgpu"] is True and report["load_bytes_per_s"] > 1 << 20, str(report))
    expect(process.stderr == "", process.stderr)


def test_the_checksum_depends_only_on_the_bytes(folder):
    """One changed byte changes it, and the chunk size and the readers do not."""
    first = make_file(folder / "a", 17 * MIB)
    sums = []
    for options in ((), ("--chunk", "256K", "--threads", "1")):
        sums.append(json.loads(run("load", "--json", *options, first).stdout)["device_checksum"])
    with open(first, "r+b") as file:
        file.seek(9 * MIB)
        file.write(b"!")
    changed = json.loads(run("load", "--json", first).stdout)["device_checksum"]
    expect(sums[0] == sums[1] and changed != sums[0], f"{sums} {changed}")


def test_a_file_of_one_byte_is_loaded(folder):
    (folder / "f").write_bytes(b"x")
    process = run("load", "--json", str(folder / "f"))
    expect_status(process, 0)
    expect(json.loads(process.stdout)["bytes"] == 1, process.stdout)


def refuses(status, words, *arguments, **more):
    process = run(*arguments, **more)
    expect_status(process, status)
    last = process.stderr.strip().splitlines()[-1]
    for word in words:
        expect(word in last, f"no '{word}' in: {last}")
    expect_nothing_left(process)


def test_a_missing_file_is_refused(folder):
    refuses(4, ["cannot open", "absent", "No such file"], "load", str(folder / "absent"))


def test_a_directory_is_refused(folder):
    refuses(4, [str(folder), "Is a directory"], "load", str(folder))


def test_an_empty_file_is_refused(folder):
    (folder / "f").touch()
    refuses(4, ["is empty"], "load", str(folder / "f"))


def test_a_fifo_is_refused_without_waiting(folder):
    os.mkfifo(folder / "f")
    refuses(4, ["not a regular file"], "load", str(folder / "f"), timeout=20)


def test_a_file_larger_than_the_device_memory_is_refused(folder):
    path = make_file(folder / "f", 96 * MIB)
    refuses(6, ["100663296 bytes"], "load", path, SOFTGPU_MEMORY="64M")


def test_an_unknown_device_is_refused(folder):
    refuses(3, ["7"], "load", "--device", "7", make_file(folder / "f", 10))


def test_a_missing_driver_is_an_error(folder):
    refuses(3, ["/nowhere/libcuda.so"], "load", "--driver", "/nowhere/libcuda.so",
            make_file(folder / "f", 10))


def test_invalid_usage_of_load_is_refused(folder):
    path = make_file(folder / "f", 10)
    refuses(2, ["one FILE"], "load")
    refuses(2, ["one FILE"], "load", path, path)
    refuses(2, ["--threads"], "load", "--threads", "17", path)
    refuses(2, ["--chunk"], "load", "--chunk", "1", path)
    refuses(2, ["device number"], "load", "--device", "-1", path)


def changed_while_read(folder, change, words):
    path = Path(make_file(folder / "f", 256 * MIB))
    process = start("--chunk", "64K", "--threads", "1", str(path))
    change(path)
    process = finish(process)
    expect_status(process, 5)
    last = process.stderr.strip().splitlines()[-1]
    for word in words:
        expect(word in last, f"no '{word}' in: {last}")
    expect_nothing_left(process)


def test_a_file_that_shrinks_while_it_is_read_is_an_error(folder):
    changed_while_read(folder, lambda path: os.truncate(path, 200 * MIB), ["shrank"])


def test_a_file_that_grows_while_it_is_read_is_an_error(folder):
    changed_while_read(folder, lambda path: os.truncate(path, 300 * MIB), ["grew"])


def test_a_file_that_changes_while_it_is_read_is_an_error(folder):
    def write(path):
        with open(path, "r+b") as file:
            file.write(b"other bytes")
    changed_while_read(folder, write, ["was written to"])


def test_an_interrupt_during_loading_ends_cleanly(folder):
    path = make_file(folder / "f", 256 * MIB)
    process = start("--chunk", "64K", "--threads", "1", path)
    process.send_signal(signal.SIGINT)
    begin = time.monotonic()
    process = finish(process)
    expect_status(process, 130)
    expect(time.monotonic() - begin < 10, "took long to end")
    expect("stopped after" in process.stderr or "interrupted" in process.stderr, process.stderr)
    expect_nothing_left(process)


def test_a_killed_receiver_is_an_error(folder):
    path = make_file(folder / "f", MIB)
    receiver = write_receiver(folder, "kill -9 $$\n")
    refuses(8, ["killed by signal 9"], "load", "--receiver", receiver, path)


def test_a_receiver_killed_after_the_import_is_an_error(folder):
    """It lives long enough to take the descriptors, and dies before it says what it read."""
    path = make_file(folder / "f", MIB)
    receiver = write_receiver(
        folder, f'"{harness.COMMAND}" "$@" >/dev/null 2>&1\nkill -9 $$\n')
    refuses(8, ["killed by signal 9"], "load", "--receiver", receiver, path)


def test_a_receiver_that_cannot_start_is_an_error(folder):
    path = make_file(folder / "f", MIB)
    refuses(8, ["cannot start"], "load", "--receiver", str(folder / "absent"), path)


def test_a_receiver_that_reads_different_bytes_is_an_error(folder):
    """A receiver that is told another checksum finds a difference: it does look."""
    path = make_file(folder / "f", MIB)
    receiver = write_receiver(
        folder, f'exec "{harness.COMMAND}" receive --socket 3 --expect 0123456789abcdef\n')
    refuses(7, ["different bytes"], "load", "--receiver", receiver, path)


def test_a_file_is_loaded_without_a_receiver_on_request(folder):
    process = run("load", "--json", "--no-share", make_file(folder / "f", MIB))
    expect_status(process, 0)
    expect(json.loads(process.stdout)["shared"] is False, process.stdout)


harness.main(globals())
