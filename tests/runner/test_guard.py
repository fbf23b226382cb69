#!/usr/bin/env python3
"""A run that is killed takes its children with it: whichever of its processes dies, whatever the
children did to get away."""
import functools
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import processes

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "harness"))
from tap_report import run_all  # noqa: E402  pylint: disable=wrong-import-position

HERE = Path(__file__).resolve().parent

# A test that stays: its shell, a child, one in a session of its own whose parent has ended, and one
# that ignores what can be ignored. Each writes its number where the test finds it.
STAYS = """
note() { sh -c 'echo $PPID' >"$NOTES/$1"; }
(trap '' TERM HUP INT; note ignores; while :; do sleep 1000; done) &
setsid sh -c 'sh -c "echo \\$PPID" >"$NOTES/session"; sleep 1000; :' &
sh -c 'setsid sh -c "echo \\$\\$ >$NOTES/orphan; sleep 1000; :" & :'
: >"$TMPDIR/left behind"
note shell
wait
"""
NOTES = {"ignores", "session", "orphan", "shell"}


def start(work):
    """The front process, and the numbers of what its test started."""
    script = work / "stays.sh"
    script.write_text(STAYS)
    notes, temporary = work / "notes", work / "temporary"
    notes.mkdir()
    temporary.mkdir()
    front = subprocess.Popen(
        [sys.executable, str(HERE / "run.py"), "--command", f"sh {script}"], start_new_session=True,
        env=dict(os.environ, NOTES=str(notes), TMPDIR=str(temporary)),
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def all_noted():
        return {p.name for p in notes.iterdir() if p.read_text().strip()} == NOTES

    assert processes.wait_until(all_noted), f"the test did not start: {list(notes.iterdir())}"
    return front, [int((notes / name).read_text()) for name in sorted(NOTES)]


def victims(front, kind):
    keeper = processes.children(front.pid)
    assert len(keeper) == 1, f"the front has {len(keeper)} children"
    worker = [pid for pid in processes.children(keeper[0]) if b"run.py" in
              Path(f"/proc/{pid}/cmdline").read_bytes()]
    assert len(worker) == 1, f"the keeper has {len(worker)} workers"
    return {"front": [front.pid], "keeper": keeper, "worker": worker,
            "all three": [front.pid, *keeper, *worker]}[kind]


def check(kind, number):
    """None, or what is wrong."""
    with tempfile.TemporaryDirectory() as folder:
        front, pids = start(Path(folder))
        mine = processes.descendants(front.pid)
        try:
            if kind == "group":
                begin = time.monotonic()
                os.killpg(front.pid, number)
            else:
                # Stopped before, so that none has time to do its work for the others.
                chosen = victims(front, kind)
                for pid in chosen if len(chosen) > 1 else []:
                    os.kill(pid, signal.SIGSTOP)
                for pid in chosen:
                    os.kill(pid, number)
            begin = time.monotonic()
            front.wait(processes.PATIENCE)
            everybody = set(pids) | set(mine)
            if not processes.wait_until(lambda: not any(map(processes.is_running, everybody))):
                return f"still running: {[pid for pid in everybody if processes.is_running(pid)]}"
            print(f"# {time.monotonic() - begin:.2f} s after {number.name} to {kind} nothing runs")
            if not processes.wait_until(lambda: not list((Path(folder) / "temporary").iterdir())):
                return f"temporary files: {list((Path(folder) / 'temporary').iterdir())}"
            return None if front.returncode else "exit status 0"
        finally:
            processes.end([*pids, *mine, front.pid])
            front.wait()


def main():
    cases = [(kind, number) for kind in ("front", "keeper", "worker", "group")
             for number in (signal.SIGKILL, signal.SIGTERM)]
    cases += [("all three", signal.SIGKILL), ("front", signal.SIGINT), ("group", signal.SIGINT), ("front", signal.SIGHUP)]
    return run_all((f"no process survives {number.name} to {kind}", functools.partial(check, kind, number))
                   for kind, number in cases)


if __name__ == "__main__":
    sys.exit(main())
