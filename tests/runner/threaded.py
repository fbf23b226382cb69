"""Which tests have threads, so that ThreadSanitizer can find something.

A test has threads when it starts some, itself or by a header of tests/ that it includes, or when what it tests
does: PARTS names the files of src/ that start threads, each with the tests that have these run beside the
test's own thread. Tests of one thread are under ThreadSanitizer with `./dev test --long threads` alone."""
import functools
import re
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
STARTS = re.compile(r"\b(?:pthread_create|thrd_create|gm_thread_start)\s*\(")
INCLUDES = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)
# By the file that starts threads: which tests' names have them run.
PARTS = {
    "src/load/pump.c": r"^unit/test_(load|pump)",
    "src/memory/host/touch_pages.c": r"^unit/test_(pinned|pinning|host_memory|huge_pages)",
    "src/memory/pinned/pinned_resource.c": r"^unit/test_(pinned|pinning)",
    "src/softgpu/checkpoint/restorer.c": r"^conformance/test_checkpoint",
    "src/softgpu/device/notification.c": r"^conformance/test_notification$",
    "src/softgpu/graph/user_object.c": r"^conformance/test_user_object$",
    # Kernels of more than one block.
    "src/softgpu/launch/crew.c":
        r"^conformance/(triton/)?test_(kernel|launch|graph_kernel|cooperative|dependent|triton)",
    # Whatever a stream does beside the thread that asked for it.
    "src/softgpu/stream/worker.c":
        r"^conformance/test_(\w*stream|\w*async|event|schedule|exit|host_function|memop|ipc_event|load_queue|cancel"
        r"|pool_re|external_semaphore|graph_launch|graph_exec|library_pools)",
}
# What shares nothing else between threads than the test beside it does.
SAME_AS = {"conformance/test_every_resource_second_device": "conformance/test_every_resource"}


@functools.lru_cache(maxsize=None)
def text_of(path):
    return path.read_text(errors="replace")


@functools.lru_cache(maxsize=None)
def included(path):
    """A file and the files of tests/ that it includes, wherever they are found."""
    found, left = set(), [path]
    while left:
        file = left.pop()
        if file in found:
            continue
        found.add(file)
        for name in INCLUDES.findall(text_of(file)):
            for folder in (file.parent, path.parent, path.parent.parent, SOURCE / "tests/harness"):
                if (folder / name).is_file():
                    left.append((folder / name).resolve())
                    break
    return found


def starts_threads(path):
    return any(STARTS.search(text_of(file)) for file in included(path))


def has_threads(name):
    """Of a test's name. Scripts run programs with kernels, which threads execute."""
    path = SOURCE / "tests" / f"{name}.c"
    if name in SAME_AS:
        return False
    if not path.is_file():
        return True
    return starts_threads(path) or any(re.search(pattern, name) for pattern in PARTS.values())
