#!/usr/bin/env python3
"""gpumem share: an owner and the processes that attach to it, one of which is killed."""
import json
import os
import signal
import socket
import subprocess
import time

import harness


def shown(*arguments, **more):
    done = harness.run("share", "--json", *arguments, **more)
    harness.expect_status(done, 0)
    harness.expect_nothing_left(done)
    return json.loads(done.stdout)


def is_gone(pid):
    return not os.path.exists(f"/proc/{pid}")


def test_memory_is_released_after_a_process_is_killed(folder):
    at = str(folder / "socket")
    show = shown("--at", at, "--size", "8M", "--processes", "4")
    harness.expect(show["path"] == at and not os.path.exists(at), "the socket file is left")
    harness.expect(len(set(show["processes"])) == 4, "not four processes")
    harness.expect(show["killed"] in show["processes"], "nobody was killed")
    harness.expect(all(is_gone(pid) for pid in show["processes"]), "a process is left")
    steps = {step.pop("step"): step for step in show["steps"]}
    size = show["bytes"]
    harness.expect(size == 8 << 20 and show["grown_bytes"] == 2 * size, "other sizes")
    committed = {name: step["owner_committed_bytes"] for name, step in steps.items()}
    harness.expect(committed == {"before": 0, "shared": size, "grown": 2 * size,
                                 "killed": 2 * size, "shrunk": size, "after": 0}, str(committed))
    harness.expect(steps["killed"]["owner_exports"] == 1 and steps["shrunk"]["owner_exports"] == 0,
                   "the export is not detached")
    harness.expect(steps["after"]["device_free_bytes"] == steps["before"]["device_free_bytes"],
                   "the device has not got its memory back")
    harness.expect(steps["killed"]["device_free_bytes"] < steps["before"]["device_free_bytes"],
                   "no memory was taken")


def test_each_step_is_printed(_folder):
    done = harness.run("share")
    harness.expect_status(done, 0)
    harness.expect_nothing_left(done)
    words = [line.split()[0] for line in done.stdout.splitlines()]
    harness.expect(words == ["shared", "grown", "killed", "shrunk"] + 6 * ["memory"] + ["done"],
                   done.stdout)


def test_thirty_two_processes_share_a_buffer(_folder):
    show = shown("--processes", "32", "--size", "2M")
    harness.expect(len(set(show["processes"])) == 32, "not 32 processes")


def children_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return [int(word) for word in file.read().split()]


def wait_until(condition, what):
    deadline = time.monotonic() + 20
    while not condition():
        harness.expect(time.monotonic() < deadline, what)
        time.sleep(0.002)


def test_attached_processes_end_when_the_owner_is_killed(folder):
    """Wherever they are just then; the socket file that it leaves is replaced by the next owner."""
    at = str(folder / "socket")
    with subprocess.Popen([harness.COMMAND, "share", "--at", at, "--processes", "32"],
                          env=harness.environment(), stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as owner:
        wait_until(lambda: owner.poll() is not None or len(children_of(owner.pid)) >= 3,
                   "no process was started")
        children = [] if owner.poll() is not None else children_of(owner.pid)
        owner.send_signal(signal.SIGKILL)
    wait_until(lambda: all(is_gone(pid) for pid in children), "an attached process is left")
    if os.path.exists(at):  # what a killed owner leaves is replaced
        shown("--at", at, "--size", "2M")
    harness.expect(not os.path.exists(at), "the socket file is left")


def test_a_socket_path_in_use_is_refused(folder):
    at = str(folder / "socket")
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(at)
        other.listen()
        done = harness.run("share", "--at", at)
    harness.expect_status(done, 1)
    harness.expect("another process is listening" in done.stderr, done.stderr)
    harness.expect_nothing_left(done)
    os.unlink(at)


def test_a_buffer_larger_than_the_device_memory_is_refused(_folder):
    done = harness.run("share", "--size", "700M", "--json")
    harness.expect_status(done, 6)
    harness.expect_nothing_left(done)
    harness.expect(json.loads(done.stdout)["status"] == "GPUMEM_ERROR_OUT_OF_MEMORY", done.stdout)


harness.main(globals())
