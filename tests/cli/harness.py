"""Runs the gpumem command as a user would and reports in TAP."""
import os
import subprocess
import sys
from pathlib import Path

SOURCE = Path(os.environ.get("GPUMEM_SOURCE_DIR", Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(SOURCE / "tests/harness"))
from tap_report import Skip, in_folder, run_all  # noqa: E402,F401  pylint: disable=wrong-import-position,unused-import

BUILD = Path(os.environ.get("GPUMEM_BUILD_DIR", SOURCE / "build"))

# Of libraries made here in the place of NVIDIA's compilers: machine code, which is real.
MACHINE_CODE = """
#include <string.h>
asm(".section .rodata\\ncubin: .incbin \\"%s\\"\\ncubin_end: .previous");
extern const char cubin[] __attribute__((visibility("hidden"))), cubin_end[] __attribute__((visibility("hidden")));
#define SIZE (unsigned long)(cubin_end - cubin)
""" % (SOURCE / "tests/fixtures/images/small.cubin")
COMMAND = str(BUILD / "bin" / "gpumem")
SANITIZE = os.environ.get("GPUMEM_SANITIZE", "off")


def environment(**more):
    """What every run gets: softgpu with a small memory, which reports what was not freed."""
    env = dict(os.environ, GPUMEM_DRIVER="softgpu", SOFTGPU_MEMORY="1G", SOFTGPU_LEAKS="1")
    env.pop("GPUMEM_LOG", None)
    # Mesa's driver on the CPU leaks when a Vulkan loader unloads it: tests/harness/kept_driver.h.
    if SANITIZE == "address":
        env.setdefault("GPUMEM_VULKAN", "off")
    env.update(more)
    return env


def run(*arguments, timeout=50, **more):
    """The finished process, output as text."""
    return subprocess.run([COMMAND, *arguments], env=environment(**more), timeout=timeout,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)


class Failure(AssertionError):
    pass


def expect(condition, text):
    if not condition:
        raise Failure(text)


def expect_status(process, status):
    expect(process.returncode == status,
           f"exit status {process.returncode}, not {status}\n{process.stdout}{process.stderr}")


def expect_nothing_left(process):
    """softgpu's leak report goes to standard error and begins with its name."""
    expect("still live" not in process.stderr and "leak" not in process.stderr.lower(),
           f"left behind:\n{process.stderr}")


def bare_environment(*dropped, **more):
    """For `gpumem run`: nothing chooses or sets up a driver, nor what begins with one of `dropped`."""
    kept = {name: value for name, value in os.environ.items()
            if name != "GPUMEM_DRIVER" and not name.startswith(("SOFTGPU_", *dropped))}
    return dict(kept, SOFTGPU_MEMORY="64M", **more)


def run_program(options, *words, env=None, **more):
    """What a command does under `gpumem run --softgpu`."""
    return subprocess.run([COMMAND, "run", "--softgpu", *options, *map(str, words)], env=env or bare_environment(),
                          timeout=50, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, **more)


def start_program(options, *words, env=None):
    """The same, which is started only."""
    return subprocess.Popen([COMMAND, "run", "--softgpu", *options, *map(str, words)], env=env or bare_environment(),
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def main(tests):
    """Each test is a function of a temporary folder; its name is the test's. Or a module's names, of which those
    that begin with test_ are tests."""
    if isinstance(tests, dict):
        tests = [value for name, value in tests.items() if name.startswith("test_")]
    sys.exit(run_all((test.__name__.removeprefix("test_"), in_folder(test)) for test in tests))


def main_unless_sanitized(tests):
    """As main. For tests whose programs, Python among them, are not built with the sanitizer that softgpu has then."""
    if SANITIZE != "off":
        print("1..0 # SKIP the programs are not built with the sanitizer that softgpu needs then")
    else:
        main(tests)
