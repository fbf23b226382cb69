#!/usr/bin/env python3
"""Lines on a terminal and elsewhere: wrapped at words, one family of units, a bar, colours."""
import fcntl
import os
import pty
import re
import struct
import subprocess
import termios

import harness
from harness import SANITIZE, Skip, expect, expect_status, run

MIB = 1 << 20
COLOUR = re.compile(r"\x1b\[\d*m")


def on_terminal(columns, *arguments, **more):
    """What a terminal of so many columns gets, and the exit status."""
    try:
        ours, theirs = pty.openpty()
    except OSError as error:
        raise harness.Skip(f"no pseudo-terminal here: {error}") from error
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    env = harness.environment(**{"TERM": "xterm", **more})
    if "NO_COLOR" not in more:
        env.pop("NO_COLOR", None)
    process = subprocess.Popen([harness.COMMAND, *arguments], env=env, stdin=subprocess.DEVNULL,
                               stdout=theirs, stderr=theirs)
    os.close(theirs)
    text = b""
    try:
        while piece := os.read(ours, 65536):
            text += piece
    except OSError:  # the other end is closed
        pass
    os.close(ours)
    return process.wait(timeout=50), text.decode().replace("\r\n", "\n")


def make_file(folder, size):
    path = folder / ("f" * 30)
    path.write_bytes(os.urandom(MIB) * (size // MIB))
    return str(path)


def words_of(text):
    return COLOUR.sub("", text).split()


def test_lines_are_wrapped_at_words(_):
    """At each width the same words, none of them cut, and no line longer than the terminal but
    for a word that is."""
    for arguments in (("help",), ("help", "run"), ("help", "load"), ("info",), ("doctor",),
                      ("driver", "cuMemAlloc*"), ("info", "--driver", "no-driver-is-called-so"),
                      ("run", "--softgpu", "--fault", "cuMemAllocc:1:UNKNOWN:before", "true")):
        plain = run(*arguments)
        wanted = [word for word in (plain.stdout + plain.stderr).split()
                  if not re.fullmatch(r"[\d.]+", word)]  # of free memory, which changes
        for columns in (40, 60, 80, 100, 200):
            _, text = on_terminal(columns, *arguments)
            got = [word for word in words_of(text) if not re.fullmatch(r"[\d.]+", word)]
            expect(got == wanted, f"{arguments} at {columns}: other words\n{text}")
            for line in COLOUR.sub("", text).splitlines():
                no_place = line.rfind(" ") <= columns // 2  # to cut it: the word is that long
                expect(len(line) <= columns or no_place,
                       f"{arguments} at {columns}: {len(line)} columns: {line!r}")


def test_lines_are_not_wrapped_outside_a_terminal(_):
    lines = run("info").stdout.splitlines()
    expect(any(len(line) > 100 for line in lines), "no long line to show it by")


def test_what_vulkan_drivers_lack_is_shown_when_asked_for(_):
    """On this machine none has softgpu's device, whichever are installed."""
    if SANITIZE == "address":
        raise Skip("Vulkan's loader is not used with AddressSanitizer")
    for command, begin in (("info", "  vulkan "), ("doctor", "note  Vulkan ")):
        line, = [line for line in run(command).stdout.splitlines() if line.startswith(begin)]
        told, = [line for line in run(command, "--verbose").stdout.splitlines() if line.startswith(begin)]
        expect(len(line) <= 80 and line.endswith(": see --verbose"), line)
        expect(told.count(": ") >= 2 and "; " in told, told)
        expect("--verbose" not in run(command, GPUMEM_VULKAN="off").stdout, "one reason is shown as it is")


def test_reasons_are_below_what_is_supported(_):
    lines = run("info").stdout.splitlines()
    middle = lines.index("  why not:")
    expect([line[:5] for line in lines].count("  no ") == len(lines) - middle - 1, lines)
    missing = [line.split()[1] for line in lines[:middle] if line.startswith("  no ")]
    expect([line.split()[0] for line in lines[middle + 1:]] == missing, lines)
    paint = on_terminal(100, "info")[1]
    expect("\x1b[32m  yes\x1b[0m" in paint and "\x1b[33m  no " in paint, f"{paint!r}")


def test_the_progress_bar_shows_rate_and_remaining_time(folder):
    path = make_file(folder, 192 * MIB)
    status, text = on_terminal(100, "load", "--no-share", "--chunk", "64K", "--threads", "1", path)
    expect(status == 0, text)
    shown = COLOUR.sub("", text)
    expect(re.search(r"\rloading   \[#+-+\] +\d+ %  [\d.]+ MiB of 192.00 MiB  [\d.]+ [KMG]iB/s  "
                     r"\d+ s left", shown), f"{shown!r}")
    expect(re.search(r"\rloading   \[#+\] 100 %  192.00 MiB of 192.00 MiB  [\d.]+ [KMG]iB/s *\n",
                     shown), f"{shown!r}")
    for line in re.split(r"[\r\n]", shown):
        expect(len(line.rstrip()) < 100 or "[" not in line, f"{len(line)}: {line!r}")


def test_a_narrow_terminal_shows_figures_without_a_bar(folder):
    path = make_file(folder, 64 * MIB)
    for columns in (20, 30, 50):
        status, text = on_terminal(columns, "load", "--no-share", "--chunk", "64K", path)
        expect(status == 0, text)
        progress = [line for line in re.split(r"[\r\n]", COLOUR.sub("", text))
                    if line.startswith(("loading ", "checking ", "comparing "))]
        expect(progress and all(len(line.rstrip()) < columns for line in progress), f"{progress}")


def test_a_pipe_gets_plain_lines(folder):
    process = run("load", "--no-share", make_file(folder, 8 * MIB))
    expect_status(process, 0)
    text = process.stdout + process.stderr
    expect("\r" not in text and "\x1b" not in text and "#" not in text, f"{text!r}")
    expect(re.search(r"^loading +100 %  8.00 MiB of 8.00 MiB  [\d.]+ [KMG]iB/s$", process.stderr,
                     re.M), process.stderr)


def test_a_dumb_terminal_gets_no_rewritten_lines(folder):
    _, text = on_terminal(100, "load", "--no-share", make_file(folder, 8 * MIB), TERM="dumb")
    expect("\r" not in text and "\x1b" not in text, f"{text!r}")


def test_colours_are_used_only_on_terminals_that_allow_them(_):
    arguments = ("doctor",)
    expect(COLOUR.search(on_terminal(100, *arguments)[1]), "none on a terminal")
    expect(COLOUR.search(on_terminal(100, *arguments, NO_COLOR="")[1]), "NO_COLOR is empty")
    for more in ({"NO_COLOR": "1"}, {"NO_COLOR": "0"}, {"TERM": "dumb"}, {"TERM": ""}):
        text = on_terminal(100, *arguments, **more)[1]
        expect(not COLOUR.search(text), f"{more}: {text!r}")
    expect(not COLOUR.search(run(*arguments).stdout), "in a pipe")


def test_counts_of_one_use_the_singular(folder):
    (folder / "f").write_bytes(b"x")
    process = run("load", "--threads", "1", str(folder / "f"))
    expect_status(process, 0)
    for text in ("loaded    1 byte in", "1 chunk of ", " by 1 reader, 1 mapping, ",
                 "imported 1 descriptor without"):
        expect(text in process.stdout, f"no {text!r} in\n{process.stdout}")
    process = run("load", "--chunk", "64K", "--threads", "2", make_file(folder, MIB))
    expect(" bytes in " in process.stdout and " 16 chunks of 64.00 KiB by 2 readers" in
           process.stdout, process.stdout)
    expect(", 1 device\n" in run("info").stdout, "1 device")
    expect(", 2 devices\n" in run("info", SOFTGPU_DEVICES="2").stdout, "2 devices")
    expect("(s)" not in run("doctor").stdout, "(s)")


def test_all_units_are_binary(folder):
    process = run("load", make_file(folder, 3 * MIB))
    text = process.stdout + process.stderr
    expect(not re.search(r"\b[KMG]B(/s)?\b", text), text)
    expect(re.search(r"[KMG]iB/s", process.stdout), text)


def test_doctor_ends_with_a_verdict_and_names_softgpu(_):
    process = run("doctor")
    last = process.stdout.splitlines()[-1]
    expect(re.match(r"(ok|bad) +verdict +gpumem works here", last), last)
    expect(process.returncode == (0 if last.startswith("ok") else 1), process.stdout)
    expect(re.search(r"^ok +softgpu .*libsoftgpu.so.0$", process.stdout, re.M), process.stdout)
    expect("gpumem run --softgpu -- PROGRAM" in process.stdout, process.stdout)
    process = run("doctor", "--driver", "/nowhere/libcuda.so")
    expect_status(process, 3)
    last = process.stdout.splitlines()[-1]
    expect(last.startswith("bad ") and "GPUMEM_DRIVER=softgpu" in last, last)


def test_driver_filters_functions_by_name(_):
    def symbols(*arguments):
        process = run("driver", *arguments)
        expect_status(process, 0)
        return [line.split()[0] for line in process.stdout.splitlines()[:-1]]
    expect(symbols("cuMemAlloc") == ["cuMemAlloc", "cuMemAlloc_v2"], str(symbols("cuMemAlloc")))
    expect(symbols("cuMemAlloc_v2") == ["cuMemAlloc_v2"], "the exported name")
    expect(symbols("CUMEMALLOC_V2", "cuInit") == ["cuInit", "cuMemAlloc_v2"], "several, any case")
    pools = symbols("cuMemPool*")
    expect(len(pools) > 5 and all(name.startswith("cuMemPool") for name in pools), str(pools))
    process = run("driver", "cuInit", "cuMemAllocc")
    expect_status(process, 2)
    expect("there is no function 'cuMemAllocc'" in process.stderr and not process.stdout,
           process.stderr)


def test_option_errors_name_the_program(folder):
    for command in ("info", "doctor", "driver", "load", "run"):
        for words, text in ((["--nonsense"], "unknown option '--nonsense'"),
                            (["-x"], "unknown option '-x'"), (["-xy"], "unknown option '-x'"),
                            (["--driver"], "option '--driver' needs a value")):
            process = run(command, *words)
            expect_status(process, 2)
            expect(process.stderr.startswith(f"gpumem: {command}: {text}"), f"{process.stderr!r}")
            expect(process.stderr.count("\n") == 1, process.stderr)
    process = run("info", "--json=1")
    expect("gpumem: info: option '--json' takes no value\n" in process.stderr, process.stderr)
    process = run("load", "--d", "0", str(folder))
    expect("gpumem: load: option '--d' is ambiguous" in process.stderr, process.stderr)


def test_errors_name_the_driver_result(folder):
    for arguments, fault in ((("load",), "cuMemCreate:*:CUDA_ERROR_NOT_PERMITTED:before"),
                             (("info",), "cuInit:1:CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:before"),
                             (("doctor",), "cuInit:*:CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:before")):
        path = [make_file(folder, MIB)] if arguments == ("load",) else []
        process = run(*arguments, *path, SOFTGPU_FAULT=fault)
        expect(process.returncode != 0, f"{arguments} succeeds")
        expect(fault.split(":")[2] in process.stdout + process.stderr,
               f"{arguments}: {process.stdout}{process.stderr}")


def test_help_fits_into_80_columns(folder):
    listed = harness.run("help").stdout
    commands = re.findall(r"^  ([a-z][a-z-]*)  +\S", listed, re.M)
    expect(len(commands) >= 8, listed)
    wide = [line for command in ("", *commands) for line in harness.run("help", *command.split()).stdout.splitlines() if len(line) > 80]
    expect(not wide, "\n".join(wide))


harness.main(globals())
