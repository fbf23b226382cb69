#!/usr/bin/env python3
"""Names of files come from anywhere: none writes control characters to the terminal."""
import os
import subprocess

import harness
from harness import expect

HOSTILE = b"a\x1b]0;title\x07\x1b[2J\nb\x7f\x08\xc2\x9b31m\xe2\x80\xaec\xff"


def run(*arguments, **more):
    return subprocess.run([harness.COMMAND, *arguments], env=harness.environment(**more),
                          timeout=50, stdin=subprocess.DEVNULL, capture_output=True, check=False)


def expect_harmless(process, lines):
    """Nothing but text and line ends, and no line that a name's own \\n began."""
    output = process.stdout + process.stderr
    text = output.decode("utf-8")  # bytes that are no UTF-8 are escaped too
    raw = [c for c in text if c != "\n" and (ord(c) < 32 or 0x7f <= ord(c) < 0xa0 or c == "\u202e")]
    expect(not raw, f"{raw!r} in {text!r}")
    expect(b"\\x1b]0;title\\x07" in output, f"the name is not shown: {text!r}")
    for line in text.splitlines():
        expect(line.startswith(lines), f"{line!r} of {text!r}")


def test_a_file_name_cannot_control_the_terminal(folder):
    path = os.path.join(os.fsencode(folder), HOSTILE)
    with open(path, "wb") as file:
        file.write(b"x" * 5000)
    process = run("load", "--no-share", path)
    expect(process.returncode == 0, f"{process.stderr!r}")
    expect_harmless(process, ("driver", "device", "file", "loading", "checking", "comparing",
                              "loaded", "     ", "checked", "done"))


def test_names_in_errors_cannot_control_the_terminal(folder):
    path = os.path.join(os.fsencode(folder), HOSTILE)
    # run looks for softgpu's libcuda.so.1 first, which a sanitizer's build does not have.
    of_run = (("run", "--softgpu", HOSTILE), ("run", "--softgpu", "--fault", HOSTILE, "false"),
              ("run", "--softgpu", "--profile", b"/" + HOSTILE, "false"),
              ("run", "--softgpu", "--log", HOSTILE, "true"))
    for arguments in (("load", path), ("load", "--receiver", path, path), ("info", path),
                      ("info", "--driver", path), ("info", "--driver", b"/" + HOSTILE),
                      ("driver", "--status", HOSTILE), ("doctor", HOSTILE), (HOSTILE,),
                      ("info", b"--" + HOSTILE), *(of_run if harness.SANITIZE == "off" else ())):
        process = run(*arguments)
        expect(process.returncode != 0, f"{arguments} succeeds")
        expect_harmless(process, ("gpumem: ", "driver", "device", "file"))


def test_names_in_findings_cannot_control_the_terminal(_):
    process = run("doctor", "--driver", b"/" + HOSTILE)
    expect_harmless(process, ("ok", "note", "bad", "gpumem: "))


def test_names_in_softgpu_logs_cannot_control_the_terminal(folder):
    """Variables and profiles are named in its lines."""
    process = run("info", SOFTGPU_PROFILE=HOSTILE)
    expect(process.returncode != 0, "such a profile is taken")
    expect_harmless(process, ("gpumem: ", "softgpu: ", "driver"))
    process = run("info", SOFTGPU_LOG=HOSTILE)
    expect_harmless(process, ("gpumem: ", "softgpu: ", "driver", "device", "  "))


harness.main(globals())
