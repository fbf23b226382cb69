"""What `./dev test`, `--all` and `--long` consist of: builds, suites of tests, and steps that are one test by
themselves. `--only STAGE` and `--long PART` run one of them alone."""
import dataclasses
import os
import sys
from pathlib import Path

import threaded

SOURCE = Path(__file__).resolve().parents[2]
PYTHON = sys.executable
JOBS = len(os.sched_getaffinity(0))


@dataclasses.dataclass(frozen=True)
class Build:
    """A preset of CMake, its folder, and what GPUMEM_SANITIZE is in it."""
    name: str
    title: str
    preset: str
    sanitize: str = "off"

    @property
    def folder(self):
        return SOURCE / ("build" if self.preset == "release" else f"build-{self.preset}")


@dataclasses.dataclass(frozen=True)
class Suite:
    """Tests of some folders on one build. `where` names both; `chosen` says of a test's name whether it is in."""
    where: str
    build: str
    folders: tuple
    environment: tuple = ()
    chosen: object = None
    long: bool = False
    rounds: int = 1
    beside: int = 0  # how many busy loops
    everything: bool = False  # the whole build is made for it, not what its tests need


@dataclasses.dataclass(frozen=True)
class Step:
    """A command that is one test: exit status 0 passed, 77 skipped with a reason. It runs on a build, if any."""
    title: str
    command: tuple
    build: str = ""
    targets: tuple = ()
    repeat: str = ""


@dataclasses.dataclass(frozen=True)
class Stage:
    name: str
    what: str
    items: tuple
    packages: str = "test"  # which tools/dev/packages.sh names


BUILDS = {build.name: build for build in (
    Build("release", "gcc, release, warnings are errors", "release"),
    Build("asan", "AddressSanitizer, UndefinedBehaviorSanitizer", "asan", "address"),
    Build("tsan", "ThreadSanitizer", "tsan", "thread"),
)}


def a_program(name):
    """Scripts choose profiles themselves: on another they would do again what they did before."""
    return not Path(name).suffix


def profile(name):
    """Profiles made from documentation: what tests cannot have there they skip, with the reason."""
    return Suite(name, "release", ("conformance",), (("SOFTGPU_PROFILE", name),), a_program)


def lint(part, title):
    return Step(title, ("sh", "tools/dev/lint.sh", part), repeat=f"./dev lint {part}")


TEST = (
    Stage("release", "the tests of the release build",
          (Suite("release", "release", ("runner", "unit", "fault", "conformance", "runtime", "programs", "cli", "python",
                                        "parity", "coverage", "mutate", "docs", "lint"), everything=True),)),
)

# The others in tests/docs read pages, or measure.
PROGRAMS_OF_PAGES = {"docs/test_api_tour.sh", "docs/test_cpp.sh", "docs/test_examples.py"}

# After ./dev test: what stands here together is one queue of tests, once all of it is built.
MORE = (
    Stage("clients", "real programs on softgpu", (Suite("clients", "release", ("clients",)),), "clients"),
    Stage("traces", "recorded programs through the cache: memory, limits, late frees, turns",
          (Suite("traces", "release", ("cli",), (("GPUMEM_TRACES", "all"),),
                 lambda name: name == "cli/test_replay_bars.py"),)),
    Stage("nvcc", "programs of the CUDA runtime that nvcc compiles, under the checkers too",
          (Suite("nvcc", "release", ("nvcc",)),)),
    Stage("profiles", "conformance on the profiles wsl and mig", (profile("wsl"), profile("mig"))),
    Stage("rules", "ABI, an installation, packages",
          (Suite("rules", "release", ("abi", "install", "package")),), "all"),
    Stage("asan", "AddressSanitizer, UndefinedBehaviorSanitizer",
          (Suite("asan", "asan", ("unit", "fault", "conformance", "programs", "cli", "python", "docs", "fuzz",
                                   "parity"),
                 chosen=lambda name: not name.startswith("docs/") or name in PROGRAMS_OF_PAGES),)),
    Stage("tsan", "ThreadSanitizer, on tests that have threads",
          (Suite("tsan", "tsan", ("programs", "unit", "conformance"), chosen=threaded.has_threads),)),
    Stage("lint", "the layout, clang's warnings, clang-tidy, cppcheck on what changed",
          (lint("format", "clang-format"), lint("clang", "clang's warnings"),
           lint("tidy-quick", "clang-tidy without its analyzer"),
           lint("tidy-recent", "clang-tidy on what the last 40 commits touched"),
           lint("cppcheck-recent", "cppcheck on what the last 40 commits touched")),
          "lint"),
)


def long(where, build, folders, names=None, **more):
    chosen = names and (lambda name: name in names)
    return Suite(where, build, folders, chosen=chosen, long=True, **more)


def beside_loops(folder, rounds=5, **more):
    """What depends on being quick, or fails one time in many, shows on a machine that has something else to do."""
    times = "five times" if rounds == 5 else "once"
    return Stage(f"load-{folder}", f"tests/{folder} {times} beside eight busy loops",
                 (Suite("loaded", "release", (folder,), rounds=rounds, beside=8),), **more)


# Programs that others wrote, each against its own CPU form or a model; environments and packages are made for them.
APPLICATIONS = {f"long/test_client_{name}.py" for name in ("cycles", "gprmax", "hashcat", "openmm")}
STRESS = {"unit/test_stress", "unit/test_share_deaths", "unit/vkgdr/test_slabs", "long/test_kernel_stress.py"}

PARTS = (
    Stage("programs", "programs with kernels: more work, more seeds, checked",
          (long("programs", "release", ("programs",)), long("programs-asan", "asan", ("programs",)))),
    Stage("kernels", "programs that launch kernels, in all orders of work, with AddressSanitizer",
          (long("kernels", "asan", ("conformance",),
                {"conformance/test_kernels.py", "conformance/test_kernel_threads"}),)),
    Stage("exact", "arithmetic against integers, all inputs of approximate functions",
          (long("exact", "release", ("unit", "parity"), {"unit/softgpu/test_engine_exact", "parity/test_ptx.py"}),)),
    Stage("questions", "every pair of wrong arguments to the CUDA runtime, each in a process of its own",
          (long("questions", "release", ("parity",), {"parity/test_runtime_answers.py"}),)),
    Stage("mutants", "texts with mistakes are refused as ptxas refuses them",
          (long("mutants", "release", ("long",), {"long/test_ptx_mutants.py"}),), "clients"),
    Stage("stress", "allocations, deaths of importers, threads with kernels, for minutes",
          (long("stress", "release", ("unit", "long"), STRESS),)),
    Stage("stress-tsan", "the same with ThreadSanitizer", (long("stress-tsan", "tsan", ("unit", "long"), STRESS),)),
    Stage("threads", "ThreadSanitizer on all tests, those with one thread included",
          (Suite("tsan", "tsan", ("programs", "unit", "conformance"), long=True),)),
    Stage("clients", "all of numba-cuda's own tests, and those left out alone",
          (long("clients", "release", ("clients",)),), "clients"),
    Stage("applications", "hashcat, OpenMM, Blender's Cycles, gprMax, against their CPU forms",
          (long("applications", "release", ("long",), APPLICATIONS),), "clients"),
    Stage("torch", "PyTorch's calls of the runtime, what it and bitsandbytes compute by PTX (5.9 GB of packages)",
          (long("torch", "release", ("long",), {"long/test_client_torch.py"}),)),
    Stage("hazards", "kinds of hazard that public suites plant, found, and their mended twins silent",
          (long("hazards", "release", ("long",), {"long/test_hazards.py"}),), "clients"),
    Stage("abi", "headers with every compiler and standard", (long("abi", "release", ("abi",)),), "all"),
    *map(beside_loops, ("unit", "fault", "conformance", "cli")),
    beside_loops("package", rounds=1, packages="all"),
    Stage("fuzz", "the fuzzers, for half an hour", (Step("fuzzers", ("sh", "tests/fuzz/run", "1800")),), "fuzz"),
    Stage("tidy", "clang-tidy with its analyzer, and cppcheck, on all files",
          (lint("tidy", "clang-tidy"), lint("cppcheck", "cppcheck")), "lint"),
    Stage("clang", "everything built by clang", (lint("clang-build", "build by clang"),), "lint"),
    Stage("coverage", "lines and branches of src/ that tests reach",
          (Step("coverage", (PYTHON, "tests/coverage/lines.py")),)),
    Stage("mutate", "planted faults that were found once are found still",
          (Step("planted faults", (PYTHON, "tests/mutate/mutate.py", "--again", "tests/mutate/lists/e69ccf73.jsonl",
                                   "--found")),)),
)
