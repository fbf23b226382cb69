#!/usr/bin/env python3
"""A recorder that is killed takes the processes of its scenarios with it, and their helpers."""
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "runner"))
import processes  # noqa: E402  pylint: disable=import-error,wrong-import-position

BUILD = Path(os.environ.get("GPUMEM_BUILD_DIR", HERE.parents[1] / "build"))
PARITY = BUILD / "tests/parity/parity"


def words(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[:2]
    except OSError:
        return []


def stopped(parent, role):
    """The descendants of that role, all stopped, so that none ends by itself: or none."""
    found = [pid for pid in processes.descendants(parent) if words(pid)[1:] == [role]]
    for pid in found:
        try:
            os.kill(pid, signal.SIGSTOP)
        except OSError:
            return []
    return [pid for pid in found if processes.is_running(pid)]


def check(role, prefix):
    with tempfile.TemporaryDirectory() as folder:
        # A run over all scenarios of the prefix, again and again, until there is one to stop.
        for _ in range(20):
            process = subprocess.Popen(
                [PARITY, "run", "--jobs", "4", "--scenario", prefix, "-o", Path(folder) / "run"],
                env=dict(os.environ, GPUMEM_DRIVER="softgpu", SOFTGPU_LOG="off", SOFTGPU_DEVICES="1"),
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            pids = []
            try:
                while not pids and process.poll() is None:
                    pids = stopped(process.pid, role)
                if not pids:
                    continue
                process.kill()
                process.wait()
                if not processes.wait_until(lambda: not any(map(processes.is_running, pids))):
                    return f"still there: {[pid for pid in pids if processes.is_running(pid)]}"
                return None
            finally:
                process.kill()
                process.wait()
                processes.end(pids)
    return f"no process of the role {role} was ever met"


def main():
    cases = [(b"one", "device,context,memory,stream,event"), (b"helper", "ipc,share,vmm,pool")]
    print(f"1..{len(cases)}")
    bad = 0
    for number, (role, prefix) in enumerate(cases, 1):
        problem = check(role, prefix)
        bad += problem is not None
        if problem:
            print(f"# {problem}")
        print(f"{'not ' if problem else ''}ok {number} - a process of the role {role.decode()} "
              "dies with the recorder")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
