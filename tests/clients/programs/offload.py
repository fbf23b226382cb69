"""What GCC compiles for a device, OpenMP and OpenACC, in C and Fortran: the same lines as when it runs on the host.

CLIENT_ROOT has the other half of Debian's gcc."""
import functools
import os
import sys
import tempfile
from pathlib import Path

from tap import expect, expect_equal, main

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import debian  # noqa: E402  pylint: disable=wrong-import-position

ROOT = Path(os.environ["CLIENT_ROOT"])
VERSION = debian.gcc_version()
LIBRARIES = debian.libraries(ROOT)
PARTS = next(path.parents[1] for path in ROOT.glob("usr/lib/gcc/*/*/accel/nvptx-none"))


def compiled(source, kind, folder):
    """The assembler of these tools runs a ptxas that it finds, which need not know their old targets."""
    beside = f"/usr/lib/gcc/{PARTS.parent.name}/{VERSION}"
    compiler = f"/usr/bin/gcc-{VERSION}" if source.suffix == ".c" else ROOT / "usr" / "bin" / f"gfortran-{VERSION}"
    program = Path(folder) / source.stem
    debian.output(compiler, "-O2", "-w", f"-f{kind}", "-foffload=nvptx-none", source, "-o", program, environment={
        "PATH": f"{ROOT}/usr/bin:/usr/bin:/bin", "COMPILER_PATH": f"{PARTS}:{ROOT}/usr/bin:{beside}",
        "LIBRARY_PATH": f"{PARTS}:{beside}", "LD_LIBRARY_PATH": LIBRARIES, "TMPDIR": folder})
    return program


def lines_of(program, **more):
    path = os.pathsep.join(part for part in (LIBRARIES, os.environ.get("LD_LIBRARY_PATH")) if part)
    return debian.output(program, environment=dict(os.environ, LD_LIBRARY_PATH=path, **more)).decode().splitlines()


def agrees(name, kind):
    source = HERE / "offload" / name
    with tempfile.TemporaryDirectory() as folder:
        program = compiled(source, kind, folder)
        device = lines_of(program)
        host = lines_of(program, OMP_TARGET_OFFLOAD="DISABLED", ACC_DEVICE_TYPE="host")
    expect_equal((device[0], host[0]), ("ran on the device", "ran on the host"))
    expect(len(host) > 2, host)
    expect_equal(device[1:], host[1:])


for language, suffix in (("c", "c"), ("fortran", "f90")):
    for model in ("openmp", "openacc"):
        globals()[f"test_{model}_in_{language}_agrees_with_the_host"] = functools.partial(agrees, f"{model}.{suffix}", model)

if __name__ == "__main__":
    main(globals())
