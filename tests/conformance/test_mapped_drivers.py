#!/usr/bin/env python3
"""Mapped memory and vkgdr on each Vulkan driver that needs no GPU: the conformance programs run on softgpu
with the test driver, with lavapipe, with none, and with dma-bufs; and the methods that must work there do."""
import os
import re
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("GPUMEM_BUILD_DIR", SOURCE / "build")).resolve()
sys.path.insert(0, str(SOURCE / "tests/clients"))
sys.path.insert(0, str(SOURCE / "tests/harness"))
import c_test  # noqa: E402
import lavapipe  # noqa: E402
from tap_report import Report  # noqa: E402

TEST_DRIVER = str(BUILD / "tests/vulkan_icd/libvulkan_icd.so")
MAPPED, VKGDR = "test_library_mapped", "test_vkgdr"
METHODS = {"coherent", "vulkan-import", "dma-buf", "vulkan-export", "descriptor", "host"}
WITH_ICD = {"vulkan-import", "vulkan-export", "descriptor", "host"}


def run(program, variables):
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith(("SOFTGPU_", "VULKAN_ICD_", "GPUMEM_VULKAN"))}
    environment.update(GPUMEM_DRIVER="softgpu", VULKAN_ICD_VIOLATION="abort", **variables)
    done = subprocess.run(c_test.command(BUILD, f"conformance/{program}"), env=environment, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    return done.returncode, done.stdout


def methods_that_work(output):
    return {name for name, why in re.findall(r"^# ([\w-]+): (.*)$", output, re.M)
            if name in METHODS and why == "works"}


def chosen(output):
    return re.findall(r"^# chosen: ([\w-]+), coherent (\d), atom (\d+)", output, re.M)


def check_mapped(variables, methods, best, atom=1):
    """None, or what is wrong: `methods` work and no others, `best` is chosen, and coherent for atoms of 1."""
    status, output = run(MAPPED, variables)
    if status != 0:
        return f"it exits with {status}:\n{output[-3000:]}"
    found = methods_that_work(output)
    if found != methods:
        return f"{sorted(found)} work, not {sorted(methods)}:\n{output[-3000:]}"
    if re.search(r"^skip:", output, re.M):
        return f"a test was skipped:\n{output[-3000:]}"
    told = chosen(output)
    if told != [(best, str(int(atom == 1)), str(atom))]:
        return f"chosen is {told}, not {best} with atoms of {atom}"
    return None


def check_vkgdr(variables):
    status, output = run(VKGDR, variables)
    skipped = re.search(r"^skip:", output, re.M)
    return f"it exits with {status}:\n{output[-3000:]}" if status != 0 or skipped else None


def cases():
    icd = {"GPUMEM_VULKAN": TEST_DRIVER}
    incoherent = dict(icd, VULKAN_ICD_COHERENT="no")
    yield "mapped memory works on the test driver", lambda: check_mapped(icd, WITH_ICD, "vulkan-import")
    for atom in 4, 64, 256:
        yield (f"memory that needs flushes in atoms of {atom}", lambda a=atom: check_mapped(
            dict(incoherent, VULKAN_ICD_ATOM=str(a)), WITH_ICD, "vulkan-import", a))
    yield ("a driver without placed maps falls back to export", lambda: check_mapped(
        dict(icd, VULKAN_ICD_PLACED="no"), WITH_ICD - {"vulkan-import"}, "vulkan-export"))
    yield ("a driver that does not reserve ranges falls back to export", lambda: check_mapped(
        dict(icd, VULKAN_ICD_PLACED="unreserved"), WITH_ICD - {"vulkan-import"}, "vulkan-export"))
    yield ("a driver without shared memory types falls back to a descriptor", lambda: check_mapped(
        dict(icd, VULKAN_ICD_COHERENT="none"), {"descriptor", "host"}, "descriptor"))
    yield ("a driver of other devices is not used", lambda: check_mapped(
        dict(icd, VULKAN_ICD_UUID="ff" * 16), {"descriptor", "host"}, "descriptor"))
    yield ("no Vulkan", lambda: check_mapped(
        {"GPUMEM_VULKAN": "off"}, {"descriptor", "host"}, "descriptor"))
    yield ("a file that is not a driver is not used", lambda: check_mapped(
        {"GPUMEM_VULKAN": "/dev/null"}, {"descriptor", "host"}, "descriptor"))
    yield ("dma-bufs", lambda: check_mapped(
        dict(icd, SOFTGPU_PROFILE="dmabuf"), WITH_ICD | {"dma-buf"}, "vulkan-import"))
    yield ("dma-bufs without Vulkan", lambda: check_mapped(
        {"GPUMEM_VULKAN": "off", "SOFTGPU_PROFILE": "dmabuf"}, {"dma-buf", "descriptor", "host"}, "dma-buf"))
    yield "vkgdr works on the test driver", lambda: check_vkgdr(icd)


def lavapipe_cases():
    """lavapipe imports no memory of others and so has vkgdr's way only."""
    uuid = {"SOFTGPU_UUID": lavapipe.device_uuid()}
    yield ("mapped memory works on lavapipe", lambda: check_mapped(
        uuid, {"vulkan-export", "descriptor", "host"}, "vulkan-export"))
    yield "vkgdr works on lavapipe", lambda: check_vkgdr(dict(uuid, GPUMEM_VULKAN=loader()))


def loader():
    """Where the loader is that lavapipe.py has opened."""
    with open("/proc/self/maps", encoding="ascii", errors="replace") as maps:
        return next(line.split(maxsplit=5)[5].strip() for line in maps if "libvulkan.so" in line)


# ThreadSanitizer looks at what threads share, which is the same on each: with it the others are for long runs.
ONE_DRIVER = os.environ.get("GPUMEM_SANITIZE") == "thread" and os.environ.get("GPUMEM_TEST_LONG") != "1"


def main():
    report = Report()
    for title, check in [next(cases())] if ONE_DRIVER else cases():
        report.run(title, check)
    if ONE_DRIVER:
        return report.end()
    try:
        for title, check in lavapipe_cases():
            report.run(title, check)
    except lavapipe.Unavailable as why:
        report.skip("lavapipe", f"no software Vulkan: {why}")
    return report.end()


if __name__ == "__main__":
    sys.exit(main())
