#!/usr/bin/env python3
"""Descriptors are made in one place: src/base/descriptor.c, and the command's own beside it.

A call that makes one anywhere else could get 0, 1 or 2, where other people's text is printed."""
import re
import sys
import tempfile
from pathlib import Path

from files import SOURCE, project_files, tap

PLACES = {"src/base/descriptor.c", "tools/gpumem/descriptor.c"}
FOLDERS = ("src", "tools")
# libc's functions that answer a descriptor or something that holds one. What gives one and takes
# it back within the call (dlopen, realpath, glob) is not among them.
MAKERS = """open open64 openat openat64 openat2 creat memfd_create memfd_secret shm_open mq_open
socket socketpair accept accept4 recvmsg recvmmsg dup dup2 dup3 pipe pipe2 eventfd epoll_create
epoll_create1 timerfd_create signalfd inotify_init inotify_init1 fanotify_init userfaultfd pidfd_open
pidfd_getfd perf_event_open fopen fopen64 freopen fdopen popen tmpfile opendir fdopendir scandir nftw
ftw mkstemp mkostemp mkstemps posix_openpt open_by_handle_at""".split()
CALL = re.compile(r"(?<![\w.>])(" + "|".join(MAKERS) + r")\s*\(")
# By number, and by request: the kernel's other doors to a descriptor.
NUMBERS = re.compile(r"\bSYS_(" + "|".join(MAKERS) + r")\b|\bF_DUPFD(_CLOEXEC)?\b")
# An ioctl that answers a descriptor is handed to the helper as it comes.
REQUEST = re.compile(r"\bioctl\s*\([^;]*\bUDMABUF_CREATE(_LIST)?\b")
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"", re.S)


def bare(text):
    """The code alone; lines keep their numbers."""
    return COMMENT.sub(lambda match: re.sub(r"[^\n]", " ", match.group(0)), text)


def violations(root):
    found = []
    for path in project_files(root):
        if path.parts[0] not in FOLDERS or path.suffix not in (".c", ".h", ".cc"):
            continue
        if str(path) in PLACES:
            continue
        text = bare((root / path).read_text(errors="replace"))
        for pattern in (CALL, NUMBERS, REQUEST):
            for match in pattern.finditer(text):
                if pattern is REQUEST and text[:match.start()].endswith("gm_fd_keep("):
                    continue
                line = text.count("\n", 0, match.start()) + 1
                word = match.group(0).split("(")[0].strip()
                found.append(f"{path}:{line}: {word}: descriptors are made by base/descriptor.h "
                             "(in tools, by descriptor.h)")
    return found


PLANTED = [
    ("src/load/a.c", "int fd = open(path, O_RDONLY | O_CLOEXEC);"),
    ("src/softgpu/ipc/a.c", 'int fd = memfd_create("x", MFD_CLOEXEC);'),
    ("src/softgpu/a.c", "int fd = fcntl(old, F_DUPFD_CLOEXEC, 3);"),
    ("src/softgpu/a.h", "static int f(int x) { return dup (x); }"),
    ("src/share/a.c", "ssize_t n = recvmsg(s, &m, MSG_CMSG_CLOEXEC);"),
    ("src/memory/a.c", "int fd = (int)syscall(SYS_pidfd_open, pid, 0);"),
    ("src/memory/a.c", 'FILE *file = fopen("/proc/meminfo", "re");'),
    ("src/softgpu/a.c", "int fd = ioctl(maker, UDMABUF_CREATE_LIST, list);"),
    ("src/base/socket.c", "int fd = socket(AF_UNIX, SOCK_STREAM, 0);"),
    ("tools/gpumem/a.c", "if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair)) return;"),
]
ALLOWED = [
    ("src/base/descriptor.c", "int fd = open(path, O_RDONLY | O_CLOEXEC);"),
    ("tools/gpumem/descriptor.c", 'FILE *file = fopen(path, "re");'),
    ("src/load/a.c", "int fd = gm_fd_open(path, O_RDONLY, 0); /* as open(2) */"),
    ("src/driver/a.c", 'say("cannot open(%s)", name); table->open(x); gm_file_open(x);'),
    ("src/softgpu/a.c", "int fd = gm_fd_keep(ioctl(maker, UDMABUF_CREATE_LIST, list));"),
    ("tests/unit/a.c", "int fd = open(path, O_RDONLY);"),
]


def check_planted():
    problems = []
    for name, line in PLANTED + ALLOWED:
        with tempfile.TemporaryDirectory() as temporary:
            root = Path(temporary)
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(f"#include <fcntl.h>\n{line}\n")
            found = violations(root)
            wanted = (name, line) in PLANTED
            if wanted and (len(found) != 1 or not found[0].startswith(f"{name}:2:")):
                problems.append(f"{line} in {name}: found {found}")
            if not wanted and found:
                problems.append(f"{line} in {name} is allowed, and was found: {found}")
    return problems


if __name__ == "__main__":
    sys.exit(tap([
        ("descriptors are made in one place", violations(SOURCE)),
        ("only planted violations are detected", check_planted()),
    ]))
