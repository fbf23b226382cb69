#!/usr/bin/env python3
"""--json: valid JSON whatever a file is called, and an object that says what failed."""
import json
import os
import subprocess

import harness
from harness import expect, expect_status

# Each is the whole name of a file: no UTF-8, cut short, overlong, surrogates, out of range, controls.
NAMES = [b"\xff\xfe", b"caf\xe9", b"\xc3", b"\xe2\x82", b"\xf0\x9f\x98", b"\xc0\xaf", b"\xe0\x80\x80",
         b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xf8\x88\x80\x80\x80", b"\x80", b"a\xffb\x80c",
         b"\x01\x1b[31m\x7f\n\r\t", b'"quoted"\\', b"\xc2\x9b31m", "grün 文 😀".encode(), b"plain"]


def run(*arguments, **more):
    """As bytes: names need not be text."""
    return subprocess.run([harness.COMMAND, *arguments], env=harness.environment(**more),
                          timeout=50, stdin=subprocess.DEVNULL, capture_output=True, check=False)


def strict(output):
    """What every JSON reader takes: UTF-8, no surrogate alone, one value."""
    text = output.decode("utf-8")
    value = json.loads(text)
    json.dumps(value, ensure_ascii=False).encode("utf-8")
    return value


def make(folder, name):
    path = os.path.join(os.fsencode(folder), name)
    with open(path, "wb") as file:
        file.write(b"0123456789" * 1000)
    return path


def test_any_file_name_produces_valid_json(folder):
    for name in NAMES:
        path = make(folder, name)
        process = run("load", "--json", "--no-share", path)
        expect(process.returncode == 0, f"{name!r}: {process.stderr!r}")
        report = strict(process.stdout)
        try:
            expect(report["file"] == path.decode("utf-8"), f"{name!r}: {report['file']!r}")
            expect(report["file_bytes"] is None, f"{name!r}: {report['file_bytes']!r}")
        except UnicodeDecodeError:
            expect(bytes.fromhex(report["file_bytes"]) == path, f"{name!r}: {report!r}")
            expect("\ufffd" in report["file"], f"{name!r}: {report['file']!r}")


def test_json_output_contains_no_control_characters(folder):
    """It may be shown on a terminal as it is; \\n separates members."""
    process = run("load", "--json", "--no-share", make(folder, b"\x1b[2J\x7f\xc2\x9b1m"))
    text = process.stdout.decode("utf-8")
    raw = [c for c in text if c != "\n" and (ord(c) < 32 or 0x7f <= ord(c) < 0xa0)]
    expect(not raw, f"{raw!r} in {text!r}")


def failure(status, *arguments, **more):
    process = run(*arguments, **more)
    expect(process.returncode == status, f"{arguments}: status {process.returncode}")
    report = strict(process.stdout)
    expect(report["code"] == status, f"{arguments}: {report}")
    expect(isinstance(report["error"], str) and report["error"], f"{arguments}: {report}")
    expect(report["error"].encode() in process.stderr or b"\\x" in process.stderr,
           f"{arguments}: {report} is not what is said: {process.stderr!r}")
    return report


def test_a_failure_is_reported_as_an_object_with_its_error_code(folder):
    path = make(folder, b"f")
    report = failure(4, "load", "--json", str(folder / "absent"))
    expect(report["status"] == "GPUMEM_ERROR_SYSTEM" and report["system_code"] == 2, str(report))
    expect(report["call"] == "open", str(report))
    expect(failure(3, "load", "--json", "--driver", "/nowhere/libcuda.so", path)["status"] ==
           "GPUMEM_ERROR_NO_DRIVER", "status")
    report = failure(6, "load", "--json", path, SOFTGPU_MEMORY="64M",
                     SOFTGPU_FAULT="cuMemCreate:*:CUDA_ERROR_OUT_OF_MEMORY:before")
    expect(report["driver_code"] == 2 and "CUDA_ERROR_OUT_OF_MEMORY" in report["error"], str(report))
    failure(8, "load", "--json", "--receiver", str(folder / "absent"), path)
    failure(2, "load", "--json", "--threads", "99", path)
    failure(2, "load", "--threads", "99", "--json", path)
    failure(2, "load", "--json")
    failure(2, "load", "--json", "--nonsense", path)


def test_every_json_command_reports_why_it_failed(folder):
    failure(3, "info", "--json", "--device", "5")
    failure(3, "info", "--json", "--driver", "/nowhere/libcuda.so")
    failure(2, "info", "--json", "--nonsense")
    failure(3, "driver", "--json", "--driver", "/nowhere/libcuda.so")
    failure(2, "driver", "--json", "--status", "perhaps")
    failure(2, "doctor", "--json", "--nonsense")


def test_a_late_failure_produces_no_partial_array(_):
    """The second device fails after the first was described."""
    report = failure(1, "info", "--json", SOFTGPU_DEVICES="2",
                     SOFTGPU_FAULT="cuDevicePrimaryCtxRetain:2:CUDA_ERROR_UNKNOWN:before")
    expect("CUDA_ERROR_UNKNOWN" in report["error"], str(report))


def test_doctor_reports_findings_without_an_error_object(_):
    process = run("doctor", "--json", "--driver", "/nowhere/libcuda.so")
    expect(process.returncode == 3, f"status {process.returncode}")
    findings = strict(process.stdout)
    expect(any(finding["verdict"] == "bad" for finding in findings), str(findings))


harness.main(globals())
