#!/usr/bin/env python3
"""gpumem doctor FILE says which runtime programs, libraries and wheels use, and on which profiles their kernels run.
Files are made here, byte by byte; where nvcc is, also by nvcc."""
import json
import os
import shutil
import struct
import subprocess
import zipfile

import harness
from harness import Skip, expect, expect_status, run

FIXTURES = harness.SOURCE / "tests/fixtures/images"
STATIC = b"\0cuGetExportTable\0cudaErrorInitializationError\0"
ALL = "a100, dmabuf, h100, h200, mig, rtx5090, tiny, wsl"
NEWER = ALL.replace("a100, ", "")


def fatbin(*entries):
    """Of (kind, architecture, suffix, PTX version): headers are all that is looked at, and a function's section."""
    body = b""
    for kind, architecture, suffix, version in entries:
        flags = {"": 1, "a": 0x100001, "f": 0x200001}[suffix]
        payload = b"\0.text.k\0".ljust(16, b"\0")
        body += struct.pack("<HHIQIIHHIIIIIQQ", kind, 0x101, 64, len(payload), 0, 0, version % 10, version // 10,
                            architecture, 0, 0, flags, 0, 0, 0)[:64].ljust(64, b"\0") + payload
    return struct.pack("<IHHQ", 0xba55ed50, 1, 16, len(body)) + body


def ptx(architecture, suffix="", version=80):
    return (1, architecture, suffix, version)


def sm(architecture, suffix=""):
    return (2, architecture, suffix, 0)


def elf(sections=(), needed=(), soname=None):
    """With section headers and a dynamic section, and nothing to run."""
    strings, dynamic = b"\0", b""
    for tag, name in [(1, name) for name in needed] + ([(14, soname)] if soname else []):
        dynamic += struct.pack("<QQ", tag, len(strings))
        strings += name.encode() + b"\0"
    sections = [("", 0, b"", 0), (".dynstr", 3, strings, 0), (".dynamic", 6, dynamic + bytes(16), 1),
                *((name, 1, data, 0) for name, data in sections)]
    names = b""
    places = []
    for name in [name for name, *_ in sections] + [".shstrtab"]:
        places.append(len(names))
        names += name.encode() + b"\0"
    sections.append((".shstrtab", 3, names, 0))
    body, headers = b"", b""
    for (_, kind, data, link), place in zip(sections, places):
        headers += struct.pack("<IIQQQQIIQQ", place, kind, 0, 0, 64 + len(body), len(data), link, 0, 8, 0)
        body += data + bytes(-len(data) % 8)
    head = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1", 3, 62, 1, 0, 0, 64 + len(body), 0, 64, 0, 0, 64,
                       len(sections), len(sections) - 1)
    return head + body + headers


def with_code(*binaries, **more):
    return elf([(".nv_fatbin", b"".join(binaries))], **more)


def described(path, status=0):
    process = run("doctor", "--json", path)
    expect_status(process, status)
    return json.loads(process.stdout)


def expect_found(path, data, status, *texts):
    path.write_bytes(data)
    process = run("doctor", path)
    expect_status(process, status)
    for text in texts:
        expect(text in process.stdout, f"no '{text}' in\n{process.stdout}{process.stderr}")


def test_the_runtime_is_found_as_a_library_inside_or_by_its_text(folder):
    for data, status, text in (
            (elf(needed=["libcudart.so.12"]), 0, "libcudart.so.12, as a library: gpumem run puts its own there"),
            (elf(needed=["libcudart-8774224f.so.12"]), 0, "libcudart-8774224f.so.12, as a library"),
            (elf(needed=["libcudart.so.11.0"]), 1, "gpumem has those of CUDA 12 and 13"),
            (elf(needed=["libcudartful.so.12"]), 0, "device code       none"),
            (elf([(".rodata", STATIC)]), 1, "link with nvcc --cudart=shared"),
            (elf([(".rodata", bytes(65519) + STATIC)]), 1, "NVIDIA's is inside"),  # over a window's border
            (elf([(".rodata", STATIC), (".nv_fatbin", fatbin(ptx(80)))]), 1, f"note  softgpu           has profiles for its PTX, with another runtime: {ALL}"),
            (elf([(".rodata", b"\0cuGetExportTable\0")]), 0, "device code       none"),
            (elf([(".rodata", b"\0libcudart.so.12\0")]), 0, "may open it"),
            (elf([(".rodata", STATIC)], soname="libcudart.so.13"), 0, "it is one, libcudart.so.13"),
            (elf(needed=["libcublas.so.12", "libcudnn.so.9"]), 0, "libcublas.so.12, libcudnn.so.9: NVIDIA's"),
            (with_code(fatbin(ptx(80))), 0, "none: its code is for who loads it")):
        expect_found(folder / "file", data, status, text)


def test_architectures_and_versions_decide_which_profiles_run_it(folder):
    for binaries, status, texts in (
            ([fatbin(sm(80), ptx(80))], 0, ["machine code      sm_80", "compute_80 (PTX 8.0)", f"profile {ALL}"]),
            ([fatbin(ptx(90, version=87))], 0, ["compute_90 (PTX 8.7)", f"profile {NEWER}",
                                                "a100 (8.0): compute_90 runs on 9.0 and later"]),
            ([fatbin(ptx(90, "a"))], 0, ["profile dmabuf, h100, h200, mig, tiny, wsl",
                                         "rtx5090 (12.0): compute_90a runs on 9.0 alone"]),
            ([fatbin(ptx(120, "f"))], 0, ["profile rtx5090", "h200 (9.0): compute_120f runs on 12.0 and later of its"]),
            ([fatbin(ptx(121))], 1, ["has no profile for its PTX", "rtx5090 (12.0): compute_121 runs on 12.1"]),
            ([fatbin(ptx(80, version=99))], 1, ["h200 (9.0): PTX 9.9 is newer than 9.5"]),
            ([fatbin(sm(90, "a"), sm(100, "f"))], 1, ["sm_90a, sm_100f", "here is machine code alone"]),
            ([fatbin(sm(90), ptx(80)), bytes(40), fatbin(sm(90)), fatbin(ptx(90))], 0,
             ["runs 1 of 3 fat binaries with profile a100;", f"runs 2 of 3 fat binaries with profile {NEWER};"])):
        expect_found(folder / "file", with_code(*binaries), status, *texts)


def test_relocatable_code_counts_by_its_parts(folder):
    linked, parts = fatbin(sm(90)), fatbin(sm(90), ptx(90)) + fatbin(sm(90), ptx(80))
    expect_found(folder / "file", elf([(".nv_fatbin", linked), ("__nv_relfatbin", parts)]), 0, "relocatable",
                 "runs 1 of 2 fat binaries with profile a100", "profile dmabuf, h100")


def test_images_that_tools_made_are_read(folder):
    for name, status, text in (("small.fatbin", 0, "compute_75 (PTX 9.0)"), ("small-100.fatbin", 1, "sm_100"),
                               ("small.cubin", 1, "sm_90"), ("small-80.cubin", 1, "sm_80")):
        expect_found(folder / name, (FIXTURES / name).read_bytes(), status, text)


def test_members_of_a_wheel_are_described_by_their_path(folder):
    for method in zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED:
        path = folder / "made.whl"
        with zipfile.ZipFile(path, "w", method) as wheel:
            wheel.writestr("made/__init__.py", "print('a text, longer than a header of an ELF file is, all in all')\n")
            wheel.writestr("made/plain.so", elf())
            wheel.writestr("made/one.so", with_code(fatbin(ptx(80)), needed=["libcudart.so.13"]))
            wheel.writestr("made/libs/two", elf([(".rodata", STATIC)]))
            wheel.comment = b"PK\5\6 is not the end"
        one, two = described(path, 1)
        expect(one["member"] == "made/one.so" and one["runtime"] == "shared" and one["fat_binaries"] == 1, one)
        expect(one["ptx"] == [{"target": "compute_80", "version": "8.0", "images": 1}], one)
        expect({"name": "h200", "capability": 90, "runs": 1} in one["profiles"], one)
        expect(two["member"] == "made/libs/two" and two["runtime"] == "static", two)
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("pure.py", "")
    expect(described(path)[0]["findings"] == [{"verdict": "ok", "topic": "device code", "text": "none"}], "pure")


def wheel_of(path, change=lambda data: data, name="made/one.so", method=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", method) as wheel:
        wheel.writestr(name, with_code(fatbin(ptx(80))))
    path.write_bytes(change(path.read_bytes()))


def test_a_wheel_that_cannot_be_read_says_why(folder):
    def patched(offset, value, mark=b"PK\1\2"):
        def change(data):
            at = data.rindex(mark) + offset
            return data[:at] + value + data[at + len(value):]
        return change

    for change, text in ((patched(8, b"\1\0"), "made/one.so in it is encrypted"),
                         (patched(10, b"\x5d\0"), "compressed by method 93"),
                         (patched(16, b"\1\2\3\4"), "made/one.so in it is damaged"),
                         (patched(24, b"\xf0\xff\xff\xff"), "too many to be unpacked"),
                         (patched(42, b"\7\0\0\0"), "is not where the archive says"),
                         (patched(20, b"\xf0\xff\xff\x7f"), "is not where the archive says"),
                         (patched(0, b"xx"), "directory is damaged"),
                         (patched(10, b"\xff\xff", b"PK\5\6"), "without its directory"),
                         (lambda data: data[:-30], "without its directory")):
        path = folder / "made.whl"
        wheel_of(path, change)
        process = run("doctor", path)
        expect_status(process, 4)
        expect(text in process.stderr, f"{text}: {process.stderr}")


def test_what_is_no_program_is_refused_by_name_and_others_are_still_described(folder):
    (folder / "text").write_text("text")
    (folder / "empty").write_bytes(b"")
    (folder / "good").write_bytes(elf())
    (folder / "32").write_bytes(b"\x7fELF\1\1\1".ljust(64, b"\0"))
    (folder / "stripped").write_bytes(elf()[:40] + bytes(8) + elf()[48:60] + bytes(4) + elf()[64:])
    os.mkfifo(folder / "pipe")
    names = [folder / name for name in ("text", "empty", "pipe", "32", "stripped", "missing", "", "good")]
    process = run("doctor", *names)
    expect_status(process, 4)
    for text in ("text is neither", "empty is neither", "pipe is no regular file", "32 is an ELF file, but not of 64 bits",
                 "stripped has no section headers", "missing cannot be opened: No such file"):
        expect(text in process.stderr, f"{text}: {process.stderr}")
    expect(process.stdout == f"{folder}/good\nok    device code       none\n", process.stdout)
    expect([one.get("error", "") for one in described(folder / "text", 4)] ==
           ["is neither a program or library (ELF), nor a wheel, nor a fat binary"], "JSON")
    expect_status(run("doctor", "--driver", "softgpu", folder / "good"), 2)


def test_damage_anywhere_is_an_error_or_a_finding_and_never_a_crash(folder):
    """Cut off after each byte, and each byte of the heads changed: thousands of files, a few processes."""
    wheel_of(folder / "whole.whl")
    wheel = (folder / "whole.whl").read_bytes()
    program = elf([(".rodata", STATIC), (".nv_fatbin", fatbin(sm(80), ptx(80)) + fatbin(ptx(90)))], ["libcudart.so.12"])
    (folder / "whole.whl").unlink()
    made = []
    for kind, data in (("elf", program), ("zip", wheel), ("fat", fatbin(sm(80), ptx(80)))):
        for at in range(len(data)):
            for name, changed in ((f"{kind}-cut-{at}", data[:at]),
                                  (f"{kind}-max-{at}", data[:at] + b"\xff" * min(8, len(data) - at) + data[at + 8:])):
                path = folder / name
                path.write_bytes(changed)
                made.append(path)
    for first in range(0, len(made), 400):
        process = run("doctor", *made[first:first + 400])
        expect(process.returncode in (1, 4), f"{process.returncode} {process.stderr[-2000:]}")
        if "Sanitizer" in process.stderr or "runtime error" in process.stderr:
            raise harness.Failure(process.stderr[-4000:])
    for path in made:
        path.unlink()


def test_sizes_that_a_file_only_claims_cost_nothing(folder):
    data = bytearray(with_code(fatbin(ptx(80))))
    sections = struct.unpack_from("<Q", data, 40)[0]
    for kind in range(3, 5):  # both are the whole of a file of a terabyte, nearly all of which is a hole
        struct.pack_into("<QQ", data, sections + 64 * 3 + 24, 64, (1 << 40) - 64)
    path = folder / "huge"
    path.write_bytes(data)
    try:
        os.truncate(path, 1 << 40)
    except OSError as error:
        raise Skip(f"no file of a terabyte: {error}") from error
    process = run("doctor", path, timeout=20)
    path.unlink()
    expect_status(process, 1)
    expect("damaged" in process.stdout, process.stdout)


def test_programs_of_nvcc_are_described(folder):
    nvcc = shutil.which("nvcc")
    if not nvcc:
        raise Skip("nvcc is not installed")
    (folder / "program.cu").write_text("__global__ void k(int *p) { *p = 7; }\n"
                                       "int main() { k<<<1, 1>>>(nullptr); return cudaDeviceSynchronize() != 0; }\n")
    for options, status, runtime, relocatable in ((["--cudart=shared"], 0, "shared", False),
                                                  (["--cudart=static"], 1, "static", False),
                                                  (["--cudart=shared", "-rdc=true"], 0, "shared", True)):
        subprocess.run([nvcc, "-arch=sm_90", *options, "-o", folder / "program", folder / "program.cu"], check=True,
                       env={name: value for name, value in os.environ.items() if not name.startswith("NVCC_")})
        found, = described(folder / "program", status)
        expect(found["runtime"] == runtime and found["relocatable"] == relocatable, found)
        expect([(one["name"], one["runs"]) for one in found["profiles"] if one["name"] in ("a100", "h200")] ==
               [("a100", 0), ("h200", found["fat_binaries"])], found)
        expect(found["machine_code"][0]["target"] == "sm_90" and found["ptx"][0]["target"] == "compute_90", found)
    for path in ("program", "program.cu"):
        (folder / path).unlink()


if __name__ == "__main__":
    harness.main(globals())
