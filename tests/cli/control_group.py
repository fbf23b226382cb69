"""Memory control groups for tests: real ones, of either version, below this process's own."""
import contextlib
import os
from pathlib import Path

from harness import Skip


def group_folder():
    """(folder, limit's name) of this process's own memory group."""
    mounts = [line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    groups = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
    for fields in mounts:
        kind, options = fields[fields.index("-") + 1], fields[-1].split(",")
        for _, controllers, path in groups:
            if kind == "cgroup" and "memory" in options and "memory" in controllers.split(","):
                return Path(fields[4] + path), "memory.limit_in_bytes"
            if kind == "cgroup2" and not controllers:
                folder = Path(fields[4] + path)
                control = folder / "cgroup.subtree_control"
                if control.exists() and "memory" in control.read_text().split():
                    return folder, "memory.max"
    raise Skip("no memory control group that this process could make one below")


@contextlib.contextmanager
def group_of(limit):
    """A file for processes to join by, of a group that may use so many bytes."""
    folder, name = group_folder()
    made = folder / f"gpumem-test-{os.getpid()}"
    try:
        made.mkdir()
        (made / name).write_text(str(limit))
    except OSError as error:
        with contextlib.suppress(OSError):
            made.rmdir()
        raise Skip(f"no control group can be made in {folder}: {error}") from None
    try:
        yield made / "cgroup.procs"
    finally:
        made.rmdir()
