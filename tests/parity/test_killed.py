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
import guard  # noqa: E402  pylint: disable=import-error,wrong-import-position
import processes  # noqa: E402  pylint: disable=import-error,wrong-import-position

BUILD = Path(os.environ.get("GPUMEM_BUILD_DIR", HERE.parents[1] / "build"))
PARITY = BUILD / "tests/parity/parity"


def is_stopped(pid):
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return False
    return text[text.rindex(")") + 2:].split()[0] == "T"


def role(pid):
    """The first argument: a child is the program again, and only then what it is to be."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[1].decode()
    except (OSError, IndexError):
        return ""


def stop_child(process, wanted):
    """Stops a child of the process, so that it does not end by itself; None when the process ended."""
    while process.poll() is None:
        for pid in processes.children(process.pid):
            try:
                if role(pid) != wanted:
                    continue
                os.kill(pid, signal.SIGSTOP)
            except OSError:
                continue
            if processes.wait_until(lambda: is_stopped(pid) or not processes.is_running(pid)) \
                    and is_stopped(pid):
                return pid
    return None


def check(wanted, *arguments):
    """Starts the program until it had a child to be stopped, kills it, and looks for the child."""
    environment = dict(os.environ, GPUMEM_DRIVER="softgpu", SOFTGPU_LOG="off", SOFTGPU_DEVICES="1")
    for _ in range(50):
        process = subprocess.Popen([PARITY, *arguments], env=environment, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        child = None
        try:
            child = stop_child(process, wanted)
            if child is None:
                continue
            process.kill()
            process.wait()
            ends = []

            def ended():
                pid, status = os.waitpid(child, os.WNOHANG)
                ends.append(status)
                return pid == child

            # It is ours now. The kernel may have woken it, or sent it SIGHUP: neither is enough.
            if not processes.wait_until(ended):
                return f"process {child} is still there"
            if not os.WIFSIGNALED(ends[-1]) or os.WTERMSIG(ends[-1]) != signal.SIGKILL:
                return f"process {child} ended by itself: {ends[-1]}"
            child = None
            return None
        finally:
            process.kill()
            process.wait()
            processes.end([child] if child else [])
    return "it was never seen to have a child"


def main():
    guard.prctl(guard.PR_SET_CHILD_SUBREAPER, 1)
    with tempfile.TemporaryDirectory() as folder:
        cases = [("scenario ends when the recorder is killed",
                  ["one", "run", "--jobs", "4", "--scenario", "stream", "-o", f"{folder}/run"]),
                 ("helper ends when its scenario is killed", ["helper", "one", "ipc/memory-to-peer", "0", "1", "0", "0"])]
        print(f"1..{len(cases)}")
        bad = 0
        for number, (title, arguments) in enumerate(cases, 1):
            problem = check(*arguments)
            bad += problem is not None
            if problem:
                print(f"# {problem}")
            print(f"{'not ' if problem else ''}ok {number} - a {title}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
