"""A user's programs, built against what an installation, a package or a wheel has, and run: all of cmake/CMakeLists.txt,
and examples/building in each of its ways."""
import os
import shutil
import subprocess
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
HERE = SOURCE / "tests/install"
EXAMPLE = SOURCE / "examples/building"
GROWN = "67108864 bytes at one address\n"


def run(*command, **more):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False, **more)
    assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout}"
    return done.stdout


class Prefix:
    """What is installed below `prefix`; `more` is what pkg-config is told besides."""

    def __init__(self, prefix, **more):
        self.prefix = prefix
        self.libraries = next(prefix.rglob("libgpumem.so.0")).parent
        # Nothing that this machine's shell sets may help to find the libraries.
        self.bare = {"PATH": "/usr/bin:/bin", "HOME": os.environ.get("HOME", "/"), "LANG": "C.UTF-8"}
        self.environment = {**self.bare, "CMAKE_PREFIX_PATH": str(prefix),
                            "PKG_CONFIG_PATH": str(self.libraries / "pkgconfig"), **more}

    def archive(self):
        return (self.libraries / "libgpumem.a").exists()

    def starts(self, program, **more):
        said = run(program, env={**self.bare, "GPUMEM_DRIVER": "softgpu", "SOFTGPU_MEMORY": "1G", **more})
        assert said == GROWN, said

    def cmake(self, source, build):
        run("cmake", "-S", source, "-B", build, env=self.environment)
        run("cmake", "--build", build, env=self.environment)

    def tries_targets(self, folder):
        """Each target of the CMake package."""
        user = folder / "user"
        shutil.copytree(HERE / "cmake", user)
        for source in HERE.glob("*.c*"):
            shutil.copy(source, user)
        shutil.copy(HERE / "program.c", user / "program.cc")
        self.cmake(user, user / "build")
        programs = [path for path in (user / "build").iterdir() if path.is_file() and os.access(path, os.X_OK)]
        wanted = 10 if self.archive() else 6
        assert len(programs) == wanted, f"{len(programs)} programs, not {wanted}: {programs}"
        for program in programs:
            run(program, env=self.bare)

    def tries_ways(self, folder):
        """The example, in each way that the page names; which of them could not be tried."""
        copy = folder / "example"
        shutil.copytree(EXAMPLE, copy)
        self.cmake(copy, copy / "build")
        self.starts(copy / "build/first")
        run("make", "-C", copy, env=self.environment)
        self.starts(copy / "first", LD_LIBRARY_PATH=str(self.libraries))
        if self.archive():
            flags = run("pkg-config", "--static", "--cflags", "--libs", "gpumem", env=self.environment)
            flags = flags.replace("-lgpumem", "-l:libgpumem.a").split()
            run("cc", copy / "first.c", *flags, "-o", copy / "alone")
            self.starts(copy / "alone")
        flags = run("pkg-config", "--cflags", "--libs", "vkgdr", env=self.environment).split()
        run("cc", HERE / "uses_vkgdr.c", *flags, "-o", copy / "vkgdr")
        run(copy / "vkgdr", env={**self.bare, "LD_LIBRARY_PATH": str(self.libraries)})
        if not shutil.which("meson"):
            return "meson is not installed"
        run("meson", "setup", copy / "meson", copy, env=self.environment)
        run("meson", "compile", "-C", copy / "meson", env=self.environment)
        self.starts(copy / "meson/first", LD_LIBRARY_PATH=str(self.libraries))
        return ""


def ways(prefix, folder, report, where, **more):
    """Reports both, of the prefix where `where` says."""
    installed = Prefix(prefix, **more)
    report.run(f"programs of each target are built by CMake and run, {where}", installed.tries_targets, folder)
    left = []
    report.run(f"the example is built in each way and runs, {where}", lambda: left.append(installed.tries_ways(folder)))
    if any(left):
        report.skip(f"by Meson, {where}", left[0])
