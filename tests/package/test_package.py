#!/usr/bin/env python3
"""The Debian package and the wheel: made by ./dev package, laid out anywhere, they run programs."""
import gzip
import os
import re
import shutil
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("GPUMEM_BUILD_DIR", SOURCE / "build"))
sys.path.insert(0, str(SOURCE / "tests/harness"))
sys.path.insert(0, str(SOURCE / "tests/install"))
import building  # noqa: E402  pylint: disable=wrong-import-position
from building import run  # noqa: E402  pylint: disable=wrong-import-position
from tap_report import Report  # noqa: E402  pylint: disable=wrong-import-position

NO_WHEEL = 77  # of make.sh: without a network there is nothing to pack a wheel with

# A program that knows nothing of gpumem; its child must get the same driver.
RUNTIME = """
import ctypes, sys
print(ctypes.CDLL(f"libcudart.so.{sys.argv[1]}").cudaFree(None))
"""

PROGRAM = """
import ctypes, subprocess, sys
cuda = ctypes.CDLL("libcuda.so.1")
name = ctypes.create_string_buffer(64)
assert cuda.cuInit(0) == 0 and cuda.cuDeviceGetName(name, 64, 0) == 0
print(name.value.decode(), flush=True)
if "child" not in sys.argv:
    subprocess.run([sys.executable, __file__, "child"], check=True)
"""


def clean_environment():
    """Nothing that this machine's shell sets may help to find the libraries."""
    return {"PATH": "/usr/bin:/bin", "HOME": os.environ.get("HOME", "/"), "LANG": "C.UTF-8"}


def try_command(command, folder):
    program = folder / "program.py"
    program.write_text(PROGRAM)
    for python in sys.executable, "/usr/bin/python3":
        if Path(python).exists():
            said = run(command, "run", "--softgpu", "--memory", "64M", "--", python, program,
                       env=clean_environment(), cwd="/")
            assert said.splitlines() == ["NVIDIA H200", "NVIDIA H200"], said
    for version in "12", "13":
        found = run(command, "run", "--softgpu", "--", "/usr/bin/env", "python3", "-c", RUNTIME, version,
                    env=clean_environment(), cwd="/")
        assert found == "0\n", found
    functions = run(command, "driver", "--driver", "softgpu", env=clean_environment(), cwd="/")
    assert "cuMemAlloc_v2" in functions, functions


def check_needed(library):
    """Nothing but the C library, and one another."""
    said = run("objdump", "-p", library)
    needed = {line.split()[1] for line in said.splitlines() if line.split()[:1] == ["NEEDED"]}
    foreign = needed - {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2", "libsoftgpu.so.0", "libgpumem.so.0",
                        "libcuda.so.1"}
    assert needed and not foreign, f"{library} needs {foreign or 'nothing: was it read?'}"


def foreign_libraries():
    """(name, a piece of its licence) for each library that docs/dependencies.md says is installed."""
    text = (SOURCE / "docs/dependencies.md").read_text()
    table = text.partition("## In the installed files")[2].partition("\n## ")[0]
    names = [re.sub(r" [0-9.]+$", "", row.split("|")[1].strip()).lower()
             for row in table.splitlines() if row.startswith("| ") and "`" in row]
    assert len(names) >= 3, names
    return {name: (SOURCE / f"packaging/licences/{name}.txt").read_text() for name in names}


def check_no_build_path(folder):
    """Nothing that is shipped names a folder of the building machine."""
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            assert str(SOURCE).encode() not in path.read_bytes(), f"{path} names {SOURCE}"


def check_flags(pkgconfig, folder, *wanted):
    """What pkg-config prints from a folder, without what the machine has of its own."""
    environment = dict(clean_environment(), PKG_CONFIG_LIBDIR=str(pkgconfig))
    said = run("pkg-config", "--cflags", "--libs", "gpumem", env=environment, cwd=folder).split()
    assert said == list(wanted), f"pkg-config prints {said}, not {list(wanted)}"


def test_the_deb_conforms_to_package_conventions(dist, folder):
    run("dpkg-deb", "-x", next(dist.glob("gpumem_*.deb")), folder)
    doc = folder / "usr/share/doc/gpumem"
    for page in ("README.md", "docs/api-tour.md", "docs/softgpu.md", "examples/tour.c", "examples/building/Makefile"):
        assert (doc / page).read_text() == (SOURCE / page).read_text(), page
    changelog = gzip.decompress((doc / "changelog.gz").read_bytes()).decode()
    version = re.search(r"^## ([0-9.]+)", (SOURCE / "CHANGELOG.md").read_text(), re.M).group(1)
    assert changelog.startswith(f"gpumem ({version}) "), changelog[:100]
    (folder / "changelog").write_text(changelog)
    assert f"Version: {version}" in run("dpkg-parsechangelog", "-l", folder / "changelog")
    copyright_file = (doc / "copyright").read_text()
    assert (SOURCE / "LICENSE").read_text() in copyright_file
    for name, text in foreign_libraries().items():
        assert text in copyright_file, f"copyright lacks the licence of {name}"
        assert (doc / f"licences/{name}.txt").read_text() == text, name
    check_flags(folder / "usr/lib/pkgconfig", folder, "-lgpumem")
    check_no_build_path(folder)
    sections = run("readelf", "-S", "-W", folder / "usr/lib/libgpumem.a")
    assert ".text" in sections and ".debug" not in sections, "libgpumem.a has debug information"


def check_manual(share, command):
    """A compressed page for the command and each subcommand, without the time of compressing."""
    listed = run(command, "help", env=clean_environment())
    commands = re.findall(r"^  ([a-z][a-z-]*)  +\S", listed, re.M)
    wanted = {"gpumem.1.gz", *(f"gpumem-{name}.1.gz" for name in commands)}
    pages = {path.name: path.read_bytes() for path in (share / "man/man1").iterdir()}
    assert set(pages) == wanted and len(wanted) > 5, set(pages) ^ wanted
    for name, content in pages.items():
        # RFC 1952: flags, the time in bytes 4 to 7, 2 for the best compression.
        assert content[:4] == b"\x1f\x8b\x08\x00" and content[4:9] == b"\0\0\0\0\x02", f"{name}: {content[:10]}"
        assert b"\n.SH SYNOPSIS\n" in gzip.decompress(content), name


def test_the_deb_contains_manual_pages_and_completions(dist, folder):
    run("dpkg-deb", "-x", next(dist.glob("gpumem_*.deb")), folder)
    share = folder / "usr/share"
    check_manual(share, folder / "usr/bin/gpumem")
    source = SOURCE / "tools/gpumem/completion"
    for place, name in (("bash-completion/completions/gpumem", "gpumem.bash"),
                        ("zsh/vendor-completions/_gpumem", "_gpumem"),
                        ("fish/vendor_completions.d/gpumem.fish", "gpumem.fish")):
        assert (share / place).read_text() == (source / name).read_text(), place


def test_programs_build_and_run_against_the_deb(dist, folder):
    package = next(dist.glob("gpumem_*.deb"))
    run("dpkg-deb", "-x", package, folder)
    for path in folder.rglob("libcuda.so*"):
        assert path.parent.name == "softgpu", f"{path} is on the loader's default path"
    depends = run("dpkg-deb", "-f", package, "Depends")
    assert {name.split()[0] for name in depends.split(",")} == {"libc6"}, depends
    try_command(folder / "usr/bin/gpumem", folder)
    unpacked = building.Prefix(folder / "usr", PKG_CONFIG_SYSROOT_DIR=str(folder))
    unpacked.tries_targets(folder)
    unpacked.tries_ways(folder)


def use_headers(dist, folder, package):
    """Programs are built from nothing but the package's own headers and libraries, and from a wheel that was
    unpacked without pip."""
    headers = {path.name for path in (package / "include/gpumem").iterdir()}
    assert headers == {path.name for path in (SOURCE / "include/gpumem").iterdir()}, headers
    installed = building.Prefix(package)
    installed.tries_targets(folder)
    for word, place in (("--cmakedir", "cmake/gpumem"), ("--pkgconfigdir", "pkgconfig")):
        said = run(folder / "venv/bin/python", "-m", "gpumem", word, env=clean_environment(), cwd="/")
        assert Path(said.strip()).samefile(package / "lib" / place), said
    with zipfile.ZipFile(next(dist.glob("gpumem-*.whl"))) as wheel:
        wheel.extractall(folder / "unpacked")
    building.Prefix(folder / "unpacked/gpumem").tries_ways(folder)


# Each entry point leads to a folder or a program of the package.
ENTRIES = """
from importlib.metadata import entry_points
from importlib.resources import files
import gpumem
print((files(entry_points(group="pkg_config")["gpumem"].value) / "gpumem.pc").is_file(),
      (files(entry_points(group="cmake.root")["gpumem"].value) / "lib/cmake/gpumem").is_dir(),
      gpumem.get_include() == str(files("gpumem") / "include"),
      gpumem.get_library_dir() == str(files("gpumem") / "lib"))
with gpumem.open("softgpu").device(0).allocate(64) as buffer:
    buffer.fill(3)
    print(buffer.read(0, 2))
"""


def check_python(dist, folder, package):
    """The wheel is one for all Pythons from 3.11 on, small, without a library twice, and works."""
    wheel = next(dist.glob("gpumem-*.whl"))
    assert re.fullmatch(r"gpumem-[0-9.]+-cp311-abi3-manylinux_2_\d+_x86_64.whl", wheel.name), wheel.name
    assert wheel.stat().st_size <= 4 << 20, wheel.stat().st_size
    sizes = {}
    for path in package.rglob("*.so*"):
        assert sizes.setdefault(path.read_bytes(), path) == path, f"{path} is {sizes[path.read_bytes()]} again"
    said = run(folder / "venv/bin/python", "-X", "dev", "-W", "error", "-c", ENTRIES,
               env={**clean_environment(), "SOFTGPU_FAIL_ON": "leaks"}, cwd="/")
    assert said == "True True True True\nb'\\x03\\x03'\n", said


# Neither a GPU nor softgpu: the library is found, and says what is missing.
IMPORT = """
import gpumem.vkgdr, vkgdr
assert vkgdr.RawMemory is gpumem.vkgdr.RawMemory
try:
    vkgdr.Vkgdr(0, 8)
except vkgdr.VkgdrError as error:
    print(error)
with open("/proc/self/maps") as maps:
    print({line.split()[-1] for line in maps if "libvkgdr" in line})
"""


def check_vkgdr(pip, dist, folder):
    """The module gpumem.vkgdr and the distribution that has its older name."""
    run(*pip, "install", "--no-index", next(dist.glob("vkgdr-*.whl")))
    said = run(folder / "venv/bin/python", "-c", IMPORT, env=clean_environment(), cwd="/")
    library = next((folder / "venv").rglob("libvkgdr.so.1")).resolve()
    assert said.splitlines() == ["vkgdr_open: unknown flags 0x8", str({str(library)})], said
    run(*pip, "check")
    shown = run(folder / "venv/bin/python", "-c", "from importlib.metadata import requires, version\n"
                "print(version('vkgdr'), *requires('vkgdr'))")
    assert re.fullmatch(r"0\.1\+gpumem\.(\S+) gpumem==\1\n", shown), shown
    header = (library.parents[1] / "include/vkgdr.h").read_text()
    assert header == (SOURCE / "include/vkgdr.h").read_text(), header
    run(*pip, "uninstall", "--yes", "vkgdr")


def test_programs_build_and_run_against_the_wheel(dist, folder):
    venv.create(folder / "venv", with_pip=True, symlinks=True)
    pip = [folder / "venv/bin/python", "-m", "pip", "--disable-pip-version-check", "--quiet"]
    run(*pip, "install", "--no-index", next(dist.glob("gpumem-*.whl")))
    command = folder / "venv/bin/gpumem"
    try_command(command, folder)
    package = next((folder / "venv/lib").glob("python*/site-packages/gpumem"))
    for library in package.glob("lib/**/lib*.so*"):
        if library.read_bytes().startswith(b"\x7fELF"):
            check_needed(library)
    check_no_build_path(package)
    check_python(dist, folder, package)
    licences = next((folder / "venv/lib").glob("python*/site-packages/gpumem-*.dist-info/licenses"))
    assert (licences / "LICENSE").read_text() == (SOURCE / "LICENSE").read_text()
    for name, text in foreign_libraries().items():
        assert (licences / f"packaging/licences/{name}.txt").read_text() == text, name
    use_headers(dist, folder, package)
    pages = {path.name for path in (folder / "venv/share/man/man1").iterdir()}
    assert "gpumem.1" in pages and len(pages) > 5, pages
    assert (folder / "venv/share/bash-completion/completions/gpumem").stat().st_size > 0
    assert (folder / "venv/share/zsh/site-functions/_gpumem").stat().st_size > 0
    check_vkgdr(pip, dist, folder)
    run(*pip, "uninstall", "--yes", "gpumem")
    # pip leaves empty folders.
    left = [str(path) for path in (folder / "venv").rglob("*gpu*") if path.is_file()]
    assert not command.exists() and not left, left


def main():
    with tempfile.TemporaryDirectory() as folder:
        dist = Path(folder) / "dist"
        made = subprocess.run([SOURCE / "packaging/make.sh", dist, BUILD], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False)
        assert made.returncode in (0, NO_WHEEL), made.stdout
        tests = [(name, test) for name, test in globals().items() if name.startswith("test_")]
        report = Report()
        for name, test in tests:
            if test is test_programs_build_and_run_against_the_wheel and made.returncode == NO_WHEEL:
                report.skip(name, made.stdout.strip().splitlines()[-1])
                continue
            work = Path(folder) / name
            work.mkdir()
            report.run(name, test, dist, work)
        sys.exit(report.end())


if __name__ == "__main__":
    main()
