#!/usr/bin/env python3
"""The CUDA runtime in a process that loads libraries, forks and ends, in every order: nothing hangs or crashes, and
calls that come too late say so."""
import shutil
import subprocess
import sys

import harness
from harness import Skip, expect, expect_status

RUNTIMES = {version: harness.BUILD / f"lib/gpumem/runtime/{version}/libcudart.so.{version}" for version in (12, 13)}
GONE = 4  # cudaErrorCudartUnloading
DECLARED = """
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int cudaMalloc(void **, size_t), cudaFree(void *);
static int use(void) { void *memory = 0; int error = cudaMalloc(&memory, 100); return error ? error : cudaFree(memory); }
static void say(const char *who) { char text[64]; int n = snprintf(text, 64, "%s %d\\n", who, use()); (void)!write(1, text, n); }
"""
# What calls the runtime, and in which order the program ends.
PROGRAM = DECLARED + """
static void first(void) { say("first"); }
static void second(void) { say("second"); }
static void quick(void) { say("quick"); }
static const char *mode;
__attribute__((destructor)) static void destructor(void) { if (strcmp(mode, "unused")) say("destructor"); }
static void *ends(void *unused) { exit(0); }
static void *works(void *unused) { for (;;) use(); }
int main(int argc, char **argv) {
    pthread_t thread;
    mode = argv[1];
    atexit(first);
    if (!strcmp(mode, "unused")) _exit(0);
    say("main");
    atexit(second);
    if (!strcmp(mode, "_exit")) _exit(0);
    if (!strcmp(mode, "quick")) { at_quick_exit(quick); quick_exit(0); }
    if (!strcmp(mode, "threads")) for (int i = 0; i < 4; i++) pthread_create(&thread, 0, works, 0);
    if (!strncmp(mode, "thread", 6)) { pthread_create(&thread, 0, ends, 0); pause(); }
    return 0;
}
"""


def made(folder, name, source, *options):
    compiler = shutil.which("cc")
    if not compiler:
        raise Skip("there is no C compiler")
    (folder / "source.c").write_text(source)
    subprocess.run([compiler, "-w", "-o", folder / name, folder / "source.c", *options, "-pthread"], check=True)
    return folder / name


def run(*words, **more):
    return harness.run_program(["--"], *words, env=harness.bare_environment("LD_AUDIT", "NVCC_", **more))


def test_at_exit_calls_work_until_the_driver_has_ended_and_say_so_then(folder):
    """What was registered after first use runs while the driver is there."""
    for version, runtime in RUNTIMES.items():
        program = made(folder, f"program{version}", PROGRAM, runtime)
        late = f"first {GONE}\ndestructor {GONE}\n"
        for mode, output in (("return", f"main 0\nsecond 0\n{late}"), ("unused", ""), ("_exit", "main 0\n"),
                             ("quick", "main 0\nquick 0\n"), ("thread", f"main 0\nsecond 0\n{late}"),
                             ("threads", f"main 0\nsecond 0\n{late}")):
            done = run(program, mode)
            expect_status(done, 0)
            expect(done.stdout == output, f"{version} {mode}: {done.stdout}{done.stderr}")


def test_a_librarys_destructor_may_call_it_at_dlclose_and_at_exit(folder):
    library = made(folder, "libdestructor.so", DECLARED + """
__attribute__((constructor)) static void constructor(void) { say("constructor"); }
__attribute__((destructor)) static void destructor(void) { say("destructor"); }
""", "-shared", "-fPIC", RUNTIMES[13])
    program = f"import _ctypes\nhandle = _ctypes.dlopen('{library}', 2)\n"
    done = run(sys.executable, "-c", program + "_ctypes.dlclose(handle)")
    expect(done.returncode == 0 and done.stdout == "constructor 0\ndestructor 0\n", f"{done.stdout}{done.stderr}")
    done = run(sys.executable, "-c", program)
    expect(done.returncode == 0 and done.stdout == f"constructor 0\ndestructor {GONE}\n", f"{done.stdout}{done.stderr}")


def test_a_constructor_may_use_it_while_another_thread_opens_the_driver(folder):
    """The loader's lock is the constructor's; the other thread waits for it."""
    library = made(folder, "libconstructor.so", DECLARED + """
#include <sys/syscall.h>
static atomic_int other;
static void *opens(void *unused) { other = syscall(SYS_gettid); use(); return 0; }
static char state(int thread) {
    char path[64], line[256] = "";
    snprintf(path, 64, "/proc/self/task/%d/stat", thread);
    FILE *file = fopen(path, "r");
    if (file) { (void)!fgets(line, 256, file); fclose(file); }
    char *end = strrchr(line, ')');
    return end ? end[2] : 0;
}
__attribute__((constructor)) static void constructor(void) {
    pthread_t thread;
    pthread_create(&thread, 0, opens, 0);
    while (!other || state(other) != 'S') sched_yield();
    say("constructor");
}
""", "-shared", "-fPIC", RUNTIMES[13])
    done = run(sys.executable, "-c", f"import ctypes\nctypes.CDLL('{library}')")
    expect(done.returncode == 0 and done.stdout == "constructor 0\n", f"{done.stdout}{done.stderr}")


def test_libraries_with_kernels_come_and_go_while_threads_launch(folder):
    image = harness.SOURCE / "tests/fixtures/images/small-ptx.fatbin"
    source = (harness.SOURCE / "tests/cli/registers.c").read_text()
    for name in ("stays", "goes"):
        made(folder, f"lib{name}.so", source, "-shared", "-fPIC", RUNTIMES[13], f'-DIMAGE="{image}"')
    done = run(sys.executable, "-c", f"""
import _ctypes, ctypes, threading
runtime, stays = ctypes.CDLL("libcudart.so.13"), ctypes.CDLL("{folder}/libstays.so")
wrong = []

def launches(launch):
    memory, value = ctypes.c_void_p(), ctypes.c_int()
    runtime.cudaMalloc(ctypes.byref(memory), 4)
    answers = launch(memory), runtime.cudaMemcpy(ctypes.byref(value), memory, ctypes.c_size_t(4), 2), value.value
    runtime.cudaFree(memory)
    if answers != (0, 0, 45):
        wrong.append(answers)

def works():
    for _ in range(100):
        launches(stays.launch)

threads = [threading.Thread(target=works) for _ in range(8)]
for thread in threads:
    thread.start()
while any(thread.is_alive() for thread in threads):
    handle = _ctypes.dlopen("{folder}/libgoes.so", 2)
    launches(ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(_ctypes.dlsym(handle, "launch")))
    _ctypes.dlclose(handle)
print(wrong)
""")
    expect(done.returncode == 0 and done.stdout == "[]\n", f"{done.returncode} {done.stdout}{done.stderr}")


def test_both_versions_work_in_one_process_on_the_same_memory(_folder):
    done = run(sys.executable, "-c", """
import ctypes
old, new = ctypes.CDLL("libcudart.so.12"), ctypes.CDLL("libcudart.so.13")
version, memory, value = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_int(7)
for one, other in ((old, new), (new, old)):
    one.cudaRuntimeGetVersion(ctypes.byref(version))
    print(version.value, one.cudaMalloc(ctypes.byref(memory), ctypes.c_size_t(4)),
          one.cudaMemcpy(memory, ctypes.byref(value), ctypes.c_size_t(4), 1),
          other.cudaMemcpy(ctypes.byref(value), memory, ctypes.c_size_t(4), 2), other.cudaFree(memory), value.value)
print(old.cudaSetDevice(9), old.cudaPeekAtLastError(), new.cudaPeekAtLastError())
print(old.cudaDeviceReset(), new.cudaMalloc(ctypes.byref(memory), ctypes.c_size_t(4)), new.cudaFree(memory))
""")
    expect(done.returncode == 0 and done.stdout == "12090 0 0 0 0 7\n13050 0 0 0 0 7\n101 101 0\n0 0 0\n",
           f"{done.stdout}{done.stderr}")


if __name__ == "__main__":
    harness.main_unless_sanitized(globals())
