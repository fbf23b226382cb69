"""Debian's packages of client programs, unpacked into the build folder: nothing is installed, and no root is needed.

The packages of a name come with what they depend on and this machine has not installed. A folder is complete when
its stamp holds the list and Debian's release.
"""
import fcntl
import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from environment import Unavailable, run


def release():
    try:
        return Path("/etc/debian_version").read_text(encoding="utf-8")
    except OSError as why:
        raise Unavailable("this is not Debian") from why


def gcc_version():
    """The major version of Debian's compiler, whose other half is wanted."""
    try:
        return run("/usr/bin/gcc", "-dumpversion").strip()
    except OSError as why:
        raise Unavailable(str(why)) from why


def packages_of(name):
    """Those that are unpacked even if the machine has them: programs must lie beside what they look for."""
    if name == "gcc":
        gcc = gcc_version()
        return [f"gcc-{gcc}-offload-nvptx", "libgomp-plugin-nvptx1", "nvptx-tools", f"gfortran-{gcc}",
                f"libgfortran-{gcc}-dev"]
    # hashcat wants OpenCL or CUDA, and Debian's package knows of OpenCL alone: without its dependencies.
    return {"ffmpeg": ["ffmpeg"], "hashcat": ["hashcat", "hashcat-data", "libminizip1"]}[name]


def fetch(name, work, options):
    names = packages_of(name)
    if name != "hashcat":
        planned = run("apt-get", *options, "install", "--simulate", "--no-install-recommends", *names)
        names = sorted({*names, *(line.split()[1] for line in planned.splitlines() if line.startswith("Inst "))})
    run("apt-get", *options, "--quiet", "download", *names, cwd=work)


def lists_of_its_own(folder):
    """apt's options to keep its lists in a folder, once it has them: the machine's may be missing, or out of date."""
    options = []
    for part in ("lists", "cache"):
        (folder / part / "partial").mkdir(parents=True, exist_ok=True)
    for key, value in (("Dir::State::Lists", folder / "lists"), ("Dir::Cache", folder / "cache")):
        options += ["-o", f"{key}={value}"]
    run("apt-get", *options, "--quiet", "update")
    return options


def make(name, folder):
    shutil.rmtree(folder, ignore_errors=True)
    work = folder / "packages"
    work.mkdir(parents=True)
    if not shutil.which("apt-get"):
        raise Unavailable("there is no apt-get")
    try:
        fetch(name, work, [])
    except Unavailable:
        fetch(name, work, lists_of_its_own(folder / "apt"))
    for package in sorted(work.glob("*.deb")):
        run("dpkg-deb", "--extract", package, folder / "root")
    shutil.rmtree(work)
    shutil.rmtree(folder / "apt", ignore_errors=True)


def root_of(name, build):
    """The folder that has the packages' `usr`, made if it must be. Raises Unavailable."""
    folder = Path(build).resolve() / "clients" / f"debian-{name}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    wanted = hashlib.sha256("\n".join([release(), *packages_of(name)]).encode()).hexdigest()
    with open(folder.parent / f"debian-{name}.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        stamp = folder / "complete"
        if not stamp.exists() or stamp.read_text() != wanted:
            make(name, folder)
            stamp.write_text(wanted)
    return folder / "root"


def libraries(root):
    """The folders of shared libraries, for LD_LIBRARY_PATH."""
    folders = {path.parent for path in root.glob("usr/lib/*-linux-gnu/**/*.so*")}
    return os.pathsep.join(str(path) for path in sorted(folders))


def output(*command, environment=None, cwd=None):
    """What a program writes on standard output, as bytes; it must succeed."""
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                          env=environment, cwd=cwd)
    if done.returncode:
        raise AssertionError(f"{' '.join(str(word) for word in command)} ended with status {done.returncode}:\n"
                             f"{done.stderr.decode(errors='replace')[-3000:]}")
    return done.stdout
