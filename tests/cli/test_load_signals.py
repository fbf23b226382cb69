#!/usr/bin/env python3
"""gpumem load and signals: passed on to the second process, and nothing lost on the way."""
import os
import pty
import re
import signal
import subprocess
import time

import harness
from harness import expect, expect_status

MIB = 1 << 20


def make_file(folder, size):
    path = folder / "f"
    path.write_bytes(os.urandom(MIB) * (size // MIB))
    return str(path)


def make_receiver(folder, text):
    path = folder / "receiver"
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)
    return str(path)


def start(*arguments, **more):
    return subprocess.Popen([harness.COMMAND, "load", *arguments], env=harness.environment(),
                            stdin=subprocess.DEVNULL, text=True,
                            **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more})


def finish(process):
    out, err = process.communicate(timeout=50)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def wait_for(condition, what):
    end = time.monotonic() + 20
    while not condition():
        expect(time.monotonic() < end, f"{what} does not come")
        time.sleep(0.005)


def is_gone(pid):
    """Ended, whether or not its new parent has taken note."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rsplit(")", 1)[1].split()[0] in "ZX"
    except FileNotFoundError:
        return True


def interrupted_while_it_hangs(folder, before_sleep, signals):
    """The receiver neither answers nor ends, and its own child holds the socket open too."""
    marker = folder / "pid"
    receiver = make_receiver(
        folder, f'{before_sleep}sleep 100 &\necho $! > "{marker}.new"\n'
                f'mv "{marker}.new" "{marker}"\nwait\nwait\n')
    process = start("--receiver", receiver, make_file(folder, MIB))
    wait_for(marker.exists, "the second process")
    sleeper = int(marker.read_text())
    begin = time.monotonic()
    for number in signals:
        process.send_signal(number)
        time.sleep(0.2)
    process = finish(process)
    expect_status(process, 130)
    expect(time.monotonic() - begin < 15, "it waited for the second process's time to run out")
    wait_for(lambda: is_gone(sleeper), "the end of what the second process started")


def test_an_interrupt_terminates_a_hanging_receiver(folder):
    interrupted_while_it_hangs(folder, "", [signal.SIGTERM])


def test_a_second_interrupt_ends_a_receiver_that_ignores_the_first(folder):
    interrupted_while_it_hangs(folder, "trap '' TERM\n", [signal.SIGINT, signal.SIGINT])


def test_the_result_of_the_receiver_is_seen_with_sigchld_ignored(folder):
    receiver = make_receiver(
        folder, f'exec "{harness.COMMAND}" receive --socket 3 --expect 0123456789abcdef\n')
    process = finish(start("--receiver", receiver, make_file(folder, MIB),
                           preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN)))
    expect_status(process, 7)


def ignored_while_it_hangs(folder, number):
    """An interrupt that whoever started this has ignored ends nothing: nohup, or cmd & in a script."""
    marker, gate = folder / "pid", folder / "gate"
    os.mkfifo(gate)
    receiver = make_receiver(
        folder, f'echo $$ > "{marker}.new"\nmv "{marker}.new" "{marker}"\nread line < "{gate}"\n'
                f'exec "{harness.COMMAND}" "$@"\n')
    process = start("--receiver", receiver, make_file(folder, MIB),
                    preexec_fn=lambda: signal.signal(number, signal.SIG_IGN))
    wait_for(marker.exists, "the second process")
    process.send_signal(number)
    with open(f"/proc/{process.pid}/status", encoding="ascii") as file:
        ignored = int(re.search(r"SigIgn:\s+(\w+)", file.read())[1], 16)
    gate.write_text("go\n")
    expect_status(finish(process), 0)
    expect(ignored >> (number - 1) & 1, f"signal {number} is not ignored any more")


def test_an_inherited_ignored_sigint_stays_ignored(folder):
    ignored_while_it_hangs(folder, signal.SIGINT)


def test_an_inherited_ignored_sigterm_stays_ignored(folder):
    ignored_while_it_hangs(folder, signal.SIGTERM)


def test_a_receiver_is_terminated_with_sigterm_ignored_by_the_parent(folder):
    """It is told by SIGTERM to end, whatever disposition it would have inherited."""
    marker = folder / "pid"
    receiver = make_receiver(
        folder, f'echo $$ > "{marker}.new"\nmv "{marker}.new" "{marker}"\nexec sleep 100\n')
    process = start("--receiver", receiver, make_file(folder, MIB),
                    preexec_fn=lambda: signal.signal(signal.SIGTERM, signal.SIG_IGN))
    wait_for(marker.exists, "the second process")
    process.send_signal(signal.SIGINT)
    begin = time.monotonic()
    expect_status(finish(process), 130)
    expect(time.monotonic() - begin < 15, "the second process did not hear")


def test_an_error_message_begins_a_new_line_on_a_terminal(folder):
    """The progress line is rewritten in place; what is said after it does not hang on its end."""
    path = make_file(folder, 512 * MIB)
    try:
        ours, theirs = pty.openpty()
    except OSError as error:
        raise harness.Skip(f"no pseudo-terminal here: {error}") from error
    process = start("--chunk", "64K", "--threads", "1", path, stdout=subprocess.DEVNULL,
                    stderr=theirs)
    os.close(theirs)
    text = b""
    try:
        while piece := os.read(ours, 4096):
            text += piece
            if b"loading" in text and b"gpumem:" not in text:
                process.send_signal(signal.SIGINT)
    except OSError:  # the other end is closed
        pass
    os.close(ours)
    expect(process.wait(timeout=50) == 130, f"exit status {process.returncode}: {text!r}")
    expect(re.search(rb"(^|\n)(\x1b\[\d+m)?gpumem:", text), f"{text!r}")


harness.main(globals())
