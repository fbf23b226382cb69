"""The programs of cu/: how nvcc compiles each, how it is linked with the runtime, and how it runs on softgpu.

A program is a file, or a folder of files of relocatable code. Comments of its first lines say what it needs:
  // architecture: 90      of its PTX (80)
  // flags: FLAG...        of nvcc's, for this file
  // runtime: 13           only with this major version, whose functions have other parameters in the other
  // devices: 2            that softgpu has (1)
  // library:              this file becomes a library beside the program, <program>.<file>.so
  // findings: KIND...     of the checkers', for what the program does wrong on purpose
  // says: TEXT            that softgpu must write beside it
"""
import concurrent.futures
import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
CU = HERE / "cu"
BUILD = Path(os.environ.get("GPUMEM_BUILD_DIR", HERE.parents[1] / "build")).resolve()
SANITIZED = os.environ.get("GPUMEM_SANITIZE", "off") != "off"
# In ./dev test; the others are in --all, since nvcc takes seconds for each.
FIRST = ("memory", "relocatable", "saxpy", "streams", "textures")
RUNTIMES = ("13", "12")
JOBS = len(os.sched_getaffinity(0))


def nvcc():
    found = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
    if not found:
        return None
    # Where what is found is a script that starts another one, that one's folder has the libraries.
    said = subprocess.run([found, "--dryrun", "-x", "cu", "/dev/null"], capture_output=True, text=True, check=False)
    top = re.search(r"^#\$ TOP=(.+)$", said.stderr, re.M)
    return Path(top.group(1)).resolve() / "bin/nvcc" if top else Path(found).resolve()


def missing():
    """Why nothing can be compiled or run here; None where all is there."""
    if SANITIZED:
        return "a sanitizer's library needs its program"
    return None if nvcc() else "nvcc is not here"


def must(command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def settings_of(source):
    return {key: (value or "").strip() for key, value in re.findall(r"^// ([a-z]+):(.*)$", source.read_text(), re.M)}


class Program:
    def __init__(self, name, sources):
        self.name = name
        self.sources = sources
        self.settings = {source: settings_of(source) for source in sources}
        self.settings_together = {key: value for each in self.settings.values() for key, value in each.items()}
        self.libraries = [source for source in sources if "library" in self.settings[source]]
        self.relocatable = len(sources) - len(self.libraries) > 1 or "-rdc=true" in self.settings_together.get("flags", "")
        self.devices = self.settings_together.get("devices", "1")
        self.runtimes = [abi for abi in RUNTIMES if self.settings_together.get("runtime", abi) == abi]
        self.golden = CU / "golden" / f"{name}.txt"

    def flags(self, source=None):
        architecture = self.settings_together.get("architecture", "80")
        own = self.settings[source].get("flags", "").split() if source else []
        # The linked image of relocatable code has machine code alone, as where nvcc is told no architecture of PTX.
        if self.relocatable and not (source and source in self.libraries):
            return ["-rdc=true", "-gencode", "arch=compute_90,code=[sm_90,compute_90]",
                    *(flag for flag in own if flag != "-rdc=true")]
        return ["-gencode", f"arch=compute_{architecture},code=compute_{architecture}", *own]


def programs(names=None):
    files = {path.stem: [path] for path in CU.glob("*.cu")}
    folders = {path.parent.name: sorted(path.parent.glob("*.cu")) for path in CU.glob("*/*.cu")}
    return [Program(*each) for each in sorted((files | folders).items()) if names is None or each[0] in names]


class Compiler:
    """nvcc, with a cache of what it has made of the same text, below the build folder."""

    def __init__(self):
        self.path = nvcc()
        self.cache = BUILD / "tests/programs/cu"
        self.version = must([self.path, "--version"])

    def made(self, what, inputs, *words):
        texts = [self.version, " ".join(map(str, words)), *(path.read_bytes().hex() for path in inputs)]
        result = self.cache / f"{hashlib.sha256(chr(0).join(texts).encode()).hexdigest()[:20]}-{what}"
        if not result.exists():
            self.cache.mkdir(parents=True, exist_ok=True)
            unfinished = result.with_name(f"{os.getpid()}.{result.name}")
            must([self.path, "--cudart=shared", *words, "-o", unfinished])
            unfinished.rename(result)
        return result

    def compiled(self, program, source):
        flags = [*program.flags(source), *(["-Xcompiler", "-fPIC"] if source in program.libraries else [])]
        headers = sorted({*source.parent.glob("*.h"), *CU.glob("*.h")})
        return self.made(f"{program.name}.{source.stem}.o", [source, *headers], *flags, "-I", CU, "-c", source)

    def objects(self, program):
        """Of the program itself, with those of device code that was linked, and what links them further."""
        objects = [self.compiled(program, source) for source in program.sources if source not in program.libraries]
        if not program.relocatable:
            return objects
        linked = self.made(f"{program.name}.link.o", objects, *program.flags(), "-dlink", *objects)
        return [*objects, linked, "-L", self.path.parents[1] / "lib64", "-lcudadevrt"]

    def link(self, program, abi, folder, *more):
        """The program, and its libraries beside it. Whoever runs it decides which runtime it gets."""
        result = Path(folder) / f"{program.name}.{abi}"
        runtime = BUILD / f"lib/gpumem/runtime/{abi}/libcudart.so.{abi}"
        for source in program.libraries:
            must(["c++", "-shared", self.compiled(program, source), runtime, *more, "-o", f"{result}.{source.stem}.so"])
        must(["c++", *self.objects(program), runtime, "-ldl", "-pthread", *more, "-o", result])
        return result

    def compile_all(self, chosen):
        """All sources, as many at a time as there are processors; what fails is said by who needs it."""
        with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
            tasks = [pool.submit(self.compiled, program, source) for program in chosen for source in program.sources]
            concurrent.futures.wait(tasks)


def run(program, path, *options):
    environment = {key: value for key, value in os.environ.items() if not key.startswith("SOFTGPU_")}
    return subprocess.run([BUILD / "bin/gpumem", "run", "--softgpu", "--devices", program.devices, *options, "--", path],
                          env=environment, check=False, capture_output=True, text=True, errors="replace")


def prints_golden(program, path, *options):
    done = run(program, path, *options)
    wanted = program.golden.read_text() if program.golden.exists() else "(nothing: there is no such file)\n"
    says = program.settings_together.get("says", "")
    if done.returncode == 0 and done.stdout == wanted:
        return [] if says in done.stderr else [f"softgpu does not say '{says}'", *done.stderr.splitlines()[-20:]]
    got, want = done.stdout.splitlines(), wanted.splitlines()
    return [f"status {done.returncode}", *(f"  has   {line}" for line in got if line not in want),
            *(f"  wants {line}" for line in want if line not in got), *done.stderr.splitlines()[-20:]]


def bundle(folder):
    """Programs for a machine that has no compiler, by soname, with what they print, and NVIDIA's runtimes to compare
    with, where this machine has them: they are for this bundle alone."""
    compiler = Compiler()
    chosen = programs()
    compiler.compile_all(chosen)
    for abi in RUNTIMES:
        (folder / abi).mkdir(parents=True)
        for program in chosen:
            if abi in program.runtimes:
                made = compiler.link(program, abi, folder / abi, "-static-libstdc++", "-static-libgcc", "-s")
                for path in made.parent.glob(f"{made.name}*"):
                    path.rename(path.with_name(path.name.replace(made.name, program.name, 1)))
        theirs = [compiler.path.parents[1] / f"lib64/libcudart.so.{abi}", *(BUILD / "nvidia-runtime" / abi).rglob("libcudart.so.*")]
        for path in [path for path in theirs if path.exists()][:1]:
            (folder / "nvidia" / abi).mkdir(parents=True)
            shutil.copy(path, folder / "nvidia" / abi / f"libcudart.so.{abi}")
    shutil.copytree(CU / "golden", folder / "golden")


if __name__ == "__main__":
    if missing():
        print(f"without programs of the CUDA runtime: {missing()}")
    else:
        bundle(Path(sys.argv[1]))
