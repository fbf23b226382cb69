#!/usr/bin/env python3
"""gpumem load in a memory control group with little room: it makes do, or says so, and is not
killed. With a real group, of either version."""
import json
import os
import subprocess

import harness
from control_group import group_of
from harness import expect

MIB = 1 << 20


def run_in(join, *arguments, **more):
    env = harness.environment(**more)
    env.pop("SOFTGPU_MEMORY")
    env.update(more)
    return subprocess.run([harness.COMMAND, *arguments], env=env, timeout=50, text=True,
                          preexec_fn=lambda: join.write_text("0"), stdin=subprocess.DEVNULL,
                          capture_output=True, check=False)


def make_file(path, size):
    with open(path, "wb") as file:
        for _ in range(size // MIB):
            file.write(os.urandom(MIB))
    return str(path)


def sanitizer_memory():
    """What a sanitizer itself takes of a group's memory, at most, in the two processes of a load:
    each has its shadow of the memory that it uses, and keeps what was freed for a while."""
    return 0 if harness.SANITIZE == "off" else 100 * MIB


def test_a_file_of_half_the_limit_is_loaded(folder):
    path = make_file(folder / "f", 90 * MIB)
    with group_of(200 * 1000 * 1000 + sanitizer_memory()) as join:
        process = run_in(join, "load", "--threads", "8", "--json", path)
    expect(process.returncode == 0, f"status {process.returncode}\n{process.stderr}")
    report = json.loads(process.stdout)
    expect(report["bytes"] == 90 * MIB and report["shared"] is True, str(report))
    expect(report["peak_pinned_bytes"] < 60 * MIB + sanitizer_memory(), str(report))


def test_the_requested_number_of_readers_runs_within_a_large_limit(folder):
    path = make_file(folder / "f", 90 * MIB)
    with group_of(1 << 30) as join:
        process = run_in(join, "load", "--threads", "8", "--json", path)
    expect(process.returncode == 0, f"status {process.returncode}\n{process.stderr}")
    expect(json.loads(process.stdout)["readers"] == 8, process.stdout)


def test_page_cache_does_not_count_as_used_memory(folder):
    """What reading brings into the page cache belongs to the group, and can be dropped."""
    path = make_file(folder / "f", 60 * MIB)
    more = make_file(folder / "more", 160 * MIB)
    with group_of(240 * MIB) as join:
        read = subprocess.run(["cat", more], preexec_fn=lambda: join.write_text("0"),
                              stdout=subprocess.DEVNULL, check=False)
        expect(read.returncode == 0, "cat failed")
        process = run_in(join, "load", "--threads", "8", path)
    expect(process.returncode == 0, f"status {process.returncode}\n{process.stderr}")


def test_a_file_larger_than_the_limit_is_refused(folder):
    path = make_file(folder / "f", 240 * MIB)
    with group_of(200 * MIB) as join:
        process = run_in(join, "load", "--threads", "8", path)
        expect(process.returncode == 6, f"status {process.returncode}\n{process.stderr}")
        # A device that was made larger than the group by hand runs into the group's limit.
        process = run_in(join, "load", "--threads", "8", path, SOFTGPU_MEMORY="1G")
        expect(process.returncode == 6, f"status {process.returncode}\n{process.stderr}")


if __name__ == "__main__":
    harness.main(globals())
