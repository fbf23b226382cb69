"""Runs the gpumem command as a user would and reports in TAP."""
import os
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

SOURCE = Path(os.environ.get("GPUMEM_SOURCE_DIR", Path(__file__).resolve().parents[2]))
BUILD = Path(os.environ.get("GPUMEM_BUILD_DIR", SOURCE / "build"))
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


class Failure(Exception):
    pass


class Skip(Exception):
    """Its text is the reason."""


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


def report_failure(number, name, text):
    for line in text.splitlines():
        print(f"# {line}")
    print(f"not ok {number} - {name}", flush=True)


def main(tests):
    """Each test is a function of a temporary folder; its name is the test's."""
    print(f"1..{len(tests)}")
    failed = 0
    for number, test in enumerate(tests, 1):
        name = test.__name__.removeprefix("test_")
        with tempfile.TemporaryDirectory() as folder:
            try:
                test(Path(folder))
                print(f"ok {number} - {name}", flush=True)
            except Skip as reason:
                print(f"ok {number} - {name} # SKIP {reason}", flush=True)
            except (Failure, subprocess.TimeoutExpired) as failure:
                failed += 1
                report_failure(number, name, str(failure))
            except Exception:  # pylint: disable=broad-except
                failed += 1
                report_failure(number, name, traceback.format_exc())
    sys.exit(1 if failed else 0)


def main_unless_sanitized(tests):
    """As main. For tests whose programs, Python among them, are not built with the sanitizer that softgpu has then."""
    if SANITIZE != "off":
        print("1..0 # SKIP the programs are not built with the sanitizer that softgpu needs then")
    else:
        main(tests)
