#!/usr/bin/env python3
"""gpumem run makes clients' compilers give PTX too, and keeps their caches apart: NVRTC, nvJitLink, nvcc and ptxas
made here, because the real ones are not free; tests/clients has those."""
import os
import shutil
import subprocess
import sys

import harness
from harness import Skip, expect, expect_status

# A text of one kernel, of which both libraries have "machine code" too.
TEXT = r'".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry %s() { ret; }\n"'

NVRTC = harness.MACHINE_CODE + """
typedef void *P;
int nvrtcVersion(int *a, int *b) { *a = 13; *b = 0; return 0; }
int nvrtcGetCUBINSize(P p, unsigned long *n) { *n = p ? SIZE : 0; return 0; }
int nvrtcGetCUBIN(P p, char *to) { if (p) memcpy(to, cubin, SIZE); return 0; }
int nvrtcGetPTXSize(P p, unsigned long *n) { *n = sizeof NAME " ptx"; return 0; }
int nvrtcGetPTX(P p, char *to) { strcpy(to, NAME " ptx"); return 0; }
"""

# Of the LTO IR that it is given it makes a text; as nvJitLink does, only if all is LTO IR.
JITLINK = harness.MACHINE_CODE + """
#include <stdlib.h>
struct link { int lto, ptx, inputs, others; };
static const char text[] = TEXT_OF_IR;
#define NAME(a) PASTE(a, SUFFIX)
#define PASTE(a, b) PASTE2(a, b)
#define PASTE2(a, b) a##b
int NAME(PREFIX(nvJitLinkCreate))(void **h, unsigned n, const char **o) {
    struct link *l = *h = calloc(1, sizeof *l);
    while (n--) { l->lto |= !strcmp(o[n], "-lto"); l->ptx |= !strcmp(o[n], "-ptx"); }
    return l->ptx && !l->lto;
}
int NAME(PREFIX(nvJitLinkDestroy))(void **h) { free(*h); return 0; }
int NAME(PREFIX(nvJitLinkAddData))(void *h, int type, const void *d, unsigned long s, const char *w) {
    struct link *l = h;
    l->inputs++; l->others |= type != 3;
    return 0;
}
int NAME(PREFIX(nvJitLinkAddFile))(void *h, int type, const char *f) {
    struct link *l = h;
    l->inputs++; l->others |= type != 3;
    return 0;
}
int NAME(PREFIX(nvJitLinkComplete))(void *h) { struct link *l = h; return l->ptx && l->others ? 12 : 0; }
int NAME(PREFIX(nvJitLinkGetLinkedCubinSize))(void *h, unsigned long *n) { *n = SIZE; return ((struct link *)h)->ptx; }
int NAME(PREFIX(nvJitLinkGetLinkedCubin))(void *h, void *to) { memcpy(to, cubin, SIZE); return ((struct link *)h)->ptx; }
int NAME(PREFIX(nvJitLinkGetLinkedPtxSize))(void *h, unsigned long *n) { *n = sizeof text; return !((struct link *)h)->ptx; }
int NAME(PREFIX(nvJitLinkGetLinkedPtx))(void *h, char *to) { memcpy(to, text, sizeof text); return !((struct link *)h)->ptx; }
"""

CLIENT = """
import ctypes, sys
def cubin(library, program):
    size = ctypes.c_size_t()
    assert library.nvrtcGetCUBINSize(ctypes.c_void_p(program), ctypes.byref(size)) == 0
    text = ctypes.create_string_buffer(size.value + 1)
    assert library.nvrtcGetCUBIN(ctypes.c_void_p(program), text) == 0
    return text.raw[:size.value]
first, second = (ctypes.CDLL(path) for path in sys.argv[1:3])
for image in cubin(first, 1), cubin(second, 1), cubin(first, 0):
    print(image[:4], [word for word in (b"first ptx\\0", b"second ptx\\0", b".softgpu.ptx\\0") if word in image])
"""

LINKER = """
import ctypes, sys
library, prefix, suffix, file = ctypes.CDLL(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4]
call = lambda name, *rest: getattr(library, prefix + "nvJitLink" + name + suffix)(*rest)
text = lambda name: open(name, "rb").read()
def link(options, *inputs):
    words = (ctypes.c_char_p * len(options))(*options)
    handle, size = ctypes.c_void_p(), ctypes.c_size_t()
    assert call("Create", ctypes.byref(handle), len(options), words) == 0
    for kind, data in inputs:
        if kind == "file":
            assert call("AddFile", handle, 2, data) == 0
        elif kind == "library":
            assert call("AddFile", handle, 6, data) == 0
        else:
            name = b"libcudadevrt.a" if kind == 6 else b"x"
            assert call("AddData", handle, kind, data, ctypes.c_size_t(len(data)), name) == 0
    status = call("Complete", handle)
    if status:
        return status
    assert call("GetLinkedCubinSize", handle, ctypes.byref(size)) == 0
    made = ctypes.create_string_buffer(size.value)
    assert call("GetLinkedCubin", handle, made) == 0
    assert call("Destroy", ctypes.byref(handle)) == 0
    return made.raw
cuda = ctypes.CDLL("libcuda.so.1")
def kernels(image):
    context, module, count = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint()
    assert cuda.cuInit(0) == 0 and cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert cuda.cuCtxSetCurrent(context) == 0
    assert cuda.cuModuleLoadData(ctypes.byref(module), image) == 0
    assert cuda.cuModuleGetFunctionCount(ctypes.byref(count), module) == 0
    return count.value
arch, lto = b"-arch=sm_90", b"-lto"
ptx = text(file)
of = lambda image: (image[:4] == b"\\x7fELF", b".softgpu.ptx" in image, b".text." in image, image.count(b".version 7.0"))
print("text", of(link([arch], (2, ptx))))
print("file", of(link([arch], ("file", file.encode()))))
print("ir", of(link([arch, lto], (3, b"ir"))))
print("both", kernels(link([arch, lto], (3, b"ir"), (2, ptx))))
print("texts only", of(link([arch, lto], (2, ptx))))
print("machine", of(link([arch], (1, b"elf"))))
print("mixed", link([arch, lto], (3, b"ir"), (1, b"elf")))
print("twice", link([arch, lto], (2, ptx), (2, ptx)))
"""


def environment(**more):
    return harness.bare_environment("LD_AUDIT", "TRITON_", "CUPY_", "NUMBA_", "PYCUDA_", "TORCH", **more)


def run(*words, env=None, options=(), **more):
    return harness.run_program([*options, "--"], *words, env=env or environment(**more))


def library(folder, name, source, *options):
    compiler = shutil.which("cc")
    if not compiler:
        raise Skip("there is no C compiler")
    if harness.SANITIZE != "off":
        raise Skip("Python does not run the sanitizer's libraries")
    path = folder / name
    path.with_suffix(".c").write_text(source)
    subprocess.run([compiler, "-w", "-shared", "-fPIC", "-o", path, path.with_suffix(".c"), *options], check=True)
    return path


def test_every_copy_of_nvrtc_puts_its_own_ptx_into_its_code(folder):
    first = library(folder, "libnvrtc.so.13", NVRTC, '-DNAME="first"')
    second = library(folder, "renamed-8f3a.so", NVRTC, '-DNAME="second"')
    done = run(sys.executable, "-c", CLIENT, first, second)
    expect_status(done, 0)
    # Without machine code, which a program for a virtual architecture has none of, nothing changes.
    expect(done.stdout.splitlines() == [r"b'\x7fELF' [b'first ptx\x00', b'.softgpu.ptx\x00']",
                                        r"b'\x7fELF' [b'second ptx\x00', b'.softgpu.ptx\x00']", "b'' []"], done.stdout)


def test_without_kernels_nothing_is_intercepted(folder):
    first = library(folder, "libnvrtc.so.13", NVRTC, '-DNAME="first"')
    words = [sys.executable, "-c", CLIENT, first, first]
    for done in (run(*words, env=environment(SOFTGPU_KERNELS="0")), run(*words, options=["--no-kernels"])):
        expect_status(done, 0)
        expect(done.stdout.splitlines() == [r"b'\x7fELF' []"] * 2 + ["b'' []"], done.stdout)


def linked(folder, prefix, suffix):
    texts = "#define PREFIX(x) %s##x\n#define SUFFIX %s\n" % (prefix, suffix) if prefix else \
        "#define PREFIX(x) x\n#define SUFFIX\n"
    source = texts + f"#define TEXT_OF_IR {TEXT % 'of_ir'}\n" + JITLINK
    jitlink = library(folder, "libnvJitLink.so.13", source)
    text = folder / "input.ptx"
    text.write_text((TEXT % "of_text")[1:-1].replace("\\n", "\n"))
    return run(sys.executable, "-c", LINKER, jitlink, prefix, suffix, text)


def expect_links(done):
    expect_status(done, 0)
    held, by_softgpu = "(True, True, True, 1)", "(True, False, False, 1)"
    wanted = [f"text {held}", f"file {held}", f"ir {by_softgpu}", "both 2", f"texts only {by_softgpu}",
              "machine (True, False, True, 0)", "mixed 12", "twice 6"]
    expect(done.stdout.splitlines() == wanted, f"{done.stdout}{done.stderr}")
    expect("was given machine code without PTX in it, and so gives" in done.stderr, done.stderr)
    expect("machine code without PTX in it beside LTO IR" in done.stderr, done.stderr)
    expect("softgpu's linker refuses the PTX" in done.stderr, done.stderr)


def test_nvjitlink_returns_code_that_holds_ptx_or_is_linked_by_softgpu(folder):
    expect_links(linked(folder, "", ""))


# Each block adds to its own word; after the grid has met, each reads all of them. Three rounds.
GRID_TEXT = r"""
.version 7.0
.target sm_70
.address_size 64
.extern .func (.param .b64 h) cudaCGGetIntrinsicHandle (.param .b32 s);
.extern .func (.param .b32 e) cudaCGSynchronize (.param .b64 h, .param .b32 f);
.visible .entry rounds(.param .u64 words, .param .u64 sums) {
.reg .b32 %r<12>; .reg .b64 %d<8>; .reg .pred %p, %q;
ld.param.u64 %d1, [words]; ld.param.u64 %d2, [sums]; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %nctaid.x;
mov.u32 %r9, %tid.x; setp.ne.u32 %q, %r9, 0;
mul.wide.u32 %d3, %r1, 4; add.u64 %d4, %d1, %d3; add.u64 %d5, %d2, %d3; mov.u32 %r3, 0; mov.u32 %r10, 0;
{ .param .b32 s; .param .b64 h; st.param.b32 [s], 1; call.uni (h), cudaCGGetIntrinsicHandle, (s); ld.param.b64 %d7, [h]; }
ROUND: @%q bra MEET;
ld.volatile.global.u32 %r4, [%d4]; add.u32 %r4, %r4, 1; st.volatile.global.u32 [%d4], %r4;
MEET: { .param .b64 h; .param .b32 f; .param .b32 e; st.param.b64 [h], %d7; st.param.b32 [f], 0;
call.uni (e), cudaCGSynchronize, (h, f); ld.param.b32 %r8, [e]; }
add.u32 %r10, %r10, %r8; mov.u32 %r5, 0; mov.u32 %r6, 0;
SUM: mul.wide.u32 %d3, %r5, 4; add.u64 %d6, %d1, %d3; ld.volatile.global.u32 %r7, [%d6]; add.u32 %r6, %r6, %r7;
add.u32 %r5, %r5, 1; setp.lt.u32 %p, %r5, %r2; @%p bra SUM;
{ .param .b64 h; .param .b32 f; .param .b32 e; st.param.b64 [h], %d7; st.param.b32 [f], 0;
call.uni (e), cudaCGSynchronize, (h, f); ld.param.b32 %r8, [e]; }
add.u32 %r10, %r10, %r8; mul.wide.u32 %d3, %r3, 32; add.u64 %d6, %d5, %d3;
@!%q st.global.u32 [%d6], %r6;
add.u32 %r3, %r3, 1; setp.lt.u32 %p, %r3, 3; @%p bra ROUND;
@!%q st.global.u32 [%d5+96], %r10; ret; }
"""

GRID = """
blocks, threads = 8, 48
def check(code):
    assert code == 0, code
def address(size):
    value = ctypes.c_uint64()
    check(cuda.cuMemAlloc_v2(ctypes.byref(value), ctypes.c_size_t(size)))
    check(cuda.cuMemsetD8_v2(value, 0, ctypes.c_size_t(size)))
    return value
context, module, function = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
check(cuda.cuInit(0)); check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)); check(cuda.cuCtxSetCurrent(context))
for inputs in ((3, b"ir"), (6, b"!<arch>")), ((2, text(file)), (6, b"!<arch>")), ((3, b"ir"), ("library", b"/a/libcudadevrt.a")):
    image = link([b"-arch=sm_90", b"-lto"], *inputs)
    check(cuda.cuModuleLoadData(ctypes.byref(module), image))
    check(cuda.cuModuleGetFunction(ctypes.byref(function), module, b"rounds"))
    for launch in "cuLaunchCooperativeKernel", "cuLaunchKernel":
        words, sums = address(4 * blocks), address(4 * blocks * 4)
        parameters = (ctypes.c_void_p * 2)(*(ctypes.cast(ctypes.pointer(p), ctypes.c_void_p) for p in (words, sums)))
        more = [parameters] + ([None] if launch == "cuLaunchKernel" else [])
        check(getattr(cuda, launch)(function, blocks, 1, 1, threads, 1, 1, 0, None, *more))
        got = (ctypes.c_uint * (4 * blocks))()
        check(cuda.cuMemcpyDtoH_v2(got, sums, ctypes.c_size_t(16 * blocks)))
        print(launch, [sorted(set(got[8 * n:8 * n + 8])) for n in range(4)] if "Coop" in launch else set(got[24:]))
print("other", link([b"-arch=sm_90", b"-lto"], (3, b"ir"), ("library", b"/a/libmine.a")))
"""


def test_grid_synchronization_uses_ptx_instead_of_cudadevrt(folder):
    source = "#define PREFIX(x) x\n#define SUFFIX\n#define TEXT_OF_IR " + \
        "".join('"%s\\n" ' % line for line in GRID_TEXT.splitlines()) + "\n" + JITLINK
    jitlink = library(folder, "libnvJitLink.so.13", source)
    text = folder / "input.ptx"
    text.write_text(GRID_TEXT)
    done = run(sys.executable, "-c", LINKER[:LINKER.index("def kernels")] + GRID, jitlink, "", "", text)
    expect_status(done, 0)
    # Without a cooperative launch there is no memory to meet by: an error, six times.
    both = ["cuLaunchCooperativeKernel [[8], [16], [24], [0]]", "cuLaunchKernel {6}"]
    expect(done.stdout.splitlines() == [*both * 3, "other 12"], f"{done.stdout}{done.stderr}")
    expect("machine code without PTX in it beside LTO IR" in done.stderr, done.stderr)


def test_versioned_nvjitlink_names_are_intercepted(folder):
    expect_links(linked(folder, "__", "_12_0"))


def tool(folder, name):
    path = folder / name
    path.write_text('#!/bin/sh\necho "real $0"; for word in "$@"; do echo "<$word>"; done\n')
    path.chmod(0o755)


def words_of(folder, *command):
    tool(folder, command[0])
    done = run(*command, PATH=f"{folder}:{os.environ['PATH']}")
    expect_status(done, 0)
    expect(done.stdout.startswith(f"real {folder}/"), done.stdout)
    return done.stdout.splitlines()[1:]


def test_nvcc_writes_ptx_to_the_requested_file(folder):
    expect(words_of(folder, "nvcc", "-cubin", "-arch", "sm_90", "a b.cu") ==
           ["<-ptx>", "<-arch>", "<sm_90>", "<a b.cu>", "<-o>", "<a b.cubin>"], "a name of its own")
    expect(words_of(folder, "nvcc", "--cubin", "-o", "x.cubin", "a.cu") ==
           ["<-ptx>", "<-o>", "<x.cubin>", "<a.cu>"], "a given name")
    expect(words_of(folder, "nvcc", "-cubin", "-gencode", "arch=compute_90,code=sm_90", "-ox", "a.cu") ==
           ["<-ptx>", "<-gencode>", "<arch=compute_90,code=compute_90>", "<-ox>", "<a.cu>"], "of an architecture")


def test_nvcc_adds_ptx_to_machine_code(folder):
    expect(words_of(folder, "nvcc", "-gencode=arch=compute_80,code=sm_80", "a.cu", "-o", "a") ==
           ["<-gencode=arch=compute_80,code=sm_80>", "<a.cu>", "<-o>", "<a>", "<-gencode>",
            "<arch=compute_80,code=compute_80>"], "text beside it")
    expect(words_of(folder, "nvcc", "a.cu") == ["<a.cu>"], "nvcc's default has text")
    for words in (("-arch=sm_90",), ("-arch", "compute_90"), ("-arch=compute_90", "-cubin")):
        expect("<-gencode>" not in words_of(folder, "nvcc", *words, "a.cu"), f"{words} has text")
    text = ["<-gencode>", "<arch=compute_90,code=compute_90>"]
    for words in (("-arch=compute_90", "-code=sm_90"), ("-arch", "compute_90", "-code", "sm_90"),
                  ("--gpu-architecture=compute_90", "--gpu-code=sm_90,sm_100")):
        expect(words_of(folder, "nvcc", *words, "a.cu")[-2:] == text, f"no text beside {words}")


def test_nvcc_adds_ptx_for_the_device_to_code_for_several_architectures(folder):
    query = folder / "__nvcc_device_query"
    query.write_text("#!/bin/sh\nprintf '90\\n80\\n'\n")
    query.chmod(0o755)
    for words in (("-arch=native",), ("-arch", "all-major"), ("--gpu-architecture=all",)):
        expect(words_of(folder, "nvcc", *words, "a.cu")[-2:] == ["<-gencode>", "<arch=compute_90,code=compute_90>"],
               f"no text beside {words}")
    query.unlink()
    expect(words_of(folder, "nvcc", "-arch=native", "a.cu") == ["<-arch=native>", "<a.cu>"], "a device made up")


def test_the_toolkit_is_beside_the_wrapper_of_nvcc(folder):
    """Programs look for headers and libraries by the place of nvcc."""
    look = """at=$(dirname "$(command -v nvcc)"); cat "$at/../include/cuda.h" "$at/../lib64/libcudadevrt.a" "$at/nvlink";
              nvcc -cubin a.cu; "$at/ptxas" --version | tail -1"""
    toolkit = folder / "cuda"
    for part, name in (("include", "cuda.h"), ("lib64", "libcudadevrt.a"), ("bin", "nvlink")):
        (toolkit / part).mkdir(parents=True)
        (toolkit / part / name).write_text(f"its {name}\n")
    tool(toolkit / "bin", "nvcc")
    link = folder / "nvcc"
    link.symlink_to(toolkit / "bin/nvcc")
    wanted = ["its cuda.h", "its libcudadevrt.a", "its nvlink", "<-ptx>", "<a.cu>", "<-o>", "<a.cubin>",
              "gpumem: PTX in place of machine code, for softgpu"]
    for more in ({"PATH": f"{folder}:{os.environ['PATH']}"}, {"CUDA_HOME": str(toolkit), "PATH": "/usr/bin:/bin"}):
        for _ in range(2):
            done = run("sh", "-c", look, env=environment(XDG_CACHE_HOME=str(folder / "caches"), **more))
            expect_status(done, 0)
            lines = done.stdout.splitlines()
            expect([line for line in lines if not line.startswith("real ")] == wanted, f"{lines} {done.stderr}")
    # Where the folder cannot be made, the wrappers are used alone.
    done = run("nvcc", "-cubin", "a.cu", env=environment(XDG_CACHE_HOME="/dev/null", **more))
    expect_status(done, 0)


def test_compiler_versions_differ_from_those_on_hardware(folder):
    for name in "nvcc", "ptxas":
        tool(folder, name)
        done = run(name, "--version", PATH=f"{folder}:{os.environ['PATH']}")
        expect_status(done, 0)
        lines = done.stdout.splitlines()
        expect(lines[0] == f"real {folder}/{name}" and lines[-1].startswith("gpumem: PTX in place"), done.stdout)
    missing = run("nvcc", "--version", env=environment(PATH="/usr/bin:/bin", CUDA_HOME="/none", CUDA_PATH="/none"))
    expect(missing.returncode == 127 and "nvcc is not on the path" in missing.stderr, missing.stderr)
    alone = run("ptxas", "--version", env=environment(PATH="/usr/bin:/bin"))
    expect(alone.returncode == 0 and "release 13.0" in alone.stdout, alone.stdout)


def test_ptxas_returns_ptx(folder):
    (folder / "a.ptx").write_text("text")
    done = run("ptxas", "-lineinfo", "-v", "--gpu-name=sm_90a", "-O", "3", folder / "a.ptx", "-o", folder / "a.cubin")
    expect_status(done, 0)
    expect((folder / "a.cubin").read_text() == "text", "another text")
    for words, why in ((["-v"], "no input file"), ([folder / "a.ptx", folder / "a.ptx"], "second input"),
                       ([folder / "a.ptx", "-o"], "needs a file")):
        done = run("ptxas", *words)
        expect(done.returncode == 1 and why in done.stderr, done.stderr)
    done = run("sh", "-c", 'test -x "$TRITON_PTXAS_PATH" && test "$TRITON_PTXAS_PATH" -ef "$(command -v ptxas)"')
    expect_status(done, 0)


VARIABLES = "NUMBA_CACHE_DIR TRITON_CACHE_DIR PYCUDA_CACHE_DIR CUPY_CACHE_DIR TORCHINDUCTOR_CACHE_DIR " \
    "TORCH_EXTENSIONS_DIR".split()


def caches(env, *options):
    script = "; ".join(f'echo "${name}"' for name in VARIABLES)
    done = subprocess.run([harness.COMMAND, "run", "--softgpu", *options, "--", "sh", "-c", script], env=env,
                          timeout=50, capture_output=True, text=True, check=False)
    expect_status(done, 0)
    return done.stdout.splitlines()


def test_caches_are_separate_for_each_profile_and_version(folder):
    env = environment(XDG_CACHE_HOME=str(folder))
    first, other = caches(env), caches(env, "--profile", "tiny")
    expect(all(path.startswith(f"{folder}/gpumem-h200-") for path in first), first)
    expect(all(os.path.isdir(path) for path in first), "a folder that is not there")
    expect(len(set(first)) == len(VARIABLES) and not set(first) & set(other), other)
    profile = folder / "mine.ini"
    profile.write_text("[device]\nlike = h200\nname = Mine\nmemory = 8M\n")
    expect(not set(caches(env, "--profile", str(profile))) & set(first + other), "a file's profile")
    home = caches({**environment(), "HOME": str(folder), "XDG_CACHE_HOME": ""})
    expect(home[0].startswith(f"{folder}/.cache/gpumem-h200-"), home)


def test_a_cache_folder_set_by_the_user_gets_a_subfolder(folder):
    env = environment(XDG_CACHE_HOME=str(folder), **{name: f"{folder}/mine {name}" for name in VARIABLES})
    paths = caches(env)
    for name, path in zip(VARIABLES, paths):
        expect(path.startswith(f"{folder}/mine {name}/gpumem-h200-") and os.path.isdir(path), f"{name}: {path}")
    script = f"{harness.COMMAND} run --softgpu -- printenv {' '.join(VARIABLES)}"
    inside = run("sh", "-c", script, env=env)
    expect(inside.stdout.splitlines() == paths, f"inside of another run: {inside.stdout}{inside.stderr}")


# What cuda.core's cache does with files.
FILES = """
import os, pathlib, sys, tempfile
root = pathlib.Path(os.environ["XDG_CACHE_HOME"]) / "cuda-python" / "program-cache"
root.mkdir(parents=True, exist_ok=True)
handle, name = tempfile.mkstemp(dir=root)
os.write(handle, b"made here"); os.close(handle)
os.utime(name)
os.replace(name, root / "key")
print((root / "key").read_text(), [p.name for p in root.iterdir()], (root / "key").stat().st_size)
pathlib.Path(os.environ["XDG_CACHE_HOME"], "cuda-pythonic").write_text("another")
try:
    (root / "of hardware").read_text()
except FileNotFoundError as error:
    print("errno", error.errno)
"""


def test_the_cache_of_cuda_core_is_redirected(folder):
    if harness.SANITIZE != "off":
        raise Skip("Python does not run the sanitizer's libraries")
    hardware = folder / "cuda-python" / "program-cache"
    hardware.mkdir(parents=True)
    (hardware / "of hardware").write_text("machine code")
    done = run(sys.executable, "-c", FILES, XDG_CACHE_HOME=str(folder))
    expect_status(done, 0)
    expect(done.stdout.splitlines() == ["made here ['key'] 9", "errno 2"], done.stdout)
    expect([path.name for path in hardware.iterdir()] == ["of hardware"], "the user's own cache has changed")
    expect((folder / "cuda-pythonic").exists(), "a folder of another name was moved")


CAPABILITY = """
import ctypes
cuda, number, name = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(), ctypes.create_string_buffer(100)
assert cuda.cuInit(0) == 0 and cuda.cuDeviceGetName(name, 100, 0) == 0
for attribute in 75, 76:
    assert cuda.cuDeviceGetAttribute(ctypes.byref(number), attribute, 0) == 0
    print(number.value, end=" ")
"""


def test_profiles_name_the_source_of_their_figures(_folder):
    if harness.SANITIZE != "off":
        raise Skip("Python does not run the sanitizer's libraries")
    page = (harness.SOURCE / "docs" / "clients.md").read_text()
    for profile, capability, source in (("a100", "8 0 ", "published figures"), ("rtx5090", "12 0 ", "published figures"),
                                        ("h100", "9 0 ", "recorded"), ("h200", "9 0 ", "recorded")):
        done = subprocess.run([harness.COMMAND, "run", "--softgpu", "--profile", profile, "--", sys.executable, "-c",
                               CAPABILITY], env=environment(), timeout=50, capture_output=True, text=True, check=False)
        expect_status(done, 0)
        expect(done.stdout == capability, f"{profile}: {done.stdout}")
        text = (harness.SOURCE / "profiles" / f"{profile}.ini").read_text()
        marked = text.startswith("; Not recorded:") and "from published figures" in text.split("\n\n")[0]
        expect(marked == (source == "published figures"), f"{profile}.ini does not say that it is from {source}")
        line = next(line for line in page.splitlines() if line.startswith("| ") and f"`{profile}`" in line)
        expect(line.rstrip(" |").endswith(source), line)


def test_programs_that_cannot_be_intercepted_are_reported(folder):
    compiler = shutil.which("cc")
    if not compiler:
        raise Skip("there is no C compiler")
    (folder / "a.c").write_text("int main(void) { return 0; }\n")
    subprocess.run([compiler, "-static", "-o", folder / "still", folder / "a.c"], check=True)
    subprocess.run([compiler, "-o", folder / "moving", folder / "a.c"], check=True)
    done = run(folder / "still")
    expect(done.returncode == 0 and "still is linked statically" in done.stderr, done.stderr)
    by_path = run("still", PATH=f"{folder}:{os.environ['PATH']}")
    expect("linked statically" in by_path.stderr, by_path.stderr)
    expect("gpumem:" not in run(folder / "moving").stderr, "a word about a program that works")
    (folder / "moving").chmod(0o4755)
    expect("is set-user-ID" in run(folder / "moving").stderr, "no word about set-user-ID")


# A program with NVRTC inside of it: nothing of it is exported, and its machine code is that of a real kernel.
INSIDE = r"""
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
asm(".section .rodata\n.balign 8\nmachine: .incbin \"" MACHINE "\"\nmachine_end:\n.text\n");
extern const char machine[], machine_end[];
static const char text[] = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry small(.param .u64 p, "
    ".param .u32 n) { .reg .b64 %d; .reg .b32 %r; ld.param.u64 %d, [p]; ld.param.u32 %r, [n]; add.u32 %r, %r, 42; "
    "st.global.u32 [%d], %r; ret; }";
typedef void *P;
static int nvrtcGetCUBINSize(P p, unsigned long *n) { *n = machine_end - machine; return 0; }
static int nvrtcGetCUBIN(P p, char *to) { memcpy(to, machine, machine_end - machine); return 0; }
static int nvrtcGetPTXSize(P p, unsigned long *n) { *n = sizeof text; return 0; }
static int nvrtcGetPTX(P p, char *to) { memcpy(to, text, sizeof text); return 0; }
static int (*sizes[])(P, unsigned long *) = {nvrtcGetCUBINSize, nvrtcGetPTXSize};
static int (*bytes[])(P, char *) = {nvrtcGetCUBIN, nvrtcGetPTX};
#define CALL(name, ...) ((int (*)())dlsym(cuda, name))(__VA_ARGS__)
#define OK(...) if ((result = CALL(__VA_ARGS__))) return printf("%d\n", result), 1
int main(int argc, char **argv) {
    static char image[1 << 16];
    void *cuda = dlopen("libcuda.so.1", RTLD_NOW), *context, *module, *kernel;
    unsigned long size, memory;
    int result, number = 5, got = 0;
    sizes[argc > 1](argv, &size);
    if (size > sizeof image || bytes[argc > 1](argv, image)) return 2;
    void *parameters[] = {&memory, &number};
    OK("cuInit", 0);
    OK("cuDevicePrimaryCtxRetain", &context, 0);
    OK("cuCtxSetCurrent", context);
    OK("cuMemAlloc_v2", &memory, 4ul);
    OK("cuModuleLoadData", &module, image);
    OK("cuModuleGetFunction", &kernel, module, "small");
    OK("cuLaunchKernel", kernel, 1, 1, 1, 1, 1, 1, 0, (void *)0, parameters, (void **)0);
    OK("cuMemcpyDtoH_v2", &got, memory, 4ul);
    return printf("%d\n", got) < 0;
}
"""


def test_a_program_with_a_built_in_compiler_is_told_what_to_set(folder):
    compiler = shutil.which("cc")
    if not compiler:
        raise Skip("there is no C compiler")
    if harness.SANITIZE != "off":
        raise Skip("the program is not built with the sanitizer that softgpu needs then")
    machine = harness.SOURCE / "tests/fixtures/images/small.cubin"
    (folder / "inside.c").write_text(INSIDE)
    subprocess.run([compiler, "-w", f'-DMACHINE="{machine}"', "-o", folder / "inside", folder / "inside.c", "-ldl"],
                   check=True)
    done = run(folder / "inside")
    expect(done.returncode == 1 and done.stdout == "801\n", f"{done.stdout}{done.stderr}")
    expect(done.stderr.count("\n") == 1, f"not one line: {done.stderr}")
    for word in ("kernel small was not launched", "machine code without PTX",
                 "NVRTC an architecture compute_90 or nvrtcGetPTX"):
        expect(word in done.stderr, done.stderr)
    # What the line says helps.
    done = run(folder / "inside", "text")
    expect_status(done, 0)
    expect((done.stdout, done.stderr) == ("47\n", ""), f"{done.stdout}{done.stderr}")


if __name__ == "__main__":
    harness.main(globals())
